//! Deadlines (reading V-15): RFC 3339 with an offset, and no similar notation.

use std::fmt;

use jiff::Timestamp;
use serde::{Deserialize, Serialize};

/// Digits of a second's fraction that are used. Further digits are cut, which makes the deadline earlier.
const FRACTION_DIGITS: usize = 9;
/// Maximum bytes of a time's text.
const MAX_TEXT: usize = 64;

/// A point in time with its original text, which goes unchanged into the effective commitment.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(try_from = "String", into = "String")]
pub struct Deadline {
    text: Box<str>,
    at: Timestamp,
}

/// The error for a text that is not an RFC 3339 time with an offset.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("a time is written as 2026-01-31T23:59:59Z or with an offset (RFC 3339)")]
pub struct NotADeadline;

impl Deadline {
    /// Parses a time.
    ///
    /// # Errors
    /// [`NotADeadline`] if the text is not RFC 3339 with an offset.
    pub fn parse(text: &str) -> Result<Deadline, NotADeadline> {
        let (seconds, fraction, offset) = split(text).ok_or(NotADeadline)?;
        let kept = &fraction[..fraction.len().min(FRACTION_DIGITS)];
        let point = if kept.is_empty() { "" } else { "." };
        let at = format!("{seconds}{point}{kept}{offset}").parse().map_err(|_| NotADeadline)?;
        Ok(Deadline { text: text.into(), at })
    }

    /// Returns the time as it was written.
    pub fn as_str(&self) -> &str {
        &self.text
    }

    /// Returns the point in time, cut to nanoseconds.
    pub const fn at(&self) -> Timestamp {
        self.at
    }

    /// Returns `true` from the deadline on: at the exact time, it has passed.
    pub fn has_passed(&self, now: Timestamp) -> bool {
        now >= self.at
    }
}

/// Splits a time into `YYYY-MM-DDThh:mm:ss`, the digits of the fraction, and the offset.
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

/// Returns `true` if the text has digits where the form has a `d`, and the form's characters (letters in either case)
/// elsewhere.
fn has_form(text: &str, form: &[u8]) -> bool {
    text.len() == form.len()
        && text.bytes().zip(form).all(|(byte, form)| match form {
            b'd' => byte.is_ascii_digit(),
            _ => byte.eq_ignore_ascii_case(form),
        })
}

/// Formats a time in UTC (`Z`).
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
