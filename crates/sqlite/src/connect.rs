//! Options of connections, and the pool of those that read.

use std::path::Path;
use std::time::Duration;

use sqlx::ConnectOptions;
use sqlx::sqlite::{SqliteConnectOptions, SqlitePool, SqlitePoolOptions, SqliteSynchronous};

use crate::limits::STATEMENTS;

/// Returns the options of every connection: no functions of the schema's own, and checked cells.
pub fn options(path: &Path, busy_timeout: Duration) -> SqliteConnectOptions {
    SqliteConnectOptions::new()
        .filename(path)
        .busy_timeout(busy_timeout)
        .foreign_keys(true)
        .pragma("trusted_schema", "OFF")
        .pragma("cell_size_check", "ON")
        .statement_cache_capacity(STATEMENTS)
        .disable_statement_logging()
}

/// Returns the options of a connection that writes: durable commits, and a write-ahead log that the owner of the
/// connection shortens, to at most `log_bytes`.
pub fn writing(options: SqliteConnectOptions, log_bytes: u64) -> SqliteConnectOptions {
    options
        .synchronous(SqliteSynchronous::Full)
        .pragma("recursive_triggers", "ON")
        // What a statement over many rows would undo after an error is otherwise written to a temporary file.
        .pragma("temp_store", "MEMORY")
        .pragma("wal_autocheckpoint", "0")
        .pragma("journal_size_limit", log_bytes.to_string())
}

/// Returns the options of a pool whose connections stay open: one opened later would open any file that has the name
/// then.
pub fn pool(connections: u32, wait: Duration) -> SqlitePoolOptions {
    SqlitePoolOptions::new()
        .min_connections(connections)
        .max_connections(connections)
        .acquire_timeout(wait)
        .idle_timeout(None)
        .max_lifetime(None)
        .test_before_acquire(false)
}

/// Opens a pool of `count` connections that read. All of them and their files are opened now.
///
/// # Errors
/// The error of SQLite.
pub async fn readers(
    options: SqliteConnectOptions,
    count: u32,
    wait: Duration,
) -> Result<SqlitePool, sqlx::Error> {
    let count = count.max(1);
    let pool = pool(count, wait).connect_with(options.read_only(true)).await?;
    let mut connections = Vec::new();
    for _ in 0..count {
        let mut connection = pool.acquire().await?;
        sqlx::query("SELECT count(*) FROM sqlite_schema").execute(&mut *connection).await?;
        connections.push(connection);
    }
    Ok(pool)
}
