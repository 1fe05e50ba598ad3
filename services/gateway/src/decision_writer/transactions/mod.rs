//! The writer task, the only one that writes to the evidence database: it commits all queued work items in one
//! transaction.
//!
//! Items queue while a commit runs, and the next batch takes them all. For each batch the task
//!
//! 1. refuses new decisions while the outbox is full, and drops items whose callers have gone;
//! 2. loads the streams that the items need, and decides the items in order, each on the working copies that the earlier
//!    ones have changed;
//! 3. commits all changes in one transaction;
//! 4. updates the caches, wakes the delivery to the log, and answers the callers. Only then does anything leave the gateway.
//!
//! An item that changes nothing is answered before the commit, unless it has read what earlier items of the batch have
//! changed: then its answer is true only after the commit.
//!
//! If another process has changed one of the streams, they are loaded again and the whole batch is decided again. If the
//! outcome of a commit is unknown, the database is asked until it is known, and no caller is answered before. An item that
//! must become durable (an outcome, a closing) is retried until it is; the callers of other items get the error. A fault of
//! one stream or of one item does not keep the others from being committed.
//!
//! | file | contents |
//! |---|---|
//! | `work_item` | the interface between the writer and its items |
//! | `batch`, `working_copy` | the streams of one batch, and the changes to commit |
//! | `early_read` | data that was read for a call before it was submitted |
//! | `parked` | calls that wait for the settlement of another one |
//! | `retry_queue` | items to retry |

mod batch;
mod early_read;
mod parked;
mod retry_queue;
mod work_item;
mod working_copy;

use std::collections::{HashMap, HashSet};
use std::sync::Arc;
use std::time::Duration;

use evidence::{Change, CommitError, EvidenceStore, StoreError};
use tokio::sync::{Notify, mpsc};
use tokio_util::sync::CancellationToken;

use super::session_cache::SessionCache;
pub use batch::{Batch, StreamNotLoaded};
pub use early_read::{EarlyRead, NeededData};
use parked::{ParkedCalls, ParkedCallsDue};
use retry_queue::RetryQueue;
pub use work_item::{AwaitedSettlement, DecideError, SeenVersion, SettlementWait, Work, WorkItem, WorkStep};
pub use working_copy::{NewRecord, WorkingCopy};

use super::backlog::BacklogGauge;
use super::committed_stream::CommittedStream;
use super::context::WriterContext;
use super::error::WriterError;
use super::recent_reads::RecentReads;
use super::states::is_envelope_stream;
use super::status::Alarms;
use crate::limits::{
    COMMIT_ITEMS, CONFLICT_LONGEST_WAIT, CONFLICT_TIME, DOUBT_ATTEMPTS, DOUBT_FIRST_WAIT, DOUBT_LONGEST_WAIT,
    OUTCOME_LINGER, PARKED_POLL,
};
use batch::BatchChanges;

/// The writer task and its state.
pub struct WriterTask {
    context: Arc<WriterContext>,
    store: Arc<dyn EvidenceStore>,
    backlog: Arc<BacklogGauge>,
    alarms: Arc<Alarms>,
    /// Notified when records are committed.
    new_records: Arc<Notify>,
    queue: mpsc::UnboundedReceiver<WorkItem>,
    cache: SessionCache<CommittedStream>,
    parked: ParkedCalls,
    /// Items for the next batch: they waited for a stream that has changed, or did not fit into the last batch.
    ready: Vec<WorkItem>,
    retries: RetryQueue,
    stop: CancellationToken,
}

/// Result of a batch.
enum BatchResult {
    /// The batch is durable.
    Committed,
    /// The batch is not committed, as far as is known.
    Failed(WriterError),
    /// The database refuses the batch. One item alone may be the cause, so each is to be committed by itself.
    Refused,
}

impl WriterTask {
    /// A writer with an empty cache, which takes its items from `queue`.
    pub fn new(
        context: Arc<WriterContext>,
        store: Arc<dyn EvidenceStore>,
        backlog: Arc<BacklogGauge>,
        alarms: Arc<Alarms>,
        new_records: Arc<Notify>,
        queue: mpsc::UnboundedReceiver<WorkItem>,
    ) -> Self {
        Self {
            cache: SessionCache::new(context.settings.sessions_in_memory),
            context,
            store,
            backlog,
            alarms,
            new_records,
            queue,
            parked: ParkedCalls::default(),
            ready: Vec::new(),
            retries: RetryQueue::new(),
            stop: CancellationToken::new(),
        }
    }

    /// Writes until `stop` is cancelled, and finally the items queued by then.
    pub async fn run(mut self, stop: CancellationToken) {
        self.stop = stop;
        let mut poll = tokio::time::interval(PARKED_POLL);
        poll.set_missed_tick_behavior(tokio::time::MissedTickBehavior::Delay);
        loop {
            let mut items = Vec::new();
            // The queue comes last, as it may never be empty: each branch takes the queued items along.
            tokio::select! {
                biased;
                () = self.stop.cancelled() => break,
                _ = poll.tick(), if !self.parked.is_empty() => items = self.take_due_parked_calls(),
                () = tokio::time::sleep_until(self.retries.due_at()), if !self.retries.is_empty() => {
                    self.retry().await;
                }
                item = self.queue.recv() => match item {
                    Some(item) => items = self.collect_followers(item).await,
                    None => break,
                },
            }
            self.write_all(items).await;
        }
        self.finish().await;
    }

    /// Writes the items submitted so far, unless the outcome of a commit is still unknown.
    async fn finish(mut self) {
        self.queue.close();
        let mut rest = Vec::new();
        while let Ok(item) = self.queue.try_recv() {
            rest.push(item);
        }
        match self.alarms.is_commit_in_doubt() {
            true => rest.into_iter().for_each(|item| drop(item.failed(&WriterError::Stopping))),
            false => {
                self.write_all(rest).await;
                self.retry().await;
            }
        }
        let waiting = self.parked.drain().chain(std::mem::take(&mut self.ready));
        waiting.for_each(|item| drop(item.failed(&WriterError::Stopping)));
    }

    /// Collects an item and those that follow it. An outcome for which no caller waits is delayed by up to
    /// [`OUTCOME_LINGER`], so that it shares its commit with a decision, which would otherwise wait for two commits.
    async fn collect_followers(&mut self, first: WorkItem) -> Vec<WorkItem> {
        let until = tokio::time::Instant::now() + OUTCOME_LINGER;
        let mut is_urgent = first.is_urgent() || !self.parked.is_empty();
        let mut items = vec![first];
        while !is_urgent && items.len() < COMMIT_ITEMS {
            let Ok(Some(item)) = tokio::time::timeout_at(until, self.queue.recv()).await else { break };
            is_urgent = item.is_urgent();
            items.push(item);
        }
        items
    }

    /// Takes the parked calls that waited too long, and returns some others to decide again: another process may have
    /// settled the call they wait for, without a notification here. The wait is bounded by `wait_for_cost`.
    fn take_due_parked_calls(&mut self) -> Vec<WorkItem> {
        let longest = self.context.settings.wait_for_cost;
        let ParkedCallsDue { late, ready, streams } = self.parked.take_due(longest);
        if self.context.settings.shared {
            streams.iter().for_each(|stream| self.cache.remove(stream));
        }
        for item in late {
            let why = format!(
                "the cost of another call of this tool was still unknown after {} s",
                longest.as_secs()
            );
            self.fail(item, &WriterError::Unavailable(why));
        }
        ready
    }

    /// Retries the items that must become durable, until all are or some fail again.
    async fn retry(&mut self) {
        let mut left = self.retries.len();
        while left > 0 {
            let items = self.retries.take_batch(left);
            let (tried, others) = (items.len(), self.retries.len());
            self.write(items).await;
            if self.retries.len() > others {
                return self.retries.failed(tried);
            }
            self.retries.succeeded();
            left -= tried;
        }
    }

    /// Writes these items and the queued ones, and then those that became ready because of them.
    async fn write_all(&mut self, items: Vec<WorkItem>) {
        self.write_with_queued(items).await;
        while !self.ready.is_empty() {
            self.write_with_queued(Vec::new()).await;
        }
    }

    /// Writes these items together with the ready and the queued ones, up to [`COMMIT_ITEMS`].
    async fn write_with_queued(&mut self, mut items: Vec<WorkItem>) {
        items.append(&mut self.ready);
        while items.len() < COMMIT_ITEMS
            && let Ok(item) = self.queue.try_recv()
        {
            items.push(item);
        }
        items.retain(|item| !item.is_abandoned());
        let items = self.refuse_while_outbox_is_full(items);
        if !items.is_empty() {
            self.write(items).await;
        }
        self.alarms.in_memory(self.cache.len(), self.parked.len());
    }

    /// Fails the items that are refused while the outbox is full, and returns the others.
    fn refuse_while_outbox_is_full(&self, items: Vec<WorkItem>) -> Vec<WorkItem> {
        let (limits, now) = (&self.context.settings.outbox, self.context.clock.seconds());
        let Some(over) = self.backlog.reached_limit(limits, now) else { return items };
        let (refused, rest): (Vec<WorkItem>, Vec<WorkItem>) =
            items.into_iter().partition(|item| item.is_refused_while_outbox_is_full());
        for item in refused {
            item.failed(&WriterError::Backpressure(over));
        }
        rest
    }

    /// Commits the items as one batch, or each by itself if the database refuses that, and answers their callers.
    async fn write(&mut self, mut items: Vec<WorkItem>) {
        match self.commit_batch(&mut items).await {
            BatchResult::Committed => answer(items),
            BatchResult::Failed(why) => self.fail_all(items, &why),
            BatchResult::Refused => {
                for item in items {
                    self.write_alone(item).await;
                }
            }
        }
    }

    async fn write_alone(&mut self, item: WorkItem) {
        let mut alone = vec![item];
        match self.commit_batch(&mut alone).await {
            BatchResult::Committed => answer(alone),
            BatchResult::Failed(why) => self.fail_all(alone, &why),
            BatchResult::Refused => {
                let why = "the database refuses it".to_owned();
                self.fail_all(alone, &WriterError::Unrecordable(why));
            }
        }
    }

    fn fail_all(&mut self, items: Vec<WorkItem>, why: &WriterError) {
        self.alarms.store_fails(&why.to_string());
        items.into_iter().for_each(|item| self.fail(item, why));
    }

    /// Informs the caller of an item that is not committed, and queues the item again if it must become durable.
    fn fail(&mut self, item: WorkItem, why: &WriterError) {
        if let Some(item) = item.failed(why).filter(|_| !why.is_permanent()) {
            self.retries.push(item);
        }
    }

    /// Decides and commits a batch, again after each conflict with another process. Items that have to wait or cannot be
    /// decided are removed from it.
    async fn commit_batch(&mut self, items: &mut Vec<WorkItem>) -> BatchResult {
        let until = tokio::time::Instant::now() + CONFLICT_TIME;
        let mut known = HashMap::new();
        loop {
            let BatchChanges { changes, committed } = match self.decide_batch(items).await {
                Ok(decided) => decided,
                Err(error) => return BatchResult::Failed(error),
            };
            self.report_set_back(&mut known, &changes);
            if changes.is_empty() {
                return BatchResult::Committed;
            }
            match self.commit(&changes).await {
                Ok(()) => {
                    self.after_commit(&changes, committed);
                    return BatchResult::Committed;
                }
                Err(CommitError::Conflict(streams)) => {
                    self.alarms.conflicted();
                    let version = |change: &Change| Some((change.stream.clone(), change.from?));
                    known.extend(changes.iter().filter_map(version));
                    streams.iter().for_each(|stream| self.invalidate(stream));
                    if tokio::time::Instant::now() >= until {
                        let why = "other processes kept coming first".to_owned();
                        return BatchResult::Failed(WriterError::Unavailable(why));
                    }
                    tokio::time::sleep(conflict_wait()).await;
                }
                Err(error) => {
                    // The cached state may be the one that the database refuses.
                    changes.iter().for_each(|change| self.invalidate(&change.stream));
                    return failed_commit(error);
                }
            }
        }
    }

    /// Raises an alarm for each change of a version that is older than the one `before` the streams were loaded again:
    /// versions of a name only grow.
    fn report_set_back(&self, before: &mut HashMap<String, u64>, changes: &[Change]) {
        for change in changes {
            if let (Some(known), Some(found)) = (before.remove(&change.stream), change.from)
                && found < known
            {
                self.alarms.set_back(&change.stream, known, found);
            }
        }
    }

    /// Decides the items in order, on fresh working copies. Those that do not fit into the batch become `ready` for the
    /// next one.
    async fn decide_batch(&mut self, items: &mut Vec<WorkItem>) -> Result<BatchChanges, WriterError> {
        items.iter().filter_map(|item| item.seen_version()).for_each(|seen| self.invalidate_older(&seen));
        let early = early_reads(&self.context.recent, &*self.store, items).await?;
        let context = self.context.clone();
        loop {
            let mut batch = Batch::new(&context);
            early.iter().for_each(|early| batch.add_early_read(early));
            let names: Vec<String> = items.iter().flat_map(|item| item.streams()).collect();
            batch.load(&*self.store, &mut self.cache, names).await?;
            let own = batch.stream(&context.own_stream());
            if context.settings.shared && own.is_ok_and(|own| own.is_closed()) {
                context.begin_own_stream();
                continue;
            }
            if let Some(decided) = self.decide_items(&mut batch, items).await? {
                self.ready.extend(items.drain(decided..));
                return batch.into_changes();
            }
        }
    }

    /// Decides the items in order until the batch is complete, and returns how many are decided. `None` if one has failed:
    /// it is removed, and the others are to be decided again, as the working copies are not usable any more.
    async fn decide_items(
        &mut self,
        batch: &mut Batch<'_>,
        items: &mut Vec<WorkItem>,
    ) -> Result<Option<usize>, WriterError> {
        let mut decided = 0;
        while decided < items.len() && (decided == 0 || !batch.is_complete()) {
            batch.begin_item();
            match items[decided].decide(batch) {
                Ok(WorkStep::Decided) => decided += 1,
                Ok(WorkStep::Unchanged) if batch.has_read_changes() => decided += 1,
                Ok(WorkStep::Unchanged | WorkStep::OnlyCounted) => items.remove(decided).committed(),
                Ok(WorkStep::Wait(wait)) => {
                    let in_session = !is_envelope_stream(&wait.awaited.stream);
                    if let Err(item) = self.parked.park(items.remove(decided), wait) {
                        self.fail(item, &WriterError::Crowded { in_session });
                    }
                }
                Err(DecideError::StreamNotLoaded(name)) => {
                    batch.load(&*self.store, &mut self.cache, [name.clone()]).await?;
                    if let Some(why) = batch.damage(&name) {
                        self.fail(items.remove(decided), &why);
                    }
                }
                Err(DecideError::ClaimsNotLookedUp(claims)) => {
                    let read = EarlyRead::look_up_claims(&self.context.recent, &*self.store, claims).await?;
                    batch.add_early_read(&read);
                }
                Err(DecideError::Failed(why)) => {
                    if !why.is_fault_of_server() {
                        tracing::error!(%why, "a decision could not be made");
                    }
                    self.fail(items.remove(decided), &why);
                    return Ok(None);
                }
            }
        }
        Ok(Some(decided))
    }

    /// Commits. If the outcome is unknown, finds it out first: no decision is made twice while in doubt.
    async fn commit(&mut self, changes: &[Change]) -> Result<(), CommitError> {
        let mut doubt = String::new();
        for _ in 0..DOUBT_ATTEMPTS {
            doubt = match self.store.commit(changes).await {
                Err(CommitError::MayHaveHappened(why)) => why,
                known => return known,
            };
            self.alarms.doubted(&doubt);
            if self.find_out_outcome(changes).await? {
                return Ok(());
            }
        }
        Err(CommitError::Failed(StoreError::Unavailable(doubt)))
    }

    /// Asks the database whether a commit happened, until the answer is known. If it cannot be known in this process, or
    /// the writer is to stop, the items fail; the next start settles as unknown what the database has.
    async fn find_out_outcome(&mut self, changes: &[Change]) -> Result<bool, StoreError> {
        let mut wait = DOUBT_FIRST_WAIT;
        loop {
            match self.store.happened(changes).await {
                Ok(happened) => {
                    self.alarms.set_commit_in_doubt(false);
                    return Ok(happened);
                }
                Err(error) => {
                    self.alarms.set_commit_in_doubt(true);
                    self.alarms.store_fails(&error.to_string());
                    if let StoreError::Refused(why) = error {
                        return Err(StoreError::Unavailable(why));
                    }
                }
            }
            tokio::select! {
                () = self.stop.cancelled() => return Err(StoreError::Unavailable("stopped in doubt".to_owned())),
                () = tokio::time::sleep(wait) => wait = (wait * 2).min(DOUBT_LONGEST_WAIT),
            }
        }
    }

    /// Counts the committed records, caches the committed streams, and wakes the delivery to the log and the calls parked in
    /// one of these streams.
    fn after_commit(&mut self, changes: &[Change], committed: Vec<(String, CommittedStream)>) {
        let records = || changes.iter().flat_map(|change| &change.records);
        let bytes: usize = records().map(|record| record.statement.len()).sum();
        let number = |count: usize| u64::try_from(count).unwrap_or(u64::MAX);
        let count = number(records().count());
        self.backlog.add(count, number(bytes), self.context.clock.seconds());
        self.alarms.committed(count);
        for (name, committed) in committed {
            self.context.add_to_cache(&mut self.cache, name, committed);
        }
        let used_claims = changes.iter().flat_map(|change| &change.claims);
        used_claims.for_each(|claim| self.context.recent.insert_used(claim));
        if count > 0 {
            self.new_records.notify_one();
        }
        let changed: HashSet<&str> = changes.iter().map(|change| change.stream.as_str()).collect();
        self.ready.extend(self.parked.wake(&changed));
    }

    /// Removes a stream from the caches: the database has another state of it, or may have one.
    fn invalidate(&mut self, stream: &str) {
        self.cache.remove(stream);
        self.context.recent.remove(stream);
    }

    /// Removes a stream from the caches if they have a version older than this one. Another process may have changed it, and
    /// nothing that this process commits would conflict with that.
    fn invalidate_older(&mut self, seen: &SeenVersion<'_>) {
        let cached = self.context.cached(&mut self.cache, seen.stream);
        if cached.is_some_and(|cached| cached.version < Some(seen.version)) {
            self.invalidate(seen.stream);
        }
    }
}

fn answer(items: Vec<WorkItem>) {
    items.into_iter().for_each(|item| item.committed());
}

/// Returns the result of a batch whose commit has failed for another reason than a conflict.
fn failed_commit(error: CommitError) -> BatchResult {
    match error {
        CommitError::Failed(StoreError::Refused(why)) => {
            tracing::error!(why, "the database refuses a commit");
            BatchResult::Refused
        }
        CommitError::Full(why) => BatchResult::Failed(WriterError::Full(why)),
        error => BatchResult::Failed(WriterError::Unavailable(error.to_string())),
    }
}

/// Returns a random wait of at most [`CONFLICT_LONGEST_WAIT`], so that processes that came into conflict do not meet again.
fn conflict_wait() -> Duration {
    let random = f64::from(getrandom::u32().unwrap_or(u32::MAX)) / f64::from(u32::MAX);
    CONFLICT_LONGEST_WAIT.mul_f64(random)
}

/// Takes what was read for some of the items, and looks up the claims of the others. A stream that one of the others names
/// is left out, and so read again: an item that changes it needs its newest version.
async fn early_reads(
    recent: &RecentReads,
    store: &dyn EvidenceStore,
    items: &mut [WorkItem],
) -> Result<Vec<EarlyRead>, StoreError> {
    let (mut early, mut claims, mut read_again) = (Vec::new(), Vec::new(), HashSet::new());
    for item in items {
        match item.take_early_read() {
            Some(read) => early.push(read),
            None => {
                claims.extend(item.claims());
                read_again.extend(item.streams());
            }
        }
    }
    for read in &mut early {
        read.streams.retain(|(name, _)| !read_again.contains(name));
    }
    if !claims.is_empty() {
        early.push(EarlyRead::look_up_claims(recent, store, claims).await?);
    }
    Ok(early)
}
