//! Embedding of a condition's text in a rule, and translation of the engine's error positions into positions in the
//! text.

use std::fmt::Display;
use std::ops::Range;

use crate::error::CompileError;
use crate::limits::{BRACKET_DEPTH, BRACKETS, TEXT_BYTES};

/// The engine's name for the module, which begins its error positions.
pub(crate) const MODULE: &str = "condition";

/// The name of the module's only rule.
pub(crate) const RULE: &str = "holds";

/// The rule's path in the engine.
pub(crate) const RULE_PATH: &str = "data.condition.holds";

const HEAD: &str = "package condition\n\nholds if {\n";
const HEAD_LINES: usize = 3;
const TAIL: &str = "\n}\n";

/// Wraps the condition in a rule. The closing brace is on a line of its own, so that a comment at the end of the
/// condition cannot hide it.
pub(crate) fn module(text: &str) -> String {
    [HEAD, text, TAIL].concat()
}

/// Refuses a text that is empty, longer than [`TEXT_BYTES`], nested deeper than [`BRACKET_DEPTH`], or has more than
/// [`BRACKETS`] brackets or a control character, before it is parsed.
pub(crate) fn measure(text: &str) -> Result<(), CompileError> {
    if text.len() > TEXT_BYTES {
        return Err(CompileError::at_start(format!("the condition is longer than {TEXT_BYTES} bytes")));
    }
    if text.trim().is_empty() {
        return Err(CompileError::at_start("the condition is empty"));
    }
    if let Some(at) =
        text.chars().position(|character| character.is_control() && !matches!(character, '\n' | '\t'))
    {
        return Err(at_character(text, at, "control characters are not allowed"));
    }
    measure_brackets(text)
}

fn measure_brackets(text: &str) -> Result<(), CompileError> {
    let (mut depth, mut brackets) = (0_usize, 0_usize);
    for (at, character) in code(text) {
        match character {
            '(' | '[' | '{' => (depth, brackets) = (depth + 1, brackets + 1),
            ')' | ']' | '}' => depth = depth.saturating_sub(1),
            _ => {}
        }
        if depth > BRACKET_DEPTH {
            return Err(at_character(
                text,
                at,
                &format!("brackets are nested more than {BRACKET_DEPTH} deep"),
            ));
        }
        if brackets > BRACKETS {
            return Err(at_character(text, at, &format!("more than {BRACKETS} brackets")));
        }
    }
    Ok(())
}

/// Returns the characters outside of strings and comments, with their positions.
fn code(text: &str) -> impl Iterator<Item = (usize, char)> {
    let mut within = None;
    let mut escaped = false;
    text.chars().enumerate().filter(move |(_, character)| {
        let literal = escaped;
        escaped = false;
        match (within, *character) {
            (None, '#') => within = Some('\n'),
            (None, quote @ ('"' | '`')) => within = Some(quote),
            (None, _) => return true,
            (Some('"'), '\\') => escaped = !literal,
            (Some(end), character) if character == end && !literal => within = None,
            (Some(_), _) => {}
        }
        false
    })
}

/// Creates a [`CompileError`] from a position in the module, translated into a position in the text.
pub(crate) fn place(text: &str, line: usize, column: usize, why: impl Into<String>) -> CompileError {
    let lines = text.split('\n').count();
    let line = line.saturating_sub(HEAD_LINES);
    let why = why.into();
    match line {
        0 => CompileError::at_start(why),
        line if line > lines => {
            let last = text.split('\n').next_back().unwrap_or_default();
            CompileError { line: lines, column: last.chars().count() + 1, why }
        }
        line => CompileError { line, column: column.max(1), why },
    }
}

/// Creates a [`CompileError`] from an error message of the engine, with its position if it has one.
pub(crate) fn located(text: &str, why: &impl Display) -> CompileError {
    let message = why.to_string();
    let reason = last_reason(&message);
    let (line, column) = position(&message).unwrap_or((HEAD_LINES + 1, 1));
    place(text, line, column, reason)
}

/// Returns the engine's error message as one line.
pub(crate) fn reason(why: &impl Display) -> String {
    last_reason(&why.to_string())
}

fn at_character(text: &str, at: usize, why: &str) -> CompileError {
    let before: String = text.chars().take(at).collect();
    let line = before.matches('\n').count() + 1;
    let column = before.rsplit('\n').next().unwrap_or_default().chars().count() + 1;
    CompileError { line, column, why: why.to_owned() }
}

/// Parses the position in an error message, which has the form `--> condition:4:7`, a drawing of the line, and
/// `error: what`.
fn position(message: &str) -> Option<(usize, usize)> {
    let (_, place) = message.split_once(&format!("--> {MODULE}:"))?;
    let mut numbers = place.split(|character: char| !character.is_ascii_digit());
    Some((numbers.next()?.parse().ok()?, numbers.next()?.parse().ok()?))
}

fn last_reason(message: &str) -> String {
    let reason = message.rsplit_once("error: ").map_or(message, |(_, reason)| reason);
    reason.split_whitespace().collect::<Vec<_>>().join(" ")
}

/// Returns the byte range of the text in the module.
pub(crate) fn range(text: &str) -> Range<usize> {
    HEAD.len()..HEAD.len() + text.len()
}
