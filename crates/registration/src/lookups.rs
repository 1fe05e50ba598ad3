//! Lookups: under which values an entry is found.
//!
//! They are read from the statement and nothing else, so an index of them can be dropped and made anew from the log.
//! Nothing decides by them.

use merkle::EntryDigest;

use crate::limits::{MAX_LOOKUP_VALUE, MAX_LOOKUPS};

/// What a value is. The numbers are stored: they are never given anew.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
#[repr(u8)]
pub enum LookupKind {
    /// A VRF `receipt_id`.
    ReceiptId = 1,
    /// An AgentROA `aer_id`.
    AerId = 2,
    /// A session, as its own document names it.
    Session = 3,
    /// The agent that acted.
    Agent = 4,
    /// `iss`.
    Issuer = 5,
    /// `sub`.
    Subject = 6,
    /// The content type, or that of what was hashed.
    ContentType = 7,
    /// A verdict or decision.
    Verdict = 8,
    /// The name of a tool that was called.
    Tool = 9,
    /// `sha256:` and the digest of the payload.
    PayloadDigest = 10,
    /// `sha256:` and a digest by which records of different kinds speak of the same thing: the output that was
    /// verified, the input of a call, the result of one, a payload.
    Digest = 11,
    /// The id of a tool call within its session.
    CallId = 12,
    /// What kind of task was verified.
    TaskType = 13,
    /// The entry ID that this one answers.
    BackLink = 14,
    /// A stream of audit records.
    Stream = 15,
    /// The tier of a verification.
    Tier = 16,
    /// An entry that this statement erases.
    Erasure = 17,
    /// The `kid` of the key that signed, in hexadecimal.
    Key = 18,
}

impl LookupKind {
    /// Every kind.
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

    /// The number it is stored under.
    pub const fn number(self) -> u8 {
        self as u8
    }
}

/// A value and what it is.
#[derive(Clone, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct Lookup {
    /// What the value is.
    pub kind: LookupKind,
    /// The value; of a long one the beginning and its hash, and so of what is searched for.
    pub value: String,
}

impl Lookup {
    /// A value as it is kept: within the bound, and without U+0000, which not every database keeps. Different values stay
    /// different: no long one is kept like another, or like a short one.
    pub fn new(kind: LookupKind, value: &str) -> Lookup {
        let value = match value.len() <= WHOLE && !value.contains('\0') {
            true => value.to_owned(),
            false => hashed(value),
        };
        Lookup { kind, value }
    }
}

/// `#` and 64 hex digits.
const HASH: usize = 1 + 64;
/// Bytes of the longest value that is kept whole: even where the beginning of a longer one ends before a character of
/// four, that one is kept with more.
const WHOLE: usize = MAX_LOOKUP_VALUE - HASH - 3;

/// The beginning for people, the hash for the rest.
fn hashed(value: &str) -> String {
    let mut kept = value[..value.floor_char_boundary(MAX_LOOKUP_VALUE)].replace('\0', "\u{fffd}");
    kept.truncate(kept.floor_char_boundary(MAX_LOOKUP_VALUE - HASH));
    kept.push('#');
    kept.push_str(&EntryDigest::of(value.as_bytes()).to_string());
    kept
}

/// Lookups being gathered: each once, and no more than the bound.
#[derive(Debug, Default)]
pub struct Lookups {
    found: std::collections::BTreeSet<Lookup>,
    truncated: bool,
}

impl Lookups {
    /// Adds a value, unless there are as many as an entry may have.
    pub fn add(&mut self, kind: LookupKind, value: impl AsRef<str>) {
        match self.found.len() < MAX_LOOKUPS {
            true => {
                self.found.insert(Lookup::new(kind, value.as_ref()));
            }
            false => self.truncated = true,
        }
    }

    /// Whether something was left out.
    pub fn truncated(&self) -> bool {
        self.truncated
    }

    /// What was found, in order.
    pub fn into_vec(self) -> Vec<Lookup> {
        self.found.into_iter().collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_entry_is_found_under_so_many_values_and_no_more() {
        let mut lookups = Lookups::default();
        for n in 0..=MAX_LOOKUPS {
            lookups.add(LookupKind::CallId, n.to_string());
        }
        assert!(lookups.truncated());
        assert_eq!(lookups.into_vec().len(), MAX_LOOKUPS);
    }

    #[test]
    fn a_value_is_kept_within_the_bound_and_unlike_any_other() {
        let kept = |value: &str| Lookup::new(LookupKind::Tool, value).value;
        assert_eq!(kept(&"a".repeat(WHOLE)), "a".repeat(WHOLE));
        for long in ["a", "é", "\u{1f980}", "\0"].map(|c| c.repeat(MAX_LOOKUP_VALUE)) {
            let (one, other) = (kept(&format!("{long}1")), kept(&format!("{long}2")));
            assert!((WHOLE + 1..=MAX_LOOKUP_VALUE).contains(&one.len()), "{one}");
            assert!(!one.contains('\0'));
            assert_ne!(one, other);
            assert_ne!(kept(&one), one, "who has such a name is not taken for the other");
        }
        for length in WHOLE + 1..=MAX_LOOKUP_VALUE + 1 {
            assert!(kept(&"a".repeat(length)).len() > WHOLE, "{length}");
        }
        assert_ne!(kept("a\0"), kept("a\u{fffd}"));
        assert_eq!(kept("a\0"), format!("a\u{fffd}#{}", EntryDigest::of(b"a\0")));
    }

    #[test]
    fn every_kind_has_a_number_of_its_own() {
        let numbers: std::collections::HashSet<u8> =
            LookupKind::ALL.iter().map(|kind| kind.number()).collect();
        assert_eq!(numbers.len(), LookupKind::ALL.len());
    }
}
