//! [`Counts`]: size of the outbox, counted once and then updated by each commit.

use std::sync::{Mutex, PoisonError};

use evidence::StoreError;
use sqlx::{Row, SqliteConnection};

use crate::sql;

/// Counts after the last commit, as readers see them.
#[derive(Debug, Default)]
pub(crate) struct Counts(Mutex<Count>);

/// Counts as the writer knows them.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Count {
    pub(crate) records: u64,
    pub(crate) bytes: u64,
    pub(crate) stuck: u64,
}

impl Counts {
    pub(crate) fn now(&self) -> Count {
        *self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    pub(crate) fn publish(&self, count: Count) {
        *self.0.lock().unwrap_or_else(PoisonError::into_inner) = count;
    }
}

impl Count {
    /// Counts the rows; takes longer the more there are.
    pub(crate) async fn read(connection: &mut SqliteConnection) -> Result<Self, StoreError> {
        let select = "SELECT (SELECT count(*) FROM outbox), (SELECT coalesce(sum(bytes), 0) FROM outbox),
                             (SELECT count(*) FROM stuck), (SELECT coalesce(sum(bytes), 0) FROM stuck)";
        let row = sqlx::query(select).fetch_one(connection).await.map_err(sql::store_error)?;
        let number = |column| row.try_get::<i64, _>(column).map_err(sql::store_error).and_then(sql::unsigned);
        let (waiting, stuck) = (number(0)?, number(2)?);
        Ok(Self { records: waiting + stuck, bytes: number(1)? + number(3)?, stuck })
    }
}
