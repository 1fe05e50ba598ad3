"""OpenAI Agents SDK: `Agent(tools=record_tools(session, tools))`."""

from __future__ import annotations

import dataclasses
import json
from typing import Any, List, Sequence

from ..errors import Denied
from ..session import Session


def record_tools(session: Session, tools: Sequence[Any]) -> List[Any]:
    """Returns the function tools, recorded in the session. The model reads of a denied call why it was denied."""
    return [_recorded(session, tool) for tool in tools]


def _recorded(session: Session, tool: Any) -> Any:
    inner = tool.on_invoke_tool

    async def invoke(context: Any, arguments: str) -> Any:
        try:
            call = session.begin(tool.name, json.loads(arguments or "{}"), call_id=context.tool_call_id)
        except Denied as denied:
            return f"denied: {denied.code}"
        try:
            result = await inner(context, arguments)
        except BaseException as error:
            call.fail(error)
            raise
        call.finish(result)
        return result

    return dataclasses.replace(tool, on_invoke_tool=invoke)
