//! Lookups: under which values an entry is found.
//!
//! They are read from the statement and nothing else, so an index of them can be dropped and made anew from the log.
//! Nothing decides by them.

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
    /// The value; a long one is cut at the bound, and so is what is searched for.
    pub value: String,
}

impl Lookup {
    /// A value as it is kept: within the bound, and without U+0000, which not every database keeps.
    pub fn new(kind: LookupKind, value: &str) -> Lookup {
        let end = value.floor_char_boundary(MAX_LOOKUP_VALUE);
        let mut value = value[..end].replace('\0', "\u{fffd}");
        value.truncate(value.floor_char_boundary(MAX_LOOKUP_VALUE));
        Lookup { kind, value }
    }
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
    fn a_long_value_is_cut_where_a_character_ends() {
        let value = Lookup::new(LookupKind::Tool, &"é".repeat(MAX_LOOKUP_VALUE)).value;
        assert!(value.len() <= MAX_LOOKUP_VALUE && value.chars().all(|c| c == 'é'));
        let value = Lookup::new(LookupKind::Tool, &"\0".repeat(MAX_LOOKUP_VALUE)).value;
        assert!(value.len() <= MAX_LOOKUP_VALUE && value.chars().all(|c| c == '\u{fffd}'));
    }

    #[test]
    fn every_kind_has_a_number_of_its_own() {
        let numbers: std::collections::HashSet<u8> =
            LookupKind::ALL.iter().map(|kind| kind.number()).collect();
        assert_eq!(numbers.len(), LookupKind::ALL.len());
    }
}
