//! What has to be done from time to time: the lease, the gauge and its alarms.

use tokio::time::MissedTickBehavior;
use tokio_util::sync::CancellationToken;

use super::Desk;
use crate::limits::{LEASE, LEASE_EVERY, OUTBOX_LOOK_EVERY};

/// Until told to stop.
pub async fn run(desk: Desk, stop: CancellationToken) {
    let (mut look, mut lease) =
        (tokio::time::interval(OUTBOX_LOOK_EVERY), tokio::time::interval(LEASE_EVERY));
    look.set_missed_tick_behavior(MissedTickBehavior::Delay);
    lease.set_missed_tick_behavior(MissedTickBehavior::Delay);
    loop {
        tokio::select! {
            () = stop.cancelled() => return,
            _ = look.tick() => desk.look_at_outbox().await,
            _ = lease.tick() => desk.renew().await,
        }
    }
}

impl Desk {
    async fn look_at_outbox(&self) {
        let inner = &*self.inner;
        match inner.store.backlog().await {
            Ok(backlog) => inner.gauge.set(backlog),
            Err(error) => inner.alarms.store_fails(&error.to_string()),
        }
        let (limits, now) = (&inner.house.settings.outbox, inner.house.clock.seconds());
        inner.alarms.outbox(inner.gauge.over(limits, now), inner.gauge.share(limits, now));
    }

    async fn renew(&self) {
        if let Err(error) = self.inner.store.renew(LEASE).await {
            tracing::warn!(%error, "the instance's lease could not be renewed");
        }
    }
}
