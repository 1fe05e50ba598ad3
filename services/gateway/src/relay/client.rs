//! The client of a request: its connection, and the answers that it can read.

use std::future::Future;
use std::sync::{Arc, OnceLock};

use admission::principal::Era;
use http::StatusCode;
use tokio::sync::watch;
use tokio::time::Instant;
use tokio_util::sync::{CancellationToken, DropGuard};
use tokio_util::task::TaskTracker;
use tracing::Instrument;

use super::{Response, error};
use crate::frame::error_code::INTERNAL_ERROR;

/// A client that waits for an answer.
#[derive(Clone, Debug)]
pub struct Client {
    era: Era,
    reads_events: bool,
    gone: CancellationToken,
    /// The time at which the disconnect was noticed, and the number of resumptions of its session by then.
    gone_at: Arc<OnceLock<(Instant, u64)>>,
    resumptions: Arc<watch::Sender<u64>>,
    tasks: TaskTracker,
}

impl Client {
    /// Makes a client, which counts as disconnected once the guard is dropped. `resumptions` counts the resumptions of
    /// its session.
    pub fn new(
        era: Era,
        reads_events: bool,
        resumptions: Arc<watch::Sender<u64>>,
        tasks: TaskTracker,
    ) -> (Self, DropGuard) {
        let gone = CancellationToken::new();
        let guard = gone.clone().drop_guard();
        (Self { era, reads_events, gone, gone_at: Arc::default(), resumptions, tasks }, guard)
    }

    /// The era of the client.
    pub fn era(&self) -> Era {
        self.era
    }

    /// Returns whether the client accepts an event stream as an answer.
    pub fn reads_events(&self) -> bool {
        self.reads_events
    }

    /// Waits until the client disconnects, and returns the time at which that was noticed.
    pub async fn gone(&self) -> Instant {
        self.gone.cancelled().await;
        self.gone_at.get_or_init(|| (Instant::now(), *self.resumptions.borrow())).0
    }

    /// Returns whether the client has disconnected.
    pub fn is_gone(&self) -> bool {
        self.gone.is_cancelled()
    }

    /// Waits until the client cancels its request by a disconnect. Only in the modern era a disconnect is a
    /// cancellation.
    pub async fn cancelled(&self) {
        match self.era {
            Era::Modern => self.gone.cancelled().await,
            Era::Legacy => std::future::pending().await,
        }
    }

    /// Waits until the client's session resumes a stream after the disconnect.
    pub async fn resumed(&self) {
        let before = self.gone_at.get().map_or(0, |(_, resumed)| *resumed);
        let mut resumptions = self.resumptions.subscribe();
        // This client holds a sender, so the channel is never closed.
        let _never = resumptions.wait_for(|resumed| *resumed > before).await;
    }

    /// Runs `work` to its end, even if the client disconnects, and returns its response.
    pub async fn finish(&self, work: impl Future<Output = Response> + Send + 'static) -> Response {
        self.tasks.spawn(work.in_current_span()).await.unwrap_or_else(|panicked| {
            tracing::error!(%panicked, "a request was not answered");
            error(StatusCode::INTERNAL_SERVER_ERROR, INTERNAL_ERROR, "internal error")
        })
    }

    /// Runs a task that continues after the client disconnects. A stop of the gateway waits for it, at most for the
    /// drain time.
    pub fn spawn(&self, work: impl Future<Output = ()> + Send + 'static) {
        self.tasks.spawn(work);
    }
}
