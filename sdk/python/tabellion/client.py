"""The client of a transparency service (SCRAPI, draft-ietf-scitt-scrapi-11, and the API below `/v1`)."""

from __future__ import annotations

import urllib.parse
import uuid
from pathlib import Path
from typing import Any, Iterator, List, NamedTuple, Optional, Tuple, Union

from . import core, monitor, stream
from .errors import CoreError, NotVerified, StillRunning, TabellionError, Unreachable
from .files import write_durably
from .http import Answer, Backoff, Http, error_of, may_retry

COSE = "application/cose"
#: Statuses that mean "not yet": 202 and 204 of draft 11, 302 and 303 of earlier drafts.
NOT_YET = frozenset({202, 204, 302, 303})
#: Characters of a URL that stay as they are (RFC 3986); the others are percent-encoded.
URL_CHARACTERS = "%/?#:[]@!$&'()*+,;=-._~"


class Registered(NamedTuple):
    """A registered statement: its entry ID, the receipt, and both as a Transparent Statement."""

    entry: str
    receipt: bytes
    transparent: bytes


class Client:
    """A client of one service.

    `trust` is the text of a trust.toml. With it, every receipt is verified before it is returned. `patience` bounds the time
    for retries and polling, in seconds.
    """

    def __init__(self, url: str, *, token: Optional[str] = None, trust: Optional[str] = None, patience: float = 60.0):
        self.http = Http(url, token, patience)
        self.trust = trust

    def register(
        self,
        statement: Union[bytes, core.SignedStatement],
        save_as: Union[str, Path],
        *,
        payload: Optional[bytes] = None,
    ) -> Registered:
        """Registers a statement and waits for its receipt.

        The statement is written to the file `save_as` and flushed before the first attempt, so that a crash loses nothing: a
        repeated registration of the same bytes gives the same entry. At the end the file holds the Transparent Statement.
        `payload` is that of a statement that does not contain it: it is sent with the statement.
        """
        message = statement.bytes if isinstance(statement, core.SignedStatement) else statement
        facts = core.read_statement(message)
        entry, attached = facts["entry"], facts["payload"]
        write_durably(Path(save_as), message)
        body = (COSE, message) if attached is not None or payload is None else _form(message, payload)
        receipt = self._submit(*body, entry)
        transparent = core.attach(message, [receipt])
        self._check(transparent, payload)
        write_durably(Path(save_as), transparent)
        return Registered(entry, receipt, transparent)

    def wait(self, entry: str) -> bytes:
        """Waits until the registration of an entry is finished, and returns its receipt."""
        return self._poll(f"entries/{entry}", Backoff(self.http.patience))

    def receipt(self, entry: str) -> bytes:
        """Fetches a fresh receipt. It is verified by `verify`, with the statement."""
        return self.wait(entry)

    def attach(self, statement: bytes, receipt: bytes) -> bytes:
        """Attaches a receipt to a statement."""
        return core.attach(statement, [receipt])

    def statement(self, entry: str) -> bytes:
        """Fetches a statement; its entry ID is checked."""
        statement = self._get(f"v1/entries/{entry}/statement", COSE).body
        if core.read_statement(statement)["entry"] != entry:
            raise Unreachable(f"the service gives another statement than {entry}")
        return statement

    def verify(self, evidence: bytes, **more: Any) -> core.Json:
        """Verifies evidence offline with the client's trust. Raises `NotVerified` unless everything is verified."""
        verdict = core.verify(evidence, self._trust(), **more)
        if verdict["outcome"] != "verified":
            raise NotVerified(verdict)
        return verdict

    def session(self, session: str) -> List[core.Json]:
        """Lists the entries of a session, oldest first."""
        entries: List[core.Json] = []
        path: Optional[str] = f"v1/sessions/{urllib.parse.quote(session, safe='')}"
        while path:
            answer = self._get(path, "application/json")
            entries += _entries(answer)
            path = _next(answer)
        return entries

    def follow(self, *, after: Optional[int] = None, begin: bool = False, **filters: str) -> Iterator[stream.EntryEvent]:
        """Follows new entries, and reconnects where the stream broke off, without loss or repetition.

        Begins after the leaf `after`, with `begin=True` at the first entry, else with the next new one. `filters` are the
        search parameters of the API, such as `session` and `issuer`.
        """
        return stream.follow(self.http, after=after, begin=begin, filters=filters)

    def monitor_once(self, state: Union[str, Path], *, witness_policy: Optional[str] = None) -> monitor.Observation:
        """Verifies that the log only grew since the last call; `state` is the file that remembers its tree."""
        return monitor.observe(self.http, self._trust(), Path(state), witness_policy)

    def _submit(self, content_type: str, body: bytes, entry: str) -> bytes:
        backoff = Backoff(self.http.patience)
        headers = {"Content-Type": content_type, "Accept": COSE}
        answer = self.http.retrying("entries", headers, body, backoff)
        if answer.status == 201 and answer.body:
            return _receipt_in(answer)
        return self._poll(self._located(answer, "entries", f"entries/{entry}"), backoff, answer)

    def _located(self, answer: Answer, asked: str, otherwise: str) -> str:
        """Returns what `Location` names. The token is for this service: of another one only the entry's name is used."""
        try:
            location = urllib.parse.quote(answer.headers["location"], safe=URL_CHARACTERS, encoding="latin-1")
            url = urllib.parse.urljoin(self.http.url(asked), location)
            if _origin(url) == _origin(self.http.base):
                return url
        except (KeyError, ValueError):
            return otherwise
        _, _, name = urllib.parse.urlsplit(url).path.rpartition("/entries/")
        return f"entries/{name}" if name else otherwise

    def _poll(self, path: str, backoff: Backoff, accepted: Optional[Answer] = None) -> bytes:
        """Polls for a receipt; `accepted` is the answer to the registration, if there was one."""
        retry_after = accepted.retry_after() if accepted else None
        running, waits = accepted is not None, retry_after is not None
        failed: Optional[TabellionError] = None
        while True:
            if waits and not backoff.wait(retry_after):
                raise StillRunning(self.http.url(path)) if running or failed is None else failed
            waits = True
            try:
                answer = self.http.exchange(path, {"Accept": COSE})
            except Unreachable as broken:
                if not self.http.reached:
                    raise
                retry_after, failed = None, broken
                continue
            if answer.status == 200:
                return _receipt_in(answer)
            retry_after = answer.retry_after()
            if answer.status in NOT_YET:
                running, path = True, self._located(answer, path, path)
                continue
            error = error_of(answer)
            if not may_retry(error):
                raise error
            failed = error

    def _get(self, path: str, accept: str) -> Answer:
        return self.http.retrying(path, {"Accept": accept})

    def _check(self, transparent: bytes, payload: Optional[bytes]) -> None:
        if self.trust is not None:
            self.verify(transparent, payload=payload)

    def _trust(self) -> str:
        if self.trust is None:
            raise ValueError("this client has no trust file: give `trust`, the text of a trust.toml")
        return self.trust


def _origin(url: str) -> Tuple[str, Optional[str], Optional[int]]:
    parts = urllib.parse.urlsplit(url)
    return parts.scheme, parts.hostname, parts.port or {"http": 80, "https": 443}.get(parts.scheme)


def _form(message: bytes, payload: bytes) -> Tuple[str, bytes]:
    """Returns a statement and its detached payload as `multipart/form-data` (RFC 7578): the content type and the body."""
    boundary = uuid.uuid4().hex
    body = b""
    for name, kind, content in (("statement", COSE, message), ("payload", "application/octet-stream", payload)):
        disposition = f'Content-Disposition: form-data; name="{name}"; filename="{name}"'
        body += f"--{boundary}\r\n{disposition}\r\nContent-Type: {kind}\r\n\r\n".encode() + content + b"\r\n"
    return f"multipart/form-data; boundary={boundary}", body + f"--{boundary}--\r\n".encode()


def _receipt_in(answer: Answer) -> bytes:
    """Returns the body of an answer if it is a receipt: a page of a proxy is none. Nothing is verified."""
    try:
        core.call("read-receipt", receipt=answer.body)
    except CoreError as error:
        raise Unreachable(f"the service's answer is not a receipt: {error.message}") from None
    return answer.body


def _entries(answer: Answer) -> List[core.Json]:
    page = answer.json()
    if not isinstance(page, dict) or not isinstance(page.get("entries"), list):
        raise Unreachable("the service's answer is not a page of a session")
    return page["entries"]


def _next(answer: Answer) -> Optional[str]:
    """Returns the path of the next page: the host in the link, and a path before the API, are ignored."""
    target, _, relation = answer.headers.get("link", "").partition(">")
    _, found, path = target.rpartition("/v1/")
    return f"v1/{path}" if found and 'rel="next"' in relation else None
