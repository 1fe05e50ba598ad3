//! Native entries as JSON texts: one on each line, or one after another.

use jose::json::{JsonError, Limits, parse_strict};
use serde_json::Value;
use serde_json::value::RawValue;

use crate::account::TranslationAccount;
use crate::limits::{DETECTION_LINES, NATIVE_DEPTH, SOURCE_BYTES};
use crate::source::SourceFile;

const LIMITS: Limits = Limits { bytes: SOURCE_BYTES, depth: NATIVE_DEPTH };

/// A line of a file, parsed.
pub(crate) struct Line {
    /// The line's number, counted from 1.
    pub number: usize,
    pub value: Value,
}

/// Reads the lines of a file. Empty lines are no entries; a line that is not strict JSON is broken.
pub(crate) fn read(file: &SourceFile, account: &mut TranslationAccount) -> Vec<Line> {
    let mut lines = Vec::new();
    for (number, text) in filled(file.content()) {
        account.total += 1;
        match parse(text) {
            Ok(value) => lines.push(Line { number, value }),
            Err(error) => account.broken(&file.path, Some(number), error.to_string()),
        }
    }
    lines
}

/// Parses the first lines of a file, as far as they are JSON.
pub(crate) fn sample(bytes: &[u8]) -> Vec<Value> {
    filled(bytes).take(DETECTION_LINES).filter_map(|(_, text)| parse_strict(text, LIMITS).ok()).collect()
}

fn filled(bytes: &[u8]) -> impl Iterator<Item = (usize, &[u8])> {
    let lines = bytes.split(|byte| *byte == b'\n').map(<[u8]>::trim_ascii).enumerate();
    lines.filter(|(_, text)| !text.is_empty()).map(|(index, text)| (index + 1, text))
}

/// Parses a file that is one JSON text.
pub(crate) fn document(bytes: &[u8]) -> Result<Value, String> {
    parse(bytes).map_err(|error| error.to_string())
}

/// Parses strict JSON. Numbers that a record may not have become texts.
fn parse(bytes: &[u8]) -> Result<Value, JsonError> {
    let mut value = parse_strict(bytes, LIMITS)?;
    write_out_large_integers(&mut value);
    Ok(value)
}

/// Replaces by their digits the numbers that canonical JSON (RFC 8785) writes as integers beyond 64 bits, which a record may not
/// have (reading 1.6-5).
fn write_out_large_integers(value: &mut Value) {
    /// From here on canonical JSON writes numbers with an exponent.
    const EXPONENT: f64 = 1e21;
    match value {
        Value::Array(items) => items.iter_mut().for_each(write_out_large_integers),
        Value::Object(members) => members.values_mut().for_each(write_out_large_integers),
        Value::Number(number) => {
            let beyond = |number: f64| !(-(2f64.powi(63)) < number && number < 2f64.powi(64));
            if number.is_f64() && number.as_f64().is_some_and(|of| beyond(of) && of.abs() < EXPONENT) {
                *value = Value::String(number.to_string());
            }
        }
        Value::Null | Value::Bool(_) | Value::String(_) => {}
    }
}

/// Parses arguments that are JSON in a text. A text that nests deeper than a native entry may stays a text.
pub(crate) fn parsed(arguments: Value) -> Value {
    match arguments.as_str().map(|text| document(text.as_bytes())) {
        Some(Ok(parsed)) => parsed,
        _ => arguments,
    }
}

/// Parses the first of the JSON texts that follow each other in a file.
pub(crate) fn first_document(bytes: &[u8]) -> Option<Value> {
    let first = serde_json::Deserializer::from_slice(bytes).into_iter::<&RawValue>().next()?;
    document(first.ok()?.get().as_bytes()).ok()
}

/// Parses JSON texts that follow each other in a file, over any number of lines. After a syntax error the rest of the
/// file is one broken entry.
pub(crate) fn documents(file: &SourceFile, account: &mut TranslationAccount) -> Vec<Value> {
    let mut found = Vec::new();
    for text in serde_json::Deserializer::from_slice(file.content()).into_iter::<&RawValue>() {
        account.total += 1;
        let value = match text {
            Ok(text) => document(text.get().as_bytes()),
            Err(error) => Err(error.to_string()),
        };
        match value {
            Ok(value) => found.push(value),
            Err(reason) => account.broken(&file.path, None, reason),
        }
    }
    found
}
