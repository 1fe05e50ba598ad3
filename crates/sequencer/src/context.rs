//! [`SequencerContext`]: the state that the sequencer's task shares with its roles.

use std::sync::Arc;

use tokio::sync::{oneshot, watch};

use crate::activity::{Activity, Heartbeat};
use crate::budget::Budget;
use crate::clock::SubmissionClock;
use crate::inbox::Delayed;
use crate::signature_writer::SignatureQueue;
use crate::supervision::Supervisor;
use crate::{SequencerParts, Status};

/// State shared by the task and its parts.
pub(crate) struct SequencerContext {
    pub(crate) parts: Arc<SequencerParts>,
    pub(crate) budget: Budget,
    pub(crate) clock: Arc<SubmissionClock>,
    pub(crate) stop: Arc<watch::Sender<bool>>,
    pub(crate) activity: Activity,
    pub(crate) supervisor: Supervisor,
    pub(crate) delayed: Delayed,
    pub(crate) drained: Heartbeat,
    pub(crate) status: Arc<watch::Sender<Status>>,
    pub(crate) signatures: SignatureQueue,
}

impl SequencerContext {
    /// Changes the [`Status`], and reports a new role to the observer.
    pub(crate) fn show(&self, change: impl FnOnce(&mut Status)) {
        let mut role = None;
        self.status.send_modify(|status| {
            let before = status.role.clone();
            change(status);
            role = (before != status.role).then(|| status.role.clone());
        });
        if let Some(role) = role {
            self.parts.observer.role_changed(&role);
        }
    }

    pub(crate) fn status(&self) -> watch::Receiver<Status> {
        self.status.subscribe()
    }
}

/// Reports that the first role is settled.
pub(crate) fn settle(ready: Option<oneshot::Sender<()>>) {
    if let Some(ready) = ready {
        let _ = ready.send(());
    }
}

/// Waits until [`Handle::stop`](crate::Handle::stop) is called.
pub(crate) async fn stopped(stop: &mut watch::Receiver<bool>) {
    // `wait_for` cannot fail here: the context holds the sender.
    let _ = stop.wait_for(|stop| *stop).await;
}
