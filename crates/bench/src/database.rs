//! Databases of the logs under test.

use std::path::PathBuf;

use crate::options::BenchDatabase;
use crate::postgres::Server;

/// A place in which databases are created.
pub(crate) enum DatabaseHost {
    /// Folder for SQLite files.
    Sqlite(PathBuf),
    /// PostgreSQL server.
    Postgres(Server),
}

impl DatabaseHost {
    /// Returns the host of a database; SQLite files are created in `folder`.
    pub(crate) async fn of(database: &BenchDatabase, folder: PathBuf) -> anyhow::Result<Self> {
        match database {
            BenchDatabase::Sqlite => Ok(Self::Sqlite(folder)),
            BenchDatabase::Postgres(url) => Ok(Self::Postgres(Server::at(url).await?)),
        }
    }

    /// Returns the name in reports.
    pub(crate) fn name(&self) -> &'static str {
        match self {
            Self::Sqlite(_) => "sqlite",
            Self::Postgres(_) => "postgres",
        }
    }

    /// Returns the database's own processes on this machine; none for SQLite, which runs within the service.
    pub(crate) fn pids(&self) -> Vec<u32> {
        match self {
            Self::Sqlite(_) => Vec::new(),
            Self::Postgres(server) => server.pid.into_iter().collect(),
        }
    }

    /// Creates an empty database, and returns its URL. SQLite creates the file at the first connection.
    pub(crate) async fn create(&self, name: &str) -> anyhow::Result<String> {
        match self {
            Self::Sqlite(folder) => Ok(format!("sqlite:{}", folder.join(format!("{name}.db")).display())),
            Self::Postgres(server) => server.create(name).await,
        }
    }

    /// Removes a database.
    pub(crate) async fn drop(&self, name: &str) -> anyhow::Result<()> {
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
    pub(crate) async fn wal_bytes(&self) -> anyhow::Result<Option<f64>> {
        match self {
            Self::Sqlite(_) => Ok(None),
            Self::Postgres(server) => server.wal_bytes().await.map(Some),
        }
    }
}
