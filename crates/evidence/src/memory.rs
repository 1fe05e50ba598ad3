//! [`Memory`]: the storage trait over maps in memory. It keeps every promise except durability.
//!
//! [`Memory::another`] is a second instance over the same data: a concurrent process, or the next run of this one.

mod tables;

use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use async_trait::async_trait;
use bytes::Bytes;
use merkle::EntryDigest;

use self::tables::EvidenceTables;
use crate::{
    Backlog, Change, Claim, CommitError, Delivered, EvidenceStore, Group, Horizon, Instances, OpenDecision,
    Outbox, PendingRecord, Pruned, RefusedRecord, StoreError, StoredRecord, StoredStream, StreamEditor,
    StreamSummary, StuckRecord, Upkeep, limits,
};

/// Evidence in memory, shared with [`another`](Memory::another) instance.
#[derive(Clone, Debug)]
pub struct Memory {
    instance: String,
    tables: Arc<Mutex<EvidenceTables>>,
}

impl Memory {
    /// Creates an empty database, used by this instance.
    pub fn new(instance: &str) -> Self {
        let memory = Self { instance: instance.into(), tables: Arc::default() };
        memory.tables().lease(instance, Instant::now() + limits::LEASE);
        memory
    }

    /// Opens the same database for another instance.
    pub fn another(&self, instance: &str) -> Self {
        let another = Self { instance: instance.into(), tables: Arc::clone(&self.tables) };
        another.tables().lease(instance, Instant::now() + limits::LEASE);
        another
    }

    fn tables(&self) -> MutexGuard<'_, EvidenceTables> {
        self.tables.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

#[async_trait]
impl EvidenceStore for Memory {
    fn instance(&self) -> &str {
        &self.instance
    }

    async fn streams(&self, names: &[&str]) -> Result<Vec<Option<StoredStream>>, StoreError> {
        let tables = self.tables();
        Ok(names.iter().map(|name| tables.stream(name)).collect())
    }

    async fn claimed(&self, claims: &[Claim]) -> Result<Vec<bool>, StoreError> {
        let tables = self.tables();
        Ok(claims.iter().map(|claim| tables.is_claimed(claim)).collect())
    }

    async fn commit(&self, changes: &[Change]) -> Result<(), CommitError> {
        let group = Group::of(changes)?;
        self.tables().commit(&self.instance, &group)
    }

    async fn happened(&self, changes: &[Change]) -> Result<bool, StoreError> {
        let group = Group::of(changes)?;
        Ok(self.tables().happened(&group))
    }

    async fn record(&self, id: &EntryDigest) -> Result<Option<StoredRecord>, StoreError> {
        Ok(self.tables().record(id))
    }

    async fn records(&self, stream: &str, from: u64, limit: usize) -> Result<Vec<StoredRecord>, StoreError> {
        Ok(self.tables().records(stream, from, limit))
    }

    async fn due(&self, at: u64, limit: usize) -> Result<Vec<StreamSummary>, StoreError> {
        Ok(self.tables().due(at, limit))
    }

    async fn list(&self, after: Option<&str>, limit: usize) -> Result<Vec<StreamSummary>, StoreError> {
        Ok(self.tables().list(after, limit))
    }
}

#[async_trait]
impl Outbox for Memory {
    async fn pending(&self, limit: usize) -> Result<Vec<PendingRecord>, StoreError> {
        Ok(self.tables().pending(&self.instance, limit))
    }

    async fn delivered(&self, deliveries: &[Delivered]) -> Result<(), StoreError> {
        let mut tables = self.tables();
        deliveries.iter().for_each(|delivery| tables.delivered(delivery));
        Ok(())
    }

    async fn stuck(&self, refused: &[RefusedRecord]) -> Result<(), StoreError> {
        let mut tables = self.tables();
        refused.iter().for_each(|one| tables.mark_stuck(&one.id, crate::stuck_reason(&one.why)));
        Ok(())
    }

    async fn stuck_records(&self, limit: usize) -> Result<Vec<StuckRecord>, StoreError> {
        Ok(self.tables().stuck_records(limit))
    }

    async fn unstick(&self) -> Result<u64, StoreError> {
        Ok(self.tables().unstick())
    }

    async fn backlog(&self) -> Result<Backlog, StoreError> {
        Ok(self.tables().backlog())
    }
}

#[async_trait]
impl Instances for Memory {
    async fn orphans(&self, limit: usize) -> Result<Vec<OpenDecision>, StoreError> {
        Ok(self.tables().orphans(limit))
    }

    async fn renew(&self, lasts: Duration) -> Result<Option<Duration>, StoreError> {
        self.tables().lease(&self.instance, Instant::now() + lasts);
        Ok(None)
    }

    async fn leave(&self) -> Result<(), StoreError> {
        self.tables().leave(&self.instance);
        Ok(())
    }
}

#[async_trait]
impl Upkeep for Memory {
    async fn prune(&self, horizon: Horizon, limit: usize) -> Result<Pruned, StoreError> {
        Ok(self.tables().prune(horizon, limit))
    }

    async fn check_durability(&self) -> Result<(), StoreError> {
        Ok(())
    }
}

#[async_trait]
impl StreamEditor for Memory {
    async fn streams(&self, names: &[&str]) -> Result<Vec<Option<StoredStream>>, StoreError> {
        EvidenceStore::streams(self, names).await
    }

    async fn list(&self, after: Option<&str>, limit: usize) -> Result<Vec<StreamSummary>, StoreError> {
        EvidenceStore::list(self, after, limit).await
    }

    async fn amend(&self, stream: &str, from: u64, running: &Bytes) -> Result<(), CommitError> {
        self.tables().amend(stream, from, running)
    }

    async fn close(&self) {}
}
