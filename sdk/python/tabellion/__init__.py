"""Signed statements about what AI agents do, on a transparency log: register, verify offline, record sessions.

`core` has the offline functions, `Client` is the client of a log, `session` and `tool` record what an agent does, `mcp` connects
a session with a gateway, and `adapters` connect it with agent frameworks.
"""

from .client import Client, Registered
from .core import (
    SignedMessage,
    SignedStatement,
    SigningKey,
    attach,
    check_content,
    check_policy,
    generate_key,
    load_key,
    read_statement,
    read_terms,
    sign_message,
    sign_statement,
    strip,
    try_policy,
    verify,
    verify_chain,
    verify_consistency,
    verify_proof,
    verify_search,
    verify_verdict,
)
from .dev import DevLog, dev_log
from .errors import (
    CoreError,
    Denied,
    NotFound,
    NotVerified,
    Refused,
    ServiceError,
    SplitView,
    StillRunning,
    TabellionError,
    TryAgain,
    Unreachable,
)
from .monitor import Observation
from .session import Call, Session, current, session, tool
from .stream import EntryEvent

__all__ = [
    "Call",
    "Client",
    "CoreError",
    "Denied",
    "DevLog",
    "EntryEvent",
    "NotFound",
    "NotVerified",
    "Observation",
    "Refused",
    "Registered",
    "ServiceError",
    "Session",
    "SignedMessage",
    "SignedStatement",
    "SigningKey",
    "SplitView",
    "StillRunning",
    "TabellionError",
    "TryAgain",
    "Unreachable",
    "attach",
    "check_content",
    "check_policy",
    "current",
    "dev_log",
    "generate_key",
    "load_key",
    "read_statement",
    "read_terms",
    "session",
    "sign_message",
    "sign_statement",
    "strip",
    "tool",
    "try_policy",
    "verify",
    "verify_chain",
    "verify_consistency",
    "verify_proof",
    "verify_search",
    "verify_verdict",
]
