//! The two encodings of a VRF payload, and the canonical JSON in them (readings 1 and 2).
//!
//! Form B, `application/vrf+cbor`: one CBOR byte string that contains the canonical JSON. Form A,
//! `application/vrf+json`: the canonical JSON alone. The first byte distinguishes them.
//!
//! Not here: the meaning of members (`receipt`).

use jose::json::pointer_step;
use jose::json::{self, JsonError, JsonErrorKind};
use jose::members::quote;
use serde_json::Value;

use super::rule::VrfRule;
use crate::content_types::essence;
use crate::limits::{JSON_DEPTH, MAX_INTEGER};
use crate::violation::Violation;
use scitt::header::Header;

/// The encoding of a receipt in the payload.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Form {
    /// Bare canonical JSON: `application/vrf+json`.
    A,
    /// Canonical JSON in a CBOR byte string: `application/vrf+cbor`.
    B,
}

impl Form {
    /// Returns the form that a content type requires.
    pub fn of_content_type(name: &str) -> Option<Form> {
        match essence(name).as_str() {
            super::VRF_CBOR => Some(Form::B),
            super::VRF_JSON => Some(Form::A),
            _ => None,
        }
    }

    /// Returns the form that the content type of a statement requires.
    pub(super) fn of_header(header: &Header) -> Result<Form, Violation> {
        let content_type = header.content_type().and_then(|name| name.as_text());
        content_type
            .and_then(Form::of_content_type)
            .ok_or_else(|| VrfRule::Form.in_header("3", "the content type is neither vrf+cbor nor vrf+json"))
    }

    /// Returns the canonical JSON in a payload of this form.
    pub fn open(self, payload: &[u8]) -> Result<&[u8], Violation> {
        match (self, payload.first()) {
            (_, Some(0xa0..=0xbf)) => Err(whole(VrfRule::FormMap, "the payload is a CBOR map")),
            (Form::A, Some(b'{')) => Ok(payload),
            (Form::B, Some(0x40..=0x5f)) => byte_string(payload),
            (Form::A, _) => {
                Err(whole(VrfRule::Form, "application/vrf+json needs bare JSON, which begins with '{'"))
            }
            (Form::B, _) => Err(whole(VrfRule::Form, "application/vrf+cbor needs a CBOR byte string")),
        }
    }

    /// Encodes canonical JSON as a payload of this form.
    pub fn wrap(self, json: &[u8]) -> Vec<u8> {
        match self {
            Form::A => json.to_vec(),
            Form::B => [&head(json.len())[..], json].concat(),
        }
    }
}

/// Parses canonical JSON, and rejects JSON that parsers may interpret differently.
pub(crate) fn canonical_json(text: &[u8]) -> Result<Value, Violation> {
    let value = json::parse_strict(text, json::Limits { depth: JSON_DEPTH, ..json::Limits::default() })
        .map_err(|error| not_json(&error))?;
    Walk::default().check(&value)?;
    match jose::jcs::canonical(&value) == text {
        true => Ok(value),
        false => Err(whole(VrfRule::Canonical, "the JSON is not in its canonical form (RFC 8785)")),
    }
}

/// Returns the content of a definite-length byte string with the shortest head and no trailing data.
fn byte_string(payload: &[u8]) -> Result<&[u8], Violation> {
    let refuse = |why: &str| Err(whole(VrfRule::ByteString, why));
    let extra = match payload[0] & 0x1f {
        0..=23 => 0,
        24 => 1,
        25 => 2,
        26 => 4,
        27 => 8,
        31 => return refuse("the byte string has no definite length"),
        _ => return refuse("the byte string's head is reserved"),
    };
    let Some(length) = payload.get(1..1 + extra) else {
        return refuse("the byte string's head is cut short");
    };
    let length = match extra {
        0 => u64::from(payload[0] & 0x1f),
        _ => length.iter().fold(0u64, |sum, byte| sum << 8 | u64::from(*byte)),
    };
    let content = &payload[1 + extra..];
    if length != content.len() as u64 {
        return refuse("the byte string's length is not that of the payload");
    }
    if head(content.len()).len() != 1 + extra {
        return refuse("the byte string's head is not the shortest");
    }
    Ok(content)
}

/// Encodes the shortest head of a byte string.
fn head(length: usize) -> Vec<u8> {
    let wide = (length as u64).to_be_bytes();
    match length {
        0..=23 => vec![0x40 | length as u8],
        24..=0xff => vec![0x58, wide[7]],
        0x100..=0xffff => [&[0x59], &wide[6..]].concat(),
        0x1_0000..=0xffff_ffff => [&[0x5a], &wide[4..]].concat(),
        _ => [&[0x5b], &wide[..]].concat(),
    }
}

/// Maps a JSON error to the rule that it breaks.
fn not_json(error: &JsonError) -> Violation {
    let rule = match error.kind {
        JsonErrorKind::Duplicate(_) => VrfRule::DuplicateMember,
        JsonErrorKind::LoneSurrogate => VrfRule::LoneSurrogate,
        JsonErrorKind::NumberRange => VrfRule::Integer,
        _ => VrfRule::Json,
    };
    rule.in_payload(error.pointer.clone(), format!("{} at byte {} of the JSON", error.kind, error.offset))
}

fn whole(rule: VrfRule, why: &str) -> Violation {
    rule.in_payload("", why)
}

/// A walk that checks numbers and member names. It keeps the path for error messages.
#[derive(Default)]
struct Walk<'a>(Vec<Step<'a>>);

enum Step<'a> {
    Member(&'a str),
    Item(usize),
}

impl<'a> Walk<'a> {
    fn check(&mut self, value: &'a Value) -> Result<(), Violation> {
        match value {
            Value::Number(number) => self.number(number),
            Value::Array(items) => {
                items.iter().enumerate().try_for_each(|(i, item)| self.within(Step::Item(i), item))
            }
            Value::Object(members) => members.iter().try_for_each(|(name, item)| {
                self.name(name)?;
                self.within(Step::Member(name), item)
            }),
            Value::Null | Value::Bool(_) | Value::String(_) => Ok(()),
        }
    }

    fn within(&mut self, step: Step<'a>, value: &'a Value) -> Result<(), Violation> {
        self.0.push(step);
        self.check(value)?;
        self.0.pop();
        Ok(())
    }

    fn number(&self, number: &serde_json::Number) -> Result<(), Violation> {
        match number.as_i64() {
            Some(integer) if integer.unsigned_abs() <= MAX_INTEGER => Ok(()),
            _ => Err(VrfRule::Integer
                .in_payload(self.pointer(), format!("{number} is not an integer within ±(2^53-1)"))),
        }
    }

    fn name(&self, name: &str) -> Result<(), Violation> {
        match name.chars().find(|c| !('\u{20}'..='\u{d7ff}').contains(c)) {
            None => Ok(()),
            Some(_) => Err(VrfRule::MemberName.in_payload(
                self.pointer(),
                format!("the member name {} leaves U+0020..U+D7FF", quote(name)),
            )),
        }
    }

    fn pointer(&self) -> String {
        let step = |step: &Step<'_>| match step {
            Step::Member(name) => format!("/{}", pointer_step(name)),
            Step::Item(index) => format!("/{index}"),
        };
        self.0.iter().map(step).collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_byte_string_of_every_width_is_opened_again() {
        for length in [0, 1, 23, 24, 255, 256, 65535, 65536] {
            let json = vec![b'x'; length];
            assert_eq!(Form::B.open(&Form::B.wrap(&json)).unwrap(), json);
        }
    }

    #[test]
    fn a_byte_string_framed_in_any_other_way_is_refused() {
        let framings: [(&[u8], &str); 8] = [
            (&[0x41], "cut short"),
            (&[0x41, 1, 2], "longer than it says"),
            (&[0x58, 1, 9], "a head longer than needed"),
            (&[0x59, 0, 24], "cut short after the head"),
            (&[0x5f, 0x41, 1, 0xff], "indefinite"),
            (&[0x5c, 0], "reserved"),
            (&[0x5b, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff], "an enormous length"),
            (&[0x5b, 0, 0], "a head cut short"),
        ];
        for (bytes, why) in framings {
            assert_eq!(Form::B.open(bytes).unwrap_err().rule.as_str(), "vrf-byte-string", "{why}");
        }
    }

    #[test]
    fn the_first_byte_must_agree_with_the_content_type() {
        assert_eq!(Form::A.open(b"\x42{}").unwrap_err().rule.as_str(), "vrf-form");
        assert_eq!(Form::B.open(b"{}").unwrap_err().rule.as_str(), "vrf-form");
        assert_eq!(Form::B.open(b"").unwrap_err().rule.as_str(), "vrf-form");
        assert_eq!(Form::B.open(b"\xa0").unwrap_err().rule.as_str(), "vrf-form-map");
    }

    #[test]
    fn numbers_are_integers_that_every_reader_holds_exactly() {
        for good in ["0", "-1", "9007199254740991", "-9007199254740991"] {
            assert!(canonical_json(format!("{{\"n\":{good}}}").as_bytes()).is_ok(), "{good}");
        }
        for bad in
            ["1.0", "1e3", "-0", "0.5", "9007199254740992", "-9007199254740992", "123456789012345678901"]
        {
            let error = canonical_json(format!("{{\"a\":[{bad}]}}").as_bytes()).unwrap_err();
            assert_eq!(
                (error.rule.as_str(), error.place.to_string().as_str()),
                ("vrf-integer", "payload/a/0"),
                "{bad}"
            );
        }
    }
}
