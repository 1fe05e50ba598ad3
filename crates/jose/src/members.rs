//! Reader for the members of a JSON object, which keeps the JSON pointer of the object for errors.
//!
//! Not here: the strict parser of the text ([`json`](crate::json)), and the rules of a format: the reader is generic
//! over them ([`Rule`]).

use std::borrow::Cow;
use std::marker::PhantomData;

use serde_json::{Map, Value};

use crate::json::{JsonErrorKind, pointer_step};

/// Maximum length in bytes of an untrusted value that an error message quotes.
pub const MAX_QUOTE: usize = 64;

/// The rules of a format whose objects are read with [`Members`].
pub trait Rule: Copy {
    /// The rule that a missing member, or one of another type, breaks.
    const MEMBER: Self;
    /// The error of the format: a rule, a JSON pointer and details.
    type Error;

    /// Returns the error for a rule that is broken at this JSON pointer.
    fn broken(self, pointer: String, detail: String) -> Self::Error;
}

/// The rules that a text breaks if it is not strict JSON.
pub trait JsonRule: Rule {
    /// Returns the rule that a kind of error breaks.
    fn of_json(kind: &JsonErrorKind) -> Self;

    /// Returns the error for a text that is not strict JSON.
    fn not_json(error: &crate::json::JsonError) -> Self::Error {
        let detail = format!("{} at byte {} of the JSON", error.kind, error.offset);
        Self::of_json(&error.kind).broken(error.pointer.clone(), detail)
    }
}

/// An object with its JSON pointer.
pub struct Members<'a, R> {
    map: &'a Map<String, Value>,
    at: Cow<'static, str>,
    rule: PhantomData<R>,
}

impl<'a, R: Rule> Members<'a, R> {
    /// Opens the object at the JSON pointer `at`.
    ///
    /// # Errors
    /// [`Rule::MEMBER`] if the value is not an object.
    pub fn of(value: &'a Value, at: impl Into<Cow<'static, str>>) -> Result<Self, R::Error> {
        let at = at.into();
        match value {
            Value::Object(map) => Ok(Members { map, at, rule: PhantomData }),
            _ => Err(R::MEMBER.broken(at.into_owned(), "an object is needed here".to_owned())),
        }
    }

    /// Returns the members' names.
    pub fn names(&self) -> impl Iterator<Item = &'a str> {
        self.map.keys().map(String::as_str)
    }

    /// Returns the members with their names.
    pub fn iter(&self) -> impl Iterator<Item = (&'a str, &'a Value)> {
        self.map.iter().map(|(name, value)| (name.as_str(), value))
    }

    /// Returns the number of members.
    pub fn count(&self) -> usize {
        self.map.len()
    }

    /// Returns whether the object has the member.
    pub fn has(&self, name: &str) -> bool {
        self.map.contains_key(name)
    }

    /// Returns a member.
    pub fn get(&self, name: &str) -> Option<&'a Value> {
        self.map.get(name)
    }

    /// Returns a required member.
    ///
    /// # Errors
    /// [`Rule::MEMBER`] if it is missing.
    pub fn required(&self, name: &str) -> Result<&'a Value, R::Error> {
        self.get(name).ok_or_else(|| self.broken(R::MEMBER, name, "this member is required"))
    }

    fn typed<T>(&self, name: &str, value: Option<T>, needed: &str) -> Result<T, R::Error> {
        value.ok_or_else(|| self.broken(R::MEMBER, name, needed))
    }

    /// Reads a required string.
    ///
    /// # Errors
    /// [`Rule::MEMBER`] if it is missing, or of another type.
    pub fn text(&self, name: &str) -> Result<&'a str, R::Error> {
        self.typed(name, self.required(name)?.as_str(), "a string is needed here")
    }

    /// Reads an optional string.
    ///
    /// # Errors
    /// [`Rule::MEMBER`] if it is of another type.
    pub fn optional_text(&self, name: &str) -> Result<Option<&'a str>, R::Error> {
        self.optional(name, Self::text)
    }

    /// Reads a member with `read` if the object has it.
    ///
    /// # Errors
    /// Those of `read`.
    pub fn optional<T>(
        &self,
        name: &str,
        read: impl FnOnce(&Self, &str) -> Result<T, R::Error>,
    ) -> Result<Option<T>, R::Error> {
        self.has(name).then(|| read(self, name)).transpose()
    }

    /// Reads an optional boolean.
    ///
    /// # Errors
    /// [`Rule::MEMBER`] if it is of another type.
    pub fn optional_bool(&self, name: &str) -> Result<Option<bool>, R::Error> {
        let value =
            self.get(name).map(|value| self.typed(name, value.as_bool(), "true or false is needed here"));
        value.transpose()
    }

    /// Reads an optional number.
    ///
    /// # Errors
    /// [`Rule::MEMBER`] if it is of another type.
    pub fn optional_number(&self, name: &str) -> Result<Option<f64>, R::Error> {
        let value = self.get(name).map(|value| self.typed(name, value.as_f64(), "a number is needed here"));
        value.transpose()
    }

    /// Reads an optional integer.
    ///
    /// # Errors
    /// [`Rule::MEMBER`] if it is of another type.
    pub fn optional_integer(&self, name: &str) -> Result<Option<i64>, R::Error> {
        let value = self.get(name).map(|value| self.typed(name, value.as_i64(), "an integer is needed here"));
        value.transpose()
    }

    /// Opens a required object.
    ///
    /// # Errors
    /// [`Rule::MEMBER`] if it is missing, or of another type.
    pub fn object(&self, name: &str) -> Result<Members<'a, R>, R::Error> {
        Members::of(self.required(name)?, self.pointer(name))
    }

    /// Opens an optional object.
    ///
    /// # Errors
    /// [`Rule::MEMBER`] if it is of another type.
    pub fn optional_object(&self, name: &str) -> Result<Option<Members<'a, R>>, R::Error> {
        self.optional(name, Self::object)
    }

    /// Reads a required list of strings.
    ///
    /// # Errors
    /// [`Rule::MEMBER`] if it is missing, or has an item of another type.
    pub fn texts(&self, name: &str) -> Result<Vec<&'a str>, R::Error> {
        let items = self.typed(name, self.required(name)?.as_array(), "a list of strings is needed here")?;
        let item = |(i, item): (usize, &'a Value)| {
            let broken = || {
                R::MEMBER.broken(format!("{}/{i}", self.pointer(name)), "a string is needed here".to_owned())
            };
            item.as_str().ok_or_else(broken)
        };
        items.iter().enumerate().map(item).collect()
    }

    /// Reads a required string that is one of `known`.
    ///
    /// # Errors
    /// `rule` if it is another string, [`Rule::MEMBER`] if it is missing, or of another type.
    pub fn word(&self, rule: R, name: &str, known: &[&str]) -> Result<&'a str, R::Error> {
        let word = self.text(name)?;
        match known.contains(&word) {
            true => Ok(word),
            false => Err(self.unfit(rule, name, word, &known.join(" or "))),
        }
    }

    /// Returns the JSON pointer of a member.
    pub fn pointer(&self, name: &str) -> String {
        format!("{}/{}", self.at, pointer_step(name))
    }

    /// Returns the error for a rule that a member breaks.
    pub fn broken(&self, rule: R, name: &str, detail: impl Into<String>) -> R::Error {
        rule.broken(self.pointer(name), detail.into())
    }

    /// Returns the error for a rule that a member's value breaks.
    pub fn unfit(&self, rule: R, name: &str, found: &str, needed: &str) -> R::Error {
        self.broken(rule, name, format!("found {}, needed {needed}", quote(found)))
    }
}

/// Quotes an untrusted value for an error message: escaped, and cut to [`MAX_QUOTE`] bytes.
pub fn quote(value: &str) -> String {
    let end = value.floor_char_boundary(MAX_QUOTE);
    let more = if end < value.len() { "…" } else { "" };
    format!("\"{}{more}\"", value[..end].escape_debug())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn hostile_text_is_repeated_escaped_and_short() {
        let quoted = quote(&format!("\u{1b}[31m\u{202e}{}", "x".repeat(1000)));
        assert!(quoted.starts_with("\"\\u{1b}[31m\\u{202e}xx"), "{quoted}");
        assert!(quoted.ends_with("…\"") && quoted.chars().count() < 120, "{quoted}");
    }
}
