//! CWT claims in a header (RFC 8392, RFC 9597).

use std::ops::Range;

use bytes::Bytes;

use super::label::{Label, labels, wrong_type};
use super::{HEADER_LIMITS, read_entries};
use crate::cbor::{self, Item, Value};
use crate::limits;
use crate::malformed::{Malformed, MalformedKind};

/// The tag of a date as a number (RFC 8949, section 3.4.2). CWT forbids it; some signers write it.
const EPOCH_TIME: u64 = 1;

/// The map under label 15 of a protected header.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Claims {
    bytes: Bytes,
    entries: Vec<(Label, Range<usize>)>,
    iss: Option<String>,
    sub: Option<String>,
    exp: Option<i64>,
    nbf: Option<i64>,
    iat: Option<i64>,
}

impl Claims {
    /// Who says it.
    pub fn iss(&self) -> Option<&str> {
        self.iss.as_deref()
    }

    /// What it is about.
    pub fn sub(&self) -> Option<&str> {
        self.sub.as_deref()
    }

    /// From when on it must not be accepted, in Unix seconds (a fraction is cut off).
    pub fn exp(&self) -> Option<i64> {
        self.exp
    }

    /// Before when it must not be accepted, in Unix seconds (a fraction is cut off).
    pub fn nbf(&self) -> Option<i64> {
        self.nbf
    }

    /// When the issuer says it was issued, in Unix seconds (a fraction is cut off).
    pub fn iat(&self) -> Option<i64> {
        self.iat
    }

    /// Every claim key, in the order of the map.
    pub fn labels(&self) -> impl Iterator<Item = &Label> {
        self.entries.iter().map(|(label, _)| label)
    }

    /// Any claim. Offsets in it count from the value's first byte.
    pub fn get(&self, label: &Label) -> Option<Value<'_>> {
        let (_, span) = self.entries.iter().find(|(candidate, _)| candidate == label)?;
        let item = cbor::parse(self.bytes.get(span.clone())?, HEADER_LIMITS).ok()?;
        Some(item.value)
    }

    /// Reads the claims; `message` is what the item's offsets count in.
    pub(super) fn read(item: &Item<'_>, message: &Bytes) -> Result<Self, Malformed> {
        let entries = read_entries(item, "CWT claims (15)")?;
        let find = |key| entries.get(&Label::Int(key));
        Ok(Self {
            iss: find(labels::ISS).map(iss).transpose()?,
            sub: find(labels::SUB).map(|item| text(item, "sub").map(str::to_owned)).transpose()?,
            exp: find(labels::EXP).map(|item| date(item, "exp")).transpose()?,
            nbf: find(labels::NBF).map(|item| date(item, "nbf")).transpose()?,
            iat: find(labels::IAT).map(|item| date(item, "iat")).transpose()?,
            bytes: message.slice(item.span()),
            entries: entries.spans_from(item.offset),
        })
    }
}

fn iss(item: &Item<'_>) -> Result<String, Malformed> {
    let iss = text(item, "iss")?;
    let limit = limits::ISS_CHARACTERS;
    if iss.is_empty() || iss.chars().count() > limit {
        return Err(Malformed::at(item.offset, MalformedKind::IssLength { limit }));
    }
    Ok(iss.to_owned())
}

fn text<'i>(item: &'i Item<'_>, what: &'static str) -> Result<&'i str, Malformed> {
    item.value.as_text().ok_or_else(|| wrong_type(item, what, "text"))
}

fn date(item: &Item<'_>, what: &'static str) -> Result<i64, Malformed> {
    let number = match &item.value {
        Value::Tag(EPOCH_TIME, content) => content,
        _ => item,
    };
    let seconds = match &number.value {
        Value::Float(seconds) => whole_seconds(*seconds),
        value => value.as_i64(),
    };
    seconds.ok_or_else(|| wrong_type(item, what, "a number of seconds"))
}

/// The seconds without their fraction; dates beyond 2^53 seconds have none and mean nothing.
fn whole_seconds(seconds: f64) -> Option<i64> {
    const EXACT: f64 = 9_007_199_254_740_992.0;
    (seconds.abs() <= EXACT).then(|| seconds.floor() as i64)
}

/// StringOrURI of RFC 8392: text with a colon must be a URI. Checked: a scheme, and no character that no URI has.
pub(super) fn is_string_or_uri(text: &str) -> bool {
    let Some((scheme, _)) = text.split_once(':') else {
        return true;
    };
    let in_scheme = |byte: u8| byte.is_ascii_alphanumeric() || b"+-.".contains(&byte);
    let in_uri = |byte: u8| byte.is_ascii_graphic() && !b"\"<>\\^`{|}".contains(&byte);
    scheme.starts_with(|first: char| first.is_ascii_alphabetic())
        && scheme.bytes().all(in_scheme)
        && text.bytes().all(in_uri)
}
