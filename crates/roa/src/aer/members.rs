//! Readers for the values of a receipt's members, each with the rule that another value breaks.

use std::borrow::Cow;

use jose::BrokenRule;
use serde_json::Value;

use super::rule::AerRule;
use crate::limits::MAX_INTEGER;
use crate::text::{Code, Sha256Digest, Text};

/// An object in a receipt.
pub(super) type Members<'a> = jose::members::Members<'a, AerRule>;

/// Opens an object whose members are all in `known`, and not null.
pub(super) fn open<'a>(
    value: &'a Value,
    at: impl Into<Cow<'static, str>>,
    known: &[&str],
) -> Result<Members<'a>, BrokenRule> {
    let members = Members::of(value, at)?;
    for (name, value) in members.iter() {
        if !known.contains(&name) {
            return Err(members.broken(AerRule::UnknownMember, name, "a receipt has no such member"));
        }
        if value.is_null() {
            let detail = "null: a member without a value is left out";
            return Err(members.broken(AerRule::Null, name, detail));
        }
    }
    Ok(members)
}

/// Opens a required object at the top level.
pub(super) fn object<'a>(
    top: &Members<'a>,
    name: &'static str,
    known: &[&str],
) -> Result<Members<'a>, BrokenRule> {
    open(top.required(name)?, top.pointer(name), known)
}

/// Reads a required name.
pub(super) fn text<const MAX: usize>(members: &Members<'_>, name: &str) -> Result<Text<MAX>, BrokenRule> {
    let text = members.text(name)?;
    text.parse().map_err(|_| {
        let why = match text {
            "" => "must not be empty".to_owned(),
            _ if text.chars().nth(MAX).is_some() => format!("longer than {MAX} characters"),
            _ => "holds a control character".to_owned(),
        };
        members.broken(AerRule::Text, name, why)
    })
}

/// Reads a required code.
pub(super) fn code(members: &Members<'_>, name: &str) -> Result<Code, BrokenRule> {
    let code = members.text(name)?;
    let needed = "1 to 64 letters, digits and _ . : + -";
    code.parse().map_err(|_| members.unfit(AerRule::Token, name, code, needed))
}

/// Reads a required integer from 0 to [`MAX_INTEGER`].
pub(super) fn count(members: &Members<'_>, name: &str) -> Result<u64, BrokenRule> {
    let count = members.required(name)?.as_u64().filter(|count| *count <= MAX_INTEGER);
    let needed = "a whole number of at least 0 is needed here";
    count.ok_or_else(|| members.broken(AerRule::Count, name, needed))
}

/// Reads a required SHA-256 digest.
pub(super) fn digest(members: &Members<'_>, name: &str) -> Result<Sha256Digest, BrokenRule> {
    let digest = members.text(name)?;
    let needed = "\"sha256:\" and 64 lower-case hex digits";
    digest.parse().map_err(|_| members.unfit(AerRule::Digest, name, digest, needed))
}
