//! [`SessionWithAccount`]: a session and its principal's account, taken together from the working copies of a batch for
//! one decision, and written back with what the decision changed.

use admission::authenticated::Authenticated;
use admission::decide::{self, DecisionContext, EarlierResults};
use admission::principal::{Caller, Era, Identity, account_key};
use admission::rules::Rules;
use admission::session::{Account, Reservation, ReservationId, Session};
use vap::message::is_operator_session;

use crate::decision_writer::clock::due_after;
use crate::decision_writer::states::{QuestionReservation, SessionState, StreamState, account_stream};
use crate::decision_writer::transactions::{Batch, StreamNotLoaded};
use crate::limits::{ACCOUNT_DUE, DENIALS_DUE, FOR_EVER, QUESTION_SLACK};

/// The parts of a message that determine the session and the account it is decided with.
pub struct SentMessage<'a> {
    /// The rules, the sender and the time.
    pub context: DecisionContext<'a>,
    /// The parsed message; `None` if there is none that can be read.
    pub received: Option<&'a Authenticated>,
    /// Results of earlier rounds.
    pub before: EarlierResults<'a>,
}

/// A session and its principal's account, which one decision changes.
pub struct SessionWithAccount {
    /// The sender, with its presumed MCP session if that has an account (see [`identified`]).
    pub caller: Caller,
    /// The stream of the session that the message names, if any.
    pub stream: Option<String>,
    /// The session, if it exists.
    pub session: Option<Session>,
    /// Reservations held while a judge or a person is asked.
    pub asking: Vec<QuestionReservation>,
    /// `true` if the session closes as soon as no call is in flight.
    pub ending: bool,
    /// The principal's account. If the session counts consumption in a separate ledger, the amounts spent are the
    /// ledger's.
    pub account: Account,
    account_stream: Option<String>,
    /// The stream of that ledger, if it is not the account's.
    ledger_stream: Option<String>,
}

impl SessionWithAccount {
    /// Reads the session that a message names, and its sender's account.
    ///
    /// # Errors
    /// [`StreamNotLoaded`].
    pub fn of_message(batch: &mut Batch<'_>, sent: &SentMessage<'_>) -> Result<Self, StreamNotLoaded> {
        let stream = sent.received.map(|received| received.message.session_id().to_owned());
        let state = match &stream {
            Some(stream) => read_session(batch, stream)?,
            None => None,
        };
        let session = state.as_ref().map(|state| &state.session);
        let caller = identified(batch, sent.context.caller)?;
        let key = account_of(&DecisionContext { caller: &caller, ..sent.context }, sent, session);
        Self::read(batch, stream, state, key, caller)
    }

    /// Reads a session and its principal's account.
    ///
    /// # Errors
    /// [`StreamNotLoaded`].
    pub fn of_session(batch: &mut Batch<'_>, stream: &str) -> Result<Self, StreamNotLoaded> {
        let state = read_session(batch, stream)?;
        let key = state.as_ref().map(|state| state.session.agreed.account().to_owned());
        Self::read(batch, Some(stream.to_owned()), state, key, Caller::unknown(Era::Modern))
    }

    /// Reads the account with this key, and a separate ledger if the session has one.
    fn read(
        batch: &mut Batch<'_>,
        stream: Option<String>,
        state: Option<SessionState>,
        key: Option<String>,
        caller: Caller,
    ) -> Result<Self, StreamNotLoaded> {
        let ledger = state.as_ref().and_then(|state| state.session.agreed.ledger().map(str::to_owned));
        let ledger_stream =
            ledger.filter(|ledger| Some(ledger) != key.as_ref()).as_deref().map(account_stream);
        let account_stream = key.as_deref().map(account_stream);
        let mut account = match &account_stream {
            Some(name) => read_account(batch, name)?,
            None => Account::default(),
        };
        if let Some(name) = &ledger_stream {
            account = account.with_spent_of(&read_account(batch, name)?);
        }
        let (session, asking, ending) = match state {
            Some(SessionState { session, asking, ending }) => (Some(session), asking, ending),
            None => (None, Vec::new(), false),
        };
        Ok(Self { caller, stream, session, asking, ending, account, account_stream, ledger_stream })
    }

    /// Releases the reservation `own`, which this message had in its earlier rounds, and those of questions that are past
    /// their time, or were asked by a process that is gone. The account is then as a replay of the decision needs it.
    pub fn release_questions(&mut self, batch: &Batch<'_>, rules: &Rules, own: Option<ReservationId>) {
        let Some(session) = &mut self.session else { return };
        if let Some(own) = own {
            decide::refund(rules, session, &mut self.account, own);
        }
        let (now, context) = (batch.now / 1000, batch.context);
        let has_ended = |asking: &QuestionReservation| {
            let is_of_other_instance = asking.instance != context.instance;
            now > asking.until || (is_of_other_instance && !context.settings.shared)
        };
        let (ended, open): (Vec<QuestionReservation>, Vec<QuestionReservation>) =
            std::mem::take(&mut self.asking).into_iter().partition(has_ended);
        for asking in ended {
            decide::refund(rules, session, &mut self.account, asking.held);
        }
        self.asking = open;
    }

    /// Returns the reservations held for questions about other messages of the session; `own` is this message's.
    pub fn held_for_others(&self, own: Option<ReservationId>) -> Vec<Reservation> {
        let others = self.asking.iter().map(|asking| asking.held).filter(|held| Some(*held) != own);
        let reservation = |held| self.session.as_ref()?.running.reservation(held).cloned();
        others.filter_map(reservation).collect()
    }

    /// Writes the changes back. No question is open any more about the reservation `before`, which this message had in its
    /// earlier rounds.
    pub fn write_ruled(mut self, batch: &mut Batch<'_>, before: Option<ReservationId>) {
        self.asking.retain(|asking| Some(asking.held) != before);
        self.write_to(batch);
    }

    /// Writes the changes back, with the reservation `held` for a question of this instance. It replaces the reservation
    /// `before`, which this message had in its earlier rounds. The question can be answered until `until`, in Unix seconds;
    /// 0 for a judge, which answers at once.
    pub fn write_undecided(
        mut self,
        batch: &mut Batch<'_>,
        before: Option<ReservationId>,
        held: Option<ReservationId>,
        until: u64,
    ) {
        self.asking.retain(|asking| Some(asking.held) != before);
        if let Some(held) = held {
            let until = until.max(batch.now / 1000) + QUESTION_SLACK.as_secs();
            self.asking.push(QuestionReservation { held, instance: batch.context.instance.clone(), until });
        }
        self.write_to(batch);
    }

    /// Writes back what has changed.
    pub fn write_to(self, batch: &mut Batch<'_>) {
        if let (Some(stream), Some(session)) = (self.stream, self.session) {
            let state = SessionState { session, asking: self.asking, ending: self.ending };
            write_session(batch, &stream, state);
        }
        let account = self.account;
        if let Some(name) = &self.ledger_stream {
            write_account(batch, name, |ledger| ledger.with_spent_of(&account));
        }
        if let Some(name) = &self.account_stream {
            let has_ledger = self.ledger_stream.is_some();
            write_account(batch, name, |own| match has_ledger {
                true => account.clone().with_spent_of(&own),
                false => account,
            });
        }
    }
}

/// Replaces a session's state if it has changed. An unchanged state does not extend the session's life; otherwise a
/// stranger that knows its name could.
fn write_session(batch: &mut Batch<'_>, name: &str, state: SessionState) {
    let due = session_due(&state.session, batch);
    let Ok(copy) = batch.stream(name) else { return };
    let before = match copy.state() {
        Some(StreamState::Session(before)) => Some(before),
        _ => None,
    };
    let is_agreed_changed = before.is_none_or(|before| before.session.agreed != state.session.agreed);
    if !is_agreed_changed && before.is_some_and(|before| **before == state) {
        return;
    }
    let state = StreamState::Session(Box::new(state));
    match is_agreed_changed {
        true => copy.set_state_and_agreed(state),
        false => copy.set_state(state),
    }
    if !copy.is_closed() {
        copy.set_due(due);
    }
}

/// Replaces an account if `changed` alters it.
fn write_account(batch: &mut Batch<'_>, name: &str, changed: impl FnOnce(Account) -> Account) {
    let now = batch.now / 1000;
    let Ok(before) = read_account(batch, name) else { return };
    let account = changed(before.clone());
    if before == account {
        return;
    }
    let due = if account.has_only_denials() { DENIALS_DUE } else { ACCOUNT_DUE };
    if let Ok(copy) = batch.stream(name) {
        copy.set_state(StreamState::Account(account));
        copy.reopen(due_after(now, due));
    }
}

/// Returns an account as stored, or an empty one.
fn read_account(batch: &mut Batch<'_>, name: &str) -> Result<Account, StreamNotLoaded> {
    Ok(match batch.stream(name)?.state() {
        Some(StreamState::Account(account)) => account.clone(),
        _ => Account::default(),
    })
}

/// Returns when a session is due, in Unix seconds: at its deadline, or after `session_idle` if that is earlier.
fn session_due(session: &Session, batch: &Batch<'_>) -> u64 {
    let idle = due_after(batch.now / 1000, batch.context.settings.session_idle);
    let ends = session.agreed.ends().and_then(|ends| u64::try_from(ends.as_second()).ok());
    ends.unwrap_or(FOR_EVER).min(idle).min(FOR_EVER)
}

/// Returns a session's state; `None` if there is no session.
fn read_session(batch: &mut Batch<'_>, stream: &str) -> Result<Option<SessionState>, StreamNotLoaded> {
    Ok(match batch.stream(stream)?.state() {
        Some(StreamState::Session(state)) => Some((**state).clone()),
        _ => None,
    })
}

/// Identifies the sender of a message. A gateway that was restarted has not seen a server issue the MCP session; if the
/// presumed session has an account, its earlier commitments bind the sender all the same (V-2, V-33).
fn identified(batch: &mut Batch<'_>, caller: &Caller) -> Result<Caller, StreamNotLoaded> {
    let Some(presumed) = caller.presumed() else { return Ok(caller.clone()) };
    let Some(key) = account_key(&presumed, None) else { return Ok(caller.clone()) };
    Ok(match batch.stream(&account_stream(&key))?.state() {
        Some(StreamState::Account(account)) if !account.has_only_denials() => presumed,
        _ => caller.clone(),
    })
}

/// Returns the key of the account that a message is decided with: the session principal's, if the sender is proven to be
/// that principal, or else the sender's own. Step C1 finds the same, since both check the signature in the same way.
fn account_of(
    context: &DecisionContext<'_>,
    sent: &SentMessage<'_>,
    session: Option<&Session>,
) -> Option<String> {
    let by_key = session
        .is_some_and(|session| matches!(session.agreed.principal().identity(), Identity::SigningKey(_)));
    let signed_by = match by_key || account_key(context.caller, None).is_none() {
        true => {
            sent.received.and_then(|received| decide::signed_by(context, received, &sent.before, session))
        }
        false => None,
    };
    let is_principal =
        |session: &&Session| session.agreed.principal().is_presented_by(context.caller, signed_by.as_deref());
    match session.filter(is_principal) {
        Some(session) => Some(session.agreed.account().to_owned()),
        None => account_key(context.caller, signed_by.as_deref()),
    }
}

/// Returns whether a decision depends on the principal's account beyond the session: always outside a session and in a
/// session that the operator committed, and wherever the operator limits all sessions together (`principal_ceiling`).
pub fn depends_on_account(ruling: &decide::Ruling, rules: &Rules) -> bool {
    let is_by_operator = is_operator_session(&ruling.verdict.session_id);
    ruling.stream == decide::Stream::Unbound || is_by_operator || rules.principal_ceiling.is_some()
}
