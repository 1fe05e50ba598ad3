//! Where an audit reads from: a database, or a service's evidence over HTTP.
//!
//! A source is not believed. It is asked for the same thing by several ways, and what does not agree is a finding.

use async_trait::async_trait;
use bytes::Bytes;
use merkle::{EntryDigest, LeafHash, LeafIndex, RootHash, TreeSize};
use store::{Collateral, CommittedHead, Found, GuardKey, StoreError};

/// The head that is audited.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Head {
    /// How many leaves.
    pub size: TreeSize,
    /// The root over them.
    pub root: RootHash,
    /// The number of its batch and when that was committed, if the source tells.
    pub batch: Option<(u64, u64)>,
    /// The newest policy's leaf, if the source tells.
    pub policy: Option<LeafIndex>,
}

/// An entry with all that is needed to decide it again.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Evidence {
    /// Its leaf.
    pub index: LeafIndex,
    /// SHA-256 of the statement: what the tree holds.
    pub digest: EntryDigest,
    /// The statement; `None` once erased.
    pub statement: Option<Bytes>,
    /// The policy entry that admitted it.
    pub policy: LeafIndex,
    /// The rule of that policy.
    pub rule: String,
    /// Its facts, canonical JSON.
    pub facts: String,
    /// When its batch was committed, if the source tells with the entry; else the history of heads does.
    pub at: Option<u64>,
}

/// A leaf as the source has it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Row {
    /// Its row.
    Kept(Box<Evidence>),
    /// No row, or none that can be read.
    Lost {
        /// The leaf.
        index: LeafIndex,
        /// What the source says.
        why: String,
    },
}

impl Row {
    /// The leaf.
    pub fn index(&self) -> LeafIndex {
        match self {
            Row::Kept(evidence) => evidence.index,
            Row::Lost { index, .. } => *index,
        }
    }
}

/// A head of the history, with the times at which signatures say that it was committed.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SignedHead {
    /// The head as its row gives it.
    pub head: CommittedHead,
    /// For each signature of a receipt key over it: the signed time, or why it proves nothing.
    pub signed: Vec<Result<u64, String>>,
}

/// One answer to one question; the error is damage that concerns this question only.
pub type Answer<T> = Result<Option<T>, String>;

/// Where an audit reads from.
#[async_trait]
pub trait Source: Send + Sync {
    /// The newest head.
    async fn head(&self) -> Result<Head, SourceError>;

    /// Exactly `count` leaves from `from` on, in order; the head covers them.
    async fn rows(&self, from: LeafIndex, count: usize) -> Result<Vec<Row>, SourceError>;

    /// What is kept beside an entry.
    async fn collateral(&self, leaf: LeafIndex) -> Result<Vec<Collateral>, SourceError>;

    /// Up to `limit` heads of the history with a batch number of `from` or more, in order. None: there are no
    /// more, or the source does not tell.
    async fn heads(&self, from: u64, limit: usize) -> Result<Vec<SignedHead>, SourceError>;

    /// The leaf hashes of the tile with this number; fewer, or none, when the tile is damaged.
    async fn leaves(&self, tile: u64) -> Result<Vec<LeafHash>, SourceError>;

    /// Whether it has the log's own indexes, of entry IDs and of claims. Where it has none they are not checked, and
    /// the audit keeps claims and places itself.
    fn keeps_indexes(&self) -> bool {
        true
    }

    /// Where these digests stand, or those whose twin they are: one answer for each. Asked of a source that keeps
    /// indexes only.
    async fn find(&self, digests: &[EntryDigest]) -> Result<Vec<Answer<Found>>, SourceError>;

    /// Which entries made these claims: one answer for each. Asked of a source that keeps indexes only.
    async fn guards(&self, keys: &[GuardKey]) -> Result<Vec<Answer<LeafIndex>>, SourceError>;
}

/// Why a source did not answer.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum SourceError {
    /// Not now.
    #[error("the log is not available: {0}")]
    Unavailable(String),
    /// Not so.
    #[error("{0}")]
    Refused(String),
    /// Not for this caller.
    #[error("the statement of leaf {0} is closed: reading it takes a token with the role auditor")]
    Closed(LeafIndex),
    /// Nobody who is trusted vouches for its head.
    #[error("{0}")]
    Untrusted(String),
    /// Its own parts contradict each other, so that nothing can be checked.
    #[error("the log is damaged: {0}")]
    Damaged(String),
}

impl From<StoreError> for SourceError {
    fn from(error: StoreError) -> Self {
        match error {
            StoreError::Unavailable(why) => SourceError::Unavailable(why),
            StoreError::Storage(..) => SourceError::Unavailable(error.to_string()),
            StoreError::Refused(why) | StoreError::InUse(why) | StoreError::NoLog(why) => {
                SourceError::Refused(why)
            }
            StoreError::Frozen => SourceError::Refused(error.to_string()),
            StoreError::Damaged(why) => SourceError::Damaged(why),
        }
    }
}
