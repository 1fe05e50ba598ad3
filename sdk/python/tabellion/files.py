"""Files that survive a crash."""

from __future__ import annotations

import os
from pathlib import Path


def write_durably(file: Path, content: bytes) -> None:
    """Replaces a file atomically, and flushes it and its folder."""
    fresh = file.with_name(f".{file.name}.{os.getpid()}")
    with open(fresh, "wb") as out:
        out.write(content)
        out.flush()
        os.fsync(out.fileno())
    os.replace(fresh, file)
    if os.name == "posix":
        folder = os.open(file.parent, os.O_RDONLY)
        try:
            os.fsync(folder)
        finally:
            os.close(folder)
