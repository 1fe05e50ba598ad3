//! Copies of a session and of what its principal holds, for one decision: they replace the originals if it comes to one.

use admission::decide::{self, Before, Dice, Scene, account_key};
use admission::message::slot::Received;
use admission::principal::{Caller, Era, Identity};
use admission::rules::Rules;
use admission::session::{Account, Reservation, ReservationId, Session};

use super::writing::timestamp;
use crate::desk::states::{Asking, SessionState, State, account_stream};
use crate::desk::writer::Books;
use crate::limits::{ACCOUNT_DUE, DENIALS_DUE, FOR_EVER, QUESTION_SLACK};

/// A message, as far as it says whose books it is decided with.
pub struct Sent<'a> {
    /// The rules of its route.
    pub rules: &'a Rules,
    /// Who sent it.
    pub caller: &'a Caller,
    /// What it says, if it could be read.
    pub received: Option<&'a Received>,
    /// What was done about it already.
    pub before: Before<'a>,
}

/// The copies.
pub struct Copies {
    /// Who sent the message, as far as that is on record.
    pub caller: Caller,
    /// The stream of the session, if one is named that can be one.
    pub stream: Option<String>,
    /// The session.
    pub session: Option<Session>,
    /// Who is being asked about it.
    pub asking: Vec<Asking>,
    /// Whether it is to end.
    pub ending: bool,
    /// What the principal holds. What it spent is that of its ledger, where that is kept elsewhere.
    pub account: Account,
    account_stream: Option<String>,
    /// Where consumption over all sessions is counted, if not with the rest of the account.
    ledger_stream: Option<String>,
}

impl Copies {
    /// Of the session that a message names, and of what its sender holds. None: not everything is open yet.
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

    /// Of a session that is known, and of what its principal holds.
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

    /// Gives back what is held for questions that nobody asks any more: their process died, or forgot them.
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

    /// What is held while somebody is asked about other messages of the session than that for which `own` is held.
    pub fn held_for_others(&self, own: Option<ReservationId>) -> Vec<Reservation> {
        let others = self.asking.iter().map(|asking| asking.held).filter(|held| Some(*held) != own);
        let reservation = |held| self.session.as_ref()?.running.reservation(held).cloned();
        others.filter_map(reservation).collect()
    }

    /// Replaces the originals, with what is `held` while somebody is asked: who asks, and how long that can take. What was
    /// held `before` is not asked about any more.
    pub fn hold(self, books: &mut Books<'_>, before: Option<ReservationId>, held: Option<ReservationId>) {
        self.hold_until(books, before, held, 0);
    }

    /// The same for a question that can be answered until a time, in Unix seconds.
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

    /// Replaces the originals, where something changed.
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
            // What changes nothing does not keep the session alive: a stranger that knows its name could.
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

/// Replaces an account, where something changed.
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

/// An account as it is kept, or an empty one. None: it is not open yet.
fn account_in(books: &mut Books<'_>, name: &str) -> Option<Account> {
    Some(match books.sheet(name)?.state() {
        Some(State::Account(account)) => account.clone(),
        _ => Account::default(),
    })
}

/// When a session is looked at again if nothing happens: at its deadline, or when it has been idle for long.
fn due(session: &Session, books: &Books<'_>) -> u64 {
    let idle = books.now / 1000 + books.house.settings.session_idle.as_secs();
    let ends = session.agreed.ends().and_then(|ends| u64::try_from(ends.as_second()).ok());
    ends.unwrap_or(FOR_EVER).min(idle).min(FOR_EVER)
}

/// Not open: none. No session: none in it.
fn session_of(books: &mut Books<'_>, stream: &str) -> Option<Option<SessionState>> {
    Some(match books.sheet(stream)?.state() {
        Some(State::Session(state)) => Some((**state).clone()),
        _ => None,
    })
}

/// Who it is that sent a message. A gateway that was started again has seen no server give out an MCP session; one that
/// committed before is on record all the same, and what binds it binds it still (V-2, V-33).
fn on_record(books: &mut Books<'_>, caller: &Caller) -> Option<Caller> {
    let Some(presumed) = caller.presumed() else { return Some(caller.clone()) };
    let Some(key) = account_key(&presumed, None) else { return Some(caller.clone()) };
    Some(match books.sheet(&account_stream(&key))?.state() {
        Some(State::Account(account)) if !account.is_passing() => presumed,
        _ => caller.clone(),
    })
}

/// Whose account a message is decided with: that of the session's principal, if it is shown, or else the sender's own. C1 finds
/// the same, for the signature is looked at in the same way.
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
