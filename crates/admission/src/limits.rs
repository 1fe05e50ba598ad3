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
/// Bytes of what a tool says of itself that are kept beside its digest.
pub const MAX_TOOL: usize = 64 << 10;
/// Tools that one record about tools names; of more it says how many there are.
pub const RECORDED_TOOLS: usize = 64;
/// Bytes of an `aiInvocation` that is looked at.
pub const MAX_INVOCATION: usize = 64 << 10;

// --- the state of a session --------------------------------------------------------------------------------------

/// Calls of one session that are under way, or asked about, at a time; more wait.
pub const MAX_IN_FLIGHT: usize = 256;
/// Calls that are remembered, for the sake of the risk score.
pub const RECENT_CALLS: usize = 32;
/// Tools of a session that are remembered as called before.
pub const REMEMBERED_TOOLS: usize = 128;
/// Tools of a session whose cost is told apart.
pub const PRICED_TOOLS: usize = 64;
/// Verdicts of the judge that are kept for a session.
pub const CACHED_VERDICTS: usize = 32;
/// Live sessions of a principal that are known by name; more are counted.
pub const REMEMBERED_SESSIONS: usize = 32;
/// Meters that a commitment may limit: a record holds 64, the calls and the judge's among them.
pub const MAX_LIMITS: usize = MAX_METERS - 2;
/// What begins the names of our own meters.
pub const METER_PREFIX: &str = "vap.";
/// Calls of unknown cost in a session that may end without anybody learning what they cost (V-12).
pub const BLIND_CALLS: u32 = 3;
/// Denials of one principal within a minute, after which it is denied everything until the minute is over (V-11).
pub const DENIALS_PER_MINUTE: u32 = 100;
/// Bytes of a session id below which it is flagged in the audit (V-2).
pub const SHORT_SESSION_ID: usize = 16;
/// Seconds that a question to a human stays open (V-26).
pub const QUESTION_SECONDS: i64 = 300;
/// Seconds that a question of an upstream's own may take to be answered (V-38).
pub const UPSTREAM_STATE_SECONDS: i64 = 86_400;
/// Bytes of a signed approval.
pub const MAX_APPROVAL: usize = 8 << 10;
/// Characters of an approver's name.
pub const MAX_APPROVER: usize = 64;
/// Characters of the reason that an approver gives.
pub const MAX_APPROVAL_REASON: usize = 1_000;
/// Bytes of arguments, or of a message, that an approver can be asked about.
pub const MAX_APPROVAL_CONTENT: usize = 64 << 10;
/// Characters of a tool's name that a question shows.
pub const QUESTION_TOOL_CHARACTERS: usize = 256;
/// Characters of the arguments that a question shows.
pub const QUESTION_ARGUMENT_CHARACTERS: usize = 2_000;
