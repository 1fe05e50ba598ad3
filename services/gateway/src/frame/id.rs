//! The `id` of a JSON-RPC request. Its text and its JSON type are kept: `"1"` is not `1`.

use std::fmt;
use std::hash::{Hash, Hasher};

/// A JSON-RPC `id`, with the text that the peer wrote. Two ids are equal if they have the same JSON type and value,
/// even if their spelling differs.
#[derive(Clone, Debug)]
pub struct RawId {
    text: String,
    value: IdValue,
}

#[derive(Clone, Debug, PartialEq, Eq, Hash)]
enum IdValue {
    Text(String),
    Whole(i128),
    /// A number that is not an integer: the bits of the `f64`.
    Other(u64),
}

/// An `id` as read by clients that match answers by number: both TypeScript SDKs convert with `Number(id)`, the Python
/// SDK with `int(id)`.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub enum LooseId {
    /// A number: the bits of the `f64`.
    Number(u64),
    /// Digits of another script, or a value that is not a valid id. A reader may take it for any number.
    AnyNumber,
    /// A text that no such client reads as a number.
    Text(String),
}

impl RawId {
    /// Parses an id from raw JSON: a string or a number. `None` for any other type.
    pub fn read(text: &str) -> Option<Self> {
        Some(Self { value: IdValue::read(text)?, text: text.to_owned() })
    }

    /// Makes an id that is this string.
    pub fn string(value: &str) -> Self {
        Self { text: serde_json::Value::from(value).to_string(), value: IdValue::Text(value.to_owned()) }
    }

    /// The raw JSON text of the id, including the quotes of a string.
    pub fn text(&self) -> &str {
        &self.text
    }

    /// The value of a string id; `None` for a number.
    pub fn as_str(&self) -> Option<&str> {
        match &self.value {
            IdValue::Text(value) => Some(value),
            IdValue::Whole(_) | IdValue::Other(_) => None,
        }
    }

    /// The id as a client reads it that converts ids to numbers.
    pub fn loosely(&self) -> LooseId {
        match &self.value {
            IdValue::Text(value) => LooseId::of_text(value),
            IdValue::Whole(_) | IdValue::Other(_) => {
                self.text.parse().map_or(LooseId::AnyNumber, LooseId::of_number)
            }
        }
    }
}

impl LooseId {
    /// Returns whether a client that converts ids to numbers would take one id for the other.
    pub fn is_taken_for(&self, other: &Self) -> bool {
        match (self, other) {
            (Self::Text(one), Self::Text(other)) => one == other,
            (Self::Text(_), _) | (_, Self::Text(_)) => false,
            (Self::AnyNumber, _) | (_, Self::AnyNumber) => true,
            (Self::Number(one), Self::Number(other)) => one == other,
        }
    }

    fn of_number(double: f64) -> Self {
        // Adding `0.0` turns -0 into 0.
        Self::Number((double + 0.0).to_bits())
    }

    /// Reads a string as such clients do. JavaScript trims, reads the empty text as 0 and knows `0x`, `0o` and `0b`;
    /// Python skips `_` and accepts the digits of all scripts.
    fn of_text(text: &str) -> Self {
        let skipped = |letter: &char| letter.is_whitespace() || matches!(letter, '_' | '\u{feff}');
        let digits: String =
            text.chars().filter(|letter| !skipped(letter)).collect::<String>().to_lowercase();
        if digits.is_empty() {
            return Self::of_number(0.0);
        }
        if digits.chars().any(|letter| letter.is_numeric() && !letter.is_ascii()) {
            return Self::AnyNumber;
        }
        let mut radix = [("0x", 16), ("0o", 8), ("0b", 2)].into_iter();
        let whole = radix.find_map(|(prefix, radix)| {
            u128::from_str_radix(digits.strip_prefix(prefix)?, radix).ok().map(|whole| whole.to_string())
        });
        let decimal = whole.unwrap_or(digits);
        decimal.parse().map_or_else(|_| Self::Text(text.to_owned()), Self::of_number)
    }
}

impl IdValue {
    fn read(text: &str) -> Option<Self> {
        match text.as_bytes().first()? {
            b'"' => Some(serde_json::from_str(text).map_or_else(|_| Self::Text(text.to_owned()), Self::Text)),
            b'-' | b'0'..=b'9' => text.parse().map(Self::Whole).ok().or_else(|| Self::double(text)),
            _ => None,
        }
    }

    fn double(text: &str) -> Option<Self> {
        let double: f64 = text.parse().ok()?;
        // Nearly all peers treat `1.0` and `1e0` as 1.
        let whole = format!("{double:.0}").parse().ok();
        match whole {
            Some(whole) if double.fract() == 0.0 => Some(Self::Whole(whole)),
            _ => Some(Self::Other(double.to_bits())),
        }
    }
}

impl PartialEq for RawId {
    fn eq(&self, other: &Self) -> bool {
        self.value == other.value
    }
}

impl Eq for RawId {}

impl Hash for RawId {
    fn hash<H: Hasher>(&self, state: &mut H) {
        self.value.hash(state);
    }
}

impl fmt::Display for RawId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.text)
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::*;

    fn id(text: &str) -> RawId {
        RawId::read(text).unwrap()
    }

    /// Whether a client that converts ids to numbers takes one id for the other, although they differ.
    fn is_mistaken(one: &str, other: &str) -> bool {
        id(one) != id(other) && id(one).loosely().is_taken_for(&id(other).loosely())
    }

    #[test]
    fn v_5_what_a_client_takes_for_the_number_is_known() {
        let others = [
            r#""1""#,
            r#"" 1""#,
            r#""01""#,
            r#""1.0""#,
            r#""+1""#,
            r#""0x1""#,
            r#""0B1""#,
            r#""1e0""#,
            r#""\u00a01\n""#,
            r#""0_1""#,
            r#""\ufeff1""#,
            r#""\u0661""#,
        ];
        for other in others {
            assert!(is_mistaken(other, "1"), "{other}");
        }
        for exact in ["1", "1.0", "1e0", "1.00000000000000000001"] {
            assert!(!is_mistaken(exact, "1") && id(exact) == id("1"), "{exact}");
        }
        assert!(is_mistaken(r#""""#, "0") && is_mistaken(r#""-0""#, "0"));
        assert!(is_mistaken("9007199254740992", "9007199254740993"));
        assert!(is_mistaken("1", r#""1""#));
        for other in ["2", r#""2""#, r#""a""#, r#""1a""#] {
            assert!(!is_mistaken(other, "1"), "{other}");
        }
        assert!(!is_mistaken(r#""a""#, r#""b""#));
    }
}
