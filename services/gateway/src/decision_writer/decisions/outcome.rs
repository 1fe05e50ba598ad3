//! Outcomes of forwarded calls: settled, recorded, and retried until they are durable.

use std::sync::Arc;
use std::time::Instant;

use admission::decide::{self, CallOutcome, CallPermit, Ruling, Settled};
use admission::record;
use admission::rules::Rules;
use admission::session::{Account, ReservationId, Session};
use decimal::Decimal;
use evidence::{Claim, ClaimKind, RecordKind};
use merkle::EntryDigest;
use tokio::sync::oneshot;
use vap::audit::CallStatus;
use vap::digest::Canon;

use super::audit_records::append_next;
use super::close::end;
use super::copies::WorkingCopies;
use super::denial;
use super::writing::{RecordedRuling, claim, write};
use crate::annex::{OutcomeAnnex, RecordedInputs};
use crate::authority::{UsedEnvelope, settled_cost};
use crate::decision_writer::DecisionWriter;
use crate::decision_writer::error::WriterError;
use crate::decision_writer::states::StreamState;
use crate::decision_writer::transactions::{Batch, Job, JobStep, Work};

/// An admitted call whose outcome is not recorded.
#[derive(Debug)]
pub struct UnsettledCall {
    /// The rules under which the call was admitted.
    pub rules: Arc<Rules>,
    /// The stream of the decision.
    pub stream: String,
    /// The entry ID of the decision.
    pub decision: EntryDigest,
    /// The permit of the call, with its reservation.
    pub permit: CallPermit,
    /// The tool's name as it was admitted.
    pub tool: String,
    /// The session at the time of the admission.
    pub snapshot: Option<Box<Session>>,
    /// The amounts that the call reserved under its AgentROA envelope.
    pub envelope: Option<UsedEnvelope>,
}

/// The end of a call, to be settled.
#[derive(Clone, Debug)]
pub struct CallOutcomeReport {
    /// The status of the outcome.
    pub status: CallStatus,
    /// The text of the cost that the tool declared, if any (V-5).
    pub cost: Option<String>,
    /// The text of the result without `_meta` (V-39), if there is one.
    pub result: Option<String>,
}

/// A job that settles a call and records its outcome.
pub struct OutcomeWork {
    writer: DecisionWriter,
    rules: Arc<Rules>,
    stream: String,
    decision: EntryDigest,
    reservation: Option<ReservationId>,
    tool: String,
    status: CallStatus,
    cost: Option<String>,
    result: Option<Canon>,
    since: Instant,
    /// Whether another job may settle the same call: another gateway's, or another round of the recovery's.
    may_be_settled: bool,
    durable: Option<oneshot::Sender<()>>,
    denied: Option<LateDenial>,
    /// The amounts to settle under the envelope. After a crash they stay spent, like those of every unknown outcome.
    envelope: Option<UsedEnvelope>,
}

/// The denial of a call after its admission.
pub struct LateDenial {
    permit: Box<Ruling>,
    why: WriterError,
    reply: oneshot::Sender<Result<(Box<Ruling>, RecordedRuling), WriterError>>,
    written: Option<(Box<Ruling>, RecordedRuling)>,
}

impl LateDenial {
    /// A denial in place of `permit`; `reply` receives it when it is recorded.
    pub fn new(
        permit: Box<Ruling>,
        why: WriterError,
        reply: oneshot::Sender<Result<(Box<Ruling>, RecordedRuling), WriterError>>,
    ) -> Self {
        Self { permit, why, reply, written: None }
    }
}

impl UnsettledCall {
    /// Computes the settlement from the session at the time of the admission: a session's limits are never relaxed
    /// (V-16), and the reservation is the call's own.
    pub fn preview(&self, report: &CallOutcomeReport) -> Settled {
        let (Some(reservation), Some(mut session)) = (self.permit.reservation(), self.snapshot.clone())
        else {
            return Settled::default();
        };
        let outcome = CallOutcome { status: report.status, tool: &self.tool, cost: report.cost.as_deref() };
        let mut account = Account::default();
        let settled = decide::settle(&self.rules, &mut session, &mut account, reservation, outcome);
        settled.unwrap_or_default()
    }
}

impl OutcomeWork {
    /// The outcome of a call. `durable` is notified when the outcome is committed.
    pub fn of(
        writer: DecisionWriter,
        call: UnsettledCall,
        status: CallStatus,
        cost: Option<String>,
        result: Option<Canon>,
        durable: Option<oneshot::Sender<()>>,
    ) -> Self {
        let UnsettledCall { rules, stream, decision, permit, tool, envelope, .. } = call;
        let may_be_settled = writer.inner.context.settings.shared;
        let work = Self::unknown(writer, rules, (stream, decision), permit.reservation(), tool);
        Self { status, cost, result, may_be_settled, durable, envelope, ..work }
    }

    /// The outcome [`CallStatus::Refused`] of a call that is denied after its admission, before anything of it was sent.
    pub fn denied(writer: DecisionWriter, call: UnsettledCall, denied: LateDenial) -> Self {
        Self { denied: Some(denied), ..Self::of(writer, call, CallStatus::Refused, None, None, None) }
    }

    /// The outcome [`CallStatus::Unknown`] of a call whose process died.
    pub fn unknown(
        writer: DecisionWriter,
        rules: Arc<Rules>,
        (stream, decision): (String, EntryDigest),
        reservation: Option<ReservationId>,
        tool: String,
    ) -> Self {
        let (status, since) = (CallStatus::Unknown, Instant::now());
        let (cost, result, durable, denied) = (None, None, None, None);
        Self {
            writer,
            rules,
            stream,
            decision,
            reservation,
            tool,
            status,
            cost,
            result,
            since,
            may_be_settled: true,
            durable,
            denied,
            envelope: None,
        }
    }

    /// Adds the channel that is notified when the outcome is durable.
    pub fn notifying(self, durable: oneshot::Sender<()>) -> Self {
        Self { durable: Some(durable), ..self }
    }

    /// Returns the claim on the only outcome of a call that holds no reservation in a session, if another job may settle
    /// it, too.
    fn claim(&self) -> Option<Claim> {
        let is_needed = self.may_be_settled && self.reservation.is_none();
        is_needed.then(|| claim(&self.stream, ClaimKind::Outcome, &self.decision.to_string()))
    }

    /// Settles the reservation. `None` if another job settled it before, such as one of a gateway that took this one for
    /// dead.
    fn settle(&self, copies: &mut WorkingCopies) -> Option<Settled> {
        let (Some(reservation), Some(session)) = (self.reservation, &mut copies.session) else {
            return Some(Settled::default());
        };
        let outcome = CallOutcome { status: self.status, tool: &self.tool, cost: self.cost.as_deref() };
        decide::settle(&self.rules, session, &mut copies.account, reservation, outcome)
    }

    /// Settles the amounts that the call reserved under its envelope. `false` if the stream is not loaded yet.
    fn settle_envelope(&self, batch: &mut Batch<'_>) -> bool {
        let Some(UsedEnvelope { stream, spending }) = &self.envelope else { return true };
        let cost = match self.status {
            CallStatus::Unknown => return true,
            CallStatus::Refused => Decimal::ZERO,
            CallStatus::Executed | CallStatus::Errored => {
                settled_cost(&self.rules, &self.tool, self.cost.as_deref(), spending)
            }
        };
        let Some(copy) = batch.stream(stream) else { return false };
        if let Some(StreamState::Envelope(used)) = copy.state() {
            let mut used = used.clone();
            used.settle(spending, cost);
            copy.put(StreamState::Envelope(used), false);
        }
        true
    }

    fn write(&mut self, batch: &mut Batch<'_>) -> Result<JobStep, WriterError> {
        if let Some(denied) = &mut self.denied {
            // What an earlier attempt wrote was not committed.
            denied.written = None;
        }
        let claims = self.claims();
        if !batch.has_looked_up(&claims) {
            return Ok(JobStep::NeedsClaims(claims));
        }
        if claims.iter().any(|claim| batch.is_used(claim)) {
            return Ok(JobStep::Nothing);
        }
        let Some(mut copies) = WorkingCopies::of_session(batch, &self.stream) else {
            return Ok(JobStep::Needs(batch.missing()));
        };
        let Some(settled) = self.settle(&mut copies) else { return Ok(JobStep::Nothing) };
        if !self.settle_envelope(batch) {
            return Ok(JobStep::Needs(batch.missing()));
        }
        let in_session = copies.session.is_some();
        copies.keep(batch);
        if !in_session && self.reservation.is_none() {
            batch.count_settled(&self.stream);
        }
        self.record(batch, &settled)?;
        if let Some(denied) = &mut self.denied {
            let mut ruling = denial::after_admission(&denied.permit, &settled, denied.why.reason());
            let inputs = RecordedInputs::LateDenial {
                instead_of: self.decision.to_string(),
                why: denied.why.to_string(),
            };
            let written = write(batch, &mut ruling, None, inputs)?;
            denied.written = Some((ruling, written));
        }
        end(batch, &self.stream)?;
        Ok(JobStep::Decided)
    }

    fn record(&self, batch: &mut Batch<'_>, settled: &Settled) -> Result<(), WriterError> {
        let outcome = record::OutcomeRecord {
            decision: self.decision,
            status: self.status,
            settled: &settled.settled,
            result: self.result.as_ref(),
        };
        let call = (self.decision, self.tool.as_str());
        let result = self.result.as_ref();
        let annex =
            OutcomeAnnex::new(call, self.reservation, self.cost.as_deref(), result, settled).to_bytes();
        append_next(batch, &self.stream, (RecordKind::Outcome, annex), |position| {
            record::outcome(position, &outcome)
        })?;
        let copy = batch.loaded(&self.stream)?;
        copy.settle(self.decision);
        self.claim().into_iter().for_each(|claim| copy.claim(claim));
        Ok(())
    }
}

impl Work for OutcomeWork {
    fn streams(&self) -> Vec<String> {
        let mut streams = vec![self.stream.clone(), self.writer.unbound()];
        streams.extend(self.envelope.as_ref().map(|used| used.stream.clone()));
        streams
    }

    fn claims(&self) -> Vec<Claim> {
        self.claim().into_iter().collect()
    }

    fn since(&self) -> Instant {
        self.since
    }

    fn is_urgent(&self) -> bool {
        self.durable.is_some() || self.denied.is_some()
    }

    fn decide(&mut self, batch: &mut Batch<'_>) -> JobStep {
        self.write(batch).unwrap_or_else(JobStep::Impossible)
    }

    fn committed(self: Box<Self>) {
        if let Some(durable) = self.durable {
            let _ = durable.send(());
        }
        let Some(LateDenial { why, reply, written, .. }) = self.denied else { return };
        let _ = reply.send(written.ok_or(why));
    }

    fn failed(mut self: Box<Self>, why: &WriterError) -> Option<Job> {
        // The caller is denied now, without a record of the denial. The outcome `refused` is still owed.
        if let Some(denied) = self.denied.take() {
            let _ = denied.reply.send(Err(why.clone()));
        }
        match why {
            WriterError::Unrecordable(_) => None,
            _ => Some(self),
        }
    }
}
