//! How much is read, kept and compared, in one place.

/// Characters of a session id (schema).
pub const MAX_SESSION_ID: usize = 256;
/// Characters of a goal, and of an amendment's reason (schema).
pub const MAX_GOAL: usize = 2000;
/// Characters of a rationale, and of an expected effect (schema).
pub const MAX_RATIONALE: usize = 1000;
/// Characters of an agent's id, a tool's name and a meter's name. The schema names none; the records on the log do.
pub const MAX_NAME: usize = 256;
/// Characters of `principal.auth` and `principal.delegated_by`, which the schema leaves open.
pub const MAX_REFERENCE: usize = 1024;
/// Characters of a digest.
pub const MAX_DIGEST: usize = 256;
/// Characters of a code in a record: a reason or a check.
pub const MAX_CODE: usize = 64;
/// Patterns in a scope, allowed and denied together (V-8).
pub const MAX_PATTERNS: usize = 256;
/// Bytes of a pattern (V-8).
pub const MAX_PATTERN: usize = 256;
/// Meters of a session, and entries of a tool's cost that are looked at (V-13).
pub const MAX_METERS: usize = 64;
/// The largest integer that every reader of JSON agrees about: 2^53 - 1.
pub const MAX_INTEGER: u64 = (1 << 53) - 1;
/// Seconds that a signature's `iat` may be off (V-21).
pub const IAT_WINDOW: u64 = 60;
/// Bytes of each text in an `aiInvocation` that is kept (S-1).
pub const MAX_INVOCATION_TEXT: usize = 4 << 10;
/// Bytes of a `turnId` (S-1).
pub const MAX_TURN_ID: usize = 256;
/// Bytes of an `aiInvocation` that is looked at.
pub const MAX_INVOCATION: usize = 64 << 10;
