//! [`RecordingSource`]: keeps the entries that an audit reads, so that watch lists and index check need not read them
//! again.

use std::sync::{Mutex, PoisonError};

use async_trait::async_trait;
use audit::{AuditHead, AuditSource, EntryEvidence, HistoryHead, LeafRow, LookUpAnswer, SourceError};
use merkle::{EntryDigest, LeafHash, LeafIndex};
use store::{Collateral, Found, GuardKey};

/// An [`AuditSource`] that keeps each row read from another source once, in order.
pub struct RecordingSource<'a> {
    source: &'a dyn AuditSource,
    recorded: Mutex<RecordedRows>,
}

struct RecordedRows {
    /// The next leaf to record.
    next: u64,
    rows: Vec<EntryEvidence>,
}

impl<'a> RecordingSource<'a> {
    /// Wraps a source; rows are recorded from leaf `next` on.
    pub fn new(source: &'a dyn AuditSource, next: u64) -> Self {
        Self { source, recorded: Mutex::new(RecordedRows { next, rows: Vec::new() }) }
    }

    /// Returns the rows recorded since the last call.
    pub fn take_rows(&self) -> Vec<EntryEvidence> {
        std::mem::take(&mut self.recorded.lock().unwrap_or_else(PoisonError::into_inner).rows)
    }
}

#[async_trait]
impl AuditSource for RecordingSource<'_> {
    async fn head(&self) -> Result<AuditHead, SourceError> {
        self.source.head().await
    }

    async fn rows(&self, from: LeafIndex, count: usize) -> Result<Vec<LeafRow>, SourceError> {
        let rows = self.source.rows(from, count).await?;
        let mut recorded = self.recorded.lock().unwrap_or_else(PoisonError::into_inner);
        for row in &rows {
            let leaf = row.index().get();
            if leaf == recorded.next {
                recorded.next = leaf + 1;
                if let LeafRow::Kept(evidence) = row {
                    recorded.rows.push((**evidence).clone());
                }
            }
        }
        Ok(rows)
    }

    async fn collateral(&self, leaf: LeafIndex) -> Result<Vec<Collateral>, SourceError> {
        self.source.collateral(leaf).await
    }

    async fn heads(&self, from: u64, limit: usize) -> Result<Vec<HistoryHead>, SourceError> {
        self.source.heads(from, limit).await
    }

    async fn leaves(&self, tile: u64) -> Result<Vec<LeafHash>, SourceError> {
        self.source.leaves(tile).await
    }

    fn keeps_indexes(&self) -> bool {
        self.source.keeps_indexes()
    }

    async fn find(&self, digests: &[EntryDigest]) -> Result<Vec<LookUpAnswer<Found>>, SourceError> {
        self.source.find(digests).await
    }

    async fn guards(&self, keys: &[GuardKey]) -> Result<Vec<LookUpAnswer<LeafIndex>>, SourceError> {
        self.source.guards(keys).await
    }
}
