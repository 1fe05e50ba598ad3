//! Lists of entries, as tables.

use std::io::{self, Write};

use serde_json::Value as Json;

use crate::console::{Cell, Column, Console, Table};
use crate::show::{number, text};

/// The column of leaf indexes, which `entry get` takes.
pub const LEAF: Column = Column::number("leaf", 8);
/// The column of the times of the commits (RFC 3339).
pub const COMMITTED: Column = Column::text("committed", 20);
/// The column of content types.
pub const CONTENT_TYPE: Column = Column::text("content type", 28);
/// The column of issuers.
pub const ISSUER: Column = Column::text("issuer", 0);
/// The column of subjects.
pub const SUBJECT: Column = Column::text("subject", 0);

/// The columns of a list of entries.
const COLUMNS: &[Column] = &[LEAF, COMMITTED, Column::text("entry", 13), CONTENT_TYPE, ISSUER, SUBJECT];

/// The layout of a list of entries.
#[derive(Clone, Copy, Debug)]
pub struct EntryTable(Table);

impl EntryTable {
    /// The layout for the console.
    pub fn of(console: &Console) -> Self {
        Self(Table::of(console, COLUMNS))
    }

    /// Writes the headings and the entries; of no entries nothing.
    pub fn write(self, out: &mut dyn Write, entries: &[Json]) -> io::Result<()> {
        let rows: Vec<Vec<Cell>> = entries.iter().map(cells).collect();
        self.0.write(out, &rows)
    }

    /// Writes the headings, on a terminal only.
    pub fn heading(self, out: &mut dyn Write) -> io::Result<()> {
        self.0.heading(out)
    }

    /// Writes one entry.
    pub fn row(self, out: &mut dyn Write, entry: &Json) -> io::Result<()> {
        self.0.row(out, &cells(entry))
    }
}

fn cells(entry: &Json) -> Vec<Cell> {
    let of = |name| Cell::text(&text(entry, name));
    let index = number(entry, "index").to_string();
    let id = Cell::id(&text(entry, "entry_id"));
    vec![Cell::text(&index), of("at"), id, of("content_type"), of("iss"), of("sub")]
}
