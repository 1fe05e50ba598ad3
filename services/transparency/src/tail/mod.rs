//! Streams of entries: each reader gets every entry once, in the order of the leaves, as server-sent events.
//!
//! A stream buffers at most one page: it reads from the store as fast as its reader does, and wakes up when the
//! sequencer publishes a larger signed head, on followers and on the leader. Entries that no signed head covers are
//! never sent. A reader that takes nothing for a while gets the reason and is disconnected; it resumes after its last
//! event (`Last-Event-ID`) without loss. [`places`] bounds the number of streams, [`page`] reads and shares pages, and
//! [`stream`] serves one reader.
//!
//! Not here: the query parameters and HTTP responses (`routes/tail.rs`).

mod event;
mod page;
mod places;
mod stream;

use std::sync::Arc;

use tokio_util::sync::CancellationToken;
use tokio_util::task::TaskTracker;

use crate::limits::TailLimits;
use crate::metrics::Metrics;

pub use event::NONE;
pub use page::Wanted;
pub use places::NoPlace;
pub use stream::{Cut, open, reasons, signed_size};

/// The state that all streams of entries share.
pub struct Tail {
    limits: TailLimits,
    places: places::Places,
    pages: page::Shared,
    metrics: Arc<Metrics>,
    closing: CancellationToken,
    tasks: TaskTracker,
}

impl Tail {
    /// Creates the state, without open streams.
    pub fn new(limits: TailLimits, metrics: Arc<Metrics>) -> Arc<Self> {
        Arc::new(Self {
            limits,
            places: places::Places::new(limits.places, limits.places_per_client),
            pages: page::Shared::default(),
            metrics,
            closing: CancellationToken::new(),
            tasks: TaskTracker::new(),
        })
    }

    /// Ends every stream with the reason `stopping`, for a service that stops.
    pub fn close(&self) {
        self.closing.cancel();
        self.tasks.close();
    }

    /// Waits until every stream has ended.
    pub async fn closed(&self) {
        self.tasks.wait().await;
    }
}
