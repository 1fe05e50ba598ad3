//! What was decided and what came of it, as the bytes that go to the log (section 14): JCS of a closed object,
//! `application/vap-audit+json`.
//!
//! In clear are names, verdicts, codes, meters and times. What a caller said is committed to, and opened only by whoever is
//! given the key of that one record (reading V-40): a [`RecordKey`] is the HMAC of the stream's secret over the record's number.
//!
//! Not here: the signed statement around the bytes, and where they are kept (the gateway's desk).

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

/// Where a record stands.
#[derive(Clone, Copy, Debug)]
pub struct Place<'a> {
    /// Whose record it is: `iss` of its statement.
    pub gateway: &'a str,
    /// Its stream: `sub` of its statement.
    pub stream: &'a str,
    /// Its number in the stream.
    pub seq: u64,
    /// When it was made.
    pub at: Timestamp,
    /// The secret of the stream.
    pub key: &'a StreamKey,
}

/// What came of a decision, for its record.
#[derive(Clone, Copy, Debug)]
pub struct Came<'a> {
    /// The entry id of the decision: 64 lower-case hexadecimal digits.
    pub decision: &'a str,
    /// How the call ended.
    pub status: Status,
    /// What it cost.
    pub settled: &'a Meters,
    /// The result without `_meta` (reading V-39), if there is one.
    pub result: Option<&'a Canon>,
}

/// The record of a decision about a commitment, an amendment or a call. `binding` is what the Verdict's signature says.
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

/// The record of what came of a decision.
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

/// The record of messages that were denied without a record of their own, since some time and for these reasons.
#[must_use]
pub fn denials(place: &Place<'_>, since: Timestamp, denied: &BTreeMap<Reason, u64>) -> Vec<u8> {
    let mut record = place.common("denials");
    let counts = denied.iter().map(|(reason, count)| (reason.to_string(), Value::from(*count)));
    record.insert("since".into(), time(since).into());
    record.insert("denied".into(), counts.collect::<Map<_, _>>().into());
    finish(record, false)
}

/// What happened to tools of a route.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ToolEvent {
    /// Their server says something else of them than what is pinned.
    Changed,
    /// An operator approved them.
    Approved,
}

impl ToolEvent {
    /// The record's word.
    #[must_use]
    pub const fn as_str(self) -> &'static str {
        match self {
            ToolEvent::Changed => "changed",
            ToolEvent::Approved => "approved",
        }
    }
}

/// The record of tools that changed, or were approved: by their digests, for what they say is their server's.
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

/// The record that ends a stream.
#[must_use]
pub fn closed(place: &Place<'_>) -> Vec<u8> {
    finish(place.common("closed"), false)
}

/// What the local store keeps in clear beside a decision: what was said, what the client asserts about itself (reading S-4), and
/// what is odd about it.
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
    /// The key that opens this record and no other: its caller is given it.
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

/// Who answered, and what. What a client says is its own word for it: the record says so.
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

/// Whether a text can be a name in a record.
#[must_use]
pub(crate) fn is_name(text: &str) -> bool {
    !text.is_empty() && text.chars().nth(MAX_NAME).is_none() && !text.chars().any(char::is_control)
}
