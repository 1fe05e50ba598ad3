//! Limits of this crate.

/// Maximum nesting depth of arrays and objects in a JSON payload.
pub const JSON_DEPTH: usize = 64;
/// Maximum statement size in bytes that a policy may admit.
pub const MAX_STATEMENT: u64 = 8 << 20;
/// Maximum statement size in bytes of a content type whose policy sets none. Conversation records and registries, which are
/// long, default to [`MAX_STATEMENT`].
pub const DEFAULT_MAX_SIZE: u64 = 1 << 20;
/// Maximum size of a policy's payload in bytes.
pub const MAX_POLICY: usize = 1 << 20;
/// Maximum number of issuers, of keys, of anchors and of content types in one policy.
pub const MAX_POLICY_ITEMS: usize = 10_000;
/// Maximum length in characters of an `iss` (RFC 9943, section 6) or `sub`.
pub const MAX_IDENTIFIER: usize = 8192;
/// Maximum length of a log's origin in bytes: the maximum of a key name in a checkpoint's signature.
pub const MAX_ORIGIN: usize = 255;
/// Maximum length in characters of a string from an open registry (VRF, section 9.3).
pub const MAX_OPEN_STRING: usize = 64;
/// Maximum number of operator conditions on one content type.
pub const MAX_CONDITIONS: usize = 16;
/// Maximum length in characters of an operator condition's name.
pub const MAX_RULE_NAME: usize = 64;
/// Maximum number of protected header parameters that a policy may require of one content type.
pub const MAX_HEADERS: usize = 64;
/// Tolerated clock difference in seconds: a statement's own times (`nbf`, `verified_at`) may be ahead of the log's time
/// by this much.
pub const CLOCK_SKEW: u64 = 300;
/// The largest integer that JSON implementations represent exactly (RFC 8259, section 6).
pub const MAX_INTEGER: u64 = (1 << 53) - 1;
/// Maximum position of a verification receipt in its chain.
pub const MAX_CHAIN_POSITION: u64 = MAX_INTEGER;
/// Maximum number of entries in one erasure statement.
pub const MAX_ERASED: usize = 1000;
/// Maximum length in characters of the reason in an operator's statement, such as an erasure.
pub const MAX_REASON: usize = 1000;
/// Maximum length in bytes of the name of a case in a hold or release.
pub const MAX_CASE: usize = 256;
/// Maximum validity of an operator's approval in seconds (31 days): it is admitted at most this long before its expiry.
pub const MAX_APPROVAL_TIME: u64 = 31 * 24 * 60 * 60;
/// Maximum number of values in a CBOR payload that conditions evaluate.
pub const PAYLOAD_ITEMS: usize = 1 << 20;
/// Maximum number of keys in a published JWK set.
pub const MAX_JWK_SET_KEYS: usize = 100;
/// Maximum length in characters of a JSON pointer, or of another parser's message, in an error message.
pub const MAX_DETAIL: usize = 256;
/// Maximum number of arrays and maps open at once while a conversation record is parsed, the limit of the JSON parser.
/// A separate rule counts [`JSON_DEPTH`] without the levels of `children`.
pub const CONVERSATION_READER_DEPTH: usize = 127;
/// Maximum nesting depth of `children` in a conversation record.
pub const CONVERSATION_CHILDREN: usize = 32;
/// Maximum number of values in a conversation record; each needs about 70 bytes while it is parsed.
pub const CONVERSATION_ITEMS: usize = 1 << 20;
/// Maximum number of warnings kept per conversation record.
pub const CONVERSATION_WARNINGS: usize = 16;
/// Maximum number of tools, and of models, in a conversation record's facts.
pub const CONVERSATION_NAMES: usize = 64;
/// Maximum length in characters of a text in a conversation record's facts.
pub const CONVERSATION_TEXT: usize = 256;
