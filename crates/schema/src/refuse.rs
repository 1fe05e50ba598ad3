//! Checks for forbidden parts of a schema, before it is compiled.

use serde_json::Value;

use crate::Unusable;
use crate::limits::{PATTERN_BYTES, PATTERNS};

/// The supported values of `$schema`, without scheme and fragment.
const DRAFTS: [&str; 5] = [
    "json-schema.org/draft-04/schema",
    "json-schema.org/draft-06/schema",
    "json-schema.org/draft-07/schema",
    "json-schema.org/draft/2019-09/schema",
    "json-schema.org/draft/2020-12/schema",
];

/// Refuses a document that is not an object, has an unknown dialect, refers to another document, or has too many or too
/// long regular expressions.
///
/// # Errors
/// The variant of [`Unusable`] for the first violation.
pub fn check(document: &Value) -> Result<(), Unusable> {
    let top = document.as_object().ok_or(Unusable::NoObject)?;
    if top.get("$schema").is_some_and(|dialect| !dialect.as_str().is_some_and(is_known)) {
        return Err(Unusable::Dialect);
    }
    let mut patterns = 0;
    for value in top.values() {
        check_nested(document, value, &mut patterns)?;
    }
    check_object(document, top, &mut patterns)
}

fn is_known(dialect: &str) -> bool {
    let bare = dialect.strip_prefix("https://").or_else(|| dialect.strip_prefix("http://"));
    bare.is_some_and(|bare| DRAFTS.contains(&bare.strip_suffix('#').unwrap_or(bare)))
}

/// Checks every nested object, regardless of its meaning in the schema.
fn check_nested(document: &Value, value: &Value, patterns: &mut usize) -> Result<(), Unusable> {
    match value {
        Value::Array(items) => items.iter().try_for_each(|item| check_nested(document, item, patterns)),
        Value::Object(members) => {
            if members.get("$id").is_some_and(Value::is_string) {
                return Err(Unusable::Reference("a subschema has an $id of its own"));
            }
            if members.get("$schema").is_some_and(Value::is_string) {
                return Err(Unusable::Dialect);
            }
            check_object(document, members, patterns)?;
            members.values().try_for_each(|value| check_nested(document, value, patterns))
        }
        _ => Ok(()),
    }
}

/// Checks the members of one object.
fn check_object(
    document: &Value,
    members: &serde_json::Map<String, Value>,
    patterns: &mut usize,
) -> Result<(), Unusable> {
    for name in ["$dynamicRef", "$recursiveRef"] {
        if members.get(name).is_some_and(Value::is_string) {
            return Err(Unusable::Reference("a reference depends on where the schema is used"));
        }
    }
    if let Some(Value::String(reference)) = members.get("$ref") {
        target(document, reference).ok_or(Unusable::Reference("a reference leads out of it, or nowhere"))?;
    }
    if let Some(Value::String(pattern)) = members.get("pattern") {
        count(pattern, patterns)?;
    }
    if let Some(Value::Object(by_pattern)) = members.get("patternProperties") {
        by_pattern.keys().try_for_each(|pattern| count(pattern, patterns))?;
    }
    Ok(())
}

fn count(pattern: &str, patterns: &mut usize) -> Result<(), Unusable> {
    *patterns += 1;
    match pattern.len() <= PATTERN_BYTES && *patterns <= PATTERNS {
        true => Ok(()),
        false => Err(Unusable::Patterns),
    }
}

/// Resolves a reference: `#` with an optional JSON pointer. Percent signs are refused, since implementations decode
/// them differently.
pub fn target<'a>(document: &'a Value, reference: &str) -> Option<&'a Value> {
    let pointer = reference.strip_prefix('#')?;
    match pointer.contains('%') {
        true => None,
        false => document.pointer(pointer),
    }
}
