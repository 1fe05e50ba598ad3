//! Inserts the rows of a batch and moves the head, in one statement: one round trip, and nothing at all if another head
//! is in force.

use merkle::tile::TileId;
use sqlx::PgTransaction;
use store::{
    Batch, CommittedHead, HASH_BYTES, Head, HeadSignature, NewEntry, StoreError, TILE_BYTES, TileAddress,
    TileWrite,
};

use super::CommitFailure;
use crate::entry::{guard_column, seen_key};
use crate::head::edge_bytes;
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
    transaction: &mut PgTransaction<'_>,
    log: i16,
    rows: &Appended<'_>,
) -> Result<bool, CommitFailure> {
    let (from, to) = (rows.from, &rows.batch.to);
    let first = column(from.size().get());
    let (old_root, new_root) = (from.root(), to.root());
    let entries = EntryColumns::of(&rows.batch.entries);
    let seen = seen_rows(first, &rows.batch.entries);
    let guards = guard_rows(first, &rows.batch.entries);
    let tiles = TileColumns::of(from, &rows.batch.tiles)?;
    let heads = HeadColumns::of(rows.heads);
    let signatures = SignatureColumns::of(rows.signatures);
    let moved = sqlx::query!(
        "WITH head AS MATERIALIZED (
           SELECT log_id FROM log
            WHERE log_id = $1 AND epoch = $2 AND size = $3 AND root = $4 AND edge = $5 AND batch = $6 AND at = $7
              AND policy = $8 AND frozen_at IS NULL AND filling IS NOT DISTINCT FROM $9
              FOR UPDATE),
         new_entry AS (
           INSERT INTO entry (log_id, idx, digest, statement, policy, rule, facts)
           SELECT head.log_id, $3 + row.no - 1, row.digest, row.statement, row.policy, row.rule, row.facts
             FROM head, UNNEST($17::bytea[], $18::bytea[], $19::bigint[], $20::text[], $21::text[])
                        WITH ORDINALITY AS row (digest, statement, policy, rule, facts, no)
           RETURNING idx),
         new_seen AS (
           INSERT INTO seen (log_id, key, idx)
           SELECT head.log_id, row.key, row.idx
             FROM head, UNNEST($22::uuid[], $23::bigint[]) AS row (key, idx)),
         new_guard AS (
           INSERT INTO guard (log_id, key, idx)
           SELECT head.log_id, row.key, row.idx
             FROM head, UNNEST($24::bytea[], $25::bigint[]) AS row (key, idx)),
         new_tile AS (
           INSERT INTO tile (log_id, level, no, first, data)
           SELECT head.log_id, row.level, row.no, row.first, row.data
             FROM head, UNNEST($26::smallint[], $27::bigint[], $28::smallint[], $29::bytea[])
                        AS row (level, no, first, data)
               ON CONFLICT (log_id, level, no, first) DO UPDATE SET data = excluded.data
           RETURNING log_id, level, no, octet_length(data) = 8192 AS is_full),
         parts_of_full_tile AS (
           DELETE FROM tile USING new_tile
            WHERE new_tile.is_full AND tile.log_id = new_tile.log_id AND tile.level = new_tile.level
              AND tile.no = new_tile.no AND tile.first > 0),
         new_batch AS (
           INSERT INTO batch (log_id, batch, size, root, epoch, at)
           SELECT head.log_id, row.batch, row.size, row.root, row.epoch, row.at
             FROM head, UNNEST($30::bigint[], $31::bigint[], $32::bytea[], $33::bigint[], $34::bigint[])
                        AS row (batch, size, root, epoch, at)),
         new_signature AS (
           INSERT INTO head_signature (log_id, size, kind, kid, bytes)
           SELECT head.log_id, row.size, row.kind, row.kid, row.bytes
             FROM head, UNNEST($35::bigint[], $36::smallint[], $37::bytea[], $38::bytea[])
                        AS row (size, kind, kid, bytes)
               ON CONFLICT (log_id, size, kind, kid) DO NOTHING)
         UPDATE log SET epoch = $10, size = $11, root = $12, edge = $13, batch = $14, at = $15, policy = $16
           FROM head
          WHERE log.log_id = head.log_id AND (SELECT count(*) FROM new_entry) = $11 - $3",
        log,
        column(from.epoch),
        first,
        old_root.as_bytes(),
        edge_bytes(&from.edge),
        column(from.batch),
        column(from.at),
        column(from.policy.get()),
        rows.filling,
        column(to.epoch),
        column(to.size().get()),
        new_root.as_bytes(),
        edge_bytes(&to.edge),
        column(to.batch),
        column(to.at),
        column(to.policy.get()),
        &entries.digests as &[&[u8]],
        &entries.statements as &[&[u8]],
        &entries.policies,
        &entries.rules as &[&str],
        &entries.facts as &[&str],
        &seen.0,
        &seen.1,
        &guards.0,
        &guards.1,
        &tiles.levels,
        &tiles.numbers,
        &tiles.firsts,
        &tiles.data as &[&[u8]],
        &heads.numbers,
        &heads.sizes,
        &heads.roots as &[&[u8]],
        &heads.epochs,
        &heads.times,
        &signatures.sizes,
        &signatures.kinds,
        &signatures.kids as &[&[u8]],
        &signatures.bytes as &[&[u8]],
    )
    .execute(&mut **transaction)
    .await?;
    let is_moved = moved.rows_affected() == 1;
    if is_moved {
        insert_collateral(transaction, log, first, &rows.batch.entries).await?;
    }
    Ok(is_moved)
}

/// Columns of the table `entry`.
struct EntryColumns<'a> {
    digests: Vec<&'a [u8]>,
    statements: Vec<&'a [u8]>,
    policies: Vec<i64>,
    rules: Vec<&'a str>,
    facts: Vec<&'a str>,
}

impl<'a> EntryColumns<'a> {
    fn of(entries: &'a [NewEntry]) -> Self {
        Self {
            digests: entries.iter().map(|entry| entry.digest.as_bytes().as_slice()).collect(),
            statements: entries.iter().map(|entry| entry.statement.as_ref()).collect(),
            policies: entries.iter().map(|entry| column(entry.policy.get())).collect(),
            rules: entries.iter().map(|entry| entry.rule.as_str()).collect(),
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

/// Columns of the table `tile`: the hashes that the batch adds to each tile, or all of a tile that it fills.
#[derive(Default)]
struct TileColumns<'a> {
    levels: Vec<i16>,
    numbers: Vec<i64>,
    firsts: Vec<i16>,
    data: Vec<&'a [u8]>,
}

impl<'a> TileColumns<'a> {
    fn of(from: &Head, tiles: &'a [TileWrite]) -> Result<Self, StoreError> {
        let mut columns = Self::default();
        for TileWrite { address, data } in tiles {
            let first = if data.len() == TILE_BYTES { 0 } else { stored_hashes(from, *address) };
            let added = data.get(usize::from(first) * HASH_BYTES..).filter(|added| !added.is_empty());
            columns.levels.push(i16::from(address.level));
            columns.numbers.push(column(address.number));
            columns.firsts.push(first.cast_signed());
            columns.data.push(added.ok_or_else(|| {
                let TileAddress { level, number } = address;
                StoreError::Refused(format!("tile {level}/{number} would change instead of growing"))
            })?);
        }
        Ok(columns)
    }
}

/// Returns the number of hashes that a tile has in the tree of a head.
fn stored_hashes(head: &Head, address: TileAddress) -> u16 {
    TileId::at(address.level, address.number, head.size()).map_or(0, TileId::width)
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
    transaction: &mut PgTransaction<'_>,
    log: i16,
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
        "INSERT INTO collateral (log_id, idx, kind, no, bytes)
         SELECT $1, * FROM UNNEST($2::bigint[], $3::smallint[], $4::smallint[], $5::bytea[])",
        log,
        &indices,
        &kinds,
        &numbers,
        &bytes as &[&[u8]]
    )
    .execute(&mut **transaction)
    .await?;
    Ok(())
}
