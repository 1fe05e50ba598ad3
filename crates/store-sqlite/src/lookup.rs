//! `LookupIndex` in SQLite.

use lookup_tree::{InnerNode, Posting, PostingBlock, PostingPrefix, RunId, RunSummary};
use merkle::{Hash, LeafIndex, TreeSize};
use sqlx::sqlite::{SqlitePool, SqliteRow};
use sqlx::{AssertSqlSafe, Row, SqliteConnection};
use store::lookup::{Build, FinishedRun, ListedValue, RunCatalog, StoredRun, ValueBlock, stored_node};
use store::{Order, StoreError};

use crate::Sqlite;
use crate::journal;
use crate::reader::number;
use crate::sql::{hash, signed, store_error, unsigned};
use crate::transaction::{self, IMMEDIATE};

/// States of the rows of `index_run`.
const BEGUN: i64 = 0;
const COMPLETE: i64 = 1;
const GONE: i64 = 2;
/// As [`GONE`], and it may have values of entries that were erased.
const ERASED: i64 = 3;

pub(crate) async fn catalog(pool: &SqlitePool) -> Result<RunCatalog, StoreError> {
    // One snapshot, so that no erasure is finished between the reads.
    let mut snapshot = pool.begin().await.map_err(store_error)?;
    let state = sqlx::query("SELECT form, next, dropped FROM index_state");
    let state = state.fetch_one(&mut *snapshot).await.map_err(store_error)?;
    let form = u32::try_from(number(&state, 0)?)
        .map_err(|_| StoreError::Damaged("the form of the lookup index is not a number of ours".into()))?;
    let erased = sqlx::query("SELECT idx, no FROM index_erased ORDER BY idx");
    let erased = erased.fetch_all(&mut *snapshot).await.map_err(store_error)?;
    let erased = erased.iter().map(|row| Ok((LeafIndex::new(number(row, 0)?), Build::new(number(row, 1)?))));
    let runs = sqlx::query(
        "SELECT build, level, number, postings, blind, root FROM index_run WHERE state = ? ORDER BY level, number",
    );
    let runs = runs.bind(COMPLETE).fetch_all(&mut *snapshot).await.map_err(store_error)?;
    Ok(RunCatalog {
        form,
        next: Build::new(number(&state, 1)?),
        dropped: Build::new(number(&state, 2)?),
        runs: runs.iter().map(stored_run).collect::<Result<_, _>>()?,
        erased: erased.collect::<Result<_, StoreError>>()?,
    })
}

fn stored_run(row: &SqliteRow) -> Result<StoredRun, StoreError> {
    let level = u8::try_from(number(row, 1)?)
        .map_err(|_| StoreError::Damaged("the level of a run is not a number of ours".into()))?;
    let root = hash(row.try_get::<&[u8], _>(5).map_err(store_error)?)?;
    Ok(StoredRun {
        build: Build::new(number(row, 0)?),
        id: RunId { level, number: number(row, 2)? },
        summary: RunSummary {
            postings: number(row, 3)?,
            blind: number(row, 4)?,
            root: Hash::from_bytes(root),
        },
    })
}

/// Takes the next number of builds and erasures.
pub(crate) async fn next_number(connection: &mut SqliteConnection) -> Result<i64, StoreError> {
    let next = sqlx::query_scalar("UPDATE index_state SET next = next + 1 RETURNING next - 1");
    next.fetch_one(connection).await.map_err(store_error)
}

pub(crate) async fn begin_run(store: &Sqlite) -> Result<Build, StoreError> {
    let mut transaction = store.writable().await?.begin_with(IMMEDIATE).await.map_err(store_error)?;
    let build = next_number(&mut transaction).await?;
    let insert = sqlx::query("INSERT INTO index_run (build, state) VALUES (?, ?)").bind(build).bind(BEGUN);
    insert.execute(&mut *transaction).await.map_err(store_error)?;
    transaction::finish(store, transaction).await?;
    unsigned(build).map(Build::new)
}

pub(crate) async fn add_blocks(
    store: &Sqlite,
    build: Build,
    blocks: &[PostingBlock],
    nodes: &[InnerNode],
) -> Result<(), StoreError> {
    store.writable().await?;
    let mut script = transaction::script();
    let into = "INSERT OR REPLACE INTO index_block (build, first, bytes) VALUES ";
    script.add_rows(into, "(?,?,?)", "", blocks, |values, block| {
        values.bind(signed(build.get())).bind(&block.first.to_bytes()[..]).bind(&block.bytes[..]);
    });
    let into = "INSERT OR REPLACE INTO index_node (build, prefix, bytes) VALUES ";
    script.add_rows(into, "(?,?,?)", "", nodes, |values, node| {
        values.bind(signed(build.get())).bind(&node.prefix.to_bytes()[..]).bind(&node.to_bytes()[..]);
    });
    store.write.commit(script).await.map_err(|failure| store_error(failure.error))
}

pub(crate) async fn finish_run(store: &Sqlite, run: &FinishedRun) -> Result<bool, StoreError> {
    let mut transaction = store.writable().await?.begin_with(IMMEDIATE).await.map_err(store_error)?;
    let size: i64 = sqlx::query_scalar("SELECT coalesce(max(size), 0) FROM log")
        .fetch_one(&mut *transaction)
        .await
        .map_err(store_error)?;
    run.must_be_committed(TreeSize::new(unsigned(size)?))?;
    let dropped: i64 = sqlx::query_scalar("SELECT dropped FROM index_state")
        .fetch_one(&mut *transaction)
        .await
        .map_err(store_error)?;
    if unsigned(dropped)? != run.dropped.get()
        || erased_before(&mut transaction, run).await? != run.without
        || !replace(&mut transaction, run).await?
    {
        return Ok(false);
    }
    forget_erased(&mut transaction, run).await?;
    transaction::finish(store, transaction).await?;
    Ok(true)
}

/// The first leaf of a run, and the leaf after its last one.
fn leaves(run: RunId) -> (i64, i64) {
    run.leaves().map_or((0, 0), |leaves| (signed(leaves.start.get()), signed(leaves.end.get())))
}

/// The leaves of a run that had been erased when it was begun.
async fn erased_before(
    connection: &mut SqliteConnection,
    run: &FinishedRun,
) -> Result<Vec<LeafIndex>, StoreError> {
    let (start, finish) = leaves(run.id);
    let erased =
        sqlx::query("SELECT idx FROM index_erased WHERE idx >= ? AND idx < ? AND no < ? ORDER BY idx");
    let erased = erased.bind(start).bind(finish).bind(signed(run.build.get()));
    let erased = erased.fetch_all(connection).await.map_err(store_error)?;
    erased.iter().map(|row| number(row, 0).map(LeafIndex::new)).collect()
}

/// Completes a run in the place of an earlier build; returns `false` if it is not begun any more.
async fn replace(connection: &mut SqliteConnection, run: &FinishedRun) -> Result<bool, StoreError> {
    let RunId { level, number } = run.id;
    let gone = if run.without.is_empty() { GONE } else { ERASED };
    let replaced = sqlx::query("UPDATE index_run SET state = ? WHERE state = ? AND level = ? AND number = ?");
    let replaced = replaced.bind(gone).bind(COMPLETE).bind(level).bind(signed(number));
    replaced.execute(&mut *connection).await.map_err(store_error)?;
    let (start, finish) = leaves(run.id);
    let update = sqlx::query(
        "UPDATE index_run SET state = ?, level = ?, number = ?, start = ?, finish = ?, postings = ?, blind = ?, root = ?
          WHERE build = ? AND state = ?",
    );
    let update = update.bind(COMPLETE).bind(level).bind(signed(number)).bind(start).bind(finish);
    let update = update.bind(signed(run.summary.postings)).bind(signed(run.summary.blind));
    let update = update.bind(run.summary.root.as_bytes().to_vec()).bind(signed(run.build.get())).bind(BEGUN);
    Ok(update.execute(connection).await.map_err(store_error)?.rows_affected() == 1)
}

/// Forgets the erased entries whose postings are in no complete run that was begun before the erasure.
async fn forget_erased(connection: &mut SqliteConnection, run: &FinishedRun) -> Result<(), StoreError> {
    for leaf in &run.without {
        let delete = sqlx::query(
            "DELETE FROM index_erased WHERE idx = ?1 AND NOT EXISTS (
               SELECT 1 FROM index_run r
                WHERE r.state = ?2 AND r.start <= ?1 AND r.finish > ?1 AND r.build < index_erased.no)",
        );
        let delete = delete.bind(signed(leaf.get())).bind(COMPLETE);
        delete.execute(&mut *connection).await.map_err(store_error)?;
    }
    Ok(())
}

pub(crate) async fn retire_run(store: &Sqlite, build: Build) -> Result<(), StoreError> {
    let update = sqlx::query(
        "UPDATE index_run SET state =
           CASE WHEN EXISTS (SELECT 1 FROM index_erased WHERE idx >= start AND idx < finish) THEN ? ELSE ? END
          WHERE build = ?",
    );
    let update = update.bind(ERASED).bind(GONE).bind(signed(build.get()));
    update.execute(store.writable().await?).await.map(drop).map_err(store_error)
}

pub(crate) async fn sweep(store: &Sqlite, abandoned: Build, limit: usize) -> Result<bool, StoreError> {
    // What was begun may have values of an entry that was erased since then.
    let abandon = sqlx::query("UPDATE index_run SET state = ? WHERE state = ? AND build < ?");
    let abandon = abandon.bind(ERASED).bind(BEGUN).bind(signed(abandoned.get()));
    abandon.execute(store.writable().await?).await.map_err(store_error)?;
    let gone =
        sqlx::query_as("SELECT build, state FROM index_run WHERE state >= ? ORDER BY state DESC LIMIT 1");
    let gone: Option<(i64, i64)> =
        gone.bind(GONE).fetch_optional(store.write.pool()).await.map_err(store_error)?;
    let Some((build, state)) = gone else { return Ok(false) };
    if state == GONE {
        return delete_part(store, build, limit).await.map(|()| true);
    }
    journal::keep_no_journal(store).await?;
    let deleted = delete_part(store, build, limit).await;
    journal::empty_the_log(store).await;
    deleted.map(|()| true)
}

/// Deletes up to `limit` rows of a run from each table, and the run itself with the last ones.
async fn delete_part(store: &Sqlite, build: i64, limit: usize) -> Result<(), StoreError> {
    let mut transaction = store.writable().await?.begin_with(IMMEDIATE).await.map_err(store_error)?;
    let mut most = 0;
    for (table, key) in [("index_block", "first"), ("index_node", "prefix"), ("index_value", "kind, first")] {
        let delete = AssertSqlSafe(format!(
            "DELETE FROM {table} WHERE build = ?1 AND ({key}) IN
               (SELECT {key} FROM {table} WHERE build = ?1 ORDER BY {key} LIMIT ?2)"
        ));
        let delete = sqlx::query(delete).bind(build).bind(signed(limit as u64));
        most = most.max(delete.execute(&mut *transaction).await.map_err(store_error)?.rows_affected());
    }
    if most < limit as u64 {
        let forget = sqlx::query("DELETE FROM index_run WHERE build = ?").bind(build);
        forget.execute(&mut *transaction).await.map_err(store_error)?;
    }
    transaction::finish(store, transaction).await
}

pub(crate) async fn drop_index(store: &Sqlite, form: u32) -> Result<(), StoreError> {
    let mut transaction = store.writable().await?.begin_with(IMMEDIATE).await.map_err(store_error)?;
    let number = next_number(&mut transaction).await?;
    let update = sqlx::query("UPDATE index_state SET form = ?, dropped = ?").bind(form).bind(number);
    update.execute(&mut *transaction).await.map_err(store_error)?;
    let runs = sqlx::query("UPDATE index_run SET state = ?").bind(ERASED);
    runs.execute(&mut *transaction).await.map_err(store_error)?;
    transaction::finish(store, transaction).await
}

pub(crate) async fn blocks(
    pool: &SqlitePool,
    build: Build,
    from: Posting,
    to: Posting,
    order: Order,
    limit: usize,
) -> Result<Vec<PostingBlock>, StoreError> {
    let select = match order {
        Order::OldestFirst => {
            "SELECT first, bytes FROM index_block WHERE build = ?1 AND first <= ?3 AND first >= coalesce(
               (SELECT max(first) FROM index_block WHERE build = ?1 AND first <= ?2), ?2) ORDER BY first LIMIT ?4"
        }
        Order::NewestFirst => {
            "SELECT first, bytes FROM index_block WHERE build = ?1 AND first <= ?3 AND first >= coalesce(
               (SELECT max(first) FROM index_block WHERE build = ?1 AND first <= ?2), ?2)
              ORDER BY first DESC LIMIT ?4"
        }
    };
    let query = sqlx::query(select).bind(signed(build.get()));
    let query = query.bind(from.to_bytes().to_vec()).bind(to.to_bytes().to_vec()).bind(signed(limit as u64));
    query.fetch_all(pool).await.map_err(store_error)?.iter().map(block).collect()
}

pub(crate) async fn blocks_with(
    pool: &SqlitePool,
    build: Build,
    postings: &[Posting],
) -> Result<Vec<PostingBlock>, StoreError> {
    let Some(first) = postings.first() else { return Ok(Vec::new()) };
    let length = first.to_bytes().len();
    let wanted: Vec<u8> = postings.iter().flat_map(|posting| posting.to_bytes()).collect();
    // One statement: each one is a wait for the thread of the connection.
    let select = sqlx::query(
        "SELECT first, bytes FROM index_block WHERE build = ?1 AND first IN (
           WITH RECURSIVE wanted (at) AS (SELECT 1 UNION ALL SELECT at + ?3 FROM wanted WHERE at + ?3 < length(?2))
           SELECT (SELECT max(first) FROM index_block WHERE build = ?1 AND first <= substr(?2, at, ?3)) FROM wanted)
          ORDER BY first",
    );
    let select = select.bind(signed(build.get())).bind(wanted).bind(signed(length as u64));
    select.fetch_all(pool).await.map_err(store_error)?.iter().map(block).collect()
}

pub(crate) async fn nodes(
    pool: &SqlitePool,
    build: Build,
    places: &[PostingPrefix],
) -> Result<Vec<Option<InnerNode>>, StoreError> {
    let mut nodes = Vec::with_capacity(places.len());
    let mut reader = pool.acquire().await.map_err(store_error)?;
    for place in places {
        let node = sqlx::query(
            "SELECT prefix, bytes FROM index_node WHERE build = ? AND prefix >= ? ORDER BY prefix LIMIT 1",
        );
        let node = node.bind(signed(build.get())).bind(place.to_bytes().to_vec());
        let node = node.fetch_optional(&mut *reader).await.map_err(store_error)?;
        let node = node.as_ref().map(node_of).transpose()?;
        nodes.push(node.filter(|node| node.prefix.is_within(place)));
    }
    Ok(nodes)
}

fn node_of(row: &SqliteRow) -> Result<InnerNode, StoreError> {
    stored_node(row.try_get(0).map_err(store_error)?, row.try_get(1).map_err(store_error)?)
}

fn block(row: &SqliteRow) -> Result<PostingBlock, StoreError> {
    let first: &[u8] = row.try_get(0).map_err(store_error)?;
    let first = first
        .try_into()
        .map_err(|_| StoreError::Damaged("a block of the lookup index has no first posting".into()))?;
    Ok(PostingBlock { first: Posting::from_bytes(first), bytes: row.try_get(1).map_err(store_error)? })
}

pub(crate) async fn add_values(
    store: &Sqlite,
    build: Build,
    blocks: &[ValueBlock],
) -> Result<(), StoreError> {
    if blocks.is_empty() {
        return Ok(());
    }
    store.writable().await?;
    let mut script = transaction::script();
    let into = "INSERT OR REPLACE INTO index_value (build, kind, first, bytes) VALUES ";
    script.add_rows(into, "(?,?,?,?)", "", blocks, |values, block| {
        values.bind(signed(build.get())).bind(block.first.kind);
        values.bind(block.first.value.as_str()).bind(&block.bytes[..]);
    });
    store.write.commit(script).await.map_err(|failure| store_error(failure.error))
}

pub(crate) async fn value_blocks(
    pool: &SqlitePool,
    build: Build,
    from: &ListedValue,
    limit: usize,
) -> Result<Vec<ValueBlock>, StoreError> {
    let build = signed(build.get());
    let before = sqlx::query(
        "SELECT kind, first, bytes FROM index_value WHERE build = ? AND (kind, first) <= (?, ?)
          ORDER BY kind DESC, first DESC LIMIT 1",
    );
    let before = before.bind(build).bind(from.kind).bind(from.value.as_str());
    let before = before.fetch_optional(pool).await.map_err(store_error)?;
    let after = sqlx::query(
        "SELECT kind, first, bytes FROM index_value WHERE build = ? AND (kind, first) > (?, ?)
          ORDER BY kind, first LIMIT ?",
    );
    let wanted = limit.saturating_sub(usize::from(before.is_some()));
    let after = after.bind(build).bind(from.kind).bind(from.value.as_str()).bind(signed(wanted as u64));
    let after = after.fetch_all(pool).await.map_err(store_error)?;
    before.iter().chain(&after).map(value_block).collect()
}

fn value_block(row: &SqliteRow) -> Result<ValueBlock, StoreError> {
    let kind = u8::try_from(number(row, 0)?)
        .map_err(|_| StoreError::Damaged("the kind of a block of values is not a number of ours".into()))?;
    let first = ListedValue { kind, value: row.try_get(1).map_err(store_error)? };
    Ok(ValueBlock { first, bytes: row.try_get(2).map_err(store_error)? })
}
