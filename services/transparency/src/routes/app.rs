//! The state of all handlers.

use std::sync::Arc;

use crate::edge::state::EdgeState;
use crate::index::Index;
use crate::log::state::Log;
use crate::tail::EntryTails;

/// The state of every handler: the log and the shared parts of the middleware. Clones share them.
#[derive(Clone)]
pub struct App {
    /// The log, with its store and sequencer.
    pub log: Arc<Log>,
    /// Limits, rate limiter, metrics.
    pub edge: Arc<EdgeState>,
    /// The search index over the log's entries.
    pub index: Arc<Index>,
    /// The followers of `GET /v1/entries/stream`.
    pub tail: Arc<EntryTails>,
}

impl AsRef<EdgeState> for App {
    fn as_ref(&self) -> &EdgeState {
        &self.edge
    }
}
