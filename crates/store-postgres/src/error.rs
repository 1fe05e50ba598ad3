//! Mapping of PostgreSQL's errors to [`StoreError`].

use sqlx::error::DatabaseError;
use store::{StorageFault, StoreError};

/// Maps the error of a statement or connection.
pub(crate) fn store_error(error: sqlx::Error) -> StoreError {
    match error {
        sqlx::Error::Database(answer) => server_said(answer.as_ref()),
        sqlx::Error::Decode(_) | sqlx::Error::ColumnDecode { .. } => StoreError::Damaged(error.to_string()),
        sqlx::Error::Configuration(why) => {
            StoreError::Refused(format!("the database URL cannot be used: {why}"))
        }
        other => StoreError::Unavailable(other.to_string()),
    }
}

/// Maps an error by its SQLSTATE, whose first two characters are the class (PostgreSQL manual, appendix A).
fn server_said(answer: &dyn DatabaseError) -> StoreError {
    let code = answer.code().unwrap_or_default();
    let message = format!("{} (SQLSTATE {code})", answer.message());
    match code.as_ref() {
        // The server may be promoted, or its disk remounted, so a later attempt can succeed.
        "25006" => StoreError::Storage(
            StorageFault::ReadOnly,
            format!("this server takes no writes, is it a replica? {message}"),
        ),
        "53100" => StoreError::Storage(StorageFault::Full, message),
        "58030" => StoreError::Storage(StorageFault::Io, message),
        "42P01" | "42883" | "42703" => {
            StoreError::Refused(format!("the schema of the database is not ours, was it migrated? {message}"))
        }
        "42501" | "3D000" => StoreError::Refused(message),
        NO_PARTITION if is_about_entry(answer) => StoreError::Refused(format!(
            "read-only: `entry` has no partition for the next index; \
             make it with SELECT create_entry_partition(number): {message}"
        )),
        // Class 28: invalid authorization; 22 and 23: values and constraints that this crate's own checks should
        // exclude.
        _ if code.starts_with("28") || code.starts_with("22") || code.starts_with("23") => {
            StoreError::Refused(message)
        }
        _ if code.starts_with("XX") => StoreError::Damaged(message),
        _ => StoreError::Unavailable(message),
    }
}

/// SQLSTATE `check_violation`, which is also the error of a row without a partition.
const NO_PARTITION: &str = "23514";

fn is_about_entry(answer: &dyn DatabaseError) -> bool {
    answer.table() == Some("entry") && answer.constraint().is_none()
}

/// Returns the name of the unique constraint that a statement violated.
pub(crate) fn violated(error: &sqlx::Error) -> Option<&str> {
    let answer = error.as_database_error()?;
    if answer.is_unique_violation() { answer.constraint() } else { None }
}

/// Returns whether the server aborted the transaction for a reason that a new attempt may avoid: serialization
/// failure or deadlock.
pub(crate) fn is_worth_another_try(error: &sqlx::Error) -> bool {
    matches!(error.as_database_error().and_then(DatabaseError::code).as_deref(), Some("40001" | "40P01"))
}

/// Error of an operation that did not finish in time.
pub(crate) fn too_late(what: &str) -> StoreError {
    StoreError::Unavailable(format!("{what}: no answer in time"))
}
