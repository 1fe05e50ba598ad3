//! Work items: what the writer task decides and commits, each with the channel for its answer.
//!
//! The writer calls an item in this order: [`Work::seen_version`]; [`Work::take_early_read`], or else [`Work::claims`];
//! [`Work::streams`], to load them; [`Work::decide`], again once what was missing is read, after each conflict with
//! another process, and if another item of the batch has failed; and at the end [`Work::committed`] or [`Work::failed`].

use std::time::Instant;

use evidence::Claim;

use super::batch::{Batch, StreamNotLoaded};
use super::early_read::EarlyRead;
use crate::decision_writer::error::WriterError;

/// A work item in a queue.
pub type WorkItem = Box<dyn Work>;

/// A change of the database that the writer task decides: on working copies of its streams, in a batch with others.
pub trait Work: Send {
    /// Returns the streams that the item reads, as far as they are known in advance.
    fn streams(&self) -> Vec<String>;

    /// Returns the claims that the item may use, for the writer to look up which were used before.
    fn claims(&self) -> Vec<Claim> {
        Vec::new()
    }

    /// Returns a version of a stream that the database has: if the writer has cached an older one, it reads the stream
    /// again before it decides the item.
    fn seen_version(&self) -> Option<SeenVersion<'_>> {
        None
    }

    /// Returns what was read for the item before it was submitted, once; otherwise its streams and claims are read
    /// before it is decided.
    fn take_early_read(&mut self) -> Option<EarlyRead> {
        None
    }

    /// Returns whether the caller has gone, and nothing has to be written without it.
    fn is_abandoned(&self) -> bool {
        false
    }

    /// Returns whether a caller waits for the item. Otherwise it can wait to share the commit of the next item.
    fn is_urgent(&self) -> bool {
        true
    }

    /// Returns whether the item is refused while the outbox is full.
    fn is_refused_while_outbox_is_full(&self) -> bool {
        false
    }

    /// Decides the item. Called again with fresh working copies if another process changed a stream; results kept from
    /// an earlier call are void then.
    ///
    /// # Errors
    /// [`DecideError`] if the item needs more data, or cannot be decided.
    fn decide(&mut self, batch: &mut Batch<'_>) -> Result<WorkStep, DecideError>;

    /// Answers the caller, since everything that was decided, and that the answer relies on, is durable.
    fn committed(self: Box<Self>);

    /// Tells the caller that the item is not committed, as far as is known. Returns the item if it must become durable
    /// all the same: then it is retried, unless the error is permanent.
    fn failed(self: Box<Self>, why: &WriterError) -> Option<WorkItem>;
}

/// Result of [`Work::decide`].
#[derive(Debug)]
pub enum WorkStep {
    /// The item is decided, and the working copies are changed.
    Decided,
    /// Nothing is changed. The item is answered at once, or together with the batch if it has read what earlier items of
    /// the batch have changed ([`Batch::has_read_changes`]).
    Unchanged,
    /// Nothing is changed, and the answer is a denial that is counted instead of recorded: it is sent at once, as it says
    /// nothing that has to be durable.
    OnlyCounted,
    /// Nothing is changed: another call must be settled first (V-12, R-48).
    Wait(SettlementWait),
}

/// Reason why an item is not decided.
#[derive(Debug)]
pub enum DecideError {
    /// Nothing is changed: the stream with this name must be loaded first.
    StreamNotLoaded(String),
    /// Nothing is changed: the database must be asked first which of these claims are used.
    ClaimsNotLookedUp(Vec<Claim>),
    /// The item cannot be decided, and the working copies are not usable any more.
    Failed(WriterError),
}

impl From<StreamNotLoaded> for DecideError {
    fn from(StreamNotLoaded(name): StreamNotLoaded) -> Self {
        Self::StreamNotLoaded(name)
    }
}

impl From<WriterError> for DecideError {
    fn from(error: WriterError) -> Self {
        Self::Failed(error)
    }
}

/// A version of a stream that the database is known to have.
pub struct SeenVersion<'a> {
    /// The name of the stream.
    pub stream: &'a str,
    /// The version.
    pub version: u64,
}

/// The wait of a call for a settlement, within its bounds.
#[derive(Debug)]
pub struct SettlementWait {
    /// The settlement that the call waits for.
    pub awaited: AwaitedSettlement,
    /// When the call was submitted.
    pub since: Instant,
    /// The size of the call's messages, in bytes.
    pub bytes: usize,
}

/// The event that a parked call waits for: the settlement of another call of the tool in this stream.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct AwaitedSettlement {
    /// The stream of the session, or of the AgentROA envelope.
    pub stream: String,
    /// The tool: its name in a session, its capability under an envelope.
    pub tool: String,
}
