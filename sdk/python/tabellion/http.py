"""HTTP with the standard library: exchanges of bounded size, problem details as errors, and retries."""

from __future__ import annotations

import json
import random
import time
import urllib.error
import urllib.request
from email.utils import parsedate_to_datetime
from http.client import HTTPException
from typing import Any, Dict, Mapping, NamedTuple, Optional, Union

from . import core
from .errors import CoreError, NotFound, Refused, ServiceError, TryAgain, Unreachable

#: Timeout of one exchange in seconds.
EXCHANGE_SECONDS = 30.0
#: First wait without `Retry-After`, in seconds; it doubles each time.
FIRST_WAIT = 0.1
#: Longest wait without `Retry-After`, in seconds.
LONGEST_WAIT = 10.0
#: Longest `Retry-After` that is waited for, in seconds: a service that needs more counts as down.
LONGEST_RETRY_AFTER = 300.0
#: Maximum size of an answer in bytes.
MAX_ANSWER_BYTES = 32 << 20
#: Codes of conditions that last until the operator acts, despite a status that allows retries.
LASTING = frozenset({"log-halted", "database-damaged"})
#: Errors of a connection that ended early, or of an answer that is not HTTP.
BROKEN_OFF = (OSError, HTTPException)


class Answer(NamedTuple):
    """A complete answer. Header names are in lower case."""

    status: int
    headers: Mapping[str, str]
    body: bytes

    def json(self) -> Any:
        """Parses the body as JSON."""
        return parse_json(self.body, "the service's answer")

    def retry_after(self) -> Optional[float]:
        """Returns `Retry-After` in seconds. A date is compared with the answer's own: the local clock may be wrong."""
        text = self.headers.get("retry-after", "").strip()
        if text.isascii() and text.isdigit():
            return float(text)
        try:
            until, date = (parsedate_to_datetime(header) for header in (text, self.headers.get("date", "")))
            return max((until - date).total_seconds(), 0.0)
        except (TypeError, ValueError, IndexError, OverflowError):
            return None


def parse_json(text: Union[bytes, str], name: str) -> Any:
    """Parses JSON of the service. `name` is the subject of the error."""
    try:
        return json.loads(text)
    except (ValueError, RecursionError) as error:
        raise Unreachable(f"{name} is not JSON: {error}") from None


class _NoRedirect(urllib.request.HTTPRedirectHandler):
    def redirect_request(self, *_: Any) -> None:
        return None


class Backoff:
    """The waits of one operation, none of which ends later than `patience` seconds after its begin."""

    def __init__(self, patience: float):
        self.end = time.monotonic() + patience
        self.attempt = 0

    def wait(self, retry_after: Optional[float]) -> bool:
        """Sleeps until the next attempt; `False` if the patience is used up."""
        doubled = min(FIRST_WAIT * 2 ** min(self.attempt, 10), LONGEST_WAIT)
        pause = doubled * random.uniform(0.5, 1) if retry_after is None else max(retry_after, FIRST_WAIT)
        self.attempt += 1
        if pause > self.end - time.monotonic() or pause > LONGEST_RETRY_AFTER:
            return False
        time.sleep(pause)
        return True


class Http:
    """Exchanges with one service. The token is sent to it only."""

    def __init__(self, base: str, token: Optional[str] = None, patience: float = 60.0):
        if not base.lower().startswith(("http://", "https://")):
            raise ValueError(f"the URL of a service begins with http:// or https://, unlike {base!r}")
        self.base = base.rstrip("/")
        self.patience = patience
        self._token = token
        #: Whether the service has answered: then a failed connection may be temporary, because it is restarting.
        self.reached = False
        self._opener = urllib.request.build_opener(_NoRedirect)

    def url(self, path: str) -> str:
        """Returns the URL of a path below the base; a whole URL of the same service stays as it is."""
        return path if path.startswith(("http://", "https://")) else f"{self.base}/{path}"

    def open(self, path: str, headers: Mapping[str, str], body: Optional[bytes] = None, timeout: float = EXCHANGE_SECONDS) -> Any:
        """Sends a request and returns the open response. Every status is a response."""
        request = urllib.request.Request(self.url(path), data=body, headers=dict(headers))
        if self._token:
            request.add_header("Authorization", f"Bearer {self._token}")
        try:
            response = self._opener.open(request, timeout=timeout)
        except urllib.error.HTTPError as answered:
            response = answered
        except BROKEN_OFF as error:
            raise Unreachable(f"cannot reach {self.base}: {error}") from None
        self.reached = True
        return response

    def exchange(self, path: str, headers: Mapping[str, str], body: Optional[bytes] = None) -> Answer:
        """Sends a request and reads the whole answer."""
        with self.open(path, headers, body) as response:
            return read(response)

    def retrying(self, path: str, headers: Mapping[str, str], body: Optional[bytes] = None, backoff: Optional[Backoff] = None) -> Answer:
        """Like `exchange`, with retries where they may help; raises the error of any other answer."""
        backoff = backoff or Backoff(self.patience)
        while True:
            try:
                answer = self.exchange(path, headers, body)
            except Unreachable:
                if not self.reached or not backoff.wait(None):
                    raise
                continue
            if answer.status < 400:
                return answer
            error = error_of(answer)
            if not may_retry(error) or not backoff.wait(error.retry_after):
                raise error


def read(response: Any) -> Answer:
    """Reads a response of bounded size."""
    try:
        body = response.read(MAX_ANSWER_BYTES + 1)
    except BROKEN_OFF as error:
        raise Unreachable(f"the answer broke off: {error}") from None
    if len(body) > MAX_ANSWER_BYTES:
        raise Unreachable(f"the answer has more than {MAX_ANSWER_BYTES} bytes")
    # What is missing of a body of known length; `read` returns a shorter one without an error.
    if getattr(response, "length", None):
        raise Unreachable(f"the answer broke off: {response.length} bytes are missing")
    return Answer(response.status, {name.lower(): value for name, value in response.headers.items()}, body)


def may_retry(error: ServiceError) -> bool:
    """Returns whether the same request may succeed later."""
    return isinstance(error, TryAgain) and error.code not in LASTING


def error_of(answer: Answer) -> ServiceError:
    """Returns the error of an answer, with its problem details in CBOR (RFC 9290) or JSON (RFC 9457)."""
    kind: Union[type, Any] = Refused
    if answer.status == 404:
        kind = NotFound
    elif answer.status == 429 or answer.status >= 500:
        kind = TryAgain
    return kind(answer.status, _problem(answer), answer.retry_after())


def _problem(answer: Answer) -> Dict[str, Any]:
    media_type = answer.headers.get("content-type", "")
    try:
        if media_type.startswith("application/concise-problem-details+cbor"):
            problem = core.call("read-problem", problem=answer.body)
        elif media_type.startswith("application/problem+json"):
            problem = json.loads(answer.body)
        else:
            return {}
    except (CoreError, ValueError, RecursionError):
        return {}
    return problem if isinstance(problem, dict) else {}
