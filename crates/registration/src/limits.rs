//! Every bound this crate applies, in one place.

/// Nesting of arrays and objects in a JSON payload.
pub const JSON_DEPTH: usize = 64;
/// The largest statement a policy may admit, in bytes.
pub const MAX_STATEMENT: u64 = 8 << 20;
/// What a content type admits when its policy names no size, in bytes; conversation records, which are long, as much as
/// a policy may admit.
pub const DEFAULT_MAX_SIZE: u64 = 1 << 20;
/// The largest policy payload, in bytes.
pub const MAX_POLICY: usize = 1 << 20;
/// Issuers, keys, anchors or content types in one policy, each.
pub const MAX_POLICY_ITEMS: usize = 10_000;
/// Characters of an `iss` (RFC 9943, section 6) or `sub`.
pub const MAX_IDENTIFIER: usize = 8192;
/// Bytes of a log's origin: what a key name in a checkpoint's signature may have.
pub const MAX_ORIGIN: usize = 255;
/// Characters of a string whose values a registry lists but does not close (VRF, section 9.3).
pub const MAX_OPEN_STRING: usize = 64;
/// Conditions that an operator adds to one content type.
pub const MAX_CONDITIONS: usize = 16;
/// Characters of the name of an operator's condition.
pub const MAX_RULE_NAME: usize = 64;
/// Protected headers that a policy may ask for in one content type.
pub const MAX_HEADERS: usize = 64;
/// Values under which one entry is found.
pub const MAX_LOOKUPS: usize = 4096;
/// Bytes of a value under which an entry is found.
pub const MAX_LOOKUP_VALUE: usize = 512;
/// How far ahead of the log's time a statement's own times (`nbf`, `verified_at`) may be, in seconds.
pub const CLOCK_SKEW: u64 = 300;
/// The largest integer that every reader of JSON holds exactly (RFC 8259, section 6).
pub const MAX_INTEGER: u64 = (1 << 53) - 1;
/// The largest position of a receipt in its chain.
pub const MAX_CHAIN_POSITION: u64 = MAX_INTEGER;
/// The largest execution receipt, in bytes: nothing in one grows.
pub const MAX_AER_BYTES: usize = 64 << 10;
/// Nesting of arrays and objects in an execution receipt; one that is well formed needs 3.
pub const MAX_AER_DEPTH: usize = 8;
/// Characters of a name in an execution receipt.
pub const MAX_AER_TEXT: usize = 256;
/// Signatures within an execution receipt.
pub const MAX_AER_SIGNATURES: usize = 8;
/// Entries that one erasure names.
pub const MAX_ERASED: usize = 1000;
/// Characters of an erasure's reason.
pub const MAX_REASON: usize = 1000;
/// Bytes of the name of a case for which an entry is held.
pub const MAX_CASE: usize = 256;
/// How long before its expiry an operator's approval is admitted at the earliest, in seconds: 31 days.
pub const MAX_APPROVAL_TIME: u64 = 31 * 24 * 60 * 60;
/// Meters of a VAP audit record.
pub const MAX_METERS: usize = 64;
/// Values in a CBOR payload that conditions ask about.
pub const PAYLOAD_ITEMS: usize = 1 << 20;
/// Keys in a published set.
pub const MAX_JWK_SET_KEYS: usize = 100;
/// Bytes of a claimed value that an answer repeats.
pub const MAX_QUOTE: usize = 64;
/// Characters of a JSON pointer, or of another reader's words, that an answer repeats.
pub const MAX_TOLD: usize = 256;
/// Arrays and maps open at once while a conversation record is read: what JSON's readers can do. Its own rule counts
/// [`JSON_DEPTH`] without the levels of `children`.
pub const CONVERSATION_READER_DEPTH: usize = 127;
/// Levels of `children` in a conversation record.
pub const CONVERSATION_CHILDREN: usize = 32;
/// Values in a conversation record; each costs some 70 bytes while it is read.
pub const CONVERSATION_ITEMS: usize = 1 << 20;
/// Warnings about a conversation record that are kept.
pub const CONVERSATION_WARNINGS: usize = 16;
/// Tools, or models, of a conversation record that its facts name.
pub const CONVERSATION_NAMES: usize = 64;
/// Characters of a text of a conversation record that its facts repeat.
pub const CONVERSATION_TEXT: usize = 256;
