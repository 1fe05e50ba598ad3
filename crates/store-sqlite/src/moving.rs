//! Freezing, `HistoryExport` and `HistoryImport` in SQLite: the rows that lead to entries, and filling a database with history.

use std::ops::Range;

use async_trait::async_trait;
use bytes::Bytes;
use merkle::LeafIndex;
use sqlite::Script;
use sqlx::sqlite::{SqlitePool, SqliteRow};
use sqlx::{Row, SqliteConnection};
use store::moving::{half_filled, not_empty, not_filling, other_claim};
use store::{
    Batch, Collateral, GuardKey, GuardRow, Head, History, HistoryExport, HistoryImport, SeenKey, SeenRow,
    Source, State, StoreError,
};

use crate::log_state::{end_log, must_grow, state};
use crate::reader::{blob, number};
use crate::rows::Rows;
use crate::sql::{signed, store_error};
use crate::transaction::{self, IMMEDIATE};
use crate::{Sqlite, journal, reader, writer};

#[async_trait]
impl HistoryExport for Sqlite {
    async fn seen_rows(&self, after: Option<SeenKey>, limit: usize) -> Result<Vec<SeenRow>, StoreError> {
        seen(&self.read, after, limit).await
    }

    async fn guard_rows(&self, after: Option<&GuardKey>, limit: usize) -> Result<Vec<GuardRow>, StoreError> {
        guards(&self.read, after, limit).await
    }

    async fn collateral_rows(&self, entries: Range<u64>) -> Result<Vec<(LeafIndex, Collateral)>, StoreError> {
        collateral(&self.read, entries).await
    }
}

#[async_trait]
impl HistoryImport for Sqlite {
    async fn begin_filling(&self, origin: &str, source: &Source) -> Result<Head, StoreError> {
        self.noting(begin(self, origin, source).await)
    }

    async fn fill(&self, source: &Source, history: &History) -> Result<(), StoreError> {
        history.check()?;
        self.noting(fill(self, source, history).await)
    }

    async fn fill_claims(
        &self,
        source: &Source,
        seen: &[SeenRow],
        guards: &[GuardRow],
    ) -> Result<(), StoreError> {
        self.noting(fill_claims(self, source, seen, guards).await)
    }

    async fn end_filling(&self, source: &Source, epoch: u64, policy: LeafIndex) -> Result<Head, StoreError> {
        self.noting(end(self, source, epoch, policy).await)
    }
}

/// Freezes the log and raises the epoch.
pub(crate) async fn freeze(store: &Sqlite, holder: &str, at: u64) -> Result<Head, StoreError> {
    let mut transaction = store.writable().await?.begin_with(IMMEDIATE).await.map_err(store_error)?;
    match must_grow(&mut *transaction).await {
        Err(StoreError::Frozen) => return reader::head(&mut *transaction).await,
        grows => grows?,
    }
    let mut script = Script::default();
    end_log(&mut script, holder, at);
    transaction::run(script, &mut transaction).await?;
    let head = reader::head(&mut *transaction).await?;
    transaction::finish(store, transaction).await?;
    Ok(head)
}

async fn seen(pool: &SqlitePool, after: Option<SeenKey>, limit: usize) -> Result<Vec<SeenRow>, StoreError> {
    let query = sqlx::query("SELECT key, idx FROM seen WHERE key > ? ORDER BY key LIMIT ?");
    let after = after.map(Vec::from).unwrap_or_default();
    let rows = query.bind(after).bind(signed(limit as u64)).fetch_all(pool).await.map_err(store_error)?;
    let row = |row: &SqliteRow| {
        let key = blob(row, 0)?.try_into();
        let key = key.map_err(|_| StoreError::Damaged("a look-up key has not 16 bytes".into()))?;
        Ok((key, LeafIndex::new(number(row, 1)?)))
    };
    rows.iter().map(row).collect()
}

async fn guards(
    pool: &SqlitePool,
    after: Option<&GuardKey>,
    limit: usize,
) -> Result<Vec<GuardRow>, StoreError> {
    let query = sqlx::query("SELECT key, idx FROM guard WHERE ?1 IS NULL OR key > ?1 ORDER BY key LIMIT ?2");
    let query = query.bind(after.map(|key| key.0.clone())).bind(signed(limit as u64));
    let rows = query.fetch_all(pool).await.map_err(store_error)?;
    let row = |row: &SqliteRow| Ok((GuardKey(blob(row, 0)?.to_vec()), LeafIndex::new(number(row, 1)?)));
    rows.iter().map(row).collect()
}

async fn collateral(
    pool: &SqlitePool,
    entries: Range<u64>,
) -> Result<Vec<(LeafIndex, Collateral)>, StoreError> {
    let query =
        sqlx::query("SELECT idx, kind, bytes FROM collateral WHERE idx >= ? AND idx < ? ORDER BY idx, kind");
    let query = query.bind(signed(entries.start)).bind(signed(entries.end));
    let rows = query.fetch_all(pool).await.map_err(store_error)?;
    let item = |row: &SqliteRow| {
        let kind = row.try_get::<u8, _>(1).map_err(store_error)?;
        let item = Collateral { kind, bytes: Bytes::copy_from_slice(blob(row, 2)?) };
        Ok((LeafIndex::new(number(row, 0)?), item))
    };
    rows.iter().map(item).collect()
}

async fn begin(store: &Sqlite, origin: &str, source: &Source) -> Result<Head, StoreError> {
    writer::make(store, origin).await?;
    let mut transaction = store.writable().await?.begin_with(IMMEDIATE).await.map_err(store_error)?;
    let known: String = sqlx::query_scalar("SELECT origin FROM log")
        .fetch_one(&mut *transaction)
        .await
        .map_err(store_error)?;
    let head = reader::head(&mut *transaction).await?;
    match state(&mut *transaction).await? {
        State::Filling { source: from } if from == *source && known == origin => return Ok(head),
        State::Filling { .. } => return Err(half_filled()),
        State::Open | State::Frozen { .. } => {}
    }
    let begin = sqlx::query(
        "UPDATE log SET filling = ? WHERE origin = ? AND epoch = 0 AND batch = 0 AND frozen_at IS NULL
           AND NOT EXISTS (SELECT 1 FROM log_key)",
    );
    let begin = begin.bind(&source.0[..]).bind(origin).execute(&mut *transaction).await;
    if begin.map_err(store_error)?.rows_affected() != 1 {
        return Err(not_empty(&known, head.size()));
    }
    transaction::finish(store, transaction).await?;
    Ok(head)
}

async fn fill(store: &Sqlite, source: &Source, history: &History) -> Result<(), StoreError> {
    let Batch { from, to, .. } = &history.batch;
    let mut transaction = store.writable().await?.begin_with(IMMEDIATE).await.map_err(store_error)?;
    let head = filling(&mut transaction, source).await?;
    if (head.batch, &head.edge) != (from.batch, &from.edge) {
        return Err(StoreError::Refused("the database is not where this history begins".into()));
    }
    let mut rows = Rows::default();
    rows.insert_heads(&history.heads);
    rows.insert(&history.batch)?;
    rows.move_head(to);
    insert_signatures(&mut rows.script, history);
    rows.run(&mut transaction).await?;
    transaction::finish(store, transaction).await?;
    journal::checkpoint(store).await;
    Ok(())
}

/// Returns the head of a log that is being filled from this source.
async fn filling(connection: &mut SqliteConnection, source: &Source) -> Result<Head, StoreError> {
    match state(&mut *connection).await? {
        State::Filling { source: from } if from == *source => reader::head(connection).await,
        _ => Err(not_filling()),
    }
}

fn insert_signatures(script: &mut Script, history: &History) {
    let into = "INSERT INTO head_signature (size, kind, kid, bytes) VALUES ";
    script.add_rows(into, "(?,?,?,?)", "", &history.signatures, |values, signature| {
        values.bind(signed(signature.size.get())).bind(signature.kind as u8);
        values.bind(&signature.kid[..]).bind(&signature.bytes[..]);
    });
    let into = "INSERT INTO cosignature (size, witness, at, line) VALUES ";
    script.add_rows(into, "(?,?,?,?)", "", &history.cosignatures, |values, cosignature| {
        values.bind(signed(cosignature.size.get())).bind(&cosignature.witness[..]);
        values.bind(signed(cosignature.at)).bind(&cosignature.line[..]);
    });
}

async fn fill_claims(
    store: &Sqlite,
    source: &Source,
    seen: &[SeenRow],
    guards: &[GuardRow],
) -> Result<(), StoreError> {
    let mut transaction = store.writable().await?.begin_with(IMMEDIATE).await.map_err(store_error)?;
    filling(&mut transaction, source).await?;
    let seen_rows = [
        "INSERT INTO seen (key, idx) VALUES (?, ?) ON CONFLICT DO NOTHING",
        "SELECT idx FROM seen WHERE key = ?",
    ];
    for (key, entry) in seen {
        add(&mut transaction, seen_rows, key, *entry).await?;
    }
    let guard_rows = [
        "INSERT INTO guard (key, idx) VALUES (?, ?) ON CONFLICT DO NOTHING",
        "SELECT idx FROM guard WHERE key = ?",
    ];
    for (key, entry) in guards {
        add(&mut transaction, guard_rows, &key.0, *entry).await?;
    }
    transaction::finish(store, transaction).await?;
    journal::checkpoint(store).await;
    Ok(())
}

/// Inserts a row; if its key exists, checks that the existing row is equal.
async fn add(
    connection: &mut SqliteConnection,
    [insert, select]: [&'static str; 2],
    key: &[u8],
    entry: LeafIndex,
) -> Result<(), StoreError> {
    let index = signed(entry.get());
    let added = sqlx::query(insert).bind(key).bind(index).execute(&mut *connection).await;
    if added.map_err(store_error)?.rows_affected() == 1 {
        return Ok(());
    }
    let there: i64 = sqlx::query_scalar(select).bind(key).fetch_one(connection).await.map_err(store_error)?;
    if there == index { Ok(()) } else { Err(other_claim(entry)) }
}

async fn end(store: &Sqlite, source: &Source, epoch: u64, policy: LeafIndex) -> Result<Head, StoreError> {
    let mut transaction = store.writable().await?.begin_with(IMMEDIATE).await.map_err(store_error)?;
    let update = sqlx::query(
        "UPDATE log SET filling = NULL, epoch = ?1, policy = ?2
          WHERE filling = ?3 AND epoch <= ?1 AND policy <= ?2 AND ?2 < size",
    );
    let update = update.bind(signed(epoch)).bind(signed(policy.get())).bind(&source.0[..]);
    let ended = update.execute(&mut *transaction).await.map_err(store_error)?;
    if ended.rows_affected() != 1 {
        return Err(not_filling());
    }
    let head = reader::head(&mut *transaction).await?;
    transaction::finish(store, transaction).await?;
    Ok(head)
}
