//! Building a batch: which of the taken submissions it may hold, and the tree after it.
//!
//! Not here: when a batch is made, and the commit (`machine`).

use std::collections::HashSet;

use merkle::tile::OpenTiles;
use merkle::{CompactRange, EntryDigest, Hash, LeafHash, LeafIndex, TreeGrowth, TreeSize, verify};
use store::{AppendedBatch, Batch, Found, GuardKey, Head, SeenKey, seen_key};

use crate::pool::PooledSubmission;
use crate::{Halt, Submission, SubmitError};

/// Questions to the database about submissions before they may be appended.
#[derive(Clone, Debug, Default)]
pub(crate) struct LookUp {
    pub(crate) digests: Vec<EntryDigest>,
    pub(crate) guards: Vec<GuardKey>,
}

/// Answers to a [`LookUp`], in the order of its keys.
#[derive(Clone, Debug, Default)]
pub(crate) struct KnownEntries {
    pub(crate) found: Vec<Option<Found>>,
    pub(crate) guards: Vec<Option<LeafIndex>>,
}

/// Result of the [`LookUp`] for one submission.
#[derive(Debug)]
pub(crate) enum MemberVerdict {
    /// The statement may be appended.
    New,
    /// The statement is in the log.
    There(LeafIndex),
    /// The statement must not be appended.
    Refused(SubmitError),
}

impl LookUp {
    /// Collects the keys to look up: each submission's digest, its twin if `thorough`, its guards, and the digests
    /// and claims whose absence it relied on.
    pub(crate) fn about<R>(items: &[PooledSubmission<R>], thorough: bool) -> Self {
        let mut ask = Self::default();
        for item in items {
            let Submission { entry, relied_absent, relied_free, .. } = &*item.submission;
            ask.digests.push(entry.digest);
            ask.digests.extend(entry.twin.filter(|_| thorough));
            ask.digests.extend(relied_absent);
            ask.guards.extend_from_slice(&entry.guards);
            ask.guards.extend_from_slice(relied_free);
        }
        ask
    }
}

impl KnownEntries {
    /// Returns whether the database knows an entry beyond a tree of this size.
    pub(crate) fn reaches_beyond(&self, size: TreeSize) -> bool {
        let found = self.found.iter().flatten().map(|found| found.index);
        found.chain(self.guards.iter().flatten().copied()).any(|index| !size.holds(index))
    }

    /// Returns one verdict for each item, in order; `None` if the number of answers does not match the questions.
    pub(crate) fn judge<R>(
        &self,
        items: &[PooledSubmission<R>],
        thorough: bool,
    ) -> Option<Vec<MemberVerdict>> {
        let mut rest = (&self.found[..], &self.guards[..]);
        let verdicts = items.iter().map(|item| judge_one(&item.submission, thorough, &mut rest));
        let verdicts = verdicts.collect::<Option<Vec<_>>>()?;
        (rest.0.is_empty() && rest.1.is_empty()).then_some(verdicts)
    }
}

fn judge_one(
    submission: &Submission,
    thorough: bool,
    rest: &mut (&[Option<Found>], &[Option<LeafIndex>]),
) -> Option<MemberVerdict> {
    let Submission { entry, relied_absent, relied_free, .. } = submission;
    let own = split(&mut rest.0, 1)?[0];
    let twins = split(&mut rest.0, usize::from(thorough && entry.twin.is_some()))?;
    let relied = split(&mut rest.0, relied_absent.len())?;
    let guards = split(&mut rest.1, entry.guards.len())?;
    let free = split(&mut rest.1, relied_free.len())?;
    Some(match own {
        Some(Found { index, digest }) if digest == entry.digest => MemberVerdict::There(index),
        Some(Found { index, digest }) => MemberVerdict::Refused(SubmitError::Twin { index, digest }),
        None => twin_there(twins)
            .or_else(|| guard_taken(&entry.guards, guards))
            .or_else(|| relied_on_there(relied_absent, relied))
            .or_else(|| free.iter().flatten().next().map(|index| SubmitError::RelyOnAbsent { index: *index }))
            .map_or(MemberVerdict::New, MemberVerdict::Refused),
    })
}

fn twin_there(twins: &[Option<Found>]) -> Option<SubmitError> {
    let found = twins.iter().copied().flatten().next()?;
    Some(SubmitError::Twin { index: found.index, digest: found.digest })
}

fn guard_taken(keys: &[GuardKey], known: &[Option<LeafIndex>]) -> Option<SubmitError> {
    let (key, index) = keys.iter().zip(known).find_map(|(key, index)| Some((key.clone(), (*index)?)))?;
    Some(SubmitError::GuardTaken { key, index })
}

fn relied_on_there(asked: &[EntryDigest], known: &[Option<Found>]) -> Option<SubmitError> {
    let hits = asked.iter().zip(known).filter_map(|(asked, found)| found.filter(|it| it.digest == *asked));
    hits.map(|Found { index, .. }| SubmitError::RelyOnAbsent { index }).next()
}

fn split<'a, T>(rest: &mut &'a [T], count: usize) -> Option<&'a [T]> {
    let (taken, left) = rest.split_at_checked(count)?;
    *rest = left;
    Some(taken)
}

/// Claims of the members of one batch, so that no two members contradict each other.
#[derive(Default)]
pub(crate) struct BatchClaims {
    /// Keys of digests and twins, as the table `seen` has them.
    keys: HashSet<SeenKey>,
    digests: HashSet<EntryDigest>,
    guards: HashSet<GuardKey>,
}

impl BatchClaims {
    /// Adds the claims of one more member; returns `false` if they contradict those of an earlier one. The later
    /// one then waits until it is known whether the earlier one was committed.
    pub(crate) fn add(&mut self, submission: &Submission) -> bool {
        let Submission { entry, relied_absent, relied_free, .. } = submission;
        let keys = || std::iter::once(&entry.digest).chain(&entry.twin).map(seen_key);
        let clash = keys().any(|key| self.keys.contains(&key))
            || entry.guards.iter().chain(relied_free).any(|key| self.guards.contains(key))
            || relied_absent.iter().any(|digest| self.digests.contains(digest));
        if !clash {
            self.keys.extend(keys());
            self.digests.insert(entry.digest);
            self.guards.extend(entry.guards.iter().cloned());
        }
        !clash
    }
}

/// Appends the items to the tree in memory. The caller has just hashed their bytes again.
pub(crate) fn build<R>(
    head: &Head,
    tiles: &OpenTiles,
    at: u64,
    items: &[PooledSubmission<R>],
) -> Result<AppendedBatch, Halt> {
    let entries = items.iter().map(|item| item.submission.entry.clone()).collect();
    let mut built = Batch::append(head, tiles, at, entries).map_err(inconsistent)?;
    if let Some(first) = items.first() {
        check_extends(&head.edge, &built.growth, first.digest().leaf_hash()).map_err(inconsistent)?;
    }
    let policy = numbered(head, items).filter(|(_, item)| item.submission.is_policy).last();
    built.batch.to.policy = policy.map_or(head.policy, |(index, _)| index);
    built.batch.settled = numbered(head, items).filter(|(_, item)| item.in_inbox).map(settled).collect();
    built.batch.effects = items.iter().filter_map(|item| item.submission.effect.clone()).collect();
    Ok(built)
}

fn inconsistent(why: impl ToString) -> Halt {
    Halt::Inconsistent(why.to_string())
}

fn numbered<'a, R>(
    head: &Head,
    items: &'a [PooledSubmission<R>],
) -> impl Iterator<Item = (LeafIndex, &'a PooledSubmission<R>)> {
    (head.size().get()..).map(LeafIndex::new).zip(items)
}

fn settled<R>((index, item): (LeafIndex, &PooledSubmission<R>)) -> (EntryDigest, LeafIndex) {
    (item.digest(), index)
}

/// Reason why the new tree does not contain the old one.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub(crate) enum NotAnExtension {
    #[error("the new edge and the new root differ")]
    Edge,
    #[error("the first new leaf is not in the new tree")]
    FirstLeaf,
    #[error("the old tree is not the left part of the new one")]
    OldTree,
}

/// Checks the new root against the old edge, by another computation than the one that made it.
///
/// The left siblings on the path of the first new leaf are the perfect subtrees of the old tree: if they are those
/// of the old edge and the path leads to the new root, the new tree contains the old one unchanged. No tile is
/// read for this, and the cost does not depend on the batch.
pub(crate) fn check_extends(
    old: &CompactRange,
    growth: &TreeGrowth,
    first: LeafHash,
) -> Result<(), NotAnExtension> {
    let (size, root) = (growth.size(), growth.root());
    if growth.range().root() != root {
        return Err(NotAnExtension::Edge);
    }
    let index = old.size().next_leaf();
    let path = growth.path(index).ok_or(NotAnExtension::FirstLeaf)?;
    verify::inclusion(first, index, size, &path, root).map_err(|_| NotAnExtension::FirstLeaf)?;
    match left_siblings(index.get(), size.get(), &path).eq(old.hashes().iter().rev()) {
        true => Ok(()),
        false => Err(NotAnExtension::OldTree),
    }
}

/// Returns the left siblings of an inclusion path, lowest first. The path has been verified, so its length is right.
fn left_siblings(index: u64, size: u64, path: &[Hash]) -> impl Iterator<Item = &Hash> {
    let mut rest = path.iter();
    (0..u64::BITS).filter_map(move |level| {
        let (node, last) = (index.checked_shr(level)?, (size - 1).checked_shr(level)?);
        if node ^ 1 > last {
            return None; // no sibling: the node moves up as it is
        }
        let sibling = rest.next()?;
        (node & 1 == 1).then_some(sibling)
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn leaf(n: u64) -> LeafHash {
        EntryDigest::of(&n.to_be_bytes()).leaf_hash()
    }

    fn tree(size: u64) -> CompactRange {
        let mut range = CompactRange::empty();
        (0..size).for_each(|n| range.append(leaf(n)));
        range
    }

    #[test]
    fn every_honest_growth_extends_the_tree_it_came_from() {
        for size in 0..70 {
            let old = tree(size);
            for added in 1..70 {
                let leaves: Vec<LeafHash> = (size..size + added).map(leaf).collect();
                let growth = old.grow(&leaves);
                assert_eq!(check_extends(&old, &growth, leaves[0]), Ok(()), "{size} + {added}");
            }
        }
    }

    #[test]
    fn a_bit_that_flips_in_the_edge_while_the_tree_grows_is_found() {
        for size in 1..70 {
            let old = tree(size);
            for damaged in 0..old.hashes().len() {
                let mut hashes = old.hashes().to_vec();
                let mut bytes = *hashes[damaged].as_bytes();
                bytes[31] ^= 1;
                hashes[damaged] = Hash::from_bytes(bytes);
                let wrong = CompactRange::from_parts(old.size(), hashes).unwrap();
                for added in 1..20 {
                    let leaves: Vec<LeafHash> = (size..size + added).map(leaf).collect();
                    let growth = wrong.grow(&leaves);
                    assert_eq!(check_extends(&old, &growth, leaves[0]), Err(NotAnExtension::OldTree));
                }
            }
        }
    }

    #[test]
    fn a_tree_with_another_first_leaf_or_of_another_size_is_found() {
        for size in 0..40 {
            let old = tree(size);
            let growth = old.grow(&[leaf(1000), leaf(1001)]);
            assert_eq!(check_extends(&old, &growth, leaf(2000)), Err(NotAnExtension::FirstLeaf));
            let shorter = tree(size + 1);
            assert!(check_extends(&shorter, &growth, leaf(1000)).is_err());
        }
    }

    #[test]
    fn an_answer_with_another_number_of_rows_judges_nothing() {
        let ask = LookUp { digests: vec![EntryDigest::of(b"a")], guards: Vec::new() };
        let known = KnownEntries { found: vec![None; ask.digests.len()], guards: Vec::new() };
        assert!(known.judge::<()>(&[], false).is_none());
        assert!(KnownEntries::default().judge::<()>(&[], false).is_some_and(|verdicts| verdicts.is_empty()));
    }
}
