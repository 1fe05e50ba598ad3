//! A condition's text as the body of a rule, and the engine's complaints as places in that text.

use std::fmt::Display;
use std::ops::Range;

use crate::error::CompileError;
use crate::limits::{BRACKET_DEPTH, BRACKETS, TEXT_BYTES};

/// The name that the engine knows our module by; its complaints begin with it.
pub(crate) const MODULE: &str = "condition";

/// The one rule of the module.
pub(crate) const RULE: &str = "holds";

/// The rule as the engine is asked for it.
pub(crate) const RULE_PATH: &str = "data.condition.holds";

const HEAD: &str = "package condition\n\nholds if {\n";
const HEAD_LINES: usize = 3;
const TAIL: &str = "\n}\n";

/// The condition as the body of our rule. The text ends before a line of its own holds the brace, so
/// that a comment cannot swallow it.
pub(crate) fn module(text: &str) -> String {
    [HEAD, text, TAIL].concat()
}

/// Refuses what is too long or nothing at all, before anything reads it.
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

/// The characters that are neither in a text nor in a comment, with their positions.
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

/// A place that the engine gave, as a place in the text.
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

/// The engine's complaint, with its place if it gives one.
pub(crate) fn located(text: &str, why: &impl Display) -> CompileError {
    let message = why.to_string();
    let reason = last_reason(&message);
    let (line, column) = position(&message).unwrap_or((HEAD_LINES + 1, 1));
    place(text, line, column, reason)
}

/// The engine's complaint in one line.
pub(crate) fn reason(why: &impl Display) -> String {
    last_reason(&why.to_string())
}

fn at_character(text: &str, at: usize, why: &str) -> CompileError {
    let before: String = text.chars().take(at).collect();
    let line = before.matches('\n').count() + 1;
    let column = before.rsplit('\n').next().unwrap_or_default().chars().count() + 1;
    CompileError { line, column, why: why.to_owned() }
}

/// The engine writes `--> condition:4:7`, a drawing of the line, and `error: what`.
fn position(message: &str) -> Option<(usize, usize)> {
    let (_, place) = message.split_once(&format!("--> {MODULE}:"))?;
    let mut numbers = place.split(|character: char| !character.is_ascii_digit());
    Some((numbers.next()?.parse().ok()?, numbers.next()?.parse().ok()?))
}

fn last_reason(message: &str) -> String {
    let reason = message.rsplit_once("error: ").map_or(message, |(_, reason)| reason);
    reason.split_whitespace().collect::<Vec<_>>().join(" ")
}

/// Where the text stands in the module.
pub(crate) fn range(text: &str) -> Range<usize> {
    HEAD.len()..HEAD.len() + text.len()
}
