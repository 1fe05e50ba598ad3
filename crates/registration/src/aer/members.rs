//! Parser for closed JSON objects, which keeps the JSON pointer of the object for error messages.

use std::fmt;

use jose::json::pointer_step;
use jose::members::quote;
use serde_json::{Map, Value};
use vap::name::is_code;

use super::rule::AerRule;
use crate::identifiers::{is_hex, is_id};
use crate::limits::{MAX_AER_TEXT, MAX_IDENTIFIER, MAX_INTEGER};
use crate::violation::Violation;

/// The place of an object, which is formatted only for an error message.
#[derive(Clone, Copy)]
pub(super) enum At {
    Member(&'static str),
    Signature(usize),
}

impl fmt::Display for At {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            At::Member(pointer) => f.write_str(pointer),
            At::Signature(index) => write!(f, "/signatures/{index}"),
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
    /// Parses an object whose members are all in `known`, and not null.
    pub fn open(value: &'a Value, at: At, known: &[&str]) -> Result<Self, Violation> {
        let Value::Object(map) = value else {
            return Err(AerRule::Member.in_payload(at.to_string(), "an object is needed here"));
        };
        let members = Members { map, at };
        for (name, value) in map {
            if !known.contains(&name.as_str()) {
                return Err(members.broken(AerRule::UnknownMember, name, "a receipt has no such member"));
            }
            if value.is_null() {
                return Err(members.broken(
                    AerRule::Null,
                    name,
                    "null: a member without a value is left out",
                ));
            }
        }
        Ok(members)
    }

    /// Parses a required object.
    pub fn object(&self, name: &str, at: &'static str, known: &[&str]) -> Result<Members<'a>, Violation> {
        Members::open(self.required(name)?, At::Member(at), known)
    }

    /// Parses an optional object.
    pub fn optional_object(
        &self,
        name: &str,
        at: &'static str,
        known: &[&str],
    ) -> Result<Option<Members<'a>>, Violation> {
        self.map.get(name).map(|value| Members::open(value, At::Member(at), known)).transpose()
    }

    pub fn has(&self, name: &str) -> bool {
        self.map.contains_key(name)
    }

    pub fn required(&self, name: &str) -> Result<&'a Value, Violation> {
        self.map.get(name).ok_or_else(|| self.broken(AerRule::Member, name, "this member is required"))
    }

    /// Parses a required string of any length and content.
    pub fn raw(&self, name: &str) -> Result<&'a str, Violation> {
        let text = self.required(name)?.as_str();
        text.ok_or_else(|| self.broken(AerRule::Member, name, "a string is needed here"))
    }

    /// Parses a required name of 1 to [`MAX_AER_TEXT`] characters.
    pub fn text(&self, name: &str) -> Result<String, Violation> {
        self.text_up_to(name, MAX_AER_TEXT)
    }

    fn text_up_to(&self, name: &str, longest: usize) -> Result<String, Violation> {
        let text = self.raw(name)?;
        let why = match text {
            "" => "must not be empty".to_owned(),
            _ if text.chars().nth(longest).is_some() => format!("longer than {longest} characters"),
            _ if text.chars().any(char::is_control) => "holds a control character".to_owned(),
            _ => return Ok(text.to_owned()),
        };
        Err(self.broken(AerRule::Text, name, &why))
    }

    /// Parses an optional reference of 1 to [`MAX_IDENTIFIER`] characters.
    pub fn optional_reference(&self, name: &str) -> Result<Option<String>, Violation> {
        self.has(name).then(|| self.text_up_to(name, MAX_IDENTIFIER)).transpose()
    }

    /// Parses a required code (`is_code`).
    pub fn token(&self, name: &str) -> Result<String, Violation> {
        let token = self.raw(name)?;
        match is_code(token) {
            true => Ok(token.to_owned()),
            false => Err(self.unfit(AerRule::Token, name, token, "1 to 64 letters, digits and _ . : + -")),
        }
    }

    /// Parses an optional code (`is_code`).
    pub fn optional_token(&self, name: &str) -> Result<Option<String>, Violation> {
        self.has(name).then(|| self.token(name)).transpose()
    }

    /// Parses a required integer from 0 to [`MAX_INTEGER`].
    pub fn count(&self, name: &str) -> Result<u64, Violation> {
        let count = self.required(name)?.as_u64().filter(|count| *count <= MAX_INTEGER);
        count.ok_or_else(|| self.broken(AerRule::Count, name, "a whole number of at least 0 is needed here"))
    }

    /// Parses an optional integer from 0 to [`MAX_INTEGER`].
    pub fn optional_count(&self, name: &str) -> Result<Option<u64>, Violation> {
        self.has(name).then(|| self.count(name)).transpose()
    }

    /// Parses a required SHA-256 digest, `sha256:` and 64 lower-case hexadecimal digits.
    pub fn digest(&self, name: &str) -> Result<String, Violation> {
        let digest = self.raw(name)?;
        match digest.strip_prefix("sha256:").is_some_and(|digits| is_hex(digits, 64)) {
            true => Ok(digest.to_owned()),
            false => {
                Err(self.unfit(AerRule::Digest, name, digest, "\"sha256:\" and 64 lower-case hex digits"))
            }
        }
    }

    /// Parses an optional SHA-256 digest.
    pub fn optional_digest(&self, name: &str) -> Result<Option<String>, Violation> {
        self.has(name).then(|| self.digest(name)).transpose()
    }

    /// Parses a required identifier, `<prefix><16 lower-case hex digits>`.
    pub fn id(&self, name: &str, prefix: &str, rule: AerRule) -> Result<String, Violation> {
        let id = self.raw(name)?;
        match is_id(id, prefix) {
            true => Ok(id.to_owned()),
            false => Err(self.unfit(rule, name, id, &format!("\"{prefix}\" and 16 lower-case hex digits"))),
        }
    }

    /// Returns a violation of a rule at a member.
    pub fn broken(&self, rule: AerRule, name: &str, detail: &str) -> Violation {
        rule.in_payload(format!("{}/{}", self.at, pointer_step(name)), detail)
    }

    /// Returns a violation of a rule by a member's value.
    pub fn unfit(&self, rule: AerRule, name: &str, found: &str, needed: &str) -> Violation {
        self.broken(rule, name, &format!("found {}, needed {needed}", quote(found)))
    }
}
