"""New entries as server-sent events (`GET /v1/entries/stream`), with reconnection."""

from __future__ import annotations

import time
import urllib.parse
from typing import Any, Iterator, List, Mapping, NamedTuple, Optional

from .errors import Unreachable
from .http import BROKEN_OFF, Backoff, Http, error_of, may_retry, parse_json, read

EVENT_STREAM = "text/event-stream"
#: Silence after which a connection counts as dead: three times the service's keep-alive interval.
SILENCE_SECONDS = 45.0
#: Pause before reconnecting after a stream ended.
PAUSE_SECONDS = 0.2
#: Maximum length of a line in bytes.
MAX_LINE_BYTES = 8 << 20


class EntryEvent(NamedTuple):
    """An entry as the log reports it: its leaf index, and the row of `GET /v1/entries`. It is not verified."""

    leaf: int
    entry: Mapping[str, Any]


def follow(http: Http, *, after: Optional[int], begin: bool, filters: Mapping[str, str]) -> Iterator[EntryEvent]:
    """Yields entries for ever. Temporary failures are retried within the patience; then their error is raised.

    The patience begins anew after a connection that carried anything, if only a comment as keep-alive.
    """
    last: Optional[str] = "none" if begin else None if after is None else str(after)
    query = f"?{urllib.parse.urlencode(filters)}" if filters else ""
    backoff = Backoff(http.patience)
    while True:
        has_data = False
        response = _connect(http, f"v1/entries/stream{query}", last, backoff)
        with response:
            for fields in _events(response):
                has_data = True
                last = fields.get("id", last)
                if fields.get("event") == "entry" and "data" in fields:
                    if last is None or not last.isdigit():
                        raise Unreachable("the stream has an entry without a leaf")
                    yield EntryEvent(int(last), parse_json(fields["data"], "an entry of the stream"))
        if has_data:
            backoff = Backoff(http.patience)
            time.sleep(PAUSE_SECONDS)
        elif not backoff.wait(PAUSE_SECONDS):
            raise Unreachable(f"the stream of {http.base} carries neither events nor keep-alives")


def _connect(http: Http, path: str, last: Optional[str], backoff: Backoff) -> Any:
    headers = {"Accept": EVENT_STREAM}
    if last is not None:
        headers["Last-Event-ID"] = last
    while True:
        try:
            response = http.open(path, headers, timeout=SILENCE_SECONDS)
            if response.status == 200:
                break
            with response:
                error = error_of(read(response))
        except Unreachable:
            if not backoff.wait(None):
                raise
            continue
        if not may_retry(error) or not backoff.wait(error.retry_after):
            raise error
    kind = response.headers.get("content-type", "")
    if kind.split(";")[0].strip().lower() != EVENT_STREAM:
        response.close()
        raise Unreachable(f"{http.url(path)} has the content type {kind!r}, and {EVENT_STREAM} is due")
    return response


def _events(response: Any) -> Iterator[Mapping[str, str]]:
    """Parses complete events (HTML, section 9.2) until the connection ends. Every other line, also a comment, is an empty one."""
    fields: dict = {}
    data: List[str] = []
    while True:
        try:
            line = response.readline(MAX_LINE_BYTES + 1)
        except (*BROKEN_OFF, ValueError):
            return
        if len(line) > MAX_LINE_BYTES:
            raise Unreachable(f"a line of the stream has more than {MAX_LINE_BYTES} bytes")
        if not line.endswith(b"\n"):
            return
        text = line.rstrip(b"\r\n").decode("utf-8", "replace")
        if not text:
            yield {**fields, **({"data": "\n".join(data)} if data else {})}
            fields, data = {}, []
            continue
        yield {}
        name, _, value = text.partition(":")
        value = value[1:] if value.startswith(" ") else value
        if name == "data":
            data.append(value)
        elif name in ("id", "event"):
            fields[name] = value
