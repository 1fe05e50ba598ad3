//! Operator conditions, `[[type.rule]]`: additional checks of a content type, as expressions on the parsed statement.
//!
//! ```toml
//! [[type.rule]]
//! name = "failed-below-tier-1"
//! when = 'input.record.verdict != "pass"; input.record.tier < 1'
//! then = "refuse"
//! ```
//!
//! Conditions are evaluated in order after all other checks succeeded, and the first one that holds decides: no
//! condition can admit a statement that a typed check refuses. A condition that does not compile is a mistake in the
//! policy.

use std::collections::HashSet;

use expression::Expression;
use serde_json::{Value, json};

use super::claim::CwtClaim;
use crate::limits::{MAX_CONDITIONS, MAX_RULE_NAME};
use crate::section::{Notebook, Section, name, text};

/// The members of the document that conditions evaluate, except those of `record`.
const MEMBERS: [&str; 9] = [
    "iss",
    "sub",
    "content_type",
    "algorithm",
    "authenticated_by",
    "size",
    "detached",
    "hash_envelope",
    "claims",
];

/// An operator's condition with its outcome.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Condition {
    /// The name of the condition in permits and refusals.
    pub name: String,
    /// The compiled expression.
    pub when: Expression,
    /// The outcome if the expression holds.
    pub then: Outcome,
}

/// The outcome of a condition that holds.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Outcome {
    /// The statement is refused.
    Refuse,
    /// The statement is admitted, and later conditions are not evaluated.
    Admit,
}

impl Outcome {
    const ALL: [Outcome; 2] = [Outcome::Refuse, Outcome::Admit];

    /// The name of the outcome in policies (`then`).
    pub const fn name(self) -> &'static str {
        match self {
            Outcome::Refuse => "refuse",
            Outcome::Admit => "admit",
        }
    }
}

impl Condition {
    /// Returns whether the expression uses a member of `record`.
    pub(crate) fn asks_for_record(&self) -> bool {
        self.when.members().iter().any(|path| path.first() == Some(&"record"))
    }

    /// Returns the first member in the expression that no statement of the content type has.
    pub(super) fn unknown_member(&self, has_record: bool) -> Option<String> {
        let is_known = |path: &Vec<&str>| match path[..] {
            [] => true,
            ["claims", claim] => CwtClaim::ALL.iter().any(|(_, name)| *name == claim),
            ["record", ..] => has_record,
            [name] => MEMBERS.contains(&name),
            _ => false,
        };
        let unknown = self.when.members().into_iter().find(|path| !is_known(path))?;
        Some(format!("input.{}", unknown.join(".")))
    }
}

/// Parses the conditions of a content type.
pub(super) fn read(section: &mut Section<'_>, notes: &Notebook) -> Vec<Condition> {
    let mut names = HashSet::new();
    let conditions = section.list("rule", |value, at| {
        let name = value.get("name").and_then(Value::as_str);
        if name.is_some_and(|name| !names.insert(name)) {
            notes.note(format!("{at}.name"), "appears more than once");
        }
        condition(value, at, notes)
    });
    if conditions.len() > MAX_CONDITIONS {
        section.note("rule", format!("more than {MAX_CONDITIONS} rules"));
    }
    conditions
}

fn condition(value: &Value, at: &str, notes: &Notebook) -> Option<Condition> {
    let mut section = Section::open(value, at, notes)?;
    let name = section.required("name", rule_name);
    let when = section
        .required("when", |value| Expression::compile(text(value)?).map_err(|mistake| mistake.to_string()));
    let then = section.required("then", outcome);
    section.close();
    Some(Condition { name: name?, when: when?, then: then? })
}

/// Parses a rule's name, which clients match on and metrics use as a label.
fn rule_name(value: &Value) -> Result<String, String> {
    let name = name(value)?;
    let plain = |byte: u8| byte.is_ascii_lowercase() || byte.is_ascii_digit() || byte == b'-';
    match name.bytes().all(plain) && name.len() <= MAX_RULE_NAME {
        true => Ok(name),
        false => {
            Err(format!("a name of at most {MAX_RULE_NAME} small letters, digits and hyphens is needed here"))
        }
    }
}

fn outcome(value: &Value) -> Result<Outcome, String> {
    let named = text(value)?;
    let known = Outcome::ALL.into_iter().find(|outcome| outcome.name() == named);
    known.ok_or_else(|| format!("{named:?} is not one of refuse, admit"))
}

/// Serializes a condition as in the policy's payload.
pub(super) fn document(condition: &Condition) -> Value {
    json!({ "name": condition.name, "when": condition.when.text(), "then": condition.then.name() })
}
