//! Payloads of content types without a profile, as documents for conditions: strict JSON, or CBOR converted to JSON.
//!
//! In the conversion from CBOR, byte strings become `b64u:` and their base64url, integer keys their decimal digits, and
//! tagged values their content. Values that JSON cannot represent, or that parsers may interpret differently, are
//! rejected: integers beyond 2^53, non-finite numbers, bignums, undefined and simple values, keys of other types, and
//! two keys that convert to the same text.

use data_encoding::BASE64URL_NOPAD;
use jose::json::{self, CheckedJson};
use scitt::cbor::{self, Item, Value as Cbor};
use serde_json::{Map, Value};

use crate::content_types::essence;
use crate::limits::{JSON_DEPTH, MAX_INTEGER, PAYLOAD_ITEMS};

/// Converts a byte string to `b64u:` and its base64url, which distinguishes it from other text.
pub(crate) fn bytes_as_text(bytes: &[u8]) -> String {
    format!("b64u:{}", BASE64URL_NOPAD.encode(bytes))
}

const BIGNUMS: [u64; 2] = [2, 3];

/// Encodings of payloads that conditions can evaluate.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Encoding {
    Json,
    Cbor,
}

impl Encoding {
    /// Returns the encoding that a content type names, directly or by its structured syntax suffix (RFC 6839, section
    /// 3).
    pub(crate) fn of(content_type: &str) -> Option<Encoding> {
        let essence = essence(content_type);
        let is =
            |name: &str| essence == format!("application/{name}") || essence.ends_with(&format!("+{name}"));
        match () {
            () if is("json") => Some(Encoding::Json),
            () if is("cbor") => Some(Encoding::Cbor),
            () => None,
        }
    }

    /// The name of the rule that a payload breaks if it is not strictly valid.
    pub(crate) const fn rule(self) -> &'static str {
        match self {
            Encoding::Json => "payload-json",
            Encoding::Cbor => "payload-cbor",
        }
    }

    /// Parses a payload strictly. The error is a description for display.
    pub(crate) fn read(self, payload: &[u8]) -> Result<Value, String> {
        match self {
            Encoding::Json => {
                let checked = json::check(payload, json::Limits::whole(payload.len()));
                let document = checked.and_then(CheckedJson::unambiguous);
                document.map_err(|why| format!("it is not strict JSON: {why}"))
            }
            Encoding::Cbor => {
                let limits = cbor::Limits { depth: JSON_DEPTH, items: PAYLOAD_ITEMS };
                let item =
                    cbor::parse(payload, limits).map_err(|why| format!("it is not strict CBOR: {why}"))?;
                as_json(&item)
            }
        }
    }
}

fn as_json(item: &Item<'_>) -> Result<Value, String> {
    let refused = |what: &str| Err(format!("its CBOR holds {what} at byte {}", item.offset));
    match &item.value {
        Cbor::Null => Ok(Value::Null),
        Cbor::Bool(value) => Ok((*value).into()),
        Cbor::Unsigned(number) if *number <= MAX_INTEGER => Ok((*number).into()),
        Cbor::Negative(number) if *number < MAX_INTEGER => Ok((-1 - *number as i64).into()),
        Cbor::Unsigned(_) | Cbor::Negative(_) => refused("an integer beyond 2^53"),
        Cbor::Float(number) => match serde_json::Number::from_f64(*number) {
            Some(number) => Ok(number.into()),
            None => refused("a number that is not finite"),
        },
        Cbor::Text(text) => Ok(text.as_ref().into()),
        Cbor::Bytes(bytes) => Ok(bytes_as_text(bytes).into()),
        Cbor::Array(items) => items.iter().map(as_json).collect(),
        Cbor::Map(members) => object(members).map(Value::Object),
        Cbor::Tag(number, _) if BIGNUMS.contains(number) => refused("a bignum"),
        Cbor::Tag(_, content) => as_json(content),
        Cbor::Undefined | Cbor::Simple(_) => refused("a value that JSON cannot express"),
    }
}

fn object(members: &[(Item<'_>, Item<'_>)]) -> Result<Map<String, Value>, String> {
    let mut object = Map::new();
    for (key, value) in members {
        let name = match &key.value {
            Cbor::Text(name) => name.clone().into_owned(),
            Cbor::Unsigned(number) => number.to_string(),
            Cbor::Negative(number) => (-1 - i128::from(*number)).to_string(),
            _ => {
                return Err(format!(
                    "its CBOR has a key that is neither text nor an integer at byte {}",
                    key.offset
                ));
            }
        };
        if object.insert(name, as_json(value)?).is_some() {
            return Err(format!(
                "its CBOR has a text and an integer as keys that read the same at byte {}",
                key.offset
            ));
        }
    }
    Ok(object)
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn read(hex: &str) -> Result<Value, String> {
        Encoding::Cbor.read(&data_encoding::HEXLOWER.decode(hex.as_bytes()).unwrap())
    }

    #[test]
    fn a_content_type_names_its_encoding() {
        for (name, encoding) in [
            ("application/json", Some(Encoding::Json)),
            ("application/x+json; a=b", Some(Encoding::Json)),
            ("application/cbor", Some(Encoding::Cbor)),
            ("Application/X+CBOR", Some(Encoding::Cbor)),
            ("text/plain", None),
            ("application/cbor-seq", None),
        ] {
            assert_eq!(Encoding::of(name), encoding, "{name}");
        }
    }

    #[test]
    fn cbor_reads_as_the_json_that_says_the_same() {
        // Diagnostic notation: {"a": [1, -2, 1.5, true, null], 3: h'00ff', -1: 0("2026")}
        let read =
            read("a361618501 21 f93e00 f5 f6 03 4200ff 20 c06432303236".replace(' ', "").as_str()).unwrap();
        assert_eq!(read, json!({ "a": [1, -2, 1.5, true, null], "3": "b64u:AP8", "-1": "2026" }));
    }

    #[test]
    fn what_json_cannot_say_or_readers_could_take_for_different_things_is_refused() {
        for (hex, why) in [
            ("1b0020000000000000", "an integer beyond 2^53"),
            ("3b001fffffffffffff", "an integer beyond 2^53"),
            ("f97e00", "a number that is not finite"),
            ("c24101", "a bignum"),
            ("f7", "cannot express"),
            ("a1f501", "neither text nor an integer"),
            ("a201016131 02".replace(' ', "").as_str(), "read the same"),
            ("a2616101616102", "duplicate map key"),
            ("0101", "not strict CBOR"),
        ] {
            assert!(read(hex).unwrap_err().contains(why), "{hex}: {:?}", read(hex));
        }
    }
}
