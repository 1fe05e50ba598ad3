//! Annexes: the data that the store keeps in clear next to a record. Callers choose the length of their texts, so the
//! annex bounds how much of each is kept: of a longer text, only its beginning, length and SHA-256 digest, which
//! identify it.
//!
//! Not here: what a record commits to (`admission::record`); the commitment covers the whole text, even if the annex is
//! cut.

use admission::decide::{About, Ruling};
use admission::reason::Reason;
use bytes::Bytes;
use data_encoding::HEXLOWER;
use serde_json::{Value, json};
use sha2::{Digest as _, Sha256};

use crate::limits::{ANNEX_AGREED_TEXT_BYTES, ANNEX_STRANGERS_TEXT_BYTES, ANNEX_TEXT_BYTES};

/// JSON pointers to the texts of arbitrary length in an annex and its `replay` member: the caller's and the judge's.
const SAID: [&str; 10] = [
    "/goal",
    "/rationale",
    "/expected_effect",
    "/arguments",
    "/effective_commitment",
    "/req",
    "/aiInvocation",
    "/replay/message",
    "/replay/header",
    "/replay/judge/words",
];

/// Serializes the annex of a decision, with long texts cut to the bound for this ruling.
pub fn of_decision(ruling: &Ruling, mut annex: Value) -> Bytes {
    // V-11: a caller that is denied for its rate must not fill the disk, so none of these texts is kept.
    if ruling.reason == Some(Reason::RateLimited) {
        SAID.iter().for_each(|place| annex.pointer_mut(place).into_iter().for_each(not_kept));
    }
    bounded(annex, most(ruling))
}

fn most(ruling: &Ruling) -> usize {
    match (ruling.about, &ruling.said.principal) {
        // Later decisions depend on these texts.
        (About::Commitment | About::Amendment, Some(_)) if ruling.reason.is_none() => ANNEX_AGREED_TEXT_BYTES,
        (_, None) if ruling.reason.is_some() && !ruling.forward => ANNEX_STRANGERS_TEXT_BYTES,
        _ => ANNEX_TEXT_BYTES,
    }
}

/// Serializes an annex in which each string longer than `most` bytes is replaced as by [`text`].
pub fn bounded(mut annex: Value, most: usize) -> Bytes {
    cut(&mut annex, most);
    annex.to_string().into()
}

/// Returns a text of at most `most` bytes as it is, and a longer one as an object with `beginning`, `bytes` and
/// `sha256`.
pub fn text(bytes: &[u8], most: usize) -> Value {
    if bytes.len() <= most {
        return String::from_utf8_lossy(bytes).into_owned().into();
    }
    // A character that the bound would split is left out.
    let beginning = bytes[..most].utf8_chunks().next().map(|chunk| chunk.valid()).unwrap_or_default();
    let sha256 = HEXLOWER.encode(&Sha256::digest(bytes));
    json!({ "beginning": beginning, "bytes": bytes.len(), "sha256": sha256 })
}

fn not_kept(value: &mut Value) {
    if !value.is_null() {
        *value = json!({ "beginning": "" });
    }
}

fn cut(value: &mut Value, most: usize) {
    match value {
        Value::String(whole) if whole.len() > most => *value = text(whole.as_bytes(), most),
        Value::Array(values) => values.iter_mut().for_each(|value| cut(value, most)),
        Value::Object(members) => members.values_mut().for_each(|value| cut(value, most)),
        _ => {}
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::*;

    #[test]
    fn a_text_within_the_bound_is_kept_whole_and_a_longer_one_by_its_beginning_length_and_digest() {
        let annex = json!({ "short": "1234", "in": [{ "long": "12345" }], "number": 123_456 });
        let kept: Value = serde_json::from_slice(&bounded(annex, 4)).unwrap();
        let digest = HEXLOWER.encode(&Sha256::digest("12345"));
        let long = json!({ "beginning": "1234", "bytes": 5, "sha256": digest });
        assert_eq!(kept, json!({ "short": "1234", "in": [{ "long": long }], "number": 123_456 }));
    }

    #[test]
    fn a_character_is_not_cut_in_two() {
        assert_eq!(text("aé".as_bytes(), 2)["beginning"], "a");
        assert_eq!(text(&[b'a', 0xff, b'b', b'c'], 3)["beginning"], "a");
    }
}
