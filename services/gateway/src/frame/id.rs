//! The id of a request: its text and its type are kept (`"1"` is not `1`).

use std::fmt;
use std::hash::{Hash, Hasher};

/// An id as it was written. Two are equal if they are the same value of the same type, however it is written.
#[derive(Clone, Debug)]
pub struct RawId {
    text: String,
    value: Value,
}

#[derive(Clone, Debug, PartialEq, Eq, Hash)]
enum Value {
    Text(String),
    Whole(i128),
    /// A number that is no whole one, by the bits of its double.
    Other(u64),
}

impl RawId {
    /// Reads an id: a string or a number.
    pub fn read(text: &str) -> Option<Self> {
        Some(Self { value: Value::read(text)?, text: text.to_owned() })
    }

    /// An id that is this string.
    pub fn string(value: &str) -> Self {
        Self { text: serde_json::Value::from(value).to_string(), value: Value::Text(value.to_owned()) }
    }

    /// As it was written, quotes and all.
    pub fn text(&self) -> &str {
        &self.text
    }

    /// The string, if it is one.
    pub fn as_str(&self) -> Option<&str> {
        match &self.value {
            Value::Text(value) => Some(value),
            Value::Whole(_) | Value::Other(_) => None,
        }
    }
}

impl Value {
    fn read(text: &str) -> Option<Self> {
        match text.as_bytes().first()? {
            b'"' => Some(serde_json::from_str(text).map_or_else(|_| Self::Text(text.to_owned()), Self::Text)),
            b'-' | b'0'..=b'9' => text.parse().map(Self::Whole).ok().or_else(|| Self::double(text)),
            _ => None,
        }
    }

    fn double(text: &str) -> Option<Self> {
        let double: f64 = text.parse().ok()?;
        // `1.0` and `1e0` are 1 to nearly everybody who answers.
        let whole = format!("{double:.0}").parse().ok();
        match whole {
            Some(whole) if double.fract() == 0.0 => Some(Self::Whole(whole)),
            _ => Some(Self::Other(double.to_bits())),
        }
    }
}

impl PartialEq for RawId {
    fn eq(&self, other: &Self) -> bool {
        self.value == other.value
    }
}

impl Eq for RawId {}

impl Hash for RawId {
    fn hash<H: Hasher>(&self, state: &mut H) {
        self.value.hash(state);
    }
}

impl fmt::Display for RawId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.text)
    }
}
