//! Rows that a commit writes, table by table.

use std::collections::{BTreeSet, HashMap};

use evidence::{Claim, CommitError, Group, Move, Record, StoreError};
use merkle::EntryDigest;
use sqlx::sqlite::SqliteRow;
use sqlx::{Row, SqliteConnection};

use crate::reader;
use crate::sql::{self, not_committed, signed, store_error};
use crate::transaction::WriteTransaction;

/// Performs all steps of a commit except COMMIT.
pub(crate) async fn write(
    writing: &mut WriteTransaction<'_>,
    instance: &str,
    group: &Group<'_>,
) -> Result<(), WriteFailure> {
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

/// Row number of each stream.
type Streams<'a> = HashMap<&'a str, i64>;

/// Moves existing streams by compare-and-swap, as the first step, so that a change that is too late does no work.
async fn move_streams<'a>(
    writing: &mut WriteTransaction<'_>,
    moves: &[&Move<'a>],
) -> Result<Streams<'a>, WriteFailure> {
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
        return Err(WriteFailure::Mismatch);
    }
    let numbers: HashMap<String, i64> = moved.iter().map(numbered).collect::<Result<_, _>>()?;
    let number = |moved: &&Move<'a>| numbers.get(moved.stream).map(|number| (moved.stream, *number));
    Ok(moves.iter().filter_map(number).collect())
}

fn numbered(row: &SqliteRow) -> Result<(String, i64), StoreError> {
    Ok((sql::text(row, 1)?, row.try_get(0).map_err(store_error)?))
}

async fn make_streams<'a>(
    writing: &mut WriteTransaction<'_>,
    moves: &[&Move<'a>],
) -> Result<Streams<'a>, WriteFailure> {
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

/// Reason why the rows were not written.
pub(crate) enum WriteFailure {
    /// Some row is not as the changes require; [`why_not`] finds out which after the rollback.
    Mismatch,
    For(CommitError),
}

impl From<StoreError> for WriteFailure {
    fn from(error: StoreError) -> Self {
        Self::For(error.into())
    }
}

fn stopped(error: sqlx::Error) -> WriteFailure {
    WriteFailure::For(not_committed(error))
}

fn mismatch_or(error: sqlx::Error) -> WriteFailure {
    if sql::is_constraint(&error) { WriteFailure::Mismatch } else { stopped(error) }
}

/// Finds the streams that are not as the changes require. No other connection writes meanwhile.
pub(crate) async fn why_not(
    connection: &mut SqliteConnection,
    group: &Group<'_>,
) -> Result<CommitError, StoreError> {
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

async fn agree(
    writing: &mut WriteTransaction<'_>,
    streams: &Streams<'_>,
    moves: &[Move<'_>],
) -> Result<(), WriteFailure> {
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

/// Inserts records; a trigger puts each of them into the outbox.
async fn insert_records(
    writing: &mut WriteTransaction<'_>,
    instance: &str,
    streams: &Streams<'_>,
    records: &[&Record],
) -> Result<HashMap<EntryDigest, i64>, WriteFailure> {
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
    writing: &mut WriteTransaction<'_>,
    records: &HashMap<EntryDigest, i64>,
    opened: &[EntryDigest],
) -> Result<(), WriteFailure> {
    let opened: Vec<i64> = opened.iter().filter_map(|id| records.get(id).copied()).collect();
    let into = "INSERT INTO open_decision (record) VALUES ";
    let inserted =
        sql::with_rows(writing.connection, into, 1, "", &opened, |query, number| query.bind(*number));
    inserted.await.map(drop).map_err(stopped)
}

async fn settle(writing: &mut WriteTransaction<'_>, settled: &[EntryDigest]) -> Result<(), WriteFailure> {
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

async fn claim(
    writing: &mut WriteTransaction<'_>,
    streams: &Streams<'_>,
    claims: &[&Claim],
) -> Result<(), WriteFailure> {
    for claim in claims {
        let Some(stream) = streams.get(claim.stream.as_str()) else { continue };
        let insert = sqlx::query("INSERT INTO claim (stream, kind, key) VALUES (?, ?, ?)");
        let insert = insert.bind(*stream).bind(claim.kind.number()).bind(&claim.key[..]);
        insert.execute(&mut *writing.connection).await.map_err(mismatch_or)?;
    }
    Ok(())
}
