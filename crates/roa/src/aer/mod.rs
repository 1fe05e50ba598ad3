//! Agent Execution Receipts (AER): a gateway's signed statement that it permitted or denied a tool call (section 6).
//!
//! A receipt is canonical JSON with the gateway's own Ed25519 signatures. [`SignedReceipt`] reads it and
//! [`ExecutionReceipt::sign`] writes it. The draft has no schema, and its example contradicts its text. This is our
//! interpretation; [`AerRule`] cites its rows:
//!
//! | # | reading |
//! |---|---|
//! | R-1 | at least one signature, and all verify with keys that the policy lists for the gateway; `iss` is the gateway |
//! | R-8 | a strict schema of our own, closed at every level; optional: `denial_detail`, `degraded_reason`, `revocation`; for a call without a usable root all placeholders together |
//! | R-13 | server names contain no dot; a capability is split at its first dot; the tool name of a denied call is not restricted |
//! | R-17 | `denial_reason` exactly from the list; hop and dimension separately, in `denial_detail` |
//! | R-19 | times are RFC 3339 in UTC, `Z` or `+00:00`, at most five minutes ahead of the log |
//! | R-22, R-23 | digests are `sha256:` and 64 hex digits; signatures are 64 bytes in base64url without prefix; Appendix B is not a test vector |
//! | R-24 | identifiers have 16 hex digits; an `aer_id` is used once per gateway, in clear or by its hash |
//! | R-25 | agents are `aha:org/unit/agent` |
//! | R-28 | `enforcement_mode` is required; absent values are left out, not null |
//! | R-29 | degraded decisions should give a reason: without one there is a warning, or a refusal if the policy requires it; degraded permits are admitted only if the policy allows them |
//! | R-32 | the payload is canonical (JCS) and never changes after it is signed; a log's receipts are not in `signatures` |
//! | R-34 | `input_hash` is a plain SHA-256: for a public log the receipt can be registered by its hash and disclosed on audit |
//! | R-35 | the session is the root's, the agent is the caller; `sub` is the receipt or the session |
//! | R-36 | `alg` is "EdDSA" as written, Ed25519 keys only, strictly verified |
//! | R-37 | `plan_hash` is asserted by the gateway, and the fact `plan_hash_asserted` |
//!
//! a log proves that a receipt was registered, not that it is true. Not here: the statement around a receipt, and
//! the rules that involve a log and its policy (`registration`).

mod members;
mod no_root;
mod read;
mod receipt;
mod rule;
mod signed;
mod wire;

pub use receipt::{
    CalledTool, ChainSummary, DecidedCall, DenialDetail, ExecutionReceipt, GatewayIdentity, Mode, Outcome,
    PolicyBinding, ReceiptSubject, RecordedDenial, Session, input_hash,
};
pub use rule::AerRule;
pub use signed::{SignReceiptError, SignedReceipt, inner_signature};

/// The content type of an execution receipt.
pub const AER_JSON: &str = "application/aer+json";
