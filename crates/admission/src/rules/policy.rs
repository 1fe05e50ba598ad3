//! C4: the operator's rules for single calls.

use expression::{CompileError, Expression};

use vap::glob::Pattern;
use vap::reason::RuleName;

/// A rule of the operator: an action for calls that match its tool pattern and its condition.
#[derive(Clone, Debug)]
pub struct PolicyRule {
    name: RuleName,
    tool: Option<Pattern>,
    when: Option<Expression>,
    then: Then,
}

/// The action of a rule that matches.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Then {
    /// `allow`: later rules are not evaluated.
    Allow,
    /// `deny`: the call is denied.
    Deny,
    /// `confirm`: a human has to confirm the call; by default the client asks its user
    /// ([`Approvals::confirmations`](super::Approvals::confirmations)).
    Confirm,
    /// `approve`: an approver outside of the client has to approve the call.
    Approve,
}

impl Then {
    /// Returns the name used in the configuration.
    #[must_use]
    pub const fn as_str(self) -> &'static str {
        match self {
            Then::Allow => "allow",
            Then::Deny => "deny",
            Then::Confirm => "confirm",
            Then::Approve => "approve",
        }
    }
}

/// The reason why a rule is invalid.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum RuleError {
    /// The name cannot be part of a reason code.
    #[error("the name of a rule is 1 to 57 letters, digits and _ . : + -")]
    Name,
    /// The condition does not compile.
    #[error(transparent)]
    Condition(#[from] CompileError),
    /// The condition refers to a member that calls do not have.
    #[error("the condition names {0}, which no call has: {KNOWN}")]
    Member(String),
}

/// Tail of the error message about an unknown member.
const KNOWN: &str = "there are input.tool, input.arguments, input.principal (agent_id, proven_by, delegated_by, identity), \
                     input.session (id, calls, max_calls, meters, limits), input.class and input.risk (score, sensitivity, \
                     burn_rate, looping, novelty, proximity)";

/// Returns `true` if a call can have a member with this path.
fn is_known(path: &[&str]) -> bool {
    match path {
        ["tool" | "class"] | ["arguments" | "principal" | "session" | "risk"] | ["arguments", ..] => true,
        ["risk", "score" | "sensitivity" | "burn_rate" | "looping" | "novelty" | "proximity"] => true,
        ["principal", member, rest @ ..] => match *member {
            "agent_id" | "proven_by" | "delegated_by" => rest.is_empty(),
            "identity" => true,
            _ => false,
        },
        ["session", member, rest @ ..] => match *member {
            "id" | "calls" | "max_calls" => rest.is_empty(),
            "meters" | "limits" => true,
            _ => false,
        },
        _ => false,
    }
}

impl PolicyRule {
    /// Compiles a rule. Without a pattern it applies to every tool, without a condition to every call.
    ///
    /// # Errors
    /// [`RuleError`] if the name or the condition is invalid, or the condition refers to a member that calls do not
    /// have.
    pub fn new(name: &str, tool: Option<Pattern>, when: Option<&str>, then: Then) -> Result<Self, RuleError> {
        let name = RuleName::new(name).ok_or(RuleError::Name)?;
        let when = when.map(Expression::compile).transpose()?;
        let members = when.as_ref().map(Expression::members).unwrap_or_default();
        if let Some(unknown) = members.iter().find(|path| !is_known(path)) {
            return Err(RuleError::Member(format!("input.{}", unknown.join("."))));
        }
        Ok(PolicyRule { name, tool, when, then })
    }

    /// Returns the rule as JSON, for the digest of the rules.
    pub(super) fn describe(&self) -> serde_json::Value {
        let PolicyRule { name, tool, when, then } = self;
        serde_json::json!({
            "name": name.as_str(),
            "tool": tool.as_ref().map(Pattern::as_str),
            "when": when.as_ref().map(Expression::text),
            "then": then.as_str(),
        })
    }

    /// Returns the rule's name.
    #[must_use]
    pub fn name(&self) -> &RuleName {
        &self.name
    }

    /// Returns the action for calls that match.
    #[must_use]
    pub fn then(&self) -> Then {
        self.then
    }

    /// Returns the tool pattern; `None` for every tool.
    #[must_use]
    pub fn tool(&self) -> Option<&Pattern> {
        self.tool.as_ref()
    }

    /// Returns `true` if the tool matches the rule's pattern.
    #[must_use]
    pub fn is_about(&self, tool: &str) -> bool {
        self.tool.as_ref().is_none_or(|pattern| pattern.matches(tool))
    }

    /// Returns the condition; `None` if the rule has none and always holds.
    #[must_use]
    pub fn when(&self) -> Option<&Expression> {
        self.when.as_ref()
    }
}
