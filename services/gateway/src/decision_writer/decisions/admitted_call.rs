//! The permission to forward one call, and the duty to record its outcome.
//!
//! An admitted call has exactly one outcome, even if its forwarding task is dropped. An [`AdmittedCall`] that is dropped
//! before anything was sent records `refused`, and the reservation is released; one that is dropped later records `unknown`,
//! and the reservation stays spent (V-12, V-14).

use admission::decide::{Ruling, Settled};
use http::HeaderMap;
use jose::json;
use merkle::EntryDigest;
use tokio::sync::oneshot;
use vap::audit::CallStatus;
use vap::digest::Canon;

use super::outcome::{CallEnd, CallOutcomeReport, DenialWithRecord, LateDenial, OutcomeWork, UnsettledCall};
use crate::decision_writer::DecisionWriter;
use crate::decision_writer::error::WriterError;
use crate::limits::{LARGE_RESULT, SETTLE_TIME};
use crate::upstream::Exchange;

/// The request of a call that is not decided. Only an [`AdmittedCall`] gives it out, so that no other reaches a server.
#[derive(Debug)]
pub struct HeldRequest(Exchange);

impl HeldRequest {
    /// Holds a request until its call is admitted.
    #[must_use]
    pub fn new(request: Exchange) -> Self {
        Self(request)
    }

    /// Returns the headers of the request.
    #[must_use]
    pub fn headers(&self) -> &HeaderMap {
        &self.0.headers
    }
}

/// The permission to forward a call, once.
#[derive(Debug)]
pub struct AdmittedCall {
    writer: DecisionWriter,
    /// The call; `None` once its outcome is submitted.
    call: Option<Box<UnsettledCall>>,
    is_forwarded: bool,
}

impl AdmittedCall {
    pub(super) fn new(writer: DecisionWriter, call: UnsettledCall) -> Self {
        Self { writer, call: Some(Box::new(call)), is_forwarded: false }
    }

    /// Gives out the request of the call, to be sent once: from its first byte on it may have an effect.
    pub fn release(&mut self, request: HeldRequest) -> Exchange {
        self.is_forwarded = true;
        request.0
    }

    /// Returns the entry ID of the decision.
    pub fn decision(&self) -> Option<EntryDigest> {
        self.call.as_ref().map(|call| call.decision)
    }

    /// Settles the call. Returns at once, unless the cost exceeded the reservation: then when the outcome is durable,
    /// or after [`SETTLE_TIME`].
    ///
    /// A [`CallOutcomeReport::status`] of `refused` releases the reservation, so it must be used only if nothing was sent.
    pub async fn settle(mut self, report: CallOutcomeReport) -> Settled {
        let Some(call) = self.call.take() else { return Settled::default() };
        let settled = call.preview(&report);
        let waits_for_commit = settled.exceeded_reservation;
        let is_large = report.result.as_ref().is_some_and(|result| result.len() > LARGE_RESULT);
        let (durable, is_durable) = oneshot::channel();
        let durable = waits_for_commit.then_some(durable);
        let writer = self.writer.clone();
        let submit = move || {
            let CallOutcomeReport { status, cost, result } = report;
            let end = CallEnd { status, cost, result: result.as_deref().and_then(canonical) };
            let outcome = OutcomeWork::new(writer.clone(), *call, end, durable);
            writer.submit(Box::new(outcome));
        };
        match is_large {
            false => submit(),
            // The answer does not wait for the canonical form of a large result.
            true => self.writer.spawn_submission(async move { submit() }),
        }
        if waits_for_commit && tokio::time::timeout(SETTLE_TIME, is_durable).await.is_err() {
            tracing::error!(
                "an answer is given before its cost is durable: the database refuses the settlement"
            );
        }
        settled
    }

    /// Denies the call after its admission, since the log issued no receipt for the decision. Records the outcome
    /// `refused` and a denial in place of `permit`, and returns that denial.
    pub(in crate::decision_writer) async fn deny(
        mut self,
        permit: Box<Ruling>,
        why: WriterError,
    ) -> Result<DenialWithRecord, WriterError> {
        let Some(call) = self.call.take() else { return Err(why) };
        let (reply, denied) = oneshot::channel();
        let denial = LateDenial::new(permit, why.clone(), reply);
        self.writer.submit(Box::new(OutcomeWork::denied(self.writer.clone(), *call, denial)));
        denied.await.unwrap_or(Err(why))
    }
}

/// Returns the canonical result that the record commits to. `None` for a result that is not strict JSON, but for the size
/// of its numbers: it is passed on without a commitment.
fn canonical(result: &str) -> Option<Canon> {
    json::check_any_numbers(result).ok().map(Canon::of)
}

impl Drop for AdmittedCall {
    fn drop(&mut self) {
        let Some(call) = self.call.take() else { return };
        let status = if self.is_forwarded { CallStatus::Unknown } else { CallStatus::Refused };
        let outcome = OutcomeWork::new(self.writer.clone(), *call, CallEnd::without_result(status), None);
        self.writer.submit(Box::new(outcome));
    }
}
