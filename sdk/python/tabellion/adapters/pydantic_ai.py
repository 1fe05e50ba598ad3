"""Pydantic AI: `Agent(toolsets=[RecordedToolset(toolset, session)])`."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Dict

import pydantic_ai
from pydantic_ai import ApprovalRequired, CallDeferred, ModelRetry
from pydantic_ai.toolsets import WrapperToolset

from ..errors import Denied
from ..session import Session

#: The recorded result of a call whose own one comes later.
DEFERRED = "deferred"
#: The error for a denied call. Older versions have only `ModelRetry`, which ends the run if a tool is denied again.
_DENIED = getattr(pydantic_ai, "ToolFailed", ModelRetry)


@dataclass
class RecordedToolset(WrapperToolset):
    """A toolset whose calls are recorded in a session. The model reads of a denied call why it was denied."""

    session: Session

    async def call_tool(self, name: str, tool_args: Dict[str, Any], ctx: Any, tool: Any) -> Any:
        """Calls the tool, if the session allows it."""
        try:
            call = self.session.begin(name, tool_args, call_id=ctx.tool_call_id)
        except Denied as denied:
            raise _DENIED(f"denied: {denied.code}") from None
        try:
            result = await super().call_tool(name, tool_args, ctx, tool)
        except ApprovalRequired as unapproved:
            call.withdraw(unapproved)
            raise
        except CallDeferred:
            # The call goes on elsewhere. No tool is called for its result, which the next run is given.
            call.finish(DEFERRED)
            raise
        except BaseException as error:
            call.fail(error)
            raise
        call.finish(result)
        return result
