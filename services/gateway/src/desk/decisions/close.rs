//! The end of a stream: a record after which there is none, so that a missing tail shows.

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

/// Closes a stream, now or as soon as nothing in it is under way.
pub struct CloseWork {
    desk: Desk,
    stream: String,
    /// Only if it is due.
    due: bool,
    /// Only if it is this caller's.
    caller: Option<Caller>,
    since: Instant,
    tell: Option<oneshot::Sender<Closed>>,
    closed: Closed,
}

/// How it ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Closed {
    /// It is closed.
    Now,
    /// It will be, when what is under way has ended.
    Later,
    /// There was nothing to close.
    Nothing,
}

impl CloseWork {
    /// Closes it.
    pub fn new(desk: Desk, stream: String, tell: Option<oneshot::Sender<Closed>>) -> Self {
        Self { desk, stream, due: false, caller: None, since: Instant::now(), tell, closed: Closed::Nothing }
    }

    /// Closes it if it is due: at its deadline, or when it was idle for long.
    pub fn if_due(desk: Desk, stream: String) -> Self {
        Self { due: true, ..Self::new(desk, stream, None) }
    }

    /// Closes it if it is this caller's.
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
            // Nothing is recorded of a principal, and what is forgotten here is nothing.
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
            // Nothing was said in it for long, and yet a task goes on: its agent may still come back.
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

/// Whether calls of a session are under way that nobody ended and that is not past its deadline.
fn is_at_work(sheet: &Sheet, now: u64) -> bool {
    let Some(State::Session(state)) = sheet.state() else { return false };
    let ends = state.session.agreed.ends().and_then(|ends| u64::try_from(ends.as_second()).ok());
    let is_over = state.ending || ends.is_some_and(|ends| ends <= now);
    !is_over && state.session.running.in_flight().iter().any(|held| held.stage != Stage::Asking)
}

/// Says that it is to end. False: not everything is open.
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

/// Writes the last record of a stream that is to end and in which nothing is under way. Says whether it did.
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
        // The log holds its numbers for ever, so the name is never used again (V-2).
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
            // What is due is found due again.
            _ if self.due => None,
            _ => Some(self),
        }
    }
}

/// Says that this instance lives, where its stream would be ended by others.
pub struct AliveWork(Desk);

impl AliveWork {
    /// Of this desk.
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
