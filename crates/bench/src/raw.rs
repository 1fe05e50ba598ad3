//! Raw durable inserts of the same bytes, which measure the limit of the database.

use std::time::{Duration, Instant};

use anyhow::Context;
use merkle::EntryDigest;
use sqlx::sqlite::{SqliteConnectOptions, SqliteJournalMode, SqliteSynchronous};
use sqlx::{ConnectOptions, Connection, PgConnection, QueryBuilder, Sqlite, SqliteConnection};

use crate::database::DatabaseHost;
use crate::limits::{ALONE_FOR, RAW_ROWS};
use crate::postgres::connect;
use crate::process;
use crate::result::RawResult;
use crate::statements::Statements;
use crate::stats::median;

/// A row: position, digest and statement.
type Row<'a> = (i64, EntryDigest, &'a [u8]);

/// Measures batches and single commits, in a new database.
pub(crate) async fn measure(
    database: &DatabaseHost,
    name: &str,
    statements: &Statements,
    length: Duration,
) -> anyhow::Result<RawResult> {
    let url = database.create(name).await?;
    let mut table = Table::create(database, &url).await?;
    let rows = statements.bodies().cycle().enumerate();
    let mut rows = rows.map(|(index, body)| (index as i64, EntryDigest::of(&index.to_be_bytes()), body));
    let clock = || process::own_cpu() + process::cpu_of(&database.pids());

    let (begun, before, mut count) = (Instant::now(), clock(), 0);
    while begun.elapsed() < length {
        let batch: Vec<Row<'_>> = rows.by_ref().take(RAW_ROWS).collect();
        table.insert(&batch).await?;
        count += batch.len();
    }
    let (seconds, used) = (begun.elapsed().as_secs_f64(), clock() - before);

    let (begun, mut commits) = (Instant::now(), Vec::new());
    while begun.elapsed() < length.min(ALONE_FOR) {
        let one: Vec<Row<'_>> = rows.by_ref().take(1).collect();
        let sent = Instant::now();
        table.insert(&one).await?;
        commits.push(sent.elapsed().as_secs_f64() * 1e3);
    }
    table.close().await?;
    database.drop(name).await?;
    Ok(RawResult {
        rows_per_second: count as f64 / seconds,
        cpu_us: used * 1e6 / count as f64,
        commit_p50_ms: median(commits).context("no row was inserted")?,
    })
}

/// The table `entry`, with the fewest columns that a log needs: position, unique digest, statement.
enum Table {
    Sqlite(SqliteConnection),
    Postgres(PgConnection),
}

impl Table {
    async fn create(database: &DatabaseHost, url: &str) -> anyhow::Result<Self> {
        match database {
            DatabaseHost::Sqlite(_) => {
                let options: SqliteConnectOptions = url.parse()?;
                let options = options.create_if_missing(true).journal_mode(SqliteJournalMode::Wal);
                let options = options.synchronous(SqliteSynchronous::Full).disable_statement_logging();
                let mut connection = options.connect().await?;
                let table = "CREATE TABLE entry (idx INTEGER PRIMARY KEY, digest BLOB NOT NULL UNIQUE, statement BLOB NOT NULL)";
                sqlx::raw_sql(table).execute(&mut connection).await?;
                Ok(Self::Sqlite(connection))
            }
            DatabaseHost::Postgres(_) => {
                let mut connection = connect(url).await?;
                let table = "CREATE TABLE entry (idx bigint PRIMARY KEY, digest bytea NOT NULL UNIQUE, statement bytea NOT NULL);
                             ALTER TABLE entry ALTER statement SET STORAGE EXTERNAL";
                sqlx::raw_sql(table).execute(&mut connection).await?;
                Ok(Self::Postgres(connection))
            }
        }
    }

    /// Inserts rows in one transaction.
    async fn insert(&mut self, rows: &[Row<'_>]) -> anyhow::Result<()> {
        match self {
            Self::Sqlite(connection) => {
                let mut insert = QueryBuilder::<Sqlite>::new("INSERT INTO entry ");
                insert.push_values(rows, |mut values, (index, digest, statement)| {
                    values
                        .push_bind(*index)
                        .push_bind(digest.as_bytes().to_vec())
                        .push_bind(statement.to_vec());
                });
                insert.build().execute(connection).await?;
            }
            Self::Postgres(connection) => {
                let indexes: Vec<i64> = rows.iter().map(|(index, ..)| *index).collect();
                let digests: Vec<&[u8]> = rows.iter().map(|(_, digest, _)| &digest.as_bytes()[..]).collect();
                let statements: Vec<&[u8]> = rows.iter().map(|(.., statement)| *statement).collect();
                let insert = sqlx::query(
                    "INSERT INTO entry SELECT * FROM UNNEST($1::bigint[], $2::bytea[], $3::bytea[])",
                );
                insert.bind(indexes).bind(digests).bind(statements).execute(connection).await?;
            }
        }
        Ok(())
    }

    async fn close(self) -> Result<(), sqlx::Error> {
        match self {
            Self::Sqlite(connection) => connection.close().await,
            Self::Postgres(connection) => connection.close().await,
        }
    }
}
