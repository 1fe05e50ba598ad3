//! Names as modern clients mirror them in a header (section 1.1).

use data_encoding::BASE64;
use http::HeaderMap;

/// What a header says that repeats something of the body.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Mirrored {
    /// It is not there.
    Absent,
    /// It says this.
    Says(String),
    /// It is there twice, or cannot be read.
    Unreadable,
}

impl Mirrored {
    /// Whether it is there and says this.
    pub fn says(&self, value: &str) -> bool {
        matches!(self, Self::Says(said) if said == value)
    }
}

/// What the header of this name says, its base64 form decoded (`=?base64?…?=`).
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
