//! Strict JSON (RFC 8259, and the parts of RFC 7493 that make readings agree).
//!
//! Refused, at any depth: a member name that occurs twice in one object (escapes decoded), lone
//! surrogates, invalid UTF-8, a byte order mark, anything after the value, numbers too large for
//! a double, and nesting deeper than asked for. Errors say where: byte offset and JSON pointer.
//!
//! The text is checked first, by a reader that builds nothing, and then read by `serde_json`:
//! two parsers have to agree about what is accepted.
//!
//! A text that something is decided by is read with [`Checked::unambiguous`] or [`parse_unambiguous`], which refuse numbers
//! too that two readers take for different ones. A test of the workspace keeps `serde_json`'s own readers out of the crates that
//! decide: they give member names that begin with `$serde_json::private::` a meaning of their own, and let members repeat.
//!
//! Not here: rules for numbers beyond that. A [`Value`] still tells `1` from `1.0` and `-0`.

mod scan;

pub use scan::RESERVED;

use std::fmt;

use serde::Deserialize;
use serde::de::DeserializeOwned;
use serde_json::Value;

use crate::number;

/// The deepest nesting that can be allowed: `serde_json` reads no deeper.
pub const MAX_DEPTH: usize = 127;
/// The nesting allowed unless the caller says otherwise.
pub const DEFAULT_DEPTH: usize = 64;
/// The length allowed unless the caller says otherwise.
pub const DEFAULT_BYTES: usize = 8 << 20;

/// How much is read from a stranger.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Limits {
    /// The longest text, in bytes.
    pub bytes: usize,
    /// How many arrays and objects may be open at once; at most [`MAX_DEPTH`].
    pub depth: usize,
}

impl Default for Limits {
    fn default() -> Self {
        Self { bytes: DEFAULT_BYTES, depth: DEFAULT_DEPTH }
    }
}

/// Why a text was refused, and where.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("at byte {offset}, {}: {kind}", Place(pointer))]
pub struct JsonError {
    /// JSON pointer (RFC 6901) to the value being read; empty for the whole text.
    pub pointer: String,
    /// Bytes before the flaw; before or right behind the value for a [`JsonErrorKind::Shape`].
    pub offset: usize,
    /// What is wrong.
    pub kind: JsonErrorKind,
}

/// What is wrong with a text.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum JsonErrorKind {
    /// It is longer than allowed.
    #[error("the text is longer than {0} bytes")]
    TooLong(usize),
    /// It is not UTF-8.
    #[error("not UTF-8")]
    NotUtf8,
    /// It ends inside a value.
    #[error("the text ends too early")]
    Truncated,
    /// Something else should stand here.
    #[error("expected {0}")]
    Expected(&'static str),
    /// Something follows the value.
    #[error("something follows the value")]
    Trailing,
    /// Too many arrays and objects are open.
    #[error("nested deeper than {0}")]
    TooDeep(usize),
    /// The object has a member of this name already.
    #[error("a second member named {0:?}")]
    Duplicate(String),
    /// `serde_json` gives the name a meaning of its own, so it cannot be read as a name.
    #[error("the member name {0:?} is reserved")]
    ReservedName(String),
    /// A control character stands unescaped in a string.
    #[error("a control character in a string")]
    Control,
    /// A backslash starts no known escape.
    #[error("no such escape")]
    Escape,
    /// Half of a surrogate pair.
    #[error("a lone surrogate")]
    LoneSurrogate,
    /// No double is so large.
    #[error("a number too large for a double")]
    NumberRange,
    /// Readers that hold numbers as doubles see another number than readers that do not.
    #[error(
        "a number that some readers take for another: an integer beyond 2^53 - 1, or more digits than a double holds"
    )]
    Ambiguous,
    /// It is JSON, but not what was to be read; in the words of the type's reader.
    #[error("{0}")]
    Shape(String),
}

/// A text that passed [`check`].
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Checked<'a>(&'a str);

/// Checks that the text is strict JSON.
pub fn check(bytes: &[u8], limits: Limits) -> Result<Checked<'_>, JsonError> {
    if bytes.len() > limits.bytes {
        return Err(at_root(limits.bytes, JsonErrorKind::TooLong(limits.bytes)));
    }
    let text =
        std::str::from_utf8(bytes).map_err(|flaw| at_root(flaw.valid_up_to(), JsonErrorKind::NotUtf8))?;
    scan::scan(text, limits.depth.min(MAX_DEPTH))?;
    Ok(Checked(text))
}

/// Reads strict JSON.
pub fn parse_strict(bytes: &[u8], limits: Limits) -> Result<Value, JsonError> {
    check(bytes, limits)?.value()
}

/// Reads strict JSON into a type.
pub fn read_strict<T: DeserializeOwned>(bytes: &[u8], limits: Limits) -> Result<T, JsonError> {
    check(bytes, limits)?.read()
}

/// Checks a text of any length that is in memory already, nested up to [`MAX_DEPTH`].
pub fn check_text(text: &str) -> Result<Checked<'_>, JsonError> {
    check(text.as_bytes(), Limits { bytes: text.len(), depth: MAX_DEPTH })
}

/// Reads a strict JSON text of any length.
pub fn parse_text(text: &str) -> Result<Value, JsonError> {
    check_text(text)?.value()
}

/// Reads a strict JSON text of any length into a type.
pub fn read_text<'a, T: Deserialize<'a>>(text: &'a str) -> Result<T, JsonError> {
    check_text(text)?.read()
}

/// Reads strict JSON of any length into a type.
pub fn read_bytes<'a, T: Deserialize<'a>>(bytes: &'a [u8]) -> Result<T, JsonError> {
    check(bytes, Limits { bytes: bytes.len(), depth: MAX_DEPTH })?.read()
}

/// Reads a strict JSON text of any length that something is decided by; see [`Checked::unambiguous`].
pub fn parse_unambiguous(text: &str) -> Result<Value, JsonError> {
    check_text(text)?.unambiguous()
}

impl<'a> Checked<'a> {
    /// The text.
    pub const fn text(self) -> &'a str {
        self.0
    }

    /// The value.
    pub fn value(self) -> Result<Value, JsonError> {
        // What passed the check can only fail here if the two parsers differ.
        serde_json::from_str(self.0).map_err(|e| self.misfit(String::new(), &e))
    }

    /// The value, if every reader reads the same numbers in it: no integer beyond 2^53 - 1 in either direction, and no
    /// number with more digits than a double holds.
    pub fn unambiguous(self) -> Result<Value, JsonError> {
        match number::first_ambiguous(self) {
            Some(offset) => Err(at_root(offset, JsonErrorKind::Ambiguous)),
            None => self.value(),
        }
    }

    /// The value as a type. Whether unknown members are refused is the type's business.
    pub fn read<T: Deserialize<'a>>(self) -> Result<T, JsonError> {
        let mut reader = serde_json::Deserializer::from_str(self.0);
        serde_path_to_error::deserialize(&mut reader).map_err(|e| self.misfit(pointer(e.path()), e.inner()))
    }

    fn misfit(self, pointer: String, error: &serde_json::Error) -> JsonError {
        JsonError { pointer, offset: offset(self.0, error), kind: JsonErrorKind::Shape(error.to_string()) }
    }
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

/// A member's name as a step of a pointer.
fn pointer_token(name: &str) -> String {
    format!("/{}", name.replace('~', "~0").replace('/', "~1"))
}

/// `serde_json` counts lines and columns, from 1.
fn offset(text: &str, error: &serde_json::Error) -> usize {
    let lines = text.split_inclusive('\n');
    let before: usize = lines.take(error.line().saturating_sub(1)).map(str::len).sum();
    before + error.column().saturating_sub(1)
}

/// Shows a pointer in an error.
struct Place<'a>(&'a str);

impl fmt::Display for Place<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.0 {
            "" => f.write_str("top level"),
            pointer => f.write_str(pointer),
        }
    }
}
