//! Parser for JSON objects, which keeps the JSON pointer of the object for error messages.

use std::fmt;

use jose::members::quote;
use serde_json::{Map, Value};

use super::rule::VrfRule;
use crate::limits::MAX_OPEN_STRING;
use crate::violation::Violation;

/// The place of an object, which is formatted only for an error message.
#[derive(Clone, Copy)]
pub(super) enum At {
    Member(&'static str),
    Detail(usize),
}

impl fmt::Display for At {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            At::Member(pointer) => f.write_str(pointer),
            At::Detail(index) => write!(f, "/results/details/{index}"),
        }
    }
}

/// An object in the receipt.
#[derive(Clone, Copy)]
pub(super) struct Members<'a> {
    map: &'a Map<String, Value>,
    at: At,
}

impl<'a> Members<'a> {
    pub fn of(value: &'a Value, at: At) -> Result<Self, Violation> {
        match value {
            Value::Object(map) => Ok(Members { map, at }),
            _ => Err(VrfRule::Member.in_payload(at.to_string(), "an object is needed here")),
        }
    }

    /// Parses a required object.
    pub fn object(&self, name: &'static str, pointer: &'static str) -> Result<Members<'a>, Violation> {
        Members::of(self.required(name)?, At::Member(pointer))
    }

    pub fn get(&self, name: &str) -> Option<&'a Value> {
        self.map.get(name)
    }

    /// Returns all members that are text.
    pub fn texts(&self) -> impl Iterator<Item = (&'a str, &'a str)> {
        self.map.iter().filter_map(|(name, value)| Some((name.as_str(), value.as_str()?)))
    }

    pub fn required(&self, name: &str) -> Result<&'a Value, Violation> {
        self.get(name).ok_or_else(|| self.broken(VrfRule::Member, name, "this member is required"))
    }

    pub fn text(&self, name: &str) -> Result<&'a str, Violation> {
        self.required(name)?
            .as_str()
            .ok_or_else(|| self.broken(VrfRule::Member, name, "a string is needed here"))
    }

    pub fn optional_text(&self, name: &str) -> Result<Option<&'a str>, Violation> {
        self.get(name).map(|_| self.text(name)).transpose()
    }

    /// Parses an optional string from an open registry: any value of at most [`MAX_OPEN_STRING`] characters.
    pub fn open_text(&self, name: &str) -> Result<Option<&'a str>, Violation> {
        match self.optional_text(name)? {
            Some(long) if long.chars().nth(MAX_OPEN_STRING).is_some() => Err(self.broken(
                VrfRule::OpenString,
                name,
                &format!("longer than {MAX_OPEN_STRING} characters"),
            )),
            other => Ok(other),
        }
    }

    pub fn optional_integer(&self, name: &str) -> Result<Option<i64>, Violation> {
        let integer = |value: &Value| {
            value.as_i64().ok_or_else(|| self.broken(VrfRule::Member, name, "an integer is needed here"))
        };
        self.get(name).map(integer).transpose()
    }

    /// Parses a required counter, an integer of at least 0.
    pub fn count(&self, name: &str) -> Result<u64, Violation> {
        let value = self.get(name).and_then(Value::as_u64);
        value.ok_or_else(|| {
            self.broken(VrfRule::Counts, name, "a count is needed here: an integer of at least 0")
        })
    }

    /// Returns a violation of a rule at a member.
    pub fn broken(&self, rule: VrfRule, name: &str, detail: &str) -> Violation {
        rule.in_payload(format!("{}/{}", self.at, jose::json::pointer_step(name)), detail)
    }

    /// Returns a violation of a rule by a member's value.
    pub fn unfit(&self, rule: VrfRule, name: &str, found: &str, needed: &str) -> Violation {
        self.broken(rule, name, &format!("found {}, needed {needed}", quote(found)))
    }
}
