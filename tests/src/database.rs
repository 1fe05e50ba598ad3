//! The database of a log, and its backups, made and restored as by an operator.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use scitt::SignedStatement;

use crate::postgres::{self, in_server, name_in, sql};
use crate::python::python;

/// A database of one of the two kinds.
#[derive(Clone, Debug)]
pub enum Database {
    /// SQLite file, in a folder that contains nothing else.
    Sqlite(PathBuf),
    /// URL of a database on a PostgreSQL server.
    Postgres(String),
}

impl Database {
    /// Creates an empty database on the shared server.
    pub fn postgres() -> Self {
        Self::Postgres(postgres::fresh_database(&postgres::shared_server()))
    }

    /// Returns the name of the kind for reports.
    pub const fn name(&self) -> &'static str {
        match self {
            Self::Sqlite(_) => "SQLite",
            Self::Postgres(_) => "PostgreSQL",
        }
    }

    /// Returns the URL, as the setting `db` takes it.
    pub fn url(&self) -> String {
        match self {
            Self::Sqlite(file) => format!("sqlite:{}", file.display()),
            Self::Postgres(url) => url.clone(),
        }
    }

    /// Copies the database. No process may use it.
    pub fn back_up(&self) -> Backup {
        match self {
            Self::Sqlite(file) => {
                let copy = tempfile::tempdir().expect("a folder");
                copy_files(file.parent().expect("a folder of its own"), copy.path());
                Backup::Sqlite(copy)
            }
            Self::Postgres(url) => {
                let name = format!("{}_{:08x}", name_in(url), fastrand::u32(..));
                sql(&in_server(url, "postgres"), &copy_database(name_in(url), &name));
                Backup::Postgres(name)
            }
        }
    }

    /// Replaces the database with a backup. On PostgreSQL, open connections are closed.
    pub fn restore(&self, backup: &Backup) {
        match (self, backup) {
            (Self::Sqlite(file), Backup::Sqlite(copy)) => {
                let folder = file.parent().expect("a folder of its own");
                fs::remove_dir_all(folder).expect("our own folder");
                fs::create_dir(folder).expect("it was there");
                copy_files(copy.path(), folder);
            }
            (Self::Postgres(url), Backup::Postgres(backup)) => {
                let (server, name) = (in_server(url, "postgres"), name_in(url));
                sql(&server, &format!("DROP DATABASE {name} WITH (FORCE)"));
                sql(&server, &copy_database(backup, name));
            }
            _ => panic!("a backup of another kind of database"),
        }
    }
}

/// Damage by a faulty disk.
impl Database {
    /// Flips one bit of a stored statement, bypassing all checks of the database. No process may use it.
    pub fn flip_a_bit_of(&self, statement: &SignedStatement) {
        match self {
            Self::Sqlite(file) => {
                move_everything_into(file);
                let mut bytes = fs::read(file).expect("the database");
                let signature = statement.signature();
                let at = bytes.windows(signature.len()).position(|window| window == signature);
                bytes[at.expect("the statement is in the file")] ^= 1;
                fs::write(file, bytes).expect("the database");
            }
            Self::Postgres(url) => {
                let digest = statement.digest();
                sql(
                    url,
                    &format!(
                        "SET session_replication_role = replica; UPDATE entry SET statement = \
                         set_byte(statement, 40, get_byte(statement, 40) # 1) WHERE digest = '\\x{digest}'"
                    ),
                );
            }
        }
    }
}

impl Database {
    /// Removes a statement without an erasure statement, as a person with access to the database might. No process may
    /// use it.
    pub fn take_out(&self, statement: &SignedStatement) {
        let digest = statement.digest();
        match self {
            Self::Sqlite(file) => {
                let script = "import sqlite3, sys; db = sqlite3.connect(sys.argv[1]); \
                              db.execute('UPDATE entry SET statement = NULL, facts = ? WHERE digest = ?', ('{}', bytes.fromhex(sys.argv[2]))); \
                              db.commit()";
                let mut run = Command::new(python());
                let output = run.args(["-c", script]).arg(file).arg(digest.to_string()).output();
                assert!(output.as_ref().is_ok_and(|output| output.status.success()), "{output:?}");
            }
            Self::Postgres(url) => {
                let taken = format!("UPDATE entry SET statement = NULL WHERE digest = '\\x{digest}'");
                sql(url, &format!("SET session_replication_role = replica; {taken}"));
            }
        }
    }
}

/// Moves all data from the write-ahead log to the database file. Damage in the write-ahead log would only look like a
/// shorter history.
fn move_everything_into(file: &Path) {
    let script = "import sqlite3, sys; print(sqlite3.connect(sys.argv[1]).execute('PRAGMA wal_checkpoint(TRUNCATE)').fetchone())";
    let output = Command::new(python()).args(["-c", script]).arg(file).output().expect("python runs");
    assert_eq!(String::from_utf8_lossy(&output.stdout).trim(), "(0, 0, 0)", "{output:?}");
}

/// A backup of a database.
pub enum Backup {
    /// Folder with the copied files.
    Sqlite(tempfile::TempDir),
    /// Name of the copied database.
    Postgres(String),
}

fn copy_database(from: &str, to: &str) -> String {
    format!("CREATE DATABASE {to} TEMPLATE {from}")
}

fn copy_files(from: &Path, to: &Path) {
    for file in fs::read_dir(from).expect("a folder") {
        let file = file.expect("a file");
        fs::copy(file.path(), to.join(file.file_name())).expect("a copy");
    }
}
