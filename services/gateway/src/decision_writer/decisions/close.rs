//! The end of a stream: a closing record that no other record follows, so that a missing tail is detectable.

use std::time::Instant;

use admission::decide;
use admission::principal::Caller;
use admission::record;
use admission::session::Stage;
use evidence::{RecordKind, StreamSummary};
use tokio::sync::oneshot;

use super::audit_records::append_next;
use super::copies::WorkingCopies;
use crate::annex::EMPTY;
use crate::decision_writer::DecisionWriter;
use crate::decision_writer::clock::timestamp;
use crate::decision_writer::error::WriterError;
use crate::decision_writer::states::StreamState;
use crate::decision_writer::transactions::{Batch, Job, JobStep, StreamChanges, Work};
use crate::limits::{ACCOUNT_DUE, ENDING_AGAIN_AFTER, FOR_EVER, QUESTION_SHOWN};

/// A job that closes a stream, at once or as soon as none of its calls is in flight.
pub struct CloseWork {
    writer: DecisionWriter,
    stream: String,
    /// Close only if the stream is due, which it was at this version in the database.
    due: Option<u64>,
    /// Close only if this caller is the session's principal.
    caller: Option<Caller>,
    since: Instant,
    reply: Option<oneshot::Sender<Closed>>,
    closed: Closed,
}

/// Result of a [`CloseWork`].
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Closed {
    /// The stream is closed.
    Now,
    /// The stream stays open until its calls in flight have ended.
    Later,
    /// No stream was closed by a record: there is none of this name that is open and meets the conditions.
    Nothing,
}

impl CloseWork {
    /// A job that closes `stream` and reports the result to `reply`.
    pub fn new(writer: DecisionWriter, stream: String, reply: Option<oneshot::Sender<Closed>>) -> Self {
        Self {
            writer,
            stream,
            due: None,
            caller: None,
            since: Instant::now(),
            reply,
            closed: Closed::Nothing,
        }
    }

    /// A job that closes a stream that the database listed as due, past its deadline or idle for long, if it still is.
    pub fn if_due(writer: DecisionWriter, listed: StreamSummary) -> Self {
        Self { due: Some(listed.version), ..Self::new(writer, listed.stream, None) }
    }

    /// A job that closes `stream` if `caller` is its session's principal.
    pub fn of_caller(writer: DecisionWriter, stream: String, caller: Caller) -> Self {
        Self { caller: Some(caller), ..Self::new(writer, stream, None) }
    }

    fn is_meant(&self, copy: &StreamChanges, now: u64) -> bool {
        let is_presented = |caller: &Caller| match copy.state() {
            Some(StreamState::Session(state)) => {
                state.session.agreed.principal().is_presented_by(caller, None)
            }
            _ => false,
        };
        let due = self.due.is_none() || copy.keep_until() <= now;
        copy.state().is_some() && !copy.is_closed() && due && self.caller.as_ref().is_none_or(is_presented)
    }

    fn close(&mut self, batch: &mut Batch<'_>) -> Result<JobStep, WriterError> {
        let (now, at) = (batch.now / 1000, timestamp(batch.now));
        let Some(copy) = batch.stream(&self.stream) else { return Ok(JobStep::Needs(batch.missing())) };
        let copy: &StreamChanges = copy;
        if !self.is_meant(copy, now) {
            self.closed = Closed::Nothing;
            return Ok(JobStep::Nothing);
        }
        if let Some(StreamState::Account(account)) = copy.state() {
            // An account has no records, and an idle one holds nothing that could be lost.
            let idle = account.is_idle(at);
            if let Some(copy) = batch.stream(&self.stream) {
                if idle { copy.close(now) } else { copy.keep(now + ACCOUNT_DUE.as_secs()) }
            }
            return Ok(JobStep::Decided);
        }
        if let Some(StreamState::Envelope(_)) = copy.state() {
            // The envelope has ended, so no call can use it any more.
            if let Some(copy) = batch.stream(&self.stream) {
                copy.close(now);
            }
            return Ok(JobStep::Decided);
        }
        if let Some(StreamState::Question(_)) = copy.state() {
            if let Some(copy) = batch.stream(&self.stream) {
                copy.close(now + QUESTION_SHOWN.as_secs());
            }
            return Ok(JobStep::Decided);
        }
        if self.due.is_some() && is_at_work(copy, now) {
            // The session was idle for long, but a task is running, and its agent may return.
            if let Some(copy) = batch.stream(&self.stream) {
                copy.keep(now + ENDING_AGAIN_AFTER.as_secs());
            }
            self.closed = Closed::Later;
            return Ok(JobStep::Decided);
        }
        if !mark(batch, &self.stream) {
            return Ok(JobStep::Needs(batch.missing()));
        }
        self.closed = if end(batch, &self.stream)? { Closed::Now } else { Closed::Later };
        Ok(JobStep::Decided)
    }
}

/// Returns whether a session has calls in flight, is not marked as ending and is not past its deadline. Calls at
/// [`Stage::Asking`] do not count.
fn is_at_work(copy: &StreamChanges, now: u64) -> bool {
    let Some(StreamState::Session(state)) = copy.state() else { return false };
    let ends = state.session.agreed.ends().and_then(|ends| u64::try_from(ends.as_second()).ok());
    let is_over = state.ending || ends.is_some_and(|ends| ends <= now);
    !is_over && state.session.running.in_flight().iter().any(|held| held.stage != Stage::Asking)
}

/// Marks a stream as ending. `false` if a stream is not loaded yet.
fn mark(batch: &mut Batch<'_>, stream: &str) -> bool {
    let now = batch.now / 1000;
    if let Some(copy) = batch.stream(stream)
        && let Some(StreamState::Unbound(unbound)) = copy.state().cloned()
    {
        copy.put(
            StreamState::Unbound(crate::decision_writer::states::UnboundState { ending: true, ..unbound }),
            false,
        );
        copy.keep(now + ENDING_AGAIN_AFTER.as_secs());
        return true;
    }
    let Some(mut copies) = WorkingCopies::of_session(batch, stream) else { return false };
    copies.ending = true;
    copies.keep(batch);
    if let Some(copy) = batch.stream(stream) {
        copy.keep(now + ENDING_AGAIN_AFTER.as_secs());
    }
    true
}

/// Writes the closing record of a stream that is marked as ending and has no call in flight. Returns whether it did.
pub fn end(batch: &mut Batch<'_>, stream: &str) -> Result<bool, WriterError> {
    let Some(copy) = batch.stream(stream) else { return Ok(false) };
    let over = match copy.state() {
        Some(StreamState::Unbound(unbound)) => unbound.ending && unbound.open == 0,
        Some(StreamState::Session(state)) if state.ending => {
            let Some(mut copies) = WorkingCopies::of_session(batch, stream) else { return Ok(false) };
            let Some(session) = &mut copies.session else { return Ok(false) };
            let over = decide::close(session, &mut copies.account);
            copies.asking.clear();
            copies.keep(batch);
            over
        }
        _ => false,
    };
    if !over {
        return Ok(false);
    }
    append_next(batch, stream, (RecordKind::Closed, EMPTY), record::closed)?;
    // The log keeps the stream's sequence numbers for ever, so the name is never used again (V-2).
    batch.loaded(stream)?.close(FOR_EVER);
    Ok(true)
}

impl Work for CloseWork {
    fn streams(&self) -> Vec<String> {
        vec![self.stream.clone(), self.writer.unbound()]
    }

    fn seen(&self) -> Option<(&str, u64)> {
        Some((&self.stream, self.due?))
    }

    fn since(&self) -> Instant {
        self.since
    }

    fn decide(&mut self, batch: &mut Batch<'_>) -> JobStep {
        self.close(batch).unwrap_or_else(JobStep::Impossible)
    }

    fn committed(self: Box<Self>) {
        if self.closed != Closed::Later {
            self.writer.inner.client_streams.gone(&self.stream);
        }
        if let Some(reply) = self.reply {
            let _ = reply.send(self.closed);
        }
    }

    fn failed(self: Box<Self>, why: &WriterError) -> Option<Job> {
        match why {
            WriterError::Unrecordable(_) | WriterError::Stopping => None,
            // The next round of upkeep finds the stream due again.
            _ if self.due.is_some() => None,
            _ => Some(self),
        }
    }
}

/// A job that postpones the due time of this instance's own stream, which other instances on the database would end.
pub struct AliveWork(DecisionWriter);

impl AliveWork {
    pub fn new(writer: DecisionWriter) -> Self {
        Self(writer)
    }
}

impl Work for AliveWork {
    fn streams(&self) -> Vec<String> {
        vec![self.0.unbound()]
    }

    fn decide(&mut self, batch: &mut Batch<'_>) -> JobStep {
        let due = batch.context.unbound_due(batch.now / 1000);
        match batch.stream(&self.0.unbound()) {
            Some(copy) if copy.state().is_some() && !copy.is_closed() => {
                copy.keep(due);
                JobStep::Decided
            }
            _ => JobStep::Nothing,
        }
    }

    fn committed(self: Box<Self>) {}

    fn failed(self: Box<Self>, _: &WriterError) -> Option<Job> {
        None
    }
}
