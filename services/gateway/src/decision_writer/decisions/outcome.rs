//! Outcomes of forwarded calls: settled, recorded, and retried until they are durable.

use std::sync::Arc;

use admission::decide::{self, CallOutcome, CallPermit, Ruling, Settled};
use admission::record;
use admission::rules::Rules;
use admission::session::{Account, ReservationId, Session};
use evidence::{Claim, ClaimKind, RecordKind};
use merkle::EntryDigest;
use tokio::sync::oneshot;
use vap::audit::CallStatus;
use vap::digest::Canon;

use super::audit_records::append_next;
use super::close::close_if_drained;
use super::denial;
use super::ruling_records::{RecordedRuling, claim, record_ruling};
use super::session_with_account::SessionWithAccount;
use crate::annex::{OutcomeAnnex, RecordedInputs};
use crate::authority::UsedEnvelope;
use crate::decision_writer::DecisionWriter;
use crate::decision_writer::error::WriterError;
use crate::decision_writer::states::StreamState;
use crate::decision_writer::transactions::{Batch, DecideError, StreamNotLoaded, Work, WorkItem, WorkStep};

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

/// The end of a call as its record states it.
#[derive(Debug)]
pub struct CallEnd {
    /// The status of the outcome.
    pub status: CallStatus,
    /// The text of the cost that the tool declared, if any.
    pub cost: Option<String>,
    /// The canonical result, if there is one to commit to.
    pub result: Option<Canon>,
}

impl CallEnd {
    /// The end of a call without cost and result.
    pub const fn without_result(status: CallStatus) -> Self {
        Self { status, cost: None, result: None }
    }
}

/// A call as the record of its decision names it.
pub struct CallToSettle {
    /// The rules under which the call is settled.
    pub rules: Arc<Rules>,
    /// The stream of the decision.
    pub stream: String,
    /// The entry ID of the decision.
    pub decision: EntryDigest,
    /// The reservation of the call, if it belongs to a session.
    pub reservation: Option<ReservationId>,
    /// The tool's name.
    pub tool: String,
    /// The amounts that the call reserved under its AgentROA envelope. After a crash only those of a call of unknown cost
    /// are found; the others stay spent anyway, like those of every unknown outcome.
    pub envelope: Option<UsedEnvelope>,
}

/// Settles a call and records its outcome.
pub struct OutcomeWork {
    writer: DecisionWriter,
    call: CallToSettle,
    end: CallEnd,
    /// Whether another item may settle the same call: another gateway's, or another round of the recovery's.
    may_be_settled: bool,
    /// Notified when the outcome is durable.
    durable: Option<oneshot::Sender<()>>,
    denial: Option<LateDenial>,
}

/// The denial of a call after its admission.
pub struct LateDenial {
    permit: Box<Ruling>,
    why: WriterError,
    reply: oneshot::Sender<Result<DenialWithRecord, WriterError>>,
    recorded: Option<DenialWithRecord>,
}

/// A denial with its record.
pub struct DenialWithRecord {
    /// The denial.
    pub ruling: Box<Ruling>,
    /// Its record.
    pub recorded: RecordedRuling,
}

impl LateDenial {
    /// A denial in place of `permit`; `reply` receives it when it is recorded.
    pub fn new(
        permit: Box<Ruling>,
        why: WriterError,
        reply: oneshot::Sender<Result<DenialWithRecord, WriterError>>,
    ) -> Self {
        Self { permit, why, reply, recorded: None }
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
    pub fn new(
        writer: DecisionWriter,
        call: UnsettledCall,
        end: CallEnd,
        durable: Option<oneshot::Sender<()>>,
    ) -> Self {
        let UnsettledCall { rules, stream, decision, permit, tool, envelope, .. } = call;
        let reservation = permit.reservation();
        let call = CallToSettle { rules, stream, decision, reservation, tool, envelope };
        let may_be_settled = writer.inner.context.settings.shared;
        Self { writer, call, end, may_be_settled, durable, denial: None }
    }

    /// The outcome [`CallStatus::Refused`] of a call that is denied after its admission, before anything of it was sent.
    pub fn denied(writer: DecisionWriter, call: UnsettledCall, denial: LateDenial) -> Self {
        let end = CallEnd::without_result(CallStatus::Refused);
        Self { denial: Some(denial), ..Self::new(writer, call, end, None) }
    }

    /// The outcome [`CallStatus::Unknown`] of a call whose process died. `durable` is notified when it is committed.
    pub fn unknown(writer: DecisionWriter, call: CallToSettle, durable: oneshot::Sender<()>) -> Self {
        let end = CallEnd::without_result(CallStatus::Unknown);
        let durable = Some(durable);
        Self { writer, call, end, may_be_settled: true, durable, denial: None }
    }

    /// Returns the claim on the only outcome of a call that holds no reservation in a session, if another item may settle
    /// it, too.
    fn claim(&self) -> Option<Claim> {
        let is_needed = self.may_be_settled && self.call.reservation.is_none();
        is_needed.then(|| claim(&self.call.stream, ClaimKind::Outcome, &self.call.decision.to_string()))
    }

    /// Settles the reservation. `None` if another item settled it before, such as one of a gateway that took this one for
    /// dead.
    fn settle(&self, working: &mut SessionWithAccount) -> Option<Settled> {
        let (Some(reservation), Some(session)) = (self.call.reservation, &mut working.session) else {
            return Some(Settled::default());
        };
        decide::settle(&self.call.rules, session, &mut working.account, reservation, self.outcome())
    }

    fn outcome(&self) -> CallOutcome<'_> {
        let CallEnd { status, cost, .. } = &self.end;
        CallOutcome { status: *status, tool: &self.call.tool, cost: cost.as_deref() }
    }

    /// Settles the amounts that the call reserved under its envelope.
    fn settle_envelope(&self, batch: &mut Batch<'_>) -> Result<(), StreamNotLoaded> {
        let Some(held) = &self.call.envelope else { return Ok(()) };
        let copy = batch.stream(&held.stream)?;
        if let Some(StreamState::Envelope(envelope)) = copy.state() {
            let mut envelope = envelope.clone();
            envelope.settle(held, &self.call.rules, self.outcome());
            copy.set_state(StreamState::Envelope(envelope));
        }
        Ok(())
    }

    fn record(&self, batch: &mut Batch<'_>, settled: &Settled) -> Result<(), WriterError> {
        let CallToSettle { stream, decision, reservation, tool, .. } = &self.call;
        let CallEnd { status, cost, result } = &self.end;
        let (decision, result) = (*decision, result.as_ref());
        let outcome = record::OutcomeRecord { decision, status: *status, settled: &settled.settled, result };
        let annex =
            OutcomeAnnex::new(decision, tool, *reservation, cost.as_deref(), result, settled).to_bytes();
        append_next(batch, stream, RecordKind::Outcome, annex, |position| {
            record::outcome(position, &outcome)
        })?;
        let copy = batch.loaded(stream)?;
        copy.settle_decision(decision);
        self.claim().into_iter().for_each(|claim| copy.use_claim(claim));
        Ok(())
    }

    /// Records the denial of a call that was admitted, if it is denied late.
    fn record_denial(&mut self, batch: &mut Batch<'_>, settled: &Settled) -> Result<(), WriterError> {
        let Some(denial) = &mut self.denial else { return Ok(()) };
        let mut ruling = denial::after_admission(&denial.permit, settled, denial.why.reason());
        let (instead_of, why) = (self.call.decision.to_string(), denial.why.to_string());
        let inputs = RecordedInputs::LateDenial { instead_of, why };
        let recorded = record_ruling(batch, &mut ruling, None, inputs)?;
        denial.recorded = Some(DenialWithRecord { ruling, recorded });
        Ok(())
    }
}

impl Work for OutcomeWork {
    fn streams(&self) -> Vec<String> {
        let mut streams = vec![self.call.stream.clone(), self.writer.own_stream()];
        streams.extend(self.call.envelope.as_ref().map(|held| held.stream.clone()));
        streams
    }

    fn claims(&self) -> Vec<Claim> {
        self.claim().into_iter().collect()
    }

    fn is_urgent(&self) -> bool {
        self.durable.is_some() || self.denial.is_some()
    }

    fn decide(&mut self, batch: &mut Batch<'_>) -> Result<WorkStep, DecideError> {
        if let Some(denial) = &mut self.denial {
            // The record of an earlier attempt was not committed.
            denial.recorded = None;
        }
        let claims = self.claims();
        if !batch.has_looked_up(&claims) {
            return Err(DecideError::ClaimsNotLookedUp(claims));
        }
        if claims.iter().any(|claim| batch.is_used(claim)) {
            return Ok(WorkStep::Unchanged);
        }
        let mut working = SessionWithAccount::of_session(batch, &self.call.stream)?;
        let Some(settled) = self.settle(&mut working) else { return Ok(WorkStep::Unchanged) };
        self.settle_envelope(batch)?;
        let is_in_session = working.session.is_some();
        working.write_to(batch);
        if !is_in_session && self.call.reservation.is_none() {
            batch.count_settled(&self.call.stream);
        }
        self.record(batch, &settled)?;
        self.record_denial(batch, &settled)?;
        close_if_drained(batch, &self.call.stream)?;
        Ok(WorkStep::Decided)
    }

    fn committed(self: Box<Self>) {
        if let Some(durable) = self.durable {
            let _ = durable.send(());
        }
        let Some(LateDenial { why, reply, recorded, .. }) = self.denial else { return };
        let _ = reply.send(recorded.ok_or(why));
    }

    fn failed(mut self: Box<Self>, why: &WriterError) -> Option<WorkItem> {
        // The caller is denied now, without a record of the denial. The outcome `refused` must still become durable.
        if let Some(denial) = self.denial.take() {
            let _ = denial.reply.send(Err(why.clone()));
        }
        Some(self)
    }
}
