//! The readiness of a log, for `/readyz` and `/livez`.

use std::time::Duration;

use merkle::TreeSize;
use sequencer::{Halt, HeadSigner, Role, Status, Step};

use crate::limits::{STALLED_DRAIN, STALLED_STEP, STUCK_STEP, UNSIGNED_HEAD_TIME};
use crate::log::state::Log;
use crate::time::now;

/// Returns the reasons why the log cannot register; none if it is ready.
pub async fn obstacles(log: &Log) -> Vec<String> {
    let mut found = Vec::new();
    let status = log.sequencer.status().borrow().clone();
    match &status.role {
        // A frozen log is ready: its purpose is reading.
        Role::Leading { .. } | Role::Halted(Halt::Frozen) => {}
        Role::Following => {
            found.extend(status.ineligible.as_ref().map(|why| format!("this process may not lead: {why}")))
        }
        Role::Halted(halt) => found.push(format!("sequencing stopped: {halt}")),
        Role::Stopped => found.push("the service is stopping".into()),
    }
    found.extend(longer_than(STALLED_STEP, log.sequencer.activity()));
    let unread = log.sequencer.drained().filter(|age| *age > STALLED_DRAIN);
    found.extend(unread.map(|age| format!("the inbox could not be read for {} s", age.as_secs())));
    found.extend(refusals(log));
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

/// Returns the reasons why this process refuses statements, besides the state of its sequencer.
pub fn refusals(log: &Log) -> impl Iterator<Item = String> {
    let obstacle = log.obstacle.load_full().map(|obstacle| obstacle.to_string());
    let space = log.space.low().map(|why| format!("registration is refused: {why}"));
    obstacle.into_iter().chain(space).chain(log.failed_write.reported())
}

/// Returns the reason why only a new process can help; `None` while this one works or recovers automatically.
/// [`Step::Settle`] does not count: it lasts as long as the database is away, and a restart would not help.
pub fn stuck(log: &Log) -> Option<String> {
    let step = log.sequencer.activity().filter(|(step, _)| *step != Step::Settle);
    longer_than(STUCK_STEP, step)
}

/// Updates the gauges that are measured only when the metrics are read.
pub fn refresh(log: &Log) {
    let metrics = &log.metrics;
    if let Some(published) = log.sequencer.published() {
        metrics.tree.checkpoint_age.set(now().saturating_sub(published.head.at) as f64);
    }
    metrics.batches.queue_depth.set(log.sequencer.queue().0 as i64);
}

fn longer_than(patience: Duration, activity: Option<(Step, Duration)>) -> Option<String> {
    let (step, took) = activity.filter(|(_, took)| *took > patience)?;
    Some(format!("{step} has not ended for {} s", took.as_secs()))
}

fn unsigned(status: &Status, committed: TreeSize, at: u64) -> Option<String> {
    let signed = status.published.as_ref().map_or(0, |published| published.head.size.get());
    let late = now().saturating_sub(at) > UNSIGNED_HEAD_TIME.as_secs();
    (signed < committed.get() && late)
        .then(|| format!("the tree is committed to size {committed} and signed to size {signed}"))
}
