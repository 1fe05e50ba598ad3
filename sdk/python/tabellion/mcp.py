"""Middleware for the official MCP Python SDK: adds the VAP members to `_meta`, and reads the gateway's Verdicts.

    async with mcp.Client(GATEWAY_URL) as client:
        vap = tabellion.mcp.VapClient(client, session)
        await vap.commit()
        result = await vap.call_tool("convert_time", {...})
"""

from __future__ import annotations

from typing import Any, Mapping, Optional

from . import core
from .errors import Denied, TabellionError
from .session import Session
from .verdict import is_accepted, is_not_made, reason_of

#: The member of `_meta`, or of the data of an error, with a VAP message or a Verdict.
VAP = "vap"
#: Members of a result that are not of the tool, or recorded by themselves.
NOT_OUTPUT = frozenset({"_meta", "isError", "resultType"})
#: The codes that JSON-RPC reserves. Clients and gateways use them for errors before any decision, which have no Verdict.
RESERVED = range(-32768, -31999)


class VapClient:
    """An MCP client (`mcp.Client` or `mcp.ClientSession`) whose calls belong to a VAP session.

    All other attributes are those of the client. `gateway_key` is the public key that signs Verdicts, in any form; with it,
    each Verdict is verified. After an answer without a genuine Verdict, no more messages are sent.
    """

    def __init__(self, client: Any, session: Session, *, gateway_key: Optional[str] = None):
        self._client = client
        self._vap_session = session
        self._gateway_key = gateway_key
        self._distrust: Optional[TabellionError] = None
        self.commitment_verdict: Optional[Mapping[str, Any]] = None

    def __getattr__(self, name: str) -> Any:
        return getattr(self._client, name)

    async def commit(self) -> Mapping[str, Any]:
        """Sends the session's commitment in a `tools/list` request, and returns the Verdict. Raises `Denied` unless it is
        accepted, also if it has to be confirmed first."""
        self.commitment_verdict = await self._declare(self._vap_session.commitment, "commitment")
        return self.commitment_verdict

    async def amend(self, reason: str, **changes: Any) -> Mapping[str, Any]:
        """Sends a Scope Amendment in a `tools/list` request, and returns the Verdict. Raises `Denied` unless it is accepted.
        What is accepted counts for the session, too."""
        return await self._declare(self._vap_session.amendment(reason, **changes), "amendment")

    async def call_tool(
        self,
        name: str,
        arguments: Optional[Mapping[str, Any]] = None,
        *,
        rationale: Optional[str] = None,
        expected_effect: Optional[str] = None,
        meta: Optional[Mapping[str, Any]] = None,
        **options: Any,
    ) -> Any:
        """Calls a tool with its signed intent, and records call, Verdict and result. A denied call is a result with
        `is_error`, as the gateway sends it: its text names the reason. Raises `Denied` for a call that is not sent."""
        self._check_trust()
        intent = {"rationale": rationale, "expected_effect": expected_effect}
        call = self._vap_session.begin(name, arguments or {}, **intent)
        verdict = None
        try:
            try:
                result = await self._client.call_tool(
                    name, call.arguments, meta={**(meta or {}), VAP: call.intent.message}, **options
                )
            except Exception as error:
                verdict = self._verdict_on_error(error, call.intent)
                raise
            verdict = self._verdict_on_call(result, call.intent)
        except BaseException as error:
            call.fail(error, verdict=verdict)
            raise
        plain = _plain(result)
        call.finish(_output(plain), is_error=bool(plain.get("isError")), verdict=verdict)
        return result

    async def _declare(self, message: core.SignedMessage, what: str) -> Mapping[str, Any]:
        """Sends the commitment or an amendment, and records the answer. Raises `Denied` unless the Verdict accepts it."""
        self._check_trust()
        try:
            verdict = await self._carry(message)
        except BaseException as error:
            self._vap_session.unanswered(message, error)
            raise
        self._vap_session.answered(message, verdict)
        _raise_unless_accepted(verdict, what)
        return verdict

    async def _carry(self, message: core.SignedMessage) -> Mapping[str, Any]:
        from mcp import types

        # `mcp.Client` may answer from its cache: its session sends.
        session = getattr(self._client, "session", self._client)
        params = types.PaginatedRequestParams.model_validate({"_meta": {VAP: message.message}})
        verdict = self._verdict(_meta(await session.list_tools(params=params)), message)
        if verdict is None:
            raise _no_verdict()
        return verdict

    def _verdict(self, members: Mapping[str, Any], message: core.SignedMessage) -> Optional[Mapping[str, Any]]:
        """Returns the Verdict among the members of an answer. With a key, there must be one, and it must be genuine."""
        verdict = members.get(VAP)
        try:
            if verdict is not None and not isinstance(verdict, Mapping):
                raise Denied("no_verdict", "the server answered with a Verdict that is not an object: it is not a VAP gateway")
            if self._gateway_key is not None:
                if verdict is None:
                    raise _no_verdict()
                core.verify_verdict(verdict, self._gateway_key, message.message)
        except TabellionError as error:
            if self._gateway_key is not None:
                self._distrust = error
            raise
        return verdict

    def _verdict_on_error(self, error: Exception, intent: core.SignedMessage) -> Optional[Mapping[str, Any]]:
        """Returns the Verdict on a call whose answer is a JSON-RPC error, or `None` if the error need not have one."""
        answer = getattr(error, "error", None)
        code, data = getattr(answer, "code", None), getattr(answer, "data", None)
        if not isinstance(code, int):
            return None
        if isinstance(data, Mapping) and VAP in data:
            return self._verdict(data, intent)
        # Data that is not an object has no place for a Verdict.
        has_place = data is None or isinstance(data, Mapping)
        return self._verdict({}, intent) if has_place and code not in RESERVED else None

    def _verdict_on_call(self, result: Any, intent: core.SignedMessage) -> Optional[Mapping[str, Any]]:
        """Returns the Verdict on a call. With a key, an answer to a call that was not made must not have a tool's result."""
        verdict = self._verdict(_meta(result), intent)
        if self._gateway_key is None or verdict is None or not is_not_made(verdict):
            return verdict
        plain = _plain(result)
        # A question in place of a result has no content.
        if not plain.get("isError") and ("content" in plain or "structuredContent" in plain):
            self._distrust = Denied(reason_of(verdict), "the answer has a result of a call that was not made")
            raise self._distrust
        return verdict

    def _check_trust(self) -> None:
        if self._distrust is not None:
            raise Denied(self._distrust.code, f"not sent, since an earlier answer was not genuine: {self._distrust.message}")


def _no_verdict() -> Denied:
    return Denied("no_verdict", "the server answered without a Verdict: it is not a VAP gateway")


def _raise_unless_accepted(verdict: Mapping[str, Any], what: str) -> None:
    if is_accepted(verdict):
        return
    if verdict.get("verdict") == "clarify":
        raise Denied(reason_of(verdict), f"the {what} is not in force: it must be confirmed first, and then sent again")
    raise Denied(reason_of(verdict), f"the gateway denied the {what}")


def _output(plain: Mapping[str, Any]) -> Any:
    """Returns what the tool gave: the content, or all members of a result that has more, such as `structuredContent`."""
    given = {name: value for name, value in plain.items() if name not in NOT_OUTPUT}
    return given if set(given) - {"content"} else given.get("content")


def _meta(result: Any) -> Mapping[str, Any]:
    return _plain(result).get("_meta") or {}


def _plain(result: Any) -> Mapping[str, Any]:
    return result.model_dump(by_alias=True, mode="json", exclude_none=True)
