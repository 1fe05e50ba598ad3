//! Prefixes of postings: the bits that all postings below a node share, and so what a place in the tree can hold.

use merkle::LeafIndex;

use crate::posting::{POSTING_BYTES, Posting, TermKey};

/// Length of a posting in bits.
pub const POSTING_BITS: u8 = 8 * POSTING_BYTES as u8;
/// Length in bytes of an encoded prefix.
pub const PREFIX_BYTES: usize = POSTING_BYTES + 1;

/// The first `depth` bits of postings. Bits count from the most significant one of the first byte.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct PostingPrefix {
    /// The first posting that has the prefix: all its other bits are zero.
    first: Posting,
    depth: u8,
}

impl PostingPrefix {
    /// The empty prefix, which every posting has: the place of a tree's root.
    pub const ROOT: Self =
        Self { first: Posting { key: TermKey::from_bytes([0; 16]), leaf: LeafIndex::new(0) }, depth: 0 };

    /// The first `depth` bits of a posting, at most all 192.
    pub fn of(posting: Posting, depth: u8) -> Self {
        let depth = depth.min(POSTING_BITS);
        let (key, leaf) = bits(posting);
        let (key_rest, leaf_rest) = rest(depth);
        Self { first: posting_of(key & !key_rest, leaf & !leaf_rest), depth }
    }

    /// The bits that two postings share at their beginning.
    pub fn common(one: Posting, other: Posting) -> Self {
        Self::of(one, common_bits(one, other))
    }

    /// The number of bits.
    pub const fn depth(&self) -> u8 {
        self.depth
    }

    /// The smallest posting with this prefix. Its bytes are the prefix, filled with zero bits.
    pub const fn first(&self) -> Posting {
        self.first
    }

    /// The largest posting with this prefix.
    pub fn last(&self) -> Posting {
        let (key, leaf) = bits(self.first);
        let (key_rest, leaf_rest) = rest(self.depth);
        posting_of(key | key_rest, leaf | leaf_rest)
    }

    /// Returns the bytes of [`first`](Self::first), then the depth. Prefixes are ordered by these bytes.
    pub fn to_bytes(self) -> [u8; PREFIX_BYTES] {
        let mut bytes = [0; PREFIX_BYTES];
        bytes[..POSTING_BYTES].copy_from_slice(&self.first.to_bytes());
        bytes[POSTING_BYTES] = self.depth;
        bytes
    }

    /// Reads the output of [`to_bytes`](Self::to_bytes); `None` for other bytes.
    pub fn from_bytes(bytes: &[u8; PREFIX_BYTES]) -> Option<Self> {
        let prefix = Self::of(Posting::from_bytes(bytes.first_chunk()?), bytes[POSTING_BYTES]);
        (prefix.to_bytes() == *bytes).then_some(prefix)
    }

    /// Returns `true` if the posting has this prefix.
    pub fn contains(&self, posting: Posting) -> bool {
        self.first <= posting && posting <= self.last()
    }

    /// Returns `true` if this prefix begins with `other`, or is the same.
    pub fn is_within(&self, other: &PostingPrefix) -> bool {
        self.depth >= other.depth && other.contains(self.first)
    }

    /// The places of a node's children: the prefix and a zero bit, and the prefix and a one bit. `None` if no bit is left.
    pub fn children(&self) -> Option<(Self, Self)> {
        if self.depth >= POSTING_BITS {
            return None;
        }
        let depth = self.depth + 1;
        Some((Self { first: self.first, depth }, Self::of(self.last(), depth)))
    }
}

/// The number of bits that two postings share at their beginning.
pub(crate) fn common_bits(one: Posting, other: Posting) -> u8 {
    let ((one_key, one_leaf), (other_key, other_leaf)) = (bits(one), bits(other));
    let shared = match (one_key ^ other_key).leading_zeros() {
        128 => 128 + (one_leaf ^ other_leaf).leading_zeros(),
        shared => shared,
    };
    shared as u8
}

/// The bits of key and leaf that come after the first `depth` bits.
fn rest(depth: u8) -> (u128, u64) {
    let of_leaf = u32::from(depth.saturating_sub(128));
    (u128::MAX.checked_shr(depth.into()).unwrap_or(0), u64::MAX.checked_shr(of_leaf).unwrap_or(0))
}

fn bits(posting: Posting) -> (u128, u64) {
    (u128::from_be_bytes(*posting.key.as_bytes()), posting.leaf.get())
}

fn posting_of(key: u128, leaf: u64) -> Posting {
    Posting { key: TermKey::from_bytes(key.to_be_bytes()), leaf: LeafIndex::new(leaf) }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_prefix_holds_what_begins_with_it() {
        let posting = Posting { key: TermKey::of(4, b"agent"), leaf: LeafIndex::new(0x0123_4567_89ab_cdef) };
        for depth in 0..=POSTING_BITS {
            let prefix = PostingPrefix::of(posting, depth);
            assert!(prefix.contains(posting) && prefix.is_within(&PostingPrefix::ROOT));
            assert!(prefix.first() <= posting && posting <= prefix.last());
            assert_eq!(PostingPrefix::common(prefix.first(), prefix.last()), prefix);
            assert_eq!(PostingPrefix::from_bytes(&prefix.to_bytes()), Some(prefix));
            let Some((left, right)) = prefix.children() else { continue };
            assert!(prefix.to_bytes() < left.to_bytes() && left.to_bytes() < right.to_bytes());
            assert!(left.is_within(&prefix) && right.is_within(&prefix) && !prefix.is_within(&left));
            assert_eq!(left.contains(posting), !right.contains(posting));
            assert_eq!((left.first(), right.last()), (prefix.first(), prefix.last()));
        }
        let all_bits = PostingPrefix::of(posting, POSTING_BITS);
        assert_eq!(all_bits.children(), None);
        let mut longer = all_bits.to_bytes();
        longer[POSTING_BYTES] += 1;
        assert_eq!(PostingPrefix::from_bytes(&longer), None);
    }
}
