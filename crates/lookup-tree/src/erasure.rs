//! Erasure of entries from a run: the postings of an erased leaf leave, and its blind posting comes.

use std::collections::BTreeSet;

use merkle::LeafIndex;

use crate::posting::{BlindCode, Posting};

/// Returns the postings of a run after the erasure of some of its leaves, in order.
pub fn erase(postings: &[Posting], erased: &BTreeSet<LeafIndex>) -> Vec<Posting> {
    let blind = erased.iter().map(|leaf| Posting::blind(BlindCode::Erased, *leaf));
    let kept = postings.iter().copied().filter(|posting| !erased.contains(&posting.leaf));
    let mut postings: Vec<Posting> = kept.chain(blind).collect();
    postings.sort_unstable();
    postings
}
