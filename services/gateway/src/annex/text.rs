//! Texts in an annex: kept whole up to a bound, and longer ones by their beginning, length and SHA-256 digest, which
//! identify them.

use bytes::Bytes;
use data_encoding::HEXLOWER;
use serde::{Deserialize, Serialize};
use serde_json::{Value, json};
use sha2::{Digest as _, Sha256};

/// A text, as far as it was kept.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(untagged)]
pub enum Text {
    /// The whole text.
    Whole(String),
    /// The beginning only: the text was too long, or its caller was denied for its rate.
    Cut(CutText),
}

/// The beginning of a text, with what identifies the rest.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct CutText {
    /// The part that was kept.
    pub beginning: String,
    /// The length of the whole text, in bytes.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub bytes: Option<usize>,
    /// The SHA-256 digest of the whole text, in hexadecimal digits.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub sha256: Option<String>,
}

/// Error for a text that was kept only in part.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct NotWhole;

impl Text {
    /// Creates a [`Text::Whole`].
    #[must_use]
    pub fn whole(text: &str) -> Self {
        Self::Whole(text.to_owned())
    }

    /// A text of which nothing is kept.
    pub fn dropped() -> Self {
        Self::Cut(CutText::default())
    }

    /// Returns the text as a JSON string in canonical form (RFC 8785); a part stays a part.
    #[must_use]
    pub fn canonical(&self) -> Self {
        match self {
            Self::Whole(text) => Self::Whole(canonical(&text.as_str().into())),
            Self::Cut(_) => self.clone(),
        }
    }

    /// Returns a text of at most `most` bytes whole, and cuts a longer one.
    pub fn bounded(bytes: &[u8], most: usize) -> Self {
        if bytes.len() <= most {
            return Self::Whole(String::from_utf8_lossy(bytes).into_owned());
        }
        // A character that the bound would split is left out.
        let beginning = bytes[..most].utf8_chunks().next().map(|chunk| chunk.valid()).unwrap_or_default();
        Self::Cut(CutText {
            beginning: beginning.to_owned(),
            bytes: Some(bytes.len()),
            sha256: Some(HEXLOWER.encode(&Sha256::digest(bytes))),
        })
    }
}

/// Returns an absent text as `None`, and a whole one as it is: no decision can be replayed from a part.
///
/// # Errors
/// [`NotWhole`] if only the beginning was kept.
pub fn whole(text: Option<&Text>) -> Result<Option<&str>, NotWhole> {
    match text {
        None => Ok(None),
        Some(Text::Whole(text)) => Ok(Some(text)),
        Some(Text::Cut(_)) => Err(NotWhole),
    }
}

/// Returns the canonical form of a client's description of itself. A part of it that was cut leaves nothing to compare.
pub fn invocation(assertion: &Value) -> Text {
    match is_cut(assertion) {
        true => Text::dropped(),
        false => Text::Whole(canonical(assertion)),
    }
}

/// Returns whether a value, or one within it, was replaced by a [`CutText`]. Other objects with a `beginning` are the
/// client's long texts as they are committed (S-1).
fn is_cut(value: &Value) -> bool {
    match value {
        Value::Object(members) => CutText::deserialize(value).is_ok() || members.values().any(is_cut),
        Value::Array(values) => values.iter().any(is_cut),
        _ => false,
    }
}

fn canonical(value: &Value) -> String {
    String::from_utf8_lossy(&jose::jcs::canonical(value)).into_owned()
}

/// Serializes an annex in which each string longer than `most` bytes is replaced by a [`Text::Cut`].
pub fn serialize(annex: &impl Serialize, most: usize) -> Bytes {
    let mut annex = json!(annex);
    cut(&mut annex, most);
    annex.to_string().into()
}

fn cut(value: &mut Value, most: usize) {
    match value {
        Value::String(whole) if whole.len() > most => *value = json!(Text::bounded(whole.as_bytes(), most)),
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
        let kept: Value = serde_json::from_slice(&serialize(&annex, 4)).unwrap();
        let digest = HEXLOWER.encode(&Sha256::digest("12345"));
        let long = json!({ "beginning": "1234", "bytes": 5, "sha256": digest });
        assert_eq!(kept, json!({ "short": "1234", "in": [{ "long": long }], "number": 123_456 }));
    }

    fn beginning(bytes: &[u8], most: usize) -> String {
        match Text::bounded(bytes, most) {
            Text::Whole(text) => text,
            Text::Cut(cut) => cut.beginning,
        }
    }

    #[test]
    fn a_description_with_a_part_that_was_cut_leaves_nothing_to_compare() {
        let long = "x".repeat(9);
        let kept = |assertion: &Value, most| -> Value {
            serde_json::from_slice(&serialize(&json!({ "reason": { "text": assertion } }), most)).unwrap()
        };
        assert_eq!(invocation(&kept(&json!(long), 8)), Text::dropped());
        assert_eq!(invocation(&json!(Text::dropped())), Text::dropped());
        let committed = json!({ "beginning": "x", "digest": "sha-256:00" });
        for whole in [kept(&json!(long), 9), kept(&committed, 99)] {
            assert!(matches!(invocation(&whole), Text::Whole(_)), "{whole}");
        }
    }

    #[test]
    fn a_character_is_not_cut_in_two() {
        assert_eq!(beginning("aé".as_bytes(), 2), "a");
        assert_eq!(beginning(&[b'a', 0xff, b'b', b'c'], 3), "a");
    }
}
