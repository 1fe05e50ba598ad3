//! Where a log is kept, and how an operator makes and restores backups of it.

use std::fs;
use std::path::{Path, PathBuf};

use crate::postgres::{self, in_server, name_in, sql};

/// One of the two.
#[derive(Clone, Debug)]
pub enum Database {
    /// A file, in a folder of its own.
    Sqlite(PathBuf),
    /// A database on a server.
    Postgres(String),
}

impl Database {
    /// A fresh database on the shared server.
    pub fn postgres() -> Self {
        Self::Postgres(postgres::fresh_database(&postgres::shared_server()))
    }

    /// As the setting `db` takes it.
    pub fn url(&self) -> String {
        match self {
            Self::Sqlite(file) => format!("sqlite:{}", file.display()),
            Self::Postgres(url) => url.clone(),
        }
    }

    /// Copies the database while nobody uses it.
    pub fn back_up(&self) -> Backup {
        match self {
            Self::Sqlite(file) => {
                let copy = tempfile::tempdir().expect("a folder");
                copy_files(file.parent().expect("a folder of its own"), copy.path());
                Backup::Sqlite(copy)
            }
            Self::Postgres(url) => {
                let name = format!("{}_backup", name_in(url));
                sql(&in_server(url, "postgres"), &copy_database(name_in(url), &name));
                Backup::Postgres(name)
            }
        }
    }

    /// Puts a backup in the database's place.
    pub fn restore(&self, backup: &Backup) {
        match (self, backup) {
            (Self::Sqlite(file), Backup::Sqlite(copy)) => {
                let folder = file.parent().expect("a folder of its own");
                fs::remove_dir_all(folder).expect("nobody uses it");
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

/// An old copy of a database.
pub enum Backup {
    /// The files.
    Sqlite(tempfile::TempDir),
    /// The copy's name.
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
