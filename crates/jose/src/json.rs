//! Strict JSON (RFC 8259, with the rules of RFC 7493 that make all parsers agree).
//!
//! Refused at any depth: duplicate member names in one object (after decoding escapes), lone surrogates, invalid UTF-8,
//! a byte order mark, text after the value, numbers too large for a double, and nesting deeper than the limit. Errors
//! contain the position: byte offset and JSON pointer.
//!
//! A scanner that builds no values checks the text first, then `serde_json` parses it: both must accept it.
//!
//! A text that a decision depends on is read with [`CheckedJson::unambiguous`] or [`parse_unambiguous`], which also
//! refuse numbers that parsers read differently. A test of the workspace forbids the parsers of `serde_json` in crates
//! that decide: these give member names with the prefix `$serde_json::private::` a special meaning, and accept
//! duplicate members.
//!
//! Not here: further rules for numbers. A [`Value`] still distinguishes `1` from `1.0` and `-0`.

mod escapes;
mod numbers;
mod scan;

pub use escapes::unescaped;
pub use scan::RESERVED;

use std::fmt;

use serde::Deserialize;
use serde::de::DeserializeOwned;
use serde_json::Value;

use crate::number;

/// Maximum nesting that can be configured; `serde_json` parses no deeper.
pub const MAX_DEPTH: usize = 127;
/// Default for [`Limits::depth`].
pub const DEFAULT_DEPTH: usize = 64;
/// Default for [`Limits::bytes`].
pub const DEFAULT_BYTES: usize = 8 << 20;

/// Limits on a text from an untrusted source.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Limits {
    /// Maximum bytes of the text.
    pub bytes: usize,
    /// Maximum number of open arrays and objects; at most [`MAX_DEPTH`].
    pub depth: usize,
}

impl Limits {
    /// Returns the limits of a text of `bytes` bytes that is in memory already: any length, nested up to [`MAX_DEPTH`].
    pub const fn whole(bytes: usize) -> Self {
        Self { bytes, depth: MAX_DEPTH }
    }
}

impl Default for Limits {
    fn default() -> Self {
        Self { bytes: DEFAULT_BYTES, depth: DEFAULT_DEPTH }
    }
}

/// The reason why a text was refused, with the position.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("at byte {offset}, {}: {kind}", JsonPointer(pointer))]
pub struct JsonError {
    /// JSON pointer (RFC 6901) to the value that was being parsed; empty for the whole text.
    pub pointer: String,
    /// Byte offset of the error. For a [`JsonErrorKind::Shape`], the position before or just after the value.
    pub offset: usize,
    /// The kind of error.
    pub kind: JsonErrorKind,
}

/// The kind of a [`JsonError`].
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum JsonErrorKind {
    /// The text is longer than [`Limits::bytes`].
    #[error("the text is longer than {0} bytes")]
    TooLong(usize),
    /// The text is not UTF-8.
    #[error("not UTF-8")]
    NotUtf8,
    /// The text ends inside a value.
    #[error("the text ends too early")]
    Truncated,
    /// Another token is required at this position.
    #[error("expected {0}")]
    Expected(&'static str),
    /// Text follows the value.
    #[error("something follows the value")]
    Trailing,
    /// The nesting exceeds [`Limits::depth`].
    #[error("nested deeper than {0}")]
    TooDeep(usize),
    /// The object already has a member with this name.
    #[error("a second member named {0:?}")]
    Duplicate(String),
    /// The member name has the prefix [`RESERVED`], which `serde_json` treats specially.
    #[error("the member name {0:?} is reserved")]
    ReservedName(String),
    /// A string contains an unescaped control character.
    #[error("a control character in a string")]
    Control,
    /// A backslash is not followed by a valid escape.
    #[error("no such escape")]
    Escape,
    /// A surrogate escape has no counterpart.
    #[error("a lone surrogate")]
    LoneSurrogate,
    /// The number is too large for a double.
    #[error("a number too large for a double")]
    NumberRange,
    /// The number differs between parsers that use doubles and others.
    #[error(
        "a number that some readers take for another: an integer beyond 2^53 - 1, or more digits than a double holds"
    )]
    Ambiguous,
    /// The text is valid JSON but does not match the target type; with the message of its deserializer.
    #[error("{0}")]
    Shape(String),
}

/// The rules that a text has to follow. A text that is passed on as it is, and read only in part, needs fewer.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum TextRules {
    /// All rules of this module.
    Strict,
    /// All rules of this module, but numbers may be too large for a double.
    AnyNumbers,
    /// JSON without duplicate and reserved member names. Numbers of any size and lone surrogates are accepted.
    DistinctNames,
    /// JSON (RFC 8259).
    Syntax,
}

impl JsonError {
    /// Returns `true` if the text is not JSON at all.
    #[must_use]
    pub const fn is_syntax(&self) -> bool {
        use JsonErrorKind::{Control, Escape, Expected, NotUtf8, Trailing, Truncated};
        matches!(self.kind, NotUtf8 | Truncated | Expected(_) | Trailing | Control | Escape)
    }
}

/// A text that passed [`check`].
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct CheckedJson<'a>(&'a str);

/// Checks that the bytes are strict JSON within the limits.
///
/// # Errors
/// [`JsonError`] at the first violation.
pub fn check(bytes: &[u8], limits: Limits) -> Result<CheckedJson<'_>, JsonError> {
    let limits = Limits { depth: limits.depth.min(MAX_DEPTH), ..limits };
    check_rules(bytes, limits, TextRules::Strict).map(CheckedJson)
}

/// Checks that the bytes are JSON within the limits, by these rules, and returns the text. The depth has no other
/// maximum, since the text is not parsed.
///
/// # Errors
/// [`JsonError`] at the first violation.
pub fn check_rules(bytes: &[u8], limits: Limits, rules: TextRules) -> Result<&str, JsonError> {
    if bytes.len() > limits.bytes {
        return Err(at_root(limits.bytes, JsonErrorKind::TooLong(limits.bytes)));
    }
    let text =
        std::str::from_utf8(bytes).map_err(|flaw| at_root(flaw.valid_up_to(), JsonErrorKind::NotUtf8))?;
    scan::scan(text, limits.depth, rules)?;
    Ok(text)
}

/// Parses strict JSON within the limits, with the errors of [`check`].
pub fn parse_strict(bytes: &[u8], limits: Limits) -> Result<Value, JsonError> {
    check(bytes, limits)?.value()
}

/// Deserializes strict JSON within the limits, with the errors of [`check`] and [`CheckedJson::read`].
pub fn read_strict<T: DeserializeOwned>(bytes: &[u8], limits: Limits) -> Result<T, JsonError> {
    check(bytes, limits)?.read()
}

/// Checks a text in memory, of any length and nested up to [`MAX_DEPTH`].
pub fn check_text(text: &str) -> Result<CheckedJson<'_>, JsonError> {
    check(text.as_bytes(), Limits::whole(text.len()))
}

/// Checks a text like [`check_text`], but accepts numbers that are too large for a double. A text with such a number has no
/// [`CheckedJson::value`], and [`CheckedJson::first_inexact_number`] returns the number.
///
/// # Errors
/// [`JsonError`] at the first violation.
pub fn check_any_numbers(text: &str) -> Result<CheckedJson<'_>, JsonError> {
    check_rules(text.as_bytes(), Limits::whole(text.len()), TextRules::AnyNumbers).map(CheckedJson)
}

/// Parses a strict JSON text of any length, nested up to [`MAX_DEPTH`].
pub fn parse_text(text: &str) -> Result<Value, JsonError> {
    check_text(text)?.value()
}

/// Deserializes a strict JSON text of any length, nested up to [`MAX_DEPTH`].
pub fn read_text<'a, T: Deserialize<'a>>(text: &'a str) -> Result<T, JsonError> {
    check_text(text)?.read()
}

/// Deserializes strict JSON bytes of any length, nested up to [`MAX_DEPTH`].
pub fn read_bytes<'a, T: Deserialize<'a>>(bytes: &'a [u8]) -> Result<T, JsonError> {
    check(bytes, Limits::whole(bytes.len()))?.read()
}

/// Parses a strict JSON text that a decision depends on; see [`CheckedJson::unambiguous`].
pub fn parse_unambiguous(text: &str) -> Result<Value, JsonError> {
    check_text(text)?.unambiguous()
}

impl<'a> CheckedJson<'a> {
    /// Returns the checked text.
    pub const fn text(self) -> &'a str {
        self.0
    }

    /// Parses the text into a [`Value`].
    ///
    /// # Errors
    /// Only if the scanner and `serde_json` disagree about the text.
    pub fn value(self) -> Result<Value, JsonError> {
        // A checked text fails here only if the two parsers disagree.
        serde_json::from_str(self.0).map_err(|e| self.misfit(String::new(), &e))
    }

    /// Parses the text if all JSON parsers read the same numbers in it: no integer beyond 2^53 - 1 in either direction,
    /// and no number with more digits than a double holds.
    ///
    /// # Errors
    /// [`JsonErrorKind::Ambiguous`] for another number.
    pub fn unambiguous(self) -> Result<Value, JsonError> {
        match self.first_ambiguous_number() {
            Some(offset) => Err(at_root(offset, JsonErrorKind::Ambiguous)),
            None => self.value(),
        }
    }

    /// Returns the byte offset of the first number whose canonical form is a different number
    /// ([`number::is_exact`]); `None` if there is none.
    pub fn first_inexact_number(self) -> Option<usize> {
        numbers::first_number(self, |number| !number::is_exact(number))
    }

    /// Returns the byte offset of the first number that parsers may read differently
    /// ([`number::is_unambiguous`]); `None` if there is none.
    pub fn first_ambiguous_number(self) -> Option<usize> {
        numbers::first_number(self, |number| !number::is_unambiguous(number))
    }

    /// Deserializes the text into a type. The type decides whether unknown members are refused.
    ///
    /// # Errors
    /// [`JsonErrorKind::Shape`] if the text does not match the type.
    pub fn read<T: Deserialize<'a>>(self) -> Result<T, JsonError> {
        let mut reader = serde_json::Deserializer::from_str(self.0);
        serde_path_to_error::deserialize(&mut reader).map_err(|e| self.misfit(pointer(e.path()), e.inner()))
    }

    fn misfit(self, pointer: String, error: &serde_json::Error) -> JsonError {
        JsonError { pointer, offset: offset(self.0, error), kind: JsonErrorKind::Shape(error.to_string()) }
    }
}

/// Escapes a member name as a step of a JSON pointer (RFC 6901, section 3).
pub fn pointer_step(member: &str) -> String {
    member.replace('~', "~0").replace('/', "~1")
}

fn at_root(offset: usize, kind: JsonErrorKind) -> JsonError {
    JsonError { pointer: String::new(), offset, kind }
}

fn pointer(path: &serde_path_to_error::Path) -> String {
    use serde_path_to_error::Segment;
    path.iter().fold(String::new(), |before, segment| {
        before
            + &match segment {
                Segment::Seq { index } => format!("/{index}"),
                Segment::Map { key } => pointer_token(key),
                Segment::Enum { .. } | Segment::Unknown => String::new(),
            }
    })
}

/// Formats a member name as a step of a JSON pointer.
fn pointer_token(name: &str) -> String {
    format!("/{}", pointer_step(name))
}

/// Computes a byte offset from `serde_json`'s line and column, which start at 1.
fn offset(text: &str, error: &serde_json::Error) -> usize {
    let lines = text.split_inclusive('\n');
    let before: usize = lines.take(error.line().saturating_sub(1)).map(str::len).sum();
    before + error.column().saturating_sub(1)
}

/// Formats a JSON pointer for an error message.
struct JsonPointer<'a>(&'a str);

impl fmt::Display for JsonPointer<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.0 {
            "" => f.write_str("top level"),
            pointer => f.write_str(pointer),
        }
    }
}
