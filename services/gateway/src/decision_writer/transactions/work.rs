//! The interface between the writer and its jobs.

use std::time::Instant;

use evidence::Claim;

use super::batch::Batch;
use super::early_read::EarlyRead;
use crate::decision_writer::error::WriterError;

/// A job for the writer: decided on working copies of its streams, and answered when its batch is durable.
pub trait Work: Send {
    /// Returns the streams that the job reads, as far as they are known in advance.
    fn streams(&self) -> Vec<String>;

    /// Returns the claims that the job may use, for the writer to look up which were used before.
    fn claims(&self) -> Vec<Claim> {
        Vec::new()
    }

    /// Returns a stream and a version of it that the database has: if the writer knows an older one, it reads the stream
    /// again before it decides the job.
    fn seen(&self) -> Option<(&str, u64)> {
        None
    }

    /// Returns what was read for the job before it was handed in, once; otherwise its streams and claims are read
    /// before it is decided.
    fn take_early_read(&mut self) -> Option<EarlyRead> {
        None
    }

    /// Returns whether the caller has gone and nothing is owed.
    fn is_abandoned(&self) -> bool {
        false
    }

    /// Returns when the job was created.
    fn since(&self) -> Instant {
        Instant::now()
    }

    /// Returns whether a caller waits for the job. Otherwise it can wait to share the commit of the next job.
    fn is_urgent(&self) -> bool {
        true
    }

    /// Returns the size of the job's messages, in bytes.
    fn bytes(&self) -> usize {
        0
    }

    /// Returns whether the job is refused while the outbox is full.
    fn may_be_refused(&self) -> bool {
        false
    }

    /// Decides the job. Called again with fresh copies if another process changed a stream; results kept from an
    /// earlier run are void then.
    fn decide(&mut self, batch: &mut Batch<'_>) -> JobStep;

    /// Called when everything that was decided is durable.
    fn committed(self: Box<Self>);

    /// Called when the job is not committed, as far as is known. Returns the job if it is owed and must be retried.
    fn failed(self: Box<Self>, why: &WriterError) -> Option<Box<dyn Work>>;
}

/// Result of [`Work::decide`].
#[derive(Debug)]
pub enum JobStep {
    /// The job is decided, and the working copies are changed.
    Decided,
    /// Nothing is changed and there is nothing to commit: the job is answered at once.
    Nothing,
    /// Nothing is changed: these streams must be loaded first.
    Needs(Vec<String>),
    /// Nothing is changed: the database must be asked first which of these claims are used.
    NeedsClaims(Vec<Claim>),
    /// Nothing is changed: another call must be settled first (V-12).
    Wait(AwaitedSettlement),
    /// The job cannot be decided, and the working copies are not usable any more.
    Impossible(WriterError),
}

/// The event that a parked call waits for: the settlement of another call of the tool in this stream.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct AwaitedSettlement {
    /// The session's stream.
    pub stream: String,
    /// The tool's name.
    pub tool: String,
}
