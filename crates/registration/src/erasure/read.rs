//! Parser for the payload of an erasure statement.

use jose::json;
use jose::members::quote;
use merkle::EntryDigest;
use serde_json::{Map, Value};

use super::{Erasure, ErasureRule};
use crate::limits::{JSON_DEPTH, MAX_ERASED, MAX_INTEGER, MAX_REASON};
use crate::stated_time::StatedTime;
use crate::violation::Violation;

/// The names of the payload's members; the last two are optional.
const MEMBERS: [&str; 6] = ["sequence", "entries", "reason", "rule", "at", "authorized_by"];
/// Maximum length of `rule` in bytes.
const MAX_RULE: usize = 64;

impl Erasure {
    /// Parses a payload: canonical JSON without unknown members.
    pub fn from_payload(payload: &[u8]) -> Result<Erasure, Violation> {
        let limits = json::Limits { depth: JSON_DEPTH, ..json::Limits::default() };
        let document = json::parse_strict(payload, limits).map_err(|error| {
            let detail = format!("{} at byte {} of the JSON", error.kind, error.offset);
            ErasureRule::Json.in_payload(error.pointer.clone(), detail)
        })?;
        let Value::Object(members) = &document else {
            return Err(ErasureRule::Json.in_payload("", "the payload is not an object"));
        };
        if jose::jcs::canonical(&document) != payload {
            let detail = "the JSON is not in its canonical form (RFC 8785)";
            return Err(ErasureRule::Canonical.in_payload("", detail));
        }
        if let Some(name) = members.keys().find(|name| !MEMBERS.contains(&name.as_str())) {
            return Err(member("", &format!("{} is not known here", quote(name))));
        }
        Erasure::of(members)
    }

    fn of(members: &Map<String, Value>) -> Result<Erasure, Violation> {
        Ok(Erasure {
            sequence: sequence(members)?,
            entries: entries(members)?,
            reason: words(members, "reason")?,
            rule: rule(members)?,
            at: members.get("at").map(|_| at(members)).transpose()?,
            authorized_by: members
                .get("authorized_by")
                .map(|_| words(members, "authorized_by"))
                .transpose()?,
        })
    }
}

fn member(pointer: &str, detail: &str) -> Violation {
    ErasureRule::Member.in_payload(pointer, detail)
}

fn text<'a>(members: &'a Map<String, Value>, name: &str) -> Result<&'a str, Violation> {
    let text = members.get(name).and_then(Value::as_str);
    text.ok_or_else(|| member(&format!("/{name}"), "a string is needed here"))
}

fn sequence(members: &Map<String, Value>) -> Result<u64, Violation> {
    let value = members.get("sequence").ok_or_else(|| member("/sequence", "this member is required"))?;
    value.as_u64().filter(|sequence| *sequence <= MAX_INTEGER).ok_or_else(|| {
        ErasureRule::Sequence.in_payload("/sequence", "an integer from 0 to 2^53-1 is needed here")
    })
}

fn entries(members: &Map<String, Value>) -> Result<Vec<EntryDigest>, Violation> {
    let Some(Value::Array(items)) = members.get("entries") else {
        return Err(member("/entries", "a list of entry IDs is needed here"));
    };
    if !(1..=MAX_ERASED).contains(&items.len()) {
        let detail = format!("1 to {MAX_ERASED} entries are needed here, found {}", items.len());
        return Err(ErasureRule::Entries.in_payload("/entries", detail));
    }
    let mut entries: Vec<EntryDigest> = Vec::with_capacity(items.len());
    for (i, item) in items.iter().enumerate() {
        let entry = item.as_str().and_then(entry_id);
        match entry {
            Some(entry) if entries.last().is_none_or(|last| last.as_bytes() < entry.as_bytes()) => {
                entries.push(entry);
            }
            Some(_) => {
                let detail = "entries are in ascending order, each once";
                return Err(ErasureRule::Entries.in_payload(format!("/entries/{i}"), detail));
            }
            None => {
                let detail = "an entry ID is needed here: 64 lower-case hex digits";
                return Err(ErasureRule::Entries.in_payload(format!("/entries/{i}"), detail));
            }
        }
    }
    Ok(entries)
}

fn entry_id(text: &str) -> Option<EntryDigest> {
    let bytes = data_encoding::HEXLOWER.decode(text.as_bytes()).ok()?;
    Some(EntryDigest::from_bytes(bytes.try_into().ok()?))
}

fn words(members: &Map<String, Value>, name: &str) -> Result<String, Violation> {
    let words = text(members, name)?;
    match words.chars().count() {
        1..=MAX_REASON => Ok(words.to_owned()),
        _ => {
            let detail = format!("1 to {MAX_REASON} characters are needed here");
            Err(ErasureRule::Reason.in_payload(format!("/{name}"), detail))
        }
    }
}

fn rule(members: &Map<String, Value>) -> Result<String, Violation> {
    let rule = text(members, "rule")?;
    let in_rule = |b: u8| b.is_ascii_lowercase() || b.is_ascii_digit() || b == b'-';
    match (1..=MAX_RULE).contains(&rule.len()) && rule.bytes().all(in_rule) {
        true => Ok(rule.to_owned()),
        false => {
            let detail =
                format!("found {}, needed lower-case letters, digits and -, at most 64", quote(rule));
            Err(ErasureRule::Rule.in_payload("/rule", detail))
        }
    }
}

fn at(members: &Map<String, Value>) -> Result<String, Violation> {
    let at = text(members, "at")?;
    match StatedTime::parse(at).filter(|at| !at.numeric_offset) {
        Some(_) => Ok(at.to_owned()),
        None => {
            let detail = format!("found {}, needed YYYY-MM-DDThh:mm:ssZ, a time that exists", quote(at));
            Err(ErasureRule::At.in_payload("/at", detail))
        }
    }
}
