"""An agent of Pydantic AI whose tool calls are recorded. Its TestModel, which calls every tool once, stands for the model."""

from pydantic_ai import Agent
from pydantic_ai.models.test import TestModel
from pydantic_ai.toolsets import FunctionToolset

import tabellion
from tabellion.adapters.pydantic_ai import RecordedToolset


def add(a: int, b: int) -> int:
    """Adds two numbers."""
    return a + b


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
    agent = Agent(TestModel(), toolsets=[RecordedToolset(FunctionToolset([add]), session)])
    result = agent.run_sync("how much is 1 + 2?")
    assert "add" in result.output, result
print(session.registered.entry)
