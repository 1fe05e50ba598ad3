//! Wall clock of the database server.

use std::time::Duration;

use sqlx::PgPool;
use store::StoreError;

use crate::error::store_error;

/// Reads `clock_timestamp()`, as `now()` would return the time at which the transaction began.
pub(crate) async fn read(pool: &PgPool) -> Result<Duration, StoreError> {
    let micros: i64 = sqlx::query_scalar("SELECT (EXTRACT(EPOCH FROM clock_timestamp()) * 1000000)::bigint")
        .fetch_one(pool)
        .await
        .map_err(store_error)?;
    Ok(Duration::from_micros(u64::try_from(micros).unwrap_or(0)))
}
