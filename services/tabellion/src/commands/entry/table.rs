//! Lists of entries: on a terminal with headings and short entry IDs, in pipes and files one whole line for each entry.

use std::io::{self, Write};

use owo_colors::OwoColorize;
use serde_json::Value as Json;

use crate::console::Console;
use crate::show::{number, text};

/// Number of hexadecimal digits of an entry ID on a terminal. `entry get` takes the leaf index.
const ID_DIGITS: usize = 12;

/// The layout of a list.
#[derive(Clone, Copy, Debug)]
pub struct EntryTable {
    is_terminal: bool,
}

impl EntryTable {
    /// The layout for the console.
    pub fn of(console: &Console) -> Self {
        Self { is_terminal: console.writes_to_terminal() }
    }

    /// Writes the headings and the entries; of no entries nothing.
    pub fn write(self, out: &mut dyn Write, entries: &[Json]) -> io::Result<()> {
        if !entries.is_empty() {
            self.heading(out)?;
        }
        entries.iter().try_for_each(|entry| self.row(out, entry))
    }

    /// Writes the headings, on a terminal only.
    pub fn heading(self, out: &mut dyn Write) -> io::Result<()> {
        if !self.is_terminal {
            return Ok(());
        }
        let width = ID_DIGITS + 1;
        let heading = format!(
            "{:>8}  {:20}  {:width$}  {:28}  issuer  subject",
            "leaf", "committed", "entry", "content type"
        );
        writeln!(out, "{}", heading.bold())
    }

    /// Writes one entry.
    pub fn row(self, out: &mut dyn Write, entry: &Json) -> io::Result<()> {
        let [at, id, content_type, iss, sub] =
            ["at", "entry_id", "content_type", "iss", "sub"].map(|name| text(entry, name));
        let index = number(entry, "index");
        match self.is_terminal {
            true => {
                let id = short(&id);
                writeln!(out, "{index:>8}  {at:20}  {id}  {content_type:28}  {iss}  {sub}")
            }
            false => writeln!(out, "{index:>8}  {at:20}  {id}  {content_type}  {iss}  {sub}"),
        }
    }
}

/// Returns the first digits of an entry ID.
fn short(id: &str) -> String {
    let begin: String = id.chars().take(ID_DIGITS).collect();
    let mark = if begin.len() < id.len() { "…" } else { " " };
    format!("{begin:ID_DIGITS$}{mark}")
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn written(is_terminal: bool) -> String {
        let entry = json!({
            "index": 7, "at": "2026-11-26T10:00:00Z", "entry_id": "ab".repeat(32), "content_type": "application/json",
            "iss": "https://a.example\u{1b}[2J", "sub": "s"
        });
        let mut out = Vec::new();
        EntryTable { is_terminal }.write(&mut out, &[entry]).unwrap();
        String::from_utf8(out).unwrap()
    }

    #[test]
    fn a_terminal_gets_headings_and_short_ids_and_a_pipe_whole_ids() {
        let terminal = written(true);
        assert_eq!(terminal.lines().count(), 2, "{terminal}");
        assert!(terminal.contains("abababababab…  application/json"), "{terminal}");
        let pipe = written(false);
        assert_eq!(pipe.lines().count(), 1, "{pipe}");
        assert!(pipe.contains(&"ab".repeat(32)), "{pipe}");
    }

    #[test]
    fn hostile_text_is_escaped() {
        let entry = written(true).lines().last().unwrap().to_owned();
        assert!(!entry.contains('\u{1b}'), "{entry}");
    }
}
