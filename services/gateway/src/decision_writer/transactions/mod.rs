//! The single writer: it commits all queued jobs in one transaction.
//!
//! Jobs queue while a commit runs, and the next batch takes them all. A batch is decided on working copies of its
//! streams. If another process has changed these streams, they are loaded again and the whole batch is decided again.
//! If the outcome of a commit is unknown, the database is asked until it is known, and no caller is answered before. An
//! owed job (an outcome, a closing) is kept and retried until it is durable; other jobs fail, and their callers are
//! informed. A fault of one stream or of one job does not keep the others from being committed.

mod batch;
mod early_read;
mod parked;
mod retry_queue;
mod work;

use std::collections::HashSet;
use std::sync::Arc;
use std::time::Duration;

use evidence::{Change, CommitError, EvidenceStore, StoreError};
use tokio::sync::{Notify, mpsc};
use tokio_util::sync::CancellationToken;

use super::session_cache::SessionCache;
pub use batch::{Batch, NewRecord, StreamChanges};
pub use early_read::EarlyRead;
use parked::{ParkedCalls, ParkedCallsDue};
use retry_queue::RetryQueue;
pub use work::{AwaitedSettlement, JobStep, Work};

use super::backlog::BacklogGauge;
use super::committed_stream::CommittedStream;
use super::context::WriterContext;
use super::error::WriterError;
use super::recent_reads::RecentReads;
use super::status::Alarms;
use crate::limits::{
    COMMIT_BYTES, COMMIT_JOBS, CONFLICT_LONGEST_WAIT, CONFLICT_TIME, DOUBT_ATTEMPTS, DOUBT_FIRST_WAIT,
    DOUBT_LONGEST_WAIT, OUTCOME_LINGER, PARKED_POLL,
};

/// A job in the queue.
pub type Job = Box<dyn Work>;

/// The writer task and its state.
pub struct Transactions {
    pub context: Arc<WriterContext>,
    pub store: Arc<dyn EvidenceStore>,
    pub gauge: Arc<BacklogGauge>,
    pub alarms: Arc<Alarms>,
    /// Notified when records are committed.
    pub outbox: Arc<Notify>,
    pub jobs: mpsc::UnboundedReceiver<Job>,
    cache: SessionCache<CommittedStream>,
    parked: ParkedCalls,
    /// Jobs for the next batch: they waited in a stream that has changed, or did not fit into the last batch.
    ready: Vec<Job>,
    owed: RetryQueue,
    stop: CancellationToken,
}

/// Result of a batch.
enum BatchResult {
    /// The batch is durable.
    Committed,
    /// The batch is not committed, as far as is known.
    Failed(WriterError),
    /// Nothing was committed, and one job alone may be the cause: each is tried by itself.
    OneByOne,
}

impl Transactions {
    /// A writer with an empty cache.
    pub fn new(
        context: Arc<WriterContext>,
        store: Arc<dyn EvidenceStore>,
        (gauge, alarms, outbox): (Arc<BacklogGauge>, Arc<Alarms>, Arc<Notify>),
        jobs: mpsc::UnboundedReceiver<Job>,
    ) -> Self {
        let cache = SessionCache::new(context.settings.sessions_in_memory);
        let (parked, ready, owed) = (ParkedCalls::default(), Vec::new(), RetryQueue::nothing());
        let stop = CancellationToken::new();
        Self { context, store, gauge, alarms, outbox, jobs, cache, parked, ready, owed, stop }
    }

    /// Writes until `stop` is cancelled, and finally the jobs queued by then.
    pub async fn run(mut self, stop: CancellationToken) {
        self.stop = stop;
        let mut poll = tokio::time::interval(PARKED_POLL);
        poll.set_missed_tick_behavior(tokio::time::MissedTickBehavior::Delay);
        loop {
            let mut batch = Vec::new();
            // The queue comes last, as it may never be empty: each branch takes the queued jobs along.
            tokio::select! {
                biased;
                () = self.stop.cancelled() => break,
                _ = poll.tick(), if !self.parked.is_empty() => batch = self.check_parked(),
                () = tokio::time::sleep_until(self.owed.again()), if !self.owed.is_empty() => self.retry_owed().await,
                job = self.jobs.recv() => match job {
                    Some(job) => batch = self.gather(job).await,
                    None => break,
                },
            }
            self.take_all(batch).await;
        }
        self.end().await;
    }

    /// Writes the jobs handed in so far, unless the outcome of a commit is still unknown.
    async fn end(mut self) {
        self.jobs.close();
        let mut rest = Vec::new();
        while let Ok(job) = self.jobs.try_recv() {
            rest.push(job);
        }
        match self.alarms.is_doubting() {
            true => rest.into_iter().for_each(|job| drop(job.failed(&WriterError::Stopping))),
            false => {
                self.take_all(rest).await;
                self.retry_owed().await;
            }
        }
        let waiting = self.parked.drain().chain(std::mem::take(&mut self.ready));
        waiting.for_each(|job| drop(job.failed(&WriterError::Stopping)));
    }

    /// Writes these jobs, and those that become ready because of them.
    async fn take_all(&mut self, batch: Vec<Job>) {
        self.take(batch).await;
        while !self.ready.is_empty() {
            self.take(Vec::new()).await;
        }
    }

    /// Retries the owed jobs, until all are durable or some fail again.
    async fn retry_owed(&mut self) {
        let mut left = self.owed.len();
        while left > 0 {
            let some = self.owed.some(left);
            let (tried, others) = (some.len(), self.owed.len());
            self.write(some).await;
            if self.owed.len() > others {
                return self.owed.failed_again(tried);
            }
            self.owed.succeeded();
            left -= tried;
        }
    }

    /// Collects a job and those that follow it. An outcome for which no caller waits is delayed by up to
    /// [`OUTCOME_LINGER`], so that it shares its commit with a decision, which would otherwise wait for two commits.
    async fn gather(&mut self, first: Job) -> Vec<Job> {
        let until = tokio::time::Instant::now() + OUTCOME_LINGER;
        let mut urgent = first.is_urgent() || !self.parked.is_empty();
        let mut batch = vec![first];
        while !urgent && batch.len() < COMMIT_JOBS {
            let Ok(Some(job)) = tokio::time::timeout_at(until, self.jobs.recv()).await else { break };
            urgent = job.is_urgent();
            batch.push(job);
        }
        batch
    }

    /// Writes these jobs together with the ready and the queued ones, up to [`COMMIT_JOBS`].
    async fn take(&mut self, mut jobs: Vec<Job>) {
        jobs.append(&mut self.ready);
        while jobs.len() < COMMIT_JOBS
            && let Ok(job) = self.jobs.try_recv()
        {
            jobs.push(job);
        }
        jobs.retain(|job| !job.is_abandoned());
        let jobs = self.refuse_while_full(jobs);
        if !jobs.is_empty() {
            self.write(jobs).await;
        }
        self.alarms.in_memory(self.cache.len(), self.parked.len());
    }

    /// Fails the jobs that may be refused while the outbox is full, and returns the others: owed jobs go on.
    fn refuse_while_full(&self, jobs: Vec<Job>) -> Vec<Job> {
        let Some(over) = self.gauge.over(&self.context.settings.outbox, self.context.clock.seconds()) else {
            return jobs;
        };
        let (refused, rest): (Vec<Job>, Vec<Job>) = jobs.into_iter().partition(|job| job.may_be_refused());
        for job in refused {
            job.failed(&WriterError::Backpressure(over));
        }
        rest
    }

    async fn write(&mut self, mut jobs: Vec<Job>) {
        match self.batch(&mut jobs).await {
            BatchResult::Committed => self.answer(jobs),
            BatchResult::Failed(why) => self.give_up(jobs, &why),
            BatchResult::OneByOne => {
                for job in jobs {
                    let mut alone = vec![job];
                    match self.batch(&mut alone).await {
                        BatchResult::Committed => self.answer(alone),
                        BatchResult::Failed(why) => self.give_up(alone, &why),
                        BatchResult::OneByOne => {
                            let why = "the database refuses it".to_owned();
                            self.give_up(alone, &WriterError::Unrecordable(why));
                        }
                    }
                }
            }
        }
    }

    fn answer(&mut self, jobs: Vec<Job>) {
        for job in jobs {
            job.committed();
        }
    }

    fn give_up(&mut self, jobs: Vec<Job>, why: &WriterError) {
        self.alarms.store_fails(&why.to_string());
        jobs.into_iter().for_each(|job| self.fail(job, why));
    }

    fn fail(&mut self, job: Job, why: &WriterError) {
        if let Some(owed) = job.failed(why) {
            self.owed.put(owed);
        }
    }

    /// Decides and commits a batch. Jobs that have to wait or cannot be decided are removed from it.
    async fn batch(&mut self, jobs: &mut Vec<Job>) -> BatchResult {
        let until = tokio::time::Instant::now() + CONFLICT_TIME;
        loop {
            let (changes, committed) = match self.decide(jobs).await {
                Ok(decided) => decided,
                Err(error) => return BatchResult::Failed(error),
            };
            if changes.is_empty() {
                return BatchResult::Committed;
            }
            match self.commit(&changes).await {
                Ok(()) => {
                    self.keep(&changes, committed);
                    return BatchResult::Committed;
                }
                Err(CommitError::Conflict(streams)) => {
                    self.alarms.conflicted();
                    streams.iter().for_each(|stream| self.forget(stream));
                    if tokio::time::Instant::now() >= until {
                        let why = "other processes kept coming first".to_owned();
                        return BatchResult::Failed(WriterError::Unavailable(why));
                    }
                    tokio::time::sleep(conflict_wait()).await;
                }
                Err(error) => {
                    // The cached state may be the one that the database refuses.
                    changes.iter().for_each(|change| self.forget(&change.stream));
                    return match error {
                        CommitError::Failed(StoreError::Refused(why)) => {
                            tracing::error!(why, "the database refuses a commit");
                            BatchResult::OneByOne
                        }
                        CommitError::Full(why) => BatchResult::Failed(WriterError::Full(why)),
                        error => BatchResult::Failed(WriterError::Unavailable(error.to_string())),
                    };
                }
            }
        }
    }

    /// Decides all jobs in order, on fresh working copies.
    async fn decide(&mut self, jobs: &mut Vec<Job>) -> Result<batch::BatchChanges, WriterError> {
        jobs.iter().filter_map(|job| job.seen()).for_each(|(stream, seen)| self.forget_older(stream, seen));
        let early = early_reads(&self.context.recent, &*self.store, jobs).await?;
        'afresh: loop {
            let context = self.context.clone();
            let mut batch = Batch::new(&context);
            early.iter().for_each(|early| batch.take_early(early));
            let names = jobs.iter().flat_map(|job| job.streams());
            batch.open(&*self.store, &mut self.cache, names.collect::<Vec<_>>()).await?;
            let own = batch.stream(&context.own_stream());
            if context.settings.shared && own.is_some_and(|own| own.is_closed()) {
                context.begin_own_stream();
                continue 'afresh;
            }
            let mut index = 0;
            let is_complete = |batch: &Batch<'_>| batch.bytes() >= COMMIT_BYTES || batch.ends_own_stream();
            while index < jobs.len() && (index == 0 || !is_complete(&batch)) {
                batch.missing();
                match jobs[index].decide(&mut batch) {
                    JobStep::Decided => index += 1,
                    JobStep::Nothing => jobs.remove(index).committed(),
                    JobStep::Needs(more) => {
                        batch.open(&*self.store, &mut self.cache, more.iter().cloned()).await?;
                        if let Some(why) = batch.damage(&more) {
                            self.fail(jobs.remove(index), &why);
                        }
                    }
                    JobStep::NeedsClaims(claims) => {
                        let read = EarlyRead::of_claims(&context.recent, &*self.store, claims).await?;
                        batch.take_early(&read);
                    }
                    JobStep::Wait(awaited) => {
                        if let Err(job) = self.parked.park(jobs.remove(index), awaited) {
                            self.fail(job, &WriterError::Crowded);
                        }
                    }
                    JobStep::Impossible(why) => {
                        tracing::error!(%why, "a decision could not be made");
                        self.fail(jobs.remove(index), &why);
                        continue 'afresh;
                    }
                }
            }
            self.ready.extend(jobs.drain(index..));
            return batch.close();
        }
    }

    /// Commits, and if the outcome is unknown finds it out: no decision is made twice while in doubt.
    async fn commit(&mut self, changes: &[Change]) -> Result<(), CommitError> {
        let mut doubt = String::new();
        for _ in 0..DOUBT_ATTEMPTS {
            doubt = match self.store.commit(changes).await {
                Err(CommitError::MayHaveHappened(why)) => why,
                known => return known,
            };
            self.alarms.doubted(&doubt);
            if self.happened(changes).await? {
                return Ok(());
            }
        }
        Err(CommitError::Failed(StoreError::Unavailable(doubt)))
    }

    /// Asks the database until the outcome is known. If it cannot be known in this process, or the writer is to stop,
    /// the jobs fail; the next start settles as unknown what the database has.
    async fn happened(&mut self, changes: &[Change]) -> Result<bool, StoreError> {
        let mut wait = DOUBT_FIRST_WAIT;
        loop {
            match self.store.happened(changes).await {
                Ok(happened) => {
                    self.alarms.doubting(false);
                    return Ok(happened);
                }
                Err(error) => {
                    self.alarms.doubting(true);
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

    /// Caches the committed streams, and wakes the calls parked in one of them.
    fn keep(&mut self, changes: &[Change], committed: Vec<(String, CommittedStream)>) {
        let records = || changes.iter().flat_map(|change| &change.records);
        let bytes: usize = records().map(|record| record.statement.len()).sum();
        let number = |count: usize| u64::try_from(count).unwrap_or(u64::MAX);
        let count = number(records().count());
        self.gauge.add(count, number(bytes), self.context.clock.seconds());
        self.alarms.committed(count);
        for (name, committed) in committed {
            self.context.remember(&mut self.cache, name, committed);
        }
        changes.iter().flat_map(|change| &change.claims).for_each(|claim| self.context.recent.used(claim));
        if count > 0 {
            self.outbox.notify_one();
        }
        let moved: HashSet<&str> = changes.iter().map(|change| change.stream.as_str()).collect();
        self.ready.extend(self.parked.wake(&moved));
    }

    /// Forgets a stream: the database has another state of it, or may have one.
    fn forget(&mut self, stream: &str) {
        self.cache.remove(stream);
        self.context.recent.forget(stream);
    }

    /// Forgets a stream if what is known of it is older than this version. Another process may have changed it, and
    /// nothing that this process commits would conflict with that.
    fn forget_older(&mut self, stream: &str, seen: u64) {
        let known = self.context.known(&mut self.cache, stream);
        if known.is_some_and(|known| known.version < Some(seen)) {
            self.forget(stream);
        }
    }

    /// Checks the parked calls: another process may have settled the call they wait for, without a notification here,
    /// and the wait is bounded by `wait_for_cost`.
    fn check_parked(&mut self) -> Vec<Job> {
        let longest = self.context.settings.wait_for_cost;
        let ParkedCallsDue { late, ready, streams } = self.parked.take_due(longest);
        if self.context.settings.shared {
            streams.iter().for_each(|stream| self.cache.remove(stream));
        }
        for job in late {
            let why = format!(
                "the cost of another call of this tool was still unknown after {} s",
                longest.as_secs()
            );
            self.fail(job, &WriterError::Unavailable(why));
        }
        ready
    }
}

/// Returns a random wait of at most [`CONFLICT_LONGEST_WAIT`], so that processes that came into conflict do not meet again.
fn conflict_wait() -> Duration {
    let random = f64::from(getrandom::u32().unwrap_or(u32::MAX)) / f64::from(u32::MAX);
    CONFLICT_LONGEST_WAIT.mul_f64(random)
}

/// Takes what was read for the jobs, and looks up the claims of the others. A stream that one of the others names is left
/// out, and so read again: a job that changes it needs its newest version.
async fn early_reads(
    recent: &RecentReads,
    store: &dyn EvidenceStore,
    jobs: &mut [Job],
) -> Result<Vec<EarlyRead>, StoreError> {
    let (mut early, mut claims, mut read_again) = (Vec::new(), Vec::new(), HashSet::new());
    for job in jobs {
        match job.take_early_read() {
            Some(read) => early.push(read),
            None => {
                claims.extend(job.claims());
                read_again.extend(job.streams());
            }
        }
    }
    for read in &mut early {
        read.streams.retain(|(name, _)| !read_again.contains(name));
    }
    if !claims.is_empty() {
        early.push(EarlyRead::of_claims(recent, store, claims).await?);
    }
    Ok(early)
}
