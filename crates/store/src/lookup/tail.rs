//! The terms of the newest entries, in memory.

use std::collections::BTreeSet;
use std::ops::Range;

use lookup_tree::{BlindCode, Posting, TermKey};
use merkle::LeafIndex;

use super::catalog::{Build, ErasedLeaves};
use super::terms::{EntryTerms, ListedValue};
use super::values::ValueSearch;

/// The postings and listed values of the leaves `from..to`.
#[derive(Debug, Default)]
pub(super) struct Tail {
    from: u64,
    to: u64,
    /// The drop of the index after which the leaves were read.
    dropped: Build,
    postings: BTreeSet<Posting>,
    listed: BTreeSet<(ListedValue, LeafIndex)>,
}

impl Tail {
    /// A tail without leaves that begins here.
    pub(super) fn at(from: u64, dropped: Build) -> Self {
        Self { from, to: from, dropped, ..Self::default() }
    }

    pub(super) fn from(&self) -> u64 {
        self.from
    }

    pub(super) fn to(&self) -> u64 {
        self.to
    }

    pub(super) fn dropped(&self) -> Build {
        self.dropped
    }

    /// Adds the next leaf.
    pub(super) fn push(&mut self, terms: EntryTerms) {
        let leaf = LeafIndex::new(self.to);
        self.postings.extend(terms.keys.into_iter().map(|key| Posting { key, leaf }));
        self.listed.extend(terms.listed.into_iter().map(|value| (value, leaf)));
        self.to += 1;
    }

    /// Forgets the leaves before `from`.
    pub(super) fn trim(&mut self, from: u64) {
        if from <= self.from {
            return;
        }
        self.from = from;
        self.postings.retain(|posting| posting.leaf.get() >= from);
        self.listed.retain(|(_, leaf)| leaf.get() >= from);
    }

    /// The leaves of a range that have a key, ascending.
    pub(super) fn leaves(&self, key: TermKey, within: Range<u64>) -> Vec<LeafIndex> {
        if within.is_empty() {
            return Vec::new();
        }
        let posting = |leaf| Posting { key, leaf: LeafIndex::new(leaf) };
        let range = posting(within.start)..posting(within.end);
        self.postings.range(range).map(|posting| posting.leaf).collect()
    }

    /// The postings of a range of leaves, in order; of erased ones only the blind posting.
    pub(super) fn postings(&self, within: &Range<u64>, erased: &BTreeSet<LeafIndex>) -> Vec<Posting> {
        let postings = self.postings.iter().copied();
        let kept = postings
            .filter(|posting| within.contains(&posting.leaf.get()) && !erased.contains(&posting.leaf));
        let blind = erased.iter().map(|leaf| Posting::blind(BlindCode::Erased, *leaf));
        let mut postings: Vec<Posting> = blind.chain(kept).collect();
        // The blind postings are the first but for those of other codes.
        postings.sort_unstable();
        postings
    }

    /// The listed values of a range of leaves without erased ones, in order, each once.
    pub(super) fn listed(&self, within: &Range<u64>, erased: &BTreeSet<LeafIndex>) -> Vec<ListedValue> {
        let listed = self.listed.iter();
        let kept = listed.filter(|(_, leaf)| within.contains(&leaf.get()) && !erased.contains(leaf));
        let mut values: Vec<ListedValue> = kept.map(|(value, _)| value.clone()).collect();
        values.dedup();
        values
    }

    /// The values that a search lists of the leaves `within` that are not erased, in order.
    pub(super) fn values(
        &self,
        search: &ValueSearch<'_>,
        within: &Range<u64>,
        erased: &ErasedLeaves,
    ) -> Vec<ListedValue> {
        let from = self.listed.range((search.first(), LeafIndex::new(0))..);
        let values = from.take_while(|(value, _)| search.lists(value));
        let values = values.filter(|(_, leaf)| within.contains(&leaf.get()) && !erased.contains_key(leaf));
        let mut found: Vec<ListedValue> = Vec::new();
        for (value, _) in values {
            if found.last() == Some(value) {
                continue;
            }
            if found.len() == search.limit {
                break;
            }
            found.push(value.clone());
        }
        found
    }
}
