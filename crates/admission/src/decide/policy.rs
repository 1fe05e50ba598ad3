//! C4: the operator's rules, in order; the first that holds speaks.
//!
//! A rule sees the call as the upstream will: `input.tool`, `input.arguments`, `input.principal`, and `input.session` with its
//! meters and calls. It never sees what the agent says about the call. A rule that cannot be evaluated denies, and so do
//! arguments that two readers take for different ones.
//!
//! A rule that denies or asks holds as well where its condition names a member that the call does not have, or that is null:
//! leaving a member out, or spelling it otherwise, must not be a way around it. A rule that allows does not.

use expression::Answer;
use serde_json::{Value, json};

use crate::reason::{Reason, RuleName};
use crate::rules::{Decider, Rules, Then};

/// What C4 says.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum Policed {
    /// No rule, or one that allows. Its name, if there is one.
    Allowed(Option<RuleName>),
    /// A person is asked first: the client's user, or an approver.
    Confirm(RuleName, Decider),
    /// Denied.
    Denied(Reason),
}

/// What rules are asked about.
#[derive(Debug)]
pub(super) struct Facts<'a> {
    pub tool: &'a str,
    /// The text of the arguments.
    pub arguments: &'a str,
    pub principal: Value,
    pub session: Value,
}

/// Asks the rules about a call.
pub(super) fn police(rules: &Rules, facts: Facts<'_>) -> Policed {
    let about: Vec<_> = rules.policy.iter().filter(|rule| rule.is_about(facts.tool)).collect();
    if about.is_empty() {
        return Policed::Allowed(None);
    }
    let Ok(input) = facts.document().and_then(|document| expression::Input::new(&document).map_err(drop))
    else {
        return Policed::Denied(Reason::PolicyFailed);
    };
    for rule in about {
        match rule.when().map_or(Ok(Answer::Holds), |when| when.answer(&input)) {
            Err(_) => return Policed::Denied(Reason::PolicyFailed),
            Ok(Answer::DoesNotHold) => {}
            Ok(Answer::MissingMember) if rule.then() == Then::Allow => {}
            Ok(Answer::Holds | Answer::MissingMember) => {
                let name = rule.name().clone();
                return match rule.then() {
                    Then::Allow => Policed::Allowed(Some(name)),
                    Then::Confirm => Policed::Confirm(name, rules.approvals.confirmations),
                    Then::Approve => Policed::Confirm(name, Decider::Approver),
                    Then::Deny => Policed::Denied(Reason::Policy(name)),
                };
            }
        }
    }
    Policed::Allowed(None)
}

impl Facts<'_> {
    fn document(self) -> Result<Value, ()> {
        let arguments = jose::json::parse_unambiguous(self.arguments).map_err(drop)?;
        Ok(json!({
            "tool": self.tool,
            "arguments": arguments,
            "principal": self.principal,
            "session": self.session,
        }))
    }
}
