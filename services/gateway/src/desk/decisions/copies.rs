//! Working copies of a session and of its principal's account for one decision; they replace the originals if a
//! decision is made.

use admission::decide::{self, Before, Dice, Scene, account_key};
use admission::message::slot::Received;
use admission::principal::{Caller, Era, Identity};
use admission::rules::Rules;
use admission::session::{Account, Reservation, ReservationId, Session};

use super::writing::timestamp;
use crate::desk::states::{Asking, SessionState, State, account_stream};
use crate::desk::writer::Books;
use crate::limits::{ACCOUNT_DUE, DENIALS_DUE, FOR_EVER, QUESTION_SLACK};

/// The parts of a message that determine the session and the account it is decided with.
pub struct Sent<'a> {
    /// The rules of the message's route.
    pub rules: &'a Rules,
    /// The sender.
    pub caller: &'a Caller,
    /// The parsed message; `None` if there is none that can be read.
    pub received: Option<&'a Received>,
    /// Results of earlier passes.
    pub before: Before<'a>,
}

/// The working copies for one decision.
pub struct Copies {
    /// The sender, with its presumed MCP session if that has an account (see [`on_record`]).
    pub caller: Caller,
    /// The stream of the session that the message names, if any.
    pub stream: Option<String>,
    /// The session, if it exists.
    pub session: Option<Session>,
    /// Reservations held while a judge or a person is asked.
    pub asking: Vec<Asking>,
    /// `true` if the session closes as soon as no call is in flight.
    pub ending: bool,
    /// The principal's account. If the session counts consumption in a separate ledger, the amounts spent are the
    /// ledger's.
    pub account: Account,
    account_stream: Option<String>,
    /// The stream of that ledger, if it is not the account's.
    ledger_stream: Option<String>,
}

impl Copies {
    /// Copies the session that a message names, and its sender's account. `None` if a stream is not loaded yet.
    pub fn of_message(books: &mut Books<'_>, sent: &Sent<'_>) -> Option<Self> {
        let stream = sent.received.map(|received| received.message.session_id().to_owned());
        let state = match &stream {
            Some(stream) => session_of(books, stream)?,
            None => None,
        };
        let session = state.as_ref().map(|state| &state.session);
        let caller = on_record(books, sent.caller)?;
        let dice = Dice::default();
        let scene = Scene { rules: sent.rules, caller: &caller, now: timestamp(books.now), dice };
        let key = account_of(&scene, sent, session);
        Self::of(books, stream, state, key, caller)
    }

    /// Copies a session and its principal's account. `None` if a stream is not loaded yet.
    pub fn of_session(books: &mut Books<'_>, stream: &str) -> Option<Self> {
        let state = session_of(books, stream)?;
        let key = state.as_ref().map(|state| state.session.agreed.account().to_owned());
        Self::of(books, Some(stream.to_owned()), state, key, Caller::unknown(Era::Modern))
    }

    fn of(
        books: &mut Books<'_>,
        stream: Option<String>,
        state: Option<SessionState>,
        key: Option<String>,
        caller: Caller,
    ) -> Option<Self> {
        let ledger = state.as_ref().and_then(|state| state.session.agreed.ledger().map(str::to_owned));
        let ledger_stream =
            ledger.filter(|ledger| Some(ledger) != key.as_ref()).as_deref().map(account_stream);
        let account_stream = key.as_deref().map(account_stream);
        let mut account = match &account_stream {
            Some(name) => account_in(books, name)?,
            None => Account::default(),
        };
        if let Some(name) = &ledger_stream {
            account = account.with_spent_of(&account_in(books, name)?);
        }
        let (session, asking, ending) = match state {
            Some(SessionState { session, asking, ending }) => (Some(session), asking, ending),
            None => (None, Vec::new(), false),
        };
        Some(Self { caller, stream, session, asking, ending, account, account_stream, ledger_stream })
    }

    /// Releases the reservations of questions that are past their time, or were asked by a process that is gone.
    pub fn forget_questions(&mut self, books: &Books<'_>, rules: &Rules) {
        let Some(session) = &mut self.session else { return };
        let (now, house) = (books.now / 1000, books.house);
        let is_over = |asking: &Asking| {
            let elsewhere = asking.instance != house.instance;
            now > asking.until || (elsewhere && !house.settings.shared)
        };
        let (over, live): (Vec<Asking>, Vec<Asking>) =
            std::mem::take(&mut self.asking).into_iter().partition(is_over);
        for asking in over {
            decide::refund(rules, session, &mut self.account, asking.held);
        }
        self.asking = live;
    }

    /// The reservations held for questions about other messages of the session; `own` is this message's reservation.
    pub fn held_for_others(&self, own: Option<ReservationId>) -> Vec<Reservation> {
        let others = self.asking.iter().map(|asking| asking.held).filter(|held| Some(*held) != own);
        let reservation = |held| self.session.as_ref()?.running.reservation(held).cloned();
        others.filter_map(reservation).collect()
    }

    /// Replaces the originals. `held` becomes the reservation of a question that this instance asks; no question is
    /// open any more about the reservation `before`.
    pub fn hold(self, books: &mut Books<'_>, before: Option<ReservationId>, held: Option<ReservationId>) {
        self.hold_until(books, before, held, 0);
    }

    /// Like [`hold`](Self::hold), for a question that can be answered until `until`, in Unix seconds.
    pub fn hold_until(
        mut self,
        books: &mut Books<'_>,
        before: Option<ReservationId>,
        held: Option<ReservationId>,
        until: u64,
    ) {
        self.asking.retain(|asking| Some(asking.held) != before);
        if let Some(held) = held {
            let until = until.max(books.now / 1000) + QUESTION_SLACK.as_secs();
            self.asking.push(Asking { held, instance: books.house.instance.clone(), until });
        }
        self.keep(books);
    }

    /// Replaces the originals that have changed.
    pub fn keep(self, books: &mut Books<'_>) {
        let due = self.session.as_ref().map(|session| due(session, books));
        if let (Some(stream), Some(session)) = (self.stream, self.session)
            && let Some(sheet) = books.sheet(&stream)
        {
            let state = SessionState { session, asking: self.asking, ending: self.ending };
            let before = match sheet.state() {
                Some(State::Session(before)) => Some(before),
                _ => None,
            };
            let agreed = before.is_none_or(|before| before.session.agreed != state.session.agreed);
            // An unchanged state does not extend the session's life; otherwise a stranger that knows its name could.
            if agreed || before.is_none_or(|before| **before != state) {
                sheet.put(State::Session(Box::new(state)), agreed);
                if !sheet.is_closed() {
                    sheet.keep(due.unwrap_or(FOR_EVER));
                }
            }
        }
        let account = self.account;
        if let Some(name) = &self.ledger_stream {
            keep_account(books, name, |ledger| ledger.with_spent_of(&account));
        }
        if let Some(name) = &self.account_stream {
            let apart = self.ledger_stream.is_some();
            keep_account(
                books,
                name,
                |own| if apart { account.clone().with_spent_of(&own) } else { account },
            );
        }
    }
}

/// Replaces an account if `changed` alters it.
fn keep_account(books: &mut Books<'_>, name: &str, changed: impl FnOnce(Account) -> Account) {
    let now = books.now / 1000;
    let Some(before) = account_in(books, name) else { return };
    let account = changed(before.clone());
    if before == account {
        return;
    }
    let due = if account.is_passing() { DENIALS_DUE } else { ACCOUNT_DUE };
    if let Some(sheet) = books.sheet(name) {
        sheet.put(State::Account(account), false);
        sheet.reopen(now + due.as_secs());
    }
}

/// Returns an account as stored, or an empty one. `None` if its stream is not loaded yet.
fn account_in(books: &mut Books<'_>, name: &str) -> Option<Account> {
    Some(match books.sheet(name)?.state() {
        Some(State::Account(account)) => account.clone(),
        _ => Account::default(),
    })
}

/// Returns when a session is due, in Unix seconds: at its deadline, or after `session_idle` if that is earlier.
fn due(session: &Session, books: &Books<'_>) -> u64 {
    let idle = books.now / 1000 + books.house.settings.session_idle.as_secs();
    let ends = session.agreed.ends().and_then(|ends| u64::try_from(ends.as_second()).ok());
    ends.unwrap_or(FOR_EVER).min(idle).min(FOR_EVER)
}

/// Returns a session's state. Outer `None`: the stream is not loaded yet; inner `None`: there is no session.
fn session_of(books: &mut Books<'_>, stream: &str) -> Option<Option<SessionState>> {
    Some(match books.sheet(stream)?.state() {
        Some(State::Session(state)) => Some((**state).clone()),
        _ => None,
    })
}

/// Identifies the sender of a message. A gateway that was restarted has not seen a server issue the MCP session; if the
/// presumed session has an account, its earlier commitments bind the sender all the same (V-2, V-33).
fn on_record(books: &mut Books<'_>, caller: &Caller) -> Option<Caller> {
    let Some(presumed) = caller.presumed() else { return Some(caller.clone()) };
    let Some(key) = account_key(&presumed, None) else { return Some(caller.clone()) };
    Some(match books.sheet(&account_stream(&key))?.state() {
        Some(State::Account(account)) if !account.is_passing() => presumed,
        _ => caller.clone(),
    })
}

/// Returns the key of the account that a message is decided with: the session principal's, if the sender is shown to be
/// that principal, or else the sender's own. Step C1 finds the same, since both check the signature in the same way.
fn account_of(scene: &Scene<'_>, sent: &Sent<'_>, session: Option<&Session>) -> Option<String> {
    let by_key = session
        .is_some_and(|session| matches!(session.agreed.principal().identity(), Identity::SigningKey(_)));
    let signed_by = match by_key || account_key(scene.caller, None).is_none() {
        true => sent.received.and_then(|received| decide::signed_by(scene, received, &sent.before, session)),
        false => None,
    };
    let shown =
        session.filter(|session| session.agreed.principal().is_shown_by(scene.caller, signed_by.as_deref()));
    match shown {
        Some(session) => Some(session.agreed.account().to_owned()),
        None => account_key(scene.caller, signed_by.as_deref()),
    }
}
