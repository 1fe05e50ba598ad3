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
from .verdict import is_not_made

#: The member of `_meta` with a VAP message or a Verdict.
VAP = "vap"


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
        """Sends the session's commitment in a `tools/list` request, and returns the Verdict. Raises `Denied`."""
        verdict = await self._carry(self._vap_session.commitment)
        _raise_if_denied(verdict, "commitment")
        self._vap_session.committed(verdict)
        self.commitment_verdict = verdict
        return verdict

    async def amend(self, reason: str, **changes: Any) -> Mapping[str, Any]:
        """Sends a Scope Amendment in a `tools/list` request, and returns the Verdict. Raises `Denied`. What is accepted counts
        for the session, too."""
        amendment = self._vap_session.amendment(reason, **changes)
        verdict = await self._carry(amendment)
        self._vap_session.amended(amendment, verdict)
        _raise_if_denied(verdict, "amendment")
        return verdict

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
        try:
            result = await self._client.call_tool(
                name, call.arguments, meta={**(meta or {}), VAP: call.intent.message}, **options
            )
            verdict = self._verdict_on_call(result, call.intent)
        except BaseException as error:
            call.fail(error)
            raise
        plain = _plain(result)
        call.finish(plain.get("content"), is_error=bool(plain.get("isError")), verdict=verdict)
        return result

    async def _carry(self, message: core.SignedMessage) -> Mapping[str, Any]:
        from mcp import types

        self._check_trust()
        # `mcp.Client` may answer from its cache: its session sends.
        session = getattr(self._client, "session", self._client)
        params = types.PaginatedRequestParams.model_validate({"_meta": {VAP: message.message}})
        verdict = self._verdict(await session.list_tools(params=params), message)
        if verdict is None:
            raise _no_verdict()
        return verdict

    def _verdict(self, result: Any, message: core.SignedMessage) -> Optional[Mapping[str, Any]]:
        """Returns the Verdict of an answer. With a key, there must be one, and it must be genuine."""
        verdict = (_plain(result).get("_meta") or {}).get(VAP)
        if self._gateway_key is None:
            return verdict
        try:
            if verdict is None:
                raise _no_verdict()
            core.verify_verdict(verdict, self._gateway_key, message.message)
        except TabellionError as error:
            self._distrust = error
            raise
        return verdict

    def _verdict_on_call(self, result: Any, intent: core.SignedMessage) -> Optional[Mapping[str, Any]]:
        """Returns the Verdict on a call. With a key, an answer to a call that was not made must not have a tool's result."""
        verdict = self._verdict(result, intent)
        if self._gateway_key is None or verdict is None or not is_not_made(verdict):
            return verdict
        plain = _plain(result)
        # A question in place of a result has no content.
        if not plain.get("isError") and ("content" in plain or "structuredContent" in plain):
            self._distrust = Denied(_reason(verdict), "the answer has a result of a call that was not made")
            raise self._distrust
        return verdict

    def _check_trust(self) -> None:
        if self._distrust is not None:
            raise Denied(self._distrust.code, f"not sent, since an earlier answer was not genuine: {self._distrust.message}")


def _no_verdict() -> Denied:
    return Denied("no_verdict", "the server answered without a Verdict: it is no VAP gateway")


def _raise_if_denied(verdict: Mapping[str, Any], what: str) -> None:
    if verdict.get("verdict") == "denied":
        raise Denied(_reason(verdict), f"the gateway denied the {what}")


def _reason(verdict: Mapping[str, Any]) -> str:
    return str(verdict.get("verification", {}).get("reason"))


def _plain(result: Any) -> Mapping[str, Any]:
    return result.model_dump(by_alias=True, mode="json", exclude_none=True)
