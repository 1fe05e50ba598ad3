//! What lets one call go on, and owes what became of it.
//!
//! A decision that served a call has one outcome, whatever happens to whoever forwards it: a pass that is dropped before
//! anything was sent says `refused`, and the reservation is given back; one that is dropped later says `unknown`, and the
//! reservation stays spent (V-12, V-14).

use std::sync::Arc;

use admission::decide::{Outcome, Ruling, Settled, Status};
use admission::digest::Canon;
use admission::rules::Rules;
use admission::session::{Account, ReservationId, Session};
use jose::json::{self, Limits};
use merkle::EntryDigest;
use tokio::sync::oneshot;

use super::Desk;
use super::decisions::{OutcomeWork, Refusal};
use super::error::DeskError;
use super::told::Told;
use crate::limits::{LARGE_RESULT, MAX_ANSWER_DEPTH, SETTLE_TIME};

/// A call that may be forwarded, once.
#[derive(Debug)]
pub struct Pass {
    desk: Desk,
    ticket: Option<Box<Ticket>>,
    forwarding: bool,
}

/// What a pass is for.
#[derive(Debug)]
pub struct Ticket {
    /// The rules that it was admitted under.
    pub rules: Arc<Rules>,
    /// The stream of its decision.
    pub stream: String,
    /// The entry ID of its decision.
    pub decision: EntryDigest,
    /// What it has reserved, if it belongs to a session.
    pub reservation: Option<ReservationId>,
    /// The tool, by the name under which it was admitted.
    pub tool: String,
    /// The session when it was admitted.
    pub snapshot: Option<Box<Session>>,
    /// The ruling.
    pub ruling: Box<Ruling>,
}

/// How a call ended.
#[derive(Clone, Debug)]
pub struct Came {
    /// How.
    pub status: Status,
    /// The text of the cost that the tool declared, if it did (V-5).
    pub cost: Option<String>,
    /// The text of the result without `_meta` (V-39), if there is one.
    pub result: Option<String>,
}

impl Pass {
    pub(super) fn new(desk: Desk, ticket: Ticket) -> Self {
        Self { desk, ticket: Some(Box::new(ticket)), forwarding: false }
    }

    /// The call is about to be forwarded: from the next byte on nobody can say that it had no effect.
    pub fn forwarding(&mut self) {
        self.forwarding = true;
    }

    /// The entry ID of the decision.
    pub fn decision(&self) -> Option<EntryDigest> {
        self.ticket.as_ref().map(|ticket| ticket.decision)
    }

    /// The call is over. What it cost is told at once, unless it cost more than was reserved: then only when that is durable.
    ///
    /// `refused` gives the reservation back: only where nothing was sent.
    pub async fn settle(mut self, came: Came) -> Settled {
        let Some(ticket) = self.ticket.take() else { return Settled::default() };
        let settled = ticket.preview(&came);
        let exceeded = settled.exceeded_reservation;
        let large = came.result.as_ref().is_some_and(|result| result.len() > LARGE_RESULT);
        let (tell, told) = oneshot::channel();
        let desk = self.desk.clone();
        let hand_in = move || {
            let result = came.result.as_deref().and_then(canon);
            let work = OutcomeWork::of(
                desk.clone(),
                *ticket,
                came.status,
                came.cost,
                result,
                exceeded.then_some(tell),
            );
            desk.hand_in(Box::new(work));
        };
        match large {
            false => hand_in(),
            // Nobody waits for the canonical form of a large result.
            true => self.desk.owe(async move { hand_in() }),
        }
        if exceeded && tokio::time::timeout(SETTLE_TIME, told).await.is_err() {
            tracing::error!(
                "an answer is given before what it cost is durable: the database does not take it"
            );
        }
        settled
    }

    /// The call does not go on after all, since the log gave no receipt for its decision: its outcome is `refused`, and a
    /// denial is recorded beside it, which is what the caller is told.
    pub(super) async fn deny(mut self, why: DeskError) -> Result<Told, DeskError> {
        let Some(ticket) = self.ticket.take() else { return Err(why) };
        let (tell, told) = oneshot::channel();
        let refusal = Refusal { why: why.clone(), tell };
        let work = OutcomeWork::denied(self.desk.clone(), *ticket, refusal);
        self.desk.hand_in(Box::new(work));
        match told.await {
            Ok(told) => told,
            Err(_) => Err(why),
        }
    }
}

impl Ticket {
    /// What the settlement will come to, in what was known when the call was admitted: what a session limits is never
    /// limited less (V-16), and the reservation is the call's own.
    fn preview(&self, came: &Came) -> Settled {
        let (Some(reservation), Some(mut session)) = (self.reservation, self.snapshot.clone()) else {
            return Settled::default();
        };
        let outcome = Outcome { status: came.status, tool: &self.tool, cost: came.cost.as_deref() };
        let mut account = Account::default();
        let settled =
            admission::decide::settle(&self.rules, &mut session, &mut account, reservation, outcome);
        settled.unwrap_or_default()
    }
}

/// What the record commits to. A result that is no strict JSON is passed on, and not committed to.
fn canon(result: &str) -> Option<Canon> {
    let limits = Limits { bytes: result.len(), depth: MAX_ANSWER_DEPTH };
    json::check(result.as_bytes(), limits).ok().map(Canon::of)
}

impl Drop for Pass {
    fn drop(&mut self) {
        let Some(ticket) = self.ticket.take() else { return };
        let status = if self.forwarding { Status::Unknown } else { Status::Refused };
        let work = OutcomeWork::of(self.desk.clone(), *ticket, status, None, None, None);
        self.desk.hand_in(Box::new(work));
    }
}
