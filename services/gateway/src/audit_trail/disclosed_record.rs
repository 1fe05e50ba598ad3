//! A record with its texts, each compared with the record's commitment.

use std::collections::{BTreeMap, BTreeSet};

use jiff::Timestamp;
use merkle::EntryDigest;
use serde::Serialize;
use serde_json::Value;
use vap::audit::{AuditKind, AuditRecord};
use vap::record_key::RecordKey;

use crate::annex::Text;

/// A record of a gateway in clear.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct DisclosedRecord {
    /// The entry ID of the record.
    pub entry_id: String,
    /// The gateway that made the record.
    pub gateway: String,
    /// The stream of the record: the session.
    pub stream: String,
    /// The record's number in the stream.
    pub seq: u64,
    /// The time of the record.
    pub at: Timestamp,
    /// The subject of the record, such as `decision` or `outcome`.
    pub kind: &'static str,
    /// The tool of a call.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub tool: Option<String>,
    /// The verdict of a decision.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub verdict: Option<&'static str>,
    /// The reason for a verdict other than `served`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub reason: Option<String>,
    /// The status of an outcome.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub status: Option<&'static str>,
    /// The entry ID of the decision that an outcome belongs to.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub decision: Option<String>,
    /// The execution receipt of the decision (AgentROA).
    #[serde(skip_serializing_if = "Option::is_none")]
    pub aer_id: Option<String>,
    /// The turn of the conversation, as the client asserts it (SEP-2817).
    #[serde(skip_serializing_if = "Option::is_none")]
    pub turn_id: Option<String>,
    /// What the record commits to, by member.
    pub committed: BTreeMap<String, DisclosedText>,
}

/// A member that a record commits to.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct DisclosedText {
    /// The value, or its beginning if that was kept only.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub value: Option<Value>,
    /// Whether the value is the committed one.
    pub proof: TextProof,
}

/// Whether a text is the one that a record commits to.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum TextProof {
    /// The record commits to exactly this text.
    Proven,
    /// The record commits to another text, or to none.
    Contradicted,
    /// Only a part of the text was kept, which proves nothing.
    Partial,
    /// The text is not in the disclosure.
    Withheld,
}

impl DisclosedRecord {
    /// Compares the texts with the commitments of the record.
    pub(super) fn new(
        entry: EntryDigest,
        record: &AuditRecord,
        key: &RecordKey,
        texts: &BTreeMap<String, Text>,
    ) -> Self {
        let committed = committed(&record.kind, key, texts);
        let decided = record.kind.decided();
        let outcome = match &record.kind {
            AuditKind::Outcome(outcome) => Some(outcome),
            _ => None,
        };
        Self {
            entry_id: entry.to_string(),
            gateway: record.gateway.clone(),
            stream: record.stream.clone(),
            seq: record.seq,
            at: i64::try_from(record.at)
                .ok()
                .and_then(|at| Timestamp::from_second(at).ok())
                .unwrap_or(Timestamp::MAX),
            kind: record.kind.as_str(),
            tool: decided.and_then(|decided| decided.tool.clone()),
            verdict: decided.map(|decided| decided.verdict.as_str()),
            reason: decided.and_then(|decided| decided.verification.reason.clone()),
            status: outcome.map(|outcome| outcome.status.as_str()),
            decision: outcome.map(|outcome| outcome.decision.to_string()),
            aer_id: decided.and_then(|decided| decided.aer_id.clone()),
            turn_id: turn_id(&committed),
            committed,
        }
    }

    /// Returns the members whose text contradicts the record.
    pub fn contradictions(&self) -> impl Iterator<Item = &str> {
        let is_wrong = |opened: &DisclosedText| opened.proof == TextProof::Contradicted;
        self.committed.iter().filter(move |(_, opened)| is_wrong(opened)).map(|(member, _)| member.as_str())
    }
}

fn committed(
    kind: &AuditKind,
    key: &RecordKey,
    texts: &BTreeMap<String, Text>,
) -> BTreeMap<String, DisclosedText> {
    let none = BTreeMap::new();
    let commitments = match kind {
        AuditKind::Outcome(outcome) => outcome.committed.as_ref().unwrap_or(&none),
        kind => kind.decided().map_or(&none, |decided| &decided.committed),
    };
    let members: BTreeSet<&String> = commitments.keys().chain(texts.keys()).collect();
    let opened = |member: &String| match texts.get(member) {
        None => DisclosedText { value: None, proof: TextProof::Withheld },
        Some(text) => opened(member, text, commitments.get(member), key),
    };
    members.into_iter().map(|member| (member.clone(), opened(member))).collect()
}

fn opened(member: &str, text: &Text, commitment: Option<&String>, key: &RecordKey) -> DisclosedText {
    match text {
        Text::Cut(cut) => {
            let proof = commitment.map_or(TextProof::Contradicted, |_| TextProof::Partial);
            DisclosedText { value: Some(cut.beginning.as_str().into()), proof }
        }
        Text::Whole(text) => {
            let is_committed = commitment == Some(&key.commit(member, text.as_bytes()));
            let proof = if is_committed { TextProof::Proven } else { TextProof::Contradicted };
            DisclosedText { value: Some(exact_value(text)), proof }
        }
    }
}

/// Parses a text; one with a number that would be shown rounded remains a text.
fn exact_value(text: &str) -> Value {
    let is_exact = jose::json::check(text.as_bytes(), jose::json::Limits::default())
        .is_ok_and(|checked| checked.first_inexact_number().is_none());
    let parsed = jose::json::parse_text(text).ok().filter(|_| is_exact);
    parsed.unwrap_or_else(|| Value::from(text))
}

/// Returns the `turnId` that the client asserted, if its text is the committed one.
fn turn_id(committed: &BTreeMap<String, DisclosedText>) -> Option<String> {
    let invocation = committed.get("ai_invocation").filter(|opened| opened.proof == TextProof::Proven)?;
    Some(invocation.value.as_ref()?["asserted_by_client"]["turnId"].as_str()?.to_owned())
}
