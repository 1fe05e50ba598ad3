//! A reader for the members of a JSON object in a message. Tracks the JSON pointer, so that a [`Flaw`] names its
//! position.

use std::collections::BTreeMap;
use std::ops::RangeInclusive;

use jose::json::{self, pointer_step};
use serde_json::value::RawValue;

use super::{Deadline, Flaw};
use crate::digest::Digest;
use crate::glob::Pattern;
use crate::limits::{MAX_INTEGER, MAX_METERS, MAX_NAME, MAX_PATTERNS};
use crate::name::is_name;
use crate::reason::Reason;
use decimal::{Decimal, NotDecimal};

type Raw<'a> = &'a RawValue;

/// The members of a JSON object that have not been taken yet, with checked texts.
pub(super) struct Members<'a> {
    at: String,
    members: BTreeMap<String, Raw<'a>>,
}

impl<'a> Members<'a> {
    /// Opens a whole message, which must be an object in strict JSON, with numbers of any size.
    pub fn of_message(text: &'a str) -> Result<Members<'a>, Flaw> {
        json::check_any_numbers(text).map_err(|error| malformed(&error.pointer, error.kind.to_string()))?;
        Members::open(text, String::new())
    }

    fn open(text: &'a str, at: String) -> Result<Members<'a>, Flaw> {
        match serde_json::from_str(text) {
            Ok(members) => Ok(Members { at, members }),
            Err(_) => Err(malformed(&at, "an object is needed here")),
        }
    }

    /// Refuses members that have not been taken: the schema does not know them.
    pub fn close(self) -> Result<(), Flaw> {
        match self.members.keys().next() {
            Some(name) => Err(malformed(&self.pointer(name), "this is not a member of the message")),
            None => Ok(()),
        }
    }

    fn take(&mut self, name: &str) -> Option<(Raw<'a>, String)> {
        Some((self.members.remove(name)?, self.pointer(name)))
    }

    fn need(&mut self, name: &str) -> Result<(Raw<'a>, String), Flaw> {
        self.take(name).ok_or_else(|| malformed(&self.pointer(name), "this member is missing"))
    }

    fn pointer(&self, name: &str) -> String {
        format!("{}/{}", self.at, pointer_step(name))
    }

    /// Takes a required text with a number of characters in this range.
    pub fn text(&mut self, name: &str, characters: RangeInclusive<usize>) -> Result<String, Flaw> {
        let (raw, at) = self.need(name)?;
        text(raw, &at, characters)
    }

    /// Takes an optional text with a number of characters in this range.
    pub fn optional_text(
        &mut self,
        name: &str,
        characters: RangeInclusive<usize>,
    ) -> Result<Option<String>, Flaw> {
        self.take(name).map(|(raw, at)| text(raw, &at, characters)).transpose()
    }

    /// Takes a required name that can be used in a record: 1 to [`MAX_NAME`] characters, no control characters.
    pub fn name(&mut self, name: &str) -> Result<String, Flaw> {
        let (raw, at) = self.need(name)?;
        checked_name(text(raw, &at, 1..=MAX_NAME)?, &at)
    }

    /// Takes an optional text that `known` maps to a value; refuses other texts.
    pub fn optional_word<T>(
        &mut self,
        name: &str,
        known: impl Fn(&str) -> Option<T>,
    ) -> Result<Option<T>, Flaw> {
        let Some((raw, at)) = self.take(name) else { return Ok(None) };
        let word = text(raw, &at, 0..=MAX_NAME)?;
        known(&word).map(Some).ok_or_else(|| malformed(&at, "this is not one of its values"))
    }

    /// Takes a required digest.
    pub fn digest(&mut self, name: &str) -> Result<Digest, Flaw> {
        let pointer = self.pointer(name);
        self.optional_digest(name)?.ok_or_else(|| malformed(&pointer, "this member is missing"))
    }

    /// Takes an optional digest.
    pub fn optional_digest(&mut self, name: &str) -> Result<Option<Digest>, Flaw> {
        let Some((raw, at)) = self.take(name) else { return Ok(None) };
        let text = text(raw, &at, 0..=usize::MAX)?;
        Digest::parse(&text).map(Some).map_err(|error| malformed(&at, error.to_string()))
    }

    /// Takes an optional RFC 3339 time with an offset.
    pub fn optional_deadline(&mut self, name: &str) -> Result<Option<Deadline>, Flaw> {
        let Some((raw, at)) = self.take(name) else { return Ok(None) };
        let deadline = text(raw, &at, 0..=MAX_NAME).ok().and_then(|text| Deadline::parse(&text).ok());
        let flaw =
            || flaw(&at, Reason::MalformedDeadline, "a time of RFC 3339 with an offset is needed here");
        deadline.map(Some).ok_or_else(flaw)
    }

    /// Takes an optional integer from `least` to [`MAX_INTEGER`]. The schema's integers include `1.0` and `1e2`.
    pub fn optional_integer(&mut self, name: &str, least: u64) -> Result<Option<u64>, Flaw> {
        let Some((raw, at)) = self.take(name) else { return Ok(None) };
        let needed = || malformed(&at, format!("a whole number of at least {least} is needed here"));
        let too_large = || flaw(&at, Reason::OutOfRange, "the number is larger than 2^53 - 1");
        let number = match Decimal::read(raw.get()) {
            Ok(number) if number.is_whole() => number,
            Err(NotDecimal::TooLarge) => return Err(too_large()),
            _ => return Err(needed()),
        };
        match number.to_u64() {
            Some(whole) if whole < least => Err(needed()),
            Some(whole) if whole <= MAX_INTEGER => Ok(Some(whole)),
            _ => Err(too_large()),
        }
    }

    /// Takes an optional list of at most [`MAX_PATTERNS`] patterns over tool names.
    pub fn optional_patterns(&mut self, name: &str) -> Result<Option<Vec<Pattern>>, Flaw> {
        let Some((raw, at)) = self.take(name) else { return Ok(None) };
        let texts: Vec<String> =
            serde_json::from_str(raw.get()).map_err(|_| malformed(&at, "a list of texts is needed here"))?;
        if texts.len() > MAX_PATTERNS {
            return Err(flaw(&at, Reason::OutOfRange, format!("at most {MAX_PATTERNS} patterns are kept")));
        }
        let pattern = |text: &String| {
            Pattern::new(text).map_err(|error| flaw(&at, Reason::OutOfRange, error.to_string()))
        };
        texts.iter().map(pattern).collect::<Result<_, _>>().map(Some)
    }

    /// Takes an optional object with 1 to [`MAX_METERS`] meters and amounts, each more than zero. An empty object is
    /// refused with the reason `empty`.
    pub fn optional_meters(
        &mut self,
        name: &str,
        empty: Reason,
    ) -> Result<Option<BTreeMap<String, Decimal>>, Flaw> {
        let Some((raw, at)) = self.take(name) else { return Ok(None) };
        let object = Members::open(raw.get(), at)?;
        match object.members.len() {
            0 => return Err(object.flaw(empty, "at least one meter is needed here")),
            1..=MAX_METERS => {}
            _ => {
                return Err(object.flaw(Reason::OutOfRange, &format!("at most {MAX_METERS} meters are kept")));
            }
        }
        let meter = |(name, raw): (&String, &Raw<'_>)| {
            let at = object.pointer(name);
            Ok((checked_name(name.clone(), &at)?, amount(raw.get(), &at)?))
        };
        object.members.iter().map(meter).collect::<Result<_, _>>().map(Some)
    }

    /// Takes a required object.
    pub fn object(&mut self, name: &str) -> Result<Members<'a>, Flaw> {
        let (raw, at) = self.need(name)?;
        Members::open(raw.get(), at)
    }

    /// Takes an optional object.
    pub fn optional_object(&mut self, name: &str) -> Result<Option<Members<'a>>, Flaw> {
        self.take(name).map(|(raw, at)| Members::open(raw.get(), at)).transpose()
    }

    /// Takes the text of a required object without parsing it.
    pub fn object_text(&mut self, name: &str) -> Result<String, Flaw> {
        let (raw, at) = self.need(name)?;
        match raw.get().starts_with('{') {
            true => Ok(raw.get().to_owned()),
            false => Err(malformed(&at, "an object is needed here")),
        }
    }

    /// Creates a [`Flaw`] of this object as a whole.
    pub fn flaw(&self, reason: Reason, what: &str) -> Flaw {
        flaw(&self.at, reason, what)
    }

    /// Creates a [`Flaw`] of one of the object's members.
    pub fn flaw_of(&self, name: &str, reason: Reason, what: &str) -> Flaw {
        flaw(&self.pointer(name), reason, what)
    }
}

fn text(raw: Raw<'_>, at: &str, characters: RangeInclusive<usize>) -> Result<String, Flaw> {
    let text: String = serde_json::from_str(raw.get()).map_err(|_| malformed(at, "a text is needed here"))?;
    match characters.contains(&text.chars().count()) {
        true => Ok(text),
        false => {
            let (least, most) = characters.into_inner();
            Err(malformed(at, format!("{least} to {most} characters are needed here")))
        }
    }
}

fn checked_name(name: String, at: &str) -> Result<String, Flaw> {
    match is_name(&name) {
        true => Ok(name),
        false => {
            let what = format!("a name has 1 to {MAX_NAME} characters, none of them a control character");
            Err(malformed(at, what))
        }
    }
}

fn amount(number: &str, at: &str) -> Result<Decimal, Flaw> {
    match Decimal::read(number) {
        Ok(amount) if !amount.is_zero() => Ok(amount),
        Ok(_) | Err(NotDecimal::NotANumber | NotDecimal::Negative) => {
            Err(malformed(at, "a number of more than zero is needed here"))
        }
        Err(error @ (NotDecimal::TooLarge | NotDecimal::TooFine)) => {
            Err(flaw(at, Reason::OutOfRange, error.to_string()))
        }
    }
}

pub(super) fn malformed(pointer: &str, what: impl Into<String>) -> Flaw {
    flaw(pointer, Reason::Malformed, what)
}

fn flaw(pointer: &str, reason: Reason, what: impl Into<String>) -> Flaw {
    Flaw { pointer: pointer.to_owned(), reason, what: what.into() }
}
