//! Streams of entries: each reader gets every entry once, in the order of the leaves, as server-sent events.
//!
//! A stream buffers at most one page: it reads from the store as fast as its reader does, and wakes up when the
//! sequencer publishes a larger signed head, on followers and on the leader. Entries that no signed head covers are
//! never sent. A reader that takes nothing for a while gets the reason and is disconnected; it resumes after its last
//! event (`Last-Event-ID`) without loss. [`slots`] bounds the number of streams, [`page`] reads and shares pages, and
//! [`stream`] serves one reader.
//!
//! Not here: the query parameters and HTTP responses (`routes/tail.rs`).

mod event;
mod page;
mod slots;
mod stream;

use std::sync::Arc;

use tokio_util::sync::CancellationToken;
use tokio_util::task::TaskTracker;

use crate::index::Index;
use crate::limits::TailLimits;
use crate::log::state::Log;
use crate::metrics::Metrics;

pub use event::NONE;
pub use page::EntryFilter;
pub use slots::NoStreamSlot;
pub use stream::{open, signed_size};

/// The state that all streams of entries share.
pub struct EntryTails {
    log: Arc<Log>,
    index: Arc<Index>,
    limits: TailLimits,
    slots: slots::StreamSlots,
    pages: page::SharedPages,
    metrics: Arc<Metrics>,
    closing: CancellationToken,
    tasks: TaskTracker,
}

impl EntryTails {
    /// Creates the state, without open streams.
    pub fn new(log: Arc<Log>, index: Arc<Index>, limits: TailLimits) -> Arc<Self> {
        Arc::new(Self {
            metrics: log.metrics.clone(),
            log,
            index,
            limits,
            slots: slots::StreamSlots::new(limits.places, limits.places_per_client),
            pages: page::SharedPages::default(),
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
