//! Mapping of PostgreSQL's errors to [`StoreError`].

use postgres::PostgresFailure;
use sqlx::error::DatabaseError;
use store::{StorageFault, StoreError};

pub(crate) use postgres::{is_aborted, is_worth_another_try};

/// Maps the error of a statement or connection.
pub(crate) fn store_error(error: sqlx::Error) -> StoreError {
    match error.as_database_error().filter(|answer| lacks_partition(*answer)) {
        Some(answer) => StoreError::Refused(format!(
            "read-only: `entry` has no partition for the next index; \
             make it with SELECT create_entry_partition(number): {} (SQLSTATE {NO_PARTITION})",
            answer.message()
        )),
        None => of_failure(error.into()),
    }
}

/// Maps a class of errors.
pub(crate) fn of_failure(failure: PostgresFailure) -> StoreError {
    match failure {
        PostgresFailure::Unavailable(why) => StoreError::Unavailable(why),
        PostgresFailure::Full(why) => StoreError::Storage(StorageFault::Full, why),
        PostgresFailure::ReadOnly(why) => StoreError::Storage(StorageFault::ReadOnly, why),
        PostgresFailure::Io(why) => StoreError::Storage(StorageFault::Io, why),
        PostgresFailure::Refused(why) => StoreError::Refused(why),
        PostgresFailure::NoSchema(why) => StoreError::NoLog(why),
        PostgresFailure::Damaged(why) => StoreError::Damaged(why),
    }
}

/// SQLSTATE `check_violation`, which is also the error of a row without a partition.
const NO_PARTITION: &str = "23514";

fn lacks_partition(answer: &dyn DatabaseError) -> bool {
    let about_entry = answer.table() == Some("entry") && answer.constraint().is_none();
    about_entry && answer.code().as_deref() == Some(NO_PARTITION)
}

/// Returns the name of the unique constraint that a statement violated.
pub(crate) fn violated(error: &sqlx::Error) -> Option<&str> {
    let answer = error.as_database_error()?;
    if answer.is_unique_violation() { answer.constraint() } else { None }
}

/// Error of an operation that did not finish in time.
pub(crate) fn too_late(what: &str) -> StoreError {
    of_failure(PostgresFailure::too_late(what))
}
