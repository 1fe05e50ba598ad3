//! Version of the evidence tables.

use std::sync::LazyLock;

use postgres::DatabaseSchema;

use crate::session;

static SCHEMA: LazyLock<DatabaseSchema> = LazyLock::new(|| DatabaseSchema {
    migrator: sqlx::migrate!("../../migrations/evidence-postgres"),
    name: "the evidence schema",
    namespace: Some(session::SCHEMA),
});

/// Returns the tables with their migrations.
pub(crate) fn schema() -> &'static DatabaseSchema {
    &SCHEMA
}

/// Schema version for which this program was written.
pub fn schema_version() -> i64 {
    SCHEMA.version()
}
