//! Manipulation of stored rows that bypasses all checks of the database, as by a faulty disk or a person with access to
//! it, also while the database is in use. All changes can be reverted.

use std::path::Path;
use std::process::Command;

use crate::database::Database;
use crate::postgres::sql;
use crate::python::python;

/// One cell of the stored log, with a row selection that works on both databases.
#[derive(Clone, Copy, Debug)]
pub struct Cell {
    /// Table name.
    pub table: &'static str,
    /// Column name.
    pub column: &'static str,
    /// `WHERE` condition that selects the row on SQLite.
    pub sqlite: &'static str,
    /// `WHERE` condition on PostgreSQL, if it differs.
    pub postgres: Option<&'static str>,
    /// Type of the value.
    pub holds: Holds,
}

/// Types of values, which determine the change.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Holds {
    /// Bytes: one bit is flipped.
    Bytes,
    /// Number: the lowest bit is flipped.
    Number,
    /// Bytes on SQLite, a UUID on PostgreSQL: the lowest bit of the last byte is flipped.
    Key,
}

/// Drops the triggers of a table, executes statements, and creates the triggers again.
const SQLITE: &str = r"
import sqlite3, sys
file, table, statements = sys.argv[1], sys.argv[2], sys.argv[3:]
db = sqlite3.connect(file, isolation_level=None, timeout=30)
def flip(value, bit):
    if isinstance(value, int): return value ^ 1
    bit = int(bit) % (8 * len(value))
    changed = bytearray(value)
    changed[bit // 8] ^= 1 << (bit % 8)
    return bytes(changed)
db.create_function('flip', 2, flip)
db.execute('BEGIN IMMEDIATE')
triggers = db.execute('SELECT name, sql FROM sqlite_schema WHERE type = ? AND tbl_name = ?', ('trigger', table)).fetchall()
for name, _ in triggers: db.execute('DROP TRIGGER ' + name)
changed = [db.execute(statement).rowcount for statement in statements]
for _, sql in triggers: db.execute(sql)
db.execute('COMMIT')
print(changed)
";

impl Database {
    /// Flips one bit of a cell, and keeps a copy of the table for [`mend`](Self::mend).
    pub fn flip(&self, cell: &Cell, bit: u32) {
        let Cell { table, .. } = cell;
        self.keep(table);
        let Cell { table, column, sqlite, postgres, holds } = cell;
        match self {
            Self::Sqlite(file) => {
                let bit = if *holds == Holds::Key { 120 } else { bit };
                let update = format!("UPDATE {table} SET {column} = flip({column}, {bit}) WHERE {sqlite}");
                by_hand_in(file, table, &[&update]);
            }
            Self::Postgres(url) => {
                let wanted = postgres.unwrap_or(sqlite);
                let flipped = match holds {
                    Holds::Bytes => format!(
                        "set_bit({column}, {bit} % bit_length({column}), 1 - get_bit({column}, {bit} % bit_length({column})))"
                    ),
                    Holds::Number => format!("{column} # 1"),
                    Holds::Key => format!(
                        "encode(set_bit(uuid_send({column}), 120, 1 - get_bit(uuid_send({column}), 120)), 'hex')::uuid"
                    ),
                };
                past_triggers(url, &format!("UPDATE {table} SET {column} = {flipped} WHERE {wanted}"));
            }
        }
    }

    /// Keeps a copy of a table.
    pub fn keep(&self, table: &str) {
        let copy = format!("CREATE TABLE kept_{table} AS SELECT * FROM {table}");
        self.run(table, &["DROP TABLE IF EXISTS kept_".to_owned() + table, copy]);
    }

    /// Restores a table from its copy.
    pub fn mend(&self, table: &str) {
        let (delete, drop) = (format!("DELETE FROM {table}"), format!("DROP TABLE kept_{table}"));
        let fill = match self {
            Self::Sqlite(_) => format!("INSERT INTO {table} SELECT * FROM kept_{table}"),
            Self::Postgres(_) => {
                format!("INSERT INTO {table} OVERRIDING SYSTEM VALUE SELECT * FROM kept_{table}")
            }
        };
        self.run(table, &[delete, fill, drop]);
    }

    fn run(&self, table: &str, statements: &[String]) {
        let statements: Vec<&str> = statements.iter().map(String::as_str).collect();
        match self {
            Self::Sqlite(file) => drop(changed_in(file, table, &statements)),
            Self::Postgres(url) => past_triggers(url, &statements.join("; ")),
        }
    }

    /// Executes statements on a table, bypassing its triggers. On SQLite each statement must change a row.
    pub fn by_hand(&self, table: &str, sqlite: &[&str], postgres: &[&str]) {
        match self {
            Self::Sqlite(file) => by_hand_in(file, table, sqlite),
            Self::Postgres(url) => past_triggers(url, &postgres.join("; ")),
        }
    }
}

fn by_hand_in(file: &Path, table: &str, statements: &[&str]) {
    let changed = changed_in(file, table, statements);
    assert!(!changed.contains("[0") && !changed.contains(" 0"), "{statements:?} changed nothing: {changed}");
}

fn changed_in(file: &Path, table: &str, statements: &[&str]) -> String {
    let mut run = Command::new(python());
    let output =
        run.args(["-c", SQLITE]).arg(file).arg(table).args(statements).output().expect("python runs");
    let changed = String::from_utf8_lossy(&output.stdout).trim().to_owned();
    assert!(output.status.success(), "{statements:?}: {output:?}");
    changed
}

fn past_triggers(url: &str, statements: &str) {
    sql(url, &format!("SET session_replication_role = replica; {statements}"));
}
