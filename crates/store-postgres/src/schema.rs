//! Version of the schema: migrating to it, and refusing the schema of a newer program.

use sqlx::PgConnection;
use sqlx::migrate::{MigrateError, Migrator};
use store::StoreError;

use crate::error::store_error;
use crate::limits;
use crate::session::{Role, Server, close};

static MIGRATOR: Migrator = sqlx::migrate!("../../migrations/postgres");

/// Schema version for which this program was written.
pub fn schema_version() -> i64 {
    MIGRATOR.iter().map(|migration| migration.version).max().unwrap_or_default()
}

/// Migrates the schema. Safe to run from several processes at once: an advisory lock lets one of them work, and
/// the others then find nothing to do.
pub(crate) async fn migrate(server: &Server) -> Result<(), StoreError> {
    let mut connection = server.connect(Role::Migration).await?;
    check_server(&mut connection).await?;
    if let Some(theirs) = installed(&mut connection).await? {
        refuse_newer(theirs)?;
    }
    close(connection).await;
    let pool = server.pool(Role::Migration, 1);
    let outcome = MIGRATOR.run(&pool).await;
    pool.close().await;
    outcome.map_err(|error| match error {
        MigrateError::Execute(cause) | MigrateError::ExecuteMigration(cause, _) => store_error(cause),
        other => StoreError::Refused(format!("the schema cannot be brought up to date: {other}")),
    })
}

/// Refuses a server or a schema that this program cannot work with.
pub(crate) async fn check(connection: &mut PgConnection) -> Result<(), StoreError> {
    check_server(connection).await?;
    warn_without_checksums(connection).await?;
    let ours = schema_version();
    match installed(connection).await? {
        Some(theirs) if theirs == ours => Ok(()),
        Some(theirs) => {
            refuse_newer(theirs)?;
            Err(StoreError::Refused(format!(
                "the database's schema is at version {theirs}, this program needs {ours}: migrate it first"
            )))
        }
        None => Err(StoreError::NoLog(format!(
            "the database has no schema yet, this program needs version {ours}: migrate it first"
        ))),
    }
}

fn refuse_newer(theirs: i64) -> Result<(), StoreError> {
    let ours = schema_version();
    if theirs <= ours {
        return Ok(());
    }
    Err(StoreError::Refused(format!(
        "the database's schema is at version {theirs}, this program knows up to {ours}: \
         a newer program made it, run that one"
    )))
}

async fn check_server(connection: &mut PgConnection) -> Result<(), StoreError> {
    let version = sqlx::query_scalar!(r#"SELECT current_setting('server_version_num')::int AS "version!""#)
        .fetch_one(connection)
        .await
        .map_err(store_error)?;
    if u32::try_from(version).is_ok_and(|version| version >= limits::OLDEST_SERVER) {
        return Ok(());
    }
    Err(StoreError::Refused(format!(
        "the server is PostgreSQL {}, {} or newer is needed",
        version / 10_000,
        limits::OLDEST_SERVER / 10_000
    )))
}

/// Warns if data checksums are off: the server then does not detect damage on its disk, except in rows that this
/// program checks itself.
async fn warn_without_checksums(connection: &mut PgConnection) -> Result<(), StoreError> {
    let checksums: String =
        sqlx::query_scalar("SHOW data_checksums").fetch_one(connection).await.map_err(store_error)?;
    if checksums == "off" {
        tracing::warn!(
            "data_checksums is off on the database server: damage on its disk is noticed late (pg_checksums --enable)"
        );
    }
    Ok(())
}

/// Version of the newest migration in the database, if any.
async fn installed(connection: &mut PgConnection) -> Result<Option<i64>, StoreError> {
    let known = sqlx::query_scalar!(r#"SELECT to_regclass('_sqlx_migrations') IS NOT NULL AS "known!""#)
        .fetch_one(&mut *connection)
        .await
        .map_err(store_error)?;
    if !known {
        return Ok(None);
    }
    // Not a checked macro: sqlx's own table is not in `migrations`, so it does not exist at compile time.
    sqlx::query_scalar("SELECT max(version) FROM _sqlx_migrations WHERE success")
        .fetch_one(connection)
        .await
        .map_err(store_error)
}
