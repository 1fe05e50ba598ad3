//! C4: evaluation of the operator's rules in order; the first rule that holds decides.
//!
//! A rule sees the call as it is forwarded: `input.tool`, `input.arguments`, `input.principal`, `input.session` with
//! its meters and calls, `input.class` with the sensitivity of the tool, and `input.risk` with the score and its
//! signals, each from 0 to 1. It never sees the agent's rationale. A rule that cannot be evaluated denies the call, and
//! so do ambiguous arguments, which two JSON parsers could read differently.
//!
//! A rule that denies or requires an answer also holds if its condition refers to a member that the call does not have,
//! or that is null. Otherwise an agent could evade it by omitting or misspelling a member. A rule that allows does not
//! hold then.

use expression::Answer;
use serde_json::{Value, json};

use super::semantic::RiskAssessment;
use crate::risk::Degree;
use crate::rules::{Decider, Rules, Then};
use vap::message::Sensitivity;
use vap::reason::{Reason, RuleName};

/// The result of C4.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum PolicyOutcome {
    /// The call is allowed: by the rule of this name, or because no rule holds.
    Allowed(Option<RuleName>),
    /// The client's user or an approver has to be asked first.
    Confirm(RuleName, Decider),
    /// The call is denied.
    Denied(Reason),
}

/// The input of the rules.
#[derive(Debug)]
pub(super) struct RuleInput<'a> {
    pub tool: &'a str,
    /// The arguments as JSON text.
    pub arguments: &'a str,
    pub principal: Value,
    pub session: Value,
    pub assessment: RiskAssessment,
}

/// The `input.class` of a tool that neither the operator nor the agent has classified.
const UNCLASSIFIED: &str = "unclassified";

/// Evaluates the rules for a call.
pub(super) fn evaluate(rules: &Rules, input: RuleInput<'_>) -> PolicyOutcome {
    let about: Vec<_> = rules.policy.iter().filter(|rule| rule.is_about(input.tool)).collect();
    if about.is_empty() {
        return PolicyOutcome::Allowed(None);
    }
    let Ok(document) = input.document().and_then(|document| expression::Input::new(&document).map_err(drop))
    else {
        return PolicyOutcome::Denied(Reason::PolicyFailed);
    };
    for rule in about {
        match rule.when().map_or(Ok(Answer::Holds), |when| when.answer(&document)) {
            Err(_) => return PolicyOutcome::Denied(Reason::PolicyFailed),
            Ok(Answer::DoesNotHold) => {}
            Ok(Answer::MissingMember) if rule.then() == Then::Allow => {}
            Ok(Answer::Holds | Answer::MissingMember) => {
                let name = rule.name().clone();
                return match rule.then() {
                    Then::Allow => PolicyOutcome::Allowed(Some(name)),
                    Then::Confirm => PolicyOutcome::Confirm(name, rules.approvals.confirmations),
                    Then::Approve => PolicyOutcome::Confirm(name, Decider::Approver),
                    Then::Deny => PolicyOutcome::Denied(Reason::Policy(name)),
                };
            }
        }
    }
    PolicyOutcome::Allowed(None)
}

impl RuleInput<'_> {
    fn document(self) -> Result<Value, ()> {
        let arguments = jose::json::parse_unambiguous(self.arguments).map_err(drop)?;
        Ok(json!({
            "tool": self.tool,
            "arguments": arguments,
            "principal": self.principal,
            "session": self.session,
            "class": self.assessment.sensitivity.map_or(UNCLASSIFIED, Sensitivity::as_str),
            "risk": self.risk(),
        }))
    }

    /// Returns the risk score and its signals, before they are weighted.
    fn risk(&self) -> Value {
        let RiskAssessment { signals, risk, .. } = self.assessment;
        json!({
            "score": fraction(risk.score),
            "sensitivity": fraction(signals.sensitivity),
            "burn_rate": fraction(signals.burn_rate),
            "looping": fraction(signals.looping),
            "novelty": fraction(signals.novelty),
            "proximity": fraction(signals.proximity),
        })
    }
}

fn fraction(degree: Degree) -> f64 {
    f64::from(degree.get()) / 1000.0
}
