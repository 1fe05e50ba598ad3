//! Search values and their kinds.

use data_encoding::HEXLOWER;
use lookup_tree::TermKey;
use serde::Deserialize;
use sha2::{Digest, Sha256};

use crate::limits::MAX_LOOKUP_VALUE;

/// The kind of a search value. The numbers are stored and are never reused.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord, Deserialize)]
#[serde(rename_all = "snake_case")]
#[repr(u8)]
pub enum LookupKind {
    /// A verification receipt's (VRF) `receipt_id`.
    ReceiptId = 1,
    /// An AgentROA execution receipt's `aer_id`.
    AerId = 2,
    /// A session identifier, as the statement spells it.
    Session = 3,
    /// The identifier of the agent that acted.
    Agent = 4,
    /// The claim `iss`.
    Issuer = 5,
    /// The claim `sub`.
    Subject = 6,
    /// The content type, or the preimage content type of a hash envelope (RFC 9995).
    ContentType = 7,
    /// A verdict or decision, such as `pass` or `permit`.
    Verdict = 8,
    /// The name of a tool that was called.
    Tool = 9,
    /// The payload's digest, with the prefix `sha256:`.
    PayloadDigest = 10,
    /// A digest with the prefix `sha256:` that relates records of different kinds: of a verified output, of a tool
    /// call's input or result, or of a payload.
    Digest = 11,
    /// The id of a tool call within its session.
    CallId = 12,
    /// The type of the verified task.
    TaskType = 13,
    /// The entry ID of the earlier record to which this one refers.
    BackLink = 14,
    /// The identifier of a stream of audit records.
    Stream = 15,
    /// The tier of a verification.
    Tier = 16,
    /// The entry ID of an entry that this statement erases.
    Erasure = 17,
    /// The `kid` of the key that signed, in hexadecimal.
    Key = 18,
}

impl LookupKind {
    /// All kinds.
    pub const ALL: [LookupKind; 18] = [
        LookupKind::ReceiptId,
        LookupKind::AerId,
        LookupKind::Session,
        LookupKind::Agent,
        LookupKind::Issuer,
        LookupKind::Subject,
        LookupKind::ContentType,
        LookupKind::Verdict,
        LookupKind::Tool,
        LookupKind::PayloadDigest,
        LookupKind::Digest,
        LookupKind::CallId,
        LookupKind::TaskType,
        LookupKind::BackLink,
        LookupKind::Stream,
        LookupKind::Tier,
        LookupKind::Erasure,
        LookupKind::Key,
    ];

    /// The number under which the kind is stored.
    pub const fn number(self) -> u8 {
        self as u8
    }

    /// The name of the kind, that of the search parameter for its values if there is one.
    pub const fn name(self) -> &'static str {
        match self {
            LookupKind::ReceiptId => "receipt_id",
            LookupKind::AerId => "aer_id",
            LookupKind::Session => "session",
            LookupKind::Agent => "agent",
            LookupKind::Issuer => "issuer",
            LookupKind::Subject => "subject",
            LookupKind::ContentType => "content_type",
            LookupKind::Verdict => "verdict",
            LookupKind::Tool => "tool",
            LookupKind::PayloadDigest => "payload_digest",
            LookupKind::Digest => "digest",
            LookupKind::CallId => "call_id",
            LookupKind::TaskType => "task_type",
            LookupKind::BackLink => "back_link",
            LookupKind::Stream => "stream",
            LookupKind::Tier => "tier",
            LookupKind::Erasure => "erasure",
            LookupKind::Key => "key",
        }
    }

    /// Returns `true` if the values of the kind are listed, so that they are found by their beginning.
    pub const fn is_listed(self) -> bool {
        use LookupKind::{Agent, ContentType, Issuer, Session, Stream, Subject};
        matches!(self, Session | Agent | Issuer | Subject | ContentType | Stream)
    }
}

/// A search value with its kind.
#[derive(Clone, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct Lookup {
    /// The kind of the value.
    pub kind: LookupKind,
    /// The value, at most [`MAX_LOOKUP_VALUE`] bytes. A longer one is stored as its beginning and its hash; search
    /// terms are shortened likewise.
    pub value: String,
}

impl Lookup {
    /// Normalizes a value for storage: at most [`MAX_LOOKUP_VALUE`] bytes, and without U+0000, which not every database
    /// stores. Different values stay different: a shortened value never equals another shortened value or a short one.
    pub fn new(kind: LookupKind, value: &str) -> Lookup {
        let value = match value.len() <= WHOLE && !value.contains('\0') {
            true => value.to_owned(),
            false => hashed(value),
        };
        Lookup { kind, value }
    }

    /// The key of the term in the search index.
    pub fn key(&self) -> TermKey {
        TermKey::of(self.kind.number(), self.value.as_bytes())
    }
}

/// Length of `#` and 64 hexadecimal digits.
const HASH: usize = 1 + 64;
/// Maximum length in bytes of a value that is stored whole. A shortened value is always longer than this, even if its
/// beginning is cut before a character of four bytes.
const WHOLE: usize = MAX_LOOKUP_VALUE - HASH - 3;

/// Shortens a value to its beginning, which stays readable, and its hash.
fn hashed(value: &str) -> String {
    let mut stored = value[..value.floor_char_boundary(MAX_LOOKUP_VALUE)].replace('\0', "\u{fffd}");
    stored.truncate(stored.floor_char_boundary(MAX_LOOKUP_VALUE - HASH));
    stored.push('#');
    HEXLOWER.encode_append(&Sha256::digest(value.as_bytes()), &mut stored);
    stored
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_value_is_kept_within_the_bound_and_unlike_any_other() {
        let stored = |value: &str| Lookup::new(LookupKind::Tool, value).value;
        assert_eq!(stored(&"a".repeat(WHOLE)), "a".repeat(WHOLE));
        for long in ["a", "é", "\u{1f980}", "\0"].map(|c| c.repeat(MAX_LOOKUP_VALUE)) {
            let (one, other) = (stored(&format!("{long}1")), stored(&format!("{long}2")));
            assert!((WHOLE + 1..=MAX_LOOKUP_VALUE).contains(&one.len()), "{one}");
            assert!(!one.contains('\0'));
            assert_ne!(one, other);
            assert_ne!(stored(&one), one, "who has such a name is not taken for the other");
        }
        for length in WHOLE + 1..=MAX_LOOKUP_VALUE + 1 {
            assert!(stored(&"a".repeat(length)).len() > WHOLE, "{length}");
        }
        assert_ne!(stored("a\0"), stored("a\u{fffd}"));
        assert_eq!(stored("a\0"), format!("a\u{fffd}#{}", HEXLOWER.encode(&Sha256::digest(b"a\0"))));
    }

    #[test]
    fn every_kind_has_a_number_of_its_own() {
        let numbers: std::collections::HashSet<u8> =
            LookupKind::ALL.iter().map(|kind| kind.number()).collect();
        assert_eq!(numbers.len(), LookupKind::ALL.len());
    }
}
