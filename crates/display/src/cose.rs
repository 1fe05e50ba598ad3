//! COSE headers and CBOR values as JSON, with the names of known labels.

use data_encoding::HEXLOWER;
use scitt::Label;
use scitt::cbor::{Item, Value};
use scitt::header::Header;
use serde_json::{Value as Json, json};

/// Converts a protected header to JSON, with the names of known labels, such as `alg` for 1.
pub fn header(header: &Header) -> Json {
    let member = |label: &Label| Some((header_name(label), value_of(label, &header.get(label)?)));
    Json::Object(header.labels().filter_map(member).collect())
}

/// Formats Unix seconds as RFC 3339, or as a number if they are out of range.
pub fn time(seconds: impl TryInto<i64> + ToString + Copy) -> String {
    let time = seconds.try_into().ok().and_then(|seconds| jiff::Timestamp::from_second(seconds).ok());
    time.map_or_else(|| seconds.to_string(), |time| time.to_string())
}

fn header_name(label: &Label) -> String {
    let name = match label {
        Label::Int(1) => "alg",
        Label::Int(2) => "crit",
        Label::Int(3) => "content-type",
        Label::Int(4) => "kid",
        Label::Int(15) => "cwt-claims",
        Label::Int(16) => "typ",
        Label::Int(33) => "x5chain",
        Label::Int(34) => "x5t",
        Label::Int(258) => "payload-hash-alg",
        Label::Int(259) => "preimage-content-type",
        Label::Int(260) => "payload-location",
        Label::Int(394) => "receipts",
        Label::Int(395) => "vds",
        Label::Int(-70001) => "vrf_version",
        Label::Int(-70002) => "issuer_did",
        Label::Int(-70003) => "receipt_id",
        Label::Int(-70004) => "prev_receipt_hash",
        Label::Int(-70005) => "chain_position",
        Label::Int(other) => return other.to_string(),
        Label::Text(text) => return text.clone(),
    };
    name.to_owned()
}

fn claim_name(label: &Value<'_>) -> String {
    match label.as_i64() {
        Some(1) => "iss".into(),
        Some(2) => "sub".into(),
        Some(3) => "aud".into(),
        Some(4) => "exp".into(),
        Some(5) => "nbf".into(),
        Some(6) => "iat".into(),
        Some(7) => "cti".into(),
        Some(other) => other.to_string(),
        None => label.as_text().unwrap_or("?").to_owned(),
    }
}

fn value_of(label: &Label, value: &Value<'_>) -> Json {
    match (label, value) {
        (Label::Int(1), value) => algorithm(value),
        (Label::Int(4), Value::Bytes(kid)) => readable_kid(kid),
        (Label::Int(15), Value::Map(claims)) => {
            let claim = |(name, value): &(Item<'_>, Item<'_>)| {
                let name = claim_name(&name.value);
                let converted = if matches!(name.as_str(), "exp" | "nbf" | "iat") {
                    date(&value.value)
                } else {
                    cbor(&value.value)
                };
                (name, converted)
            };
            Json::Object(claims.iter().map(claim).collect())
        }
        (_, value) => cbor(value),
    }
}

fn algorithm(value: &Value<'_>) -> Json {
    let known = value.as_i64().and_then(scitt::Algorithm::from_cose);
    known.map_or_else(|| cbor(value), |known| json!(format!("{} ({})", known.name(), known.to_cose())))
}

/// Formats a `kid`: as text if it is printable ASCII, otherwise as base64url.
fn readable_kid(kid: &[u8]) -> Json {
    match std::str::from_utf8(kid) {
        Ok(text) if !text.is_empty() && text.chars().all(|c| c.is_ascii_graphic()) => json!(text),
        _ => json!(data_encoding::BASE64URL_NOPAD.encode(kid)),
    }
}

fn date(value: &Value<'_>) -> Json {
    value.as_i64().map_or_else(|| cbor(value), |seconds| json!(time(seconds)))
}

/// Converts a CBOR value to JSON: byte strings become `h'…'`, and map keys become text.
pub fn cbor(value: &Value<'_>) -> Json {
    match value {
        Value::Unsigned(number) => json!(number),
        Value::Negative(number) => json!(-1 - i128::from(*number)),
        Value::Bytes(bytes) => json!(format!("h'{}'", HEXLOWER.encode(bytes))),
        Value::Text(text) => json!(text),
        Value::Array(items) => Json::Array(items.iter().map(|item| cbor(&item.value)).collect()),
        Value::Map(entries) => Json::Object(
            entries.iter().map(|(key, value)| (key_name(&key.value), cbor(&value.value))).collect(),
        ),
        Value::Tag(tag, inner) => json!({ "tag": tag, "value": cbor(&inner.value) }),
        Value::Bool(flag) => json!(flag),
        Value::Null => Json::Null,
        Value::Undefined => json!("undefined"),
        Value::Simple(number) => json!(format!("simple({number})")),
        Value::Float(number) => json!(number),
    }
}

fn key_name(value: &Value<'_>) -> String {
    match cbor(value) {
        Json::String(text) => text,
        other => other.to_string(),
    }
}
