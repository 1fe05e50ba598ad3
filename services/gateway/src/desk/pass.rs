//! The permission to forward one call, and the duty to record its outcome.
//!
//! An admitted call has exactly one outcome, even if its forwarding task is dropped. A [`Pass`] that is dropped before
//! anything was sent records `refused`, and the reservation is released; one that is dropped later records `unknown`,
//! and the reservation stays spent (V-12, V-14).

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

/// The permission to forward a call, once.
#[derive(Debug)]
pub struct Pass {
    desk: Desk,
    ticket: Option<Box<Ticket>>,
    forwarding: bool,
}

/// The call that a [`Pass`] permits.
#[derive(Debug)]
pub struct Ticket {
    /// The rules under which the call was admitted.
    pub rules: Arc<Rules>,
    /// The stream of the decision.
    pub stream: String,
    /// The entry ID of the decision.
    pub decision: EntryDigest,
    /// The reservation, if the call belongs to a session.
    pub reservation: Option<ReservationId>,
    /// The tool's name as it was admitted.
    pub tool: String,
    /// The session at the time of the admission.
    pub snapshot: Option<Box<Session>>,
    /// The ruling that admitted the call.
    pub ruling: Box<Ruling>,
}

/// The end of a call, to be settled.
#[derive(Clone, Debug)]
pub struct Came {
    /// The status of the outcome.
    pub status: Status,
    /// The text of the cost that the tool declared, if any (V-5).
    pub cost: Option<String>,
    /// The text of the result without `_meta` (V-39), if there is one.
    pub result: Option<String>,
}

impl Pass {
    pub(super) fn new(desk: Desk, ticket: Ticket) -> Self {
        Self { desk, ticket: Some(Box::new(ticket)), forwarding: false }
    }

    /// Marks the call as being forwarded: from the next byte on it may have an effect.
    pub fn forwarding(&mut self) {
        self.forwarding = true;
    }

    /// Returns the entry ID of the decision.
    pub fn decision(&self) -> Option<EntryDigest> {
        self.ticket.as_ref().map(|ticket| ticket.decision)
    }

    /// Settles the call. Returns at once, unless the cost exceeded the reservation: then when the outcome is durable,
    /// or after [`SETTLE_TIME`].
    ///
    /// A [`Came::status`] of `refused` releases the reservation, so it must be used only if nothing was sent.
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
            // The answer does not wait for the canonical form of a large result.
            true => self.desk.owe(async move { hand_in() }),
        }
        if exceeded && tokio::time::timeout(SETTLE_TIME, told).await.is_err() {
            tracing::error!(
                "an answer is given before what it cost is durable: the database does not take it"
            );
        }
        settled
    }

    /// Denies the call after its admission, since the log issued no receipt for the decision. Records the outcome
    /// `refused` and a denial, and returns that denial.
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
    /// Computes the settlement from the session at the time of the admission: a session's limits are never relaxed
    /// (V-16), and the reservation is the call's own.
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

/// The canonical result that the record commits to. `None` for a result that is not strict JSON, which is passed on
/// without a commitment.
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
