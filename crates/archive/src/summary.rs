//! The summary that the verification of an archive returns.

use merkle::{LeafIndex, RootHash, TreeSize};
use store::{HeadSignature, LogKey, Source};

use crate::{ArchivePurpose, RecordCounts};

/// Summary of a verified archive.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ArchiveSummary {
    /// The log's origin.
    pub origin: String,
    /// The purpose of the archive.
    pub purpose: ArchivePurpose,
    /// Start of writing, in Unix seconds.
    pub made_at: u64,
    /// Tree size of the newest head.
    pub size: TreeSize,
    /// Root of the newest head.
    pub root: RootHash,
    /// Number of the newest batch.
    pub batch: u64,
    /// The epoch when the archive was made.
    pub epoch: u64,
    /// Time of the newest head, in Unix seconds.
    pub at: u64,
    /// Leaf index of the policy in force.
    pub policy: LeafIndex,
    /// The numbers of records.
    pub counts: RecordCounts,
    /// The log's keys.
    pub keys: Vec<LogKey>,
    /// The signatures over the newest head.
    pub signatures: Vec<HeadSignature>,
    /// Root of the requested size ([`verify_wanting`](crate::verify_wanting)); `None` if no head has that size.
    pub wanted_root: Option<RootHash>,
    /// The archive's checksum, which identifies it.
    pub source: Source,
}
