//! Replay of a recorded session: every decision is made again, and compared with the recorded one.

use std::str::FromStr;

use admission::decide::{Advised, Status};
use admission::message::{MessageType, UNBOUND};
use admission::reason::Reason;
use admission::verdict::VerdictKind;
use evidence::{RecordKind, Stored};
use jiff::Timestamp;
use serde::Serialize;
use serde_json::Value;

use super::AgainError;
use super::annex::Annex;
use super::session::{Again, Called, Now, Said, presumed_opinion};
use crate::decision_inputs::{DecisionInputs, JudgeOpinion, NotWhole, PutInputs, whole};

/// A verdict and its reason, as words.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Decided {
    /// `served`, `downgraded`, `clarify` or `denied`.
    pub verdict: String,
    /// The code of the reason.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub reason: Option<String>,
    /// The reason in words.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub because: Option<&'static str>,
}

/// A recorded decision and its replay.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Compared {
    /// The sequence number of the record in its stream.
    pub seq: u64,
    /// Time of the decision.
    pub at: String,
    /// `commitment`, `amendment` or `decision`.
    pub kind: &'static str,
    /// The tool's name.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub tool: Option<String>,
    /// The recorded decision.
    pub then: Decided,
    /// The replayed decision; `None` if there is none.
    pub now: Option<Decided>,
    /// The recorded decision of the rules, if the posture `advisory` let the call through.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub advised_then: Option<Decided>,
    /// The replayed decision of the rules, if the posture `advisory` lets the call through.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub advised_now: Option<Decided>,
    /// The reason why there is no replayed decision, or a remark.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub note: Option<String>,
    /// The question that was put to approvers, with its signed answer: `tabellion gateway approval verify` checks it.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub approval: Option<Value>,
    /// `true` if the replayed decision differs from the recorded one.
    pub differs: bool,
}

/// Replays every record, in order.
///
/// # Errors
/// [`AgainError::Record`] if a record cannot be read.
pub fn replay(again: &mut Again, records: &[Stored]) -> Result<Vec<Compared>, AgainError> {
    let mut compared = Vec::new();
    for stored in records {
        match stored.record.kind {
            RecordKind::Commitment | RecordKind::Amendment | RecordKind::Decision => {
                compared.push(decision(again, stored)?);
            }
            RecordKind::Outcome => outcome(again, stored)?,
            RecordKind::Closed => again.close(),
            RecordKind::Denials | RecordKind::Tools | RecordKind::Keys => {}
        }
    }
    Ok(compared)
}

fn decision(again: &mut Again, stored: &Stored) -> Result<Compared, AgainError> {
    let record = &stored.record;
    let annex = Annex::of(stored)?;
    let (then, came_to) = recorded(stored)?;
    let at = i64::try_from(record.at).ok().and_then(|at| Timestamp::from_second(at).ok());
    let at = at.unwrap_or(Timestamp::MAX);
    let inputs = annex.inputs();
    let tool =
        inputs.as_ref().and_then(|inputs| whole(inputs.tool.as_ref()).ok().flatten().map(str::to_owned));
    let now = match &inputs {
        _ if annex.is_denied_afterwards() => Err(NotAgain::DeniedAfterwards),
        None => Err(NotAgain::NotWhole),
        Some(inputs) => decided_again(again, stored, &annex, inputs, (at, came_to)),
    };
    let mut compared = compare(stored, tool, at, (then, advised_then(stored)?), now);
    compared.approval = inputs.and_then(|inputs| serde_json::to_value(inputs.put?).ok());
    Ok(compared)
}

/// Reason why a decision cannot be replayed.
#[derive(Clone, Copy, Debug)]
enum NotAgain {
    NotWhole,
    Unreadable,
    NoCall,
    OfAnotherSession,
    DeniedAfterwards,
}

impl NotAgain {
    const fn words(self) -> &'static str {
        match self {
            Self::NotWhole => "what was said was not kept whole",
            Self::Unreadable => "the message could not be read",
            Self::NoCall => "it is about a request that is no call",
            Self::OfAnotherSession => "it depends on a session that has its own records",
            Self::DeniedAfterwards => "the call was admitted, and denied since the log gave no receipt",
        }
    }
}

impl From<NotWhole> for NotAgain {
    fn from(_: NotWhole) -> Self {
        Self::NotWhole
    }
}

/// Replays a decision, if all its inputs were kept.
fn decided_again(
    again: &mut Again,
    stored: &Stored,
    annex: &Annex,
    inputs: &DecisionInputs,
    (recorded_at, came_to): (Timestamp, Option<VerdictKind>),
) -> Result<Now, NotAgain> {
    if inputs.unreadable {
        return Err(NotAgain::Unreadable);
    }
    if inputs.method.is_some() {
        return Err(NotAgain::NoCall);
    }
    let caller = inputs.caller();
    let message = whole(inputs.message.as_ref())?;
    if message.is_some() && stored.record.stream.starts_with(UNBOUND) {
        return Err(NotAgain::OfAnotherSession);
    }
    let now = Timestamp::from_millisecond(inputs.at).unwrap_or(recorded_at);
    let said = Said {
        first: inputs.first_at.and_then(|at| Timestamp::from_millisecond(at).ok()).unwrap_or(now),
        sample: inputs.sample,
        replayed: inputs.replayed,
        judged: inputs.judge.as_ref().map_or_else(|| presumed_opinion(came_to), JudgeOpinion::semantic),
        answer: inputs.answer,
        can_wait: inputs.can_wait,
        put: inputs.put.as_ref().map(PutInputs::put),
        held_for_others: &inputs.held_for_others,
        account: inputs.account.as_ref(),
        ..Said::new(&inputs.route, &caller, now, message)
    };
    Ok(match stored.record.kind {
        RecordKind::Commitment => again.declare(MessageType::ScopeCommitment, &said),
        RecordKind::Amendment => again.declare(MessageType::ScopeAmendment, &said),
        _ => {
            let called = Called {
                tool: whole(inputs.tool.as_ref())?.unwrap_or_default(),
                arguments: whole(annex.arguments.as_ref())?.unwrap_or("{}"),
                header: whole(inputs.header.as_ref())?,
                can_ask: inputs.can_ask,
                has_roa_envelope: inputs.has_roa_envelope,
                tool_fault: inputs.tool_fault.as_ref(),
                state: inputs.state.as_ref(),
            };
            again.call(&said, &called, Some(&stored.record.id.to_string()))
        }
    })
}

fn compare(
    stored: &Stored,
    tool: Option<String>,
    at: Timestamp,
    (then, advised_then): (Decided, Option<Decided>),
    now: Result<Now, NotAgain>,
) -> Compared {
    let advised_now = match &now {
        Ok(Now::Ruled(ruling)) => ruling.advised.as_ref().map(Decided::advised),
        _ => None,
    };
    let (now, note) = match now {
        Err(why) => (None, Some(format!("it cannot be decided again: {}", why.words()))),
        Ok(now) => told(now),
    };
    let differs = now.as_ref().is_some_and(|now| *now != then || advised_now != advised_then);
    Compared {
        seq: stored.record.seq,
        at: at.to_string(),
        kind: stored.record.kind.as_str(),
        tool,
        then,
        now,
        advised_then,
        advised_now,
        note,
        approval: None,
        differs,
    }
}

/// Returns the decision, and a remark for [`Compared::note`].
fn told(now: Now) -> (Option<Decided>, Option<String>) {
    match now {
        Now::Ruled(ruling) => {
            let reason = ruling.reason.as_ref();
            (Some(Decided::of(ruling.verdict.verdict.as_str(), reason.map(Reason::to_string))), None)
        }
        Now::Waits => (None, Some("it would wait for the cost of another call (V-12)".to_owned())),
        Now::Asks(question) => {
            (Some(Decided::of("clarify", None)), Some(format!("a person is asked: {question}")))
        }
        Now::NoRoute => (None, Some("it cannot be decided again: there is no such route".to_owned())),
    }
}

fn outcome(again: &mut Again, stored: &Stored) -> Result<(), AgainError> {
    let annex = Annex::of(stored)?;
    let status = match payload(stored)?["status"].as_str() {
        Some("executed") => Status::Executed,
        Some("errored") => Status::Errored,
        Some("refused") => Status::Refused,
        _ => Status::Unknown,
    };
    // A cost that was cut in the annex is longer than any valid one.
    let [tool, cost] = [&annex.tool, &annex.cost].map(|text| whole(text.as_ref()).ok().flatten());
    if let Some(decision) = &annex.decision {
        again.settle(decision, status, tool.unwrap_or_default(), cost);
    }
    Ok(())
}

/// Returns the record, as the log has it.
fn payload(stored: &Stored) -> Result<Value, AgainError> {
    let bad = |why: &str| AgainError::Record { seq: stored.record.seq, why: why.to_owned() };
    let statement = scitt::SignedStatement::parse(stored.record.statement.clone())
        .map_err(|error| bad(&error.to_string()))?;
    let payload = statement.payload().and_then(|payload| jose::json::read_bytes(payload).ok());
    payload.ok_or_else(|| bad("its statement holds no record"))
}

/// Returns the recorded decision of the rules, if the posture `advisory` let the call through.
fn advised_then(stored: &Stored) -> Result<Option<Decided>, AgainError> {
    let payload = payload(stored)?;
    let text = |member: &str| payload["advised"][member].as_str().map(str::to_owned);
    Ok(text("verdict").map(|verdict| Decided::of(&verdict, text("reason"))))
}

/// Returns the recorded decision, from the Verdict as it was returned.
fn recorded(stored: &Stored) -> Result<(Decided, Option<VerdictKind>), AgainError> {
    let bad = |why: &str| AgainError::Record { seq: stored.record.seq, why: why.to_owned() };
    let bytes = stored.record.verdict.as_ref().ok_or_else(|| bad("it has no Verdict"))?;
    let verdict: Value = jose::json::read_bytes(bytes).map_err(|error| bad(&error.to_string()))?;
    let kind =
        verdict.get("verdict").and_then(Value::as_str).ok_or_else(|| bad("its Verdict says nothing"))?;
    let reason = verdict.pointer("/verification/reason").and_then(Value::as_str).map(str::to_owned);
    let known = serde_json::from_value(Value::from(kind)).ok();
    Ok((Decided::of(kind, reason), known))
}

impl Decided {
    /// The decision of the rules.
    pub(super) fn advised(advised: &Advised) -> Self {
        Self::of(advised.verdict.as_str(), advised.reason.as_ref().map(Reason::to_string))
    }

    /// A verdict and its reason, with the reason in words.
    #[must_use]
    pub fn of(verdict: &str, reason: Option<String>) -> Self {
        let known = reason.as_deref().and_then(|code| Reason::from_str(code).ok());
        let because = known.as_ref().map(|reason| admission::explain::explain(reason).what);
        Self { verdict: verdict.to_owned(), reason, because }
    }
}
