//! Limits on messages, Verdicts and audit records, in one place.

pub use jose::code::MAX_CODE;

/// Maximum characters of a `session_id` (VAP schema).
pub const MAX_SESSION_ID: usize = 256;
/// Maximum characters of a `goal`, and of an amendment's `reason` (VAP schema).
pub const MAX_GOAL: usize = 2000;
/// Maximum characters of a Verdict's `reason` (VAP schema).
pub const MAX_REASON: usize = 2000;
/// Maximum characters of a `rationale`, and of an `expected_effect` (VAP schema).
pub const MAX_RATIONALE: usize = 1000;
/// Maximum characters of an agent id, a tool name and a meter name. The VAP schema sets no limit; the records on the
/// log do.
pub const MAX_NAME: usize = 256;
/// Maximum characters of `principal.auth` and `principal.delegated_by`. The VAP schema sets no limit.
pub const MAX_REFERENCE: usize = 1024;
/// Maximum characters of a [`Digest`](crate::digest::Digest).
pub const MAX_DIGEST: usize = 256;
/// Maximum patterns in a scope, `tools_allow` and `tools_deny` together (V-8).
pub const MAX_PATTERNS: usize = 256;
/// Maximum bytes of a [`Pattern`](crate::glob::Pattern) (V-8).
pub const MAX_PATTERN: usize = 256;
/// Maximum meters of a session, and of entries that are read in a tool's cost (V-13).
pub const MAX_METERS: usize = 64;
/// The largest integer that every JSON parser reads exactly: 2^53 - 1.
pub const MAX_INTEGER: u64 = (1 << 53) - 1;
/// Maximum tools named in one record about tools; for more, the record has only their number.
pub const RECORDED_TOOLS: usize = 64;
/// Maximum nesting depth of arrays and objects in a record or a Verdict.
pub const JSON_DEPTH: usize = 64;
