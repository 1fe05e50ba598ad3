//! CWT claims in a header (RFC 8392, RFC 9597).

use std::ops::Range;

use bytes::Bytes;

use super::value::wrong_type;
use super::{HEADER_LIMITS, read_entries};
use crate::cbor::{self, Item, Value};
use crate::label::{Label, labels};
use crate::limits;
use crate::malformed::{Malformed, MalformedKind};

/// Tag of a date as a number (RFC 8949, section 3.4.2). CWT forbids the tag; some signers write it.
const EPOCH_TIME: u64 = 1;

/// CWT claims of a protected header (the map under label 15).
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct CwtClaims {
    bytes: Bytes,
    entries: Vec<(Label, Range<usize>)>,
    iss: Option<String>,
    sub: Option<String>,
    exp: Option<i64>,
    nbf: Option<i64>,
    iat: Option<i64>,
}

impl CwtClaims {
    /// Returns the issuer, `iss` (claim 1).
    pub fn iss(&self) -> Option<&str> {
        self.iss.as_deref()
    }

    /// Returns the subject, `sub` (claim 2).
    pub fn sub(&self) -> Option<&str> {
        self.sub.as_deref()
    }

    /// Returns the expiry time, `exp` (claim 4), in Unix seconds without fraction.
    pub fn exp(&self) -> Option<i64> {
        self.exp
    }

    /// Returns the not-before time, `nbf` (claim 5), in Unix seconds without fraction.
    pub fn nbf(&self) -> Option<i64> {
        self.nbf
    }

    /// Returns the time of issue, `iat` (claim 6), in Unix seconds without fraction.
    pub fn iat(&self) -> Option<i64> {
        self.iat
    }

    /// Returns all claim keys, in the order of the map.
    pub fn labels(&self) -> impl Iterator<Item = &Label> {
        self.entries.iter().map(|(label, _)| label)
    }

    /// Returns the value of any claim. Its item offsets count from the value's first byte.
    pub fn get(&self, label: &Label) -> Option<Value<'_>> {
        let (_, span) = self.entries.iter().find(|(candidate, _)| candidate == label)?;
        let item = cbor::parse(self.bytes.get(span.clone())?, HEADER_LIMITS).ok()?;
        Some(item.value)
    }

    /// Reads the claims. The item's offsets must count from the start of `message`.
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
        // Beyond `i64` a date is the first or the last one.
        value @ Value::Unsigned(_) => value.as_i64().or(Some(i64::MAX)),
        value @ Value::Negative(_) => value.as_i64().or(Some(i64::MIN)),
        _ => None,
    };
    seconds.ok_or_else(|| wrong_type(item, what, "a number of seconds"))
}

/// Returns the seconds rounded down, within the range of `i64`; `None` for infinity and for no number.
fn whole_seconds(seconds: f64) -> Option<i64> {
    seconds.is_finite().then(|| seconds.floor() as i64)
}

/// Checks the `StringOrURI` type of RFC 8392: text with a colon must be a URI. Only the scheme and the set of
/// characters are checked.
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
