//! The postings of any run, merged from pieces.
//!
//! Eight readers of one level merge into one of the next level, so that a posting is compared with seven others for each
//! level, and only one block of each piece is in memory.

use std::collections::{BTreeSet, VecDeque, btree_set};
use std::iter::Peekable;

use lookup_tree::limits::MERGED_RUNS;
use lookup_tree::{
    BlindCode, LeafRange, MergeStep, Posting, PostingPrefix, RunBuilder, RunMerger, RunSummary, ScheduledRun,
};
use merkle::LeafIndex;

use crate::error::RecomputationError;
use crate::limits::MERGE_CHUNK;
use crate::piece::{Piece, piece_of};
use crate::piece_folder::PieceFolder;

/// The postings that a run must have, in order. It ends after an error.
pub struct RunStream<'a> {
    postings: PostingReader<'a>,
    leaves: LeafRange,
    erased: BTreeSet<LeafIndex>,
    /// The blind postings of erased leaves that are not given yet.
    blind: Peekable<btree_set::IntoIter<LeafIndex>>,
    /// A posting that was read, and comes after a blind one.
    held: Option<Posting>,
}

impl<'a> RunStream<'a> {
    /// Streams a run whose leaves are all in the pieces. `open` is the last piece, which may not be in the folder.
    pub(crate) fn of(
        folder: &'a PieceFolder,
        open: &'a Piece,
        run: &ScheduledRun,
        erased: BTreeSet<LeafIndex>,
    ) -> Self {
        let level = if run.id.is_tail() { 0 } else { run.id.level };
        let postings = PostingReader::of(folder, open, level, piece_of(run.leaves.start));
        let blind = erased.clone().into_iter().peekable();
        Self { postings, leaves: run.leaves, erased, blind, held: None }
    }

    /// Computes size and root of the subtree at a place.
    ///
    /// # Errors
    /// Returns a [`RecomputationError`] if a piece cannot be read or is damaged.
    pub fn summarize(self, place: &PostingPrefix) -> Result<RunSummary, RecomputationError> {
        let mut tree = RunBuilder::new();
        for posting in self {
            let posting = posting?;
            if place.contains(posting) {
                tree.push(posting).map_err(RecomputationError::Order)?;
                tree.take_nodes();
            }
        }
        Ok(tree.finish().0)
    }

    /// Reads the next posting that is kept: those of erased leaves, and in the tail those of later leaves, are not.
    fn next_kept(&mut self) -> Result<Option<Posting>, RecomputationError> {
        if let Some(held) = self.held.take() {
            return Ok(Some(held));
        }
        while let Some(posting) = self.postings.next()? {
            if self.leaves.contains(posting.leaf) && !self.erased.contains(&posting.leaf) {
                return Ok(Some(posting));
            }
        }
        Ok(None)
    }
}

impl Iterator for RunStream<'_> {
    type Item = Result<Posting, RecomputationError>;

    fn next(&mut self) -> Option<Self::Item> {
        let kept = match self.next_kept() {
            Ok(kept) => kept,
            Err(error) => return Some(Err(error)),
        };
        let is_first =
            |leaf: &LeafIndex| kept.is_none_or(|kept| Posting::blind(BlindCode::Erased, *leaf) < kept);
        match self.blind.next_if(is_first) {
            Some(leaf) => {
                self.held = kept;
                Some(Ok(Posting::blind(BlindCode::Erased, leaf)))
            }
            None => kept.map(Ok),
        }
    }
}

/// Reads the postings of neighbouring pieces in order.
enum PostingReader<'a> {
    /// The piece in memory.
    Open(btree_set::Iter<'a, Posting>),
    /// A piece in the folder.
    Stored { folder: &'a PieceFolder, number: u64, at: u64, block: VecDeque<Posting> },
    /// Eight readers of the level below.
    Merged { merger: RunMerger, inputs: Vec<PostingReader<'a>> },
}

impl<'a> PostingReader<'a> {
    /// Reads the pieces of a run of this level that begins with piece `first`.
    fn of(folder: &'a PieceFolder, open: &'a Piece, level: u8, first: u64) -> Self {
        match level.checked_sub(1) {
            None if first == open.number() => Self::Open(open.postings.iter()),
            None => Self::Stored { folder, number: first, at: 0, block: VecDeque::new() },
            Some(below) => {
                let pieces = MERGED_RUNS.pow(below.into());
                let input = |nth| Self::of(folder, open, below, first + nth * pieces);
                let inputs: Vec<Self> = (0..MERGED_RUNS).map(input).collect();
                Self::Merged { merger: RunMerger::new(inputs.len()), inputs }
            }
        }
    }

    fn next(&mut self) -> Result<Option<Posting>, RecomputationError> {
        match self {
            Self::Open(postings) => Ok(postings.next().copied()),
            Self::Stored { folder, number, at, block } => {
                if block.is_empty()
                    && let Some((postings, next)) = folder.next_block(*number, *at)?
                {
                    (*block, *at) = (postings.into(), next);
                }
                Ok(block.pop_front())
            }
            Self::Merged { merger, inputs } => loop {
                match merger.step() {
                    MergeStep::Posting(posting) => return Ok(Some(posting)),
                    MergeStep::End => return Ok(None),
                    MergeStep::Needs(input) => match inputs[input].chunk()? {
                        postings if postings.is_empty() => merger.end(input),
                        postings => merger.supply(input, postings),
                    },
                }
            },
        }
    }

    /// The next few postings; none at the end.
    fn chunk(&mut self) -> Result<Vec<Posting>, RecomputationError> {
        let mut postings = Vec::with_capacity(MERGE_CHUNK);
        while postings.len() < MERGE_CHUNK {
            match self.next()? {
                Some(posting) => postings.push(posting),
                None => break,
            }
        }
        Ok(postings)
    }
}
