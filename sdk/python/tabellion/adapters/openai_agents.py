"""OpenAI Agents SDK: `Agent(tools=record_tools(session, tools))`."""

from __future__ import annotations

import copy
import dataclasses
import functools
from typing import Any, Awaitable, Callable, List, Sequence

from ..errors import Denied
from ..session import Session
from .arguments import arguments_of


def record_tools(session: Session, tools: Sequence[Any]) -> List[Any]:
    """Returns the function tools, recorded in the session. The model reads of a denied call why it was denied."""
    return [_recorded(session, tool) for tool in tools]


def _recorded(session: Session, tool: Any) -> Any:
    invoker = tool.on_invoke_tool
    if not hasattr(invoker, "_invoke_tool_impl"):
        return dataclasses.replace(tool, on_invoke_tool=_recording(session, tool.name, invoker))
    # `function_tool` makes texts of errors: the function that it calls still raises them. No public interface of the SDK does:
    # hooks and guardrails get the text, and spans have the error only while tracing is on.
    recorded = copy.copy(invoker)
    implementation = invoker._invoke_tool_impl
    recorded._invoke_tool_impl = functools.wraps(implementation)(_recording(session, tool.name, implementation))
    return dataclasses.replace(tool, on_invoke_tool=recorded)


def _recording(session: Session, name: str, inner: Callable[[Any, str], Awaitable[Any]]) -> Callable[[Any, str], Awaitable[Any]]:
    async def invoke(context: Any, arguments: str) -> Any:
        try:
            call = session.begin(name, arguments_of(arguments), call_id=context.tool_call_id)
        except Denied as denied:
            return f"denied: {denied.code}"
        try:
            result = await inner(context, arguments)
        except BaseException as error:
            call.fail(error)
            raise
        call.finish(result)
        return result

    return invoke
