//! The operator's commitment for clients without VAP: goal, scope and budget that each of their sessions gets.
//!
//! The operator writes the messages that such a client does not send: a commitment for each session, and an envelope for
//! each call. They are decided like an agent's messages, so scope, budget, rules and confirmations apply to the calls.
//!
//! A session lasts for one period of the commitment. It belongs to the principal of the calls, in the legacy era to one
//! MCP session of it; callers that nothing identifies share one session for each route. Its id is a digest of these, so
//! that gateways that share their evidence share the session. A changed commitment begins new sessions.

use jiff::{SignedDuration, Timestamp};
use serde_json::{Value, json};
use vap::digest::Digest;
use vap::message::slot::{self, Carrier, Unreadable};
use vap::message::{Budget, ClaimedPrincipal, Deadline, OPERATOR, Scope};

use super::Rules;
use crate::authenticated::Authenticated;
use crate::effective::Effective;
use crate::principal::{Caller, Principal};
use crate::session::Meters;

/// The rationale and the expected effect in the envelopes that the operator writes.
const NO_RATIONALE: &str = "The client does not use VAP and gave no reason.";
/// Hexadecimal digits of the digest in a session's id.
const ID_DIGITS: usize = 32;

/// The operator's commitment of a route.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct OperatorCommitment {
    /// The goal of each session.
    pub goal: String,
    /// The agent's name in the sessions of clients whose access token names no agent.
    pub agent: String,
    /// The tools that may be called.
    pub scope: Scope,
    /// Maximum number of calls in a session.
    pub max_calls: Option<u64>,
    /// The limit of each meter in a session.
    pub limits: Meters,
    /// The length of a period, at least one second. Periods are counted from the Unix epoch.
    pub lasts: SignedDuration,
}

/// A session under an operator's commitment.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct OperatorSession<'a> {
    commitment: &'a OperatorCommitment,
    id: String,
    agent_id: String,
    ends: Timestamp,
}

impl OperatorCommitment {
    /// Returns the session of a caller at this time. `rules` are those of the commitment's route.
    #[must_use]
    pub fn session_of(&self, rules: &Rules, caller: &Caller, now: Timestamp) -> OperatorSession<'_> {
        let length = self.lasts.as_secs().max(1);
        let period = now.as_second().div_euclid(length);
        let ends = period.saturating_add(1).saturating_mul(length);
        let named = json!([
            rules.demands.audience,
            rules.route,
            Principal::under_operator(caller),
            self.describe(),
            period.to_string(),
        ]);
        let digest = Digest::of(&jose::jcs::canonical(&named)).to_string();
        let digits = digest.trim_start_matches("sha256:");
        let agent = caller.token.as_ref().and_then(|token| rules.keyring.agent_of(token));
        OperatorSession {
            commitment: self,
            id: format!("{OPERATOR}{}", digits.get(..ID_DIGITS).unwrap_or(digits)),
            agent_id: agent.unwrap_or(&self.agent).to_owned(),
            ends: Timestamp::from_second(ends).unwrap_or(Timestamp::MAX),
        }
    }

    /// Returns the commitment as JSON, for the digest of the rules.
    #[must_use]
    pub fn describe(&self) -> Value {
        let OperatorCommitment { goal, agent, scope, max_calls, limits, lasts } = self;
        json!({
            "goal": goal,
            "agent": agent,
            "scope": scope,
            "max_calls": max_calls.map(|calls| calls.to_string()),
            "limits": limits,
            "lasts": lasts.as_secs().to_string(),
        })
    }
}

impl OperatorSession<'_> {
    /// Returns the session's id.
    #[must_use]
    pub fn id(&self) -> &str {
        &self.id
    }

    /// Writes the session's commitment.
    ///
    /// # Errors
    /// [`Unreadable`] if no message can hold it, for example for a goal that is too long.
    pub fn commitment(&self) -> Result<Authenticated, Box<Unreadable>> {
        let OperatorCommitment { goal, scope, max_calls, limits, .. } = self.commitment;
        let effective = Effective {
            session_id: self.id.clone(),
            goal: goal.clone(),
            scope: scope.clone(),
            budget: Budget {
                max_calls: *max_calls,
                deadline: Some(Deadline::from(self.ends)),
                limits: limits.iter().map(|(meter, most)| (meter.to_owned(), *most)).collect(),
            },
            plan_digest: None,
            principal: ClaimedPrincipal { agent_id: self.agent_id.clone(), auth: None, delegated_by: None },
            prev_commitment_digest: None,
        };
        written(&effective.text(), Carrier::ToolsList)
    }

    /// Writes the envelope of a call. `arguments` is the text of a JSON object.
    ///
    /// # Errors
    /// [`Unreadable`] if the tool's name or the arguments cannot be in an envelope.
    pub fn envelope(&self, tool: &str, arguments: &str) -> Result<Authenticated, Box<Unreadable>> {
        written(&envelope_text(&self.id, tool, arguments, NO_RATIONALE), Carrier::ToolsCall)
    }
}

/// Returns the text of an unsigned Intent Envelope with this rationale. The arguments are inserted as written, so that
/// numbers keep their digits.
#[must_use]
pub fn envelope_text(session_id: &str, tool: &str, arguments: &str, rationale: &str) -> String {
    let [session_id, tool, rationale] =
        [session_id, tool, rationale].map(|text| Value::from(text).to_string());
    format!(
        "{{\"vap\":\"0.1\",\"type\":\"intent_call\",\"session_id\":{session_id},\
         \"intent\":{{\"rationale\":{rationale},\"expected_effect\":{rationale}}},\
         \"call\":{{\"tool\":{tool},\"arguments\":{arguments}}}}}"
    )
}

/// Parses a message that the operator wrote, by the rules for any message.
fn written(text: &str, carrier: Carrier) -> Result<Authenticated, Box<Unreadable>> {
    let received = slot::read(Some(text), None, carrier)?;
    Ok(Authenticated::by_operator(received.expect("a text was given")))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::principal::{Era, TokenSubject};
    use vap::glob::Pattern;
    use vap::message::Message;

    fn commitment() -> OperatorCommitment {
        OperatorCommitment {
            goal: "work at the desk".into(),
            agent: "desktop".into(),
            scope: Scope { tools_allow: vec![Pattern::new("*").unwrap()], tools_deny: None },
            max_calls: Some(3),
            limits: Meters::default(),
            lasts: SignedDuration::from_hours(1),
        }
    }

    fn rules() -> Rules {
        Rules::new("/mcp", "https://gw.example", "sha256:")
    }

    fn legacy(session: &str, is_session_issued: bool) -> Caller {
        let caller = Caller { route: "/mcp".into(), ..Caller::unknown(Era::Legacy) };
        Caller { is_session_issued, ..caller.with_issued_session(Some(session.into())) }
    }

    fn at(second: i64) -> Timestamp {
        Timestamp::from_second(second).unwrap()
    }

    fn id(caller: &Caller, second: i64) -> String {
        commitment().session_of(&rules(), caller, at(second)).id().to_owned()
    }

    #[test]
    fn each_mcp_session_that_a_server_issued_has_a_session_of_its_own() {
        assert_ne!(id(&legacy("a", true), 10), id(&legacy("b", true), 10));
        assert_eq!(id(&legacy("a", true), 10), id(&legacy("a", true), 3599));
        assert_eq!(id(&legacy("a", false), 10), id(&legacy("b", false), 10), "anybody can invent an id");
    }

    #[test]
    fn a_new_period_and_a_changed_commitment_begin_a_new_session() {
        let caller = legacy("a", true);
        assert_ne!(id(&caller, 3599), id(&caller, 3600));
        let changed = OperatorCommitment { max_calls: Some(4), ..commitment() };
        assert_ne!(changed.session_of(&rules(), &caller, at(10)).id(), id(&caller, 10));
    }

    #[test]
    fn callers_that_nothing_identifies_share_a_session_and_those_with_a_token_do_not() {
        let unidentified = Caller { route: "/mcp".into(), ..Caller::unknown(Era::Modern) };
        let invented = Caller { mcp_session: Some("x".into()), ..unidentified.clone() };
        assert_eq!(id(&unidentified, 10), id(&invented, 10));
        let token = TokenSubject { iss: "https://as.example".into(), sub: "a".into(), client_id: None };
        assert_ne!(id(&unidentified, 10), id(&Caller { token: Some(token), ..unidentified.clone() }, 10));
    }

    #[test]
    fn its_commitment_ends_with_the_period_and_its_envelopes_name_the_call() {
        let commitment = commitment();
        let rules = rules();
        let session = commitment.session_of(&rules, &legacy("a", true), at(10));
        let written = session.commitment().unwrap();
        let Message::ScopeCommitment(message) = &written.message else { panic!("{written:?}") };
        assert_eq!(message.budget.deadline.as_ref().unwrap().at(), at(3600));
        assert_eq!((message.principal.agent_id.as_str(), message.budget.max_calls), ("desktop", Some(3)));
        let written = session.envelope("say \"hi\"", r#"{"n":1.000}"#).unwrap();
        let Message::IntentEnvelope(message) = &written.message else { panic!("{written:?}") };
        assert_eq!(message.call.tool, "say \"hi\"");
        assert!(written.text.contains("1.000") && written.is_by_operator());
    }
}
