//! Databases for a log under test.

use std::path::PathBuf;

use crate::cli::Kind;
use crate::postgres::Server;

/// Location of databases.
pub enum Database {
    /// Folder for SQLite files.
    Sqlite(PathBuf),
    /// PostgreSQL server.
    Postgres(Server),
}

impl Database {
    /// Returns the kind of database.
    pub fn kind(&self) -> Kind {
        match self {
            Self::Sqlite(_) => Kind::Sqlite,
            Self::Postgres(_) => Kind::Postgres,
        }
    }

    /// Returns the database's own processes; none for SQLite, which runs within the service.
    pub fn pids(&self) -> Vec<u32> {
        match self {
            Self::Sqlite(_) => Vec::new(),
            Self::Postgres(server) => server.pid.into_iter().collect(),
        }
    }

    /// Creates an empty database, and returns its URL. SQLite creates the file at the first connection.
    pub async fn make(&self, name: &str) -> anyhow::Result<String> {
        match self {
            Self::Sqlite(folder) => Ok(format!("sqlite:{}", folder.join(format!("{name}.db")).display())),
            Self::Postgres(server) => server.make(name).await,
        }
    }

    /// Removes the database.
    pub async fn drop(&self, name: &str) -> anyhow::Result<()> {
        match self {
            Self::Sqlite(folder) => {
                for suffix in ["db", "db-wal", "db-shm"] {
                    let _ = std::fs::remove_file(folder.join(format!("{name}.{suffix}")));
                }
                Ok(())
            }
            Self::Postgres(server) => server.drop(name).await,
        }
    }

    /// Returns the size of the write-ahead log written so far in bytes; `None` for SQLite.
    pub async fn wal_bytes(&self) -> anyhow::Result<Option<f64>> {
        match self {
            Self::Sqlite(_) => Ok(None),
            Self::Postgres(server) => server.wal_bytes().await.map(Some),
        }
    }
}
