//! C4: the operator's rules about single calls.

use expression::{CompileError, Expression};

use crate::glob::Pattern;
use crate::reason::RuleName;

/// One rule: where it holds, it says what is done.
#[derive(Clone, Debug)]
pub struct PolicyRule {
    name: RuleName,
    tool: Option<Pattern>,
    when: Option<Expression>,
    then: Then,
}

/// What a rule that holds says.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Then {
    /// The rules after it are not asked.
    Allow,
    /// The call is denied.
    Deny,
    /// A person is asked first: by the client, unless the route says otherwise.
    Confirm,
    /// An approver outside of the client is asked first.
    Approve,
}

impl Then {
    /// The word of the configuration.
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

/// Why a rule is no rule.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum RuleError {
    /// Its name cannot stand in a record.
    #[error("the name of a rule is 1 to 57 letters, digits and _ . : + -")]
    Name,
    /// Its condition is none.
    #[error(transparent)]
    Condition(#[from] CompileError),
    /// Its condition names a member that no call has.
    #[error("the condition names {0}, which no call has: {KNOWN}")]
    Member(String),
}

/// What is said where a condition names something else.
const KNOWN: &str = "there are input.tool, input.arguments, input.principal (agent_id, proven_by, delegated_by, identity) \
                     and input.session (id, calls, max_calls, meters, limits)";

/// Whether calls can have a member of this path.
fn is_known(path: &[&str]) -> bool {
    match path {
        ["tool"] | ["arguments" | "principal" | "session"] | ["arguments", ..] => true,
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
    /// Reads a rule. Without a pattern it is about every tool, without a condition it always holds.
    ///
    /// # Errors
    /// The name cannot stand in a record, the condition is none, or it names a member that no call has.
    pub fn new(name: &str, tool: Option<Pattern>, when: Option<&str>, then: Then) -> Result<Self, RuleError> {
        let name = RuleName::new(name).ok_or(RuleError::Name)?;
        let when = when.map(Expression::compile).transpose()?;
        let members = when.as_ref().map(Expression::members).unwrap_or_default();
        if let Some(unknown) = members.iter().find(|path| !is_known(path)) {
            return Err(RuleError::Member(format!("input.{}", unknown.join("."))));
        }
        Ok(PolicyRule { name, tool, when, then })
    }

    /// What it says, for the digest of the rules.
    pub(super) fn describe(&self) -> serde_json::Value {
        let PolicyRule { name, tool, when, then } = self;
        serde_json::json!({
            "name": name.as_str(),
            "tool": tool.as_ref().map(Pattern::as_str),
            "when": when.as_ref().map(Expression::text),
            "then": then.as_str(),
        })
    }

    /// Its name.
    #[must_use]
    pub fn name(&self) -> &RuleName {
        &self.name
    }

    /// What it says where it holds.
    #[must_use]
    pub fn then(&self) -> Then {
        self.then
    }

    /// The tools that it is about; without, all of them.
    #[must_use]
    pub fn tool(&self) -> Option<&Pattern> {
        self.tool.as_ref()
    }

    /// Whether it is about the tool.
    #[must_use]
    pub fn is_about(&self, tool: &str) -> bool {
        self.tool.as_ref().is_none_or(|pattern| pattern.matches(tool))
    }

    /// Its condition; without, it always holds.
    #[must_use]
    pub fn when(&self) -> Option<&Expression> {
        self.when.as_ref()
    }
}
