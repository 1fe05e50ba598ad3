"""An agent of the OpenAI Agents SDK whose tool calls are recorded. A stub stands for the model."""

import asyncio

from agents import Agent, Model, ModelResponse, Runner, Usage, function_tool, set_tracing_disabled
from openai.types.responses import ResponseFunctionToolCall, ResponseOutputMessage, ResponseOutputText

import tabellion
from tabellion.adapters.openai_agents import record_tools


@function_tool
def add(a: int, b: int) -> int:
    """Adds two numbers."""
    return a + b


class StubModel(Model):
    """Calls the tool once, and then answers with what the tool returned."""

    async def get_response(self, system_instructions, input, *_, **__):
        outputs = [item["output"] for item in input if isinstance(item, dict) and item.get("type") == "function_call_output"]
        if outputs:
            text = ResponseOutputText(type="output_text", text=str(outputs[0]), annotations=[])
            item = ResponseOutputMessage(id="m", type="message", role="assistant", status="completed", content=[text])
        else:
            item = ResponseFunctionToolCall(type="function_call", call_id="call-1", name="add", arguments='{"a":1,"b":2}')
        return ModelResponse(output=[item], usage=Usage(), response_id=None)

    def stream_response(self, *_, **__):
        raise NotImplementedError


set_tracing_disabled(True)  # no request to another service
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
    agent = Agent(name="accountant", model=StubModel(), tools=record_tools(session, [add]))
    result = asyncio.run(Runner.run(agent, "how much is 1 + 2?"))
    assert result.final_output == "3", result
print(session.registered.entry)
