//! Audit records of decisions and outcomes ([`AuditRecord`]): which texts of a ruling a record contains, and which it
//! only commits to (reading V-40).
//!
//! Not here: the format (`vap`), the signed statement around the bytes, and their storage (the gateway).

use std::collections::BTreeMap;

use jiff::Timestamp;
use merkle::EntryDigest;
use vap::audit::{
    AdvisedVerdict, AnswerWord, AuditKind, AuditRecord, CallStatus, CanonForm, Decided, Denials, Outcome,
    RecordedAnswer, RecordedBinding, RecordedTool, ToolEvent, Tools,
};
use vap::digest::{Canon, Digest};
use vap::limits::RECORDED_TOOLS;
use vap::name::is_name;
use vap::reason::Reason;
use vap::record_key::{RecordKey, StreamKey};
use vap::verdict::Binding;

use crate::approval::Decision;
use crate::clarify::HumanAnswer;
use crate::decide::{About, Advised, Confirmation, Ruling};
use crate::invocation::AiInvocation;
use crate::session::Meters;
use crate::tool::Difference;

/// The position of a record: gateway, stream, sequence number and time.
#[derive(Clone, Copy, Debug)]
pub struct RecordPosition<'a> {
    /// The gateway's name: `iss` of the record's statement.
    pub gateway: &'a str,
    /// The name of the stream: `sub` of the record's statement.
    pub stream: &'a str,
    /// The record's sequence number in the stream.
    pub seq: u64,
    /// The time of the record.
    pub at: Timestamp,
    /// The stream's secret.
    pub key: &'a StreamKey,
}

/// The outcome of a call, for its record.
#[derive(Clone, Copy, Debug)]
pub struct OutcomeRecord<'a> {
    /// The entry id of the decision's record.
    pub decision: EntryDigest,
    /// The status of the call.
    pub status: CallStatus,
    /// The settled cost of the call.
    pub settled: &'a Meters,
    /// The result without `_meta` (reading V-39); `None` if there is none.
    pub result: Option<&'a Canon>,
}

/// Encodes the record of a decision about a commitment, an amendment or a call. `binding` has the members of the
/// Verdict's signature, and `invocation` what the client said of itself (S-4).
#[must_use]
pub fn decided(
    position: &RecordPosition<'_>,
    ruling: &Ruling,
    binding: Option<&Binding>,
    invocation: Option<&AiInvocation>,
) -> Vec<u8> {
    let key = position.record_key();
    let named = |text: &Option<String>| text.clone().filter(|text| is_name(text));
    let agent_id = named(&ruling.agent_id);
    let bound = |Binding { iat, jti, req }: &Binding| RecordedBinding {
        iat: Some(*iat),
        jti: Some(jti.clone()),
        req: req.as_ref().map(|req| key.commit("req", &canonical(req.as_str()))),
    };
    let decided = Box::new(Decided {
        verdict: ruling.verdict.verdict,
        verification: ruling.verdict.verification.to_record(),
        policy_digest: ruling.policy_digest.clone(),
        meters: meters(&ruling.meters),
        committed: committed(&key, ruling, invocation),
        binding: binding.map(bound),
        tool: named(&ruling.tool),
        agent_proven_by: agent_id.is_some().then(|| ruling.proven_by.as_str().to_owned()),
        agent_id,
        asserted_client: named(&ruling.asserted_client),
        aer_id: ruling.aer_id.clone(),
        advised: ruling.advised.as_ref().map(advised),
        confirmation: ruling.confirmation.as_ref().and_then(confirmation),
        canon: raw(ruling.canon_raw),
    });
    position.encode(match ruling.about {
        About::Commitment => AuditKind::Commitment(decided),
        About::Amendment => AuditKind::Amendment(decided),
        About::Call => AuditKind::Decision(decided),
    })
}

/// Encodes the record of a call's outcome, with the decision's entry id as `backLink`.
#[must_use]
pub fn outcome(position: &RecordPosition<'_>, outcome: &OutcomeRecord<'_>) -> Vec<u8> {
    let key = position.record_key();
    let committed = |result: &Canon| ("result".to_owned(), key.commit("result", &result.bytes));
    position.encode(AuditKind::Outcome(Outcome {
        decision: outcome.decision,
        status: outcome.status,
        settled: meters(outcome.settled),
        committed: outcome.result.map(|result| BTreeMap::from([committed(result)])),
        canon: raw(outcome.result.is_some_and(|result| result.raw)),
    }))
}

/// Encodes the record of denials without a record of their own: their number by reason since a time.
#[must_use]
pub fn denials(position: &RecordPosition<'_>, since: Timestamp, denied: &BTreeMap<Reason, u64>) -> Vec<u8> {
    let denied = denied.iter().map(|(reason, count)| (reason.to_string(), *count)).collect();
    position.encode(AuditKind::Denials(Denials { since: seconds(since), denied }))
}

/// Encodes the record of tools that changed or were approved. It has digests only, since the descriptions belong to the
/// tools' server. At most [`RECORDED_TOOLS`] are named; `more` counts the others.
#[must_use]
pub fn tools(position: &RecordPosition<'_>, route: &str, event: ToolEvent, tools: &[Difference]) -> Vec<u8> {
    let listed = tools.iter().take(RECORDED_TOOLS).map(|Difference { tool, was, is }| RecordedTool {
        tool: Some(tool.clone()).filter(|tool| is_name(tool)),
        was: was.as_ref().map(Digest::to_string),
        is: is.to_string(),
    });
    let more = tools.len().saturating_sub(RECORDED_TOOLS);
    position.encode(AuditKind::Tools(Tools {
        route: route.to_owned(),
        event,
        tools: listed.collect(),
        more: u64::try_from(more).ok().filter(|more| *more > 0),
    }))
}

/// Encodes the record that ends a stream.
#[must_use]
pub fn closed(position: &RecordPosition<'_>) -> Vec<u8> {
    position.encode(AuditKind::Closed)
}

impl RecordPosition<'_> {
    /// Derives the key that opens only this record; the caller receives it.
    #[must_use]
    pub fn record_key(&self) -> RecordKey {
        self.key.record(self.seq)
    }

    fn encode(&self, kind: AuditKind) -> Vec<u8> {
        let (gateway, stream) = (self.gateway.to_owned(), self.stream.to_owned());
        AuditRecord { gateway, stream, seq: self.seq, at: seconds(self.at), kind }.to_bytes()
    }
}

fn committed(
    key: &RecordKey,
    ruling: &Ruling,
    invocation: Option<&AiInvocation>,
) -> BTreeMap<String, String> {
    let texts = &ruling.texts;
    let text = |text: &Option<String>| text.as_deref().map(canonical);
    let members = [
        ("goal", text(&texts.goal)),
        ("rationale", text(&texts.rationale)),
        ("expected_effect", text(&texts.expected_effect)),
        ("arguments", texts.arguments.clone()),
        ("effective_commitment", texts.effective_commitment.clone()),
        ("principal", texts.principal.clone()),
        ("verdict", Some(ruling.verdict.to_record())),
        ("ai_invocation", invocation.map(|invocation| jose::jcs::canonical(invocation.assertion()))),
    ];
    let commit = |(name, bytes): (&str, Option<Vec<u8>>)| Some((name.to_owned(), key.commit(name, &bytes?)));
    members.into_iter().filter_map(commit).collect()
}

fn advised(advised: &Advised) -> AdvisedVerdict {
    let reason = advised.reason.as_ref().map(Reason::to_string);
    AdvisedVerdict { verdict: advised.verdict, reason }
}

/// Returns the answer to a question and its author. For the client, the record has `by` = `client`, since nothing
/// proves its user's answer.
fn confirmation(confirmation: &Confirmation) -> Option<RecordedAnswer> {
    let answer_word = |is_yes| if is_yes { AnswerWord::Confirmed } else { AnswerWord::Declined };
    Some(match confirmation {
        Confirmation::Client(HumanAnswer::Unanswered) => return None,
        Confirmation::Client(answer) => {
            RecordedAnswer::Client { answer: answer_word(*answer == HumanAnswer::Confirmed) }
        }
        Confirmation::Approver { approver, kid, question, decision, approval } => RecordedAnswer::Approver {
            answer: answer_word(*decision == Decision::Approve),
            approver: approver.clone(),
            kid: kid.clone(),
            question: question.clone(),
            approval: approval.to_string(),
        },
    })
}

fn seconds(at: Timestamp) -> u64 {
    u64::try_from(at.as_second()).unwrap_or(0)
}

fn canonical(text: &str) -> Vec<u8> {
    jose::jcs::canonical(&text.into())
}

fn meters(meters: &Meters) -> BTreeMap<String, String> {
    let named = meters.iter().filter(|(meter, _)| is_name(meter));
    named.map(|(meter, amount)| (meter.to_owned(), amount.to_string())).collect()
}

fn raw(raw: bool) -> Option<CanonForm> {
    raw.then_some(CanonForm::Raw)
}
