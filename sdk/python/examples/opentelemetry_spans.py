"""An instrumented program: the spans of its tool calls are recorded."""

from opentelemetry.sdk.trace import TracerProvider

import tabellion
from tabellion.adapters.opentelemetry import RecordingSpanProcessor

log = tabellion.dev_log()
with tabellion.session(
    goal="add the invoices",
    tools=["add"],
    budget={"max_calls": 5},
    key=log.key,
    issuer=log.issuer,
    log=log.client,
    save_as="session.cose",
) as session:
    provider = TracerProvider()
    provider.add_span_processor(RecordingSpanProcessor(session))
    with provider.get_tracer("example").start_as_current_span("execute_tool add") as span:
        span.set_attribute("gen_ai.operation.name", "execute_tool")
        span.set_attribute("gen_ai.tool.name", "add")
        span.set_attribute("gen_ai.tool.call.arguments", '{"a":1,"b":2}')
        span.set_attribute("gen_ai.tool.call.result", "3")
print(session.registered.entry)
