//! Opening the connections, one function for each purpose.

use std::path::Path;

use evidence::StoreError;
use sqlite::BUSY_TIMEOUT;
use sqlx::ConnectOptions;
use sqlx::sqlite::{
    SqliteConnectOptions, SqliteConnection, SqliteJournalMode, SqlitePool, SqlitePoolOptions,
};

use crate::{limits, sql};

fn options(path: &Path) -> SqliteConnectOptions {
    sqlite::options(path, BUSY_TIMEOUT)
}

fn writing(path: &Path) -> SqliteConnectOptions {
    // Shortened when it begins anew: a longer one would count as due for a checkpoint after each commit.
    sqlite::writing(options(path), limits::CHECKPOINT_BYTES).journal_mode(SqliteJournalMode::Wal)
}

/// Opens the connection that commits.
pub(crate) async fn writer(path: &Path) -> Result<SqliteConnection, StoreError> {
    let options = writing(path).pragma("secure_delete", "ON").pragma("cache_size", "-16384");
    options.connect().await.map_err(sql::store_error)
}

/// Opens a pool that migrates the tables; the caller closes it after that.
pub(crate) async fn migrator(path: &Path) -> Result<SqlitePool, StoreError> {
    let pool = SqlitePoolOptions::new().max_connections(1).connect_with(writing(path));
    pool.await.map_err(sql::store_error)
}

/// Opens the connection that runs checkpoints.
pub(crate) async fn checkpointer(path: &Path) -> Result<SqliteConnection, StoreError> {
    writing(path).connect().await.map_err(sql::store_error)
}

/// Opens the connections that read.
pub(crate) async fn readers(path: &Path, count: u32) -> Result<SqlitePool, StoreError> {
    sqlite::readers(options(path), count, BUSY_TIMEOUT).await.map_err(sql::store_error)
}

/// Opens a read-only connection while another process may write. Without a write-ahead log no process has the
/// database open; the file is then opened as immutable, as SQLite would otherwise create a log.
pub(crate) async fn read_only(path: &Path) -> Result<SqlitePool, StoreError> {
    let mut log = path.as_os_str().to_owned();
    log.push("-wal");
    let alone = !Path::new(&log).exists();
    let pool = SqlitePoolOptions::new().max_connections(1).acquire_timeout(BUSY_TIMEOUT);
    pool.connect_with(options(path).read_only(true).immutable(alone)).await.map_err(sql::store_error)
}

/// Opens a connection that changes states while a gateway writes, or while none does. It creates no database file.
pub(crate) async fn editor(path: &Path) -> Result<SqlitePool, StoreError> {
    let options = writing(path).create_if_missing(false).pragma("secure_delete", "ON");
    let pool = SqlitePoolOptions::new().max_connections(1).acquire_timeout(BUSY_TIMEOUT);
    pool.connect_with(options).await.map_err(sql::store_error)
}
