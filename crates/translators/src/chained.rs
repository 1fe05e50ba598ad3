//! Reader for hash-chained logs of other tools: one JSON object a line, with its own `hash` and that of the line
//! before.
//!
//! One rule for the hash is known, `sha-256-jcs`: SHA-256 of the line without its `hash`, in canonical JSON (RFC
//! 8785), as hex with or without `sha256:`. If it explains any line, it must explain all. If it explains none, only
//! the links are verified. A line that does not fit is an error, because a chain that does not verify proves nothing.
//!
//! The lines become events with their own times, which are claims of the tool.

use data_encoding::HEXLOWER;
use serde_json::{Value, json};
use sha2::{Digest, Sha256};

use crate::account::{NativeOutcome, TranslationAccount};
use crate::entry::{Entry, SYSTEM_EVENT};
use crate::error::TranslateError;
use crate::lines::{self, Line};
use crate::native::Native;
use crate::session::{Models, Session};
use crate::source::SourceFile;
use crate::time::Span;

const HASH: &str = "hash";
/// Names of the member with the hash of the line before.
const PREVIOUS: [&str; 6] = ["prev_hash", "previous_hash", "prevHash", "previousHash", "parent_hash", "prev"];
const TIME: [&str; 4] = ["timestamp", "time", "ts", "created_at"];
const EVENT_TYPE: [&str; 5] = ["event_type", "event", "type", "action", "kind"];
const SESSION: [&str; 4] = ["session_id", "sessionId", "run_id", "trace_id"];

/// Returns whether a line has a hash and that of the line before.
pub(crate) fn recognizes(line: &Value) -> bool {
    let has_previous = PREVIOUS.iter().any(|name| line.get(*name).is_some());
    line.get(HASH).is_some_and(Value::is_string) && has_previous
}

/// Reads the session of a file, and verifies its chain.
///
/// # Errors
/// [`TranslateError::BrokenChain`] at the first line that does not fit.
pub(crate) fn read(
    file: &SourceFile,
    account: &mut TranslationAccount,
) -> Result<Vec<Session>, TranslateError> {
    let lines = lines::read(file, account);
    if lines.is_empty() {
        return Ok(Vec::new());
    }
    let chain = verify(&lines)?;
    if chain["rule"] == LINKS {
        account.remark(&file.path, "the rule of the hashes is not known: only the links were verified");
    }
    if chain.get(UNVERIFIED).and_then(Value::as_str).is_some_and(names_a_line) {
        account.remark(&file.path, "the first line names a line before it, which is not in the file");
    }
    let mut session = header(file, &lines);
    session.hash_chain = Some(chain);
    for line in lines {
        let entry = entry(line.value);
        account.entry("line", NativeOutcome::Kept(SYSTEM_EVENT));
        session.entries.push(entry);
    }
    Ok(vec![session])
}

/// The name of the known rule.
const RULE: &str = "sha-256-jcs";
/// The name for an unknown rule.
const LINKS: &str = "links";
/// The member for the hash that the first line names: the line before it is not in the file.
const UNVERIFIED: &str = "unverified-previous";

/// Verifies the hashes and links, and returns what was verified.
fn verify(lines: &[Line]) -> Result<Value, TranslateError> {
    let known =
        lines.iter().any(|line| hash_of(&line.value).is_some_and(|hash| hash == computed(&line.value)));
    let mut before: Option<String> = None;
    for line in lines {
        let broken = |why: &str| TranslateError::BrokenChain { line: line.number, why: why.to_owned() };
        let hash = hash_of(&line.value).ok_or_else(|| broken("it has no hash"))?;
        if known && hash != computed(&line.value) {
            return Err(broken("its hash is not that of its content"));
        }
        if before.as_ref().is_some_and(|before| previous_of(&line.value).as_ref() != Some(before)) {
            return Err(broken("it does not name the hash of the line before"));
        }
        before = Some(hash);
    }
    let mut chain = json!({ "rule": if known { RULE } else { LINKS }, "lines": lines.len(), "head": before });
    if let Some(previous) = lines.first().and_then(|line| previous_of(&line.value)) {
        chain[UNVERIFIED] = previous.into();
    }
    Ok(chain)
}

/// Returns whether this hash is that of a line, and not the zeros with which a chain begins.
fn names_a_line(hash: &str) -> bool {
    !hash.trim_start_matches("0x").bytes().all(|byte| byte == b'0')
}

fn hash_of(line: &Value) -> Option<String> {
    line.get(HASH)?.as_str().map(bare)
}

fn previous_of(line: &Value) -> Option<String> {
    PREVIOUS.iter().find_map(|name| line.get(*name)?.as_str()).map(bare)
}

/// Returns a hash in lower case without the name of its algorithm.
fn bare(hash: &str) -> String {
    let digits = hash.strip_prefix("sha256:").or_else(|| hash.strip_prefix("sha-256:")).unwrap_or(hash);
    digits.to_ascii_lowercase()
}

fn computed(line: &Value) -> String {
    let mut content = line.clone();
    if let Value::Object(members) = &mut content {
        members.remove(HASH);
    }
    HEXLOWER.encode(&Sha256::digest(jose::jcs::canonical(&content)))
}

fn header(file: &SourceFile, lines: &[Line]) -> Session {
    let first = |names: &[&str]| {
        let mut values = lines.iter().flat_map(|line| names.iter().filter_map(|name| line.value.get(*name)));
        values.find_map(Value::as_str).map(str::to_owned)
    };
    let mut span = Span::default();
    lines.iter().for_each(|line| span.include(TIME.iter().find_map(|name| line.value.get(*name))));
    let mut models = Models::default();
    first(&["model", "model_id"]).iter().for_each(|model| models.add(model));
    Session {
        id: first(&SESSION).unwrap_or_else(|| file.stem().to_owned()),
        start: span.start(),
        end: span.end(),
        models,
        cli_name: first(&["agent", "agent_id"]),
        ..Session::default()
    }
}

fn entry(line: Value) -> Entry {
    let mut line = match Native::of(line) {
        Ok(line) => line,
        Err(value) => return Entry::event_of_value("non-object", value),
    };
    let time = TIME.iter().find_map(|name| line.get(name)).cloned();
    let kind = EVENT_TYPE.iter().find_map(|name| line.take_text(name));
    Entry::event(kind.unwrap_or_else(|| "entry".to_owned()), line.rest()).at(time)
}
