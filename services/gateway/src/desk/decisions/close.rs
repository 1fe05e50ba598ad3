//! The end of a stream: a closing record that no other record follows, so that a missing tail is detectable.

use std::time::Instant;

use admission::decide;
use admission::principal::Caller;
use admission::record::{self, Place};
use admission::session::Stage;
use evidence::RecordKind;
use tokio::sync::oneshot;

use super::copies::Copies;
use super::writing::{place, timestamp};
use crate::desk::Desk;
use crate::desk::error::DeskError;
use crate::desk::states::State;
use crate::desk::writer::{Books, Job, NewRecord, Sheet, Step, Work};
use crate::limits::{ACCOUNT_DUE, ENDING_AGAIN_AFTER, FOR_EVER, QUESTION_SHOWN};

/// A job that closes a stream, at once or as soon as none of its calls is in flight.
pub struct CloseWork {
    desk: Desk,
    stream: String,
    /// Close only if the stream is due.
    due: bool,
    /// Close only if this caller is the session's principal.
    caller: Option<Caller>,
    since: Instant,
    tell: Option<oneshot::Sender<Closed>>,
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
    /// A job that closes `stream` and reports the result to `tell`.
    pub fn new(desk: Desk, stream: String, tell: Option<oneshot::Sender<Closed>>) -> Self {
        Self { desk, stream, due: false, caller: None, since: Instant::now(), tell, closed: Closed::Nothing }
    }

    /// A job that closes `stream` if it is due: past its deadline, or idle for long.
    pub fn if_due(desk: Desk, stream: String) -> Self {
        Self { due: true, ..Self::new(desk, stream, None) }
    }

    /// A job that closes `stream` if `caller` is its session's principal.
    pub fn of_caller(desk: Desk, stream: String, caller: Caller) -> Self {
        Self { caller: Some(caller), ..Self::new(desk, stream, None) }
    }

    fn is_meant(&self, sheet: &Sheet, now: u64) -> bool {
        let is_shown = |caller: &Caller| match sheet.state() {
            Some(State::Session(state)) => state.session.agreed.principal().is_shown_by(caller, None),
            _ => false,
        };
        let due = !self.due || sheet.keep_until() <= now;
        sheet.state().is_some() && !sheet.is_closed() && due && self.caller.as_ref().is_none_or(is_shown)
    }

    fn close(&mut self, books: &mut Books<'_>) -> Result<Step, DeskError> {
        let (now, at) = (books.now / 1000, timestamp(books.now));
        let Some(sheet) = books.sheet(&self.stream) else { return Ok(Step::Needs(books.missing())) };
        let sheet: &Sheet = sheet;
        if !self.is_meant(sheet, now) {
            self.closed = Closed::Nothing;
            return Ok(Step::Nothing);
        }
        if let Some(State::Account(account)) = sheet.state() {
            // An account has no records, and an idle one holds nothing that could be lost.
            let idle = account.is_idle(at);
            if let Some(sheet) = books.sheet(&self.stream) {
                if idle { sheet.close(now) } else { sheet.keep(now + ACCOUNT_DUE.as_secs()) }
            }
            return Ok(Step::Decided);
        }
        if let Some(State::Question(_)) = sheet.state() {
            if let Some(sheet) = books.sheet(&self.stream) {
                sheet.close(now + QUESTION_SHOWN.as_secs());
            }
            return Ok(Step::Decided);
        }
        if self.due && is_at_work(sheet, now) {
            // The session was idle for long, but a task is running, and its agent may return.
            if let Some(sheet) = books.sheet(&self.stream) {
                sheet.keep(now + ENDING_AGAIN_AFTER.as_secs());
            }
            self.closed = Closed::Later;
            return Ok(Step::Decided);
        }
        if !mark(books, &self.stream) {
            return Ok(Step::Needs(books.missing()));
        }
        self.closed = if end(books, &self.stream)? { Closed::Now } else { Closed::Later };
        Ok(Step::Decided)
    }
}

/// Returns whether a session has calls in flight, is not marked as ending and is not past its deadline. Calls at
/// [`Stage::Asking`] do not count.
fn is_at_work(sheet: &Sheet, now: u64) -> bool {
    let Some(State::Session(state)) = sheet.state() else { return false };
    let ends = state.session.agreed.ends().and_then(|ends| u64::try_from(ends.as_second()).ok());
    let is_over = state.ending || ends.is_some_and(|ends| ends <= now);
    !is_over && state.session.running.in_flight().iter().any(|held| held.stage != Stage::Asking)
}

/// Marks a stream as ending. `false` if a stream is not loaded yet.
fn mark(books: &mut Books<'_>, stream: &str) -> bool {
    let now = books.now / 1000;
    if let Some(sheet) = books.sheet(stream)
        && let Some(State::Unbound(unbound)) = sheet.state().cloned()
    {
        sheet.put(State::Unbound(crate::desk::states::Unbound { ending: true, ..unbound }), false);
        sheet.keep(now + ENDING_AGAIN_AFTER.as_secs());
        return true;
    }
    let Some(mut copies) = Copies::of_session(books, stream) else { return false };
    copies.ending = true;
    copies.keep(books);
    if let Some(sheet) = books.sheet(stream) {
        sheet.keep(now + ENDING_AGAIN_AFTER.as_secs());
    }
    true
}

/// Writes the closing record of a stream that is marked as ending and has no call in flight. Returns whether it did.
pub fn end(books: &mut Books<'_>, stream: &str) -> Result<bool, DeskError> {
    let Some(sheet) = books.sheet(stream) else { return Ok(false) };
    let over = match sheet.state() {
        Some(State::Unbound(unbound)) => unbound.ending && unbound.open == 0,
        Some(State::Session(state)) if state.ending => {
            let Some(mut copies) = Copies::of_session(books, stream) else { return Ok(false) };
            let Some(session) = &mut copies.session else { return Ok(false) };
            let over = decide::close(session, &mut copies.account);
            copies.asking.clear();
            copies.keep(books);
            over
        }
        _ => false,
    };
    if !over {
        return Ok(false);
    }
    let (house, now) = (books.house, books.now);
    let (key, seq) = place(books, stream)?;
    let place = Place { gateway: house.notary.issuer(), stream, seq, at: timestamp(now), key: &key };
    let signed = house.notary.audit_record(record::closed(&place), stream)?;
    if let Some(sheet) = books.sheet(stream) {
        let annex = bytes::Bytes::from_static(b"{}");
        sheet.record(stream, now, NewRecord { kind: RecordKind::Closed, signed, verdict: None, annex });
        // The log keeps the stream's sequence numbers for ever, so the name is never used again (V-2).
        sheet.close(FOR_EVER);
    }
    Ok(true)
}

impl Work for CloseWork {
    fn streams(&self) -> Vec<String> {
        vec![self.stream.clone(), self.desk.unbound().to_owned()]
    }

    fn since(&self) -> Instant {
        self.since
    }

    fn decide(&mut self, books: &mut Books<'_>) -> Step {
        self.close(books).unwrap_or_else(Step::Impossible)
    }

    fn committed(self: Box<Self>) {
        if self.closed != Closed::Later {
            self.desk.inner.client_streams.gone(&self.stream);
        }
        if let Some(tell) = self.tell {
            let _ = tell.send(self.closed);
        }
    }

    fn failed(self: Box<Self>, why: &DeskError) -> Option<Job> {
        match why {
            DeskError::Unrecordable(_) | DeskError::Stopping => None,
            // The next round of upkeep finds the stream due again.
            _ if self.due => None,
            _ => Some(self),
        }
    }
}

/// A job that postpones the due time of this instance's own stream, which other instances on the database would end.
pub struct AliveWork(Desk);

impl AliveWork {
    pub fn new(desk: Desk) -> Self {
        Self(desk)
    }
}

impl Work for AliveWork {
    fn streams(&self) -> Vec<String> {
        vec![self.0.unbound().to_owned()]
    }

    fn decide(&mut self, books: &mut Books<'_>) -> Step {
        let due = books.house.unbound_due(books.now / 1000);
        match books.sheet(self.0.unbound()) {
            Some(sheet) if sheet.state().is_some() && !sheet.is_closed() => {
                sheet.keep(due);
                Step::Decided
            }
            _ => Step::Nothing,
        }
    }

    fn committed(self: Box<Self>) {}

    fn failed(self: Box<Self>, _: &DeskError) -> Option<Job> {
        None
    }
}
