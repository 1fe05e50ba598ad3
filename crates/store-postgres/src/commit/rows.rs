//! Inserts the rows of a batch other than the head: one message for each table.

use sqlx::PgTransaction;
use store::{Batch, CommittedHead, NewEntry, TileWrite};

use super::CommitFailure;
use crate::entry::{guard_column, seen_key};
use crate::number::column;

pub(super) async fn insert(
    transaction: &mut PgTransaction<'_>,
    log: i16,
    batch: &Batch,
) -> Result<(), CommitFailure> {
    let first = column(batch.from.size().get());
    insert_entries(transaction, log, first, &batch.entries).await?;
    insert_seen(transaction, log, first, &batch.entries).await?;
    insert_guards(transaction, log, first, &batch.entries).await?;
    insert_collateral(transaction, log, first, &batch.entries).await?;
    write_tiles(transaction, log, &batch.tiles).await
}

async fn insert_entries(
    transaction: &mut PgTransaction<'_>,
    log: i16,
    first: i64,
    entries: &[NewEntry],
) -> Result<(), CommitFailure> {
    let digests: Vec<&[u8]> = entries.iter().map(|entry| entry.digest.as_bytes().as_slice()).collect();
    let statements: Vec<&[u8]> = entries.iter().map(|entry| entry.statement.as_ref()).collect();
    let policies: Vec<i64> = entries.iter().map(|entry| column(entry.policy.get())).collect();
    let rules: Vec<&str> = entries.iter().map(|entry| entry.rule.as_str()).collect();
    let facts: Vec<&str> = entries.iter().map(|entry| entry.facts.as_str()).collect();
    sqlx::query!(
        "INSERT INTO entry (log_id, idx, digest, statement, policy, rule, facts)
         SELECT $1, $2 + no - 1, digest, statement, policy, rule, facts
           FROM UNNEST($3::bytea[], $4::bytea[], $5::bigint[], $6::text[], $7::text[])
                WITH ORDINALITY AS row (digest, statement, policy, rule, facts, no)",
        log,
        first,
        &digests as &[&[u8]],
        &statements as &[&[u8]],
        &policies,
        &rules as &[&str],
        &facts as &[&str],
    )
    .execute(&mut **transaction)
    .await?;
    Ok(())
}

async fn insert_seen(
    transaction: &mut PgTransaction<'_>,
    log: i16,
    first: i64,
    entries: &[NewEntry],
) -> Result<(), CommitFailure> {
    let (keys, indices): (Vec<_>, Vec<i64>) = (first..)
        .zip(entries)
        .flat_map(|(index, entry)| {
            std::iter::once(&entry.digest).chain(&entry.twin).map(move |digest| (seen_key(digest), index))
        })
        .unzip();
    sqlx::query!(
        "INSERT INTO seen (log_id, key, idx) SELECT $1, * FROM UNNEST($2::uuid[], $3::bigint[])",
        log,
        &keys,
        &indices
    )
    .execute(&mut **transaction)
    .await?;
    Ok(())
}

async fn insert_guards(
    transaction: &mut PgTransaction<'_>,
    log: i16,
    first: i64,
    entries: &[NewEntry],
) -> Result<(), CommitFailure> {
    let (keys, indices): (Vec<Vec<u8>>, Vec<i64>) = (first..)
        .zip(entries)
        .flat_map(|(index, entry)| entry.guards.iter().map(move |key| (guard_column(key), index)))
        .unzip();
    if keys.is_empty() {
        return Ok(());
    }
    sqlx::query!(
        "INSERT INTO guard (log_id, key, idx) SELECT $1, * FROM UNNEST($2::bytea[], $3::bigint[])",
        log,
        &keys,
        &indices
    )
    .execute(&mut **transaction)
    .await?;
    Ok(())
}

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

/// Inserts new tiles and updates the one of each level that existed before; a trigger checks that it only grows.
async fn write_tiles(
    transaction: &mut PgTransaction<'_>,
    log: i16,
    tiles: &[TileWrite],
) -> Result<(), CommitFailure> {
    let levels: Vec<i16> = tiles.iter().map(|tile| i16::from(tile.address.level)).collect();
    let numbers: Vec<i64> = tiles.iter().map(|tile| column(tile.address.number)).collect();
    let data: Vec<&[u8]> = tiles.iter().map(|tile| tile.data.as_ref()).collect();
    sqlx::query!(
        "INSERT INTO tile (log_id, level, no, data)
         SELECT $1, * FROM UNNEST($2::smallint[], $3::bigint[], $4::bytea[])
             ON CONFLICT (log_id, level, no) DO UPDATE SET data = excluded.data",
        log,
        &levels,
        &numbers,
        &data as &[&[u8]]
    )
    .execute(&mut **transaction)
    .await?;
    Ok(())
}

pub(super) async fn insert_heads(
    transaction: &mut PgTransaction<'_>,
    log: i16,
    heads: &[CommittedHead],
) -> Result<(), CommitFailure> {
    let numbers: Vec<i64> = heads.iter().map(|head| column(head.batch)).collect();
    let sizes: Vec<i64> = heads.iter().map(|head| column(head.size.get())).collect();
    let roots: Vec<&[u8]> = heads.iter().map(|head| head.root.as_bytes().as_slice()).collect();
    let epochs: Vec<i64> = heads.iter().map(|head| column(head.epoch)).collect();
    let times: Vec<i64> = heads.iter().map(|head| column(head.at)).collect();
    sqlx::query!(
        "INSERT INTO batch (log_id, batch, size, root, epoch, at)
         SELECT $1, * FROM UNNEST($2::bigint[], $3::bigint[], $4::bytea[], $5::bigint[], $6::bigint[])",
        log,
        &numbers,
        &sizes,
        &roots as &[&[u8]],
        &epochs,
        &times
    )
    .execute(&mut **transaction)
    .await?;
    Ok(())
}
