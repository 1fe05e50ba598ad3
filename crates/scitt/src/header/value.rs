//! Types that several header entries share: labels, content types, and the error for another type.

use std::fmt;

use crate::cbor::{Item, Value};
use crate::label::Label;
use crate::malformed::{Malformed, MalformedKind};

impl Label {
    pub(crate) fn read(item: &Item<'_>) -> Result<Self, Malformed> {
        let text = || item.value.as_text().map(|text| Self::Text(text.to_owned()));
        let label = item.value.as_i64().map(Self::Int).or_else(text);
        label.ok_or(Malformed::at(item.offset, MalformedKind::LabelType))
    }
}

/// A content type: a media type, or the number of a CoAP content format.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub enum ContentType {
    /// A media type, such as `application/json`.
    Text(String),
    /// A CoAP content format (RFC 7252, section 12.3).
    Id(u64),
}

impl ContentType {
    pub(crate) fn read(item: &Item<'_>, what: &'static str) -> Result<Self, Malformed> {
        match &item.value {
            Value::Text(text) => Ok(Self::Text(text.clone().into_owned())),
            Value::Unsigned(id) => Ok(Self::Id(*id)),
            _ => Err(wrong_type(item, what, "text or an unsigned integer")),
        }
    }

    /// Returns the content type as CBOR.
    pub fn to_value(&self) -> Value<'static> {
        match self {
            Self::Text(text) => text.clone().into(),
            Self::Id(id) => (*id).into(),
        }
    }

    /// Returns the media type, or `None` for a CoAP content format.
    pub fn as_text(&self) -> Option<&str> {
        match self {
            Self::Text(text) => Some(text),
            Self::Id(_) => None,
        }
    }
}

impl From<&str> for ContentType {
    fn from(text: &str) -> Self {
        Self::Text(text.to_owned())
    }
}

impl fmt::Display for ContentType {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Text(text) => f.write_str(text),
            Self::Id(id) => id.fmt(f),
        }
    }
}

pub(crate) fn wrong_type(item: &Item<'_>, what: &'static str, expected: &'static str) -> Malformed {
    Malformed::at(item.offset, MalformedKind::Type { what, expected })
}
