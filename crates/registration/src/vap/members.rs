//! Parser for JSON objects of VAP, which keeps the JSON pointer of the object for error messages.

use jose::json::pointer_step;
use jose::json::{self, CheckedJson, JsonError, JsonErrorKind};
use serde_json::{Map, Value};

use crate::limits::JSON_DEPTH;
use crate::violation::{Violation, cut};

/// A function that makes a violation of a rule, from a JSON pointer and details.
pub(super) type Rule = fn(String, String) -> Violation;

/// The rules that a text breaks if it is not strict JSON.
#[derive(Clone, Copy)]
pub(super) struct JsonRules {
    pub json: Rule,
    pub duplicate_member: Rule,
    pub lone_surrogate: Rule,
}

/// Parses strict JSON, and returns it with its validated text.
pub(super) fn strict<'p>(
    payload: &'p [u8],
    rules: &JsonRules,
) -> Result<(CheckedJson<'p>, Value), Violation> {
    let refuse = |error: JsonError| {
        let rule = match error.kind {
            JsonErrorKind::Duplicate(_) => rules.duplicate_member,
            JsonErrorKind::LoneSurrogate => rules.lone_surrogate,
            _ => rules.json,
        };
        rule(cut(error.pointer.clone()), format!("{} at byte {} of the JSON", error.kind, error.offset))
    };
    let limits = json::Limits { depth: JSON_DEPTH, ..json::Limits::default() };
    let checked = json::check(payload, limits).map_err(refuse)?;
    let value = checked.value().map_err(refuse)?;
    match value.is_object() {
        true => Ok((checked, value)),
        false => Err((rules.json)(String::new(), "the payload is not an object".to_owned())),
    }
}

/// An object with its JSON pointer.
pub(super) struct Members<'a> {
    map: &'a Map<String, Value>,
    at: String,
    /// The rule that a missing member, or one of another type, breaks.
    rule: Rule,
}

impl<'a> Members<'a> {
    /// Parses the object at the JSON pointer `at`.
    pub fn of(value: &'a Value, at: impl Into<String>, rule: Rule) -> Result<Self, Violation> {
        let at = at.into();
        match value {
            Value::Object(map) => Ok(Members { map, at, rule }),
            _ => Err(rule(at, "an object is needed here".to_owned())),
        }
    }

    pub fn get(&self, name: &str) -> Option<&'a Value> {
        self.map.get(name)
    }

    pub fn required(&self, name: &str) -> Result<&'a Value, Violation> {
        self.get(name).ok_or_else(|| self.broken(self.rule, name, "this member is required"))
    }

    pub fn text(&self, name: &str) -> Result<&'a str, Violation> {
        self.required(name)?.as_str().ok_or_else(|| self.broken(self.rule, name, "a string is needed here"))
    }

    pub fn optional_text(&self, name: &str) -> Result<Option<&'a str>, Violation> {
        self.get(name).map(|_| self.text(name)).transpose()
    }

    pub fn optional_bool(&self, name: &str) -> Result<Option<bool>, Violation> {
        let bool = |value: &Value| {
            value.as_bool().ok_or_else(|| self.broken(self.rule, name, "true or false is needed here"))
        };
        self.get(name).map(bool).transpose()
    }

    pub fn optional_number(&self, name: &str) -> Result<Option<f64>, Violation> {
        let number = |value: &Value| {
            value.as_f64().ok_or_else(|| self.broken(self.rule, name, "a number is needed here"))
        };
        self.get(name).map(number).transpose()
    }

    pub fn object(&self, name: &str) -> Result<Members<'a>, Violation> {
        Members::of(self.required(name)?, self.pointer(name), self.rule)
    }

    pub fn optional_object(&self, name: &str) -> Result<Option<Members<'a>>, Violation> {
        self.get(name).map(|_| self.object(name)).transpose()
    }

    /// Parses a required list of strings.
    pub fn texts(&self, name: &str) -> Result<Vec<&'a str>, Violation> {
        let Value::Array(items) = self.required(name)? else {
            return Err(self.broken(self.rule, name, "a list of strings is needed here"));
        };
        let item = |(i, item): (usize, &'a Value)| {
            item.as_str().ok_or_else(|| {
                (self.rule)(format!("{}/{i}", self.pointer(name)), "a string is needed here".to_owned())
            })
        };
        items.iter().enumerate().map(item).collect()
    }

    /// Returns the JSON pointer of a member.
    pub fn pointer(&self, name: &str) -> String {
        format!("{}/{}", self.at, pointer_step(name))
    }

    /// Returns a violation of a rule at a member.
    pub fn broken(&self, rule: Rule, name: &str, detail: impl Into<String>) -> Violation {
        rule(self.pointer(name), detail.into())
    }
}

/// Returns whether a number is from 0 to 1.
pub(super) fn is_score(number: f64) -> bool {
    (0.0..=1.0).contains(&number)
}
