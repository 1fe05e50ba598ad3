//! Rows that a commit writes, table by table.

use std::collections::{BTreeSet, HashMap};

use evidence::{Claim, CommitError, Group, Move, Record, StoreError, StreamVersion};
use merkle::EntryDigest;
use sqlite::{Script, portions};
use sqlx::SqliteConnection;
use sqlx::sqlite::SqliteRow;

use crate::reader;
use crate::sql::{self, signed, store_error};
use crate::transaction::WriteTransaction;

/// Adds the statements of a commit, except COMMIT. Rows that are not as the changes require break a constraint; then
/// [`find_conflicts`] finds out which they are. `instance` is the name of the process that makes the records.
pub(crate) fn write(writing: &mut WriteTransaction<'_>, instance: &str, group: &Group<'_>) {
    let (new, known): (Vec<&Move<'_>>, Vec<&Move<'_>>) =
        group.moves.iter().partition(|moved| moved.from.is_none());
    check_versions(&mut writing.script, &group.relied_on);
    move_streams(&mut writing.script, &known);
    make_streams(writing, &new);
    set_agreed(&mut writing.script, &group.moves);
    let records = insert_records(writing, instance, &group.records);
    open(&mut writing.script, &records, &group.opened);
    settle(&mut writing.script, &group.settled);
    claim(&mut writing.script, &group.claims);
}

/// Breaks a constraint if a stream is not at the version that it was read at.
fn check_versions(script: &mut Script, relied_on: &[&StreamVersion]) {
    script.add_rows(
        "INSERT INTO claim (stream, kind, key) SELECT NULL, 0, x'' FROM (VALUES ",
        "(?,?)",
        ") AS read LEFT JOIN stream ON stream.name = read.column1 WHERE stream.version IS NOT read.column2",
        relied_on,
        |values, read| _ = values.bind(read.stream.as_str()).bind(read.version.map(signed)),
    );
}

/// The number of a stream, by its name.
const STREAM: &str = "(SELECT no FROM stream WHERE name = ?)";

/// Moves existing streams by compare-and-swap.
fn move_streams(script: &mut Script, moves: &[&Move<'_>]) {
    let (others, lasting): (Vec<&Move<'_>>, Vec<&Move<'_>>) =
        moves.iter().copied().partition(|moved| moved.keep_until.is_none());
    update_streams(script, &others, ["", "", ""]);
    update_streams(
        script,
        &lasting,
        [", closed, keep_until", ",?,?", ", closed = moved.closed, keep_until = moved.keep_until"],
    );
}

/// Moves streams with these further columns, their placeholders and what is set to them. An index has the columns, and SQLite
/// writes its pages whenever a statement sets them, even to what they are.
fn update_streams(script: &mut Script, moves: &[&Move<'_>], [columns, placeholders, set]: [&str; 3]) {
    for portion in portions(moves) {
        script.add_rows(
            &format!(
                "WITH moved (name, version, to_version, first_seq, records, running{columns}) AS (VALUES "
            ),
            &format!("(?,?,?,?,?,?{placeholders})"),
            &format!(
                ") UPDATE stream SET version = moved.to_version, next_seq = next_seq + moved.records,
                      running = moved.running{set}
                 FROM moved
                WHERE stream.name = moved.name AND stream.version = moved.version
                  AND stream.next_seq = coalesce(moved.first_seq, stream.next_seq)"
            ),
            portion,
            |values, moved| {
                values.bind(moved.stream).bind(moved.from.map(signed)).bind(signed(moved.to));
                values.bind(moved.first_seq.map(signed)).bind(signed(moved.records));
                values.bind(&moved.running[..]);
                if let Some(keep_until) = moved.keep_until {
                    values.bind(moved.closed).bind(signed(keep_until));
                }
            },
        );
        script.add(&refuse_unless_changed(portion.len()));
    }
}

/// A statement that breaks a constraint unless the one before it changed this many rows: only triggers can raise an error
/// of their own.
fn refuse_unless_changed(rows: usize) -> String {
    format!("INSERT INTO claim (stream, kind, key) SELECT NULL, 0, x'' WHERE changes() <> {rows}")
}

fn make_streams(writing: &mut WriteTransaction<'_>, moves: &[&Move<'_>]) {
    let numbers = writing.next_stream..;
    let made: Vec<(i64, &Move<'_>)> = numbers.zip(moves.iter().copied()).collect();
    writing.next_stream += sql::rows(made.len());
    writing.script.add_rows(
        "INSERT INTO stream (no, name, version, next_seq, closed, keep_until, running) VALUES ",
        "(?,?,?,?,?,?,?)",
        "",
        &made,
        |values, (number, moved)| {
            values.bind(*number).bind(moved.stream).bind(signed(moved.to));
            values.bind(signed(moved.records)).bind(moved.closed);
            values.bind(moved.keep_until.map(signed)).bind(&moved.running[..]);
        },
    );
}

/// Finds the streams that are not as the changes require. No other connection writes meanwhile. `cause` is what the
/// database said.
pub(crate) async fn find_conflicts(
    connection: &mut SqliteConnection,
    group: &Group<'_>,
    cause: &str,
) -> Result<CommitError, StoreError> {
    let mut conflicts = BTreeSet::new();
    for read in &group.relied_on {
        let row = version_and_next_seq(connection, &read.stream).await?;
        if row.map(|row| sql::number(&row, 0)).transpose()? != read.version {
            conflicts.insert(read.stream.as_str());
        }
    }
    for moved in &group.moves {
        let row = version_and_next_seq(connection, moved.stream).await?;
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
        true => {
            Err(StoreError::Refused(format!("the database refuses rows that no stream contradicts: {cause}")))
        }
        false => Ok(CommitError::Conflict(conflicts.into_iter().map(str::to_owned).collect())),
    }
}

async fn version_and_next_seq(
    connection: &mut SqliteConnection,
    stream: &str,
) -> Result<Option<SqliteRow>, StoreError> {
    let select = sqlx::query("SELECT version, next_seq FROM stream WHERE name = ?").bind(stream);
    select.fetch_optional(connection).await.map_err(store_error)
}

fn set_agreed(script: &mut Script, moves: &[Move<'_>]) {
    let agreed: Vec<_> = moves.iter().filter_map(|moved| Some((moved.stream, moved.agreed?))).collect();
    script.add_rows(
        "INSERT INTO agreement (stream, agreed) VALUES ",
        &format!("({STREAM},?)"),
        " ON CONFLICT (stream) DO UPDATE SET agreed = excluded.agreed",
        &agreed,
        |values, (stream, agreed)| _ = values.bind(*stream).bind(&agreed[..]),
    );
}

/// Inserts records; a trigger puts each of them into the outbox. Returns the row number of each.
fn insert_records(
    writing: &mut WriteTransaction<'_>,
    instance: &str,
    records: &[&Record],
) -> HashMap<EntryDigest, i64> {
    let numbers = writing.next_record..;
    let rows: Vec<(i64, &Record)> = numbers.zip(records.iter().copied()).collect();
    writing.next_record += sql::rows(rows.len());
    writing.script.add_rows(
        "INSERT INTO record (no, id, stream, seq, kind, at, instance, statement, verdict, annex) VALUES ",
        &format!("(?,?,{STREAM},?,?,?,?,?,?,?)"),
        "",
        &rows,
        |values, (number, record)| {
            values.bind(*number).bind(&record.id.as_bytes()[..]).bind(record.stream.as_str());
            values.bind(signed(record.seq)).bind(record.kind.as_str()).bind(signed(record.at));
            values.bind(instance).bind(&record.statement[..]);
            values.bind(record.verdict.as_deref()).bind(&record.annex[..]);
        },
    );
    writing.count.records += records.len() as u64;
    writing.count.bytes += records.iter().map(|record| record.statement.len() as u64).sum::<u64>();
    rows.iter().map(|(number, record)| (record.id, *number)).collect()
}

fn open(script: &mut Script, records: &HashMap<EntryDigest, i64>, opened: &[EntryDigest]) {
    let opened: Vec<i64> = opened.iter().filter_map(|id| records.get(id).copied()).collect();
    let into = "INSERT INTO open_decision (record) VALUES ";
    script.add_rows(into, "(?)", "", &opened, |values, number| _ = values.bind(*number));
}

fn settle(script: &mut Script, settled: &[EntryDigest]) {
    script.add_rows(
        "DELETE FROM open_decision WHERE record IN (SELECT no FROM record WHERE id IN (VALUES ",
        "(?)",
        "))",
        settled,
        |values, id| _ = values.bind(&id.as_bytes()[..]),
    );
}

fn claim(script: &mut Script, claims: &[&Claim]) {
    script.add_rows(
        "INSERT INTO claim (stream, kind, key) VALUES ",
        &format!("({STREAM},?,?)"),
        "",
        claims,
        |values, claim| _ = values.bind(claim.stream.as_str()).bind(claim.kind.number()).bind(&claim.key[..]),
    );
}
