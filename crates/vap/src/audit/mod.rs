//! Audit records of a gateway (section 14), `application/vap-audit+json`: canonical JSON (JCS) of a closed object,
//! which is the payload of a statement on the log.
//!
//! Every kind has `version`, `kind`, `gateway`, `stream`, `seq` and `at`. Commitments, amendments and decisions add the
//! verdict and how it was reached; an outcome adds the result of a decision; `closed` ends a stream.
//!
//! Names, verdicts, codes, meters and times are in clear. Texts of the caller are only committed to; a commitment can
//! be opened with the key of that one record (reading V-40, [`record_key`](crate::record_key)).
//!
//! Not here: the signed statement around the bytes, and the rules that involve the log (`registration`).

mod read;
mod rule;

use std::collections::BTreeMap;

use jiff::Timestamp;
use jose::BrokenRule;
use merkle::EntryDigest;
use serde::{Serialize, Serializer};
use serde_json::Value;

pub use self::rule::AuditRule;
use crate::message::UNBOUND;
use crate::verdict::{VerdictKind, Verification};
use crate::word::words;

/// The content type of a gateway's audit record.
pub const VAP_AUDIT: &str = "application/vap-audit+json";

/// An audit record that keeps every rule that does not depend on a policy or the log.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct AuditRecord {
    /// The gateway that made the record: `iss` of its statement.
    pub gateway: String,
    /// The stream of the record: a session, or `unbound:` and an instance. `sub` of its statement.
    pub stream: String,
    /// The number of the record in its stream, from 0.
    pub seq: u64,
    /// The time of the record in Unix seconds.
    #[serde(serialize_with = "write_time")]
    pub at: u64,
    /// The recorded event.
    #[serde(flatten)]
    pub kind: AuditKind,
}

/// The event of an audit record.
#[derive(Clone, Debug, PartialEq, Serialize)]
#[serde(tag = "kind", rename_all = "lowercase")]
pub enum AuditKind {
    /// The verdict on a scope commitment.
    Commitment(Box<Decided>),
    /// The verdict on a scope amendment.
    Amendment(Box<Decided>),
    /// The verdict on a tool call.
    Decision(Box<Decided>),
    /// The outcome of a decision.
    Outcome(Outcome),
    /// Denied messages without records of their own.
    Denials(Denials),
    /// Changed or approved tools of a route.
    Tools(Tools),
    /// The end of the stream.
    Closed,
}

/// The verdict on a message, with its circumstances.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Decided {
    /// The verdict of the gateway.
    pub verdict: VerdictKind,
    /// The checks behind the verdict.
    pub verification: Verification<String>,
    /// The digest of the rules: `sha256:` and hexadecimal digits.
    pub policy_digest: String,
    /// The amounts of the session's meters, as decimals.
    pub meters: BTreeMap<String, String>,
    /// The commitments to texts, by the name of the text.
    pub committed: BTreeMap<String, String>,
    /// The values of the Verdict's signature that bind it to the message.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub binding: Option<RecordedBinding>,
    /// The name of the called tool.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub tool: Option<String>,
    /// The agent's identifier.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub agent_id: Option<String>,
    /// The proof of the agent's identifier; `asserted` means there was none.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub agent_proven_by: Option<String>,
    /// The client software's own name, which is not verified.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub asserted_client: Option<String>,
    /// The identifier of the AgentROA receipt for the same call.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub aer_id: Option<String>,
    /// The verdict under the operator's rules, if they were not enforced and the call was forwarded.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub advised: Option<AdvisedVerdict>,
    /// The answer to a question about the message, if one was asked.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub confirmation: Option<RecordedAnswer>,
    /// `Some(Raw)` if a digest or a commitment is over a text as received (reading V-22).
    #[serde(skip_serializing_if = "Option::is_none")]
    pub canon: Option<CanonForm>,
}

/// The members of a Verdict's JWS header that bind it to its message (reading V-25).
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize)]
pub struct RecordedBinding {
    /// The signing time in Unix seconds.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub iat: Option<u64>,
    /// The unique identifier of the Verdict.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub jti: Option<String>,
    /// The commitment to the digest of the message.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub req: Option<String>,
}

words! {
    /// The form of a text in digests and commitments, where it is not canonical JSON.
    pub enum CanonForm {
        /// The text as received.
        Raw = "raw",
    }
}

words! {
    /// The answer to a question about a call or another message.
    pub enum AnswerWord {
        /// The message is confirmed.
        Confirmed = "confirmed",
        /// The message is not confirmed.
        Declined = "declined",
    }
}

/// An answer to a question about a message, with its author.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
#[serde(tag = "by", rename_all = "lowercase")]
pub enum RecordedAnswer {
    /// The client reports its user's answer; nothing proves it.
    Client {
        /// The answer.
        answer: AnswerWord,
    },
    /// An approver signed the answer.
    Approver {
        /// The answer.
        answer: AnswerWord,
        /// The approver's name.
        approver: String,
        /// The `kid` of the approver's key.
        kid: String,
        /// The id of the question.
        question: String,
        /// The digest of the signed approval.
        approval: String,
    },
}

/// The verdict that the operator's rules would have given if they were enforced.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct AdvisedVerdict {
    /// The verdict under the rules.
    pub verdict: VerdictKind,
    /// The reason for any other verdict than `served`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub reason: Option<String>,
}

/// The outcome of a decision.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Outcome {
    /// The entry ID of the decision.
    #[serde(rename = "backLink", serialize_with = "write_digest")]
    pub decision: EntryDigest,
    /// The status of the call.
    pub status: CallStatus,
    /// The settled cost of the call, by meter.
    pub settled: BTreeMap<String, String>,
    /// The commitment to the result.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub committed: Option<BTreeMap<String, String>>,
    /// `Some(Raw)` if the commitment is over a text as received (reading V-22).
    #[serde(skip_serializing_if = "Option::is_none")]
    pub canon: Option<CanonForm>,
}

/// The number of messages that were denied without records of their own: under load, or from unauthenticated callers.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Denials {
    /// The start of the period in Unix seconds; it ends at the record's own time.
    #[serde(serialize_with = "write_time")]
    pub since: u64,
    /// The number of denied messages for each reason.
    pub denied: BTreeMap<String, u64>,
}

/// Tools of a route whose server changed their definition, or that an operator approved.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Tools {
    /// The route whose server offers the tools.
    pub route: String,
    /// The event that concerns the tools.
    pub event: ToolEvent,
    /// The tools, at most [`RECORDED_TOOLS`](crate::limits::RECORDED_TOOLS).
    pub tools: Vec<RecordedTool>,
    /// The number of further tools.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub more: Option<u64>,
}

/// A tool with the digests of its definition.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct RecordedTool {
    /// The name of the tool, if it is valid in a record.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub tool: Option<String>,
    /// The digest of the definition before.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub was: Option<String>,
    /// The digest of the definition.
    pub is: String,
}

words! {
    /// An event that concerns tools.
    pub enum ToolEvent {
        /// The descriptions differ from their pins.
        Changed = "changed",
        /// An operator approved the descriptions.
        Approved = "approved",
    }
}

words! {
    /// The status of a call.
    pub enum CallStatus {
        /// The call was executed.
        Executed = "executed",
        /// The call was executed and failed.
        Errored = "errored",
        /// The call was not forwarded.
        Refused = "refused",
        /// The outcome could not be determined.
        Unknown = "unknown",
    }
}

impl AuditKind {
    /// Returns the value of `kind`.
    pub const fn as_str(&self) -> &'static str {
        match self {
            AuditKind::Commitment(_) => "commitment",
            AuditKind::Amendment(_) => "amendment",
            AuditKind::Decision(_) => "decision",
            AuditKind::Outcome(_) => "outcome",
            AuditKind::Denials(_) => "denials",
            AuditKind::Tools(_) => "tools",
            AuditKind::Closed => "closed",
        }
    }

    /// Returns the verdict of a commitment, amendment or decision; `None` for other kinds.
    pub fn decided(&self) -> Option<&Decided> {
        match self {
            AuditKind::Commitment(decided) | AuditKind::Amendment(decided) | AuditKind::Decision(decided) => {
                Some(decided)
            }
            AuditKind::Outcome(_) | AuditKind::Denials(_) | AuditKind::Tools(_) | AuditKind::Closed => None,
        }
    }
}

impl RecordedAnswer {
    /// Returns the answer.
    pub const fn answer(&self) -> AnswerWord {
        match self {
            RecordedAnswer::Client { answer } | RecordedAnswer::Approver { answer, .. } => *answer,
        }
    }

    /// Returns the approver's name; `None` for an answer of the client.
    pub fn approver(&self) -> Option<&str> {
        match self {
            RecordedAnswer::Client { .. } => None,
            RecordedAnswer::Approver { approver, .. } => Some(approver),
        }
    }
}

impl Tools {
    /// Returns the number of tools, including those that are not listed.
    pub fn count(&self) -> u64 {
        u64::try_from(self.tools.len()).unwrap_or(u64::MAX).saturating_add(self.more.unwrap_or(0))
    }
}

impl AuditRecord {
    /// Parses a payload.
    ///
    /// # Errors
    /// [`BrokenRule`] with the name of an [`AuditRule`].
    pub fn read(payload: &[u8]) -> Result<AuditRecord, BrokenRule> {
        AuditRecord::read_with_document(payload).map(|(record, _)| record)
    }

    /// Parses a payload, and returns the record with its JSON.
    ///
    /// # Errors
    /// [`BrokenRule`] with the name of an [`AuditRule`].
    pub fn read_with_document(payload: &[u8]) -> Result<(AuditRecord, Value), BrokenRule> {
        read::record(payload)
    }

    /// Encodes the record as canonical JSON.
    pub fn to_bytes(&self) -> Vec<u8> {
        let mut record = serde_json::json!(self);
        record["version"] = read::VERSION.into();
        jose::jcs::canonical(&record)
    }

    /// Returns the session's identifier; `None` for a stream outside of any session.
    pub fn session(&self) -> Option<&str> {
        Some(self.stream.as_str()).filter(|stream| !stream.starts_with(UNBOUND))
    }
}

fn write_time<S: Serializer>(seconds: &u64, serializer: S) -> Result<S::Ok, S::Error> {
    let at = i64::try_from(*seconds).ok().and_then(|seconds| Timestamp::from_second(seconds).ok());
    serializer.collect_str(&at.unwrap_or(Timestamp::MAX).strftime("%Y-%m-%dT%H:%M:%SZ"))
}

fn write_digest<S: Serializer>(digest: &EntryDigest, serializer: S) -> Result<S::Ok, S::Error> {
    serializer.collect_str(digest)
}
