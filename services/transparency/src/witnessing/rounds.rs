//! When the witnesses are shown which head.
//!
//! A round shows all of them the newest head: at once when the log has grown and the last round is long enough ago, and
//! again after a while when it has not, so that its freshness can be seen. A witness that does not answer, or is slow, is
//! asked about the newest head when its turn comes, and catches up by one proof however much it missed.

use std::sync::Arc;
use std::time::Duration;

use merkle::TreeSize;
use sequencer::{Halt, Role, Status};
use store::StoreError;
use tokio::sync::watch;
use tokio::time::{Instant, sleep};

use super::ask::Trouble;
use super::witness::Witness;
use super::{Witnessing, served};
use crate::background::Background;
use crate::limits::{WITNESS_LONGEST_PAUSE, WITNESS_RETRY, WITNESS_SIGNATURE_LOOK};
use crate::watch::now;

/// Starts the tasks that show heads to the witnesses and serve what they cosign.
pub fn start(witnessing: &Arc<Witnessing>, status: &watch::Receiver<Status>, background: &Background) {
    if witnessing.is_idle() {
        return;
    }
    background.spawn("the served checkpoint", served::keep_up(witnessing.clone()));
    if witnessing.asked.is_empty() {
        return;
    }
    background.spawn("the rounds of the witnesses", call_rounds(witnessing.clone(), status.clone()));
    for witness in &witnessing.asked {
        background.spawn("the exchange with a witness", attend(witnessing.clone(), witness.clone()));
    }
}

/// The last round that was called.
struct Round {
    size: TreeSize,
    at: Instant,
}

/// Calls rounds while this process leads, or the log is frozen.
async fn call_rounds(witnessing: Arc<Witnessing>, mut status: watch::Receiver<Status>) {
    let mut last: Option<Round> = None;
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
                // Its signature is not in the database yet.
                Ok(None) => sleep(WITNESS_SIGNATURE_LOOK).await,
                Err(error) => {
                    tracing::warn!(%error, "the head that witnesses are to be shown cannot be read");
                    sleep(WITNESS_RETRY).await;
                }
            }
            continue;
        }
        // Not due, so there was a round.
        let since = last.as_ref().map_or(Duration::ZERO, |last| last.at.elapsed());
        let grown = last.as_ref().is_none_or(|last| published > last.size);
        tokio::select! {
            () = sleep(witnessing.settings.pace.saturating_sub(since)), if grown => {}
            () = sleep(witnessing.settings.every.saturating_sub(since)), if !grown => {}
            changed = status.changed() => if changed.is_err() { return },
        }
    }
}

/// The newest published size, if this process leads. The last head of a frozen log has nobody who leads: whoever is there
/// shows it, for it must stay fresh.
fn published(status: &Status) -> Option<TreeSize> {
    match status.role {
        Role::Leading { .. } | Role::Halted(Halt::Frozen) => {
            status.published.as_ref().map(|published| published.head.size)
        }
        _ => None,
    }
}

fn is_due(witnessing: &Witnessing, last: Option<&Round>, published: TreeSize) -> bool {
    let settings = &witnessing.settings;
    last.is_none_or(|last| {
        let since = last.at.elapsed();
        since >= settings.every || (published > last.size && since >= settings.pace)
    })
}

/// Shows the newest head that is kept. `None` if that is still the one of the last round, and too early to show again.
async fn call(witnessing: &Witnessing, last: Option<&Round>) -> Result<Option<Round>, StoreError> {
    let every = witnessing.settings.every;
    let is_news = |size| last.is_none_or(|last| size > last.size || last.at.elapsed() >= every);
    let newest = witnessing.newest().await?.filter(|newest| is_news(newest.size));
    Ok(newest.map(|newest| {
        let round = Round { size: newest.size, at: Instant::now() };
        witnessing.shown.send_replace(Some(Arc::new(newest)));
        round
    }))
}

/// Shows one witness the head of each round, and the newest one again until it cosigns.
async fn attend(witnessing: Arc<Witnessing>, witness: Arc<Witness>) {
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

/// Notes that the witness did not cosign; gives how long it is left alone.
fn after(witnessing: &Witnessing, witness: &Witness, trouble: &Trouble) -> Duration {
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

/// Doubles with each failure, up to the time after which the witness would be asked in any case; between three quarters and
/// all of it, so that processes and witnesses do not fall into step.
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
