//! The Verifiable Agent Protocol (VAP): wire Verdicts, and the audit records of a gateway that enforces it.
//!
//! There are two content types. `application/vap-verdict+json` is a verifier's answer on the wire (draft section 8, and
//! its schema): [`ReceivedVerdict`](vap::verdict::ReceivedVerdict). `application/vap-audit+json` is our gateway's own record of its decisions and their
//! outcomes (section 14): [`AuditRecord`](vap::audit::AuditRecord). The documents leave choices open. This is our interpretation; the rules cite
//! its rows:
//!
//! | # | reading |
//! |---|---|
//! | 4.1 | a Verdict is the schema's object: types, lengths, enumerations and patterns hold; members that it does not list are kept and ignored; a digest has at most 256 characters and a time at most 64, which the schema leaves open |
//! | V-15 | times are RFC 3339 with an offset; an audit record's `at` ends in `Z` and is at most five minutes ahead of the log |
//! | V-20 | `signature` is a compact JWS over the JCS of the message without it, detached or attached with equal bytes; alg EdDSA, Ed25519 or ES256; `kid` is required; `iat` is a NumericDate, whole or with a fraction; the only other header members are `typ`, `iat`, `jti`, `aud` and, on a Verdict, `req`; the key is one that the policy lists for a verifier |
//! | V-22 | strict JSON: no duplicate members, no lone surrogates; a signed message has no number that JCS would change |
//! | V-24, V-39 | an audit record contains no result: `committed.result` commits to the JCS of the result without `_meta` |
//! | V-25 | the members of a Verdict's JWS header that bind it to the call are repeated in `binding`: `iat`, `jti`, and `req` as a commitment |
//! | V-40 | texts of a caller are never in clear: `committed` contains only `hmac-sha256:` commitments; reasons are codes |
//! | A-1 | an audit record is closed: members that its kind does not list are refused; the payload is canonical (JCS) |
//! | A-2 | `gateway` equals `iss`, `stream` equals `sub`; a stream is a session, or `unbound:` and an instance, never `none` (X-5) |
//! | A-3 | a gateway uses a `seq` once in a stream; gaps are admitted, and the service shows them |
//! | A-4 | a decision has at most one outcome. An outcome may arrive before its decision: refusing it would hide that a call ran. `require_decision` refuses it |
//! | A-5 | `backLink` names a decision of the same stream; if the log contains another entry there, the outcome is refused |
//!
//! Not here: the other VAP messages (they are answered, never registered), the opening of commitments, and the
//! completeness of a stream (the service shows gaps and open decisions). The objects themselves are in the crate `vap`.

mod audit;
mod audit_options;
mod profile;
mod verdict_options;

pub use audit::{AuditStatement, stream_key, stream_key_prefix};
pub use audit_options::{AuditOptions, sequence_guard};
pub use verdict_options::{VerdictOptions, Verifier};

/// The content type of a wire Verdict.
pub const VAP_VERDICT: &str = "application/vap-verdict+json";
