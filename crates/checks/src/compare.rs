//! Equality of JSON values: what a test expects, and what the work returned.
//!
//! Arrays are equal item by item, objects member by member in any order, and numbers by value: `1`, `1.0` and `1e0` are
//! equal. Texts are equal code point by code point. Values of different types are never equal.

use jose::json::{self, Limits, pointer_step};
use serde_json::Value;

use crate::text::shorten;

/// Parses the text of a value that the work returned or wrote.
///
/// # Errors
/// If the text is not strict JSON, or has a number that parsers read differently: no expected value is equal to it.
pub fn parse(text: &[u8]) -> Result<Value, String> {
    let checked = json::check(text, Limits::whole(text.len()));
    checked.and_then(json::CheckedJson::unambiguous).map_err(|error| error.to_string())
}

/// Returns the first difference between two values with its JSON pointer; `None` if they are equal.
#[must_use]
pub fn difference(expected: &Value, actual: &Value) -> Option<String> {
    find(expected, actual, &mut String::new())
}

fn find(expected: &Value, actual: &Value, at: &mut String) -> Option<String> {
    match (expected, actual) {
        (Value::Number(a), Value::Number(b)) if jose::number::same(&a.to_string(), &b.to_string()) => None,
        (Value::Array(a), Value::Array(b)) if a.len() != b.len() => {
            Some(format!("{}found {} items, expected {}", place(at), b.len(), a.len()))
        }
        (Value::Array(a), Value::Array(b)) => a
            .iter()
            .zip(b)
            .enumerate()
            .find_map(|(index, (a, b))| within(at, &index.to_string(), |at| find(a, b, at))),
        (Value::Object(a), Value::Object(b)) => missing(a, b, at).or_else(|| {
            let mut both = a.iter().filter_map(|(name, value)| Some((name, value, b.get(name)?)));
            both.find_map(|(name, a, b)| within(at, &pointer_step(name), |at| find(a, b, at)))
        }),
        (a, b) if a == b => None,
        (a, b) => Some(format!("{}found {}, expected {}", place(at), short(b), short(a))),
    }
}

fn missing(
    expected: &serde_json::Map<String, Value>,
    actual: &serde_json::Map<String, Value>,
    at: &str,
) -> Option<String> {
    let lacks = expected.keys().find(|name| !actual.contains_key(*name));
    let surplus = actual.keys().find(|name| !expected.contains_key(*name));
    match (lacks, surplus) {
        (Some(name), _) => Some(format!("{}the member {} is missing", place(at), jose::members::quote(name))),
        (_, Some(name)) => {
            Some(format!("{}the member {} is not expected", place(at), jose::members::quote(name)))
        }
        (None, None) => None,
    }
}

fn within<T>(at: &mut String, step: &str, find: impl FnOnce(&mut String) -> T) -> T {
    let length = at.len();
    at.push('/');
    at.push_str(step);
    let found = find(at);
    at.truncate(length);
    found
}

fn place(at: &str) -> String {
    match at {
        "" => String::new(),
        at => format!("at {at}: "),
    }
}

fn short(value: &Value) -> String {
    shorten(&value.to_string(), 64)
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn numbers_are_equal_by_value_and_texts_by_code_points() {
        assert_eq!(difference(&json!([1, 1.5]), &parse(b"[1.0, 15e-1]").unwrap()), None);
        assert_eq!(difference(&json!("1"), &json!(1)), Some(r#"found 1, expected "1""#.to_owned()));
        assert_eq!(
            difference(&json!("é"), &json!("e\u{301}")).unwrap(),
            "found \"e\u{301}\", expected \"é\""
        );
        assert!(difference(&json!(null), &json!(false)).is_some());
    }

    #[test]
    fn members_have_no_order_and_the_first_difference_is_named() {
        assert_eq!(difference(&json!({"a": 1, "b": 2}), &json!({"b": 2, "a": 1})), None);
        let found = difference(&json!({"a": [{"b/c": 1}]}), &json!({"a": [{"b/c": 2}]})).unwrap();
        assert_eq!(found, "at /a/0/b~1c: found 2, expected 1");
        let found = difference(&json!({"a": {}}), &json!({"a": {"b": 1}})).unwrap();
        assert_eq!(found, "at /a: the member \"b\" is not expected");
        assert_eq!(difference(&json!([1]), &json!([1, 2])).unwrap(), "found 2 items, expected 1");
    }

    #[test]
    fn a_number_that_parsers_read_differently_is_no_value() {
        assert!(parse(b"9007199254740993").unwrap_err().contains("2^53"));
        assert!(parse(br#"{"a":1,"a":2}"#).is_err());
        assert!(parse(b"NaN").is_err());
    }
}
