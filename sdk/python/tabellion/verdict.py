"""What a gateway's Verdict says. Nothing is verified here."""

from __future__ import annotations

from typing import Any, Mapping


def is_accepted(verdict: Mapping[str, Any]) -> bool:
    """Returns whether a Verdict accepts a commitment or an amendment, as it is or reduced."""
    return verdict.get("verdict") in ("served", "downgraded")


def is_not_made(verdict: Mapping[str, Any]) -> bool:
    """Returns whether a Verdict is about a call that was not made."""
    return verdict.get("verdict") in ("denied", "clarify")


def reason_of(verdict: Mapping[str, Any]) -> str:
    """Returns the code of the reason why a Verdict does not accept a message."""
    verification = verdict.get("verification")
    reason = verification.get("reason") if isinstance(verification, Mapping) else None
    return reason if isinstance(reason, str) else "denied"
