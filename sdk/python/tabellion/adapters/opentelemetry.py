"""OpenTelemetry: a span processor that records spans of tool calls (semantic conventions for generative AI).

It records what has happened: a span ends after its call, so nothing is denied. A call beyond the scope or the budget is recorded
as such.
"""

from __future__ import annotations

import json
from typing import Any, Optional

from opentelemetry.sdk.trace import ReadableSpan, SpanProcessor
from opentelemetry.trace import StatusCode

from ..errors import Denied
from ..session import Session

#: The value of `gen_ai.operation.name` of a tool call.
EXECUTE_TOOL = "execute_tool"


class RecordingSpanProcessor(SpanProcessor):
    """Records the spans of tool calls in a session; other spans are ignored."""

    def __init__(self, session: Session):
        self._session = session

    def on_end(self, span: ReadableSpan) -> None:
        """Records a tool call with its arguments and result, if the instrumentation wrote them."""
        attributes = span.attributes or {}
        if attributes.get("gen_ai.operation.name") != EXECUTE_TOOL:
            return
        arguments = _json(attributes.get("gen_ai.tool.call.arguments"))
        tool = str(attributes.get("gen_ai.tool.name", span.name))
        identifier: Optional[Any] = attributes.get("gen_ai.tool.call.id")
        try:
            call = self._session.begin(
                tool, arguments if isinstance(arguments, dict) else {"value": arguments}, call_id=identifier and str(identifier)
            )
        except Denied:
            return
        call.finish(_json(attributes.get("gen_ai.tool.call.result")), is_error=span.status.status_code == StatusCode.ERROR)


def _json(text: Any) -> Any:
    """Returns an attribute that should be JSON; other text stays text."""
    if text is None:
        return {}
    try:
        return json.loads(str(text))
    except ValueError:
        return str(text)
