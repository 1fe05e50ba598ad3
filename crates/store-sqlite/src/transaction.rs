//! Transactions of the writing connection.

use sqlx::Transaction;
use store::StoreError;

use crate::{Sqlite, sql};

/// Statement that begins a transaction which writes.
pub(crate) const IMMEDIATE: &str = "BEGIN IMMEDIATE";

/// Commits a transaction other than a [`store::Batch`].
pub(crate) async fn finish(
    store: &Sqlite,
    transaction: Transaction<'_, sqlx::Sqlite>,
) -> Result<(), StoreError> {
    transaction.commit().await.map_err(|error| {
        store.write.note_failure(&error);
        sql::store_error(error)
    })
}
