//! Encoding of records (section 14): decisions and outcomes as canonical JSON (JCS) for the log, of type
//! `application/vap-audit+json`.
//!
//! Names, verdicts, codes, meters and times are in clear. Texts of the caller are only committed to; a commitment can
//! be opened with the key of that one record (reading V-40). The [`RecordKey`] is the HMAC of the record's number under
//! the stream's secret.
//!
//! Not here: the signed statement around the bytes, and their storage (the gateway).

mod commitments;

use std::collections::BTreeMap;

use jiff::Timestamp;
use serde_json::{Map, Value, json};

pub use commitments::{RecordKey, StreamKey};

use crate::approval::Decision;
use crate::clarify::Answer;
use crate::decide::{About, Advised, Confirmation, Ruling, Status};
use crate::digest::Canon;
use crate::invocation::AiInvocation;
use crate::limits::{MAX_NAME, RECORDED_TOOLS};
use crate::reason::Reason;
use crate::session::Meters;
use crate::tool::Difference;
use crate::verdict::Binding;

/// The content type of a record.
pub const CONTENT_TYPE: &str = "application/vap-audit+json";

/// The position of a record: gateway, stream, sequence number and time.
#[derive(Clone, Copy, Debug)]
pub struct Place<'a> {
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
pub struct Came<'a> {
    /// The entry id of the decision's record: 64 lower-case hexadecimal digits.
    pub decision: &'a str,
    /// The status of the call.
    pub status: Status,
    /// The settled cost of the call.
    pub settled: &'a Meters,
    /// The result without `_meta` (reading V-39); `None` if there is none.
    pub result: Option<&'a Canon>,
}

/// Encodes the record of a decision about a commitment, an amendment or a call. `binding` has the members of the
/// Verdict's signature.
#[must_use]
pub fn decided(place: &Place<'_>, ruling: &Ruling, binding: Option<&Binding>) -> Vec<u8> {
    let key = place.record_key();
    let mut record = place.common(match ruling.about {
        About::Commitment => "commitment",
        About::Amendment => "amendment",
        About::Call => "decision",
    });
    record.insert("verdict".into(), ruling.verdict.verdict.as_str().into());
    record.insert("verification".into(), json!(ruling.verdict.verification));
    record.insert("policy_digest".into(), ruling.policy_digest.as_str().into());
    record.insert("meters".into(), meters(&ruling.meters));
    record.insert("committed".into(), committed(&key, ruling));
    let named = [
        ("agent_id", &ruling.agent_id),
        ("tool", &ruling.tool),
        ("asserted_client", &ruling.asserted_client),
    ];
    for (name, text) in named {
        if let Some(text) = text.as_deref().filter(|text| is_name(text)) {
            record.insert(name.into(), text.into());
        }
    }
    if record.contains_key("agent_id") {
        record.insert("agent_proven_by".into(), ruling.proven_by.as_str().into());
    }
    if let Some(advised) = &ruling.advised {
        record.insert("advised".into(), advised_of(advised));
    }
    if let Some(confirmation) = ruling.confirmation.as_ref().and_then(confirmation_of) {
        record.insert("confirmation".into(), confirmation);
    }
    if let Some(Binding { iat, jti, req }) = binding {
        let mut bound = json!({ "iat": iat, "jti": jti });
        if let Some(req) = req {
            bound["req"] = key.commit("req", &text(req.as_str())).into();
        }
        record.insert("binding".into(), bound);
    }
    finish(record, ruling.canon_raw)
}

/// Encodes the record of a call's outcome, with the decision's entry id as `backLink`.
#[must_use]
pub fn outcome(place: &Place<'_>, came: &Came<'_>) -> Vec<u8> {
    let key = place.record_key();
    let mut record = place.common("outcome");
    record.insert("backLink".into(), came.decision.into());
    record.insert("status".into(), came.status.as_str().into());
    record.insert("settled".into(), meters(came.settled));
    if let Some(result) = came.result {
        record.insert("committed".into(), json!({ "result": key.commit("result", &result.bytes) }));
    }
    finish(record, came.result.is_some_and(|result| result.raw))
}

/// Encodes the record of denials without a record of their own: their number by reason since a time.
#[must_use]
pub fn denials(place: &Place<'_>, since: Timestamp, denied: &BTreeMap<Reason, u64>) -> Vec<u8> {
    let mut record = place.common("denials");
    let counts = denied.iter().map(|(reason, count)| (reason.to_string(), Value::from(*count)));
    record.insert("since".into(), time(since).into());
    record.insert("denied".into(), counts.collect::<Map<_, _>>().into());
    finish(record, false)
}

/// The event in a record about tools of a route.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ToolEvent {
    /// The tools' descriptions differ from their pins.
    Changed,
    /// An operator approved the tools' descriptions.
    Approved,
}

impl ToolEvent {
    /// Returns the name used in the record.
    #[must_use]
    pub const fn as_str(self) -> &'static str {
        match self {
            ToolEvent::Changed => "changed",
            ToolEvent::Approved => "approved",
        }
    }
}

/// Encodes the record of tools that changed or were approved. It has digests only, since the descriptions belong to the
/// tools' server. At most [`RECORDED_TOOLS`] are named; `more` counts the others.
#[must_use]
pub fn tools(place: &Place<'_>, route: &str, event: ToolEvent, tools: &[Difference]) -> Vec<u8> {
    let mut record = place.common("tools");
    let listed = tools.iter().take(RECORDED_TOOLS).map(|Difference { tool, was, is }| {
        let mut said = json!({ "is": is });
        if let Some(was) = was {
            said["was"] = was.as_str().into();
        }
        if is_name(tool) {
            said["tool"] = tool.as_str().into();
        }
        said
    });
    record.insert("route".into(), route.into());
    record.insert("event".into(), event.as_str().into());
    record.insert("tools".into(), listed.collect::<Vec<_>>().into());
    if let Some(more) = tools.len().checked_sub(RECORDED_TOOLS).filter(|more| *more > 0) {
        record.insert("more".into(), more.into());
    }
    finish(record, false)
}

/// Encodes the record that ends a stream.
#[must_use]
pub fn closed(place: &Place<'_>) -> Vec<u8> {
    finish(place.common("closed"), false)
}

/// Returns the annex of a decision for the local audit store, in clear: the texts of the message, the client's
/// `aiInvocation` (reading S-4) and flags.
#[must_use]
pub fn annex(ruling: &Ruling, aside: Option<&AiInvocation>) -> Value {
    let said = &ruling.said;
    let bytes =
        |bytes: &Option<Vec<u8>>| bytes.as_ref().map(|bytes| String::from_utf8_lossy(bytes).into_owned());
    json!({
        "session_id": ruling.verdict.session_id,
        "goal": said.goal,
        "rationale": said.rationale,
        "expected_effect": said.expected_effect,
        "arguments": bytes(&said.arguments),
        "effective_commitment": bytes(&said.effective_commitment),
        "principal": bytes(&said.principal),
        "req": ruling.req,
        "aiInvocation": aside.map(AiInvocation::assertion),
        "reason": ruling.reason,
        "flags": ruling.flags.iter().map(|flag| flag.as_str()).collect::<Vec<_>>(),
    })
}

impl Place<'_> {
    /// Derives the key that opens only this record; the caller receives it.
    #[must_use]
    pub fn record_key(&self) -> RecordKey {
        self.key.record(self.seq)
    }

    fn common(&self, kind: &str) -> Map<String, Value> {
        let at = time(self.at);
        let members = [
            ("version", Value::from("1")),
            ("kind", kind.into()),
            ("gateway", self.gateway.into()),
            ("stream", self.stream.into()),
            ("seq", self.seq.into()),
            ("at", at.into()),
        ];
        members.into_iter().map(|(name, value)| (name.to_owned(), value)).collect()
    }
}

fn committed(key: &RecordKey, ruling: &Ruling) -> Value {
    let said = &ruling.said;
    let words = |words: &Option<String>| words.as_deref().map(text);
    let members = [
        ("goal", words(&said.goal)),
        ("rationale", words(&said.rationale)),
        ("expected_effect", words(&said.expected_effect)),
        ("arguments", said.arguments.clone()),
        ("effective_commitment", said.effective_commitment.clone()),
        ("principal", said.principal.clone()),
        ("verdict", Some(ruling.verdict.to_record())),
    ];
    let commit = |(name, bytes): (&str, Option<Vec<u8>>)| {
        Some((name.to_owned(), Value::from(key.commit(name, &bytes?))))
    };
    members.into_iter().filter_map(commit).collect::<Map<_, _>>().into()
}

fn advised_of(advised: &Advised) -> Value {
    let mut told = json!({ "verdict": advised.verdict.as_str() });
    if let Some(reason) = &advised.reason {
        told["reason"] = reason.as_str().into();
    }
    told
}

/// Returns the answer to a question and its author. For the client, the record has `by` = `client`, since nothing
/// proves its user's answer.
fn confirmation_of(confirmation: &Confirmation) -> Option<Value> {
    Some(match confirmation {
        Confirmation::Client(Answer::Unanswered) => return None,
        Confirmation::Client(answer) => {
            let is_yes = *answer == Answer::Confirmed;
            json!({ "by": "client", "answer": if is_yes { "confirmed" } else { "declined" } })
        }
        Confirmation::Approver { approver, kid, question, decision, approval } => json!({
            "by": "approver",
            "answer": if *decision == Decision::Approve { "confirmed" } else { "declined" },
            "approver": approver,
            "kid": kid,
            "question": question,
            "approval": approval,
        }),
    })
}

fn time(at: Timestamp) -> String {
    at.strftime("%Y-%m-%dT%H:%M:%SZ").to_string()
}

fn text(text: &str) -> Vec<u8> {
    jose::jcs::canonical(&text.into())
}

fn meters(meters: &Meters) -> Value {
    let named = meters.iter().filter(|(meter, _)| is_name(meter));
    named.map(|(meter, amount)| (meter.to_owned(), amount.to_string().into())).collect::<Map<_, _>>().into()
}

fn finish(mut record: Map<String, Value>, raw: bool) -> Vec<u8> {
    if raw {
        record.insert("canon".into(), "raw".into());
    }
    jose::jcs::canonical(&record.into())
}

/// Returns `true` if a text can be a name in a record: 1 to [`MAX_NAME`] characters, no control characters.
#[must_use]
pub(crate) fn is_name(text: &str) -> bool {
    !text.is_empty() && text.chars().nth(MAX_NAME).is_none() && !text.chars().any(char::is_control)
}
