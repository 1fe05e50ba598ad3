//! The databases that a log can be kept in.

use std::path::PathBuf;

use crate::cli::Kind;
use crate::postgres::Server;

/// Where databases are made.
pub enum Database {
    /// In files under a folder.
    Sqlite(PathBuf),
    /// In a server.
    Postgres(Server),
}

impl Database {
    /// What it is.
    pub fn kind(&self) -> Kind {
        match self {
            Self::Sqlite(_) => Kind::Sqlite,
            Self::Postgres(_) => Kind::Postgres,
        }
    }

    /// The processes that work for it and are not the service.
    pub fn pids(&self) -> Vec<u32> {
        match self {
            Self::Sqlite(_) => Vec::new(),
            Self::Postgres(server) => server.pid.into_iter().collect(),
        }
    }

    /// Makes an empty database and gives its URL.
    pub async fn make(&self, name: &str) -> anyhow::Result<String> {
        match self {
            Self::Sqlite(folder) => Ok(format!("sqlite:{}", folder.join(format!("{name}.db")).display())),
            Self::Postgres(server) => server.make(name).await,
        }
    }

    /// Removes it.
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

    /// Bytes of write-ahead log so far, where they can be told.
    pub async fn wal_bytes(&self) -> anyhow::Result<Option<f64>> {
        match self {
            Self::Sqlite(_) => Ok(None),
            Self::Postgres(server) => server.wal_bytes().await.map(Some),
        }
    }
}
