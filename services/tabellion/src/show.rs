//! Formatting of COSE structures for display: names of labels, times, escaped text. Signatures are not verified here.

use std::io::{self, Write};

use data_encoding::HEXLOWER;
use scitt::Label;
use scitt::cbor::{Item, Value};
use scitt::header::Header;
use serde_json::{Map, Value as Json, json};

use crate::console::safe;

/// Maximum length in characters of a text on a terminal; `--json` prints it whole.
const SHOWN_TEXT: usize = 96;

/// Converts a protected header to JSON, with the names of known labels, such as `alg` for 1.
pub fn header(header: &Header) -> Json {
    let member = |label: &Label| Some((header_name(label), value_of(label, &header.get(label)?)));
    Json::Object(header.labels().filter_map(member).collect())
}

/// Writes a JSON object as indented lines of name and value.
pub fn lines(out: &mut dyn Write, indent: usize, object: &Map<String, Json>) -> io::Result<()> {
    let width = object.keys().map(String::len).max().unwrap_or(0);
    for (name, value) in object {
        match value {
            Json::Object(inner) => {
                writeln!(out, "{:indent$}{}", "", safe(name))?;
                lines(out, indent + 2, inner)?;
            }
            Json::String(text) => writeln!(out, "{:indent$}{:width$}  {}", "", safe(name), cut(text))?,
            other => writeln!(out, "{:indent$}{:width$}  {}", "", safe(name), cut(&other.to_string()))?,
        }
    }
    Ok(())
}

/// Writes the members of a JSON object as lines that are indented by two spaces.
pub fn members(out: &mut dyn Write, object: &Json) -> io::Result<()> {
    object.as_object().map_or(Ok(()), |members| lines(out, 2, members))
}

/// Formats Unix seconds as RFC 3339, or as a number if they are out of range.
pub fn time(seconds: i64) -> String {
    jiff::Timestamp::from_second(seconds).map_or_else(|_| seconds.to_string(), |time| time.to_string())
}

/// Returns the elements of the array `name`; none if there is no such array.
pub fn items<'a>(of: &'a Json, name: &str) -> &'a [Json] {
    of.get(name).and_then(Json::as_array).map(Vec::as_slice).unwrap_or_default()
}

/// Returns the string `name`, escaped; `-` if there is none.
pub fn text(of: &Json, name: &str) -> String {
    safe(of.get(name).and_then(Json::as_str).unwrap_or("-")).into_owned()
}

/// Returns the number `name`; 0 if there is none.
pub fn number(of: &Json, name: &str) -> u64 {
    of.get(name).and_then(Json::as_u64).unwrap_or_default()
}

fn cut(text: &str) -> String {
    let shown: String = text.chars().take(SHOWN_TEXT).collect();
    let rest = if shown.len() < text.len() { format!("… ({} bytes)", text.len()) } else { String::new() };
    format!("{}{rest}", safe(&shown))
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
                let shown = if matches!(name.as_str(), "exp" | "nbf" | "iat") {
                    date(&value.value)
                } else {
                    plain(&value.value)
                };
                (name, shown)
            };
            Json::Object(claims.iter().map(claim).collect())
        }
        (_, value) => plain(value),
    }
}

fn algorithm(value: &Value<'_>) -> Json {
    let known = value.as_i64().and_then(scitt::Algorithm::from_cose);
    known.map_or_else(|| plain(value), |known| json!(format!("{} ({})", known.name(), known.to_cose())))
}

/// Formats a `kid`: as text if it is printable ASCII, otherwise as base64url.
fn readable_kid(kid: &[u8]) -> Json {
    match std::str::from_utf8(kid) {
        Ok(text) if !text.is_empty() && text.chars().all(|c| c.is_ascii_graphic()) => json!(text),
        _ => json!(data_encoding::BASE64URL_NOPAD.encode(kid)),
    }
}

fn date(value: &Value<'_>) -> Json {
    value.as_i64().map_or_else(|| plain(value), |seconds| json!(time(seconds)))
}

fn plain(value: &Value<'_>) -> Json {
    match value {
        Value::Unsigned(number) => json!(number),
        Value::Negative(number) => json!(-1 - i128::from(*number)),
        Value::Bytes(bytes) => json!(format!("h'{}'", HEXLOWER.encode(bytes))),
        Value::Text(text) => json!(text),
        Value::Array(items) => Json::Array(items.iter().map(|item| plain(&item.value)).collect()),
        Value::Map(entries) => Json::Object(
            entries.iter().map(|(key, value)| (key_name(&key.value), plain(&value.value))).collect(),
        ),
        Value::Tag(tag, inner) => json!({ "tag": tag, "value": plain(&inner.value) }),
        Value::Bool(flag) => json!(flag),
        Value::Null => Json::Null,
        Value::Undefined => json!("undefined"),
        Value::Simple(number) => json!(format!("simple({number})")),
        Value::Float(number) => json!(number),
    }
}

fn key_name(value: &Value<'_>) -> String {
    match plain(value) {
        Json::String(text) => text,
        other => other.to_string(),
    }
}
