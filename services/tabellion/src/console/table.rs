//! Lists: on a terminal a table with headings, aligned columns and short IDs; in pipes and files one line for each row, with
//! whole values.

use std::io::{self, Write};

use owo_colors::OwoColorize;

use super::{Console, safe};

/// Number of characters of an ID on a terminal. Commands take the whole ID, which `--json` and pipes have.
const ID_DIGITS: usize = 12;

/// A column of a table.
#[derive(Clone, Copy, Debug)]
pub struct Column {
    heading: &'static str,
    /// Minimum width in characters.
    width: u16,
    is_number: bool,
}

impl Column {
    /// A column of texts or IDs, at least this wide.
    pub const fn text(heading: &'static str, width: u16) -> Self {
        Self { heading, width, is_number: false }
    }

    /// A column of numbers, aligned to the right, also in pipes.
    pub const fn number(heading: &'static str, width: u16) -> Self {
        Self { heading, width, is_number: true }
    }

    /// The heading.
    pub const fn heading(self) -> &'static str {
        self.heading
    }

    /// The minimum width in characters.
    pub const fn width(self) -> u16 {
        self.width
    }
}

/// A value in a table, escaped.
#[derive(Clone, Debug)]
pub struct Cell {
    whole: String,
    /// The form on a terminal, if it is another.
    short: Option<String>,
}

impl Cell {
    /// A text; terminals get it whole.
    pub fn text(text: &str) -> Self {
        Self { whole: safe(text).into_owned(), short: None }
    }

    /// An entry ID, a key ID or another digest: terminals get its first [`ID_DIGITS`] characters.
    pub fn id(text: &str) -> Self {
        Self::shortened(text, text)
    }

    /// A checkpoint key (vkey), which is a name, a key ID and the key: terminals get the key ID.
    pub fn vkey(text: &str) -> Self {
        Self::shortened(text, text.split_once('+').map_or(text, |(_, id)| id))
    }

    /// A text with an ID in it: terminals get the first [`ID_DIGITS`] characters of the ID.
    fn shortened(text: &str, id: &str) -> Self {
        let begin: String = id.chars().take(ID_DIGITS).collect();
        let mark = if begin.len() < id.len() { "…" } else { "" };
        let short = safe(&format!("{begin}{mark}")).into_owned();
        Self { short: Some(short), ..Self::text(text) }
    }

    fn on(&self, terminal: bool) -> &str {
        self.short.as_deref().filter(|_| terminal).unwrap_or(&self.whole)
    }
}

/// The layout of a list.
#[derive(Clone, Copy, Debug)]
pub struct Table {
    columns: &'static [Column],
    is_terminal: bool,
}

impl Table {
    /// The layout for the console.
    pub fn of(console: &Console, columns: &'static [Column]) -> Self {
        Self { columns, is_terminal: console.writes_to_terminal() }
    }

    /// A layout for a terminal, or for a pipe, whatever the console is.
    #[cfg(test)]
    pub fn on(is_terminal: bool, columns: &'static [Column]) -> Self {
        Self { columns, is_terminal }
    }

    /// Writes the headings and all rows, each column as wide as its widest value; of no rows nothing.
    pub fn write(self, out: &mut dyn Write, rows: &[Vec<Cell>]) -> io::Result<()> {
        let widths = self.widths(rows);
        if !rows.is_empty() {
            self.heading_of(out, &widths)?;
        }
        rows.iter().try_for_each(|row| self.row_of(out, &widths, row))
    }

    /// Writes the headings, on a terminal only, for rows that come one at a time.
    pub fn heading(self, out: &mut dyn Write) -> io::Result<()> {
        self.heading_of(out, &self.widths(&[]))
    }

    /// Writes one row, each column at its minimum width.
    pub fn row(self, out: &mut dyn Write, row: &[Cell]) -> io::Result<()> {
        self.row_of(out, &self.widths(&[]), row)
    }

    fn heading_of(self, out: &mut dyn Write, widths: &[usize]) -> io::Result<()> {
        if !self.is_terminal {
            return Ok(());
        }
        let headings = self.columns.iter().map(|column| column.heading());
        writeln!(out, "{}", self.line(widths, headings).bold())
    }

    fn row_of(self, out: &mut dyn Write, widths: &[usize], row: &[Cell]) -> io::Result<()> {
        writeln!(out, "{}", self.line(widths, row.iter().map(|cell| cell.on(self.is_terminal))))
    }

    fn line<'a>(self, widths: &[usize], cells: impl Iterator<Item = &'a str>) -> String {
        let cells = self.columns.iter().zip(widths).zip(cells);
        let padded = cells.map(|((column, width), cell)| match (column.is_number, self.is_terminal) {
            (true, _) => format!("{cell:>width$}"),
            (false, true) => format!("{cell:width$}"),
            (false, false) => cell.to_owned(),
        });
        let line: Vec<String> = padded.collect();
        line.join("  ").trim_end().to_owned()
    }

    /// The width of each column in characters.
    fn widths(self, rows: &[Vec<Cell>]) -> Vec<usize> {
        let width = |(place, column): (usize, &Column)| {
            let cells = rows.iter().filter_map(|row| row.get(place));
            let widest = cells.map(|cell| cell.on(self.is_terminal).chars().count()).max().unwrap_or(0);
            let heading = if self.is_terminal { column.heading().chars().count() } else { 0 };
            let widest = if self.is_terminal { widest } else { 0 };
            usize::from(column.width()).max(heading).max(widest)
        };
        self.columns.iter().enumerate().map(width).collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const COLUMNS: &[Column] =
        &[Column::number("leaf", 4), Column::text("entry", 0), Column::text("issuer", 0)];

    fn written(is_terminal: bool) -> String {
        let row = |id: &str, iss: &str| vec![Cell::text("7"), Cell::id(id), Cell::text(iss)];
        let rows = [row(&"ab".repeat(32), "https://a.example\u{1b}[2J"), row("short", "b")];
        let mut out = Vec::new();
        Table::on(is_terminal, COLUMNS).write(&mut out, &rows).unwrap();
        String::from_utf8(out).unwrap()
    }

    #[test]
    fn a_terminal_gets_headings_and_short_ids_in_aligned_columns() {
        let text = written(true);
        let lines: Vec<&str> = text.lines().collect();
        assert_eq!(lines.len(), 3, "{text}");
        assert!(lines[0].contains("leaf") && lines[0].contains("issuer"), "{text}");
        assert!(lines[1].starts_with("   7  abababababab…  https://a.example"), "{text}");
        assert!(lines[2].starts_with("   7  short          b"), "{text}");
    }

    #[test]
    fn a_pipe_gets_whole_values_and_no_headings() {
        let text = written(false);
        assert_eq!(text.lines().count(), 2, "{text}");
        assert!(text.contains(&"ab".repeat(32)) && text.contains("   7  short  b\n"), "{text}");
    }

    #[test]
    fn hostile_text_is_escaped() {
        assert!(!written(false).contains('\u{1b}'), "{}", written(false));
        assert!(!written(true).lines().last().unwrap().contains('\u{1b}'), "{}", written(true));
    }
}
