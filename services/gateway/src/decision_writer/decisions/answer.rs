//! The response to a decision: the signed Verdict, and the location of its record.

use admission::decide::{Ruling, VerdictDelivery};
use vap::verdict::Verdict;

use super::admitted_call::AdmittedCall;
use super::denial::UnrecordedDenial;
use super::ruling_records::{RecordReference, RecordedRuling, binding};
use crate::authority::ReceiptReference;
use crate::decision_writer::context::WriterContext;

/// A decision for its caller. It is durable if [`evidence`](Self::evidence) is present.
#[derive(Debug)]
pub struct DecisionAnswer {
    /// The decision. Its signed form is [`text`](Self::text).
    pub verdict: Verdict,
    /// The signed Verdict exactly as stored, for the VAP slot in the caller's shape.
    pub text: String,
    /// The shape and the key of the Verdict in the answer, or [`VerdictDelivery::NotSent`] if it is left out.
    pub delivery: VerdictDelivery,
    /// The location of the record. `None` if there is no record, which implies a denial.
    pub evidence: Option<RecordReference>,
    /// The execution receipt, if AgentROA was enforced.
    pub receipt: Option<ReceiptReference>,
    /// The permission to forward a call. `None` if nothing may be forwarded.
    pub pass: Option<AdmittedCall>,
    /// The full ruling. `None` if it has no record.
    pub ruling: Option<Box<Ruling>>,
}

impl DecisionAnswer {
    /// The response for a durable ruling, with the permission to forward its call.
    pub fn of(ruling: Box<Ruling>, recorded: RecordedRuling, pass: Option<AdmittedCall>) -> Self {
        Self {
            verdict: ruling.verdict.clone(),
            text: recorded.text,
            delivery: ruling.delivery,
            evidence: Some(recorded.evidence),
            receipt: recorded.receipt,
            pass,
            ruling: Some(ruling),
        }
    }

    /// The response without a record: a signed denial. It is unsigned if signing fails, too.
    pub fn unrecorded(context: &WriterContext, denial: UnrecordedDenial) -> Self {
        let UnrecordedDenial { verdict, delivery, req } = denial;
        let binding = binding(context.clock.milliseconds(), req);
        let signed = binding.and_then(|binding| Ok(verdict.sign(&context.verdict, &binding)?));
        let text = signed.unwrap_or_else(|error| {
            tracing::error!(%error, "a denial is sent unsigned");
            verdict.to_value().to_string()
        });
        Self { verdict, text, delivery, evidence: None, receipt: None, pass: None, ruling: None }
    }

    /// Returns the effective commitment E(n) as JSON, after a commitment or an amendment was accepted (V-17).
    pub fn commitment(&self) -> Option<&str> {
        self.ruling.as_ref()?.effective.as_deref()
    }
}
