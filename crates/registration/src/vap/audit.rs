//! Audit records of a gateway as statements: their agreement with the claims, their facts and search values.

use jose::members::quote;
use serde_json::Value;
use vap::audit::{AuditKind, AuditRecord, AuditRule};

use crate::facts::Facts;
use crate::violation::Violation;

/// An audit record in the payload of a statement.
#[derive(Clone, Debug, PartialEq)]
pub struct AuditStatement {
    pub(super) record: AuditRecord,
    document: Value,
}

impl AuditStatement {
    /// Parses a payload. [`agrees`](Self::agrees) compares it with the statement's claims.
    pub fn read(payload: &[u8]) -> Result<AuditStatement, Violation> {
        let (record, document) = AuditRecord::read_with_document(payload)?;
        Ok(AuditStatement { record, document })
    }

    /// Checks that the record agrees with the statement's claims (reading A-2).
    pub fn agrees(&self, iss: &str, sub: &str) -> Result<(), Violation> {
        let AuditRecord { gateway, stream, .. } = &self.record;
        if gateway != iss {
            let detail = format!("found {}, needed the issuer {}", quote(gateway), quote(iss));
            return Err(violation(AuditRule::Gateway, "/gateway", detail));
        }
        match stream == sub {
            true => Ok(()),
            false => {
                let detail = format!("found {}, needed the subject {}", quote(stream), quote(sub));
                Err(violation(AuditRule::Stream, "/stream", detail))
            }
        }
    }

    pub(crate) fn state(&self, facts: &mut Facts) {
        let AuditRecord { seq, at, kind, .. } = &self.record;
        facts.text("kind", kind.as_str());
        facts.put("seq", (*seq).into());
        facts.put("at", (*at).into());
        match kind {
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
                facts.put("tools", tools.count().into());
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
                if let Some(answer) = &decided.confirmation {
                    let approver = answer.approver();
                    facts.text("confirmed_by", if approver.is_some() { "approver" } else { "client" });
                    facts.text("confirmation", answer.answer().as_str());
                    approver.iter().for_each(|approver| facts.text("approver", approver));
                }
                if let Some(advised) = &decided.advised {
                    facts.text("advised_verdict", advised.verdict.as_str());
                    advised.reason.iter().for_each(|reason| facts.text("advised_reason", reason));
                }
            }
        }
    }

    /// The JSON of the payload.
    pub(crate) fn payload_json(&self) -> &Value {
        &self.document
    }
}

/// Returns a violation in the payload.
pub(super) fn violation(rule: AuditRule, pointer: &str, detail: impl Into<String>) -> Violation {
    crate::rule::in_payload(rule.name(), pointer.to_owned(), detail.into())
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
            AuditStatement::read(&jose::jcs::canonical(&record))
                .map_err(|violation| violation.rule.to_string())
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
