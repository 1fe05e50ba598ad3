//! The transaction that appends a batch, and the epoch that decides which process may send it.

use merkle::{CompactRange, EntryDigest, Hash};
use sqlx::{Row, SqliteConnection};
use store::moving::half_filled;
use store::{Batch, CommitError, Effect, Head, NewEntry, State, StoreError};

use crate::sql::{self, seen_key, signed};
use crate::transaction::{self, IMMEDIATE};
use crate::{Sqlite, custody, heads, journal, log_state, reader, tiles};

/// Value of `log.holder` after an entry froze the log.
const FROZEN_BY: &str = "the operator's freeze";

/// Inserts the log's row if there is none.
pub(crate) async fn make(store: &Sqlite, origin: &str) -> Result<(), StoreError> {
    if store.shared.place.is_some() {
        let insert = sqlx::query(
            "INSERT INTO log (one, origin, epoch, size, root, edge, batch, at, policy, holder)
             VALUES (1, ?, 0, 0, ?, x'', 0, 0, 0, '') ON CONFLICT DO NOTHING",
        );
        let root = CompactRange::empty().root();
        insert
            .bind(origin)
            .bind(&root.as_bytes()[..])
            .execute(store.writable().await?)
            .await
            .map_err(sql::store_error)?;
    }
    Ok(())
}

pub(crate) async fn open(store: &Sqlite, origin: &str) -> Result<Head, StoreError> {
    make(store, origin).await?;
    let known: Option<String> = sqlx::query_scalar("SELECT origin FROM log")
        .fetch_optional(store.write.pool())
        .await
        .map_err(sql::store_error)?;
    match known {
        Some(known) if known == origin => match log_state::state(store.write.pool()).await? {
            State::Filling { .. } => Err(half_filled()),
            State::Open | State::Frozen { .. } => reader::head(store.write.pool()).await,
        },
        Some(known) => Err(StoreError::Refused(format!("the database holds the log {known}, not {origin}"))),
        None => Err(StoreError::NoLog("the database holds no log".into())),
    }
}

pub(crate) async fn take_over(store: &Sqlite, holder: &str) -> Result<Head, StoreError> {
    let mut transaction = store.writable().await?.begin_with(IMMEDIATE).await.map_err(sql::store_error)?;
    log_state::must_grow(&mut *transaction).await?;
    let update = sqlx::query("UPDATE log SET epoch = epoch + 1, holder = ?").bind(holder);
    update.execute(&mut *transaction).await.map_err(sql::store_error)?;
    let head = reader::head(&mut *transaction).await?;
    transaction::finish(store, transaction).await?;
    Ok(head)
}

pub(crate) async fn commit(store: &Sqlite, batch: &Batch) -> Result<(), CommitError> {
    batch.check().map_err(CommitError::NotCommitted)?;
    let pool = store.writable().await.map_err(CommitError::NotCommitted)?;
    let mut transaction = pool.begin_with(IMMEDIATE).await.map_err(not_committed)?;
    log_state::must_grow(&mut *transaction).await.map_err(CommitError::NotCommitted)?;
    match batch.sets_time_back() {
        false => {
            move_head(&mut transaction, batch).await?;
            insert(&mut transaction, batch).await?;
        }
        // The trigger requires the clock correction to be inserted before the head moves.
        true => {
            check_head(&mut transaction, batch).await?;
            insert(&mut transaction, batch).await?;
            move_head(&mut transaction, batch).await?;
        }
    }
    settle(&mut transaction, batch).await?;
    heads::insert_signatures(&mut transaction, &batch.signatures).await.map_err(CommitError::NotCommitted)?;
    take_effects(&mut transaction, batch).await.map_err(CommitError::NotCommitted)?;
    transaction.commit().await.map_err(|error| {
        store.write.note_failure(&error);
        CommitError::Unknown(error.to_string())
    })?;
    journal::checkpoint(store).await;
    Ok(())
}

/// Inserts entries, the keys that lead to them, and tiles.
pub(crate) async fn insert(connection: &mut SqliteConnection, batch: &Batch) -> Result<(), CommitError> {
    insert_entries(connection, batch).await?;
    insert_look_ups(connection, batch).await?;
    extend_tiles(connection, batch).await
}

/// Refuses a batch that does not follow the stored head, before anything is inserted.
async fn check_head(connection: &mut SqliteConnection, batch: &Batch) -> Result<(), CommitError> {
    let from = &batch.from;
    let query = sqlx::query("SELECT 1 FROM log WHERE epoch = ? AND size = ? AND root = ?");
    let query = query.bind(signed(from.epoch)).bind(signed(from.size().get()));
    let root = from.root();
    let found = query.bind(&root.as_bytes()[..]).fetch_optional(connection).await.map_err(not_committed)?;
    found.map(drop).ok_or(CommitError::Fenced)
}

/// Moves the head by compare-and-swap, as the first step, so that a fenced process does no work.
async fn move_head(connection: &mut SqliteConnection, batch: &Batch) -> Result<(), CommitError> {
    let (from, to) = (&batch.from, &batch.to);
    let edge: Vec<u8> = to.edge.hashes().iter().flat_map(|hash: &Hash| *hash.as_bytes()).collect();
    let root = to.root();
    let update = sqlx::query(
        "UPDATE log SET size = ?1, root = ?2, edge = ?3, batch = ?4, at = ?5, policy = ?6
         WHERE epoch = ?7 AND size = ?8 AND root = ?9",
    );
    let update = update.bind(signed(to.size().get())).bind(&root.as_bytes()[..]).bind(edge);
    let update = update.bind(signed(to.batch)).bind(signed(to.at)).bind(signed(to.policy.get()));
    let update = update.bind(signed(from.epoch)).bind(signed(from.size().get()));
    let moved =
        update.bind(&from.root().as_bytes()[..]).execute(&mut *connection).await.map_err(not_committed)?;
    if moved.rows_affected() != 1 {
        return Err(CommitError::Fenced);
    }
    if batch.entries.is_empty() {
        return Ok(());
    }
    let insert = sqlx::query("INSERT INTO batch (batch, size, root, epoch, at) VALUES (?, ?, ?, ?, ?)");
    let insert = insert.bind(signed(to.batch)).bind(signed(to.size().get())).bind(&root.as_bytes()[..]);
    let insert = insert.bind(signed(to.epoch)).bind(signed(to.at));
    insert.execute(connection).await.map(drop).map_err(beyond_the_head)
}

async fn insert_entries(connection: &mut SqliteConnection, batch: &Batch) -> Result<(), CommitError> {
    let rows = numbered(batch);
    let into = "INSERT INTO entry (idx, digest, policy, rule, facts, statement) ";
    let inserted = sql::insert(connection, into, &rows, |row, (index, entry)| {
        row.push_bind(*index).push_bind(entry.digest.as_bytes().to_vec());
        row.push_bind(signed(entry.policy.get())).push_bind(entry.rule.clone());
        row.push_bind(entry.facts.clone()).push_bind(entry.statement.to_vec());
    });
    inserted.await.map_err(beyond_the_head)?;
    let rows: Vec<_> = rows
        .iter()
        .flat_map(|(index, entry)| entry.collateral.iter().map(move |item| (*index, item)))
        .collect();
    let into = "INSERT INTO collateral (idx, kind, bytes) ";
    let inserted = sql::insert(connection, into, &rows, |row, (index, item)| {
        row.push_bind(*index).push_bind(item.kind).push_bind(item.bytes.to_vec());
    });
    inserted.await.map_err(not_committed)
}

async fn insert_look_ups(connection: &mut SqliteConnection, batch: &Batch) -> Result<(), CommitError> {
    let rows = numbered(batch);
    let mut seen: Vec<(&EntryDigest, i64)> = rows
        .iter()
        .flat_map(|(index, entry)| std::iter::once(&entry.digest).chain(&entry.twin).map(|key| (key, *index)))
        .collect();
    // In the order of the index, so that each of its pages is written once.
    seen.sort_unstable_by_key(|(digest, _)| digest.as_bytes());
    let inserted = sql::insert(connection, "INSERT INTO seen (key, idx) ", &seen, |row, (digest, index)| {
        row.push_bind(seen_key(digest).to_vec()).push_bind(*index);
    });
    inserted.await.map_err(|error| unless_taken(error, CommitError::AlreadySeen))?;
    let guards: Vec<_> =
        rows.iter().flat_map(|(index, entry)| entry.guards.iter().map(move |key| (key, *index))).collect();
    let inserted = sql::insert(connection, "INSERT INTO guard (key, idx) ", &guards, |row, (key, index)| {
        row.push_bind(key.0.clone()).push_bind(*index);
    });
    inserted.await.map_err(|error| unless_taken(error, CommitError::GuardTaken))
}

async fn extend_tiles(connection: &mut SqliteConnection, batch: &Batch) -> Result<(), CommitError> {
    for tile in &batch.tiles {
        let (first, added) = tile.added(&batch.from).map_err(CommitError::NotCommitted)?;
        tiles::extend(connection, tile, first, added).await.map_err(beyond_the_head)?;
    }
    Ok(())
}

async fn settle(connection: &mut SqliteConnection, batch: &Batch) -> Result<(), CommitError> {
    for (digest, index) in &batch.settled {
        let insert = sqlx::query(
            "INSERT INTO inbox_outcome (attempt, digest, idx)
             SELECT attempt, digest, ?2 FROM inbox
             WHERE digest = ?1 AND attempt NOT IN (SELECT attempt FROM inbox_outcome WHERE digest = ?1)",
        );
        let insert = insert.bind(&digest.as_bytes()[..]).bind(signed(index.get()));
        insert.execute(&mut *connection).await.map_err(not_committed)?;
    }
    Ok(())
}

/// Writes the batch's [`Effect`]s, after its entries and its head.
async fn take_effects(connection: &mut SqliteConnection, batch: &Batch) -> Result<(), StoreError> {
    let at = batch.to.at;
    for effect in &batch.effects {
        match effect {
            Effect::Freeze => log_state::end_log(connection, FROZEN_BY, at).await?,
            Effect::Hold { entry, case } => custody::begin_hold(connection, *entry, case, at).await?,
            Effect::Release { entry, case } => {
                custody::end_hold(&mut *connection, *entry, case, at).await?;
            }
        }
    }
    Ok(())
}

pub(crate) async fn check_durability(store: &Sqlite) -> Result<(), StoreError> {
    let mut connection = store.writable().await?.acquire().await.map_err(sql::store_error)?;
    let journal = if store.shared.wal { "wal" } else { "delete" };
    expect_pragma(&mut connection, "PRAGMA journal_mode", journal).await?;
    expect_pragma(&mut connection, "PRAGMA synchronous", "2").await?;
    expect_pragma(&mut connection, "PRAGMA secure_delete", "1").await?;
    expect_pragma(&mut connection, "PRAGMA foreign_keys", "1").await?;
    expect_pragma(&mut connection, "PRAGMA recursive_triggers", "1").await
}

async fn expect_pragma(
    connection: &mut SqliteConnection,
    pragma: &'static str,
    expected: &str,
) -> Result<(), StoreError> {
    let row = sqlx::query(pragma).fetch_one(connection).await.map_err(sql::store_error)?;
    let number = row.try_get_unchecked::<i64, _>(0).map(|number| number.to_string());
    let found = row.try_get::<String, _>(0).or(number).map_err(sql::store_error)?;
    if found == expected {
        return Ok(());
    }
    Err(StoreError::Refused(format!("SQLite answers {found} to {pragma}, and a log needs {expected}")))
}

fn numbered(batch: &Batch) -> Vec<(i64, &NewEntry)> {
    batch.entries.iter().zip(batch.from.size().get()..).map(|(entry, index)| (signed(index), entry)).collect()
}

fn not_committed(error: sqlx::Error) -> CommitError {
    CommitError::NotCommitted(sql::store_error(error))
}

fn unless_taken(error: sqlx::Error, taken: CommitError) -> CommitError {
    if sql::is_constraint(&error) { taken } else { not_committed(error) }
}

/// Turns a constraint error into an error about rows beyond the head: no commit wrote the conflicting row.
fn beyond_the_head(error: sqlx::Error) -> CommitError {
    if sql::is_constraint(&error) {
        let text = format!("there are rows beyond the head: {error}");
        return CommitError::NotCommitted(StoreError::Damaged(text));
    }
    not_committed(error)
}
