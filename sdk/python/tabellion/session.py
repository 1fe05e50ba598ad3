"""A session of an agent: its commitment, its calls with their signed intents, and the record that is registered at the end.

A session speaks VAP (Verifiable Agent Protocol, 0.1). Its messages go through a gateway (`tabellion.mcp`), or stay in the
record, if the agent calls its tools itself (`tabellion.tool`). The record is a conversation record
(draft-birkholz-verifiable-agent-conversations-00), signed with the session's key.
"""

from __future__ import annotations

import contextvars
import functools
import inspect
import json
import threading
import time
import uuid
import warnings
from pathlib import Path
from typing import (
    Any,
    AsyncGenerator,
    AsyncIterator,
    Awaitable,
    Callable,
    Dict,
    Generator,
    Iterator,
    List,
    Mapping,
    Optional,
    Sequence,
    Union,
)

from . import core
from .client import Client, Registered
from .entries import END_BYTES, Entries, encoded, timestamp
from .errors import CoreError, Denied, TabellionError
from .files import write_durably
from .verdict import is_accepted, is_not_made, reason_of

#: The content type of the record.
CONTENT_TYPE = "application/agent-conversation"
#: The text of an intent whose caller gives none.
DEFAULT_RATIONALE = "a step towards the goal of the session"
DEFAULT_EFFECT = "the result of the tool"
#: Levels of arrays and objects in JSON that the core reads.
CORE_DEPTH = 127
#: Levels in a value that is in a record in clear. A log admits 64 in a record, which has at most 7 around a value.
VALUE_DEPTH = 57

#: Errors of arguments that are not JSON, or that the core refuses.
UNUSABLE = (CoreError, TypeError, ValueError, RecursionError)

_current: "contextvars.ContextVar[Optional[Session]]" = contextvars.ContextVar("tabellion_session", default=None)


class Call:
    """A call of a tool that was admitted and is recorded. It ends by `finish`, `fail` or `withdraw`."""

    def __init__(
        self, session: "Session", tool: str, arguments: Mapping[str, Any], intent: core.SignedMessage, call_id: str, counts: bool
    ):
        self.tool = tool
        self.arguments = arguments
        self.intent = intent
        self.call_id = call_id
        self._session = session
        self._counts = counts
        #: Bytes of the record that are kept free for the result.
        self._kept = 0

    def finish(self, result: Any, *, is_error: bool = False, verdict: Optional[Mapping[str, Any]] = None) -> None:
        """Records the result, and the gateway's Verdict, if there was one."""
        self._session._end(self, result, is_error, verdict)

    def fail(self, error: BaseException, *, verdict: Optional[Mapping[str, Any]] = None) -> None:
        """Records that the tool raised an error, and the gateway's Verdict, if there was one. The error's text is not
        recorded."""
        self._session._end(self, {"error": type(error).__name__}, True, verdict)

    def withdraw(self, error: BaseException) -> None:
        """Records that the call was not made after all, for example as somebody must approve it first: it does not count."""
        self._session._give_back(self)
        self.fail(error)


class Session:
    """A session, to be used as a context manager: `with tabellion.session(...) as session`.

    Attributes: `id`, `commitment` (the signed Scope Commitment), `record` (the signed statement, at the end), and `registered`
    (its receipt, if the session has a log).
    """

    def __init__(
        self,
        goal: str,
        tools: Sequence[str],
        budget: Mapping[str, Any],
        *,
        key: core.SigningKey,
        deny: Sequence[str] = (),
        agent: Optional[str] = None,
        issuer: Optional[str] = None,
        kid: Optional[str] = None,
        session_id: Optional[str] = None,
        log: Optional[Client] = None,
        save_as: Union[str, Path, None] = None,
        disclose: bool = False,
        model: str = "unknown",
        provider: str = "unknown",
    ):
        self.id = session_id or str(uuid.uuid4())
        self.goal = goal
        self.agent = agent or key.did
        self.registered: Optional[Registered] = None
        self.record: Optional[core.SignedStatement] = None
        self._key, self._issuer, self._kid, self._log = key, issuer, kid, log
        self._save_as = Path(save_as or f"{self.id}.cose")
        self._disclose = disclose
        self._model = {"model-id": model, "model-provider": provider, "cli-name": "tabellion-sdk"}
        self._allow, self._deny, self._max_calls = _patterns(tools), _patterns(deny), budget.get("max_calls")
        self._calls = 0
        self._entries = Entries()
        self._is_saved = False
        self._lock = threading.Lock()
        #: Held while the session is closed: another thread that closes it waits for the result.
        self._closing = threading.Lock()
        self._start = timestamp()
        scope: core.Json = {"tools_allow": self._allow, **({"tools_deny": self._deny} if deny else {})}
        self.commitment = self.sign(
            {
                "type": "scope_commitment",
                "goal": goal,
                "scope": scope,
                "budget": dict(budget),
                "principal": {"agent_id": self.agent},
            }
        )
        #: The digest of the commitment in force, `None` if it is not known.
        self._in_force: Optional[str] = self.commitment.digest
        self._add("system-event", {"event-type": "vap-commitment", "data": {"commitment": self.commitment.message}})

    def sign(self, message: Mapping[str, Any]) -> core.SignedMessage:
        """Signs a VAP message of this session; `vap` and `session_id` are added."""
        whole = {"vap": "0.1", "session_id": self.id, **message}
        return core.sign_message(whole, self._key, issued_at=int(time.time()), jti=str(uuid.uuid4()))

    def intent(
        self, tool: str, arguments: Mapping[str, Any], rationale: Optional[str] = None, expected_effect: Optional[str] = None, **more: Any
    ) -> core.SignedMessage:
        """Signs an Intent Envelope. `more` are other members of `intent`, such as `sensitivity`."""
        why = {"rationale": rationale or DEFAULT_RATIONALE, "expected_effect": expected_effect or DEFAULT_EFFECT, **more}
        return self.sign({"type": "intent_call", "intent": why, "call": {"tool": tool, "arguments": dict(arguments)}})

    def amendment(self, reason: str, **changes: Any) -> core.SignedMessage:
        """Signs a Scope Amendment of the commitment in force. `changes` are its members `add_scope` and `increase_budget`; a
        gateway decides on it. Raises `Denied` if the commitment in force is not known."""
        if self._in_force is None:
            why = "not sent: the commitment in force is not known, perhaps as the answer to an earlier amendment was lost"
            raise Denied("chain_broken", f"{why}; begin a new session")
        return self.sign({"type": "scope_amendment", "prev_commitment_digest": self._in_force, "reason": reason, **changes})

    def answered(self, message: core.SignedMessage, verdict: Mapping[str, Any]) -> None:
        """Records the commitment or an amendment, which was sent, with the gateway's Verdict. The next amendment changes the
        commitment that was accepted, which may be a reduced one. An accepted amendment also widens the bounds that the
        session checks itself; where the gateway granted less, it denies the calls."""
        self._add_declaration(message, {"vap-verdict": dict(verdict)})
        if is_accepted(verdict):
            self._in_force = verdict.get("accepted_commitment_digest") or self._in_force
            self._widen(_changes(message))
        elif reason_of(verdict) == "chain_broken":
            self._in_force = None

    def unanswered(self, message: core.SignedMessage, error: BaseException) -> None:
        """Records that the commitment or an amendment was sent and has no genuine answer. Whether it is in force is not
        known. The error's text is not recorded."""
        self._add_declaration(message, {"error": error.code if isinstance(error, TabellionError) else type(error).__name__})

    def begin(self, tool: str, arguments: Mapping[str, Any], *, call_id: Optional[str] = None, **intent: Any) -> Call:
        """Admits a call, and records it with its signed intent. Raises `Denied` outside of the scope or the budget, for
        arguments that an intent cannot have (`malformed`), if the record is full, and after the end of the session."""
        reason = self._count(tool)
        if reason is not None:
            raise self._denied(reason, tool, f"the session does not allow this call of {_text(tool)}")
        try:
            return self._begin(tool, _plain(arguments), call_id, intent, counts=True)
        except BaseException as error:
            self._uncount()
            if not isinstance(error, UNUSABLE) or self._takes(tool, arguments):
                raise
            raise self._denied("malformed", tool, f"an intent cannot have these arguments of {_text(tool)}: {error}") from error

    def observe(self, tool: str, arguments: Mapping[str, Any], *, call_id: Optional[str] = None, **intent: Any) -> Call:
        """Records a call that was made without asking the session. Outside of the scope or the budget, an event
        `call-out-of-bounds` before it has the reason. Raises `Denied` if the record is full, and after the end of the session."""
        plain = _plain(arguments)
        reason = self._count(tool)
        if reason is not None:
            self._add_bound("call-out-of-bounds", reason, tool)
        return self._begin(tool, plain, call_id, intent, counts=reason is None)

    def message(self, role: str, content: str) -> None:
        """Records a message of the conversation; `role` is `user` or `assistant`."""
        self._add(role, {"content": self._content(content)}, self._in_clear("content"))

    def run(self, tool: str, function: Callable[..., Any], arguments: Mapping[str, Any], **intent: Any) -> Any:
        """Calls a function as a recorded tool. If it returns an awaitable or a generator, so does this: the result, or the list
        of items, is recorded at the end of that."""
        call = self.begin(tool, arguments, **intent)
        try:
            result = function(**arguments)
        except BaseException as error:
            call.fail(error)
            raise
        return _finished(call, result)

    async def run_async(self, tool: str, function: Callable[..., Any], arguments: Mapping[str, Any], **intent: Any) -> Any:
        """Like `run`, for a coroutine function."""
        return await self.run(tool, function, arguments, **intent)

    def close(self) -> Optional[Registered]:
        """Signs the record, saves it, and registers it if the session has a log. Then no call is possible. If the log does
        not answer, call it again later, or register the saved file. If the record cannot be signed, it is saved as JSON, in the file
        `save_as` with `.json` after its name."""
        with self._closing:
            if self.record is None:
                self.record = self._signed_record()
            if not self._is_saved:
                write_durably(self._save_as, self.record.bytes)
                self._is_saved = True
            if self._log is not None and self.registered is None:
                self.registered = self._log.register(self.record, self._save_as)
            return self.registered

    def __enter__(self) -> "Session":
        self._token = _current.set(self)
        return self

    def __exit__(self, kind: Any, error: Any, _trace: Any) -> None:
        _current.reset(self._token)
        if kind is None:
            self.close()
            return
        self._add("system-event", {"event-type": "session-failed", "data": {"error": kind.__name__}}, kept=END_BYTES)
        try:
            self.close()
        except Exception as unregistered:
            # The caller handles the error that ended the session.
            warnings.warn(f"the record of the session is not registered: {unregistered}", RuntimeWarning, stacklevel=2)

    def _signed_record(self) -> core.SignedStatement:
        """Ends the record, and signs it."""
        payload = encoded(self._document())
        try:
            return core.sign_statement(
                self._key, payload, content_type=CONTENT_TYPE, subject=self.id, issuer=self._issuer, kid=self._kid
            )
        except Exception:
            write_durably(self._save_as.with_name(f"{self._save_as.name}.json"), payload)
            raise

    def _begin(self, tool: str, plain: core.Json, call_id: Optional[str], intent: Mapping[str, Any], *, counts: bool) -> Call:
        """Signs the intent of a call, and records both. `counts` says whether the call was counted."""
        signed = self.intent(tool, plain, **intent)
        call = Call(self, tool, plain, signed, call_id or str(uuid.uuid4()), counts)
        entry = {"call-id": call.call_id, "name": tool, "input": self._content(plain), "vap-intent": self._evidence(signed)}
        call._kept = self._entries.add("tool-call", entry, keep=True)
        if not call._kept:
            raise self._not_recorded(tool)
        return call

    def _not_recorded(self, tool: str) -> Denied:
        """Returns the error of a call that is not made, as the record cannot have it."""
        if self._entries.ended:
            return Denied("session_ended", f"the session has ended: this call of {tool} would not be in its record")
        self._entries.note_full()
        return Denied("record_full", f"the record of the session has no room for this call of {tool}: end it, and begin another one")

    def _takes(self, tool: str, arguments: Mapping[str, Any]) -> bool:
        """Returns whether an intent and the record can have these arguments, with any reasons for the call."""
        try:
            plain = _plain(arguments)
            self.intent(tool, plain)
            self._content(plain)
        except UNUSABLE:
            return False
        return True

    def _denied(self, reason: str, tool: str, why: str) -> Denied:
        """Records that a call is not made, and returns the error."""
        self._add_bound("call-denied", reason, tool)
        return Denied(reason, why)

    def _add_bound(self, event: str, reason: str, tool: str) -> None:
        self._add("system-event", {"event-type": event, "data": {"tool": tool, "reason": reason}})

    def _count(self, tool: str) -> Optional[str]:
        """Counts a call, unless there is a reason against it, which is returned."""
        with self._lock:
            reason = self._reason_against(tool)
            if reason is None:
                self._calls += 1
        return reason

    def _reason_against(self, tool: str) -> Optional[str]:
        """Returns the code against a call, as a gateway would."""
        try:
            if not core.allows(tool, self._allow, self._deny):
                return "scope_escape"
        except CoreError:
            return "malformed"
        if self._max_calls is not None and self._calls >= self._max_calls:
            return "budget_exceeded"
        return None

    def _widen(self, changes: Mapping[str, Any]) -> None:
        scope, budget = changes.get("add_scope", {}), changes.get("increase_budget", {})
        with self._lock:
            self._allow += scope.get("tools_allow", [])
            self._deny += scope.get("tools_deny", [])
            if self._max_calls is not None:
                self._max_calls += budget.get("add_calls", 0)

    def _uncount(self) -> None:
        with self._lock:
            self._calls -= 1

    def _give_back(self, call: Call) -> None:
        """Lets a call that was not made count no more."""
        if call._counts:
            call._counts = False
            self._uncount()

    def _end(self, call: Call, result: Any, is_error: bool, verdict: Optional[Mapping[str, Any]]) -> None:
        # As at the gateway, only admitted calls count.
        if verdict is not None and is_not_made(verdict):
            self._give_back(call)
        entry: core.Json = {"call-id": call.call_id, "output": self._result(result), "is-error": is_error}
        if verdict is not None:
            entry["vap-verdict"] = dict(verdict)
        kept, call._kept = call._kept, 0
        self._add("tool-result", entry, [*self._in_clear("output"), "vap-verdict"], kept)

    def _result(self, result: Any) -> Any:
        """Returns a result for the record. The tool has run, so what cannot be JSON is recorded as text, or as its type."""
        for form in (_plain, _text):
            try:
                return self._content(form(result))
            except Exception:
                continue
        return self._content(type(result).__name__)

    def _content(self, value: Any) -> Any:
        """Returns a value for the record: in clear, or its digest. Raises if a record cannot have it."""
        if not self._disclose:
            return {"digest": core.digest_json(value)}
        check_recordable(value)
        return value

    def _evidence(self, message: core.SignedMessage) -> core.Json:
        """Returns a message for the record: its texts are private, so without disclosure only its digest and signature."""
        if self._disclose:
            return message.message
        return {"digest": message.digest, "signature": message.message["signature"]}

    def _add_declaration(self, message: core.SignedMessage, answer: core.Json) -> None:
        """Records the commitment or an amendment, which was sent, with what came of it."""
        data = {"type": message.message["type"], **_changes(message), "message": self._evidence(message), **answer}
        self._add("system-event", {"event-type": "vap-declaration", "data": data})

    def _in_clear(self, name: str) -> List[str]:
        """Returns the name of a member, if the record has it in clear."""
        return [name] if self._disclose else []

    def _add(self, kind: str, members: core.Json, large: Sequence[str] = (), kept: int = 0) -> None:
        """Adds an entry to the record, unless that is made already. Where it does not fit, digests replace the members `large`,
        one after the other. `kept` bytes were kept free for it."""
        for name in (None, *large):
            if name in members:
                members = {**members, name: {"digest": core.digest_json(members[name])}}
            if self._entries.add(kind, members, kept=kept):
                return
        self._entries.note_full()

    def _document(self) -> core.Json:
        """Ends the record, and returns it."""
        entries = self._entries.end()
        return {
            "version": "3.0.0-draft",
            "id": str(uuid.uuid4()),
            "created": timestamp(),
            "session": {
                "session-id": self.id,
                "session-start": self._start,
                "session-end": timestamp(),
                "agent-meta": self._model,
                "entries": entries,
            },
            "recording-agent": {"name": "tabellion-sdk"},
        }


def session(goal: str, tools: Sequence[str], budget: Mapping[str, Any], *, key: core.SigningKey, **more: Any) -> Session:
    """Begins a session, to be used with `with`.

    `tools` and `deny` are patterns of tool names; `budget` bounds the session: `{"max_calls": 20}`, and for a gateway also
    `deadline` and `limits`. `key` signs its messages and its record. Other arguments:

    * `log`: the `Client` that registers the record; without it the record is only signed and saved.
    * `save_as`: the file of the record (default `SESSION.cose`).
    * `issuer`, `kid`: how the log's policy names the key, if not by its `did:key`.
    * `agent`: the agent's id, by default the `did:key`.
    * `disclose`: records arguments, results and messages in clear, where everybody who reads the log can read them. By
      default the record has their SHA-256 digests (short texts can be guessed).
    * `model`, `provider`: names for the record.
    """
    return Session(goal, tools, budget, key=key, **more)


def current() -> Session:
    """Returns the session of the surrounding `with`. Raises `Denied` if there is none."""
    found = _current.get()
    if found is None:
        raise Denied("no_session", "a recorded tool was called outside of a session")
    return found


def tool(function: Optional[Callable[..., Any]] = None, *, name: Optional[str] = None, **intent: Any) -> Any:
    """Makes a function a recorded tool: each call needs a session, is checked, signed and recorded.

    Works on functions, coroutine functions and generator functions, as `@tool` and as `@tool(name=…, rationale=…, expected_effect=…,
    sensitivity=…)`. The signature stays the same, so frameworks derive the same schema from it.
    """
    if function is None:
        return functools.partial(tool, name=name, **intent)
    known = name or function.__name__
    signature = inspect.signature(function)

    def bound(arguments: tuple, named: Dict[str, Any]) -> "tuple[Dict[str, Any], inspect.BoundArguments]":
        found = signature.bind(*arguments, **named)
        return dict(found.arguments), found

    if inspect.iscoroutinefunction(function):

        @functools.wraps(function)
        async def recorded_async(*arguments: Any, **named: Any) -> Any:
            values, found = bound(arguments, named)
            return await current().run_async(known, lambda **_: function(*found.args, **found.kwargs), values, **intent)

        return recorded_async

    @functools.wraps(function)
    def recorded(*arguments: Any, **named: Any) -> Any:
        values, found = bound(arguments, named)
        return current().run(known, lambda **_: function(*found.args, **found.kwargs), values, **intent)

    return recorded


def _patterns(names: Sequence[str]) -> List[str]:
    """Returns patterns as a list. A text is a sequence too, of patterns of one letter."""
    if isinstance(names, str):
        raise TypeError(f"a list of patterns is needed, not a text: [{names!r}]")
    return list(names)


def _changes(message: core.SignedMessage) -> core.Json:
    """Returns what an amendment adds."""
    return {name: message.message[name] for name in ("add_scope", "increase_budget") if name in message.message}


def _finished(call: Call, result: Any) -> Any:
    """Records the result of a call, and returns it; one that is still to come is recorded when it is there."""
    if inspect.isawaitable(result):
        return _awaited(call, result)
    if inspect.isgenerator(result):
        return _generated(call, result)
    if inspect.isasyncgen(result):
        return _generated_async(call, result)
    call.finish(result)
    return result


async def _awaited(call: Call, result: Awaitable[Any]) -> Any:
    """Awaits the result of a call, and records it."""
    try:
        found = await result
    except BaseException as error:
        call.fail(error)
        raise
    return _finished(call, found)


def _generated(call: Call, items: Generator[Any, None, Any]) -> Iterator[Any]:
    """Passes the items of a call on, and records their list. A caller that reads no further makes it a failed call."""
    passed = []
    try:
        for item in items:
            passed.append(item)
            yield item
    except BaseException as error:
        call.fail(error)
        items.close()
        raise
    call.finish(passed)


async def _generated_async(call: Call, items: AsyncGenerator[Any, None]) -> AsyncIterator[Any]:
    """Like `_generated`."""
    passed = []
    try:
        async for item in items:
            passed.append(item)
            yield item
    except BaseException as error:
        call.fail(error)
        await items.aclose()
        raise
    call.finish(passed)


def check_recordable(value: Any) -> None:
    """Raises if a record cannot have a value, which is not JSON or nested too deeply."""
    for _ in range(CORE_DEPTH - VALUE_DEPTH):
        value = [value]
    core.digest_json(value)


def _plain(value: Any) -> Any:
    """Returns a value as JSON; objects that JSON does not have become text."""
    return json.loads(json.dumps(value, default=str, ensure_ascii=False))


def _text(value: Any) -> str:
    """Returns a value as text that JSON can have."""
    return str(value).encode("utf-8", "replace").decode()
