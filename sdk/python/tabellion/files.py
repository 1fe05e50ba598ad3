"""Files that survive a crash."""

from __future__ import annotations

import os
import uuid
from pathlib import Path


def write_durably(file: Path, content: bytes) -> None:
    """Replaces a file atomically, and flushes it and its folder."""
    fresh = file.with_name(f".{file.name}.{uuid.uuid4().hex}")
    try:
        with open(fresh, "xb") as out:
            out.write(content)
            out.flush()
            os.fsync(out.fileno())
        os.replace(fresh, file)
    except BaseException:
        fresh.unlink(missing_ok=True)
        raise
    if os.name == "posix":
        folder = os.open(file.parent, os.O_RDONLY)
        try:
            os.fsync(folder)
        finally:
            os.close(folder)
