//! Names that modern clients repeat in an HTTP header (section 1.1).

use data_encoding::BASE64;
use http::{HeaderMap, HeaderValue};

/// The content of a header that repeats a value of the body.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Mirrored {
    /// The header is absent.
    Absent,
    /// The decoded value of the header.
    Says(String),
    /// The header occurs more than once, or cannot be decoded.
    Unreadable,
}

impl Mirrored {
    /// Returns whether the header is present with exactly this value.
    pub fn says(&self, value: &str) -> bool {
        matches!(self, Self::Says(named) if named == value)
    }
}

/// Returns the value of a header that repeats a name: plain, or in base64 if a header cannot hold the name.
pub fn mirrored_value(name: &str) -> HeaderValue {
    let plain = name.bytes().all(|byte| (0x20..0x7f).contains(&byte))
        && name.trim() == name
        && !name.starts_with("=?");
    let encoded = || format!("=?base64?{}?=", BASE64.encode(name.as_bytes()));
    let text = if plain { name.to_owned() } else { encoded() };
    HeaderValue::from_str(&text).unwrap_or_else(|_| HeaderValue::from_static(""))
}

/// Reads the header with this name. A base64 value (`=?base64?…?=`) is decoded.
pub fn mirrored_name(headers: &HeaderMap, name: &str) -> Mirrored {
    let mut values = headers.get_all(name).iter();
    let (Some(value), None) = (values.next(), values.next()) else {
        return if headers.contains_key(name) { Mirrored::Unreadable } else { Mirrored::Absent };
    };
    let Ok(value) = value.to_str() else { return Mirrored::Unreadable };
    let Some(encoded) = value.strip_prefix("=?base64?").and_then(|rest| rest.strip_suffix("?=")) else {
        return Mirrored::Says(value.to_owned());
    };
    let decoded = BASE64.decode(encoded.as_bytes()).ok().and_then(|bytes| String::from_utf8(bytes).ok());
    decoded.map_or(Mirrored::Unreadable, Mirrored::Says)
}
