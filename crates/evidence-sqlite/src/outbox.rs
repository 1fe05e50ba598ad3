//! The outbox: records that wait for the log, and their delivery.

use evidence::limits::places_for_fresh;
use evidence::{
    Backlog, CommitError, Delivered, PendingRecord, RecordKind, RefusedRecord, StoreError, StuckRecord,
};
use merkle::EntryDigest;
use sqlx::sqlite::{SqlitePool, SqliteRow};
use sqlx::{AssertSqlSafe, Row};

use crate::reader::kind;
use crate::sql::{self, signed, store_error};
use crate::transaction::{CommitFailure, WriteTransaction};
use crate::{SharedConnections, reader};

/// Reads the records that were never stuck, and fills up with the others.
pub(crate) async fn pending(
    shared: &SharedConnections,
    instance: &str,
    limit: usize,
) -> Result<Vec<PendingRecord>, StoreError> {
    let others = shared.leases.active(Some(instance));
    let retried = pending_where("o.at = 0", shared, &others, limit).await?;
    let fresh = places_for_fresh(limit, retried.len());
    let mut records = pending_where("o.at > 0", shared, &others, fresh).await?;
    records.extend(retried);
    records.truncate(limit);
    Ok(records)
}

async fn pending_where(
    condition: &str,
    shared: &SharedConnections,
    others: &[String],
    limit: usize,
) -> Result<Vec<PendingRecord>, StoreError> {
    let not_theirs = reader::not_in("r.instance", others.len());
    let select = format!(
        "SELECT r.id, s.name, r.seq, r.kind, r.at, r.statement
           FROM outbox o CROSS JOIN record r ON r.no = o.record CROSS JOIN stream s ON s.no = r.stream
          WHERE {condition} AND {not_theirs} ORDER BY o.record LIMIT ?"
    );
    let query = others.iter().fold(sqlx::query(AssertSqlSafe(select)), |query, other| query.bind(other));
    let rows = query.bind(sql::rows(limit)).fetch_all(&shared.read).await.map_err(store_error)?;
    rows.iter().map(waiting).collect()
}

fn waiting(row: &SqliteRow) -> Result<PendingRecord, StoreError> {
    let kind: RecordKind = kind(row, 3)?;
    Ok(PendingRecord {
        id: sql::digest(row, 0)?,
        stream: sql::text(row, 1)?,
        seq: sql::number(row, 2)?,
        kind,
        at: sql::number(row, 4)?,
        statement: reader::bytes(row, 5)?,
    })
}

/// Marks records as delivered, without an fsync: after a crash the same statements may be sent once more, and
/// become the same leaves.
pub(crate) async fn delivered(
    shared: &SharedConnections,
    deliveries: &[Delivered],
) -> Result<(), StoreError> {
    if deliveries.is_empty() {
        return Ok(());
    }
    shared.check()?;
    let mut writer = shared.writer.lock().await;
    let mut writing = writer.begin_without_fsync().await?;
    let done = deliver(&mut writing, deliveries).await;
    end(shared, writing, done).await?;
    drop(writer);
    shared.checkpointer.start_if_due();
    Ok(())
}

async fn deliver(writing: &mut WriteTransaction<'_>, deliveries: &[Delivered]) -> Result<(), StoreError> {
    writing.script.add_rows(
        "WITH done (id, leaf_index, receipt) AS (VALUES ",
        "(?,?,?)",
        ") INSERT INTO delivery (record, leaf_index, receipt)
             SELECT r.no, done.leaf_index, done.receipt FROM done CROSS JOIN record r ON r.id = done.id WHERE true
         ON CONFLICT (record) DO UPDATE
            SET leaf_index = coalesce(delivery.leaf_index, excluded.leaf_index),
                receipt = coalesce(delivery.receipt, excluded.receipt)",
        deliveries,
        |values, delivery| {
            values.bind(&delivery.id.as_bytes()[..]).bind(delivery.leaf_index.map(signed));
            values.bind(delivery.receipt.as_deref());
        },
    );
    let ids = deliveries.iter().map(|delivery| delivery.id).collect::<Vec<EntryDigest>>();
    let (gone, bytes) = remove_from(writing, "outbox", &ids).await?;
    let (freed, more) = match writing.count.stuck {
        0 => (0, 0),
        _ => remove_from(writing, "stuck", &ids).await?,
    };
    writing.count.records -= gone + freed;
    writing.count.bytes -= bytes + more;
    writing.count.stuck -= freed;
    Ok(())
}

/// Runs the script and deletes records from a table; returns their number and their bytes.
async fn remove_from(
    writing: &mut WriteTransaction<'_>,
    table: &str,
    ids: &[EntryDigest],
) -> Result<(u64, u64), StoreError> {
    let delete = format!("DELETE FROM {table} WHERE record IN (SELECT no FROM record WHERE id IN (VALUES ");
    writing.script.add_rows(&delete, "(?)", ")) RETURNING bytes", ids, |values, id| {
        values.bind(&id.as_bytes()[..]);
    });
    let deleted = writing.run().await?;
    let bytes = deleted.iter().map(|row| sql::number(row, 0)).sum::<Result<u64, _>>()?;
    Ok((deleted.len() as u64, bytes))
}

pub(crate) async fn stick(shared: &SharedConnections, refused: &[RefusedRecord]) -> Result<(), StoreError> {
    if refused.is_empty() {
        return Ok(());
    }
    shared.check()?;
    let mut writer = shared.writer.lock().await;
    let mut writing = writer.begin().await?;
    let done = mark_stuck(&mut writing, refused).await;
    end(shared, writing, done).await
}

async fn mark_stuck(writing: &mut WriteTransaction<'_>, refused: &[RefusedRecord]) -> Result<(), StoreError> {
    writing.script.add_rows(
        "WITH refused (id, why) AS (VALUES ",
        "(?,?)",
        ") INSERT INTO stuck (record, bytes, at, why)
             SELECT o.record, o.bytes, o.at, refused.why
               FROM refused CROSS JOIN record r ON r.id = refused.id CROSS JOIN outbox o ON o.record = r.no WHERE true
         ON CONFLICT (record) DO NOTHING",
        refused,
        |values, one| {
            values.bind(&one.id.as_bytes()[..]).bind(evidence::stuck_reason(&one.why));
        },
    );
    let ids = refused.iter().map(|one| one.id).collect::<Vec<EntryDigest>>();
    let (stuck, _) = remove_from(writing, "outbox", &ids).await?;
    writing.count.stuck += stuck;
    Ok(())
}

pub(crate) async fn unstick(shared: &SharedConnections) -> Result<u64, StoreError> {
    shared.check()?;
    let mut writer = shared.writer.lock().await;
    let mut writing = writer.begin().await?;
    let freed = writing.count.stuck;
    return_stuck(&mut writing);
    end(shared, writing, Ok(())).await?;
    Ok(freed)
}

/// Moves all stuck records back into the outbox, with `at` of 0, so that
/// [`Backlog::oldest_at`](evidence::Backlog::oldest_at) leaves them out.
fn return_stuck(writing: &mut WriteTransaction<'_>) {
    writing.script.add("INSERT INTO outbox (record, bytes, at) SELECT record, bytes, 0 FROM stuck");
    writing.script.add("DELETE FROM stuck");
    writing.count.stuck = 0;
}

pub(crate) async fn stuck_records(pool: &SqlitePool, limit: usize) -> Result<Vec<StuckRecord>, StoreError> {
    let select = "SELECT r.id, s.name, r.seq, k.why
                    FROM stuck k CROSS JOIN record r ON r.no = k.record CROSS JOIN stream s ON s.no = r.stream
                   ORDER BY k.record LIMIT ?";
    let rows = sqlx::query(select).bind(sql::rows(limit)).fetch_all(pool).await.map_err(store_error)?;
    let stuck = |row: &SqliteRow| {
        let (id, stream) = (sql::digest(row, 0)?, sql::text(row, 1)?);
        Ok(StuckRecord { id, stream, seq: sql::number(row, 2)?, why: sql::text(row, 3)? })
    };
    rows.iter().map(stuck).collect()
}

pub(crate) async fn backlog(shared: &SharedConnections) -> Result<Backlog, StoreError> {
    let count = shared.counts.now();
    let mut backlog =
        Backlog { records: count.records, bytes: count.bytes, stuck: count.stuck, oldest_at: None };
    if count.records > count.stuck {
        let oldest = sqlx::query("SELECT at FROM outbox WHERE at > 0 ORDER BY record LIMIT 1");
        let row = oldest.fetch_optional(&shared.read).await.map_err(store_error)?;
        let at = row.map(|row| row.try_get::<i64, _>(0).map_err(store_error));
        backlog.oldest_at = at.transpose()?.map(sql::unsigned).transpose()?;
    }
    Ok(backlog)
}

/// Commits the transaction, or rolls it back if `done` is an error. A commit of unknown outcome may be repeated.
pub(crate) async fn end(
    shared: &SharedConnections,
    writing: WriteTransaction<'_>,
    done: Result<(), StoreError>,
) -> Result<(), StoreError> {
    if let Err(error) = done {
        writing.abandon(&error).await;
        return Err(error);
    }
    writing.commit(shared).await.map_err(|failure| match failure {
        CommitFailure::Other(CommitError::Failed(error)) => error,
        CommitFailure::Other(CommitError::Full(why)) => StoreError::Full(why),
        CommitFailure::Other(other) => StoreError::Unavailable(other.to_string()),
        CommitFailure::Constraint(cause) => StoreError::Refused(cause),
    })
}
