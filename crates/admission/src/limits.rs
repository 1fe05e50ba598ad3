//! Limits on what is read, kept and compared, in one place.

use vap::limits::MAX_METERS;

/// Maximum difference between a signature's `iat` and the current time, in seconds (V-21).
pub const IAT_WINDOW: u64 = 60;
/// Maximum bytes that are kept of each text in an `aiInvocation` (S-1).
pub const MAX_INVOCATION_TEXT: usize = 4 << 10;
/// Maximum bytes of a `turnId` (S-1).
pub const MAX_TURN_ID: usize = 256;
/// Maximum bytes of a tool's description that are stored with its digest.
pub const MAX_TOOL: usize = 64 << 10;
/// Maximum bytes of an `aiInvocation` that is parsed.
pub const MAX_INVOCATION: usize = 64 << 10;

// --- the state of a session --------------------------------------------------------------------------------------

/// Maximum calls of one session that are in flight or wait for an answer at the same time.
pub const MAX_IN_FLIGHT: usize = 256;
/// Number of recent calls that are kept for the risk score.
pub const RECENT_CALLS: usize = 32;
/// Number of tools of a session that are remembered as called before.
pub const REMEMBERED_TOOLS: usize = 128;
/// Number of tools whose costs are kept separately for a session, or for an AgentROA envelope.
pub const PRICED_TOOLS: usize = 64;
/// Number of the judge's verdicts that are cached for a session.
pub const CACHED_VERDICTS: usize = 32;
/// Number of a principal's live sessions that are kept by id; further ones are only counted.
pub const REMEMBERED_SESSIONS: usize = 32;
/// Maximum meters that a commitment may limit: a record holds [`MAX_METERS`], including the meters for calls and for
/// the judge.
pub const MAX_LIMITS: usize = MAX_METERS - 2;
/// Prefix of the gateway's own meters.
pub const METER_PREFIX: &str = "vap.";
/// Number of calls with unknown cost in a session, or under an AgentROA envelope, that may end with an unknown outcome;
/// afterwards, calls of unknown cost are denied (V-12, R-48).
pub const BLIND_CALLS: u32 = 3;
/// Denials of one principal within a minute after which every call is denied until the minute is over (V-11).
pub const DENIALS_PER_MINUTE: u32 = 100;
/// Bytes of a session id below which it is flagged in the audit store (V-2).
pub const SHORT_SESSION_ID: usize = 16;
/// Lifetime of a question to a human, in seconds (V-26).
pub const QUESTION_SECONDS: i64 = 300;
/// Lifetime of a question that an upstream server asks, in seconds (V-38).
pub const UPSTREAM_STATE_SECONDS: i64 = 86_400;
/// Maximum bytes of a signed approval.
pub const MAX_APPROVAL: usize = 8 << 10;
/// Maximum characters of an approver's name.
pub const MAX_APPROVER: usize = 64;
/// Maximum characters of the reason in an approval.
pub const MAX_APPROVAL_REASON: usize = 1_000;
/// Maximum bytes of the arguments or the message that an approver can be asked about.
pub const MAX_APPROVAL_CONTENT: usize = 64 << 10;
/// Maximum characters of a tool name in a question to a human.
pub const QUESTION_TOOL_CHARACTERS: usize = 256;
/// Maximum characters of the arguments in a question to a human.
pub const QUESTION_ARGUMENT_CHARACTERS: usize = 2_000;
