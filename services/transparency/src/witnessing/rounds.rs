//! The schedule of the heads that are sent to the witnesses.
//!
//! A round sends the newest head to all witnesses: as soon as the log has grown and the last round is long enough ago,
//! and periodically when it has not, to show its freshness. A slow or unreachable witness gets the newest head at its
//! next attempt, and catches up with one proof however many heads it missed.

use std::sync::Arc;
use std::time::Duration;

use merkle::TreeSize;
use sequencer::{Halt, Role, Status};
use store::StoreError;
use tokio::sync::watch;
use tokio::time::{Instant, sleep};

use super::ask::WitnessError;
use super::witness::HttpWitness;
use super::{Witnessing, served};
use crate::limits::{WITNESS_LONGEST_PAUSE, WITNESS_RETRY, WITNESS_SIGNATURE_POLL};
use crate::tasks::BackgroundTasks;
use crate::time::now;

/// Starts the tasks that send heads to the witnesses and serve the cosigned checkpoint.
pub fn start(witnessing: &Arc<Witnessing>, status: &watch::Receiver<Status>, background: &BackgroundTasks) {
    if witnessing.is_idle() {
        return;
    }
    background.spawn("the served checkpoint", served::keep_up(witnessing.clone()));
    if witnessing.remote.is_empty() {
        return;
    }
    background.spawn("the rounds of the witnesses", call_rounds(witnessing.clone(), status.clone()));
    for witness in &witnessing.remote {
        background.spawn("the exchange with a witness", attend(witnessing.clone(), witness.clone()));
    }
}

/// The last round.
struct CosigningRound {
    size: TreeSize,
    at: Instant,
}

/// Starts rounds while this process leads, or the log is frozen.
async fn call_rounds(witnessing: Arc<Witnessing>, mut status: watch::Receiver<Status>) {
    let mut last: Option<CosigningRound> = None;
    loop {
        let published = published(&status.borrow_and_update());
        let Some(published) = published else {
            last = None;
            witnessing.shown.send_replace(None);
            if status.changed().await.is_err() {
                return;
            }
            continue;
        };
        if is_due(&witnessing, last.as_ref(), published) {
            match call(&witnessing, last.as_ref()).await {
                Ok(Some(round)) => last = Some(round),
                // The signature of the newest head is not in the database yet.
                Ok(None) => sleep(WITNESS_SIGNATURE_POLL).await,
                Err(error) => {
                    tracing::warn!(%error, "the head for the witnesses cannot be read");
                    sleep(WITNESS_RETRY).await;
                }
            }
            continue;
        }
        // A round is not due, so there was one before.
        let since = last.as_ref().map_or(Duration::ZERO, |last| last.at.elapsed());
        let grown = last.as_ref().is_none_or(|last| published > last.size);
        tokio::select! {
            () = sleep(witnessing.settings.pace.saturating_sub(since)), if grown => {}
            () = sleep(witnessing.settings.every.saturating_sub(since)), if !grown => {}
            changed = status.changed() => if changed.is_err() { return },
        }
    }
}

/// The newest published size, if this process leads or the log is frozen. A frozen log has no leader, so each of its
/// processes sends the last head, which must stay fresh.
fn published(status: &Status) -> Option<TreeSize> {
    match status.role {
        Role::Leading { .. } | Role::Halted(Halt::Frozen) => {
            status.published.as_ref().map(|published| published.head.size)
        }
        _ => None,
    }
}

fn is_due(witnessing: &Witnessing, last: Option<&CosigningRound>, published: TreeSize) -> bool {
    let settings = &witnessing.settings;
    last.is_none_or(|last| {
        let since = last.at.elapsed();
        since >= settings.every || (published > last.size && since >= settings.pace)
    })
}

/// Starts a round with the newest stored head. `None` if it is the head of the last round, and too early to send it
/// again.
async fn call(
    witnessing: &Witnessing,
    last: Option<&CosigningRound>,
) -> Result<Option<CosigningRound>, StoreError> {
    let every = witnessing.settings.every;
    let is_news = |size| last.is_none_or(|last| size > last.size || last.at.elapsed() >= every);
    let newest = witnessing.newest().await?.filter(|newest| is_news(newest.size));
    Ok(newest.map(|newest| {
        let round = CosigningRound { size: newest.size, at: Instant::now() };
        witnessing.shown.send_replace(Some(Arc::new(newest)));
        round
    }))
}

/// Sends the head of each round to one witness, and after a failure the newest one again until it cosigns.
async fn attend(witnessing: Arc<Witnessing>, witness: Arc<HttpWitness>) {
    let mut shown = witnessing.shown.subscribe();
    loop {
        let head = shown.borrow_and_update().clone();
        let outcome = match &head {
            Some(head) => witnessing.ask(&witness, head).await.map(drop),
            None => Ok(()),
        };
        match outcome {
            Ok(()) => {
                if head.is_some() && witness.is_well() {
                    tracing::info!(witness = witness.name, "the witness cosigns again");
                }
                if shown.changed().await.is_err() {
                    return;
                }
            }
            Err(trouble) => sleep(after(&witnessing, &witness, &trouble)).await,
        }
    }
}

/// Records a failure, and returns the pause before the next attempt.
fn after(witnessing: &Witnessing, witness: &HttpWitness, trouble: &WitnessError) -> Duration {
    let code = trouble.code();
    witnessing.metrics.witness.error(&witness.name, code);
    let times = witness.failed(code, now());
    if times == 1 {
        tracing::warn!(witness = witness.name, code, %trouble, "the witness does not cosign");
    } else {
        tracing::debug!(witness = witness.name, code, %trouble, times, "the witness does not cosign");
    }
    let own = pause(witnessing.settings.pace, witnessing.settings.every, times);
    trouble.retry_after().map_or(own, |asked| asked.min(WITNESS_LONGEST_PAUSE).max(own))
}

/// Exponential back-off: doubles with each failure, up to the interval of the rounds. A random factor of 0.75 to 1
/// keeps processes and witnesses from synchronizing.
fn pause(pace: Duration, every: Duration, times: u32) -> Duration {
    let doubled = pace.saturating_mul(1 << times.saturating_sub(1).min(16));
    let random = u16::from_le_bytes(uuid::Uuid::new_v4().as_bytes()[..2].try_into().unwrap_or_default());
    doubled.min(every.max(pace)).mul_f64(0.75 + f64::from(random) / f64::from(u16::MAX) / 4.0)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn pauses_grow_from_the_pace_to_the_interval_and_are_never_longer() {
        let (pace, every) = (Duration::from_secs(5), Duration::from_secs(60));
        for (times, most) in [(1, 5), (2, 10), (3, 20), (4, 40), (5, 60), (6, 60), (u32::MAX, 60)] {
            let pause = pause(pace, every, times);
            let most = Duration::from_secs(most);
            assert!(pause <= most && pause >= most.mul_f64(0.75), "{times}: {pause:?}");
        }
    }

    #[test]
    fn an_interval_below_the_pace_does_not_shorten_the_pause() {
        assert!(pause(Duration::from_secs(5), Duration::from_secs(1), 9) >= Duration::from_millis(3_750));
    }
}
