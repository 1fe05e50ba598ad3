//! `Upkeep::prune`: removes old records and streams.

use evidence::{Horizon, Pruned, StoreError};

use crate::SharedConnections;
use crate::outbox::end;
use crate::sql::{self, signed, store_error};
use crate::transaction::WriteTransaction;

pub(crate) async fn prune(
    shared: &SharedConnections,
    horizon: Horizon,
    limit: usize,
) -> Result<Pruned, StoreError> {
    shared.check()?;
    let mut writer = shared.writer.lock().await;
    let mut writing = writer.begin().await?;
    let (mut pruned, done) = match delete_old(&mut writing, horizon, limit).await {
        Ok(pruned) => (pruned, Ok(())),
        Err(error) => (Pruned::default(), Err(error)),
    };
    if pruned == Pruned::default() && done.is_ok() {
        writing.roll_back().await;
        return Ok(pruned);
    }
    end(shared, writing, done).await.inspect_err(|_| pruned = Pruned::default())?;
    drop(writer);
    shared.checkpointer.start_if_due();
    Ok(pruned)
}

/// Removes records first, as a stream with records stays. Only the first records by number are examined, as they
/// are the oldest: an index of their times would have to be written with every commit.
async fn delete_old(
    writing: &mut WriteTransaction<'_>,
    horizon: Horizon,
    limit: usize,
) -> Result<Pruned, StoreError> {
    let connection = writing.connection().await?;
    let records = sqlx::query(
        "DELETE FROM record WHERE no IN (
           SELECT no FROM (
             SELECT r.no, r.at FROM record r
              WHERE EXISTS (SELECT 1 FROM delivery d WHERE d.record = r.no)
                AND NOT EXISTS (SELECT 1 FROM open_decision o WHERE o.record = r.no)
              ORDER BY r.no LIMIT ?)
            WHERE at < ?)",
    );
    let records = records.bind(sql::rows(limit)).bind(signed(horizon.records));
    let records = records.execute(&mut *connection).await.map_err(store_error)?.rows_affected();
    let streams = sqlx::query(
        "DELETE FROM stream WHERE no IN (
           SELECT s.no FROM stream s
            WHERE s.closed = 1 AND s.keep_until < ?
              AND NOT EXISTS (SELECT 1 FROM record r WHERE r.stream = s.no)
            ORDER BY s.keep_until LIMIT ?)",
    );
    let streams = streams.bind(signed(horizon.streams)).bind(sql::rows(limit));
    let streams = streams.execute(connection).await.map_err(store_error)?.rows_affected();
    Ok(Pruned { streams, records })
}
