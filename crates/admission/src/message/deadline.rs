//! A deadline (reading V-15): RFC 3339 with an offset, and nothing that only resembles it.

use std::fmt;

use jiff::Timestamp;
use serde::{Deserialize, Serialize};

/// Digits of a second's fraction that are looked at. What follows is cut, which makes the deadline earlier.
const FRACTION_DIGITS: usize = 9;
/// The longest text of a time.
const MAX_TEXT: usize = 64;

/// A point in time, and how it was written: the text goes into the effective commitment as it is.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(try_from = "String", into = "String")]
pub struct Deadline {
    text: Box<str>,
    at: Timestamp,
}

/// The text is no time of RFC 3339.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("a time is written as 2026-01-31T23:59:59Z or with an offset (RFC 3339)")]
pub struct NotADeadline;

impl Deadline {
    /// Reads a time.
    pub fn parse(text: &str) -> Result<Deadline, NotADeadline> {
        let (seconds, fraction, offset) = split(text).ok_or(NotADeadline)?;
        let kept = &fraction[..fraction.len().min(FRACTION_DIGITS)];
        let point = if kept.is_empty() { "" } else { "." };
        let at = format!("{seconds}{point}{kept}{offset}").parse().map_err(|_| NotADeadline)?;
        Ok(Deadline { text: text.into(), at })
    }

    /// The text as it was written.
    pub fn as_str(&self) -> &str {
        &self.text
    }

    /// The point in time.
    pub const fn at(&self) -> Timestamp {
        self.at
    }

    /// Whether it has come: at the very deadline, it has.
    pub fn has_passed(&self, now: Timestamp) -> bool {
        now >= self.at
    }
}

/// `YYYY-MM-DDThh:mm:ss`, the digits of the fraction, and the offset.
fn split(text: &str) -> Option<(&str, &str, &str)> {
    let seconds = text.get(..19).filter(|_| text.len() <= MAX_TEXT)?;
    if !has_form(seconds, b"dddd-dd-ddTdd:dd:dd") {
        return None;
    }
    let rest = &text[19..];
    let (fraction, offset) = match rest.strip_prefix('.') {
        Some(rest) => rest.split_at(rest.bytes().take_while(u8::is_ascii_digit).count()),
        None => ("", rest),
    };
    let is_utc = offset.eq_ignore_ascii_case("z");
    let is_offset =
        offset.starts_with(['+', '-']) && has_form(&offset[1..], b"dd:dd") && &offset[1..3] < "24";
    let empty_fraction = rest.starts_with('.') && fraction.is_empty();
    ((is_utc || is_offset) && !empty_fraction).then_some((seconds, fraction, offset))
}

/// Whether the text has digits where the form has a `d`, and the form's characters (letters in either case) elsewhere.
fn has_form(text: &str, form: &[u8]) -> bool {
    text.len() == form.len()
        && text.bytes().zip(form).all(|(byte, form)| match form {
            b'd' => byte.is_ascii_digit(),
            _ => byte.eq_ignore_ascii_case(form),
        })
}

/// A time of ours.
impl From<Timestamp> for Deadline {
    fn from(at: Timestamp) -> Deadline {
        Deadline { text: at.to_string().into(), at }
    }
}

impl TryFrom<String> for Deadline {
    type Error = NotADeadline;

    fn try_from(text: String) -> Result<Deadline, NotADeadline> {
        Deadline::parse(&text)
    }
}

impl From<Deadline> for String {
    fn from(deadline: Deadline) -> String {
        deadline.text.into()
    }
}

impl fmt::Display for Deadline {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.text)
    }
}
