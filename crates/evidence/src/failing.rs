//! [`Failing`]: a store that fails on request, in each of the ways in which a database can fail.
//!
//! It wraps any other store, so the same tests of the caller run over memory and over SQL. Calls are counted from
//! the moment a fault is ordered: `fail(Call::Commit, 1, …)` hits the next commit.

use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use async_trait::async_trait;
use merkle::EntryDigest;

use crate::{
    Backlog, Change, Claim, CommitError, Delivered, EvidenceStore, Horizon, Kept, Listed, Open, Pending,
    Pruned, StoreError, Stored, Stuck,
};

/// Failure mode of a call.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Fault {
    /// The call has no effect, and the caller learns that.
    Refused,
    /// The call has no effect, as no space is left.
    Full,
    /// The call has no effect, but the caller cannot know: a commit returns [`CommitError::MayHaveHappened`].
    NotApplied,
    /// The call takes effect, but the caller cannot know: a commit returns [`CommitError::MayHaveHappened`].
    AppliedButUnheard,
    /// The call has no effect, and no later call in this process will have one.
    Ended,
}

/// Methods of [`EvidenceStore`].
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[allow(missing_docs)]
pub enum Call {
    Streams,
    Claimed,
    Commit,
    Happened,
    Pending,
    Delivered,
    Stuck,
    StuckRecords,
    Unstick,
    Backlog,
    Orphans,
    Record,
    Records,
    Due,
    List,
    Prune,
    Renew,
    Leave,
    CheckDurability,
}

/// Wrapper of an [`EvidenceStore`] whose calls fail as ordered. Clones share the orders.
#[derive(Clone)]
pub struct Failing {
    inner: Arc<dyn EvidenceStore>,
    orders: Arc<Mutex<Orders>>,
}

#[derive(Debug, Default)]
struct Orders {
    /// Fault of every call, until [`Failing::mend`].
    standing: Option<Fault>,
    /// Faults that wait for the n-th call of one method.
    waiting: Vec<(Call, u64, Fault)>,
}

impl Failing {
    /// Wraps a store; every call passes until a fault is ordered.
    pub fn new(inner: impl EvidenceStore) -> Self {
        Self { inner: Arc::new(inner), orders: Arc::default() }
    }

    /// Makes the `nth` call of a method from now on fail once; 1 is the next call.
    pub fn fail(&self, call: Call, nth: u64, fault: Fault) {
        self.orders().waiting.push((call, nth.max(1), fault));
    }

    /// Makes every call fail (with [`Fault::Full`]: every write) until [`mend`](Self::mend).
    pub fn break_down(&self, fault: Fault) {
        self.orders().standing = Some(fault);
    }

    /// Ends a [`break_down`](Self::break_down); single faults that were ordered stay.
    pub fn mend(&self) {
        self.orders().standing = None;
    }

    /// Number of ordered faults that did not happen yet.
    pub fn faults_left(&self) -> usize {
        self.orders().waiting.len()
    }

    fn orders(&self) -> MutexGuard<'_, Orders> {
        self.orders.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn fault(&self, call: Call) -> Option<Fault> {
        let mut orders = self.orders();
        for (waiting, left, _) in &mut orders.waiting {
            if *waiting == call {
                *left -= 1;
            }
        }
        let struck = orders.waiting.iter().position(|(_, left, _)| *left == 0);
        let standing = orders.standing.filter(|fault| *fault != Fault::Full || writes(call));
        struck.map(|place| orders.waiting.remove(place).2).or(standing)
    }

    async fn around<T>(
        &self,
        call: Call,
        answer: impl Future<Output = Result<T, StoreError>> + Send,
    ) -> Result<T, StoreError> {
        match self.fault(call) {
            None => answer.await,
            Some(Fault::Full) => Err(StoreError::Full("as ordered".into())),
            Some(Fault::Refused | Fault::NotApplied) => Err(unavailable()),
            Some(Fault::Ended) => Err(ended()),
            Some(Fault::AppliedButUnheard) => answer.await.and(Err(unavailable())),
        }
    }
}

const fn writes(call: Call) -> bool {
    matches!(
        call,
        Call::Commit
            | Call::Delivered
            | Call::Stuck
            | Call::Unstick
            | Call::Prune
            | Call::Renew
            | Call::Leave
    )
}

fn unavailable() -> StoreError {
    StoreError::Unavailable("as ordered".into())
}

fn ended() -> StoreError {
    StoreError::Refused("as ordered: start the process again".into())
}

fn unheard() -> CommitError {
    CommitError::MayHaveHappened("as ordered".into())
}

#[async_trait]
impl EvidenceStore for Failing {
    fn instance(&self) -> &str {
        self.inner.instance()
    }

    async fn streams(&self, names: &[&str]) -> Result<Vec<Option<Kept>>, StoreError> {
        self.around(Call::Streams, self.inner.streams(names)).await
    }

    async fn claimed(&self, claims: &[Claim]) -> Result<Vec<bool>, StoreError> {
        self.around(Call::Claimed, self.inner.claimed(claims)).await
    }

    async fn commit(&self, changes: &[Change]) -> Result<(), CommitError> {
        match self.fault(Call::Commit) {
            None => self.inner.commit(changes).await,
            Some(Fault::Refused) => Err(CommitError::Failed(unavailable())),
            Some(Fault::Full) => Err(CommitError::Full("as ordered".into())),
            Some(Fault::Ended) => Err(CommitError::Failed(ended())),
            Some(Fault::NotApplied) => Err(unheard()),
            Some(Fault::AppliedButUnheard) => self.inner.commit(changes).await.and(Err(unheard())),
        }
    }

    async fn happened(&self, changes: &[Change]) -> Result<bool, StoreError> {
        self.around(Call::Happened, self.inner.happened(changes)).await
    }

    async fn pending(&self, limit: usize) -> Result<Vec<Pending>, StoreError> {
        self.around(Call::Pending, self.inner.pending(limit)).await
    }

    async fn delivered(&self, deliveries: &[Delivered]) -> Result<(), StoreError> {
        self.around(Call::Delivered, self.inner.delivered(deliveries)).await
    }

    async fn stuck(&self, id: &EntryDigest, why: &str) -> Result<(), StoreError> {
        self.around(Call::Stuck, self.inner.stuck(id, why)).await
    }

    async fn stuck_records(&self, limit: usize) -> Result<Vec<Stuck>, StoreError> {
        self.around(Call::StuckRecords, self.inner.stuck_records(limit)).await
    }

    async fn unstick(&self) -> Result<u64, StoreError> {
        self.around(Call::Unstick, self.inner.unstick()).await
    }

    async fn backlog(&self) -> Result<Backlog, StoreError> {
        self.around(Call::Backlog, self.inner.backlog()).await
    }

    async fn orphans(&self, limit: usize) -> Result<Vec<Open>, StoreError> {
        self.around(Call::Orphans, self.inner.orphans(limit)).await
    }

    async fn record(&self, id: &EntryDigest) -> Result<Option<Stored>, StoreError> {
        self.around(Call::Record, self.inner.record(id)).await
    }

    async fn records(&self, stream: &str, from: u64, limit: usize) -> Result<Vec<Stored>, StoreError> {
        self.around(Call::Records, self.inner.records(stream, from, limit)).await
    }

    async fn due(&self, at: u64, limit: usize) -> Result<Vec<Listed>, StoreError> {
        self.around(Call::Due, self.inner.due(at, limit)).await
    }

    async fn list(&self, after: Option<&str>, limit: usize) -> Result<Vec<Listed>, StoreError> {
        self.around(Call::List, self.inner.list(after, limit)).await
    }

    async fn prune(&self, horizon: Horizon, limit: usize) -> Result<Pruned, StoreError> {
        self.around(Call::Prune, self.inner.prune(horizon, limit)).await
    }

    async fn renew(&self, lasts: Duration) -> Result<(), StoreError> {
        self.around(Call::Renew, self.inner.renew(lasts)).await
    }

    async fn leave(&self) -> Result<(), StoreError> {
        self.around(Call::Leave, self.inner.leave()).await
    }

    async fn check_durability(&self) -> Result<(), StoreError> {
        self.around(Call::CheckDurability, self.inner.check_durability()).await
    }
}
