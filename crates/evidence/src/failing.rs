//! A store that fails on request, in each of the ways in which a database can.
//!
//! Wraps any other store, so the same tests of the caller run over memory and over SQL. Calls are counted from the
//! moment a fault is ordered: `fail(Call::Commit, 1, …)` hits the next commit.

use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use async_trait::async_trait;
use merkle::EntryDigest;

use crate::{
    Backlog, Change, Claim, CommitError, Delivered, EvidenceStore, Horizon, Kept, Listed, Open, Pending,
    Pruned, StoreError, Stored, Stuck,
};

/// How a call fails.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Fault {
    /// Nothing happens, and the caller is told so.
    Refused,
    /// Nothing happens, for there is no space left.
    Full,
    /// Nothing happens, but the caller cannot know: a commit answers [`CommitError::MayHaveHappened`].
    NotApplied,
    /// It happens, but the caller cannot know: a commit answers [`CommitError::MayHaveHappened`].
    AppliedButUnheard,
    /// Nothing happens, and never will in this process.
    Ended,
}

/// A method of [`EvidenceStore`].
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

/// A store whose calls fail when they are told to. Clones share the orders.
#[derive(Clone)]
pub struct Failing {
    inner: Arc<dyn EvidenceStore>,
    orders: Arc<Mutex<Orders>>,
}

#[derive(Debug, Default)]
struct Orders {
    /// Every write fails so until it is taken back.
    standing: Option<Fault>,
    /// Faults waiting for the n-th call of one method.
    waiting: Vec<(Call, u64, Fault)>,
}

impl Failing {
    /// Wraps a store; nothing fails until it is told to.
    pub fn new(inner: impl EvidenceStore) -> Self {
        Self { inner: Arc::new(inner), orders: Arc::default() }
    }

    /// Lets the n-th call of a method from now on fail, once.
    pub fn fail(&self, call: Call, nth: u64, fault: Fault) {
        self.orders().waiting.push((call, nth.max(1), fault));
    }

    /// Lets every call fail (a full database: every write) until [`mend`](Self::mend).
    pub fn break_down(&self, fault: Fault) {
        self.orders().standing = Some(fault);
    }

    /// Ends what [`break_down`](Self::break_down) began; faults that wait stay.
    pub fn mend(&self) {
        self.orders().standing = None;
    }

    /// How many of the ordered faults have not struck yet.
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
