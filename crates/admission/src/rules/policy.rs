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
    /// A person is asked first.
    Confirm,
}

impl Then {
    /// The word of the configuration.
    #[must_use]
    pub const fn as_str(self) -> &'static str {
        match self {
            Then::Allow => "allow",
            Then::Deny => "deny",
            Then::Confirm => "confirm",
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
}

impl PolicyRule {
    /// Reads a rule. Without a pattern it is about every tool, without a condition it always holds.
    ///
    /// # Errors
    /// The name cannot stand in a record, or the condition is none.
    pub fn new(name: &str, tool: Option<Pattern>, when: Option<&str>, then: Then) -> Result<Self, RuleError> {
        let name = RuleName::new(name).ok_or(RuleError::Name)?;
        Ok(PolicyRule { name, tool, when: when.map(Expression::compile).transpose()?, then })
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
