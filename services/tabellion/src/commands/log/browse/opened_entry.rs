//! The page of an opened entry: its decoded parts, the checks of `tabellion verify`, and its payload, as lines that fit
//! the screen.

use std::borrow::Cow;
use std::io::{self, Write};

use anstream::adapter::strip_str;
use scitt::SignedStatement;
use serde_json::Value as Json;
use verifier::VerificationOutcome;

use super::movement::Movement;
use crate::commands::entry::with_times;
use crate::commands::statement;
use crate::commands::verify::VerifiedFile;
use crate::console::{Report, safe};
use crate::show;

/// Maximum size in bytes of a payload on the page. `entry get` and `statement inspect` have the rest.
const PAYLOAD_BYTES: usize = 256 * 1024;

/// An opened entry.
#[derive(Debug)]
pub struct OpenedEntry {
    /// The entry ID.
    pub id: String,
    /// The outcome of the verification; `None` if the log does not serve the statement.
    pub outcome: Option<VerificationOutcome>,
    text: String,
    /// The text, cut to the width of the screen.
    lines: Vec<String>,
    /// Position of the first line on the screen.
    first: usize,
    area: TextArea,
}

/// The part of the screen for the text, in characters and lines.
#[derive(Clone, Copy, Debug, Default)]
struct TextArea {
    columns: usize,
    rows: usize,
}

impl OpenedEntry {
    /// Creates the page of an entry that was verified.
    pub fn verified(id: &str, entry: &Json, statement: &SignedStatement, verified: &VerifiedFile) -> Self {
        let text = text_of(|out| {
            verified.human(out)?;
            writeln!(out)?;
            write_entry(out, entry)?;
            statement::write_parts(out, statement)?;
            write_payload(out, statement)
        });
        Self::new(id, Some(verified.outcome()), text)
    }

    /// Creates the page of an entry whose statement the log does not serve.
    pub fn not_served(id: &str, entry: &Json, why: &str) -> Self {
        let text = text_of(|out| {
            writeln!(out, "not verified: the log does not serve the statement\n{}\n", safe(why))?;
            write_entry(out, entry)
        });
        Self::new(id, None, text)
    }

    fn new(id: &str, outcome: Option<VerificationOutcome>, text: String) -> Self {
        Self { id: id.to_owned(), outcome, text, lines: Vec::new(), first: 0, area: TextArea::default() }
    }

    /// Cuts the lines to a screen of this many columns and rows.
    pub fn fit(&mut self, columns: usize, rows: usize) {
        if self.area.columns != columns {
            self.lines = self.text.lines().flat_map(|line| folded(line, columns.max(1))).collect();
        }
        self.area = TextArea { columns, rows: rows.max(1) };
        self.scroll(Movement::Lines(0));
    }

    /// Scrolls the text.
    pub fn scroll(&mut self, movement: Movement) {
        let rows = self.area.rows;
        self.first = movement.apply(self.first, rows, self.lines.len().saturating_sub(rows));
    }

    /// The lines on the screen.
    pub fn visible(&self) -> &[String] {
        let end = self.lines.len().min(self.first + self.area.rows);
        &self.lines[self.first..end]
    }
}

/// Returns what `write` writes, without colours.
fn text_of(write: impl FnOnce(&mut dyn Write) -> io::Result<()>) -> String {
    let mut bytes = Vec::new();
    match write(&mut bytes) {
        Ok(()) => strip_str(&String::from_utf8_lossy(&bytes)).to_string(),
        Err(error) => error.to_string(),
    }
}

fn write_entry(out: &mut dyn Write, entry: &Json) -> io::Result<()> {
    match entry {
        Json::Object(members) => show::lines(out, 0, &with_times(members)),
        other => writeln!(out, "{}", safe(&other.to_string())),
    }
}

/// Writes a payload that is text, strict JSON with indentation.
fn write_payload(out: &mut dyn Write, statement: &SignedStatement) -> io::Result<()> {
    let Some(text) = statement.payload().and_then(|payload| std::str::from_utf8(payload).ok()) else {
        return Ok(());
    };
    if text.len() > PAYLOAD_BYTES {
        return Ok(());
    }
    writeln!(out)?;
    indented(text).lines().try_for_each(|line| writeln!(out, "{}", safe(line)))
}

/// Indents strict JSON. Another text, for example JSON with a member twice, stays as it is.
fn indented(text: &str) -> Cow<'_, str> {
    match jose::json::check_text(text) {
        Ok(json) => Cow::Owned(display::indented_json(json.text())),
        Err(_) => Cow::Borrowed(text),
    }
}

/// Splits a line into parts of at most `columns` characters; at least one.
fn folded(line: &str, columns: usize) -> Vec<String> {
    let characters: Vec<char> = line.chars().collect();
    let parts: Vec<String> = characters.chunks(columns).map(|part| part.iter().collect()).collect();
    if parts.is_empty() { vec![String::new()] } else { parts }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn long_lines_are_folded_and_scrolling_ends_at_both_ends() {
        let text = "abcdef\n\nxyz\n".to_owned();
        let mut page = OpenedEntry::new("", None, text);
        page.fit(4, 2);
        assert_eq!(page.visible(), ["abcd", "ef"]);
        page.scroll(Movement::Screens(9));
        assert_eq!(page.visible(), ["", "xyz"]);
        page.scroll(Movement::Lines(isize::MIN));
        page.fit(80, 9);
        assert_eq!(page.visible(), ["abcdef", "", "xyz"]);
    }

    #[test]
    fn a_payload_is_shown_with_the_values_that_were_signed() {
        assert_eq!(indented("{\"b\":1e2,\"a\":-0}"), "{\n  \"b\": 1e2,\n  \"a\": -0\n}");
        for text in ["{\"a\":1,\"a\":2}", "no JSON"] {
            assert_eq!(indented(text), text);
        }
    }

    #[test]
    fn text_of_an_entry_cannot_control_the_terminal() {
        let entry = serde_json::json!({ "sub": "\u{1b}[2Jgone", "at": "\u{202e}" });
        let mut page = OpenedEntry::not_served("ab", &entry, "\u{9b}31m");
        page.fit(80, 20);
        let text = page.visible().join("\n");
        assert!(text.contains("\\u{1b}[2Jgone") && text.contains("\\u{9b}31m"), "{text}");
        assert!(text.chars().all(|c| c == '\n' || display::is_plain(c)), "{text:?}");
    }
}
