//! VAP, the Verifiable Agent Protocol: wire Verdicts, and the audit records of a gateway that enforces it.
//!
//! Two content types. `application/vap-verdict+json` is what any verifier answered on the wire (draft section 8, its
//! schema): [`VerdictRecord`]. `application/vap-audit+json` is our gateway's own record of what it decided and what came of
//! it (section 14): [`AuditRecord`]. The documents leave choices open; these are our readings, by number, as the rules
//! cite them:
//!
//! | # | reading |
//! |---|---|
//! | 4.1 | a Verdict is the schema's object: types, lengths, enumerations and patterns hold; members it does not list are kept and ignored |
//! | V-15 | times are RFC 3339 with an offset; an audit record's `at` ends in `Z` and is at most five minutes ahead of the log |
//! | V-20 | `signature` is a compact JWS over the JCS of the message without it, detached or attached with equal bytes; alg EdDSA, Ed25519 or ES256; `kid` required; `iat` is a NumericDate, whole or with a fraction; `typ`, `iat`, `jti`, `aud` and, on a Verdict, `req` may stand beside them and nothing else; the key is one the policy lists for a verifier |
//! | V-22 | strict JSON: no member twice, no lone surrogate; a signed message has no number that JCS would change |
//! | V-24, V-39 | an audit record holds no result: `committed.result` commits to the JCS of the result without `_meta` |
//! | V-25 | what a Verdict's JWS header bound to the call is repeated in `binding`: `iat`, `jti`, and `req` as a commitment |
//! | V-40 | what a caller said is never in clear: `committed` holds `hmac-sha256:` commitments and nothing else; reasons are codes |
//! | A-1 | an audit record is closed: a member its kind does not list is refused; the payload is its own JCS |
//! | A-2 | `gateway` equals `iss`, `stream` equals `sub`; a stream is a session, or `unbound:` and an instance, never `none` (X-5) |
//! | A-3 | a gateway uses a `seq` once in a stream; gaps are admitted, and shown |
//! | A-4 | a decision has at most one outcome. An outcome may arrive before its decision: refusing it would hide that a call ran. `require_decision` refuses it |
//! | A-5 | `backLink` names a decision of the same stream; what is in the log and is none refuses the outcome |
//!
//! Not here: the other VAP messages (they are answered, never registered), opening commitments, whether a stream is
//! complete (the service shows gaps and open decisions).

mod audit;
mod audit_options;
mod audit_read;
mod audit_rule;
mod members;
mod verdict;
mod verdict_options;
mod verdict_rule;

pub use audit::{AuditKind, AuditRecord, Decided, Outcome, Status, stream_key};
pub use audit_options::{AuditOptions, sequence_guard};
pub(crate) use audit_options::{check as check_audit, questions as audit_questions};
pub(crate) use audit_read::is_code;
pub use audit_rule::AuditRule;
pub use verdict::{Served, VerdictRecord};
pub(crate) use verdict_options::check as check_verdict;
pub use verdict_options::{VerdictOptions, Verifier};
pub use verdict_rule::VerdictRule;

/// A wire Verdict of any verifier.
pub const VAP_VERDICT: &str = "application/vap-verdict+json";
/// A gateway's audit record.
pub const VAP_AUDIT: &str = "application/vap-audit+json";
