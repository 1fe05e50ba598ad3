//! [`Memory`]: the storage traits over maps in memory. It keeps every promise except durability.
//!
//! Clones share one database, so a test restarts a log by dropping its sequencer and starting another one over a
//! clone. [`Memory::backup`] and [`Memory::restore`] act as an operator who restores an old copy.

mod cosignature;
mod custody;
mod lookup;
mod moving;
mod rotation;
mod tables;

use std::ops::Range;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use async_trait::async_trait;
use bytes::Bytes;
use merkle::{EntryDigest, LeafIndex, TreeSize};
use tokio::sync::watch;

use self::tables::{Tables, head_signature, not_open};
use crate::moving::half_filled;
use crate::quota::{Counters, Quotas};
use crate::{
    Arrival, Batch, Collateral, CommitError, CommittedHead, Enqueued, Entry, Found, GuardKey, Head,
    HeadSignature, Inbox, InboxItem, InboxUse, Lease, Lifecycle, LogKey, LogKeys, LogReader, LogWriter,
    PendingKey, Progress, ServerChecks, SignatureKind, SignatureStore, SignedHead, State, StoreError,
    TileAddress, TileStore,
};

/// Log in memory, shared between clones.
#[derive(Clone, Debug, Default)]
pub struct Memory {
    shared: Arc<SharedTables>,
}

#[derive(Debug, Default)]
struct SharedTables {
    tables: Mutex<Tables>,
    /// Number of the lease in force; 0 means none.
    lease: watch::Sender<u64>,
    leases_given: Mutex<u64>,
    quotas: Counters,
    clock: Mutex<Option<Duration>>,
}

impl Memory {
    /// Creates an empty database.
    pub fn new() -> Self {
        Self::default()
    }

    /// Returns a copy that shares nothing with this database.
    pub fn backup(&self) -> Self {
        let copy = Self::new();
        *copy.tables() = self.tables().clone();
        copy
    }

    /// Replaces the content by that of a backup, while other clones are in use.
    pub fn restore(&self, backup: &Self) {
        let tables = backup.tables().clone();
        *self.tables() = tables;
    }

    /// Sets the time that [`ServerChecks::clock`] returns from now on; `None`: the database has no clock of its own.
    pub fn set_clock(&self, clock: Option<Duration>) {
        *self.shared.clock.lock().unwrap_or_else(PoisonError::into_inner) = clock;
    }

    /// Takes the lease away from its holder, as a dying connection would.
    pub fn break_lease(&self) {
        self.shared.lease.send_replace(0);
    }

    fn tables(&self) -> MutexGuard<'_, Tables> {
        self.shared.tables.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

struct MemoryLease {
    number: u64,
    shared: Arc<SharedTables>,
    changes: watch::Receiver<u64>,
}

#[async_trait]
impl Lease for MemoryLease {
    async fn lost(&mut self) {
        let number = self.number;
        // `wait_for` cannot fail: the sender lives in `shared`.
        let _ = self.changes.wait_for(|current| *current != number).await;
    }
}

impl Drop for MemoryLease {
    fn drop(&mut self) {
        self.shared.lease.send_if_modified(|current| {
            let mine = *current == self.number;
            if mine {
                *current = 0;
            }
            mine
        });
    }
}

#[async_trait]
impl LogReader for Memory {
    async fn head(&self) -> Result<Head, StoreError> {
        self.tables().head().cloned()
    }

    async fn find(&self, digests: &[EntryDigest]) -> Result<Vec<Option<Found>>, StoreError> {
        let tables = self.tables();
        Ok(digests.iter().map(|digest| tables.find(digest)).collect())
    }

    async fn guards(&self, keys: &[GuardKey]) -> Result<Vec<Option<LeafIndex>>, StoreError> {
        let tables = self.tables();
        Ok(keys.iter().map(|key| tables.guards.get(key).copied().map(LeafIndex::new)).collect())
    }

    async fn entry(&self, index: LeafIndex) -> Result<Option<Entry>, StoreError> {
        Ok(self.tables().entries.get(index.get() as usize).cloned())
    }

    async fn entries(&self, from: LeafIndex, limit: usize) -> Result<Vec<Entry>, StoreError> {
        Ok(self.tables().entries.iter().skip(from.get() as usize).take(limit).cloned().collect())
    }

    async fn entries_at(&self, leaves: &[LeafIndex]) -> Result<Vec<Entry>, StoreError> {
        let entries = &self.tables().entries;
        Ok(leaves.iter().filter_map(|leaf| entries.get(leaf.get() as usize).cloned()).collect())
    }

    async fn digests(&self, from: LeafIndex, limit: usize) -> Result<Vec<EntryDigest>, StoreError> {
        let entries = self.tables();
        let digests = entries.entries.iter().skip(from.get() as usize).take(limit);
        Ok(digests.map(|entry| entry.digest).collect())
    }

    async fn collateral(&self, index: LeafIndex) -> Result<Vec<Collateral>, StoreError> {
        Ok(self.tables().collateral.get(&index.get()).cloned().unwrap_or_default())
    }

    async fn heads(&self, from: u64, limit: usize) -> Result<Vec<CommittedHead>, StoreError> {
        Ok(self.tables().batches.iter().filter(|head| head.batch >= from).take(limit).copied().collect())
    }

    async fn head_of_size(&self, size: TreeSize) -> Result<Option<CommittedHead>, StoreError> {
        Ok(self.tables().head_of_size(size))
    }

    async fn head_covering(&self, leaf: LeafIndex) -> Result<Option<CommittedHead>, StoreError> {
        Ok(self.tables().head_covering(leaf))
    }
}

#[async_trait]
impl LogWriter for Memory {
    async fn open(&self, origin: &str) -> Result<Head, StoreError> {
        let mut tables = self.tables();
        let head = tables.open(origin)?;
        match tables.state {
            State::Filling { .. } => Err(half_filled()),
            _ => Ok(head),
        }
    }

    async fn take_over(&self, _holder: &str) -> Result<Head, StoreError> {
        let mut tables = self.tables();
        tables.must_grow()?;
        let head = tables.head.as_mut().ok_or_else(not_open)?;
        head.epoch += 1;
        Ok(head.clone())
    }

    async fn commit(&self, batch: &Batch) -> Result<(), CommitError> {
        self.tables().commit(batch)
    }
}

#[async_trait]
impl TileStore for Memory {
    async fn tiles(&self, addresses: &[TileAddress]) -> Result<Vec<Option<Bytes>>, StoreError> {
        let tables = self.tables();
        Ok(addresses.iter().map(|address| tables.tiles.get(address).cloned()).collect())
    }
}

#[async_trait]
impl SignatureStore for Memory {
    async fn keep_signatures(&self, signatures: &[HeadSignature]) -> Result<(), StoreError> {
        let mut tables = self.tables();
        tables.check_signable(signatures)?;
        tables.sign(signatures);
        Ok(())
    }

    async fn signature(
        &self,
        size: TreeSize,
        kind: SignatureKind,
        kid: &[u8],
    ) -> Result<Option<HeadSignature>, StoreError> {
        let key = (size, kind, kid.to_vec());
        Ok(self.tables().signatures.get_key_value(&key).map(head_signature))
    }

    async fn newest_signed(&self, kind: SignatureKind) -> Result<Option<SignedHead>, StoreError> {
        let tables = self.tables();
        let newest = tables.signatures.iter().rev().find(|((_, of, _), _)| *of == kind).map(head_signature);
        Ok(newest.and_then(|signature| {
            tables.head_of_size(signature.size).map(|head| SignedHead { head, signature })
        }))
    }

    async fn signatures(
        &self,
        after: Option<TreeSize>,
        limit: usize,
    ) -> Result<Vec<HeadSignature>, StoreError> {
        let tables = self.tables();
        let mut answer: Vec<HeadSignature> = Vec::new();
        for signature in
            tables.signatures.iter().filter(|((size, ..), _)| Some(*size) > after).map(head_signature)
        {
            if answer.len() >= limit && answer.last().is_none_or(|last| last.size != signature.size) {
                break;
            }
            answer.push(signature);
        }
        Ok(answer)
    }
}

#[async_trait]
impl Inbox for Memory {
    async fn enqueue_within(&self, item: &InboxItem, arrival: &Arrival<'_>) -> Result<Enqueued, StoreError> {
        let mut tables = self.tables();
        if let State::Frozen { .. } = tables.state {
            return Err(StoreError::Frozen);
        }
        Ok(tables.enqueue(item, arrival))
    }

    async fn pending_keys(&self, after: Option<u64>, limit: usize) -> Result<Vec<PendingKey>, StoreError> {
        Ok(self.tables().pending_keys(after, limit))
    }

    async fn submissions(&self, numbers: &[u64]) -> Result<Vec<(u64, Bytes)>, StoreError> {
        let tables = self.tables();
        let mut numbers = numbers.to_vec();
        numbers.sort_unstable();
        let found = numbers.iter().filter_map(|number| tables.inbox.get_key_value(number));
        Ok(found.map(|(number, pending)| (*number, pending.item.submission.clone())).collect())
    }

    async fn inbox_use(&self) -> Result<InboxUse, StoreError> {
        Ok(self.tables().inbox_use())
    }

    async fn progress(&self, digest: &EntryDigest) -> Result<Option<Progress>, StoreError> {
        Ok(self.tables().progress(digest))
    }

    async fn refuse(&self, digest: &EntryDigest, failure: &str) -> Result<(), StoreError> {
        self.tables().finish(digest, Progress::Failed(failure.into()));
        Ok(())
    }

    async fn trim_inbox(&self, limit: usize) -> Result<u64, StoreError> {
        Ok(self.tables().trim(limit))
    }

    async fn forget_failures(&self, keep: u64, limit: usize) -> Result<u64, StoreError> {
        Ok(self.tables().forget_failures(keep, limit))
    }

    async fn waiting(&self, after: Option<u64>, limit: usize) -> Result<Vec<(u64, InboxItem)>, StoreError> {
        let tables = self.tables();
        let from = after.map_or(0, |after| after + 1);
        let waiting = tables.inbox.range(from..).take(limit);
        Ok(waiting.map(|(number, pending)| (*number, pending.item.clone())).collect())
    }
}

#[async_trait]
impl LogKeys for Memory {
    async fn keep_key(&self, key: &LogKey) -> Result<(), StoreError> {
        let mut tables = self.tables();
        if tables.keys.iter().all(|known| known.kid != key.kid) {
            tables.keys.push(key.clone());
            tables.keys.sort_by_key(|key| key.from_size);
        }
        Ok(())
    }

    async fn keys(&self) -> Result<Vec<LogKey>, StoreError> {
        Ok(self.tables().keys.clone())
    }
}

#[async_trait]
impl Lifecycle for Memory {
    async fn lease(&self, _holder: &str) -> Result<Option<Box<dyn Lease>>, StoreError> {
        let number = {
            let mut given = self.shared.leases_given.lock().unwrap_or_else(PoisonError::into_inner);
            *given += 1;
            *given
        };
        let free = self.shared.lease.send_if_modified(|current| {
            let free = *current == 0;
            if free {
                *current = number;
            }
            free
        });
        Ok(free.then(|| {
            let shared = Arc::clone(&self.shared);
            let changes = shared.lease.subscribe();
            Box::new(MemoryLease { number, shared, changes }) as Box<dyn Lease>
        }))
    }

    async fn state(&self) -> Result<State, StoreError> {
        let tables = self.tables();
        tables.head()?;
        Ok(tables.state)
    }

    async fn freeze(&self, _holder: &str, at: u64) -> Result<Head, StoreError> {
        let mut tables = self.tables();
        match tables.state {
            State::Filling { .. } => return Err(half_filled()),
            State::Frozen { .. } => return tables.head().cloned(),
            State::Open => {}
        }
        let head = tables.head.as_mut().ok_or_else(not_open)?;
        head.epoch += 1;
        let head = head.clone();
        tables.state = State::Frozen { at };
        Ok(head)
    }
}

#[async_trait]
impl ServerChecks for Memory {
    async fn check_durability(&self) -> Result<(), StoreError> {
        Ok(())
    }

    async fn clock(&self) -> Result<Option<Duration>, StoreError> {
        Ok(*self.shared.clock.lock().unwrap_or_else(PoisonError::into_inner))
    }
}

#[async_trait]
impl Quotas for Memory {
    async fn take_quota(&self, bucket: &str, window: u64, limit: u64, want: u64) -> Result<u64, StoreError> {
        self.shared.quotas.take(bucket, window, limit, want)
    }

    async fn trim_quotas(&self, keep: Range<u64>) -> Result<u64, StoreError> {
        Ok(self.shared.quotas.trim(keep))
    }
}
