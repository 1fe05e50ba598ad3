//! What PostgreSQL says, in the words of the promise.

use sqlx::error::DatabaseError;
use store::{StorageFault, StoreError};

/// What is to be done about a failed statement or connection.
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

/// By SQLSTATE, whose first two characters name the class (PostgreSQL manual, appendix A).
fn server_said(answer: &dyn DatabaseError) -> StoreError {
    let code = answer.code().unwrap_or_default();
    let message = format!("{} (SQLSTATE {code})", answer.message());
    match code.as_ref() {
        // The server may be promoted, or its disk remounted: that heals without us.
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
        // Class 28: who we are; 22 and 23: values and constraints that our own checks should have met.
        _ if code.starts_with("28") || code.starts_with("22") || code.starts_with("23") => {
            StoreError::Refused(message)
        }
        _ if code.starts_with("XX") => StoreError::Damaged(message),
        _ => StoreError::Unavailable(message),
    }
}

/// `check_violation`, which is also how a row without a partition is refused.
const NO_PARTITION: &str = "23514";

fn is_about_entry(answer: &dyn DatabaseError) -> bool {
    answer.table() == Some("entry") && answer.constraint().is_none()
}

/// The unique constraint that a statement violated.
pub(crate) fn violated(error: &sqlx::Error) -> Option<&str> {
    let answer = error.as_database_error()?;
    if answer.is_unique_violation() { answer.constraint() } else { None }
}

/// Whether the server aborted the transaction for no fault of ours: serialization failure, deadlock.
pub(crate) fn is_worth_another_try(error: &sqlx::Error) -> bool {
    matches!(error.as_database_error().and_then(DatabaseError::code).as_deref(), Some("40001" | "40P01"))
}

/// Nothing came back in time.
pub(crate) fn too_late(what: &str) -> StoreError {
    StoreError::Unavailable(format!("{what}: no answer in time"))
}
