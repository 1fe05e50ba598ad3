"""LangGraph: `ToolNode(tools, wrap_tool_call=record_tool_calls(session))`."""

from __future__ import annotations

from typing import Any, Callable

from langchain_core.messages import ToolMessage

from ..errors import Denied
from ..session import Call, Session


def record_tool_calls(session: Session) -> Callable[[Any, Callable[[Any], Any]], Any]:
    """Returns the wrapper of a `ToolNode` that records its calls. The model reads of a denied call why it was denied."""

    def wrapper(request: Any, execute: Callable[[Any], Any]) -> Any:
        try:
            call = _begin(session, request)
        except Denied as denied:
            return _refusal(request, denied)
        try:
            message = execute(request)
        except BaseException as error:
            call.fail(error)
            raise
        _finish(call, message)
        return message

    return wrapper


def record_tool_calls_async(session: Session) -> Callable[[Any, Callable[[Any], Any]], Any]:
    """Like `record_tool_calls`, for `awrap_tool_call`."""

    async def wrapper(request: Any, execute: Callable[[Any], Any]) -> Any:
        try:
            call = _begin(session, request)
        except Denied as denied:
            return _refusal(request, denied)
        try:
            message = await execute(request)
        except BaseException as error:
            call.fail(error)
            raise
        _finish(call, message)
        return message

    return wrapper


def _begin(session: Session, request: Any) -> Call:
    call = request.tool_call
    return session.begin(call["name"], call["args"], call_id=call["id"])


def _finish(call: Call, message: Any) -> None:
    failed = getattr(message, "status", "success") == "error"
    call.finish(getattr(message, "content", message), is_error=failed)


def _refusal(request: Any, denied: Denied) -> ToolMessage:
    call = request.tool_call
    return ToolMessage(f"denied: {denied.code}", tool_call_id=call["id"], name=call["name"], status="error")
