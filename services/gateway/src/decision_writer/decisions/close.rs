//! The end of a stream: a closing record that no other record follows, so that a missing tail is detectable.
//!
//! A stream of calls is first marked as ending, and its closing record is written when none of its calls is in flight any
//! more: by [`CloseWork`], or by the item that settles or releases the last of them ([`close_if_drained`]).

use admission::decide;
use admission::principal::Caller;
use admission::record;
use admission::session::Stage;
use evidence::{RecordKind, StreamSummary};
use tokio::sync::oneshot;

use super::audit_records::append_next;
use super::session_with_account::SessionWithAccount;
use crate::annex::EMPTY;
use crate::decision_writer::DecisionWriter;
use crate::decision_writer::clock::timestamp;
use crate::decision_writer::error::WriterError;
use crate::decision_writer::states::{StreamState, UnboundState};
use crate::decision_writer::transactions::{
    Batch, DecideError, SeenVersion, StreamNotLoaded, Work, WorkItem, WorkStep, WorkingCopy,
};
use crate::limits::{ACCOUNT_DUE, ENDING_AGAIN_AFTER, FOR_EVER, QUESTION_SHOWN};

/// Closes a stream, at once or as soon as none of its calls is in flight.
pub struct CloseWork {
    writer: DecisionWriter,
    stream: String,
    /// The version at which the database listed the stream as due; if present, close only if the stream is due.
    due_version: Option<u64>,
    /// Close only if this caller is the session's principal.
    caller: Option<Caller>,
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
    /// The work item that closes `stream` and reports the result to `reply`.
    pub fn new(writer: DecisionWriter, stream: String, reply: Option<oneshot::Sender<Closed>>) -> Self {
        Self { writer, stream, due_version: None, caller: None, reply, closed: Closed::Nothing }
    }

    /// The work item that closes a stream that the database listed as due, past its deadline or idle for long, if it
    /// still is.
    pub fn if_due(writer: DecisionWriter, listed: StreamSummary) -> Self {
        Self { due_version: Some(listed.version), ..Self::new(writer, listed.stream, None) }
    }

    /// The work item that closes `stream` if `caller` is its session's principal.
    pub fn of_caller(writer: DecisionWriter, stream: String, caller: Caller) -> Self {
        Self { caller: Some(caller), ..Self::new(writer, stream, None) }
    }

    /// Returns whether the stream is open and meets the conditions.
    fn applies_to(&self, copy: &WorkingCopy, now: u64) -> bool {
        let is_principal = |caller: &Caller| match copy.state() {
            Some(StreamState::Session(state)) => {
                state.session.agreed.principal().is_presented_by(caller, None)
            }
            _ => false,
        };
        let is_due = self.due_version.is_none() || copy.due_at() <= now;
        copy.is_open() && is_due && self.caller.as_ref().is_none_or(is_principal)
    }
}

/// Closes a stream without records of its own calls, which needs no closing record, if it has ended. Returns `false` for
/// other streams.
fn close_without_record(copy: &mut WorkingCopy, batch_time: u64) -> bool {
    let now = batch_time / 1000;
    match copy.state() {
        // An account has no records, and an idle one holds nothing that could be lost.
        Some(StreamState::Account(account)) => match account.is_idle(timestamp(batch_time)) {
            true => copy.close(now),
            false => copy.set_due(now + ACCOUNT_DUE.as_secs()),
        },
        // The envelope has ended by every allowed clock, so no call can use it any more.
        Some(StreamState::Envelope(_)) => copy.close(now),
        Some(StreamState::Question(_)) => copy.close(now + QUESTION_SHOWN.as_secs()),
        _ => return false,
    }
    true
}

/// Returns whether a session has calls in flight, is not marked as ending and is not past its deadline. Calls at
/// [`Stage::Asking`] do not count.
fn has_live_calls(copy: &WorkingCopy, now: u64) -> bool {
    let Some(StreamState::Session(state)) = copy.state() else { return false };
    let ends = state.session.agreed.ends().and_then(|ends| u64::try_from(ends.as_second()).ok());
    let is_over = state.ending || ends.is_some_and(|ends| ends <= now);
    !is_over && state.session.running.in_flight().iter().any(|held| held.stage != Stage::Asking)
}

/// Marks a stream as ending.
fn mark_as_ending(batch: &mut Batch<'_>, stream: &str) -> Result<(), StreamNotLoaded> {
    let copy = batch.stream(stream)?;
    if let Some(StreamState::Unbound(unbound)) = copy.state().cloned() {
        copy.set_state(StreamState::Unbound(UnboundState { ending: true, ..unbound }));
    } else {
        let mut working = SessionWithAccount::of_session(batch, stream)?;
        working.ending = true;
        working.write_to(batch);
    }
    let due_at = batch.now / 1000 + ENDING_AGAIN_AFTER.as_secs();
    batch.stream(stream)?.set_due(due_at);
    Ok(())
}

/// Writes the closing record of a stream that is marked as ending and has no call in flight. Returns whether it did.
pub fn close_if_drained(batch: &mut Batch<'_>, stream: &str) -> Result<bool, WriterError> {
    let Ok(copy) = batch.stream(stream) else { return Ok(false) };
    let is_drained = match copy.state() {
        Some(StreamState::Unbound(unbound)) => unbound.ending && unbound.open == 0,
        Some(StreamState::Session(state)) if state.ending => close_session(batch, stream),
        _ => false,
    };
    if !is_drained {
        return Ok(false);
    }
    append_next(batch, stream, RecordKind::Closed, EMPTY, record::closed)?;
    // The log keeps the stream's sequence numbers for ever, so the name is never used again (V-2).
    batch.loaded(stream)?.close(FOR_EVER);
    Ok(true)
}

/// Closes a session in its state, unless a call is in flight. Returns whether it is closed.
fn close_session(batch: &mut Batch<'_>, stream: &str) -> bool {
    let Ok(mut working) = SessionWithAccount::of_session(batch, stream) else { return false };
    let Some(session) = &mut working.session else { return false };
    let is_drained = decide::close(session, &mut working.account);
    working.asking.clear();
    working.write_to(batch);
    is_drained
}

impl Work for CloseWork {
    fn streams(&self) -> Vec<String> {
        vec![self.stream.clone(), self.writer.own_stream()]
    }

    fn seen_version(&self) -> Option<SeenVersion<'_>> {
        Some(SeenVersion { stream: &self.stream, version: self.due_version? })
    }

    fn decide(&mut self, batch: &mut Batch<'_>) -> Result<WorkStep, DecideError> {
        let batch_time = batch.now;
        let now = batch_time / 1000;
        let copy = batch.stream(&self.stream)?;
        if !self.applies_to(copy, now) {
            self.closed = Closed::Nothing;
            return Ok(WorkStep::Unchanged);
        }
        if close_without_record(copy, batch_time) {
            return Ok(WorkStep::Decided);
        }
        if self.due_version.is_some() && has_live_calls(copy, now) {
            // The session was idle for long, but a task is running, and its agent may return.
            copy.set_due(now + ENDING_AGAIN_AFTER.as_secs());
            self.closed = Closed::Later;
            return Ok(WorkStep::Decided);
        }
        mark_as_ending(batch, &self.stream)?;
        self.closed = if close_if_drained(batch, &self.stream)? { Closed::Now } else { Closed::Later };
        Ok(WorkStep::Decided)
    }

    fn committed(self: Box<Self>) {
        if self.closed != Closed::Later {
            self.writer.inner.client_streams.remove(&self.stream);
        }
        if let Some(reply) = self.reply {
            let _ = reply.send(self.closed);
        }
    }

    fn failed(self: Box<Self>, _: &WriterError) -> Option<WorkItem> {
        // The next round of upkeep finds a stream due again.
        if self.due_version.is_some() { None } else { Some(self) }
    }
}

/// Postpones the due time of this instance's own stream, which other instances on the database would end.
pub struct KeepAliveWork(DecisionWriter);

impl KeepAliveWork {
    pub fn new(writer: DecisionWriter) -> Self {
        Self(writer)
    }
}

impl Work for KeepAliveWork {
    fn streams(&self) -> Vec<String> {
        vec![self.0.own_stream()]
    }

    fn decide(&mut self, batch: &mut Batch<'_>) -> Result<WorkStep, DecideError> {
        let due_at = batch.context.own_stream_due(batch.now / 1000);
        match batch.stream(&self.0.own_stream()) {
            Ok(copy) if copy.is_open() => {
                copy.set_due(due_at);
                Ok(WorkStep::Decided)
            }
            _ => Ok(WorkStep::Unchanged),
        }
    }

    fn committed(self: Box<Self>) {}

    fn failed(self: Box<Self>, _: &WriterError) -> Option<WorkItem> {
        None
    }
}
