//! The table of checks for the documentation.

use std::fmt::Write;

use crate::checks::checks;

/// Returns all checks as a Markdown table.
pub fn markdown_table() -> String {
    let mut table = String::from("| check | source | level | expectation |\n|---|---|---|---|\n");
    for check in checks() {
        let (name, source, level) = (check.name, check.source, check.level.name());
        let _ = writeln!(table, "| `{name}` | {source} | {level} | {} |", check.expectation);
    }
    table
}
