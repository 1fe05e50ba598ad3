"""OpenTelemetry: a span processor that records spans of tool calls (semantic conventions for generative AI).

It records what has happened: a span ends after its call, so nothing is denied. A call beyond the scope or the budget is recorded
after an event `call-out-of-bounds`. A span that ends after the session is not recorded, which is logged.
"""

from __future__ import annotations

import logging
from typing import Any, Mapping

from opentelemetry.sdk.trace import ReadableSpan, SpanProcessor
from opentelemetry.trace import StatusCode

from ..session import Session
from .arguments import arguments_of, json_of

#: The value of `gen_ai.operation.name` of a tool call.
EXECUTE_TOOL = "execute_tool"

_LOGGER = logging.getLogger("tabellion")


class RecordingSpanProcessor(SpanProcessor):
    """Records the spans of tool calls in a session; other spans are ignored."""

    def __init__(self, session: Session):
        self._session = session

    def on_end(self, span: ReadableSpan) -> None:
        """Records a tool call with its arguments and result, if the instrumentation wrote them."""
        if (span.attributes or {}).get("gen_ai.operation.name") != EXECUTE_TOOL:
            return
        try:
            self._record(span, span.attributes or {})
        except Exception:
            # An error would reach the program that is observed.
            _LOGGER.exception("the tool call of the span %r is not recorded", span.name)

    def _record(self, span: ReadableSpan, attributes: Mapping[str, Any]) -> None:
        tool = str(attributes.get("gen_ai.tool.name", span.name))
        arguments = arguments_of(attributes.get("gen_ai.tool.call.arguments"))
        identifier = attributes.get("gen_ai.tool.call.id")
        call = self._session.observe(tool, arguments, call_id=identifier and str(identifier))
        result = attributes.get("gen_ai.tool.call.result")
        call.finish({} if result is None else json_of(result), is_error=span.status.status_code == StatusCode.ERROR)
