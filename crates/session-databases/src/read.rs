//! Reading: the file is recognized, and its rows are read in one transaction.

use std::fs::File;
use std::io::Read;
use std::path::Path;
use std::thread;
use std::time::Duration;

use futures::TryStreamExt;
use sqlx::{AssertSqlSafe, Connection, SqliteConnection};
use translators::limits::SOURCE_BYTES;
use translators::{SessionSource, SourceFile};

use crate::error::DatabaseError;
use crate::tables::{CURSOR, OPENCODE, SessionTable};

/// The first bytes of an SQLite database (sqlite.org/fileformat2.html, 1.3).
const MAGIC: &[u8] = b"SQLite format 3\0";
/// Longest wait for a lock of the agent that writes the database.
const LOCK_TIMEOUT: Duration = Duration::from_secs(5);
/// Number of known tables that are ordinary ones.
const ORDINARY: &str =
    "SELECT count(*) FROM sqlite_schema WHERE name = ? AND type = 'table' AND sql LIKE 'CREATE TABLE %'";
/// Names of all columns of a table, also of those that are computed.
const COLUMNS: &str = "SELECT name FROM pragma_table_xinfo(?)";

/// Returns whether a file begins as an SQLite database does.
pub fn is_database(path: &Path) -> bool {
    let mut start = [0; MAGIC.len()];
    path.is_file()
        && File::open(path).and_then(|mut file| file.read_exact(&mut start)).is_ok()
        && start == MAGIC
}

/// Reads the sessions of a database. Blocks the calling thread, which may be one of a runtime.
///
/// # Errors
/// [`DatabaseError`] if the file is not a database of a known agent, too large, locked for longer than five seconds, or
/// cannot be read.
pub fn read(path: &Path) -> Result<SessionSource, DatabaseError> {
    thread::scope(|scope| {
        let reader =
            thread::Builder::new().name("session-database".to_owned()).spawn_scoped(scope, || {
                let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build()?;
                runtime.block_on(rows(path))
            })?;
        reader.join().unwrap_or_else(|_| Err(std::io::Error::other("the reading thread panicked").into()))
    })
}

async fn rows(path: &Path) -> Result<SessionSource, DatabaseError> {
    let options = sqlite::options(path, LOCK_TIMEOUT).read_only(true);
    let mut connection = SqliteConnection::connect_with(&options).await?;
    let mut transaction = connection.begin().await?;
    let tables = tables(&mut transaction).await?;
    check_size(&mut transaction, tables).await?;
    let mut files: Vec<SourceFile> = Vec::new();
    for table in tables {
        let mut found = sqlx::query(AssertSqlSafe(table.rows())).fetch(&mut *transaction);
        while let Some(row) = found.try_next().await? {
            files.push(table.file(&row)?);
        }
    }
    transaction.rollback().await?;
    connection.close().await?;
    Ok(SessionSource::rows(files))
}

/// Returns the tables of the agent whose database it is.
async fn tables(connection: &mut SqliteConnection) -> Result<&'static [SessionTable], DatabaseError> {
    for tables in [OPENCODE.as_slice(), CURSOR.as_slice()] {
        let mut present = 0;
        for table in tables {
            present +=
                sqlx::query_scalar::<_, i64>(ORDINARY).bind(table.name).fetch_one(&mut *connection).await?;
        }
        if usize::try_from(present) == Ok(tables.len()) {
            return Ok(tables);
        }
    }
    Err(DatabaseError::UnknownTables)
}

/// Checks the size before the rows are read, so that a large database does not fill the memory.
async fn check_size(connection: &mut SqliteConnection, tables: &[SessionTable]) -> Result<(), DatabaseError> {
    let mut bytes = 0;
    for table in tables {
        let columns = sqlx::query_scalar::<_, String>(COLUMNS).bind(table.name);
        let size = AssertSqlSafe(table.size(&columns.fetch_all(&mut *connection).await?));
        bytes += sqlx::query_scalar::<_, f64>(size).fetch_one(&mut *connection).await? as u64;
    }
    let limit = SOURCE_BYTES as u64;
    if bytes > limit { Err(DatabaseError::TooLarge { bytes, limit }) } else { Ok(()) }
}
