//! The other end of a request: whether it is still there, and what it can read.

use std::future::Future;
use std::sync::{Arc, OnceLock};

use admission::principal::Era;
use http::StatusCode;
use tokio::sync::watch;
use tokio::time::Instant;
use tokio_util::sync::{CancellationToken, DropGuard};
use tokio_util::task::TaskTracker;
use tracing::Instrument;

use super::Response;
use crate::relay;

/// Whoever waits for an answer.
#[derive(Clone, Debug)]
pub struct Client {
    era: Era,
    reads_events: bool,
    gone: CancellationToken,
    /// When it was seen to be gone, and how often its session had been resumed by then.
    gone_at: Arc<OnceLock<(Instant, u64)>>,
    resumptions: Arc<watch::Sender<u64>>,
    tasks: TaskTracker,
}

impl Client {
    /// A client; it is gone once the guard is dropped. `resumptions` counts how often its session came back.
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

    /// Which revisions it speaks.
    pub fn era(&self) -> Era {
        self.era
    }

    /// Whether it accepts a stream of events as an answer.
    pub fn reads_events(&self) -> bool {
        self.reads_events
    }

    /// Returns when it went away, with the time at which that was noticed.
    pub async fn gone(&self) -> Instant {
        self.gone.cancelled().await;
        self.gone_at.get_or_init(|| (Instant::now(), *self.resumptions.borrow())).0
    }

    /// Whether it went away.
    pub fn is_gone(&self) -> bool {
        self.gone.is_cancelled()
    }

    /// Returns when it took its request back by going away: only in the modern era a disconnect is a cancellation.
    pub async fn cancelled(&self) {
        match self.era {
            Era::Modern => self.gone.cancelled().await,
            Era::Legacy => std::future::pending().await,
        }
    }

    /// Returns when its session resumes a stream, after it went away.
    pub async fn resumed(&self) {
        let before = self.gone_at.get().map_or(0, |(_, resumed)| *resumed);
        let mut resumptions = self.resumptions.subscribe();
        // The sender is ours too: it is never closed.
        let _never = resumptions.wait_for(|resumed| *resumed > before).await;
    }

    /// What this comes to, worked out whether or not the client stays.
    pub async fn finish(&self, work: impl Future<Output = Response> + Send + 'static) -> Response {
        self.tasks.spawn(work.in_current_span()).await.unwrap_or_else(|panicked| {
            tracing::error!(%panicked, "a request was not answered");
            relay::error(StatusCode::INTERNAL_SERVER_ERROR, -32603, "internal error")
        })
    }

    /// Runs work that goes on whether or not the client stays. A stop of the gateway waits for it, for a while.
    pub fn spawn(&self, work: impl Future<Output = ()> + Send + 'static) {
        self.tasks.spawn(work);
    }
}
