//! Readers for the values of a receipt's members, each with the rule that another value breaks.

use serde_json::Value;

use super::rule::VrfRule;
use crate::limits::MAX_OPEN_STRING;
use crate::violation::Violation;

/// An object in a receipt.
pub(super) type Members<'a> = jose::members::Members<'a, VrfRule>;

/// Reads an optional string from an open registry: any value of at most [`MAX_OPEN_STRING`] characters.
pub(super) fn open_text<'a>(members: &Members<'a>, name: &str) -> Result<Option<&'a str>, Violation> {
    match members.optional_text(name)? {
        Some(long) if long.chars().nth(MAX_OPEN_STRING).is_some() => {
            let detail = format!("longer than {MAX_OPEN_STRING} characters");
            Err(members.broken(VrfRule::OpenString, name, detail))
        }
        other => Ok(other),
    }
}

/// Reads a required counter, an integer of at least 0.
pub(super) fn count(members: &Members<'_>, name: &str) -> Result<u64, Violation> {
    let value = members.get(name).and_then(Value::as_u64);
    let needed = "a count is needed here: an integer of at least 0";
    value.ok_or_else(|| members.broken(VrfRule::Counts, name, needed))
}
