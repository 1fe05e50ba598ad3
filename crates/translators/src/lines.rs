//! Native entries as JSON texts: one on each line, or one after another.

use std::borrow::Cow;

use jose::json::{JsonError, JsonErrorKind, Limits, parse_strict};
use serde::de::IgnoredAny;
use serde_json::value::RawValue;
use serde_json::{Value, json};

use crate::account::TranslationAccount;
use crate::limits::{DETECTION_LINES, NATIVE_DEPTH, SOURCE_BYTES};
use crate::record;
use crate::repair::{REPLACED, repaired};
use crate::source::{SourceFile, without_byte_order_mark};

/// The type of the entry for JSON that cannot be in a record.
const UNREADABLE: &str = "unreadable-line";

const LIMITS: Limits = Limits { bytes: SOURCE_BYTES, depth: NATIVE_DEPTH };

/// A line of a file, parsed.
pub(crate) struct Line {
    /// The line's number, counted from 1.
    pub number: usize,
    pub value: Value,
}

/// Reads the lines of a file. Empty lines are not entries; a line that is not JSON is broken. Of JSON that cannot be in a record
/// the digest is an entry, so that what was done there is not hidden.
pub(crate) fn read(file: &SourceFile, account: &mut TranslationAccount) -> Vec<Line> {
    let mut lines = Vec::new();
    for (number, line) in filled(file.content()) {
        for (text, parsed) in parse_line(line) {
            account.total += 1;
            match parsed {
                Ok(Parsed { value, is_repaired }) => {
                    if is_repaired {
                        account.remark_line(&file.path, number, REPLACED);
                    }
                    lines.push(Line { number, value });
                }
                Err(error) if error.is_syntax() => {
                    account.broken(&file.path, Some(number), error.to_string());
                }
                Err(error) => {
                    let reason = format!("only its digest is in the record: {error}");
                    account.remark_line(&file.path, number, reason);
                    lines.push(Line { number, value: digest_of(number, text, &error) });
                }
            }
        }
    }
    lines
}

/// The entry for JSON that cannot be in a record.
fn digest_of(number: usize, text: &[u8], error: &JsonError) -> Value {
    json!({
        "type": UNREADABLE,
        "line": number,
        "bytes": text.len(),
        "digest": record::digest(text),
        "reason": error.kind.to_string(),
    })
}

/// Parses the first lines of a file, as far as they are JSON.
pub(crate) fn sample(bytes: &[u8]) -> Vec<Value> {
    let parsed = filled(bytes).take(DETECTION_LINES).flat_map(|(_, line)| parse_line(line));
    parsed.filter_map(|(_, parsed)| Some(parsed.ok()?.value)).collect()
}

/// Parses a line: one JSON text, or several where a line break is missing, as between files that were joined. Returns each
/// with its text.
fn parse_line(line: &[u8]) -> Vec<(&[u8], Result<Parsed, JsonError>)> {
    match parse(line) {
        Err(_) if line.starts_with(b"{") => texts(line).into_iter().map(|text| (text, parse(text))).collect(),
        parsed => vec![(line, parsed)],
    }
}

/// Returns the JSON texts that follow each other on a line. What is none is the last of them.
fn texts(line: &[u8]) -> Vec<&[u8]> {
    let (mut texts, mut rest) = (Vec::new(), line);
    while !rest.is_empty() {
        let (text, after) = rest.split_at(first_length(rest).unwrap_or(rest.len()));
        texts.push(text);
        rest = trimmed(after);
    }
    texts
}

/// Returns the length of the first of the JSON texts that follow each other; `None` if there is none. Its characters are not
/// checked, as they may be replaced.
fn first_length(texts: &[u8]) -> Option<usize> {
    let mut stream = serde_json::Deserializer::from_slice(texts).into_iter::<IgnoredAny>();
    stream.next()?.ok()?;
    Some(stream.byte_offset())
}

/// Returns a line without the byte order mark of a file that was joined with others, and without blanks around it.
fn trimmed(line: &[u8]) -> &[u8] {
    without_byte_order_mark(line.trim_ascii()).trim_ascii()
}

fn filled(bytes: &[u8]) -> impl Iterator<Item = (usize, &[u8])> {
    let lines = bytes.split(|byte| *byte == b'\n').map(trimmed);
    lines.enumerate().filter(|(_, text)| !text.is_empty()).map(|(index, text)| (index + 1, text))
}

/// Parses a file or value that is one JSON text; `path` is its name in the account.
pub(crate) fn document(path: &str, bytes: &[u8], account: &mut TranslationAccount) -> Result<Value, String> {
    let Parsed { value, is_repaired } = parse(bytes).map_err(|error| error.to_string())?;
    if is_repaired {
        account.remark(path, REPLACED);
    }
    Ok(value)
}

/// A native JSON text, parsed.
struct Parsed {
    value: Value,
    /// True if characters were replaced.
    is_repaired: bool,
}

/// Parses strict JSON. Characters that a record may not have are replaced.
fn parse(bytes: &[u8]) -> Result<Parsed, JsonError> {
    let strict = parse_strict(bytes, LIMITS);
    match strict {
        Ok(value) => Ok(Parsed { value, is_repaired: false }),
        Err(error) if matches!(error.kind, JsonErrorKind::NotUtf8 | JsonErrorKind::LoneSurrogate) => {
            let text = repaired(bytes).ok_or(error)?;
            Ok(Parsed { value: parse_strict(text.as_bytes(), LIMITS)?, is_repaired: true })
        }
        Err(error) => Err(error),
    }
}

/// Parses arguments that are JSON in a text. A text that nests deeper than a native entry may stays a text.
pub(crate) fn parsed(arguments: Value) -> Value {
    match arguments.as_str().map(|text| parse(text.as_bytes())) {
        Some(Ok(Parsed { value, is_repaired: false })) => value,
        _ => arguments,
    }
}

/// Returns whether the first JSON text of a file has several lines, also if its end is missing. A line of changes that was cut
/// off is none: the next line begins another object.
pub(crate) fn begins_indented(bytes: &[u8]) -> bool {
    let text = bytes.trim_ascii_start();
    let second_line = text.split(|byte| *byte == b'\n').nth(1);
    let begins_another = second_line.is_some_and(|line| line.trim_ascii_start().starts_with(b"{"));
    let mut stream = serde_json::Deserializer::from_slice(text).into_iter::<IgnoredAny>();
    match stream.next() {
        Some(Ok(_)) => text[..stream.byte_offset()].contains(&b'\n'),
        Some(Err(error)) => error.line() > 2 && !begins_another,
        None => false,
    }
}

/// Parses the first of the JSON texts that follow each other in a file.
pub(crate) fn first_document(bytes: &[u8]) -> Option<Value> {
    let text = String::from_utf8_lossy(bytes);
    let first = serde_json::Deserializer::from_str(&text).into_iter::<&RawValue>().next()?;
    Some(parse(first.ok()?.get().as_bytes()).ok()?.value)
}

/// Parses JSON texts that follow each other in a file, over any number of lines. After a syntax error the rest of the
/// file is one broken entry.
pub(crate) fn documents(file: &SourceFile, account: &mut TranslationAccount) -> Vec<Value> {
    let mut found = Vec::new();
    let content = String::from_utf8_lossy(file.content());
    if matches!(content, Cow::Owned(_)) {
        account.remark(&file.path, REPLACED);
    }
    for text in serde_json::Deserializer::from_str(&content).into_iter::<&RawValue>() {
        account.total += 1;
        let value = match text {
            Ok(text) => document(&file.path, text.get().as_bytes(), account),
            Err(error) => Err(error.to_string()),
        };
        match value {
            Ok(value) => found.push(value),
            Err(reason) => account.broken(&file.path, None, reason),
        }
    }
    found
}
