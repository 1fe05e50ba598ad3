"""Errors. Each carries the code that the service, the verifier or the core gave."""

from __future__ import annotations

from typing import Any, Iterator, Mapping, Optional, Tuple


class TabellionError(Exception):
    """Base of all errors. `code` is stable; the text is for people and may quote what others wrote."""

    def __init__(self, code: str, message: str):
        super().__init__(f"{message} [{code}]")
        self.code = code
        self.message = message


class CoreError(TabellionError):
    """Input that cannot be used: a malformed statement, key or message. `offset` is the byte at fault, if known."""

    def __init__(self, code: str, message: str, offset: Optional[int] = None):
        super().__init__(code, message)
        self.offset = offset


class ServiceError(TabellionError):
    """An error answer of the service. `problem` has the members of its problem details."""

    def __init__(self, status: int, problem: Mapping[str, Any], retry_after: Optional[float] = None):
        text = problem.get("detail") or problem.get("title") or f"the service answered with status {status}"
        super().__init__(str(problem.get("code") or f"http-{status}"), str(text))
        self.status = status
        self.problem = dict(problem)
        self.retry_after = retry_after


class Refused(ServiceError):
    """The service refuses the request: a retry will not help."""


class NotFound(Refused):
    """There is no such entry."""


class TryAgain(ServiceError):
    """The service cannot answer now, and the patience is used up, or its operator must act first."""


class Unreachable(TabellionError):
    """No answer was received."""

    def __init__(self, message: str):
        super().__init__("unreachable", message)


class StillRunning(TabellionError):
    """The registration was accepted and is not finished; `location` is the URL to poll (`Client.wait`)."""

    def __init__(self, location: str):
        super().__init__("still-running", f"still being registered: {location}")
        self.location = location


class NotVerified(TabellionError):
    """Evidence that does not verify. `verdict` lists every check."""

    def __init__(self, verdict: Mapping[str, Any]):
        super().__init__(str(verdict.get("reason")), f"not verified: {_reason_in(verdict)}")
        self.verdict = dict(verdict)


class SplitView(TabellionError):
    """The log's new checkpoint does not continue the one that was verified before. `evidence` holds both."""

    def __init__(self, message: str, evidence: Mapping[str, Any]):
        super().__init__("split-view", message)
        self.evidence = dict(evidence)


class Denied(TabellionError):
    """What the session or the gateway does not allow: a call outside of scope or budget, which was not made, or a commitment or
    amendment.

    `code` is the reason, such as `scope_escape`. With `no_verdict`, the server is not a gateway, and what it did is not known.
    """


def _reason_in(verdict: Mapping[str, Any]) -> str:
    """Returns what the check says that decided a verdict; in a bundle, after the part that it is about."""
    reason = verdict.get("reason")
    for part, checked in _parts_of(verdict):
        for check in checked.get("checks", []):
            if checked.get("reason") == reason == check.get("code"):
                return f"{part}{check['detail']}"
    return str(verdict.get("outcome"))


def _parts_of(verdict: Mapping[str, Any]) -> Iterator[Tuple[str, Mapping[str, Any]]]:
    yield "", verdict
    yield "checkpoint: ", verdict.get("checkpoint") or {}
    for name, kind in (("policy", "policies"), ("entry", "entries")):
        parts = verdict.get(kind) or []
        for number, part in enumerate(parts, 1):
            yield f"{name} {number} of {len(parts)}: ", part
