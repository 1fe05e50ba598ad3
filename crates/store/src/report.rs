//! Reports of equivocation: the refused statement that contradicts an entry.
//!
//! A guard marks a claim as taken. An issuer that makes the claim again in another statement has signed two
//! statements that cannot both be true. The first is an entry of the log, the refused one is stored here.
//!
//! Not here: which refusals are contradictions (`registration`).

use async_trait::async_trait;
use bytes::Bytes;
use merkle::{EntryDigest, LeafIndex};

use crate::{GuardKey, StoreError};

/// Maximum number of refused statements that are kept for one guard. Two prove the contradiction already, and an
/// issuer must not fill the database by contradicting itself.
pub const REPORTS_PER_GUARD: usize = 8;

/// Storage of reports.
#[async_trait]
pub trait Reports: Send + Sync + 'static {
    /// Stores a report; returns whether it is stored, now or already before. A second report of the same guard and
    /// refused statement changes nothing; once a guard has [`REPORTS_PER_GUARD`], no other is stored, and the
    /// result is `false`.
    ///
    /// The statement is stored only if the registered entry still has its own, which is checked in the same
    /// transaction: after an erasure no bytes return, however late the report arrives.
    async fn keep_report(&self, report: &Report) -> Result<bool, StoreError>;

    /// Reads up to `limit` reports with a number greater than `after`, in order of arrival.
    async fn reports(&self, after: Option<u64>, limit: usize) -> Result<Vec<KeptReport>, StoreError>;

    /// Reads every report about one of these entries, in order of arrival.
    async fn reports_about(&self, registered: &[LeafIndex]) -> Result<Vec<KeptReport>, StoreError>;
}

/// Report that a signed statement contradicts an entry.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Report {
    /// Guard that both statements claim.
    pub guard: GuardKey,
    /// Entry that holds the guard: its index and digest.
    pub registered: (LeafIndex, EntryDigest),
    /// Digest of the statement that was refused.
    pub refused: EntryDigest,
    /// Refused statement, verbatim; `None` once the registered entry is erased.
    pub statement: Option<Bytes>,
    /// Time of the refusal in Unix seconds.
    pub at: u64,
}

/// Stored [`Report`] with its number.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct KeptReport {
    /// Number of the report in order of arrival; the next page begins after the last number.
    pub number: u64,
    /// The report as stored.
    pub report: Report,
}
