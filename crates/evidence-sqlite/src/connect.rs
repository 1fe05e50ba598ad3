//! Opening the connections, one function for each purpose.

use std::path::Path;

use evidence::StoreError;
use sqlx::ConnectOptions;
use sqlx::sqlite::{
    SqliteConnectOptions, SqliteConnection, SqliteJournalMode, SqlitePool, SqlitePoolOptions,
    SqliteSynchronous,
};

use crate::{limits, sql};

fn options(path: &Path) -> SqliteConnectOptions {
    SqliteConnectOptions::new()
        .filename(path)
        .busy_timeout(limits::BUSY_TIMEOUT)
        .foreign_keys(true)
        .statement_cache_capacity(limits::STATEMENTS)
        .pragma("trusted_schema", "OFF")
        .pragma("cell_size_check", "ON")
        .disable_statement_logging()
}

fn writing(path: &Path) -> SqliteConnectOptions {
    options(path)
        .journal_mode(SqliteJournalMode::Wal)
        .synchronous(SqliteSynchronous::Full)
        .pragma("recursive_triggers", "ON")
        .pragma("wal_autocheckpoint", "0")
        .pragma("journal_size_limit", limits::WAL_BYTES.to_string())
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

/// Opens the connections that read. All of them are opened now, as the names could lead to other files later.
pub(crate) async fn readers(path: &Path, count: u32) -> Result<SqlitePool, StoreError> {
    let count = count.max(1);
    let pool = SqlitePoolOptions::new()
        .min_connections(count)
        .max_connections(count)
        .acquire_timeout(limits::BUSY_TIMEOUT)
        .idle_timeout(None)
        .max_lifetime(None)
        .test_before_acquire(false);
    let pool = pool.connect_with(options(path).read_only(true)).await.map_err(sql::store_error)?;
    let mut connections = Vec::new();
    for _ in 0..count {
        let mut connection = pool.acquire().await.map_err(sql::store_error)?;
        let read = sqlx::query("SELECT count(*) FROM sqlite_schema").execute(&mut *connection).await;
        read.map_err(sql::store_error)?;
        connections.push(connection);
    }
    Ok(pool)
}

/// Opens a read-only connection while another process may write. Without a write-ahead log no process has the
/// database open; the file is then opened as immutable, as SQLite would otherwise create a log.
pub(crate) async fn onlooker(path: &Path) -> Result<SqlitePool, StoreError> {
    let mut log = path.as_os_str().to_owned();
    log.push("-wal");
    let alone = !Path::new(&log).exists();
    let pool = SqlitePoolOptions::new().max_connections(1).acquire_timeout(limits::BUSY_TIMEOUT);
    pool.connect_with(options(path).read_only(true).immutable(alone)).await.map_err(sql::store_error)
}

/// Opens a connection that changes states while a gateway writes, or while none does. It creates no database file.
pub(crate) async fn command(path: &Path) -> Result<SqlitePool, StoreError> {
    let options = writing(path).create_if_missing(false).pragma("secure_delete", "ON");
    let pool = SqlitePoolOptions::new().max_connections(1).acquire_timeout(limits::BUSY_TIMEOUT);
    pool.connect_with(options).await.map_err(sql::store_error)
}
