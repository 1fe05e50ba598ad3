//! Following the log: each reader gets every entry once, in the order of the leaves, as server-sent events.
//!
//! A stream holds no more than one page: it reads from the store as fast as its reader takes, and is woken when the
//! sequencer shows a larger signed head, on a process that follows as on one that leads. What no signed head covers is never
//! told. A reader who takes nothing for a while is told why and cut off; he goes on behind the last event that he has
//! seen (`Last-Event-ID`) without loss. [`places`] bounds how many read at one time, [`page`] what they hold and share,
//! [`stream`] is one reader's story.
//!
//! Not here: the query and the words of HTTP (`routes/tail.rs`).

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

/// What all streams of entries share.
pub struct Tail {
    limits: TailLimits,
    places: places::Places,
    pages: page::Shared,
    metrics: Arc<Metrics>,
    closing: CancellationToken,
    tasks: TaskTracker,
}

impl Tail {
    /// No stream is open yet.
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

    /// Ends every stream; each tells its reader so. For a service that stops.
    pub fn close(&self) {
        self.closing.cancel();
        self.tasks.close();
    }

    /// Until every stream has ended.
    pub async fn closed(&self) {
        self.tasks.wait().await;
    }
}
