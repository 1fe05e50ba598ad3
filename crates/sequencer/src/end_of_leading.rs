//! The reasons to end leading that are not results of its own effects: a lost lease, a panic, a frozen log, a database
//! that is no longer durable, a wrong clock, or a witness that has seen another head.
//!
//! Not here: what the machine does then (`machine`).

use std::future::{Future, pending};
use std::pin::Pin;

use store::{Lease, State, StoreError};
use tokio::time::sleep;

use crate::clock::compare;
use crate::context::SequencerContext;
use crate::machine::Leave;
use crate::recover::clock_opinions;
use crate::{Halt, SequencerParts};

/// A watch for the reason to end leading.
pub(crate) struct EndOfLeading<'a>(Option<Pin<Box<dyn Future<Output = Leave> + Send + 'a>>>);

impl<'a> EndOfLeading<'a> {
    /// Begins to watch. Reasons are found while [`reason`](Self::reason) is polled.
    pub(crate) fn watch(context: &'a SequencerContext, lease: &'a mut dyn Lease) -> Self {
        Self(Some(Box::pin(first_reason(context, lease))))
    }

    /// Resolves when leading must end; once, and never again.
    pub(crate) async fn reason(&mut self) -> Leave {
        let Some(end) = &mut self.0 else { return pending().await };
        let leave = end.await;
        self.0 = None;
        leave
    }
}

/// Resolves when leading must end: the lease is lost, a background task panicked, the log is frozen, the database
/// is no longer durable, or a witness has seen a head that the database lacks.
async fn first_reason(context: &SequencerContext, lease: &mut dyn Lease) -> Leave {
    let parts = &context.parts;
    tokio::select! {
        _ = context.supervisor.panicked() => Leave::Halt(Halt::Panicked),
        () = lease.lost() => Leave::StepDown("the lease is lost"),
        why = until_unsafe(parts) => Leave::Halt(Halt::Refused(why)),
        () = until_frozen(parts) => Leave::Halt(Halt::Frozen),
        why = until_the_clock_differs(parts) => {
            tracing::error!(%why, "this process stops leading");
            Leave::StepDown("the clock is not right")
        }
        halt = parts.witnesses.contradicted() => Leave::Halt(halt),
    }
}

/// Resolves once the log is frozen, so that a leader without submissions notices that, too.
async fn until_frozen(parts: &SequencerParts) {
    loop {
        sleep(parts.limits.frozen_check).await;
        if let Ok(State::Frozen { .. }) = parts.store.state().await {
            return;
        }
    }
}

/// Resolves once the clocks of the database's server and of the witnesses disagree with this one.
async fn until_the_clock_differs(parts: &SequencerParts) -> Halt {
    loop {
        sleep(parts.limits.clock_check).await;
        match clock_opinions(parts).await {
            Ok((_, opinions)) => {
                if let Err(why) = compare(&opinions) {
                    return why;
                }
            }
            Err(error) => tracing::warn!(%error, "the clock cannot be compared with that of the database"),
        }
    }
}

async fn until_unsafe(parts: &SequencerParts) -> String {
    loop {
        sleep(parts.limits.durability_check).await;
        match parts.store.check_durability().await {
            Ok(()) => {}
            Err(StoreError::Refused(why)) => return why,
            Err(error) => tracing::warn!(%error, "the database's durability cannot be checked"),
        }
    }
}
