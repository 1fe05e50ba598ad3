//! What goes on beside the requests: gauges, the policy in force, durability, rate buckets.

use std::path::PathBuf;
use std::sync::Arc;
use std::time::{Duration, SystemTime, UNIX_EPOCH};

use async_trait::async_trait;
use merkle::TreeSize;
use sequencer::{Halt, Observer, Role, Status};
use store::StoreError;
use tokio_util::sync::CancellationToken;
use tokio_util::task::TaskTracker;

use crate::admin::Readiness;
use crate::config::Config;
use crate::erasure::keep_erasing;
use crate::erasure::retention::keep_sweeping;
use crate::fsck::{Schedule, keep_checking};
use crate::limits::{DURABILITY_CHECK, RATE_SWEEP, UNSIGNED_HEAD_TIME};
use crate::log::Log;
use crate::metrics::Metrics;
use crate::witnessing;

/// How long to wait before a policy that could not be read is read again.
const POLICY_PAUSE: Duration = Duration::from_secs(1);

/// Starts every background task of a log; they end with `stop`.
pub fn start(log: &Arc<Log>, config: &Config, tasks: &TaskTracker, stop: &CancellationToken) {
    spawn(tasks, stop, follow_status(log.clone()));
    spawn(tasks, stop, check_durability(log.clone()));
    spawn(tasks, stop, sweep(log.clone(), config.state_dir.clone()));
    spawn(tasks, stop, keep_erasing(log.clone()));
    spawn(
        tasks,
        stop,
        keep_checking(
            log.clone(),
            Schedule {
                rate: config.limits.fsck_rate,
                every: config.limits.fsck_every,
                state_dir: config.state_dir.clone(),
            },
        ),
    );
    witnessing::start(&log.witnessing, &log.sequencer.status(), tasks, stop);
    let operator = config.keys.operator.clone();
    spawn(tasks, stop, keep_sweeping(log.clone(), operator, config.limits.retention_every));
}

/// Runs a task until it ends, or the service stops.
pub fn spawn(tasks: &TaskTracker, stop: &CancellationToken, task: impl Future<Output = ()> + Send + 'static) {
    let stop = stop.clone();
    tasks.spawn(async move {
        tokio::select! {
            () = stop.cancelled() => {}
            () = task => {}
        }
    });
}

/// Follows the head and the policy.
async fn follow_status(log: Arc<Log>) {
    let mut watched = log.sequencer.status();
    loop {
        let status = watched.borrow_and_update().clone();
        show(&log, &status);
        let has_policy = status.size.get() > 0;
        if has_policy && let Err(error) = log.policies.follow(status.policy).await {
            tracing::error!(%error, "the policy in force cannot be read");
            tokio::time::sleep(POLICY_PAUSE).await;
            continue;
        }
        if watched.changed().await.is_err() {
            return;
        }
    }
}

fn show(log: &Log, status: &Status) {
    let metrics = &log.metrics;
    metrics.log_frozen.set(matches!(status.role, Role::Halted(Halt::Frozen)).into());
    if let Some(published) = &status.published {
        if !log.witnessing.needs_quorum() {
            metrics.witness.served_size.set(gauge(published.head.size.get()));
        }
        metrics.tree_size.set(gauge(published.head.size.get()));
        metrics.tree_timestamp.set(gauge(published.head.at));
    }
    if let Role::Leading { epoch } = status.role {
        metrics.fence_epoch.set(gauge(epoch));
    }
}

fn gauge(number: u64) -> i64 {
    i64::try_from(number).unwrap_or(i64::MAX)
}

/// A server whose durability was turned off under us would forget what we acknowledge.
async fn check_durability(log: Arc<Log>) {
    let mut every = tokio::time::interval(DURABILITY_CHECK);
    every.tick().await;
    loop {
        every.tick().await;
        look_at_durability(&log).await;
    }
}

async fn look_at_durability(log: &Log) {
    match log.store.check_durability().await {
        Ok(()) => log.obstacle.store(None),
        Err(StoreError::Unavailable(why)) => tracing::warn!(why, "durability settings could not be checked"),
        Err(error) => {
            tracing::error!(%error, "registration stops: the database would forget what it acknowledges");
            log.obstacle.store(Some(Arc::new(error.to_string())));
        }
    }
}

async fn sweep(log: Arc<Log>, state_dir: PathBuf) {
    let mut every = tokio::time::interval(RATE_SWEEP);
    loop {
        every.tick().await;
        log.doors.sweep(&*log.store).await;
        if let Ok(space) = rustix::fs::statvfs(&state_dir) {
            log.metrics.free_bytes.set(gauge(space.f_bavail.saturating_mul(space.f_frsize)));
        }
    }
}

/// Counts what the sequencer does.
pub struct Counting(pub Arc<Metrics>);

impl Observer for Counting {
    fn batch_committed(&self, entries: usize, _bytes: usize, took: Duration) {
        self.0.sequence_batch.observe(entries as f64);
        self.0.stage("commit", took);
        self.0.round("none");
    }

    fn head_published(&self, _size: TreeSize, took: Duration) {
        self.0.sequence_duration.observe(took.as_secs_f64());
    }

    fn signatures_made(&self, count: usize) {
        self.0.signatures.inc_by(count as u64);
    }

    fn commit_unknown(&self) {
        self.0.commit_unknown.inc();
        self.0.round("unknown");
    }

    fn signature_not_kept(&self) {
        self.0.round("signature-not-kept");
    }

    fn role_changed(&self, role: &Role) {
        match role {
            Role::Halted(Halt::Frozen) => {
                tracing::warn!("the log is frozen: it takes no more entries; reads go on")
            }
            Role::Halted(halt) => tracing::error!(%halt, "sequencing stopped; reads go on"),
            other => tracing::info!(role = ?other, "role"),
        }
    }

    fn queue(&self, entries: usize, _bytes: usize) {
        self.0.queue_depth.set(entries as i64);
    }
}

/// Answers `/readyz`.
pub struct Ready(pub Arc<Log>);

#[async_trait]
impl Readiness for Ready {
    async fn obstacles(&self) -> Vec<String> {
        let log = &self.0;
        let mut found = Vec::new();
        let status = log.sequencer.status().borrow().clone();
        match &status.role {
            // What a frozen log is for, reading, goes on.
            Role::Leading { .. } | Role::Halted(Halt::Frozen) => {}
            Role::Following => found
                .extend(status.ineligible.as_ref().map(|why| format!("this process may not lead: {why}"))),
            Role::Halted(halt) => found.push(format!("sequencing stopped: {halt}")),
            Role::Stopped => found.push("the service is stopping".into()),
        }
        if let Some(obstacle) = log.obstacle.load_full() {
            found.push(obstacle.to_string());
        }
        found.extend(log.fsck.named());
        if log.policies.current().is_none() {
            found.push("the log has no registration policy yet".into());
        }
        match log.store.head().await {
            Err(error) => found.push(error.to_string()),
            Ok(head) => found.extend(unsigned(&status, head.size(), head.at)),
        }
        found
    }

    fn refresh(&self) {
        let metrics = &self.0.metrics;
        if let Some(published) = self.0.sequencer.published() {
            metrics.checkpoint_age.set(now().saturating_sub(published.head.at) as f64);
        }
        metrics.queue_depth.set(self.0.sequencer.queue().0 as i64);
    }
}

fn unsigned(status: &Status, committed: TreeSize, at: u64) -> Option<String> {
    let signed = status.published.as_ref().map_or(0, |published| published.head.size.get());
    let late = now().saturating_sub(at) > UNSIGNED_HEAD_TIME.as_secs();
    (signed < committed.get() && late)
        .then(|| format!("{committed} leaves are committed and {signed} are signed"))
}

/// Unix seconds.
pub fn now() -> u64 {
    SystemTime::now().duration_since(UNIX_EPOCH).map_or(0, |since| since.as_secs())
}
