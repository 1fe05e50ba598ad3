//! `LookupIndex` in PostgreSQL. The primary key is (kind, value, idx), so the entries of one value are read in
//! order and from any index on.

use std::ops::Range;

use async_trait::async_trait;
use merkle::{LeafIndex, TreeSize};
use sqlx::{PgPool, PgTransaction};
use store::lookup::{Rows, check_rows, stored_value};
use store::{Indexed, Lookup, Order, Page, Query, StoreError, Term};

use crate::error::store_error;
use crate::number::{column, columns, leaves, number, rows};

pub(crate) async fn indexed(pool: &PgPool, log: i16) -> Result<Indexed, StoreError> {
    let row = sqlx::query!("SELECT form, size FROM lookup_progress WHERE log_id = $1", log)
        .fetch_optional(pool)
        .await
        .map_err(store_error)?;
    row.map_or_else(|| Ok(Indexed::default()), |row| progress(row.form, row.size))
}

fn progress(form: i64, size: i64) -> Result<Indexed, StoreError> {
    let form = u32::try_from(form)
        .map_err(|_| StoreError::Damaged(format!("{form} as the form of the lookup index")))?;
    Ok(Indexed { form, to: TreeSize::new(number(size)?) })
}

/// Inserts the row that holds the index's progress unless it exists, and locks it.
pub(crate) async fn lock_progress(
    transaction: &mut PgTransaction<'_>,
    log: i16,
) -> Result<Indexed, StoreError> {
    sqlx::query!(
        "INSERT INTO lookup_progress (log_id, form, size) VALUES ($1, 0, 0) ON CONFLICT (log_id) DO NOTHING",
        log
    )
    .execute(&mut **transaction)
    .await
    .map_err(store_error)?;
    let row = sqlx::query!("SELECT form, size FROM lookup_progress WHERE log_id = $1 FOR UPDATE", log)
        .fetch_one(&mut **transaction)
        .await
        .map_err(store_error)?;
    progress(row.form, row.size)
}

pub(crate) async fn index(
    pool: &PgPool,
    log: i16,
    from: Indexed,
    to: TreeSize,
    said: &[Lookup],
) -> Result<bool, StoreError> {
    check_rows(from, to, said)?;
    let mut transaction = pool.begin().await.map_err(store_error)?;
    do_not_wait_for_the_disk(&mut transaction).await?;
    if lock_progress(&mut transaction, log).await? != from {
        return Ok(false);
    }
    let size = sqlx::query_scalar!("SELECT size FROM log WHERE log_id = $1", log)
        .fetch_optional(&mut *transaction)
        .await
        .map_err(store_error)?;
    if to.get() > number(size.unwrap_or(0))? {
        return Err(StoreError::Refused(format!("no tree of size {to} was committed")));
    }
    replace(&mut transaction, log, from.to..to, said).await?;
    sqlx::query!("UPDATE lookup_progress SET size = $2 WHERE log_id = $1", log, column(to.get()))
        .execute(&mut *transaction)
        .await
        .map_err(store_error)?;
    transaction.commit().await.map_err(store_error)?;
    Ok(true)
}

/// Turns `synchronous_commit` off for this transaction: a crash loses progress and rows together, and they are
/// read from the entries again.
async fn do_not_wait_for_the_disk(transaction: &mut PgTransaction<'_>) -> Result<(), StoreError> {
    sqlx::query!("SELECT set_config('synchronous_commit', 'off', true)")
        .fetch_one(&mut **transaction)
        .await
        .map_err(store_error)?;
    Ok(())
}

async fn replace(
    transaction: &mut PgTransaction<'_>,
    log: i16,
    range: Range<TreeSize>,
    said: &[Lookup],
) -> Result<(), StoreError> {
    sqlx::query!(
        "DELETE FROM lookup WHERE log_id = $1 AND idx >= $2 AND idx < $3",
        log,
        column(range.start.get()),
        column(range.end.get())
    )
    .execute(&mut **transaction)
    .await
    .map_err(store_error)?;
    let kinds: Vec<i16> = said.iter().map(|row| i16::from(row.kind)).collect();
    let values: Vec<String> = said.iter().map(|row| stored_value(&row.value).into_owned()).collect();
    let indices: Vec<i64> = said.iter().map(|row| column(row.entry.get())).collect();
    sqlx::query!(
        "INSERT INTO lookup (log_id, kind, value, idx)
         SELECT $1, said.kind, said.value, said.idx
           FROM UNNEST($2::smallint[], $3::text[], $4::bigint[]) AS said (kind, value, idx)
           JOIN entry ON entry.log_id = $1 AND entry.idx = said.idx AND entry.statement IS NOT NULL
             ON CONFLICT (log_id, kind, value, idx) DO NOTHING",
        log,
        &kinds,
        &values,
        &indices
    )
    .execute(&mut **transaction)
    .await
    .map_err(store_error)?;
    Ok(())
}

pub(crate) async fn drop_index(pool: &PgPool, log: i16, form: u32) -> Result<(), StoreError> {
    sqlx::query!(
        "INSERT INTO lookup_progress (log_id, form, size) VALUES ($1, $2, 0)
             ON CONFLICT (log_id) DO UPDATE SET form = excluded.form, size = 0",
        log,
        i64::from(form)
    )
    .execute(pool)
    .await
    .map_err(store_error)?;
    Ok(())
}

pub(crate) async fn search(pool: &PgPool, log: i16, query: &Query) -> Result<Page, StoreError> {
    let indexed = indexed(pool, log).await?;
    store::lookup::search(&PostgresLookupTable { pool, log }, indexed, query).await
}

pub(crate) async fn values(
    pool: &PgPool,
    log: i16,
    kind: u8,
    prefix: &str,
    after: Option<&str>,
    limit: usize,
) -> Result<Vec<String>, StoreError> {
    if prefix.contains('\0') {
        return Ok(Vec::new());
    }
    // No value contains U+0000: the values after "a\0b" are those after "a".
    let after = after.and_then(|after| after.split('\0').next());
    let from = after.map_or(prefix, |after| after.max(prefix));
    // Steps from value to value, independent of the number of entries with each value.
    sqlx::query_scalar!(
        r#"WITH RECURSIVE step AS (
             (SELECT value FROM lookup WHERE log_id = $1 AND kind = $2 AND value >= $4 ORDER BY value LIMIT 1)
              UNION ALL
             SELECT (SELECT lookup.value FROM lookup
                      WHERE log_id = $1 AND kind = $2 AND lookup.value > step.value
                      ORDER BY lookup.value LIMIT 1)
               FROM step WHERE starts_with(step.value, $3))
           SELECT value AS "value!" FROM step
            WHERE starts_with(value, $3) AND value IS DISTINCT FROM $5 LIMIT $6"#,
        log,
        i16::from(kind),
        prefix,
        from,
        after,
        rows(limit)
    )
    .fetch_all(pool)
    .await
    .map_err(store_error)
}

pub(crate) async fn lookups(
    pool: &PgPool,
    log: i16,
    entries: &[LeafIndex],
) -> Result<Vec<Lookup>, StoreError> {
    sqlx::query!(
        "SELECT kind, value, idx FROM lookup
          WHERE log_id = $1 AND idx = ANY($2)
            AND idx < (SELECT size FROM lookup_progress WHERE log_id = $1)
          ORDER BY idx, kind, value",
        log,
        &columns(entries)
    )
    .fetch_all(pool)
    .await
    .map_err(store_error)?
    .into_iter()
    .map(|row| {
        let kind = u8::try_from(row.kind)
            .map_err(|_| StoreError::Damaged(format!("a look-up of kind {}", row.kind)))?;
        Ok(Lookup { kind, value: row.value, entry: LeafIndex::new(number(row.idx)?) })
    })
    .collect()
}

/// The table `lookup`, for queries about one term at a time.
struct PostgresLookupTable<'a> {
    pool: &'a PgPool,
    log: i16,
}

#[async_trait]
impl Rows for PostgresLookupTable<'_> {
    async fn follow(
        &self,
        term: &Term,
        within: Range<u64>,
        order: Order,
        limit: usize,
    ) -> Result<Vec<LeafIndex>, StoreError> {
        match order {
            Order::OldestFirst => self.forwards(term, within, limit).await,
            Order::NewestFirst => self.backwards(term, within, limit).await,
        }
    }

    async fn among(&self, term: &Term, entries: &[LeafIndex]) -> Result<Vec<LeafIndex>, StoreError> {
        let found = sqlx::query_scalar!(
            r#"SELECT lookup.idx AS "idx!"
                 FROM UNNEST($4::bigint[]) AS asked (idx), UNNEST($3::text[]) AS wanted (value)
                 JOIN lookup ON lookup.log_id = $1 AND lookup.kind = $2
                WHERE lookup.value = wanted.value AND lookup.idx = asked.idx"#,
            self.log,
            i16::from(term.kind),
            &term.values,
            &columns(entries)
        )
        .fetch_all(self.pool)
        .await
        .map_err(store_error)?;
        leaves(found)
    }

    async fn count(&self, term: &Term, most: usize) -> Result<usize, StoreError> {
        let count = sqlx::query_scalar!(
            r#"SELECT count(*) AS "count!"
                 FROM (SELECT FROM lookup WHERE log_id = $1 AND kind = $2 AND value = ANY($3) LIMIT $4) AS rows"#,
            self.log,
            i16::from(term.kind),
            &term.values,
            rows(most)
        )
        .fetch_one(self.pool)
        .await
        .map_err(store_error)?;
        Ok(number(count)? as usize)
    }
}

impl PostgresLookupTable<'_> {
    /// Reads up to `limit` entries of each value, then merges them and returns the first `limit`.
    async fn forwards(
        &self,
        term: &Term,
        within: Range<u64>,
        limit: usize,
    ) -> Result<Vec<LeafIndex>, StoreError> {
        let found = sqlx::query_scalar!(
            r#"SELECT DISTINCT said.idx AS "idx!"
                 FROM UNNEST($3::text[]) AS wanted (value),
                      LATERAL (SELECT idx FROM lookup
                                WHERE log_id = $1 AND kind = $2 AND lookup.value = wanted.value
                                  AND idx >= $4 AND idx < $5
                                ORDER BY idx LIMIT $6) AS said
                ORDER BY 1 LIMIT $6"#,
            self.log,
            i16::from(term.kind),
            &term.values,
            column(within.start),
            column(within.end),
            rows(limit)
        )
        .fetch_all(self.pool)
        .await
        .map_err(store_error)?;
        leaves(found)
    }

    async fn backwards(
        &self,
        term: &Term,
        within: Range<u64>,
        limit: usize,
    ) -> Result<Vec<LeafIndex>, StoreError> {
        let found = sqlx::query_scalar!(
            r#"SELECT DISTINCT said.idx AS "idx!"
                 FROM UNNEST($3::text[]) AS wanted (value),
                      LATERAL (SELECT idx FROM lookup
                                WHERE log_id = $1 AND kind = $2 AND lookup.value = wanted.value
                                  AND idx >= $4 AND idx < $5
                                ORDER BY idx DESC LIMIT $6) AS said
                ORDER BY 1 DESC LIMIT $6"#,
            self.log,
            i16::from(term.kind),
            &term.values,
            column(within.start),
            column(within.end),
            rows(limit)
        )
        .fetch_all(self.pool)
        .await
        .map_err(store_error)?;
        leaves(found)
    }
}
