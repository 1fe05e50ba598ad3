//! Payloads as text: JSON and CBOR are decoded, text stays as it is, and all else is shown in hexadecimal.

use explorer::{Excerpt, PayloadText};
use scitt::cbor;

use crate::limits::{DECODED_ITEMS, DECODED_PAYLOAD_BYTES, PAYLOAD_DEPTH};

/// Decodes a payload by its content type. One that is not what the type says is shown as text or in hexadecimal.
pub fn content(content_type: Option<&str>, payload: &[u8]) -> PayloadText {
    let essence = content_type.unwrap_or_default().split(';').next().unwrap_or_default().trim();
    let is_text = essence.starts_with("text/");
    let is_cbor = essence == "application/cbor" || essence.ends_with("+cbor");
    // Conversation records are JSON or CBOR, with one content type.
    let decoded = match () {
        () if is_text || payload.len() > DECODED_PAYLOAD_BYTES => None,
        () if is_cbor => cbor_text(payload).map(|text| ("CBOR, decoded", text)),
        () => json_text(payload)
            .map(|text| ("JSON, indented", text))
            .or_else(|| cbor_text(payload).map(|text| ("CBOR, decoded", text))),
    };
    match (decoded, std::str::from_utf8(payload)) {
        (Some((form, text)), _) => PayloadText { form, excerpt: Excerpt::text(&text) },
        (None, Ok(text)) if !is_cbor => PayloadText { form: "Text", excerpt: Excerpt::text(text) },
        _ => PayloadText { form: "Bytes, in hexadecimal", excerpt: Excerpt::hex(payload) },
    }
}

/// Indents JSON. A document that parsers could read differently, for example with a member twice, stays as it is.
fn json_text(payload: &[u8]) -> Option<String> {
    let limits = jose::json::Limits { bytes: DECODED_PAYLOAD_BYTES, depth: PAYLOAD_DEPTH };
    let text = display::indented_json(jose::json::check(payload, limits).ok()?.text());
    text.starts_with(['{', '[']).then_some(text)
}

fn cbor_text(payload: &[u8]) -> Option<String> {
    let item = cbor::parse(payload, cbor::Limits { depth: PAYLOAD_DEPTH, items: DECODED_ITEMS }).ok()?;
    // A map or an array: a shorter item may be any other bytes.
    let is_document =
        matches!(item.value, cbor::Value::Map(_) | cbor::Value::Array(_) | cbor::Value::Tag(..));
    serde_json::to_string_pretty(&display::cbor(&item.value)).ok().filter(|_| is_document)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_payload_is_decoded_by_its_type_or_shown_as_it_is() {
        let decoded = |content_type: &str, payload: &[u8]| {
            let content = content(Some(content_type), payload);
            (content.form, content.excerpt.beginning)
        };
        assert_eq!(decoded("application/json", b"{\"a\":1}"), ("JSON, indented", "{\n  \"a\": 1\n}".into()));
        assert_eq!(decoded("application/json", b"{\"a\":1,\"a\":2}"), ("Text", "{\"a\":1,\"a\":2}".into()));
        assert_eq!(
            decoded("application/vrf+cbor", b"\xa1\x61a\x01"),
            ("CBOR, decoded", "{\n  \"a\": 1\n}".into())
        );
        let numbers = (b"[1e2,-0,12345678901234567890123]", "[\n  1e2,\n  -0,\n  12345678901234567890123\n]");
        assert_eq!(decoded("application/json", numbers.0), ("JSON, indented", numbers.1.into()));
        assert_eq!(decoded("text/plain", b"{}"), ("Text", "{}".into()));
        assert_eq!(decoded("image/png", b"\xff\x00"), ("Bytes, in hexadecimal", "ff 00\n".into()));
        assert_eq!(decoded("application/vrf+cbor", b"abc"), ("Bytes, in hexadecimal", "61 62 63\n".into()));
    }
}
