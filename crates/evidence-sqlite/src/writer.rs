//! The one transaction in which everything moves.

use std::collections::{BTreeSet, HashMap};
use std::sync::Arc;

use evidence::{Claim, CommitError, Group, Move, Record, StoreError};
use merkle::EntryDigest;
use sqlx::sqlite::SqliteRow;
use sqlx::{AssertSqlSafe, Connection, Row, SqliteConnection};

use crate::counts::{Count, Counts};
use crate::sql::{self, not_committed, signed, store_error};
use crate::{Shared, checkpoint, reader};

/// The connection that writes, and what it knows without asking.
///
/// Transactions are begun and ended by hand: after some errors (a full disk) SQLite has undone one already, and a caller
/// may go away in the middle. So whoever begins one first ends what was left.
#[derive(Debug)]
pub(crate) struct Writer {
    connection: Option<SqliteConnection>,
    counts: Arc<Counts>,
    /// `None` while it is not sure: a caller went away in the middle.
    known: Option<Known>,
    /// Whether there may be a transaction that nobody will end.
    is_left: bool,
    /// Whether a commit would be fsynced. Set to false before it may be.
    is_full: bool,
}

#[derive(Clone, Copy, Debug)]
struct Known {
    next_stream: i64,
    next_record: i64,
    count: Count,
}

/// A transaction, and what will be known once it is committed.
pub(crate) struct Writing<'a> {
    pub(crate) connection: &'a mut SqliteConnection,
    pub(crate) count: Count,
    next_stream: i64,
    next_record: i64,
    known: &'a mut Option<Known>,
    is_left: &'a mut bool,
    before: Known,
}

impl Writer {
    pub(crate) async fn new(
        mut connection: SqliteConnection,
        counts: Arc<Counts>,
    ) -> Result<Self, StoreError> {
        let known = Known::read(&mut connection).await?;
        counts.show(known.count);
        Ok(Self { connection: Some(connection), counts, known: Some(known), is_left: false, is_full: true })
    }

    pub(crate) async fn close(&mut self) {
        if let Some(connection) = self.connection.take() {
            let _ = connection.close().await;
        }
    }

    pub(crate) fn connection(&mut self) -> Result<&mut SqliteConnection, StoreError> {
        self.connection.as_mut().ok_or_else(closed)
    }

    /// Begins a transaction whose commit survives power loss.
    pub(crate) async fn begin(&mut self) -> Result<Writing<'_>, StoreError> {
        self.end_what_was_left().await?;
        if !self.is_full {
            run(self.connection()?, "PRAGMA synchronous = FULL").await?;
            self.is_full = true;
        }
        self.begin_as_it_is().await
    }

    /// Begins a transaction whose commit is not fsynced, only not half there.
    pub(crate) async fn begin_lightly(&mut self) -> Result<Writing<'_>, StoreError> {
        self.end_what_was_left().await?;
        self.is_full = false;
        run(self.connection()?, "PRAGMA synchronous = NORMAL").await?;
        self.begin_as_it_is().await
    }

    async fn end_what_was_left(&mut self) -> Result<(), StoreError> {
        if self.is_left {
            // If it has ended already, there is none to undo.
            let _ = run(self.connection()?, "ROLLBACK").await;
            self.is_left = false;
        }
        Ok(())
    }

    async fn begin_as_it_is(&mut self) -> Result<Writing<'_>, StoreError> {
        let connection = self.connection.as_mut().ok_or_else(closed)?;
        let before = match self.known {
            Some(known) => known,
            None => Known::read(connection).await?,
        };
        self.counts.show(before.count);
        self.known = Some(before);
        self.is_left = true;
        run(connection, "BEGIN IMMEDIATE").await?;
        let Known { next_stream, next_record, count } = before;
        let (known, is_left) = (&mut self.known, &mut self.is_left);
        Ok(Writing { connection, count, next_stream, next_record, known, is_left, before })
    }
}

fn closed() -> StoreError {
    StoreError::Refused("the database was closed".into())
}

async fn run(connection: &mut SqliteConnection, statement: &'static str) -> Result<(), StoreError> {
    sqlx::query(statement).execute(connection).await.map(drop).map_err(store_error)
}

impl Known {
    async fn read(connection: &mut SqliteConnection) -> Result<Self, StoreError> {
        let select =
            "SELECT coalesce((SELECT max(no) FROM stream), 0), coalesce((SELECT max(no) FROM record), 0)";
        let row = sqlx::query(select).fetch_one(&mut *connection).await.map_err(store_error)?;
        let last = |column| row.try_get::<i64, _>(column).map_err(store_error);
        let (next_stream, next_record) = (last(0)? + 1, last(1)? + 1);
        Ok(Self { next_stream, next_record, count: Count::read(connection).await? })
    }
}

impl Writing<'_> {
    /// Commits.
    pub(crate) async fn commit(self, shared: &Shared) -> Result<(), CommitError> {
        let Self { connection, count, next_stream, next_record, known, is_left, before } = self;
        // Whoever goes away now leaves it open whether this happened.
        *known = None;
        if let Err(error) = sqlx::query("COMMIT").execute(connection).await {
            shared.health.poison_if_in_doubt(&error);
            if sql::leaves_doubt(&error) {
                return Err(CommitError::MayHaveHappened(error.to_string()));
            }
            *known = Some(before);
            return Err(not_committed(error));
        }
        *is_left = false;
        *known = Some(Known { next_stream, next_record, count });
        shared.counts.show(count);
        Ok(())
    }

    /// Undoes what was done so far.
    pub(crate) async fn roll_back(self) {
        // If SQLite has done so already, there is nothing to undo; and if it fails, whoever comes next tries again.
        if run(self.connection, "ROLLBACK").await.is_ok() {
            *self.is_left = false;
        }
    }
}

pub(crate) async fn commit(shared: &Shared, instance: &str, group: &Group<'_>) -> Result<(), CommitError> {
    shared.check()?;
    let mut writer = shared.writer.lock().await;
    let mut writing = writer.begin().await?;
    match write(&mut writing, instance, group).await {
        Ok(()) => writing.commit(shared).await?,
        Err(stopped) => {
            writing.roll_back().await;
            return Err(match stopped {
                Stopped::For(error) => error,
                Stopped::Mismatch => why_not(writer.connection()?, group).await?,
            });
        }
    }
    if shared.checkpointer.must_wait() {
        checkpoint::copy(writer.connection()?, &shared.health).await;
    }
    drop(writer);
    shared.checkpointer.start_if_due();
    Ok(())
}

/// All but COMMIT.
async fn write(writing: &mut Writing<'_>, instance: &str, group: &Group<'_>) -> Result<(), Stopped> {
    let (new, known): (Vec<&Move<'_>>, Vec<&Move<'_>>) =
        group.moves.iter().partition(|moved| moved.from.is_none());
    let mut streams = move_streams(writing, &known).await?;
    streams.extend(make_streams(writing, &new).await?);
    agree(writing, &streams, &group.moves).await?;
    let records = insert_records(writing, instance, &streams, &group.records).await?;
    open(writing, &records, &group.opened).await?;
    settle(writing, &group.settled).await?;
    claim(writing, &streams, &group.claims).await
}

/// The number of each stream.
type Streams<'a> = HashMap<&'a str, i64>;

/// The compare-and-swap: first, so that a change that comes too late does no work.
async fn move_streams<'a>(writing: &mut Writing<'_>, moves: &[&Move<'a>]) -> Result<Streams<'a>, Stopped> {
    let moved = sql::with_rows(
        writing.connection,
        "WITH moved (name, version, to_version, first_seq, records, closed, keep_until, running) AS (VALUES ",
        8,
        ") UPDATE stream SET version = moved.to_version, next_seq = next_seq + moved.records, closed = moved.closed,
                  keep_until = moved.keep_until, running = moved.running
             FROM moved
            WHERE stream.name = moved.name AND stream.version = moved.version
              AND stream.next_seq = coalesce(moved.first_seq, stream.next_seq)
        RETURNING stream.no, stream.name",
        moves,
        |query, moved| {
            let query = query.bind(moved.stream).bind(moved.from.map(signed)).bind(signed(moved.to));
            let query = query.bind(moved.first_seq.map(signed)).bind(signed(moved.records));
            query.bind(moved.closed).bind(signed(moved.keep_until)).bind(&moved.running[..])
        },
    );
    let moved = moved.await.map_err(stopped)?;
    if moved.len() != moves.len() {
        return Err(Stopped::Mismatch);
    }
    let numbers: HashMap<String, i64> = moved.iter().map(numbered).collect::<Result<_, _>>()?;
    let number = |moved: &&Move<'a>| numbers.get(moved.stream).map(|number| (moved.stream, *number));
    Ok(moves.iter().filter_map(number).collect())
}

fn numbered(row: &SqliteRow) -> Result<(String, i64), StoreError> {
    Ok((sql::text(row, 1)?, row.try_get(0).map_err(store_error)?))
}

async fn make_streams<'a>(writing: &mut Writing<'_>, moves: &[&Move<'a>]) -> Result<Streams<'a>, Stopped> {
    let numbers = writing.next_stream..;
    let made: Vec<(i64, &Move<'a>)> = numbers.zip(moves.iter().copied()).collect();
    writing.next_stream += sql::rows(made.len());
    let inserted = sql::with_rows(
        writing.connection,
        "INSERT INTO stream (no, name, version, next_seq, closed, keep_until, running) VALUES ",
        7,
        "",
        &made,
        |query, (number, moved)| {
            let query = query.bind(*number).bind(moved.stream).bind(signed(moved.to));
            let query = query.bind(signed(moved.records)).bind(moved.closed);
            query.bind(signed(moved.keep_until)).bind(&moved.running[..])
        },
    );
    inserted.await.map_err(mismatch_or)?;
    Ok(made.iter().map(|(number, moved)| (moved.stream, *number)).collect())
}

/// Why nothing was written.
enum Stopped {
    /// Something is not as the changes say; what, is looked up once this transaction is undone.
    Mismatch,
    For(CommitError),
}

impl From<StoreError> for Stopped {
    fn from(error: StoreError) -> Self {
        Self::For(error.into())
    }
}

fn stopped(error: sqlx::Error) -> Stopped {
    Stopped::For(not_committed(error))
}

fn mismatch_or(error: sqlx::Error) -> Stopped {
    if sql::is_constraint(&error) { Stopped::Mismatch } else { stopped(error) }
}

/// What is not as the changes say: nobody else writes meanwhile.
async fn why_not(connection: &mut SqliteConnection, group: &Group<'_>) -> Result<CommitError, StoreError> {
    let mut conflicts = BTreeSet::new();
    for moved in &group.moves {
        let select = sqlx::query("SELECT version, next_seq FROM stream WHERE name = ?").bind(moved.stream);
        let row = select.fetch_optional(&mut *connection).await.map_err(store_error)?;
        match row {
            Some(row) if Some(sql::number(&row, 0)?) == moved.from => {
                let _ = moved.next_seq(sql::number(&row, 1)?)?;
            }
            None if moved.from.is_none() => {}
            _ => _ = conflicts.insert(moved.stream),
        }
    }
    for claim in &group.claims {
        let select = sqlx::query_scalar(reader::CLAIMED).bind(&claim.stream).bind(claim.kind.number());
        if select.bind(&claim.key[..]).fetch_one(&mut *connection).await.map_err(store_error)? {
            conflicts.insert(&claim.stream);
        }
    }
    match conflicts.is_empty() {
        true => Err(StoreError::Refused("the database refuses what it holds no reason against".into())),
        false => Ok(CommitError::Conflict(conflicts.into_iter().map(str::to_owned).collect())),
    }
}

async fn agree(writing: &mut Writing<'_>, streams: &Streams<'_>, moves: &[Move<'_>]) -> Result<(), Stopped> {
    let agreed = moves.iter().filter_map(|moved| Some((*streams.get(moved.stream)?, moved.agreed?)));
    let agreed: Vec<_> = agreed.collect();
    let upserted = sql::with_rows(
        writing.connection,
        "INSERT INTO agreement (stream, agreed) VALUES ",
        2,
        " ON CONFLICT (stream) DO UPDATE SET agreed = excluded.agreed",
        &agreed,
        |query, (stream, agreed)| query.bind(*stream).bind(&agreed[..]),
    );
    upserted.await.map(drop).map_err(stopped)
}

/// A trigger puts each of them into the outbox.
async fn insert_records(
    writing: &mut Writing<'_>,
    instance: &str,
    streams: &Streams<'_>,
    records: &[&Record],
) -> Result<HashMap<EntryDigest, i64>, Stopped> {
    let numbers = writing.next_record..;
    let rows = numbers.zip(records).filter_map(|(number, record)| {
        let stream = streams.get(record.stream.as_str())?;
        Some((number, *stream, *record))
    });
    let rows: Vec<(i64, i64, &Record)> = rows.collect();
    writing.next_record += sql::rows(rows.len());
    let inserted = sql::with_rows(
        writing.connection,
        "INSERT INTO record (no, id, stream, seq, kind, at, instance, statement, verdict, annex) VALUES ",
        10,
        "",
        &rows,
        |query, (number, stream, record)| {
            let query = query.bind(*number).bind(&record.id.as_bytes()[..]).bind(*stream);
            let query = query.bind(signed(record.seq)).bind(record.kind.as_str()).bind(signed(record.at));
            let query = query.bind(instance).bind(&record.statement[..]);
            query.bind(record.verdict.as_deref()).bind(&record.annex[..])
        },
    );
    inserted.await.map_err(|error| {
        let text = format!("a record is there already: {error}");
        if sql::is_constraint(&error) { StoreError::Refused(text).into() } else { stopped(error) }
    })?;
    writing.count.records += records.len() as u64;
    writing.count.bytes += records.iter().map(|record| record.statement.len() as u64).sum::<u64>();
    Ok(rows.iter().map(|(number, _, record)| (record.id, *number)).collect())
}

async fn open(
    writing: &mut Writing<'_>,
    records: &HashMap<EntryDigest, i64>,
    opened: &[EntryDigest],
) -> Result<(), Stopped> {
    let opened: Vec<i64> = opened.iter().filter_map(|id| records.get(id).copied()).collect();
    let into = "INSERT INTO open_decision (record) VALUES ";
    let inserted =
        sql::with_rows(writing.connection, into, 1, "", &opened, |query, number| query.bind(*number));
    inserted.await.map(drop).map_err(stopped)
}

async fn settle(writing: &mut Writing<'_>, settled: &[EntryDigest]) -> Result<(), Stopped> {
    let deleted = sql::with_rows(
        writing.connection,
        "DELETE FROM open_decision WHERE record IN (SELECT no FROM record WHERE id IN (VALUES ",
        1,
        "))",
        settled,
        |query, id| query.bind(&id.as_bytes()[..]),
    );
    deleted.await.map(drop).map_err(stopped)
}

async fn claim(writing: &mut Writing<'_>, streams: &Streams<'_>, claims: &[&Claim]) -> Result<(), Stopped> {
    for claim in claims {
        let Some(stream) = streams.get(claim.stream.as_str()) else { continue };
        let insert = sqlx::query("INSERT INTO claim (stream, kind, key) VALUES (?, ?, ?)");
        let insert = insert.bind(*stream).bind(claim.kind.number()).bind(&claim.key[..]);
        insert.execute(&mut *writing.connection).await.map_err(mismatch_or)?;
    }
    Ok(())
}

/// Only asked after an I/O error, after which this process does not write any more; and whoever asks gets the truth or
/// nothing.
pub(crate) async fn happened(shared: &Shared, group: &Group<'_>) -> Result<bool, StoreError> {
    shared.check()?;
    let mut writer = shared.writer.lock().await;
    let connection = writer.connection()?;
    if let Some(record) = group.records.first() {
        let select = sqlx::query_scalar("SELECT EXISTS (SELECT 1 FROM record WHERE id = ?)");
        return select.bind(&record.id.as_bytes()[..]).fetch_one(connection).await.map_err(store_error);
    }
    for moved in &group.moves {
        let select = sqlx::query_scalar::<_, i64>("SELECT version FROM stream WHERE name = ?");
        let found = select.bind(moved.stream).fetch_optional(&mut *connection).await.map_err(store_error)?;
        if found != Some(signed(moved.to)) {
            return Ok(false);
        }
    }
    Ok(!group.moves.is_empty())
}

pub(crate) async fn check_durability(shared: &Shared) -> Result<(), StoreError> {
    let mut writer = shared.writer.lock().await;
    writer.begin().await?.roll_back().await;
    let connection = writer.connection()?;
    for (pragma, needed) in [
        ("journal_mode", "wal"),
        ("synchronous", "2"),
        ("secure_delete", "1"),
        ("foreign_keys", "1"),
        ("recursive_triggers", "1"),
    ] {
        let query = sqlx::query(AssertSqlSafe(format!("PRAGMA {pragma}")));
        let row = query.fetch_one(&mut *connection).await.map_err(store_error)?;
        let number = row.try_get_unchecked::<i64, _>(0).map(|number| number.to_string());
        let found = row.try_get::<String, _>(0).or(number).map_err(store_error)?;
        if found != needed {
            let text = format!("SQLite answers {found} to PRAGMA {pragma}, and evidence needs {needed}");
            return Err(StoreError::Refused(text));
        }
    }
    Ok(())
}
