//! Mapping of PostgreSQL's errors to [`StoreError`] and [`CommitError`].

use evidence::{CommitError, StoreError};
use postgres::{PostgresFailure, code};

/// Maps the error of a statement or connection.
pub(crate) fn store_error(error: sqlx::Error) -> StoreError {
    match is_stale(&error) {
        true => forgotten(),
        false => of_failure(error.into()),
    }
}

/// Returns whether the server has no row of the instance as the statement expected it: the row was removed, or its epoch
/// raised.
pub(crate) fn is_stale(error: &sqlx::Error) -> bool {
    code(error).as_deref() == Some("TB404")
}

/// Error of an instance whose row was removed. The next commit or renewal of the lease makes it again.
pub(crate) fn forgotten() -> StoreError {
    StoreError::Unavailable("the database has forgotten this instance, which registers again".into())
}

/// Maps a class of errors.
pub(crate) fn of_failure(failure: PostgresFailure) -> StoreError {
    match failure {
        PostgresFailure::Unavailable(why) | PostgresFailure::ReadOnly(why) | PostgresFailure::Io(why) => {
            StoreError::Unavailable(why)
        }
        PostgresFailure::Full(why) => StoreError::Full(why),
        PostgresFailure::Refused(why) | PostgresFailure::NoSchema(why) => StoreError::Refused(why),
        PostgresFailure::Damaged(why) => StoreError::Damaged(why),
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
    postgres::is_worth_another_try(error) || code(error).as_deref() == Some("TB409")
}

/// Error of an operation that did not finish in time.
pub(crate) fn too_late(what: &str) -> StoreError {
    of_failure(PostgresFailure::too_late(what))
}
