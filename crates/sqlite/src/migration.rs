//! Failures of migrations.

use sqlx::migrate::MigrateError;

/// Reason why the tables of a database cannot be used.
#[derive(Debug, thiserror::Error)]
pub enum MigrationFailure {
    /// The tables are not this program's, or of another version.
    #[error("{0}")]
    Refused(String),
    /// SQLite failed.
    #[error(transparent)]
    Sqlite(sqlx::Error),
}

impl From<MigrateError> for MigrationFailure {
    fn from(error: MigrateError) -> Self {
        match error {
            MigrateError::VersionMissing(version) => Self::Refused(format!(
                "the database has tables of version {version}, which this version of the program does not know"
            )),
            MigrateError::VersionMismatch(version) => Self::Refused(format!(
                "version {version} of the tables is not the one this program would make"
            )),
            MigrateError::Execute(error) | MigrateError::ExecuteMigration(error, _) => Self::Sqlite(error),
            other => Self::Refused(other.to_string()),
        }
    }
}
