//! Inserts the rows of a batch and moves the head, in one statement: one round trip, and nothing at all if another head
//! is in force.

use std::collections::HashMap;

use sqlx::PgConnection;
use store::{Batch, CommittedHead, Head, HeadSignature, NewEntry, StoreError, TILE_PARTS, TileWrite};

use super::CommitFailure;
use crate::entry::{guard_column, seen_key};
use crate::history::SignatureColumns;
use crate::number::column;

/// Rows that one statement appends to the log.
pub(super) struct Appended<'a> {
    /// Head that must be in force.
    pub(super) from: &'a Head,
    /// Entries, tiles, and the head after them.
    pub(super) batch: &'a Batch,
    /// Rows of the history.
    pub(super) heads: &'a [CommittedHead],
    /// Signatures over heads in the history, or of these rows.
    pub(super) signatures: &'a [HeadSignature],
    /// Archive that the log is being filled from; `None` for a log that is complete.
    pub(super) filling: Option<&'a [u8]>,
}

/// Appends the rows if the head is `from`, all of it, and the log is neither frozen nor filled from elsewhere;
/// returns whether it did. The whole head is compared and not only epoch and size: a database that was restored to an
/// older state, or replaced by another one, may agree in these.
///
/// The head is locked first, so that a take-over in progress is waited for, and moved after the entries are inserted,
/// as a trigger requires of a batch that sets the time back.
pub(super) async fn append(
    connection: &mut PgConnection,
    rows: &Appended<'_>,
) -> Result<bool, CommitFailure> {
    let (from, to) = (rows.from, &rows.batch.to);
    let first = column(from.size().get());
    let (old_root, new_root) = (from.root(), to.root());
    let admissions = AdmissionColumns::of(&rows.batch.entries);
    let entries = EntryColumns::of(&rows.batch.entries);
    let seen = seen_rows(first, &rows.batch.entries);
    let guards = guard_rows(first, &rows.batch.entries);
    let tiles = TileColumns::of(from, &rows.batch.tiles)?;
    let heads = HeadColumns::of(rows.heads);
    let signatures = SignatureColumns::of(rows.signatures);
    let moved = sqlx::query_file!(
        "src/commit/append.sql",
        column(from.epoch),
        first,
        old_root.as_bytes(),
        from.edge_bytes(),
        column(from.batch),
        column(from.at),
        column(from.policy.get()),
        rows.filling,
        column(to.epoch),
        column(to.size().get()),
        new_root.as_bytes(),
        to.edge_bytes(),
        column(to.batch),
        column(to.at),
        column(to.policy.get()),
        &admissions.policies,
        &admissions.rules as &[&str],
        &entries.digests as &[&[u8]],
        &entries.statements as &[&[u8]],
        &admissions.of_entries,
        &entries.facts as &[&str],
        &seen.0,
        &seen.1,
        &guards.0,
        &guards.1,
        &tiles.levels,
        &tiles.numbers,
        &tiles.firsts,
        &tiles.added as &[&[u8]],
        &tiles.full as &[Option<&[u8]>],
        &heads.numbers,
        &heads.sizes,
        &heads.roots as &[&[u8]],
        &heads.epochs,
        &heads.times,
        &signatures.sizes,
        &signatures.kinds,
        &signatures.kids as &[&[u8]],
        &signatures.bytes as &[&[u8]],
        column(TILE_PARTS as u64),
    )
    .execute(&mut *connection)
    .await?;
    let is_moved = moved.rows_affected() == 1;
    if is_moved {
        insert_collateral(connection, first, &rows.batch.entries).await?;
    }
    Ok(is_moved)
}

/// Columns of the table `admission`: the distinct pairs of policy and rule of a batch.
#[derive(Default)]
struct AdmissionColumns<'a> {
    policies: Vec<i64>,
    rules: Vec<&'a str>,
    /// The pair of each entry, counted from 1.
    of_entries: Vec<i64>,
}

impl<'a> AdmissionColumns<'a> {
    fn of(entries: &'a [NewEntry]) -> Self {
        let mut columns = Self::default();
        let mut known = HashMap::new();
        for entry in entries {
            let (policy, rule) = (column(entry.policy.get()), entry.rule.as_str());
            let pair = known.entry((policy, rule)).or_insert_with(|| {
                columns.policies.push(policy);
                columns.rules.push(rule);
                column(columns.rules.len() as u64)
            });
            columns.of_entries.push(*pair);
        }
        columns
    }
}

/// Columns of the table `entry`.
struct EntryColumns<'a> {
    digests: Vec<&'a [u8]>,
    statements: Vec<&'a [u8]>,
    facts: Vec<&'a str>,
}

impl<'a> EntryColumns<'a> {
    fn of(entries: &'a [NewEntry]) -> Self {
        Self {
            digests: entries.iter().map(|entry| entry.digest.as_bytes().as_slice()).collect(),
            statements: entries.iter().map(|entry| entry.statement.as_ref()).collect(),
            facts: entries.iter().map(|entry| entry.facts.as_str()).collect(),
        }
    }
}

/// Keys and indices of the table `seen`.
fn seen_rows(first: i64, entries: &[NewEntry]) -> (Vec<uuid::Uuid>, Vec<i64>) {
    let keys = (first..).zip(entries).flat_map(|(index, entry)| {
        std::iter::once(&entry.digest).chain(&entry.twin).map(move |digest| (seen_key(digest), index))
    });
    keys.unzip()
}

/// Keys and indices of the table `guard`.
fn guard_rows(first: i64, entries: &[NewEntry]) -> (Vec<Vec<u8>>, Vec<i64>) {
    let guards = (first..)
        .zip(entries)
        .flat_map(|(index, entry)| entry.guards.iter().map(move |key| (guard_column(key), index)));
    guards.unzip()
}

/// Columns of the table `tile`: the hashes that the batch adds to each tile, and all of a tile that it fills.
#[derive(Default)]
struct TileColumns<'a> {
    levels: Vec<i16>,
    numbers: Vec<i64>,
    firsts: Vec<i16>,
    added: Vec<&'a [u8]>,
    full: Vec<Option<&'a [u8]>>,
}

impl<'a> TileColumns<'a> {
    fn of(from: &Head, tiles: &'a [TileWrite]) -> Result<Self, StoreError> {
        let mut columns = Self::default();
        for tile in tiles {
            let (first, added) = tile.added(from)?;
            columns.levels.push(i16::from(tile.address.level));
            columns.numbers.push(column(tile.address.number));
            columns.firsts.push(first.cast_signed());
            columns.added.push(added);
            columns.full.push(tile.full());
        }
        Ok(columns)
    }
}

/// Columns of the table `batch`.
struct HeadColumns<'a> {
    numbers: Vec<i64>,
    sizes: Vec<i64>,
    roots: Vec<&'a [u8]>,
    epochs: Vec<i64>,
    times: Vec<i64>,
}

impl<'a> HeadColumns<'a> {
    fn of(heads: &'a [CommittedHead]) -> Self {
        Self {
            numbers: heads.iter().map(|head| column(head.batch)).collect(),
            sizes: heads.iter().map(|head| column(head.size.get())).collect(),
            roots: heads.iter().map(|head| head.root.as_bytes().as_slice()).collect(),
            epochs: heads.iter().map(|head| column(head.epoch)).collect(),
            times: heads.iter().map(|head| column(head.at)).collect(),
        }
    }
}

/// Inserts what few entries have: bytes outside of their leaf hash.
async fn insert_collateral(
    connection: &mut PgConnection,
    first: i64,
    entries: &[NewEntry],
) -> Result<(), CommitFailure> {
    let items = (first..)
        .zip(entries)
        .flat_map(|(index, entry)| (0_i16..).zip(&entry.collateral).map(move |(no, item)| (index, no, item)));
    let (mut indices, mut kinds, mut numbers, mut bytes) = (Vec::new(), Vec::new(), Vec::new(), Vec::new());
    for (index, no, item) in items {
        indices.push(index);
        kinds.push(i16::from(item.kind));
        numbers.push(no);
        bytes.push(item.bytes.as_ref());
    }
    if indices.is_empty() {
        return Ok(());
    }
    sqlx::query!(
        "INSERT INTO collateral (idx, kind, no, bytes)
         SELECT * FROM UNNEST($1::bigint[], $2::smallint[], $3::smallint[], $4::bytea[])",
        &indices,
        &kinds,
        &numbers,
        &bytes as &[&[u8]]
    )
    .execute(&mut *connection)
    .await?;
    Ok(())
}
