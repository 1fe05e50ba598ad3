//! State of the log: open, frozen or being filled.

use sqlite::Script;
use sqlx::{Row, SqliteExecutor};
use store::moving::half_filled;
use store::{Source, State, StoreError};

use crate::sql::{self, signed, store_error, unsigned};

/// Reads the state.
pub(crate) async fn state(executor: impl SqliteExecutor<'_>) -> Result<State, StoreError> {
    let row = sqlx::query("SELECT frozen_at, filling FROM log").fetch_optional(executor).await;
    let row = row.map_err(store_error)?;
    let row = row.ok_or_else(|| StoreError::NoLog("the log was not opened".into()))?;
    let filling = row.try_get::<Option<&[u8]>, _>(1).map_err(store_error)?;
    if let Some(source) = filling {
        return Ok(State::Filling { source: Source(sql::hash(source)?) });
    }
    let frozen: Option<i64> = row.try_get(0).map_err(store_error)?;
    frozen.map_or(Ok(State::Open), |at| Ok(State::Frozen { at: unsigned(at)? }))
}

/// Refuses a log that is frozen or being filled.
pub(crate) async fn must_grow(executor: impl SqliteExecutor<'_>) -> Result<(), StoreError> {
    match state(executor).await? {
        State::Open => Ok(()),
        State::Frozen { .. } => Err(StoreError::Frozen),
        State::Filling { .. } => Err(half_filled()),
    }
}

/// Marks the log as frozen and raises the epoch.
pub(crate) fn end_log(script: &mut Script, holder: &str, at: u64) {
    script.add_with("UPDATE log SET epoch = epoch + 1, holder = ?, frozen_at = ?", |values| {
        values.bind(holder).bind(signed(at));
    });
}
