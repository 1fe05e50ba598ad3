"""The entries of a session's record, which together fit into one statement."""

from __future__ import annotations

import datetime
import json
import threading
from typing import List

from . import core

#: Bytes of a statement, at most.
STATEMENT_BYTES = 8 << 20
#: Bytes of a statement for what is not an entry: its headers and the rest of the record.
OTHER_BYTES = 64 << 10
#: Bytes that are kept free for the event that an error ended the session.
END_BYTES = 1 << 10


class Entries:
    """Entries of bounded size, which several threads may add."""

    def __init__(self) -> None:
        self.added: List[core.Json] = []
        self.ended = False
        self._free = STATEMENT_BYTES - OTHER_BYTES - END_BYTES
        self._is_full = False
        self._lock = threading.Lock()

    def add(self, kind: str, members: core.Json, *, kept: int = 0, keep: bool = False) -> int:
        """Adds an entry if it fits and the record is not made yet, and returns its bytes, else 0. `kept` bytes were kept free
        for it. With `keep`, as many bytes as it has are kept free for a later one."""
        with self._lock:
            entry = self._entry(kind, members)
            size = len(encoded(entry)) + len(", ")
            needed = 2 * size if keep else size
            if self.ended or needed > self._free + kept:
                return 0
            self._free += kept - needed
            self.added.append(entry)
            return size

    def note_full(self) -> None:
        """Adds an event `record-full`, once: the record does not have all from here on."""
        with self._lock:
            if not self.ended and not self._is_full:
                self._is_full = True
                self.added.append(self._entry("system-event", {"event-type": "record-full"}))

    def end(self) -> List[core.Json]:
        """Returns the entries. No more can be added."""
        with self._lock:
            self.ended = True
        return self.added

    def _entry(self, kind: str, members: core.Json) -> core.Json:
        return {"type": kind, "id": str(len(self.added) + 1), "timestamp": timestamp(), **members}


def encoded(value: core.Json) -> bytes:
    """Encodes JSON as it is in a record. A question mark replaces a lone surrogate, which a record cannot have."""
    return json.dumps(value, ensure_ascii=False, sort_keys=True).encode("utf-8", "replace")


def timestamp() -> str:
    """Returns the current time as a record has it."""
    return datetime.datetime.now(datetime.timezone.utc).isoformat(timespec="milliseconds").replace("+00:00", "Z")
