//! [`CommittedStream`]: a stream as the database has it.

use admission::tool::Pin;
use evidence::{StoreError, StoredStream};

use crate::decision_writer::states::StreamState;

/// A stream as last committed.
#[derive(Clone, Debug)]
pub struct CommittedStream {
    /// The version; `None` if there is no such stream.
    pub version: Option<u64>,
    /// The state; `None` if it is empty.
    pub state: Option<StreamState>,
    /// `true` if the stream is closed.
    pub closed: bool,
    /// Unix time when the stream is due or, if it is closed, until when its name is taken.
    pub keep_until: u64,
    /// The sequence number of the next record.
    pub next_seq: u64,
}

impl CommittedStream {
    /// A stream that does not exist yet.
    pub const fn absent() -> Self {
        Self { version: None, state: None, closed: false, keep_until: 0, next_seq: 0 }
    }

    /// Returns the pin, if this is the stream of a tool that has one.
    pub fn pin(&self) -> Option<&Pin> {
        match &self.state {
            Some(StreamState::Tool(pin)) => Some(pin),
            _ => None,
        }
    }

    /// Parses a stream as stored.
    pub fn read(name: &str, stored: Option<&StoredStream>) -> Result<Self, StoreError> {
        let Some(stored) = stored else { return Ok(Self::absent()) };
        let damaged = |error| StoreError::Damaged(format!("the state of stream {name}: {error}"));
        Ok(Self {
            version: Some(stored.version),
            state: StreamState::read(name, stored.agreed.as_ref(), &stored.running).map_err(damaged)?,
            closed: stored.closed,
            keep_until: stored.keep_until,
            next_seq: stored.next_seq,
        })
    }
}
