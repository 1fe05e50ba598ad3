//! Parsed audit records of a gateway: canonical JSON (JCS) of a closed object.
//!
//! Every kind has `version`, `kind`, `gateway`, `stream`, `seq` and `at`. Commitments, amendments and decisions add the
//! verdict and how it was reached; an outcome adds the result of a decision; `closed` ends a stream.

use std::collections::BTreeMap;

use merkle::EntryDigest;
use serde_json::Value;

use super::audit_read::{at, claim, kind, sequence, stream, top};
use super::audit_rule::AuditRule;
use super::members::{JsonRules, strict};
use super::verdict::Served;
use crate::facts::Facts;
use crate::lookups::{LookupKind, Lookups};
use crate::violation::{Violation, quote};

/// The prefix of streams outside of any session.
pub(super) const UNBOUND: &str = "unbound:";

/// An audit record that keeps every rule that does not depend on a policy.
#[derive(Clone, Debug, PartialEq)]
pub struct AuditRecord {
    /// The gateway that made the record, equal to `iss`.
    pub gateway: String,
    /// The stream of the record: a session, or `unbound:` and an instance. Equal to `sub`.
    pub stream: String,
    /// The number of the record in its stream, from 0.
    pub seq: u64,
    /// The time of the record in Unix seconds.
    pub at: u64,
    /// The recorded event.
    pub kind: AuditKind,
    document: Value,
}

/// The event of an audit record.
#[derive(Clone, Debug, PartialEq)]
pub enum AuditKind {
    /// The verdict on a scope commitment.
    Commitment(Decided),
    /// The verdict on a scope amendment.
    Amendment(Decided),
    /// The verdict on a tool call.
    Decision(Decided),
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
#[derive(Clone, Debug, PartialEq)]
pub struct Decided {
    /// The verdict of the gateway.
    pub verdict: Served,
    /// The name of the called tool.
    pub tool: Option<String>,
    /// The agent's identifier.
    pub agent_id: Option<String>,
    /// The proof of the agent's identifier; `asserted` means there was none.
    pub agent_proven_by: Option<String>,
    /// The client software's own name, which is not verified.
    pub asserted_client: Option<String>,
    /// The identifier of the AgentROA receipt for the same call.
    pub aer_id: Option<String>,
    /// The verdict under the operator's rules, if they were not enforced and the call was forwarded.
    pub advised: Option<Advised>,
    /// The answer to a question about the message, if one was asked.
    pub confirmation: Option<Confirmation>,
}

/// The answer to a question about a call or another message.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Confirmation {
    /// True if the answer confirms the message.
    pub is_confirmed: bool,
    /// The approver who signed the answer; `None` if the client asserted it.
    pub approver: Option<String>,
}

/// The verdict that the operator's rules would have given if they were enforced.
#[derive(Clone, Debug, PartialEq)]
pub struct Advised {
    /// The verdict under the rules.
    pub verdict: Served,
    /// The reason for any other verdict than `served`.
    pub reason: Option<String>,
}

/// The outcome of a decision.
#[derive(Clone, Debug, PartialEq)]
pub struct Outcome {
    /// The entry ID of the decision.
    pub decision: EntryDigest,
    /// The status of the call.
    pub status: Status,
}

/// The number of messages that were denied without records of their own: under load, or from unauthenticated callers.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Denials {
    /// The start of the period in Unix seconds; it ends at the record's own time.
    pub since: u64,
    /// The number of denied messages for each reason.
    pub denied: BTreeMap<String, u64>,
}

/// Tools of a route whose server changed their definition, or that an operator approved.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Tools {
    /// The route whose server offers the tools.
    pub route: String,
    /// The event that concerns the tools.
    pub event: ToolEvent,
    /// The names of the tools, if they are valid in a record.
    pub tools: Vec<String>,
    /// The number of tools, including those without a valid name.
    pub count: u64,
}

/// An event that concerns tools.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ToolEvent {
    /// The server changed the definition.
    Changed,
    /// An operator approved the definition.
    Approved,
}

impl ToolEvent {
    /// All events.
    pub const ALL: [ToolEvent; 2] = [ToolEvent::Changed, ToolEvent::Approved];

    /// The value of `event`.
    pub const fn as_str(self) -> &'static str {
        match self {
            ToolEvent::Changed => "changed",
            ToolEvent::Approved => "approved",
        }
    }
}

/// The status of a call.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Status {
    /// The call was executed.
    Executed,
    /// The call was executed and failed.
    Errored,
    /// The call was not forwarded.
    Refused,
    /// The outcome could not be determined.
    Unknown,
}

impl Status {
    /// All statuses.
    pub const ALL: [Status; 4] = [Status::Executed, Status::Errored, Status::Refused, Status::Unknown];

    /// The value of `status`.
    pub const fn as_str(self) -> &'static str {
        match self {
            Status::Executed => "executed",
            Status::Errored => "errored",
            Status::Refused => "refused",
            Status::Unknown => "unknown",
        }
    }
}

impl AuditKind {
    /// The value of `kind`.
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

    /// The verdict of a commitment, amendment or decision; `None` for other kinds.
    pub const fn decided(&self) -> Option<&Decided> {
        match self {
            AuditKind::Commitment(decided) | AuditKind::Amendment(decided) | AuditKind::Decision(decided) => {
                Some(decided)
            }
            AuditKind::Outcome(_) | AuditKind::Denials(_) | AuditKind::Tools(_) | AuditKind::Closed => None,
        }
    }
}

const JSON: JsonRules = JsonRules {
    json: |at, detail| AuditRule::Json.in_payload(at, detail),
    duplicate_member: |at, detail| AuditRule::DuplicateMember.in_payload(at, detail),
    lone_surrogate: |at, detail| AuditRule::LoneSurrogate.in_payload(at, detail),
};

impl AuditRecord {
    /// Parses a payload. [`agrees`](Self::agrees) compares it with the statement's claims.
    pub fn read(payload: &[u8]) -> Result<AuditRecord, Violation> {
        let (_, document) = strict(payload, &JSON)?;
        if jose::jcs::canonical(&document) != payload {
            let detail = "the JSON is not in its canonical form (RFC 8785)";
            return Err(AuditRule::Canonical.in_payload("", detail));
        }
        let top = top(&document)?;
        let kind = kind(&top)?;
        let record = AuditRecord {
            gateway: claim(&top, "gateway")?,
            stream: stream(&top)?,
            seq: sequence(&top)?,
            at: at(&top)?,
            kind,
            document,
        };
        Ok(record)
    }

    /// Checks that the record agrees with the statement's claims (reading A-2).
    pub fn agrees(&self, iss: &str, sub: &str) -> Result<(), Violation> {
        if self.gateway != iss {
            let detail = format!("found {}, needed the issuer {}", quote(&self.gateway), quote(iss));
            return Err(AuditRule::Gateway.in_payload("/gateway", detail));
        }
        match self.stream == sub {
            true => Ok(()),
            false => {
                let detail = format!("found {}, needed the subject {}", quote(&self.stream), quote(sub));
                Err(AuditRule::Stream.in_payload("/stream", detail))
            }
        }
    }

    /// The session's identifier; `None` for a stream outside of any session.
    pub fn session(&self) -> Option<&str> {
        Some(self.stream.as_str()).filter(|stream| !stream.starts_with(UNBOUND))
    }

    pub(crate) fn state(&self, facts: &mut Facts) {
        facts.text("kind", self.kind.as_str());
        facts.put("seq", self.seq.into());
        facts.put("at", self.at.into());
        match &self.kind {
            AuditKind::Outcome(outcome) => {
                facts.text("decision", &outcome.decision.to_string());
                facts.text("status", outcome.status.as_str());
            }
            AuditKind::Denials(denials) => {
                facts.put("since", denials.since.into());
                facts.put("denied", denials.denied.values().sum::<u64>().into());
            }
            AuditKind::Tools(tools) => {
                facts.text("route", &tools.route);
                facts.text("event", tools.event.as_str());
                facts.put("tools", tools.count.into());
            }
            AuditKind::Closed => {}
            AuditKind::Commitment(decided) | AuditKind::Amendment(decided) | AuditKind::Decision(decided) => {
                facts.text("verdict", decided.verdict.as_str());
                for (name, text) in [
                    ("tool", &decided.tool),
                    ("agent_id", &decided.agent_id),
                    ("agent_proven_by", &decided.agent_proven_by),
                    ("aer_id", &decided.aer_id),
                ] {
                    if let Some(text) = text {
                        facts.text(name, text);
                    }
                }
                if let Some(Confirmation { is_confirmed, approver }) = &decided.confirmation {
                    facts.text("confirmed_by", if approver.is_some() { "approver" } else { "client" });
                    facts.text("confirmation", if *is_confirmed { "confirmed" } else { "declined" });
                    approver.iter().for_each(|approver| facts.text("approver", approver));
                }
                if let Some(Advised { verdict, reason }) = &decided.advised {
                    facts.text("advised_verdict", verdict.as_str());
                    reason.iter().for_each(|reason| facts.text("advised_reason", reason));
                }
            }
        }
    }

    pub(crate) fn lookups(&self, found: &mut Lookups) {
        found.add(LookupKind::Stream, stream_key(&self.gateway, &self.stream));
        if let Some(session) = self.session() {
            found.add(LookupKind::Session, session);
        }
        if let AuditKind::Outcome(outcome) = &self.kind {
            found.add(LookupKind::BackLink, outcome.decision.to_string());
        }
        let Some(decided) = self.kind.decided() else { return };
        found.add(LookupKind::Verdict, decided.verdict.as_str());
        for (kind, text) in [
            (LookupKind::Tool, &decided.tool),
            (LookupKind::Agent, &decided.agent_id),
            (LookupKind::AerId, &decided.aer_id),
        ] {
            if let Some(text) = text {
                found.add(kind, text);
            }
        }
    }

    /// The document that a policy's expressions evaluate.
    pub fn document(&self) -> Value {
        self.document.clone()
    }
}

/// The search value of a stream's records, which differs between all streams of all gateways.
pub fn stream_key(gateway: &str, stream: &str) -> String {
    Value::from(vec![gateway, stream]).to_string()
}

/// Returns the prefix that [`stream_key`] has for all streams of a gateway, and for no stream of another.
pub fn stream_key_prefix(gateway: &str) -> String {
    format!("[{},", Value::from(gateway))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_keys_of_a_gateway_s_streams_and_no_others_begin_alike() {
        for gateway in ["https://gateway.example", "a", "a\"", "a\\", "a\",\"b", "ü\n"] {
            let prefix = stream_key_prefix(gateway);
            for stream in ["", "session-1", "\"", "unbound:1"] {
                assert!(stream_key(gateway, stream).starts_with(&prefix), "{gateway} {stream}");
                assert!(!stream_key(&format!("{gateway}b"), stream).starts_with(&prefix), "{gateway}");
                assert!(!stream_key("", &format!("{gateway}{stream}")).starts_with(&prefix), "{gateway}");
            }
        }
    }

    #[test]
    fn gateway_and_stream_are_whatever_a_claim_can_be() {
        let read = |gateway: &str, stream: &str| {
            let record = serde_json::json!({
                "version": "1", "kind": "closed", "gateway": gateway, "stream": stream, "seq": 0,
                "at": "2026-01-01T00:00:00Z",
            });
            AuditRecord::read(&jose::jcs::canonical(&record)).map_err(|violation| violation.rule.to_string())
        };
        let long = format!("did:jwk:{}", "e".repeat(300));
        assert!(read(&long, "session\twith a tab").unwrap().agrees(&long, "session\twith a tab").is_ok());
        assert_eq!(read("", "s").unwrap_err(), "vap-audit-identifier");
        assert_eq!(read(&"g".repeat(8193), "s").unwrap_err(), "vap-audit-identifier");
    }

    #[test]
    fn no_two_streams_share_a_key() {
        assert_ne!(stream_key("a", "b\",\"c"), stream_key("a\",\"b", "c"));
        assert_eq!(stream_key("https://gw", "s"), r#"["https://gw","s"]"#);
    }
}
