//! Claims and leaf positions of the entries so far, for a source whose indexes are not trusted.
//!
//! An audit over HTTP has no table of guards and no index of entries. It needs none: every claim that may be made once
//! was made by an earlier entry, which the audit has decided again, and every leaf position was compared with the tree.
//! The memory needed grows with every entry and claim. The claims of an entry whose bytes are gone are unknown; after
//! such an entry, the absence of a claim that it may have made proves nothing.

use std::collections::{BTreeMap, HashMap};

use data_encoding::HEXLOWER;
use merkle::{EntryDigest, LeafIndex};
use registration::{Answers, Guard, GuardKind, Questions};
use serde::{Deserialize, Serialize};

use crate::entry::below;

/// Claims and entry positions below a leaf, as part of an [`AuditState`](crate::AuditState).
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(into = "ClaimIndexJson", try_from = "ClaimIndexJson")]
pub(crate) struct ClaimIndex {
    held: HashMap<Vec<u8>, u64>,
    entries: HashMap<[u8; 32], u64>,
    /// Entries with unknown claims that are neither a policy nor an erasure statement, by leaf.
    erased: BTreeMap<u64, String>,
    /// Entries with unknown claims that may be any statement, by leaf.
    lost: BTreeMap<u64, String>,
}

/// An entry with unknown claims.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Unread {
    pub(crate) leaf: u64,
    pub(crate) entry: String,
}

/// Kinds of statement that an entry with unknown claims may have been.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum UnknownClaims {
    /// A statement of a kind that may be erased, thus no policy and no erasure statement.
    Erasable,
    /// Any statement.
    Anything,
}

/// Guards that an unread entry may have claimed.
#[derive(Debug)]
pub(crate) struct ClaimDoubt {
    /// The first entry that may have claimed the `guards`.
    pub(crate) by: Unread,
    pub(crate) guards: Vec<Guard>,
}

/// Serialized form of [`ClaimIndex`] in an [`AuditState`](crate::AuditState): keys are lowercase hexadecimal.
#[derive(Clone, Debug, Serialize, Deserialize)]
struct ClaimIndexJson {
    held: BTreeMap<String, u64>,
    entries: BTreeMap<String, u64>,
    erased: BTreeMap<u64, String>,
    lost: BTreeMap<u64, String>,
}

impl From<ClaimIndex> for ClaimIndexJson {
    fn from(claims: ClaimIndex) -> Self {
        let held = claims.held.iter().map(|(key, leaf)| (HEXLOWER.encode(key), *leaf)).collect();
        let entries = claims.entries.iter().map(|(digest, leaf)| (HEXLOWER.encode(digest), *leaf)).collect();
        ClaimIndexJson { held, entries, erased: claims.erased, lost: claims.lost }
    }
}

impl TryFrom<ClaimIndexJson> for ClaimIndex {
    type Error = data_encoding::DecodeError;

    fn try_from(written: ClaimIndexJson) -> Result<Self, Self::Error> {
        let read = |(key, leaf): (String, u64)| Ok((HEXLOWER.decode(key.as_bytes())?, leaf));
        let held = written.held.into_iter().map(read).collect::<Result<_, _>>()?;
        let digest = |(key, leaf): (String, u64)| {
            let bytes = HEXLOWER.decode(key.as_bytes())?;
            let odd = data_encoding::DecodeError { position: 0, kind: data_encoding::DecodeKind::Length };
            Ok((bytes.try_into().map_err(|_| odd)?, leaf))
        };
        let entries = written.entries.into_iter().map(digest).collect::<Result<_, _>>()?;
        Ok(ClaimIndex { held, entries, erased: written.erased, lost: written.lost })
    }
}

/// Claims before the page, and those of the page so far.
#[derive(Debug)]
pub(crate) struct PendingClaims<'c> {
    before: &'c ClaimIndex,
    page: ClaimIndex,
}

impl<'c> PendingClaims<'c> {
    pub(crate) fn of(before: &'c ClaimIndex) -> Self {
        Self { before, page: ClaimIndex::default() }
    }

    /// Adds to `answers` all entries and claims below `leaf` that `questions` asks for. Returns a [`ClaimDoubt`] if an
    /// unread entry may have made a claim that was not found.
    pub(crate) fn answer(
        &self,
        questions: &Questions,
        leaf: LeafIndex,
        answers: &mut Answers,
    ) -> Option<ClaimDoubt> {
        for digest in &questions.digests {
            if let Some(found) = self.leaf_of(digest).filter(|found| below(*found, leaf)) {
                answers.put_entry(*digest, found);
            }
        }
        let mut doubt: Option<ClaimDoubt> = None;
        for guard in &questions.guards {
            match self.holder(guard) {
                Some(holder) => answers.put_guard(guard.clone(), holder),
                None => {
                    let Some(by) = self.possible_holder(guard, questions, leaf) else { continue };
                    let doubt = doubt.get_or_insert_with(|| ClaimDoubt { by, guards: Vec::new() });
                    doubt.guards.push(guard.clone());
                }
            }
        }
        doubt
    }

    /// Returns the unread entry that may hold a guard without a known holder.
    ///
    /// A guard of the kinds `VrfPlace`, `AuditDecision` and `Permanent` can only be claimed by an entry whose digest
    /// the questions name.
    fn possible_holder(&self, guard: &Guard, questions: &Questions, leaf: LeafIndex) -> Option<Unread> {
        use UnknownClaims::{Anything, Erasable};
        match guard.kind() {
            GuardKind::VrfPlace | GuardKind::AuditDecision => self
                .unread_of(questions, Erasable, leaf)
                .or_else(|| self.unread_of(questions, Anything, leaf)),
            // These guards matter only if the predecessor is not on the log.
            GuardKind::VrfGenesis | GuardKind::VrfPosition if self.holds_all_of(questions, leaf) => None,
            GuardKind::Permanent => self.unread_of(questions, Anything, leaf),
            GuardKind::PolicyRevision
            | GuardKind::ErasureSequence
            | GuardKind::Freeze
            | GuardKind::HoldNumber
            | GuardKind::OperatorApproval
            | GuardKind::IndexHead => self.first_unread(Anything, leaf),
            _ => self.first_unread(Anything, leaf).or_else(|| self.first_unread(Erasable, leaf)),
        }
    }

    /// Returns `true` if every entry that the questions name stands below `leaf`.
    fn holds_all_of(&self, questions: &Questions, leaf: LeafIndex) -> bool {
        questions.digests.iter().all(|digest| self.leaf_of(digest).is_some_and(|found| below(found, leaf)))
    }

    /// Returns the first entry below `leaf` with unknown claims of the kind `missed`.
    fn first_unread(&self, missed: UnknownClaims, leaf: LeafIndex) -> Option<Unread> {
        let mut unread = self.before.unread(missed).iter().chain(self.page.unread(missed));
        unread.next().filter(|(first, _)| **first < leaf.get()).map(Unread::of)
    }

    /// Returns an entry below `leaf` that the questions name and whose claims are unknown.
    fn unread_of(&self, questions: &Questions, missed: UnknownClaims, leaf: LeafIndex) -> Option<Unread> {
        let leaves = questions.digests.iter().filter_map(|digest| self.leaf_of(digest));
        leaves.filter(|found| below(*found, leaf)).map(LeafIndex::get).find_map(|found| {
            let known = self.before.unread(missed).get_key_value(&found);
            known.or_else(|| self.page.unread(missed).get_key_value(&found)).map(Unread::of)
        })
    }

    /// Records the leaf of an entry. If a digest occurs twice, the first leaf counts.
    pub(crate) fn enter(&mut self, digest: EntryDigest, leaf: LeafIndex) {
        if self.leaf_of(&digest).is_none() {
            self.page.entries.insert(*digest.as_bytes(), leaf.get());
        }
    }

    /// Records a claim. Returns the leaf that made the same claim before, if there is one; that leaf remains the
    /// holder.
    pub(crate) fn take(&mut self, guard: &Guard, leaf: LeafIndex) -> Option<LeafIndex> {
        let holder = self.holder(guard);
        if holder.is_none() {
            self.page.held.insert(guard.as_bytes().to_vec(), leaf.get());
        }
        holder
    }

    /// Records an entry with unknown claims. `entry` is `None` if the row is lost.
    pub(crate) fn miss(&mut self, leaf: LeafIndex, entry: Option<EntryDigest>, missed: UnknownClaims) {
        let unread = match missed {
            UnknownClaims::Erasable => &mut self.page.erased,
            UnknownClaims::Anything => &mut self.page.lost,
        };
        unread.insert(leaf.get(), entry.map_or_else(|| "lost".to_owned(), |entry| entry.to_string()));
    }

    /// Returns the claims of the page, to be added with [`ClaimIndex::add`].
    pub(crate) fn into_page(self) -> ClaimIndex {
        self.page
    }

    fn holder(&self, guard: &Guard) -> Option<LeafIndex> {
        let held = self.page.held.get(guard.as_bytes()).or_else(|| self.before.held.get(guard.as_bytes()));
        held.map(|leaf| LeafIndex::new(*leaf))
    }

    fn leaf_of(&self, digest: &EntryDigest) -> Option<LeafIndex> {
        let of = |claims: &ClaimIndex| claims.entries.get(digest.as_bytes()).copied();
        of(self.before).or_else(|| of(&self.page)).map(LeafIndex::new)
    }
}

impl ClaimIndex {
    fn unread(&self, missed: UnknownClaims) -> &BTreeMap<u64, String> {
        match missed {
            UnknownClaims::Erasable => &self.erased,
            UnknownClaims::Anything => &self.lost,
        }
    }

    /// Adds the claims of a page.
    pub(crate) fn add(&mut self, page: ClaimIndex) {
        self.held.extend(page.held);
        self.entries.extend(page.entries);
        self.erased.extend(page.erased);
        self.lost.extend(page.lost);
    }
}

impl Unread {
    fn of((leaf, entry): (&u64, &String)) -> Self {
        Unread { leaf: *leaf, entry: entry.clone() }
    }
}

#[cfg(test)]
mod tests {
    use merkle::EntryDigest;
    use registration::erasure::permanent_guard;

    use super::*;

    #[test]
    fn claims_are_held_once_and_survive_being_kept() {
        let guard = |n: u8| permanent_guard(&EntryDigest::of(&[n]));
        let mut claims = ClaimIndex::default();
        let mut ahead = PendingClaims::of(&claims);
        assert_eq!(ahead.take(&guard(1), LeafIndex::new(5)), None);
        assert_eq!(ahead.take(&guard(1), LeafIndex::new(6)), Some(LeafIndex::new(5)));
        let page = ahead.into_page();
        claims.add(page);
        let mut ahead = PendingClaims::of(&claims);
        ahead.enter(EntryDigest::of(b"a"), LeafIndex::new(7));
        ahead.enter(EntryDigest::of(b"a"), LeafIndex::new(8));
        ahead.miss(LeafIndex::new(8), None, UnknownClaims::Anything);
        let page = ahead.into_page();
        claims.add(page);
        let questions = Questions { digests: vec![EntryDigest::of(b"a")], guards: Vec::new() };
        for (leaf, expected) in [(7, None), (8, Some(LeafIndex::new(7)))] {
            let mut answers = Answers::none();
            assert!(
                PendingClaims::of(&claims).answer(&questions, LeafIndex::new(leaf), &mut answers).is_none()
            );
            assert_eq!(answers.entry(&EntryDigest::of(b"a")), expected, "what stands below leaf {leaf}");
        }
        let kept = serde_json::to_string(&claims).unwrap();
        assert_eq!(serde_json::from_str::<ClaimIndex>(&kept).unwrap(), claims);
        for bad in [
            kept.replace("\"entries\":{\"", "\"entries\":{\"00"),
            kept.replace("\"held\":{\"", "\"held\":{\"x"),
        ] {
            assert!(serde_json::from_str::<ClaimIndex>(&bad).is_err(), "{bad}");
        }
    }

    #[test]
    fn after_an_entry_that_nobody_can_read_the_absence_of_what_it_may_have_claimed_proves_nothing() {
        let (of, other) = (EntryDigest::of(b"x"), EntryDigest::of(b"y"));
        let questions = Questions { digests: vec![of], guards: vec![permanent_guard(&of)] };
        let claims = ClaimIndex::default();
        let mut ahead = PendingClaims::of(&claims);
        ahead.enter(of, LeafIndex::new(4));
        ahead.enter(other, LeafIndex::new(5));
        let doubt = |ahead: &PendingClaims<'_>, leaf| {
            let doubt = ahead.answer(&questions, LeafIndex::new(leaf), &mut Answers::none());
            doubt.map(|doubt| doubt.by.leaf)
        };
        ahead.miss(LeafIndex::new(4), Some(of), UnknownClaims::Erasable);
        assert_eq!(doubt(&ahead, 9), None, "policies and erasures stay");
        ahead.miss(LeafIndex::new(5), Some(other), UnknownClaims::Anything);
        assert_eq!(doubt(&ahead, 9), None, "another entry cannot have made it");
        ahead.miss(LeafIndex::new(4), Some(of), UnknownClaims::Anything);
        assert_eq!((doubt(&ahead, 4), doubt(&ahead, 5)), (None, Some(4)));
        ahead.take(&questions.guards[0], LeafIndex::new(4));
        assert_eq!(doubt(&ahead, 5), None);
    }
}
