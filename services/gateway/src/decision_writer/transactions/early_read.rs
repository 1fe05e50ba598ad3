//! [`EarlyRead`]: what the database is asked about a call before the call is handed in.
//!
//! A call reads in its own task, so that neither its decision nor those in the same batch wait for a query. The states are
//! those that others change while the gateway runs (`is_changed_by_others`): they are as of the call's arrival or later,
//! which is all that a caller can tell. A claim that is taken afterwards makes the commit fail, and the batch is then
//! decided with claims and states that are read again.

use std::time::Instant;

use admission::tool::Pin;
use evidence::{Claim, EvidenceStore, StoreError};

use super::committed_stream::CommittedStream;
use crate::decision_writer::states::{StreamState, tool_stream};
use crate::limits::EARLY_READ_TIME;

/// States of streams, and used claims.
#[derive(Debug)]
pub struct EarlyRead {
    at: Instant,
    /// The streams by name.
    pub streams: Vec<(String, CommittedStream)>,
    /// Those of the claims that were used before.
    pub used: Vec<Claim>,
}

impl EarlyRead {
    /// Reads these streams and claims. A stream that is damaged is left out; the writer reads it again and says why.
    ///
    /// # Errors
    /// [`StoreError`] if the database does not answer.
    pub async fn of(
        store: &dyn EvidenceStore,
        streams: Vec<String>,
        claims: Vec<Claim>,
    ) -> Result<Self, StoreError> {
        let at = Instant::now();
        if streams.is_empty() && claims.is_empty() {
            return Ok(Self { at, streams: Vec::new(), used: Vec::new() });
        }
        let names: Vec<&str> = streams.iter().map(String::as_str).collect();
        let (stored, taken) = store.look_up(&names, &claims).await?;
        let read = streams.into_iter().zip(stored).filter_map(|(name, stored)| {
            let committed = CommittedStream::read(&name, stored.as_ref()).ok()?;
            Some((name, committed))
        });
        let used = claims.into_iter().zip(taken).filter_map(|(claim, taken)| taken.then_some(claim));
        Ok(Self { at, streams: read.collect(), used: used.collect() })
    }

    /// Returns the pin of a tool; `None` if it was not read, or no server has listed the tool.
    pub fn pin(&self, route: &str, tool: &str) -> Option<&Pin> {
        let stream = tool_stream(route, tool);
        match &self.streams.iter().find(|(name, _)| *name == stream)?.1.state {
            Some(StreamState::Tool(pin)) => Some(pin),
            _ => None,
        }
    }

    /// Returns whether the result may still be used.
    pub fn is_recent(&self) -> bool {
        self.at.elapsed() < EARLY_READ_TIME
    }
}
