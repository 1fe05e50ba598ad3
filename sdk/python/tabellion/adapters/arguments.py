"""Arguments of a call as text."""

from __future__ import annotations

import json
from typing import Any, Dict

from ..errors import CoreError
from ..session import check_recordable


def arguments_of(text: Any) -> Dict[str, Any]:
    """Reads arguments that should be a JSON object. What is none is its only member, `value`."""
    if text is None or text == "":
        return {}
    found = json_of(text)
    return found if isinstance(found, dict) else {"value": found}


def json_of(text: Any) -> Any:
    """Reads what should be JSON. Other text stays text, and so does JSON that a record cannot have, such as NaN."""
    plain = str(text).encode("utf-8", "replace").decode()
    try:
        found = json.loads(plain)
        check_recordable({"value": found})
    except (CoreError, ValueError, RecursionError):
        return plain
    return found
