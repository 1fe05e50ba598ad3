//! Mapping of PostgreSQL's errors to [`StoreError`] and [`CommitError`].

use evidence::{CommitError, StoreError};
use sqlx::error::DatabaseError;

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

/// Maps an error by its SQLSTATE, whose first two characters are the class (PostgreSQL manual, appendix A); `TB`
/// is this schema's own class.
fn server_said(answer: &dyn DatabaseError) -> StoreError {
    let code = answer.code().unwrap_or_default();
    let message = format!("{} (SQLSTATE {code})", answer.message());
    match code.as_ref() {
        "53100" => StoreError::Full(message),
        // The server may be promoted, or its disk remounted, so a later attempt can succeed.
        "25006" => {
            StoreError::Unavailable(format!("this server takes no writes, is it a replica? {message}"))
        }
        "42P01" | "42883" | "42703" | "3F000" => {
            StoreError::Refused(format!("the schema of the database is not ours, was it migrated? {message}"))
        }
        "42501" | "3D000" => StoreError::Refused(message),
        // Class 28: invalid authorization; 22 and 23: values and constraints that this crate's own checks should
        // exclude.
        _ if ["TB", "28", "22", "23"].iter().any(|class| code.starts_with(class)) => {
            StoreError::Refused(message)
        }
        _ if code.starts_with("XX") => StoreError::Damaged(message),
        _ => StoreError::Unavailable(message),
    }
}

/// Maps the error of a commit that was sent. Only an error of the statement itself proves that the commit did not
/// happen: one that ends the session (class 57) can follow a commit that did.
pub(crate) fn commit_error(error: sqlx::Error) -> CommitError {
    match code(&error) {
        Some(code) if !code.starts_with("57P") => store_error(error).into(),
        _ => CommitError::MayHaveHappened(error.to_string()),
    }
}

/// Returns whether the server aborted for a reason that a new attempt may avoid: serialization failure, deadlock,
/// or a stream that another commit created.
pub(crate) fn is_worth_another_try(error: &sqlx::Error) -> bool {
    matches!(code(error).as_deref(), Some("40001" | "40P01" | "TB409"))
}

fn code(error: &sqlx::Error) -> Option<String> {
    error.as_database_error().and_then(DatabaseError::code).map(Into::into)
}

/// Error of an operation that did not finish in time.
pub(crate) fn too_late(what: &str) -> StoreError {
    StoreError::Unavailable(format!("{what}: no answer in time"))
}
