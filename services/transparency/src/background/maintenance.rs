//! Background tasks of a log: gauges, the policy in force, durability, keys, rate buckets.

use std::sync::Arc;
use std::time::Duration;

use sequencer::{Halt, Role, Status};
use store::{InboxUse, StoreError};
use tokio::time::MissedTickBehavior;

use crate::background::eraser::keep_erasing;
use crate::background::free_space::keep_measuring;
use crate::background::retention::keep_sweeping;
use crate::config::Config;
use crate::fsck::{CheckSchedule, keep_checking};
use crate::index::Index;
use crate::index::head_maker::keep_making_heads;
use crate::limits::{DURABILITY_CHECK, INBOX_MEASURE, KEY_POLL, RATE_SWEEP};
use crate::log::state::Log;
use crate::proofs::published_keys::PublishedKeys;
use crate::tasks::BackgroundTasks;
use crate::time::now;
use crate::witnessing;

/// Pause before a policy that could not be read is read again.
const POLICY_PAUSE: Duration = Duration::from_secs(1);

/// Starts all background tasks of a log.
pub fn start(log: &Arc<Log>, index: &Arc<Index>, config: &Config, background: &BackgroundTasks) {
    background.spawn("the sequencer's status", follow_status(log.clone()));
    background.spawn("the check of durability", check_durability(log.clone()));
    background.spawn("the key table", follow_keys(log.clone()));
    background.spawn("the sweep of rate buckets", sweep(log.clone()));
    background.spawn("the measure of free space", keep_measuring(log.clone()));
    background.spawn("the measure of the inbox", measure_inbox(log.clone()));
    background.spawn("erasure", keep_erasing(log.clone()));
    let schedule = CheckSchedule {
        rate: config.limits.fsck_rate,
        every: config.limits.fsck_every,
        state_dir: config.state_dir.clone(),
    };
    background.spawn("the check of the storage", keep_checking(log.clone(), schedule));
    witnessing::start(&log.witnessing, &log.sequencer.status(), background);
    let operator = config.keys.operator.clone();
    let retention = keep_sweeping(log.clone(), index.clone(), operator, config.limits.retention_every);
    background.spawn("retention", retention);
    background.spawn("the look-up index", index.clone().follow());
    background.spawn("heads of the index", keep_making_heads(index.clone(), config.keys.index.clone()));
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
    metrics.storage.frozen.set(matches!(status.role, Role::Halted(Halt::Frozen)).into());
    if let Some(published) = &status.published {
        if !log.witnessing.needs_quorum() {
            metrics.witness.served_size.set(gauge(published.head.size.get()));
        }
        metrics.tree.size.set(gauge(published.head.size.get()));
        metrics.tree.timestamp.set(gauge(published.head.at));
    }
    if let Role::Leading { epoch } = status.role {
        metrics.storage.fence_epoch.set(gauge(epoch));
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
            tracing::error!(%error, "registration stops: the database is configured to lose acknowledged data");
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
        log.access.sweep(&*log.store).await;
    }
}

/// Updates the gauges of the inbox.
async fn measure_inbox(log: Arc<Log>) {
    let mut every = tokio::time::interval(INBOX_MEASURE);
    loop {
        every.tick().await;
        match log.store.inbox_use().await {
            Ok(InboxUse { rows, bytes, oldest }) => {
                log.metrics.inbox.rows.set(gauge(rows));
                log.metrics.inbox.bytes.set(gauge(bytes));
                log.metrics.inbox.oldest.set(gauge(oldest.map_or(0, |at| now().saturating_sub(at))));
            }
            Err(error) => tracing::warn!(%error, "the inbox could not be measured"),
        }
    }
}
