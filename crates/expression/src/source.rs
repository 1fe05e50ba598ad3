//! A condition's text as the body of a rule, and the engine's complaints as places in that text.

use std::fmt::Display;

use crate::error::CompileError;
use crate::limits::TEXT_BYTES;

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
    if let Some(at) = text.chars().position(|character| character.is_control() && !matches!(character, '\n' | '\t')) {
        return Err(at_character(text, at, "control characters are not allowed"));
    }
    Ok(())
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

/// Where the text begins in the module.
pub(crate) const fn offset() -> usize {
    HEAD.len()
}
