//! Guards: keys of which a log holds at most one each.
//!
//! A rule such as "an issuer uses a `receipt_id` once" depends on the whole log, so it is not decided here. The permit
//! lists the claims that must be unique, and the log inserts their keys together with the entry, or rejects the entry.
//!
//! A key is one byte for the kind and a SHA-256 over the parts of the claim, each prefixed with its length. Keys are
//! therefore short, and different claims have different keys.

use std::fmt;
use std::hash::{Hash, Hasher};

use data_encoding::HEXLOWER;
use merkle::EntryDigest;
use sha2::{Digest, Sha256};

use crate::violation::{Place, RuleName};

/// The kind of claim that a guard keeps unique. The numbers are part of every log and are never reused.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
#[repr(u8)]
pub enum GuardKind {
    /// A verification receipt's (VRF) `receipt_id`, per issuer.
    VrfReceiptId = 1,
    /// A revision number of the log's own policy.
    PolicyRevision = 2,
    /// The first receipt of a VRF chain, per issuer and subject.
    VrfGenesis = 3,
    /// The successor of a receipt in a VRF chain, per issuer and subject.
    VrfSuccessor = 4,
    /// The position of a receipt in its VRF chain: issuer, subject, position, digest. Two entries cannot make this
    /// claim; the successor's decision looks it up.
    VrfPlace = 5,
    /// An AgentROA `aer_id`, per gateway.
    AerId = 6,
    /// A sequence number in a stream of audit records, per gateway.
    AuditSequence = 7,
    /// An entry that may never be erased, such as a policy.
    Permanent = 8,
    /// The sequence number of an erasure statement.
    ErasureSequence = 9,
    /// The outcome of a gateway's decision about a tool call.
    Outcome = 10,
    /// A decision in a gateway's stream: gateway, stream, digest of the record. Two entries cannot make this claim; the
    /// decision on its outcome looks it up.
    AuditDecision = 11,
    /// A position in a VRF chain, per issuer and subject; the first position has [`VrfGenesis`](GuardKind::VrfGenesis).
    VrfPosition = 12,
    /// The entry that freezes the log.
    Freeze = 13,
    /// The number of a hold or release, per entry and case.
    HoldNumber = 14,
    /// An operator's approval: content type, payload digest and expiry of the approved statement, and the operator's
    /// key.
    OperatorApproval = 15,
    /// The epoch and sequence of a version, per AgentROA registry.
    RegistryVersion = 16,
    /// The head of the search index in an interval of time, per series.
    IndexHead = 17,
}

/// A claim that only one entry of the log may make. Its [`Place`] in the statement is not part of its identity.
#[derive(Clone)]
pub struct Guard {
    kind: GuardKind,
    key: [u8; 33],
    /// The place of the claim, if it differs from the usual one of its kind.
    place: Option<Place>,
}

impl PartialEq for Guard {
    fn eq(&self, other: &Guard) -> bool {
        self.key == other.key
    }
}

impl Eq for Guard {}

impl Hash for Guard {
    fn hash<H: Hasher>(&self, state: &mut H) {
        self.key.hash(state);
    }
}

impl GuardKind {
    /// All kinds.
    pub const ALL: [GuardKind; 17] = [
        GuardKind::VrfReceiptId,
        GuardKind::PolicyRevision,
        GuardKind::VrfGenesis,
        GuardKind::VrfSuccessor,
        GuardKind::VrfPlace,
        GuardKind::AerId,
        GuardKind::AuditSequence,
        GuardKind::Permanent,
        GuardKind::ErasureSequence,
        GuardKind::Outcome,
        GuardKind::AuditDecision,
        GuardKind::VrfPosition,
        GuardKind::Freeze,
        GuardKind::HoldNumber,
        GuardKind::OperatorApproval,
        GuardKind::RegistryVersion,
        GuardKind::IndexHead,
    ];

    /// Returns the kind of a guard's key, from its first byte; `None` if the number is not assigned.
    pub fn of_key(key: &[u8]) -> Option<GuardKind> {
        GuardKind::ALL.into_iter().find(|kind| key.first() == Some(&(*kind as u8)))
    }

    /// The rule that a second entry with the same claim breaks.
    pub fn rule(self) -> RuleName {
        RuleName::fixed(self.rule_and_place().0)
    }

    /// The table of kinds: the rule that a second entry breaks, and the usual place of the claim in a statement.
    fn rule_and_place(self) -> (&'static str, Place) {
        match self {
            // Redacted and complete receipts both have this header parameter.
            GuardKind::VrfReceiptId => ("vrf-receipt-id-unique", Place::protected("-70003")),
            GuardKind::PolicyRevision => ("policy-revision", Place::payload("/revision")),
            GuardKind::VrfGenesis => ("vrf-chain-second-genesis", Place::protected("-70005")),
            GuardKind::VrfSuccessor => ("vrf-chain-fork", Place::protected("-70004")),
            GuardKind::VrfPosition => ("vrf-chain-position-taken", Place::protected("-70005")),
            GuardKind::VrfPlace => ("vrf-chain-mismatch", Place::protected("-70005")),
            GuardKind::AerId => ("aer-id-unique", Place::payload("/aer_id")),
            GuardKind::AuditSequence => ("vap-audit-sequence-unique", Place::payload("/seq")),
            GuardKind::Permanent => ("permanent", Place::Statement),
            GuardKind::ErasureSequence => ("erasure-sequence", Place::payload("/sequence")),
            GuardKind::Outcome => ("vap-audit-outcome-unique", Place::payload("/backLink")),
            GuardKind::AuditDecision => ("vap-audit-decision-place", Place::Statement),
            GuardKind::Freeze => ("operator-freeze-once", Place::Statement),
            GuardKind::HoldNumber => ("operator-hold-number-unique", Place::payload("/number")),
            GuardKind::OperatorApproval => ("operator-approval-unique", Place::payload("/payload_sha256")),
            GuardKind::RegistryVersion => ("agentroa-registry-version-unique", Place::payload("/sequence")),
            GuardKind::IndexHead => ("index-head-every", Place::protected("15/6")),
        }
    }

    /// Returns whether a second claim proves misconduct of the issuer: it signed both statements, and at most one of
    /// them can belong to its VRF chain.
    pub fn is_of_a_chain(self) -> bool {
        matches!(self, GuardKind::VrfGenesis | GuardKind::VrfSuccessor | GuardKind::VrfPosition)
    }
}

impl Guard {
    pub(crate) fn new(kind: GuardKind, parts: &[&[u8]]) -> Guard {
        let mut hash = Sha256::new();
        for part in parts {
            hash.update((part.len() as u64).to_be_bytes());
            hash.update(part);
        }
        let mut key = [kind as u8; 33];
        key[1..].copy_from_slice(&hash.finalize());
        Guard { kind, key, place: None }
    }

    /// Returns the same claim at another place of its statement.
    pub(crate) fn at_place(self, place: Place) -> Guard {
        Guard { place: Some(place), ..self }
    }

    /// The kind of the claim.
    pub fn kind(&self) -> GuardKind {
        self.kind
    }

    /// The key that the log keeps unique: the kind's byte and a SHA-256 digest.
    pub fn as_bytes(&self) -> &[u8] {
        &self.key
    }

    /// The rule that a second entry with the same claim breaks; see [`GuardKind::rule`].
    pub fn rule(&self) -> RuleName {
        self.kind.rule()
    }

    /// The place of the claim in the statement, for error messages.
    pub fn place(&self) -> Place {
        self.place.clone().unwrap_or_else(|| self.kind.rule_and_place().1)
    }
}

/// The guard of an entry that may never be erased.
pub fn permanent_guard(entry: &EntryDigest) -> Guard {
    Guard::new(GuardKind::Permanent, &[entry.as_bytes()])
}

impl fmt::Debug for Guard {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{:?}({})", self.kind, HEXLOWER.encode(&self.key[1..]))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn moving_a_byte_from_one_part_to_the_next_makes_another_guard() {
        let guard = |a: &str, b: &str| Guard::new(GuardKind::VrfReceiptId, &[a.as_bytes(), b.as_bytes()]);
        assert_eq!(guard("ab", "c"), guard("ab", "c"));
        assert_ne!(guard("ab", "c"), guard("a", "bc"));
        assert_ne!(guard("ab", "c"), guard("abc", ""));
    }

    #[test]
    fn a_claim_is_the_same_wherever_it_stands() {
        let usual = Guard::new(GuardKind::AerId, &[b"x"]);
        let elsewhere = usual.clone().at_place(Place::protected("15/2"));
        assert_eq!(usual, elsewhere);
        let places = (Place::payload("/aer_id"), Place::protected("15/2"));
        assert_eq!((usual.place(), elsewhere.place()), places);
    }

    #[test]
    fn every_key_tells_its_kind() {
        for kind in GuardKind::ALL {
            assert_eq!(GuardKind::of_key(Guard::new(kind, &[]).as_bytes()), Some(kind));
        }
        assert_eq!((GuardKind::of_key(&[]), GuardKind::of_key(&[0])), (None, None));
    }

    #[test]
    fn a_guard_key_is_a_kind_and_a_digest() {
        let guard = Guard::new(GuardKind::VrfReceiptId, &[b"x"]);
        assert_eq!((guard.as_bytes().len(), guard.as_bytes()[0]), (33, 1));
    }

    #[test]
    fn the_rules_of_guards_are_those_of_the_profiles() {
        use crate::aer::AerRule;
        use crate::agentroa::RegistryRule;
        use crate::erasure::ErasureRule;
        use crate::index_head::IndexHeadRule;
        use crate::operator::OperatorRule;
        use crate::vrf::VrfRule;
        use vap::audit::AuditRule;
        let rules = [
            (GuardKind::VrfReceiptId, VrfRule::ReceiptIdUnique.name()),
            (GuardKind::VrfGenesis, VrfRule::ChainSecondGenesis.name()),
            (GuardKind::VrfSuccessor, VrfRule::ChainFork.name()),
            (GuardKind::VrfPosition, VrfRule::ChainPositionTaken.name()),
            (GuardKind::VrfPlace, VrfRule::ChainMismatch.name()),
            (GuardKind::AerId, AerRule::IdUnique.name()),
            (GuardKind::AuditSequence, AuditRule::SequenceUnique.name()),
            (GuardKind::ErasureSequence, ErasureRule::SequenceUnique.name()),
            (GuardKind::Outcome, AuditRule::OutcomeUnique.name()),
            (GuardKind::Freeze, OperatorRule::FrozenOnce.name()),
            (GuardKind::HoldNumber, OperatorRule::NumberUnique.name()),
            (GuardKind::OperatorApproval, OperatorRule::ApprovedOnce.name()),
            (GuardKind::RegistryVersion, RegistryRule::VersionUnique.name()),
            (GuardKind::IndexHead, IndexHeadRule::Every.name()),
        ];
        for (kind, rule) in rules {
            assert_eq!(kind.rule().as_str(), rule);
        }
    }
}
