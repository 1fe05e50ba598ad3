//! [`Failing`]: a store that fails on request, in each of the ways in which a database can fail.
//!
//! It wraps any other store, so the same tests of the caller run over memory and over SQL. Calls are counted from
//! the moment a fault is ordered: `fail(Call::Commit, 1, …)` hits the next commit.

mod around;

use std::collections::HashMap;
use std::fmt::Debug;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use async_trait::async_trait;
use bytes::Bytes;
use merkle::{EntryDigest, LeafIndex, TreeSize};

use crate::{
    Arrival, Batch, Collateral, CommitError, CommittedHead, Enqueued, Entry, Found, GuardKey, Head,
    HeadSignature, InboxItem, InboxUse, Lease, LogKey, LogStore, PendingKey, Progress, SignatureKind,
    SignedHead, StoreError, TileAddress,
};

/// Failure mode of a call.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Fault {
    /// The call has no effect, and the caller learns that: a commit returns [`CommitError::NotCommitted`].
    Refused,
    /// The call has no effect, but the caller cannot know: a commit returns [`CommitError::Unknown`].
    NotApplied,
    /// The call takes effect, but the caller cannot know: a commit returns [`CommitError::Unknown`].
    AppliedButUnheard,
}

/// Methods of [`LogStore`] and of its supertraits.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[allow(missing_docs)]
pub enum Call {
    Open,
    Head,
    Lease,
    TakeOver,
    Commit,
    Find,
    Guards,
    Entry,
    Entries,
    Digests,
    Collateral,
    Tiles,
    Heads,
    HeadOfSize,
    KeepSignatures,
    Signature,
    NewestSigned,
    Signatures,
    Enqueue,
    PendingKeys,
    Submissions,
    InboxUse,
    Progress,
    Refuse,
    TrimInbox,
    KeepKey,
    AnnounceKey,
    AnnouncedKeys,
    TakeUpKey,
    MarkCompromised,
    Keys,
    CheckDurability,
    Clock,
    Erase,
    Hold,
    Release,
    Holds,
    Held,
    Standing,
    KeepReport,
    Reports,
    ReportsAbout,
    Indexed,
    Index,
    DropIndex,
    Search,
    Values,
    Lookups,
    TakeQuota,
    TrimQuotas,
    KeepCosignature,
    Cosignatures,
    NewestCosignature,
    Cosigned,
    State,
    Freeze,
    SeenRows,
    GuardRows,
    CollateralRows,
    Waiting,
    BeginFilling,
    Fill,
    FillClaims,
    EndFilling,
}

/// Wrapper of a [`LogStore`] whose calls fail as ordered. Clones share the orders.
#[derive(Clone)]
pub struct Failing {
    inner: Arc<dyn LogStore>,
    orders: Arc<Mutex<Orders>>,
}

#[derive(Debug, Default)]
struct Orders {
    down: bool,
    /// Faults that wait for the n-th call of one method, or of any method (`None`).
    waiting: Vec<(Option<Call>, u64, Fault)>,
    made: HashMap<Call, u64>,
    pausing: bool,
}

impl Failing {
    /// Wraps a store; every call passes until a fault is ordered.
    pub fn new(inner: impl LogStore) -> Self {
        Self::over(Arc::new(inner))
    }

    /// Wraps a shared store.
    pub fn over(inner: Arc<dyn LogStore>) -> Self {
        Self { inner, orders: Arc::default() }
    }

    /// Yields to the executor once before every call from now on, so that other tasks can run in between.
    pub fn pause_before_calls(&self) {
        self.orders().pausing = true;
    }

    /// Makes the `nth` call of this method from now on fail once; 1 is the next call.
    pub fn fail(&self, call: Call, nth: u64, fault: Fault) {
        self.orders().waiting.push((Some(call), nth, fault));
    }

    /// Makes the `nth` call of any method from now on fail once.
    pub fn fail_any(&self, nth: u64, fault: Fault) {
        self.orders().waiting.push((None, nth, fault));
    }

    /// Simulates an outage: while `down` is `true`, every call fails before it has an effect.
    pub fn down(&self, down: bool) {
        self.orders().down = down;
    }

    /// Removes all faults that were ordered and did not happen yet, and ends an outage.
    pub fn heal(&self) {
        let mut orders = self.orders();
        orders.down = false;
        orders.waiting.clear();
    }

    /// Returns whether an ordered fault did not happen yet.
    pub fn is_armed(&self) -> bool {
        !self.orders().waiting.is_empty()
    }

    /// Number of calls of this method so far.
    pub fn calls(&self, call: Call) -> u64 {
        self.orders().made.get(&call).copied().unwrap_or(0)
    }

    /// Number of calls of all methods so far.
    pub fn all_calls(&self) -> u64 {
        self.orders().made.values().sum()
    }

    fn orders(&self) -> MutexGuard<'_, Orders> {
        self.orders.lock().unwrap_or_else(PoisonError::into_inner)
    }

    async fn pause(&self) {
        let pausing = self.orders().pausing;
        if pausing {
            tokio::task::yield_now().await;
        }
    }

    async fn run<T>(
        &self,
        call: Call,
        work: impl Future<Output = Result<T, StoreError>>,
    ) -> Result<T, StoreError> {
        self.pause().await;
        let fault = self.orders().strike(call);
        match fault {
            None => work.await,
            Some(Fault::Refused | Fault::NotApplied) => Err(unavailable(call)),
            Some(Fault::AppliedButUnheard) => work.await.and_then(|_| Err(unavailable(call))),
        }
    }
}

impl Orders {
    fn strike(&mut self, call: Call) -> Option<Fault> {
        *self.made.entry(call).or_default() += 1;
        let mut struck = None;
        self.waiting.retain_mut(|(wanted, left, fault)| {
            if wanted.is_some_and(|wanted| wanted != call) {
                return true;
            }
            *left = left.saturating_sub(1);
            if *left == 0 {
                struck = Some(*fault);
            }
            *left > 0
        });
        struck.or(self.down.then_some(Fault::Refused))
    }
}

fn unavailable(call: Call) -> StoreError {
    StoreError::Unavailable(format!("{call:?} failed on request"))
}

#[async_trait]
impl LogStore for Failing {
    async fn open(&self, origin: &str) -> Result<Head, StoreError> {
        self.run(Call::Open, self.inner.open(origin)).await
    }

    async fn head(&self) -> Result<Head, StoreError> {
        self.run(Call::Head, self.inner.head()).await
    }

    async fn lease(&self, holder: &str) -> Result<Option<Box<dyn Lease>>, StoreError> {
        self.run(Call::Lease, self.inner.lease(holder)).await
    }

    async fn take_over(&self, holder: &str) -> Result<Head, StoreError> {
        self.run(Call::TakeOver, self.inner.take_over(holder)).await
    }

    async fn commit(&self, batch: &Batch) -> Result<(), CommitError> {
        let unknown = || CommitError::Unknown("failed on request".into());
        self.pause().await;
        let fault = self.orders().strike(Call::Commit);
        match fault {
            None => self.inner.commit(batch).await,
            Some(Fault::Refused) => Err(CommitError::NotCommitted(unavailable(Call::Commit))),
            Some(Fault::NotApplied) => Err(unknown()),
            Some(Fault::AppliedButUnheard) => self.inner.commit(batch).await.and_then(|()| Err(unknown())),
        }
    }

    async fn find(&self, digests: &[EntryDigest]) -> Result<Vec<Option<Found>>, StoreError> {
        self.run(Call::Find, self.inner.find(digests)).await
    }

    async fn guards(&self, keys: &[GuardKey]) -> Result<Vec<Option<LeafIndex>>, StoreError> {
        self.run(Call::Guards, self.inner.guards(keys)).await
    }

    async fn entry(&self, index: LeafIndex) -> Result<Option<Entry>, StoreError> {
        self.run(Call::Entry, self.inner.entry(index)).await
    }

    async fn entries(&self, from: LeafIndex, limit: usize) -> Result<Vec<Entry>, StoreError> {
        self.run(Call::Entries, self.inner.entries(from, limit)).await
    }

    async fn digests(&self, from: LeafIndex, limit: usize) -> Result<Vec<EntryDigest>, StoreError> {
        self.run(Call::Digests, self.inner.digests(from, limit)).await
    }

    async fn collateral(&self, index: LeafIndex) -> Result<Vec<Collateral>, StoreError> {
        self.run(Call::Collateral, self.inner.collateral(index)).await
    }

    async fn tiles(&self, addresses: &[TileAddress]) -> Result<Vec<Option<Bytes>>, StoreError> {
        self.run(Call::Tiles, self.inner.tiles(addresses)).await
    }

    async fn heads(&self, from: u64, limit: usize) -> Result<Vec<CommittedHead>, StoreError> {
        self.run(Call::Heads, self.inner.heads(from, limit)).await
    }

    async fn head_of_size(&self, size: TreeSize) -> Result<Option<CommittedHead>, StoreError> {
        self.run(Call::HeadOfSize, self.inner.head_of_size(size)).await
    }

    async fn keep_signatures(&self, signatures: &[HeadSignature]) -> Result<(), StoreError> {
        self.run(Call::KeepSignatures, self.inner.keep_signatures(signatures)).await
    }

    async fn signature(
        &self,
        size: TreeSize,
        kind: SignatureKind,
        kid: &[u8],
    ) -> Result<Option<HeadSignature>, StoreError> {
        self.run(Call::Signature, self.inner.signature(size, kind, kid)).await
    }

    async fn newest_signed(&self, kind: SignatureKind) -> Result<Option<SignedHead>, StoreError> {
        self.run(Call::NewestSigned, self.inner.newest_signed(kind)).await
    }

    async fn signatures(
        &self,
        after: Option<TreeSize>,
        limit: usize,
    ) -> Result<Vec<HeadSignature>, StoreError> {
        self.run(Call::Signatures, self.inner.signatures(after, limit)).await
    }

    async fn enqueue_within(&self, item: &InboxItem, arrival: &Arrival<'_>) -> Result<Enqueued, StoreError> {
        self.run(Call::Enqueue, self.inner.enqueue_within(item, arrival)).await
    }

    async fn pending_keys(&self, after: Option<u64>, limit: usize) -> Result<Vec<PendingKey>, StoreError> {
        self.run(Call::PendingKeys, self.inner.pending_keys(after, limit)).await
    }

    async fn submissions(&self, numbers: &[u64]) -> Result<Vec<(u64, Bytes)>, StoreError> {
        self.run(Call::Submissions, self.inner.submissions(numbers)).await
    }

    async fn inbox_use(&self) -> Result<InboxUse, StoreError> {
        self.run(Call::InboxUse, self.inner.inbox_use()).await
    }

    async fn progress(&self, digest: &EntryDigest) -> Result<Option<Progress>, StoreError> {
        self.run(Call::Progress, self.inner.progress(digest)).await
    }

    async fn refuse(&self, digest: &EntryDigest, failure: &str) -> Result<(), StoreError> {
        self.run(Call::Refuse, self.inner.refuse(digest, failure)).await
    }

    async fn trim_inbox(&self, limit: usize) -> Result<u64, StoreError> {
        self.run(Call::TrimInbox, self.inner.trim_inbox(limit)).await
    }

    async fn keep_key(&self, key: &LogKey) -> Result<(), StoreError> {
        self.run(Call::KeepKey, self.inner.keep_key(key)).await
    }

    async fn keys(&self) -> Result<Vec<LogKey>, StoreError> {
        self.run(Call::Keys, self.inner.keys()).await
    }

    async fn check_durability(&self) -> Result<(), StoreError> {
        self.run(Call::CheckDurability, self.inner.check_durability()).await
    }

    async fn clock(&self) -> Result<Option<std::time::Duration>, StoreError> {
        self.run(Call::Clock, self.inner.clock()).await
    }
}
