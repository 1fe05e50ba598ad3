//! Reports of equivocation: the statement that was refused because it contradicts an entry.
//!
//! A guard says that a claim is taken; who claims it a second time has said two things that cannot
//! both be true, and both are signed. The entry is on the log, the refused statement is kept here.
//!
//! Not here: which refusals are contradictions (`registration`).

use async_trait::async_trait;
use bytes::Bytes;
use merkle::{EntryDigest, LeafIndex};

use crate::{GuardKey, StoreError};

/// How many refused statements are kept for one guard: two prove the contradiction already, and
/// nobody fills the database by contradicting himself.
pub const REPORTS_PER_GUARD: usize = 8;

/// Keeping what contradicts the log.
#[async_trait]
pub trait Reports: Send + Sync + 'static {
    /// Keeps a report; answers whether it is kept, now or since before. A second report of the
    /// same guard and refused statement changes nothing; once a guard has [`REPORTS_PER_GUARD`]
    /// no other is taken, and the answer is `false`.
    ///
    /// The statement is kept only beside an entry that has its own, which is decided with the write:
    /// after an erasure nothing comes back, however long the report was on its way.
    async fn keep_report(&self, report: &Report) -> Result<bool, StoreError>;

    /// Up to `limit` reports with a number greater than `after`, in the order in which they came.
    async fn reports(&self, after: Option<u64>, limit: usize) -> Result<Vec<KeptReport>, StoreError>;

    /// Every report that one of these entries was contradicted, in the order in which they came.
    async fn reports_about(&self, registered: &[LeafIndex]) -> Result<Vec<KeptReport>, StoreError>;
}

/// That somebody signed what contradicts an entry.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Report {
    /// The guard that both claim.
    pub guard: GuardKey,
    /// The entry that holds it.
    pub registered: (LeafIndex, EntryDigest),
    /// The digest of the statement that was refused.
    pub refused: EntryDigest,
    /// That statement, verbatim; `None` once the registered entry is erased.
    pub statement: Option<Bytes>,
    /// When it was refused, in Unix seconds.
    pub at: u64,
}

/// A report with its number.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct KeptReport {
    /// Rises from report to report; where to go on reading.
    pub number: u64,
    /// The report.
    pub report: Report,
}
