//! The tree of a run from its postings, in one pass.
//!
//! Two neighbours in the order of postings share a number of bits, and the inner node that parts them has that depth. So
//! the builder keeps the subtrees on the right edge of the tree, each with the depth at which its right sibling begins,
//! and joins them once a neighbour with a smaller depth comes. A subtree with few postings is not hashed before it is
//! known not to grow: memory is bounded by the depth of the tree.

use merkle::Hash;

use crate::limits::{MAX_BUCKET_POSTINGS, MIN_STORED_NODE_POSTINGS};
use crate::node::{InnerNode, hash_bucket, hash_inner};
use crate::posting::{OutOfOrder, Posting};
use crate::prefix::{PostingPrefix, common_bits};

/// Size and root of a run.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct RunSummary {
    /// The number of postings.
    pub postings: u64,
    /// The number of blind postings among them.
    pub blind: u64,
    /// Root of the tree.
    pub root: Hash,
}

impl RunSummary {
    /// Computes the summary of a run from all its postings, in order.
    ///
    /// # Errors
    /// Returns [`OutOfOrder`] if a posting does not come after the one before it.
    pub fn of(postings: &[Posting]) -> Result<Self, OutOfOrder> {
        let mut builder = RunBuilder::new();
        for posting in postings {
            builder.push(*posting)?;
        }
        Ok(builder.finish().0)
    }
}

/// Computes the hash of the subtree over postings that are in order.
pub(crate) fn hash_ordered(postings: &[Posting]) -> Hash {
    let mut builder = RunBuilder::new();
    postings.iter().for_each(|posting| builder.push_ordered(*posting));
    builder.finish().0.root
}

/// Computes the root of a run from a stream of its postings.
#[derive(Clone, Debug, Default)]
pub struct RunBuilder {
    /// Postings of the subtrees on the edge that are not hashed, in order.
    unhashed: Vec<Posting>,
    /// Subtrees whose right sibling is not complete, and the depth of the node over both.
    edge: Vec<(Subtree, u8)>,
    /// The subtree of the last posting.
    current: Option<Subtree>,
    last: Option<Posting>,
    summary: Counts,
    stored: Vec<InnerNode>,
}

#[derive(Clone, Copy, Debug, Default)]
struct Counts {
    postings: u64,
    blind: u64,
}

/// A complete subtree on the edge.
#[derive(Clone, Copy, Debug)]
struct Subtree {
    postings: u64,
    /// `None` if the postings fit into a bucket; they are then in `unhashed`.
    hash: Option<Hash>,
}

impl RunBuilder {
    /// Creates the builder of an empty run.
    pub fn new() -> Self {
        Self::default()
    }

    /// Adds the next posting.
    ///
    /// # Errors
    /// Returns [`OutOfOrder`] if it does not come after the one before it; the builder is unchanged then.
    pub fn push(&mut self, posting: Posting) -> Result<(), OutOfOrder> {
        OutOfOrder::check(self.last, posting)?;
        self.push_ordered(posting);
        Ok(())
    }

    /// Adds a posting that comes after the one before it.
    fn push_ordered(&mut self, posting: Posting) {
        if let (Some(last), Some(current)) = (self.last, self.current) {
            let depth = common_bits(last, posting);
            let complete = self.join_deeper_than(depth, last, current);
            self.edge.push((complete, depth));
        }
        self.unhashed.push(posting);
        self.current = Some(Subtree { postings: 1, hash: None });
        self.last = Some(posting);
        self.summary.postings += 1;
        self.summary.blind += u64::from(posting.blind_code().is_some());
    }

    /// Takes the completed inner nodes with at least [`MIN_STORED_NODE_POSTINGS`] postings, children before parents. The
    /// caller stores them, so that proofs need not hash the run again.
    pub fn take_nodes(&mut self) -> Vec<InnerNode> {
        std::mem::take(&mut self.stored)
    }

    /// Completes the tree. Returns its summary, and the inner nodes to be stored that were not taken yet.
    pub fn finish(mut self) -> (RunSummary, Vec<InnerNode>) {
        let root = match (self.last, self.current) {
            (Some(last), Some(current)) => {
                let mut tree = current;
                while let Some((left, depth)) = self.edge.pop() {
                    tree = self.join(left, depth, last, tree);
                }
                self.hash(tree)
            }
            _ => hash_bucket(&[]),
        };
        let Counts { postings, blind } = self.summary;
        (RunSummary { postings, blind, root }, self.stored)
    }

    /// Joins `right` with the subtrees to its left as long as the node over them is deeper than `depth`.
    fn join_deeper_than(&mut self, depth: u8, last: Posting, mut right: Subtree) -> Subtree {
        while let Some((left, at)) = self.edge.pop_if(|(_, at)| *at > depth) {
            right = self.join(left, at, last, right);
        }
        right
    }

    /// Joins two siblings; `last` is the last posting of the right one.
    fn join(&mut self, left: Subtree, depth: u8, last: Posting, right: Subtree) -> Subtree {
        let postings = left.postings + right.postings;
        if postings <= MAX_BUCKET_POSTINGS as u64 {
            return Subtree { postings, hash: None };
        }
        // The right one first: its postings are the last ones that are not hashed.
        let right = self.hash(right);
        let left = self.hash(left);
        let prefix = PostingPrefix::of(last, depth);
        if postings >= MIN_STORED_NODE_POSTINGS {
            self.stored.push(InnerNode { prefix, postings, left, right });
        }
        Subtree { postings, hash: Some(hash_inner(&prefix, left, right)) }
    }

    /// Hashes a subtree; if it is a bucket, its postings are the last ones in `unhashed`, and are dropped.
    fn hash(&mut self, subtree: Subtree) -> Hash {
        subtree.hash.unwrap_or_else(|| {
            let start = self.unhashed.len() - subtree.postings as usize;
            let hash = hash_bucket(&self.unhashed[start..]);
            self.unhashed.truncate(start);
            hash
        })
    }
}
