//! Outcomes of forwarded calls: settled, recorded, and retried until they are durable.

use std::sync::Arc;
use std::time::Instant;

use admission::decide::{self, Outcome, Ruling, Settled, Status};
use admission::digest::Canon;
use admission::reason::Reason;
use admission::record::{self, Place};
use admission::rules::Rules;
use admission::session::ReservationId;
use admission::verdict::VerdictKind;
use bytes::Bytes;
use evidence::RecordKind;
use merkle::EntryDigest;
use serde_json::{Value, json};
use tokio::sync::oneshot;

use super::close::end;
use super::copies::Copies;
use super::writing::{Written, place, timestamp, write};
use crate::desk::Desk;
use crate::desk::annex;
use crate::desk::error::DeskError;
use crate::desk::pass::Ticket;
use crate::desk::told::Told;
use crate::desk::writer::{Books, Job, NewRecord, Step, Work};
use crate::limits::ANNEX_TEXT_BYTES;

/// A job that settles a call and records its outcome.
pub struct OutcomeWork {
    desk: Desk,
    rules: Arc<Rules>,
    stream: String,
    decision: EntryDigest,
    reservation: Option<ReservationId>,
    tool: String,
    status: Status,
    cost: Option<String>,
    result: Option<Canon>,
    since: Instant,
    durable: Option<oneshot::Sender<()>>,
    denied: Option<Denied>,
}

/// A call that is denied after its admission, and the channel for that denial.
pub struct Refusal {
    /// The reason of the denial.
    pub why: DeskError,
    /// Receives the denial for the caller.
    pub tell: oneshot::Sender<Result<Told, DeskError>>,
}

struct Denied {
    refusal: Refusal,
    ruling: Box<Ruling>,
    written: Option<Written>,
}

impl OutcomeWork {
    /// The outcome of a call. `durable` is notified when the outcome is committed.
    pub fn of(
        desk: Desk,
        ticket: Ticket,
        status: Status,
        cost: Option<String>,
        result: Option<Canon>,
        durable: Option<oneshot::Sender<()>>,
    ) -> Self {
        let Ticket { rules, stream, decision, reservation, tool, .. } = ticket;
        let work = Self::unknown(desk, rules, (stream, decision), reservation, tool);
        Self { status, cost, result, durable, ..work }
    }

    /// The outcome [`Status::Refused`] of a call that is denied after its admission, before anything of it was sent.
    pub fn denied(desk: Desk, ticket: Ticket, refusal: Refusal) -> Self {
        let ruling = ticket.ruling.clone();
        let denied = Some(Denied { refusal, ruling, written: None });
        Self { denied, ..Self::of(desk, ticket, Status::Refused, None, None, None) }
    }

    /// The outcome [`Status::Unknown`] of a call whose process died.
    pub fn unknown(
        desk: Desk,
        rules: Arc<Rules>,
        (stream, decision): (String, EntryDigest),
        reservation: Option<ReservationId>,
        tool: String,
    ) -> Self {
        let (status, since) = (Status::Unknown, Instant::now());
        let (cost, result, durable, denied) = (None, None, None, None);
        Self {
            desk,
            rules,
            stream,
            decision,
            reservation,
            tool,
            status,
            cost,
            result,
            since,
            durable,
            denied,
        }
    }

    /// Adds the channel that is notified when the outcome is durable.
    pub fn told_to(self, durable: oneshot::Sender<()>) -> Self {
        Self { durable: Some(durable), ..self }
    }

    fn settle(&self, copies: &mut Copies) -> Settled {
        let (Some(reservation), Some(session)) = (self.reservation, &mut copies.session) else {
            return Settled::default();
        };
        let outcome = Outcome { status: self.status, tool: &self.tool, cost: self.cost.as_deref() };
        let settled = decide::settle(&self.rules, session, &mut copies.account, reservation, outcome);
        settled.unwrap_or_default()
    }

    fn write(&mut self, books: &mut Books<'_>) -> Result<Option<Vec<String>>, DeskError> {
        let Some(mut copies) = Copies::of_session(books, &self.stream) else {
            return Ok(Some(books.missing()));
        };
        let settled = self.settle(&mut copies);
        let in_session = copies.session.is_some();
        copies.keep(books);
        if !in_session && self.reservation.is_none() {
            books.count_settled(&self.stream);
        }
        self.record(books, &settled)?;
        if let Some(Denied { refusal, ruling, .. }) = &self.denied {
            let mut ruling = ruling.clone();
            deny(&mut ruling, &settled, refusal.why.reason());
            let aside = json!({ "instead_of": self.decision.to_string(), "why": refusal.why.to_string() });
            let written = write(books, &mut ruling, None, aside)?;
            if let Some(denied) = &mut self.denied {
                (denied.written, denied.ruling) = (Some(written), ruling);
            }
        }
        end(books, &self.stream)?;
        Ok(None)
    }

    fn record(&self, books: &mut Books<'_>, settled: &Settled) -> Result<(), DeskError> {
        let (house, now) = (books.house, books.now);
        let (key, seq) = place(books, &self.stream)?;
        let place = Place {
            gateway: house.notary.issuer(),
            stream: &self.stream,
            seq,
            at: timestamp(now),
            key: &key,
        };
        let decision = self.decision.to_string();
        let came = record::Came {
            decision: &decision,
            status: self.status,
            settled: &settled.settled,
            result: self.result.as_ref(),
        };
        let signed = house.notary.audit_record(record::outcome(&place, &came), &self.stream)?;
        let annex = self.annex(settled);
        let Some(sheet) = books.sheet(&self.stream) else {
            return Err(DeskError::Unrecordable(format!("the stream {} is not open", self.stream)));
        };
        sheet.record(
            &self.stream,
            now,
            NewRecord { kind: RecordKind::Outcome, signed, verdict: None, annex },
        );
        sheet.settle(self.decision);
        Ok(())
    }

    fn annex(&self, settled: &Settled) -> Bytes {
        let flags: Vec<&str> = settled.flags.iter().map(|flag| flag.as_str()).collect();
        let result = self.result.as_ref().map(|result| annex::text(&result.bytes, ANNEX_TEXT_BYTES));
        let annex = json!({
            "decision": self.decision.to_string(),
            "tool": self.tool,
            "reservation": self.reservation.map_or(Value::Null, |held| held.0.into()),
            "cost": self.cost,
            "result": result,
            "flags": flags,
        });
        annex::bounded(annex, ANNEX_TEXT_BYTES)
    }
}

/// Turns an admitting ruling into a denial with this reason and the meters after the settlement.
fn deny(ruling: &mut Ruling, settled: &Settled, reason: Reason) {
    ruling.verdict.verdict = VerdictKind::Denied;
    ruling.verdict.verification.reason = Some(reason.clone());
    (ruling.verdict.expires_at, ruling.verdict.downgrade, ruling.verdict.audit_ref) = (None, None, None);
    (ruling.reason, ruling.forward, ruling.reservation) = (Some(reason), false, None);
    (ruling.ticket, ruling.pending) = (None, None);
    ruling.claims.clear();
    if !settled.meters.is_empty() {
        ruling.meters = settled.meters.clone();
    }
}

impl Work for OutcomeWork {
    fn streams(&self) -> Vec<String> {
        vec![self.stream.clone(), self.desk.unbound().to_owned()]
    }

    fn since(&self) -> Instant {
        self.since
    }

    fn is_urgent(&self) -> bool {
        self.durable.is_some() || self.denied.is_some()
    }

    fn decide(&mut self, books: &mut Books<'_>) -> Step {
        match self.write(books) {
            Ok(None) => Step::Decided,
            Ok(Some(needs)) => Step::Needs(needs),
            Err(why) => Step::Impossible(why),
        }
    }

    fn committed(self: Box<Self>) {
        if let Some(durable) = self.durable {
            let _ = durable.send(());
        }
        let Some(Denied { refusal, ruling, written: Some(written) }) = self.denied else { return };
        let _ = refusal.tell.send(Ok(Told::of(ruling, written, None)));
    }

    fn failed(mut self: Box<Self>, why: &DeskError) -> Option<Job> {
        // The caller is denied now, without a record of the denial. The outcome `refused` is still owed.
        if let Some(denied) = self.denied.take() {
            let _ = denied.refusal.tell.send(Err(why.clone()));
        }
        match why {
            DeskError::Unrecordable(_) => None,
            _ => Some(self),
        }
    }
}
