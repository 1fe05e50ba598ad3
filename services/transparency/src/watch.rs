//! Background tasks of a log: gauges, the policy in force, durability, keys, rate buckets; and `/readyz`.

use std::sync::Arc;
use std::time::{Duration, SystemTime, UNIX_EPOCH};

use async_trait::async_trait;
use merkle::TreeSize;
use sequencer::{Halt, HeadSigner, Observer, Role, Status, Step};
use store::{InboxUse, StoreError};
use tokio::time::MissedTickBehavior;

use crate::admin::Readiness;
use crate::background::Background;
use crate::config::Config;
use crate::erasure::keep_erasing;
use crate::erasure::retention::keep_sweeping;
use crate::free_space::keep_measuring;
use crate::fsck::{Schedule, keep_checking};
use crate::limits::{
    DURABILITY_CHECK, INBOX_MEASURE, KEY_POLL, RATE_SWEEP, STALLED_DRAIN, STALLED_STEP, STUCK_STEP,
    UNSIGNED_HEAD_TIME,
};
use crate::log::Log;
use crate::metrics::Metrics;
use crate::published_keys::PublishedKeys;
use crate::witnessing;

/// Pause before a policy that could not be read is read again.
const POLICY_PAUSE: Duration = Duration::from_secs(1);

/// Starts all background tasks of a log.
pub fn start(log: &Arc<Log>, config: &Config, background: &Background) {
    background.spawn("the sequencer's status", follow_status(log.clone()));
    background.spawn("the check of durability", check_durability(log.clone()));
    background.spawn("the key table", follow_keys(log.clone()));
    background.spawn("the sweep of rate buckets", sweep(log.clone()));
    background.spawn("the measure of free space", keep_measuring(log.clone()));
    background.spawn("the measure of the inbox", measure_inbox(log.clone()));
    background.spawn("erasure", keep_erasing(log.clone()));
    let schedule = Schedule {
        rate: config.limits.fsck_rate,
        every: config.limits.fsck_every,
        state_dir: config.state_dir.clone(),
    };
    background.spawn("the check of the storage", keep_checking(log.clone(), schedule));
    witnessing::start(&log.witnessing, &log.sequencer.status(), background);
    let operator = config.keys.operator.clone();
    background.spawn("retention", keep_sweeping(log.clone(), operator, config.limits.retention_every));
}

/// Follows the sequencer's status: updates gauges and the policy in force.
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

/// Checks periodically that the database still commits durably. If its durability was turned off, registration stops,
/// because a crash could lose acknowledged entries.
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
        Err(error @ (StoreError::Unavailable(_) | StoreError::Storage(..))) => {
            tracing::warn!(%error, "durability settings could not be checked");
        }
        Err(error) => {
            tracing::error!(%error, "registration stops: the database would forget what it acknowledges");
            log.obstacle.store(Some(Arc::new(error.to_string())));
        }
    }
}

/// Follows the key table: announced keys, signing keys, and the published set.
async fn follow_keys(log: Arc<Log>) {
    let mut every = tokio::time::interval(KEY_POLL);
    every.set_missed_tick_behavior(MissedTickBehavior::Delay);
    let (mut failing, mut known) = (false, log.signer.keys());
    loop {
        every.tick().await;
        let changed = log.signer.reload().await;
        if let Err(error) = &changed
            && !failing
        {
            tracing::warn!(%error, "the key table cannot be read");
        }
        failing = changed.is_err();
        // The leader also reads the table when it activates a key, so compare with the last published keys.
        let keys = log.signer.keys();
        if keys != known {
            log.keys.store(Arc::new(PublishedKeys::sound(&keys)));
            known = keys;
        }
    }
}

async fn sweep(log: Arc<Log>) {
    let mut every = tokio::time::interval(RATE_SWEEP);
    loop {
        every.tick().await;
        log.doors.sweep(&*log.store).await;
    }
}

/// Updates the gauges of the inbox.
async fn measure_inbox(log: Arc<Log>) {
    let mut every = tokio::time::interval(INBOX_MEASURE);
    loop {
        every.tick().await;
        match log.store.inbox_use().await {
            Ok(InboxUse { rows, bytes, oldest }) => {
                log.metrics.inbox_rows.set(gauge(rows));
                log.metrics.inbox_bytes.set(gauge(bytes));
                log.metrics.inbox_oldest.set(gauge(oldest.map_or(0, |at| now().saturating_sub(at))));
            }
            Err(error) => tracing::warn!(%error, "the inbox could not be measured"),
        }
    }
}

/// Records the sequencer's events as metrics.
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

    fn signatures_made(&self, count: usize, took: Duration) {
        self.0.stage("sign", took);
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
            other => {
                tracing::info!(role = other.name(), epoch = other.epoch(), "the role of this process changed")
            }
        }
    }

    fn inbox_refused(&self) {
        self.0.inbox_refused.inc();
    }

    fn queue(&self, entries: usize, _bytes: usize) {
        self.0.queue_depth.set(entries as i64);
    }
}

/// The readiness of a log, for `/readyz` and `/livez`.
pub struct Ready(pub Arc<Log>);

#[async_trait]
impl Readiness for Ready {
    async fn obstacles(&self) -> Vec<String> {
        let log = &self.0;
        let mut found = Vec::new();
        let status = log.sequencer.status().borrow().clone();
        match &status.role {
            // A frozen log is ready: its purpose is reading.
            Role::Leading { .. } | Role::Halted(Halt::Frozen) => {}
            Role::Following => found
                .extend(status.ineligible.as_ref().map(|why| format!("this process may not lead: {why}"))),
            Role::Halted(halt) => found.push(format!("sequencing stopped: {halt}")),
            Role::Stopped => found.push("the service is stopping".into()),
        }
        found.extend(longer_than(STALLED_STEP, log.sequencer.activity()));
        let unread = log.sequencer.drained().filter(|age| *age > STALLED_DRAIN);
        found.extend(unread.map(|age| format!("the inbox could not be read for {} s", age.as_secs())));
        if let Some(obstacle) = log.obstacle.load_full() {
            found.push(obstacle.to_string());
        }
        found.extend(log.space.low().map(|why| format!("registration is refused: {why}")));
        found.extend(log.fsck.named());
        found.extend(log.signer.missing());
        if log.policies.current().is_none() {
            found.push("the log has no registration policy yet".into());
        }
        match log.store.head().await {
            Err(error) => found.push(error.to_string()),
            Ok(head) => found.extend(unsigned(&status, head.size(), head.at)),
        }
        found
    }

    /// [`Step::Settle`] does not count: it lasts as long as the database is away, and a restart would not help.
    fn stuck(&self) -> Option<String> {
        let step = self.0.sequencer.activity().filter(|(step, _)| *step != Step::Settle);
        longer_than(STUCK_STEP, step)
    }

    fn refresh(&self) {
        let metrics = &self.0.metrics;
        if let Some(published) = self.0.sequencer.published() {
            metrics.checkpoint_age.set(now().saturating_sub(published.head.at) as f64);
        }
        metrics.queue_depth.set(self.0.sequencer.queue().0 as i64);
    }
}

fn longer_than(patience: Duration, activity: Option<(Step, Duration)>) -> Option<String> {
    let (step, took) = activity.filter(|(_, took)| *took > patience)?;
    Some(format!("{step} has not ended for {} s", took.as_secs()))
}

fn unsigned(status: &Status, committed: TreeSize, at: u64) -> Option<String> {
    let signed = status.published.as_ref().map_or(0, |published| published.head.size.get());
    let late = now().saturating_sub(at) > UNSIGNED_HEAD_TIME.as_secs();
    (signed < committed.get() && late)
        .then(|| format!("{committed} leaves are committed and {signed} are signed"))
}

/// Now, in Unix seconds.
pub fn now() -> u64 {
    SystemTime::now().duration_since(UNIX_EPOCH).map_or(0, |since| since.as_secs())
}
