//! `LookupIndex` in SQLite. The table `lookup` is one tree in the order (kind, value, idx), so the entries of one
//! value are read in order and from any index on.

use std::ops::Range;

use async_trait::async_trait;
use merkle::{LeafIndex, TreeSize};
use sqlx::sqlite::{SqlitePool, SqliteRow};
use sqlx::{AssertSqlSafe, Row, SqliteExecutor};
use store::lookup::{Rows, check_rows, stored_value};
use store::{Indexed, Lookup, Order, Page, Query, StoreError, Term};

use crate::Sqlite;
use crate::reader::{columns, number, select_in};
use crate::sql::{self, signed, store_error, unsigned};
use crate::transaction::{self, IMMEDIATE};

pub(crate) async fn indexed(executor: impl SqliteExecutor<'_>) -> Result<Indexed, StoreError> {
    let query = sqlx::query("SELECT form, size FROM lookup_progress");
    let row = query.fetch_one(executor).await.map_err(store_error)?;
    let form = u32::try_from(number(&row, 0)?)
        .map_err(|_| StoreError::Damaged("the form of the lookup index is not a number of ours".into()))?;
    Ok(Indexed { form, to: TreeSize::new(number(&row, 1)?) })
}

pub(crate) async fn index(
    store: &Sqlite,
    from: Indexed,
    to: TreeSize,
    rows: &[Lookup],
) -> Result<bool, StoreError> {
    check_rows(from, to, rows)?;
    let mut transaction = store.writable().await?.begin_with(IMMEDIATE).await.map_err(store_error)?;
    if indexed(&mut *transaction).await? != from {
        return Ok(false);
    }
    let size: i64 = sqlx::query_scalar("SELECT coalesce(max(size), 0) FROM log")
        .fetch_one(&mut *transaction)
        .await
        .map_err(store_error)?;
    if to.get() > unsigned(size)? {
        return Err(StoreError::Refused(format!("no tree of size {to} was committed")));
    }
    let delete = sqlx::query("DELETE FROM lookup WHERE idx >= ? AND idx < ?");
    let delete = delete.bind(signed(from.to.get())).bind(signed(to.get()));
    delete.execute(&mut *transaction).await.map_err(store_error)?;
    let rows = still_there(&mut *transaction, from.to..to, rows).await?;
    let into = "INSERT OR IGNORE INTO lookup (kind, value, idx) ";
    let inserted = sql::insert(&mut transaction, into, &rows, |values, row| {
        values.push_bind(row.kind).push_bind(stored_value(&row.value).into_owned());
        values.push_bind(signed(row.entry.get()));
    });
    inserted.await.map_err(store_error)?;
    let update = sqlx::query("UPDATE lookup_progress SET size = ?").bind(signed(to.get()));
    update.execute(&mut *transaction).await.map_err(store_error)?;
    transaction::finish(store, transaction).await?;
    Ok(true)
}

/// Returns the rows whose entries were not erased, in the order of the table.
async fn still_there<'a>(
    executor: impl SqliteExecutor<'_>,
    range: Range<TreeSize>,
    rows: &'a [Lookup],
) -> Result<Vec<&'a Lookup>, StoreError> {
    let erased = sqlx::query_scalar("SELECT idx FROM entry WHERE idx >= ? AND idx < ? AND statement IS NULL");
    let erased = erased.bind(signed(range.start.get())).bind(signed(range.end.get()));
    let erased: Vec<i64> = erased.fetch_all(executor).await.map_err(store_error)?;
    let mut rows: Vec<&Lookup> =
        rows.iter().filter(|row| erased.binary_search(&signed(row.entry.get())).is_err()).collect();
    rows.sort_unstable();
    Ok(rows)
}

pub(crate) async fn drop_index(store: &Sqlite, form: u32) -> Result<(), StoreError> {
    let query = sqlx::query("UPDATE lookup_progress SET form = ?, size = 0").bind(form);
    query.execute(store.writable().await?).await.map(drop).map_err(store_error)
}

pub(crate) async fn search(pool: &SqlitePool, query: &Query) -> Result<Page, StoreError> {
    let indexed = indexed(pool).await?;
    store::lookup::search(&SqliteLookupTable(pool), indexed, query).await
}

pub(crate) async fn values(
    pool: &SqlitePool,
    kind: u8,
    prefix: &str,
    after: Option<&str>,
    limit: usize,
) -> Result<Vec<String>, StoreError> {
    let from = after.map_or(prefix, |after| after.max(prefix));
    // Steps from value to value, independent of the number of entries with each value.
    let query = sqlx::query_scalar(
        "WITH RECURSIVE step (value) AS (
           SELECT min(value) FROM lookup WHERE kind = ?1 AND value >= ?3
           UNION ALL
           SELECT (SELECT min(l.value) FROM lookup l WHERE l.kind = ?1 AND l.value > step.value) FROM step
            WHERE substr(step.value, 1, length(?2)) = ?2)
         SELECT value FROM step WHERE substr(value, 1, length(?2)) = ?2 AND value IS NOT ?4 LIMIT ?5",
    );
    let query = query.bind(kind).bind(prefix).bind(from).bind(after).bind(signed(limit as u64));
    query.fetch_all(pool).await.map_err(store_error)
}

pub(crate) async fn lookups(pool: &SqlitePool, entries: &[LeafIndex]) -> Result<Vec<Lookup>, StoreError> {
    let indexed = indexed(pool).await?;
    let entries: Vec<LeafIndex> = entries.iter().copied().filter(|entry| indexed.to.holds(*entry)).collect();
    let select = "SELECT kind, value, idx FROM lookup WHERE idx IN ";
    let mut rows: Vec<Lookup> =
        select_in(pool, select, &columns(&entries)).await?.iter().map(lookup).collect::<Result<_, _>>()?;
    rows.sort_by(|a, b| (a.entry, a.kind, &a.value).cmp(&(b.entry, b.kind, &b.value)));
    rows.dedup();
    Ok(rows)
}

fn lookup(row: &SqliteRow) -> Result<Lookup, StoreError> {
    Ok(Lookup {
        kind: row.try_get(0).map_err(store_error)?,
        value: row.try_get(1).map_err(store_error)?,
        entry: LeafIndex::new(number(row, 2)?),
    })
}

/// The table `lookup`, for queries about one term at a time.
struct SqliteLookupTable<'a>(&'a SqlitePool);

#[async_trait]
impl Rows for SqliteLookupTable<'_> {
    async fn follow(
        &self,
        term: &Term,
        within: Range<u64>,
        order: Order,
        limit: usize,
    ) -> Result<Vec<LeafIndex>, StoreError> {
        let select = match order {
            Order::OldestFirst => {
                "SELECT idx FROM lookup WHERE kind = ? AND value = ? AND idx >= ? AND idx < ?
                 ORDER BY idx LIMIT ?"
            }
            Order::NewestFirst => {
                "SELECT idx FROM lookup WHERE kind = ? AND value = ? AND idx >= ? AND idx < ?
                 ORDER BY idx DESC LIMIT ?"
            }
        };
        let mut found: Vec<i64> = Vec::new();
        for value in &term.values {
            let query = sqlx::query_scalar::<_, i64>(select).bind(term.kind).bind(value);
            let query = query.bind(signed(within.start)).bind(signed(within.end)).bind(signed(limit as u64));
            found.extend(query.fetch_all(self.0).await.map_err(store_error)?);
        }
        found.sort_unstable();
        found.dedup();
        if order == Order::NewestFirst {
            found.reverse();
        }
        found.truncate(limit);
        leaves(found)
    }

    async fn among(&self, term: &Term, entries: &[LeafIndex]) -> Result<Vec<LeafIndex>, StoreError> {
        // By the primary key, one probe for each entry.
        let marks = vec!["?"; entries.len()].join(",");
        let select =
            format!("SELECT idx FROM lookup NOT INDEXED WHERE kind = ? AND value = ? AND idx IN ({marks})");
        let mut found = Vec::new();
        for value in &term.values {
            let query = sqlx::query_scalar::<_, i64>(AssertSqlSafe(select.clone()));
            let mut query = query.bind(term.kind).bind(value).persistent(false);
            for entry in entries {
                query = query.bind(signed(entry.get()));
            }
            found.extend(query.fetch_all(self.0).await.map_err(store_error)?);
        }
        leaves(found)
    }

    async fn count(&self, term: &Term, most: usize) -> Result<usize, StoreError> {
        let mut count = 0;
        for value in &term.values {
            let query = sqlx::query_scalar::<_, i64>(
                "SELECT count(*) FROM (SELECT 1 FROM lookup WHERE kind = ? AND value = ? LIMIT ?)",
            );
            let query = query.bind(term.kind).bind(value).bind(signed(most as u64));
            count += unsigned(query.fetch_one(self.0).await.map_err(store_error)?)? as usize;
        }
        Ok(count.min(most))
    }
}

fn leaves(columns: Vec<i64>) -> Result<Vec<LeafIndex>, StoreError> {
    columns.into_iter().map(|index| unsigned(index).map(LeafIndex::new)).collect()
}
