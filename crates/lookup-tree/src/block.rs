//! Blocks: the stored form of a run.
//!
//! A run is cut into blocks of at most [`MAX_BLOCK_BYTES`], in the order of its postings. A store keeps each under its
//! first posting. The base of the encoding is the first leaf of the run, so that numbers are short.
//!
//! Not here: where blocks are stored. Roots do not depend on how a run is cut.

use std::ops::RangeInclusive;

use merkle::LeafIndex;

use crate::group::{GroupEncoder, GroupError, GroupReader};
use crate::limits::MAX_BLOCK_BYTES;
use crate::posting::{OutOfOrder, Posting};

/// Some neighbouring postings of a run, encoded.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct PostingBlock {
    /// The first posting of the block, which is in `bytes`, too.
    pub first: Posting,
    /// The encoded postings, at most [`MAX_BLOCK_BYTES`].
    pub bytes: Vec<u8>,
}

/// Error of [`BlockWriter::push`]; the writer is unchanged then.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum BlockWriteError {
    /// The posting does not come after the one before it.
    #[error(transparent)]
    OutOfOrder(#[from] OutOfOrder),
    /// The leaf of the posting comes before the first leaf of the run.
    #[error("leaf {leaf} is before the run, which starts at leaf {start}")]
    BeforeRun {
        /// The posting's leaf.
        leaf: LeafIndex,
        /// The first leaf of the run.
        start: LeafIndex,
    },
}

/// Cuts a run into blocks.
#[derive(Clone, Debug)]
pub struct BlockWriter {
    start: LeafIndex,
    first: Option<Posting>,
    encoder: GroupEncoder,
}

impl BlockWriter {
    /// Creates a writer for a run that starts at this leaf.
    pub fn new(start: LeafIndex) -> Self {
        Self { start, first: None, encoder: GroupEncoder::new(start) }
    }

    /// Adds the next posting. Returns the block before it, if the posting does not fit into that one.
    pub fn push(&mut self, posting: Posting) -> Result<Option<PostingBlock>, BlockWriteError> {
        OutOfOrder::check(self.encoder.last(), posting)?;
        if posting.leaf < self.start {
            return Err(BlockWriteError::BeforeRun { leaf: posting.leaf, start: self.start });
        }
        let full = self.encoder.length_with(posting) > MAX_BLOCK_BYTES;
        let block = if full { self.take_block() } else { None };
        self.first.get_or_insert(posting);
        self.encoder.push(posting);
        Ok(block)
    }

    /// Returns the last block; `None` if the run has no posting.
    pub fn finish(mut self) -> Option<PostingBlock> {
        self.take_block()
    }

    fn take_block(&mut self) -> Option<PostingBlock> {
        let encoder = std::mem::replace(&mut self.encoder, GroupEncoder::new(self.start));
        Some(PostingBlock { first: self.first.take()?, bytes: encoder.finish() })
    }
}

/// Reads all postings of a block of a run that starts at `start`.
pub fn read_block(bytes: &[u8], start: LeafIndex) -> Result<Vec<Posting>, GroupError> {
    GroupReader::new(bytes, start).collect()
}

/// Reads the postings of a block that are in `wanted`. The part of the block after them is not read.
pub fn read_block_between(
    bytes: &[u8],
    start: LeafIndex,
    wanted: &RangeInclusive<Posting>,
) -> Result<Vec<Posting>, GroupError> {
    let before = |read: &Result<Posting, GroupError>| read.is_ok_and(|posting| posting < *wanted.start());
    let until = |read: &Result<Posting, GroupError>| read.is_err() || read.is_ok_and(|p| p <= *wanted.end());
    GroupReader::new(bytes, start).skip_while(before).take_while(until).collect()
}
