//! Version of the log's tables.

use std::sync::LazyLock;

use postgres::DatabaseSchema;

static SCHEMA: LazyLock<DatabaseSchema> = LazyLock::new(|| DatabaseSchema {
    migrator: sqlx::migrate!("../../migrations/postgres"),
    name: "the database's schema",
    namespace: None,
});

/// Returns the tables with their migrations.
pub(crate) fn schema() -> &'static DatabaseSchema {
    &SCHEMA
}

/// Schema version for which this program was written.
pub fn schema_version() -> i64 {
    SCHEMA.version()
}
