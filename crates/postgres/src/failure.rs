//! Classes of PostgreSQL's errors.

use sqlx::error::DatabaseError;
use sqlx::postgres::{PgDatabaseError, PgSeverity};

/// Error of a statement or connection, by what its caller can do; each holds the message.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum PostgresFailure {
    /// A later attempt can succeed: no connection, no answer in time, a server that stops.
    #[error("{0}")]
    Unavailable(String),
    /// The disk of the server is full.
    #[error("{0}")]
    Full(String),
    /// The server takes no writes. It may be promoted, or its disk remounted, so that a later attempt can succeed.
    #[error("{0}")]
    ReadOnly(String),
    /// The disk of the server fails.
    #[error("{0}")]
    Io(String),
    /// No attempt can succeed before an operator changes something.
    #[error("{0}")]
    Refused(String),
    /// The database has no tables of this program yet.
    #[error("{0}")]
    NoSchema(String),
    /// The database holds what this program never writes.
    #[error("{0}")]
    Damaged(String),
}

impl PostgresFailure {
    /// Returns the error of an operation that did not finish in time.
    pub fn too_late(operation: &str) -> Self {
        Self::Unavailable(format!("{operation}: no answer in time"))
    }
}

impl From<sqlx::Error> for PostgresFailure {
    fn from(error: sqlx::Error) -> Self {
        match error {
            sqlx::Error::Database(answer) => of_server(answer.as_ref()),
            sqlx::Error::Decode(_) | sqlx::Error::ColumnDecode { .. } => Self::Damaged(error.to_string()),
            sqlx::Error::Configuration(why) => {
                Self::Refused(format!("the database URL cannot be used: {why}"))
            }
            other => Self::Unavailable(other.to_string()),
        }
    }
}

/// Maps an error by its SQLSTATE, whose first two characters are the class (PostgreSQL manual, appendix A); `TB` is the
/// class of our own functions.
fn of_server(answer: &dyn DatabaseError) -> PostgresFailure {
    let code = answer.code().unwrap_or_default();
    let message = format!("{} (SQLSTATE {code})", answer.message());
    match code.as_ref() {
        "25006" => {
            PostgresFailure::ReadOnly(format!("this server refuses writes, is it a replica? {message}"))
        }
        "08P01" if message.contains("startup parameter") => PostgresFailure::Refused(format!(
            "a connection pooler refuses the settings of a session; connect to PostgreSQL itself: {message}"
        )),
        "53100" => PostgresFailure::Full(message),
        "58030" => PostgresFailure::Io(message),
        "42P01" | "42883" | "42703" | "3F000" => PostgresFailure::Refused(format!(
            "the schema of the database is not ours, was it migrated? {message}"
        )),
        "42501" | "3D000" => PostgresFailure::Refused(message),
        // Class 28: invalid authorization; 22 and 23: values and constraints that a store's own checks should exclude.
        _ if ["TB", "28", "22", "23"].iter().any(|class| code.starts_with(class)) => {
            PostgresFailure::Refused(message)
        }
        _ if code.starts_with("XX") => PostgresFailure::Damaged(message),
        _ => PostgresFailure::Unavailable(message),
    }
}

/// Returns the SQLSTATE of an error that the server sent.
pub fn code(error: &sqlx::Error) -> Option<String> {
    error.as_database_error().and_then(DatabaseError::code).map(Into::into)
}

/// Returns whether the server answered that it aborted the statement, which then has no effect. Where the session ended
/// with the error, that is not known of a statement that is its own transaction.
pub fn is_aborted(error: &sqlx::Error) -> bool {
    let answer = error.as_database_error().and_then(|answer| answer.try_downcast_ref::<PgDatabaseError>());
    answer.is_some_and(|answer| answer.severity() == PgSeverity::Error)
}

/// Returns whether the server aborted the transaction for a reason that a new attempt may avoid: serialization failure
/// or deadlock.
pub fn is_worth_another_try(error: &sqlx::Error) -> bool {
    matches!(code(error).as_deref(), Some("40001" | "40P01"))
}
