//! `HistoryExport` and `HistoryImport` in PostgreSQL, and the state of the log. Filling is in `commit::fill`.

use std::ops::Range;

use async_trait::async_trait;
use merkle::LeafIndex;
use sqlx::PgPool;
use store::{
    Collateral, GuardKey, GuardRow, Head, History, HistoryExport, HistoryImport, SeenKey, SeenRow, Source,
    State, StoreError,
};
use uuid::Uuid;

use crate::commit::fill;
use crate::entry::guard_column;
use crate::error::store_error;
use crate::number::{column, hash, number, rows};
use crate::{Postgres, head};

#[async_trait]
impl HistoryExport for Postgres {
    async fn seen_rows(&self, after: Option<SeenKey>, limit: usize) -> Result<Vec<SeenRow>, StoreError> {
        self.in_time(seen(&self.pool, after, limit)).await
    }

    async fn guard_rows(&self, after: Option<&GuardKey>, limit: usize) -> Result<Vec<GuardRow>, StoreError> {
        self.in_time(guards(&self.pool, after, limit)).await
    }

    async fn collateral_rows(&self, entries: Range<u64>) -> Result<Vec<(LeafIndex, Collateral)>, StoreError> {
        self.in_time(collateral(&self.pool, entries)).await
    }
}

#[async_trait]
impl HistoryImport for Postgres {
    async fn begin_filling(&self, origin: &str, source: &Source) -> Result<Head, StoreError> {
        self.in_time(fill::begin(&self.pool, origin, source)).await
    }

    async fn fill(&self, source: &Source, history: &History) -> Result<(), StoreError> {
        history.check()?;
        self.partitions.make_room(&self.server, history.batch.to.size()).await;
        self.in_time(fill::history(&self.pool, source, history)).await
    }

    async fn fill_claims(
        &self,
        source: &Source,
        seen: &[SeenRow],
        guards: &[GuardRow],
    ) -> Result<(), StoreError> {
        self.in_time(fill::claims(&self.pool, source, seen, guards)).await
    }

    async fn end_filling(&self, source: &Source, epoch: u64, policy: LeafIndex) -> Result<Head, StoreError> {
        self.in_time(fill::end(&self.pool, source, epoch, policy)).await
    }
}

/// Reads the state.
pub(crate) async fn state(pool: &PgPool) -> Result<State, StoreError> {
    let row = head::read_row(pool).await?;
    Ok(match (row.filling, row.frozen_at) {
        (Some(source), _) => State::Filling { source: Source(hash(&source)?) },
        (None, Some(at)) => State::Frozen { at: number(at)? },
        (None, None) => State::Open,
    })
}

async fn seen(pool: &PgPool, after: Option<SeenKey>, limit: usize) -> Result<Vec<SeenRow>, StoreError> {
    let found = sqlx::query!(
        "SELECT key, idx FROM seen WHERE ($1::uuid IS NULL OR key > $1) ORDER BY key LIMIT $2",
        after.map(Uuid::from_bytes),
        rows(limit)
    );
    let found = found.fetch_all(pool).await.map_err(store_error)?;
    found.into_iter().map(|row| Ok((row.key.into_bytes(), LeafIndex::new(number(row.idx)?)))).collect()
}

async fn guards(pool: &PgPool, after: Option<&GuardKey>, limit: usize) -> Result<Vec<GuardRow>, StoreError> {
    let found = sqlx::query!(
        "SELECT key, idx FROM guard WHERE key > $1 ORDER BY key LIMIT $2",
        after.map(guard_column).unwrap_or_default(),
        rows(limit)
    );
    let found = found.fetch_all(pool).await.map_err(store_error)?;
    found
        .into_iter()
        .map(|row| match row.key.split_first() {
            Some((0, key)) => Ok((GuardKey(key.to_vec()), LeafIndex::new(number(row.idx)?))),
            _ => Err(StoreError::Refused(format!(
                "a guard of entry {} is stored as its hash only, and cannot be taken elsewhere",
                row.idx
            ))),
        })
        .collect()
}

async fn collateral(pool: &PgPool, entries: Range<u64>) -> Result<Vec<(LeafIndex, Collateral)>, StoreError> {
    let items = sqlx::query!(
        r#"SELECT idx, kind, bytes AS "bytes!" FROM collateral
            WHERE idx >= $1 AND idx < $2 AND bytes IS NOT NULL ORDER BY idx, kind, no"#,
        column(entries.start),
        column(entries.end)
    );
    let items = items.fetch_all(pool).await.map_err(store_error)?;
    items
        .into_iter()
        .map(|item| {
            let kind = u8::try_from(item.kind)
                .map_err(|_| StoreError::Damaged(format!("collateral of kind {}", item.kind)))?;
            Ok((LeafIndex::new(number(item.idx)?), Collateral { kind, bytes: item.bytes.into() }))
        })
        .collect()
}
