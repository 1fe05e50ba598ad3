//! `LookupIndex` in PostgreSQL.
//!
//! A change that a crash may lose does not wait for the disk: the write-ahead log keeps the order of transactions, so a
//! run that survives has its blocks, and what is lost is made from the entries again.

use std::collections::BTreeMap;

use lookup_tree::{InnerNode, Posting, PostingBlock, PostingPrefix, RunId, RunSummary};
use merkle::{Hash, LeafIndex, TreeSize};
use sqlx::{PgPool, PgTransaction};
use store::lookup::{
    Build, ErasedLeaves, FinishedRun, ListedValue, RunCatalog, StoredRun, ValueBlock, stored_node,
};
use store::{Order, StoreError};

use crate::error::store_error;
use crate::number::{column, columns, hash, leaves, number, rows};

/// States of the rows of `index_run`.
const BEGUN: i16 = 0;
const COMPLETE: i16 = 1;
const GONE: i16 = 2;

pub(crate) async fn catalog(pool: &PgPool) -> Result<RunCatalog, StoreError> {
    // The runs last: an erasure that is finished between the reads is in the runs.
    let state = sqlx::query!("SELECT form, next, dropped FROM index_state")
        .fetch_one(pool)
        .await
        .map_err(store_error)?;
    let form = u32::try_from(state.form)
        .map_err(|_| StoreError::Damaged(format!("{} as the form of the lookup index", state.form)))?;
    Ok(RunCatalog {
        form,
        next: Build::new(number(state.next)?),
        dropped: Build::new(number(state.dropped)?),
        erased: erased(pool).await?,
        runs: complete_runs(pool).await?,
    })
}

async fn erased(pool: &PgPool) -> Result<ErasedLeaves, StoreError> {
    let rows = sqlx::query!("SELECT idx, no FROM index_erased").fetch_all(pool).await.map_err(store_error)?;
    rows.into_iter().map(|row| Ok((LeafIndex::new(number(row.idx)?), Build::new(number(row.no)?)))).collect()
}

async fn complete_runs(pool: &PgPool) -> Result<Vec<StoredRun>, StoreError> {
    let rows = sqlx::query!(
        r#"SELECT build, level AS "level!", number AS "number!", postings AS "postings!", blind AS "blind!",
                  root AS "root!"
             FROM index_run WHERE state = $1 ORDER BY level, number"#,
        COMPLETE
    )
    .fetch_all(pool)
    .await
    .map_err(store_error)?;
    rows.into_iter()
        .map(|row| {
            let level = u8::try_from(row.level)
                .map_err(|_| StoreError::Damaged(format!("a run of level {}", row.level)))?;
            let root = Hash::from_bytes(hash(&row.root)?);
            Ok(StoredRun {
                build: Build::new(number(row.build)?),
                id: RunId { level, number: number(row.number)? },
                summary: RunSummary { postings: number(row.postings)?, blind: number(row.blind)?, root },
            })
        })
        .collect()
}

/// Takes the next number of builds and erasures. Until the end of the transaction no other change of the index is made.
pub(crate) async fn next_number(transaction: &mut PgTransaction<'_>) -> Result<i64, StoreError> {
    sqlx::query_scalar!(r#"UPDATE index_state SET next = next + 1 RETURNING next - 1 AS "number!""#)
        .fetch_one(&mut **transaction)
        .await
        .map_err(store_error)
}

pub(crate) async fn begin_run(pool: &PgPool) -> Result<Build, StoreError> {
    // Durable, so that no later run gets the same number.
    let mut transaction = pool.begin().await.map_err(store_error)?;
    let build = next_number(&mut transaction).await?;
    sqlx::query!("INSERT INTO index_run (build, state) VALUES ($1, $2)", build, BEGUN)
        .execute(&mut *transaction)
        .await
        .map_err(store_error)?;
    transaction.commit().await.map_err(store_error)?;
    number(build).map(Build::new)
}

/// Begins a transaction whose end does not wait for the disk.
async fn begin(pool: &PgPool) -> Result<PgTransaction<'static>, StoreError> {
    let mut transaction = pool.begin().await.map_err(store_error)?;
    sqlx::query!("SELECT set_config('synchronous_commit', 'off', true)")
        .fetch_one(&mut *transaction)
        .await
        .map_err(store_error)?;
    Ok(transaction)
}

pub(crate) async fn add_blocks(
    pool: &PgPool,
    build: Build,
    blocks: &[PostingBlock],
    nodes: &[InnerNode],
) -> Result<(), StoreError> {
    let firsts: Vec<Vec<u8>> = blocks.iter().map(|block| block.first.to_bytes().to_vec()).collect();
    let bytes: Vec<Vec<u8>> = blocks.iter().map(|block| block.bytes.clone()).collect();
    let mut transaction = begin(pool).await?;
    sqlx::query!(
        "INSERT INTO index_block (build, first, bytes)
           SELECT $1, first, bytes FROM UNNEST($2::bytea[], $3::bytea[]) AS block (first, bytes)
             ON CONFLICT (build, first) DO UPDATE SET bytes = excluded.bytes",
        column(build.get()),
        &firsts,
        &bytes
    )
    .execute(&mut *transaction)
    .await
    .map_err(store_error)?;
    add_nodes(&mut transaction, build, nodes).await?;
    transaction.commit().await.map_err(store_error)
}

async fn add_nodes(
    transaction: &mut PgTransaction<'_>,
    build: Build,
    nodes: &[InnerNode],
) -> Result<(), StoreError> {
    let prefixes: Vec<Vec<u8>> = nodes.iter().map(|node| node.prefix.to_bytes().to_vec()).collect();
    let bytes: Vec<Vec<u8>> = nodes.iter().map(|node| node.to_bytes().to_vec()).collect();
    sqlx::query!(
        "INSERT INTO index_node (build, prefix, bytes)
           SELECT $1, prefix, bytes FROM UNNEST($2::bytea[], $3::bytea[]) AS node (prefix, bytes)
             ON CONFLICT (build, prefix) DO UPDATE SET bytes = excluded.bytes",
        column(build.get()),
        &prefixes,
        &bytes
    )
    .execute(&mut **transaction)
    .await
    .map_err(store_error)?;
    Ok(())
}

pub(crate) async fn finish_run(pool: &PgPool, run: &FinishedRun) -> Result<bool, StoreError> {
    let mut transaction = begin(pool).await?;
    let size = sqlx::query_scalar!("SELECT size FROM log")
        .fetch_optional(&mut *transaction)
        .await
        .map_err(store_error)?;
    run.must_be_committed(TreeSize::new(number(size.unwrap_or(0))?))?;
    if lock(&mut transaction).await? != Some(column(run.dropped.get()))
        || erased_before(&mut transaction, run).await? != run.without
        || !replace(&mut transaction, run).await?
    {
        return Ok(false);
    }
    forget_erased(&mut transaction, run).await?;
    transaction.commit().await.map_err(store_error)?;
    Ok(true)
}

/// Waits for an erasure or a drop in progress, and keeps others out.
/// Returns the number of the last drop.
async fn lock(transaction: &mut PgTransaction<'_>) -> Result<Option<i64>, StoreError> {
    sqlx::query_scalar!("SELECT dropped FROM index_state FOR UPDATE")
        .fetch_optional(&mut **transaction)
        .await
        .map_err(store_error)
}

/// The first leaf of a run, and the leaf after its last one.
fn leaves_of(run: RunId) -> (i64, i64) {
    run.leaves().map_or((0, 0), |leaves| (column(leaves.start.get()), column(leaves.end.get())))
}

/// The leaves of a run that had been erased when it was begun.
async fn erased_before(
    transaction: &mut PgTransaction<'_>,
    run: &FinishedRun,
) -> Result<Vec<LeafIndex>, StoreError> {
    let (start, finish) = leaves_of(run.id);
    let erased = sqlx::query_scalar!(
        "SELECT idx FROM index_erased WHERE idx >= $1 AND idx < $2 AND no < $3 ORDER BY idx",
        start,
        finish,
        column(run.build.get())
    )
    .fetch_all(&mut **transaction)
    .await
    .map_err(store_error)?;
    leaves(erased)
}

/// Completes a run in the place of an earlier build; returns `false` if it is not begun any more.
async fn replace(transaction: &mut PgTransaction<'_>, run: &FinishedRun) -> Result<bool, StoreError> {
    let (start, finish) = leaves_of(run.id);
    let (level, place) = (i16::from(run.id.level), column(run.id.number));
    sqlx::query!(
        "UPDATE index_run SET state = $1 WHERE state = $2 AND level = $3 AND number = $4",
        GONE,
        COMPLETE,
        level,
        place
    )
    .execute(&mut **transaction)
    .await
    .map_err(store_error)?;
    let completed = sqlx::query!(
        "UPDATE index_run SET state = $3, level = $4, number = $5, start = $6, finish = $7, postings = $8, blind = $9,
                              root = $10
          WHERE build = $1 AND state = $2",
        column(run.build.get()),
        BEGUN,
        COMPLETE,
        level,
        place,
        start,
        finish,
        column(run.summary.postings),
        column(run.summary.blind),
        &run.summary.root.as_bytes()[..]
    )
    .execute(&mut **transaction)
    .await
    .map_err(store_error)?;
    Ok(completed.rows_affected() == 1)
}

/// Forgets the erased entries whose postings are in no complete run that was begun before the erasure.
async fn forget_erased(transaction: &mut PgTransaction<'_>, run: &FinishedRun) -> Result<(), StoreError> {
    sqlx::query!(
        "DELETE FROM index_erased WHERE idx = ANY($1) AND NOT EXISTS (
           SELECT FROM index_run r
            WHERE r.state = $2 AND r.start <= index_erased.idx AND r.finish > index_erased.idx
              AND r.build < index_erased.no)",
        &columns(&run.without),
        COMPLETE
    )
    .execute(&mut **transaction)
    .await
    .map_err(store_error)?;
    Ok(())
}

pub(crate) async fn retire_run(pool: &PgPool, build: Build) -> Result<(), StoreError> {
    let build = column(build.get());
    sqlx::query!("UPDATE index_run SET state = $2 WHERE build = $1", build, GONE)
        .execute(pool)
        .await
        .map_err(store_error)?;
    Ok(())
}

pub(crate) async fn sweep(pool: &PgPool, abandoned: Build, limit: usize) -> Result<bool, StoreError> {
    let mut transaction = begin(pool).await?;
    sqlx::query!(
        "UPDATE index_run SET state = $3 WHERE state = $2 AND build < $1",
        column(abandoned.get()),
        BEGUN,
        GONE
    )
    .execute(&mut *transaction)
    .await
    .map_err(store_error)?;
    let gone = sqlx::query_scalar!("SELECT build FROM index_run WHERE state = $1 LIMIT 1", GONE)
        .fetch_optional(&mut *transaction)
        .await
        .map_err(store_error)?;
    let Some(build) = gone else { return Ok(false) };
    let blocks = sqlx::query!(
        "DELETE FROM index_block WHERE build = $1 AND first IN
           (SELECT first FROM index_block WHERE build = $1 ORDER BY first LIMIT $2)",
        build,
        rows(limit)
    )
    .execute(&mut *transaction)
    .await
    .map_err(store_error)?;
    let nodes = sqlx::query!(
        "DELETE FROM index_node WHERE build = $1 AND prefix IN
           (SELECT prefix FROM index_node WHERE build = $1 ORDER BY prefix LIMIT $2)",
        build,
        rows(limit)
    )
    .execute(&mut *transaction)
    .await
    .map_err(store_error)?;
    let values = sqlx::query!(
        "DELETE FROM index_value WHERE build = $1 AND (kind, first) IN
           (SELECT kind, first FROM index_value WHERE build = $1 ORDER BY kind, first LIMIT $2)",
        build,
        rows(limit)
    )
    .execute(&mut *transaction)
    .await
    .map_err(store_error)?;
    let most = blocks.rows_affected().max(nodes.rows_affected()).max(values.rows_affected());
    if most < limit as u64 {
        sqlx::query!("DELETE FROM index_run WHERE build = $1", build)
            .execute(&mut *transaction)
            .await
            .map_err(store_error)?;
    }
    transaction.commit().await.map_err(store_error)?;
    Ok(true)
}

pub(crate) async fn drop_index(pool: &PgPool, form: u32) -> Result<(), StoreError> {
    let mut transaction = pool.begin().await.map_err(store_error)?;
    let number = next_number(&mut transaction).await?;
    sqlx::query!("UPDATE index_state SET form = $1, dropped = $2", i64::from(form), number)
        .execute(&mut *transaction)
        .await
        .map_err(store_error)?;
    sqlx::query!("UPDATE index_run SET state = $1", GONE)
        .execute(&mut *transaction)
        .await
        .map_err(store_error)?;
    transaction.commit().await.map_err(store_error)
}

pub(crate) async fn blocks(
    pool: &PgPool,
    build: Build,
    (from, to): (Posting, Posting),
    order: Order,
    limit: usize,
) -> Result<Vec<PostingBlock>, StoreError> {
    match order {
        Order::OldestFirst => forwards(pool, build, (from, to), limit).await,
        Order::NewestFirst => backwards(pool, build, (from, to), limit).await,
    }
}

async fn forwards(
    pool: &PgPool,
    build: Build,
    (from, to): (Posting, Posting),
    limit: usize,
) -> Result<Vec<PostingBlock>, StoreError> {
    let (from, to) = (from.to_bytes(), to.to_bytes());
    let found = sqlx::query!(
        "SELECT first, bytes FROM index_block
          WHERE build = $1 AND first <= $3 AND first >= coalesce(
            (SELECT first FROM index_block
              WHERE build = $1 AND first <= $2 ORDER BY first DESC LIMIT 1), $2)
          ORDER BY first LIMIT $4",
        column(build.get()),
        &from[..],
        &to[..],
        rows(limit)
    )
    .fetch_all(pool)
    .await
    .map_err(store_error)?;
    found.into_iter().map(|row| block(&row.first, row.bytes)).collect()
}

async fn backwards(
    pool: &PgPool,
    build: Build,
    (from, to): (Posting, Posting),
    limit: usize,
) -> Result<Vec<PostingBlock>, StoreError> {
    let (from, to) = (from.to_bytes(), to.to_bytes());
    let found = sqlx::query!(
        "SELECT first, bytes FROM index_block
          WHERE build = $1 AND first <= $3 AND first >= coalesce(
            (SELECT first FROM index_block
              WHERE build = $1 AND first <= $2 ORDER BY first DESC LIMIT 1), $2)
          ORDER BY first DESC LIMIT $4",
        column(build.get()),
        &from[..],
        &to[..],
        rows(limit)
    )
    .fetch_all(pool)
    .await
    .map_err(store_error)?;
    found.into_iter().map(|row| block(&row.first, row.bytes)).collect()
}

pub(crate) async fn blocks_with(
    pool: &PgPool,
    build: Build,
    postings: &[Posting],
) -> Result<Vec<PostingBlock>, StoreError> {
    let postings: Vec<Vec<u8>> = postings.iter().map(|posting| posting.to_bytes().to_vec()).collect();
    let found = sqlx::query!(
        r#"SELECT block.first, block.bytes
             FROM (SELECT DISTINCT (SELECT first FROM index_block
                                     WHERE build = $1 AND first <= wanted.posting
                                     ORDER BY first DESC LIMIT 1) AS first
                     FROM UNNEST($2::bytea[]) AS wanted (posting)) AS place
             JOIN index_block AS block ON block.build = $1 AND block.first = place.first
            ORDER BY block.first"#,
        column(build.get()),
        &postings
    )
    .fetch_all(pool)
    .await
    .map_err(store_error)?;
    found.into_iter().map(|row| block(&row.first, row.bytes)).collect()
}

pub(crate) async fn nodes(
    pool: &PgPool,
    build: Build,
    places: &[PostingPrefix],
) -> Result<Vec<Option<InnerNode>>, StoreError> {
    let wanted: Vec<Vec<u8>> = places.iter().map(|place| place.to_bytes().to_vec()).collect();
    let found = sqlx::query!(
        r#"SELECT wanted.place AS "place!", node.prefix, node.bytes
             FROM UNNEST($2::bytea[]) AS wanted (place)
             JOIN LATERAL (SELECT prefix, bytes FROM index_node
                            WHERE build = $1 AND prefix >= wanted.place
                            ORDER BY prefix LIMIT 1) AS node ON true"#,
        column(build.get()),
        &wanted
    )
    .fetch_all(pool)
    .await
    .map_err(store_error)?;
    let mut nodes = BTreeMap::new();
    for row in found {
        nodes.insert(row.place, stored_node(&row.prefix, &row.bytes)?);
    }
    let within = |(place, wanted): (&PostingPrefix, &Vec<u8>)| {
        nodes.get(wanted).copied().filter(|node| node.prefix.is_within(place))
    };
    Ok(places.iter().zip(&wanted).map(within).collect())
}

fn block(first: &[u8], bytes: Vec<u8>) -> Result<PostingBlock, StoreError> {
    let first = first
        .try_into()
        .map_err(|_| StoreError::Damaged("a block of the lookup index has no first posting".into()))?;
    Ok(PostingBlock { first: Posting::from_bytes(first), bytes })
}

pub(crate) async fn add_values(pool: &PgPool, build: Build, blocks: &[ValueBlock]) -> Result<(), StoreError> {
    if blocks.is_empty() {
        return Ok(());
    }
    let kinds: Vec<i16> = blocks.iter().map(|block| i16::from(block.first.kind)).collect();
    let firsts: Vec<String> = blocks.iter().map(|block| block.first.value.clone()).collect();
    let bytes: Vec<Vec<u8>> = blocks.iter().map(|block| block.bytes.clone()).collect();
    let mut transaction = begin(pool).await?;
    sqlx::query!(
        "INSERT INTO index_value (build, kind, first, bytes)
           SELECT $1, kind, first, bytes
             FROM UNNEST($2::smallint[], $3::text[], $4::bytea[]) AS block (kind, first, bytes)
             ON CONFLICT (build, kind, first) DO UPDATE SET bytes = excluded.bytes",
        column(build.get()),
        &kinds,
        &firsts,
        &bytes
    )
    .execute(&mut *transaction)
    .await
    .map_err(store_error)?;
    transaction.commit().await.map_err(store_error)
}

pub(crate) async fn value_blocks(
    pool: &PgPool,
    build: Build,
    from: &ListedValue,
    limit: usize,
) -> Result<Vec<ValueBlock>, StoreError> {
    let found = sqlx::query!(
        r#"WITH start AS (
             SELECT kind, first FROM index_value
              WHERE build = $1 AND (kind, first) <= ($2, $3)
              ORDER BY kind DESC, first DESC LIMIT 1)
           SELECT kind, first, bytes FROM index_value
            WHERE build = $1
              AND (kind, first) >= (coalesce((SELECT kind FROM start), $2), coalesce((SELECT first FROM start), $3))
            ORDER BY kind, first LIMIT $4"#,
        column(build.get()),
        i16::from(from.kind),
        from.value,
        rows(limit)
    )
    .fetch_all(pool)
    .await
    .map_err(store_error)?;
    found
        .into_iter()
        .map(|row| {
            let kind = u8::try_from(row.kind)
                .map_err(|_| StoreError::Damaged(format!("a block of values of kind {}", row.kind)))?;
            Ok(ValueBlock { first: ListedValue { kind, value: row.first }, bytes: row.bytes })
        })
        .collect()
}
