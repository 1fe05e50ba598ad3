"""An agent of LangGraph whose tool calls are recorded. A stub stands for the model."""

from langchain_core.messages import AIMessage, ToolMessage
from langgraph.graph import END, START, MessagesState, StateGraph
from langgraph.prebuilt import ToolNode, tools_condition

import tabellion
from tabellion.adapters.langgraph import record_tool_calls


def add(a: int, b: int) -> int:
    """Adds two numbers."""
    return a + b


def stub_model(state: MessagesState):
    """Calls the tool once, and then answers with what the tool returned."""
    last = state["messages"][-1]
    if isinstance(last, ToolMessage):
        return {"messages": [AIMessage(last.content)]}
    call = {"name": "add", "args": {"a": 1, "b": 2}, "id": "call-1"}
    return {"messages": [AIMessage("", tool_calls=[call])]}


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
    graph = StateGraph(MessagesState)
    graph.add_node("model", stub_model)
    graph.add_node("tools", ToolNode([add], wrap_tool_call=record_tool_calls(session)))
    graph.add_edge(START, "model")
    graph.add_conditional_edges("model", tools_condition, ["tools", END])
    graph.add_edge("tools", "model")
    state = graph.compile().invoke({"messages": [("user", "how much is 1 + 2?")]})
    assert state["messages"][-1].content == "3", state
print(session.registered.entry)
