//! A gateway's audit record as a typed value: JCS of a closed object.
//!
//! Every kind holds `version`, `kind`, `gateway`, `stream`, `seq` and `at`. What was agreed or asked (commitment, amendment,
//! decision) adds the verdict and how it came about; an outcome adds what came of a decision; `closed` ends a stream.

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

/// What begins the name of a stream outside any session.
pub(super) const UNBOUND: &str = "unbound:";

/// An audit record that keeps every rule which no policy can switch.
#[derive(Clone, Debug, PartialEq)]
pub struct AuditRecord {
    /// Whose record it is: equal to `iss`.
    pub gateway: String,
    /// The stream it belongs to: a session, or `unbound:` and an instance. Equal to `sub`.
    pub stream: String,
    /// Its number in the stream, from 0.
    pub seq: u64,
    /// When it was made, in Unix seconds.
    pub at: u64,
    /// What happened.
    pub kind: AuditKind,
    document: Value,
}

/// What an audit record is about.
#[derive(Clone, Debug, PartialEq)]
pub enum AuditKind {
    /// A scope commitment was judged.
    Commitment(Decided),
    /// A scope amendment was judged.
    Amendment(Decided),
    /// A call was judged.
    Decision(Decided),
    /// What came of a decision.
    Outcome(Outcome),
    /// Messages were denied without a record of their own.
    Denials(Denials),
    /// Tools of a route changed, or were approved.
    Tools(Tools),
    /// The stream ends here.
    Closed,
}

/// What was judged, and how.
#[derive(Clone, Debug, PartialEq)]
pub struct Decided {
    /// The verdict.
    pub verdict: Served,
    /// The tool.
    pub tool: Option<String>,
    /// The agent.
    pub agent_id: Option<String>,
    /// How the agent's name was shown: `asserted` is not at all.
    pub agent_proven_by: Option<String>,
    /// What the client software calls itself; nothing shows it.
    pub asserted_client: Option<String>,
    /// The AgentROA record of the same call.
    pub aer_id: Option<String>,
    /// What the rules would have decided, of a call that was let through all the same.
    pub advised: Option<Advised>,
    /// Who answered a question about it, and what.
    pub confirmation: Option<Confirmation>,
}

/// The answer to a question about a call or a message.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Confirmation {
    /// Whether it was a yes.
    pub is_confirmed: bool,
    /// The approver who signed it; none where it is the client's word.
    pub approver: Option<String>,
}

/// What an operator's rules would have decided, had they been enforced.
#[derive(Clone, Debug, PartialEq)]
pub struct Advised {
    /// The verdict.
    pub verdict: Served,
    /// Why the call would not have been simply served.
    pub reason: Option<String>,
}

/// What came of a decision.
#[derive(Clone, Debug, PartialEq)]
pub struct Outcome {
    /// The decision's entry ID.
    pub decision: EntryDigest,
    /// How it ended.
    pub status: Status,
}

/// How many messages were denied without a record of their own: under load, or of callers of whom nobody knows who they are.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Denials {
    /// Since when, in Unix seconds; until the record's own time.
    pub since: u64,
    /// How many for each reason.
    pub denied: BTreeMap<String, u64>,
}

/// Tools of a route that their server describes otherwise than before, or that an operator approved.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Tools {
    /// The route.
    pub route: String,
    /// What happened to them.
    pub event: ToolEvent,
    /// Their names, as far as they can stand in a record.
    pub tools: Vec<String>,
    /// How many there are, those without a name among them.
    pub count: u64,
}

/// What happened to tools.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ToolEvent {
    /// What is said of them is not what was.
    Changed,
    /// An operator approved them.
    Approved,
}

impl ToolEvent {
    /// All of them.
    pub const ALL: [ToolEvent; 2] = [ToolEvent::Changed, ToolEvent::Approved];

    /// The record's word.
    pub const fn as_str(self) -> &'static str {
        match self {
            ToolEvent::Changed => "changed",
            ToolEvent::Approved => "approved",
        }
    }
}

/// How a call ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Status {
    /// It ran.
    Executed,
    /// It ran, and failed.
    Errored,
    /// It was not forwarded after all.
    Refused,
    /// Nobody knows.
    Unknown,
}

impl Status {
    /// All of them.
    pub const ALL: [Status; 4] = [Status::Executed, Status::Errored, Status::Refused, Status::Unknown];

    /// The record's word.
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
    /// The record's word.
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

    /// What was judged, if something was.
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
    /// Reads a payload on its own. Whether it agrees with the statement around it is [`agrees`](Self::agrees).
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

    /// Checks that the claims around the record say the same (reading A-2).
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

    /// The session, unless the stream is outside any.
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

    /// What a policy's expressions see.
    pub fn document(&self) -> Value {
        self.document.clone()
    }
}

/// Under which value the records of a stream are found: no two streams of any gateways share one.
pub fn stream_key(gateway: &str, stream: &str) -> String {
    Value::from(vec![gateway, stream]).to_string()
}

#[cfg(test)]
mod tests {
    use super::*;

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
