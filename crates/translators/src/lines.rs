//! Native entries as JSON texts: one on each line, or one after another.

use jose::json::{JsonError, JsonErrorKind, Limits, parse_strict};
use serde::de::IgnoredAny;
use serde_json::value::RawValue;
use serde_json::{Value, json};

use crate::account::TranslationAccount;
use crate::limits::{DETECTION_LINES, INDENTED_TRIES, NATIVE_DEPTH, SOURCE_BYTES};
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
    by_line(&file.path, file.content(), account)
}

/// Reads JSON texts of which some may have several lines: by line up to the first of these, and from there on one after
/// another.
pub(crate) fn read_mixed(file: &SourceFile, account: &mut TranslationAccount) -> Vec<Value> {
    let (lines, documents) = file.content().split_at(first_indented(file.content()));
    let before = line_breaks(lines);
    let mut values: Vec<Value> =
        by_line(&file.path, lines, account).into_iter().map(|line| line.value).collect();
    values.extend(one_after_another(&file.path, (documents, before), account));
    values
}

/// Reads JSON texts that follow each other in a file, over any number of lines. After a syntax error the rest of the file is one
/// broken entry.
pub(crate) fn documents(file: &SourceFile, account: &mut TranslationAccount) -> Vec<Value> {
    one_after_another(&file.path, (file.content(), 0), account)
}

fn by_line(path: &str, bytes: &[u8], account: &mut TranslationAccount) -> Vec<Line> {
    let mut lines = Vec::new();
    for (number, line) in filled(bytes) {
        for (text, parsed) in parse_line(line) {
            let value = accounted(path, (number, text), parsed, account);
            lines.extend(value.map(|value| Line { number, value }));
        }
    }
    lines
}

/// Reads the texts of a part of a file, which begins after so many line breaks.
fn one_after_another(
    path: &str,
    (bytes, before): (&[u8], usize),
    account: &mut TranslationAccount,
) -> Vec<Value> {
    let (mut values, mut number, mut counted) = (Vec::new(), before + 1, 0);
    for (start, text) in texts(bytes) {
        number += line_breaks(&bytes[counted..start]);
        counted = start;
        values.extend(accounted(path, (number, text), parse(text), account));
    }
    values
}

/// Counts a text that begins on the line of that number, and returns its value: a digest if it is JSON that cannot be in a
/// record, `None` if it is no JSON.
fn accounted(
    path: &str,
    (number, text): (usize, &[u8]),
    parsed: Result<Parsed, JsonError>,
    account: &mut TranslationAccount,
) -> Option<Value> {
    account.total += 1;
    match parsed {
        Ok(Parsed { value, is_repaired }) => {
            if is_repaired {
                account.remark_line(path, number, REPLACED);
            }
            Some(value)
        }
        Err(error) if error.is_syntax() => {
            account.broken(path, Some(number), error.to_string());
            None
        }
        Err(error) => {
            account.remark_line(path, number, format!("only its digest is in the record: {error}"));
            Some(digest_of(number, text, &error))
        }
    }
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
        Err(_) if line.starts_with(b"{") => {
            texts(line).into_iter().map(|(_, text)| (text, parse(text))).collect()
        }
        parsed => vec![(line, parsed)],
    }
}

/// Returns the JSON texts that follow each other, each with its place. What is none is the last of them.
fn texts(bytes: &[u8]) -> Vec<(usize, &[u8])> {
    let (mut texts, mut at) = (Vec::new(), blanks(bytes));
    while at < bytes.len() {
        let rest = &bytes[at..];
        let text = &rest[..first_length(rest).unwrap_or(rest.len())];
        texts.push((at, text.trim_ascii()));
        at += text.len();
        at += blanks(&bytes[at..]);
    }
    texts
}

/// Returns the length of the blanks and byte order marks before the next text.
fn blanks(bytes: &[u8]) -> usize {
    bytes.len() - without_byte_order_mark(bytes.trim_ascii_start()).trim_ascii_start().len()
}

fn line_breaks(bytes: &[u8]) -> usize {
    bytes.iter().filter(|byte| **byte == b'\n').count()
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

/// Returns where the first JSON text of several lines begins; the length of the file if each has one line.
fn first_indented(bytes: &[u8]) -> usize {
    if begins_indented(bytes) {
        return 0;
    }
    let mut end = 0;
    let starts = bytes.split_inclusive(|byte| *byte == b'\n').filter_map(|line| {
        end += line.len();
        object_start(line).map(|at| end - line.len() + at)
    });
    starts.take(INDENTED_TRIES).find(|at| first_length(&bytes[*at..]).is_some()).unwrap_or(bytes.len())
}

/// Returns the place of the brace at the end of a line with which an object of several lines begins: nothing is before it but
/// whole JSON texts, and it is not indented.
fn object_start(line: &[u8]) -> Option<usize> {
    let before = line.trim_ascii_end().strip_suffix(b"{")?;
    let texts = without_byte_order_mark(before);
    let mut stream = serde_json::Deserializer::from_slice(texts).into_iter::<IgnoredAny>();
    (!texts.starts_with(b" ") && !texts.starts_with(b"\t") && stream.all(|text| text.is_ok()))
        .then_some(before.len())
}

/// Returns whether the first JSON text of a file has several lines, also if its end is missing. A line of changes that was cut
/// off is none: the next line begins another object.
fn begins_indented(bytes: &[u8]) -> bool {
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
