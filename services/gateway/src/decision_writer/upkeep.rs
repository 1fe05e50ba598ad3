//! Periodic work: the lease, the backlog of the outbox and its alarms, counted denials, due streams, old data, and the open
//! calls of dead instances.

use evidence::Horizon;
use tokio::sync::oneshot;
use tokio::time::{Interval, MissedTickBehavior};
use tokio_util::sync::CancellationToken;

use super::DecisionWriter;
use super::clock_difference::ClockDifference;
use super::decisions::{CloseWork, KeepAliveWork};
use crate::limits::{
    ALIVE_EVERY, DENIALS_EVERY, DUE_EVERY, FORGET_TURNS, LEASE, LEASE_EVERY, OUTBOX_POLL, SETTLE_TIME,
    UPKEEP_PAGE,
};

/// Does the periodic work until `stop` is cancelled.
pub async fn run(writer: DecisionWriter, stop: CancellationToken) {
    let (mut outbox, mut lease, mut due) = (every(OUTBOX_POLL), every(LEASE_EVERY), every(DUE_EVERY));
    let (mut alive, mut denials) = (every(ALIVE_EVERY), every(DENIALS_EVERY));
    loop {
        tokio::select! {
            () = stop.cancelled() => return,
            _ = outbox.tick() => writer.check_outbox().await,
            _ = lease.tick() => writer.renew_lease().await,
            _ = denials.tick() => writer.record_counted_denials(),
            _ = alive.tick(), if writer.inner.context.settings.shared => {
                writer.submit(Box::new(KeepAliveWork::new(writer.clone())));
            }
            _ = due.tick() => {
                writer.end_due_streams().await;
                writer.delete_old_data().await;
                writer.settle_orphans().await;
            }
        }
    }
}

fn number(count: usize) -> u64 {
    u64::try_from(count).unwrap_or(u64::MAX)
}

fn every(period: std::time::Duration) -> Interval {
    let mut interval = tokio::time::interval(period);
    interval.set_missed_tick_behavior(MissedTickBehavior::Delay);
    interval
}

impl DecisionWriter {
    async fn check_outbox(&self) {
        let inner = &*self.inner;
        match inner.store.backlog().await {
            Ok(backlog) => inner.backlog.set(backlog),
            Err(error) => inner.alarms.store_fails(&error.to_string()),
        }
        let (limits, now) = (&inner.context.settings.outbox, inner.context.clock.seconds());
        inner.alarms.outbox(inner.backlog.reached_limit(limits, now), inner.backlog.used_share(limits, now));
    }

    /// Renews the lease, and compares the clock with that of the database's server.
    async fn renew_lease(&self) {
        let clock = &self.inner.context.clock;
        let before = clock.milliseconds();
        match self.inner.store.renew(LEASE).await {
            Ok(Some(theirs)) => {
                let readings = (before, clock.milliseconds());
                self.inner.alarms.clock_differs_by(ClockDifference::between(theirs, readings));
            }
            Ok(None) => {}
            Err(error) => tracing::warn!(%error, "the instance's lease could not be renewed"),
        }
    }

    /// Submits the end of each stream that is due: past its deadline, or idle for long.
    async fn end_due_streams(&self) {
        match self.inner.store.due(self.inner.context.clock.seconds(), UPKEEP_PAGE).await {
            Ok(due) => {
                for listed in due {
                    self.submit(Box::new(CloseWork::if_due(self.clone(), listed)));
                }
            }
            Err(error) => tracing::warn!(%error, "work that is due could not be looked up"),
        }
    }

    /// Deletes accounts that hold nothing, and records that the log has had for the operator's retention time. Sessions
    /// stay, since the log keeps their sequence numbers for ever.
    async fn delete_old_data(&self) {
        let (now, keep) = (self.inner.context.clock.seconds(), self.inner.context.settings.keep);
        let records = keep.map_or(0, |keep| now.saturating_sub(keep.as_secs()));
        for _ in 0..FORGET_TURNS {
            match self.inner.store.prune(Horizon { streams: now, records }, UPKEEP_PAGE).await {
                Ok(pruned) if pruned.records < number(UPKEEP_PAGE) => return,
                Ok(_) => {}
                Err(error) => {
                    tracing::warn!(%error, "old data is not removed yet");
                    return;
                }
            }
        }
    }

    /// Ends the stream of this instance when the gateway stops, unless a call in it is in flight: then the next start
    /// ends it.
    pub(super) async fn end_own_stream(&self) {
        let (reply, answer) = oneshot::channel();
        self.submit(Box::new(CloseWork::new(self.clone(), self.own_stream(), Some(reply))));
        let _ = tokio::time::timeout(SETTLE_TIME, answer).await;
    }
}
