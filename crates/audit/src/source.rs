//! Data sources of an audit: a database, or a service's evidence over HTTP.
//!
//! A source is not trusted. The same fact is read in several ways, and each disagreement is a finding.

use async_trait::async_trait;
use bytes::Bytes;
use merkle::{EntryDigest, LeafHash, LeafIndex, RootHash, TreeSize};
use store::{Collateral, CommittedHead, Found, GuardKey, StoreError};

/// The head up to which a log is audited; see [`AuditSource::head`].
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct AuditHead {
    /// Tree size: the number of leaves.
    pub size: TreeSize,
    /// Root hash at that size.
    pub root: RootHash,
    /// Batch number and commit time in Unix seconds; `None` if the source does not give them.
    pub batch: Option<(u64, u64)>,
    /// Leaf of the newest policy; `None` if the source does not give it.
    pub policy: Option<LeafIndex>,
}

/// Row of an entry, with all that is needed to decide it again.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct EntryEvidence {
    /// Leaf index of the entry.
    pub index: LeafIndex,
    /// SHA-256 digest of the statement, from which the leaf hash is computed.
    pub digest: EntryDigest,
    /// Bytes of the statement; `None` once erased.
    pub statement: Option<Bytes>,
    /// Leaf of the policy entry that admitted the statement.
    pub policy: LeafIndex,
    /// Name of the rule in that policy.
    pub rule: String,
    /// Facts that are stored with the entry ([`registration::Permit::facts`]), as canonical JSON.
    pub facts: String,
    /// Commit time of the entry's batch in Unix seconds; `None` if it must be taken from the history of heads.
    pub at: Option<u64>,
    /// Reason why the receipt that the source gave for this entry does not verify. `None` if it verifies, or if the source
    /// gives no receipt.
    pub refused_receipt: Option<String>,
}

/// A leaf as the source returns it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum LeafRow {
    /// The entry's row, with its [`EntryEvidence`].
    Kept(Box<EntryEvidence>),
    /// A row that is missing or cannot be read.
    Lost {
        /// Leaf index of the missing row.
        index: LeafIndex,
        /// Description of the damage by the source.
        why: String,
    },
}

impl LeafRow {
    /// Returns the leaf index.
    pub fn index(&self) -> LeafIndex {
        match self {
            LeafRow::Kept(evidence) => evidence.index,
            LeafRow::Lost { index, .. } => *index,
        }
    }
}

/// A head of the history, with the commit times that its signatures cover.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct HistoryHead {
    /// The head according to its row.
    pub head: CommittedHead,
    /// For each receipt key's signature over the head: the signed commit time, or the reason why it does not verify.
    pub signed: Vec<Result<u64, String>>,
}

/// Answer to one question; the error describes damage that affects this question only.
pub type LookUpAnswer<T> = Result<Option<T>, String>;

/// Read access to a log for an [`Audit`](crate::Audit).
#[async_trait]
pub trait AuditSource: Send + Sync {
    /// Returns the newest head.
    async fn head(&self) -> Result<AuditHead, SourceError>;

    /// Returns exactly `count` leaves from `from` on, in order. The head must cover them.
    async fn rows(&self, from: LeafIndex, count: usize) -> Result<Vec<LeafRow>, SourceError>;

    /// Returns the certificate chain and payload that are stored with an entry.
    async fn collateral(&self, leaf: LeafIndex) -> Result<Vec<Collateral>, SourceError>;

    /// Returns up to `limit` heads of the history with a batch number of at least `from`, in order. Empty if there are
    /// no more, or if the source does not give them.
    async fn heads(&self, from: u64, limit: usize) -> Result<Vec<HistoryHead>, SourceError>;

    /// Returns the leaf hashes of the level 0 tile with this number; fewer, or none, if the tile is damaged.
    async fn leaves(&self, tile: u64) -> Result<Vec<LeafHash>, SourceError>;

    /// Returns `true` if the source has the log's own indexes of entry IDs and claims. Otherwise the indexes are not
    /// checked, and the audit records claims and leaf positions itself.
    fn keeps_indexes(&self) -> bool {
        true
    }

    /// Looks up entries by digest or twin digest, with one answer per digest. Called only if
    /// [`keeps_indexes`](Self::keeps_indexes).
    async fn find(&self, digests: &[EntryDigest]) -> Result<Vec<LookUpAnswer<Found>>, SourceError>;

    /// Looks up the entries that made these claims, with one answer per key. Called only if
    /// [`keeps_indexes`](Self::keeps_indexes).
    async fn guards(&self, keys: &[GuardKey]) -> Result<Vec<LookUpAnswer<LeafIndex>>, SourceError>;
}

/// Error of an [`AuditSource`] that gives no answer.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum SourceError {
    /// The log cannot be reached at present.
    #[error("the log is not available: {0}")]
    Unavailable(String),
    /// The log or its store refuses the request.
    #[error("{0}")]
    Refused(String),
    /// The statement of this leaf may be read only with the role `auditor`.
    #[error("the statement of leaf {0} is closed: reading it takes a token with the role auditor")]
    Closed(LeafIndex),
    /// No trusted key signed the head.
    #[error("{0}")]
    Untrusted(String),
    /// The log's data contradicts itself, so that nothing can be checked.
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
