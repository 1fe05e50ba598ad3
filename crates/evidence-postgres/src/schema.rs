//! Version of the schema: migrating to it, and refusing the schema of a newer program.

use evidence::StoreError;
use sqlx::PgConnection;
use sqlx::migrate::{MigrateError, Migrator};

use crate::error::store_error;
use crate::limits;
use crate::session::{Role, Server, close};

static MIGRATOR: Migrator = sqlx::migrate!("../../migrations/evidence-postgres");

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
    make_schema(&mut connection).await?;
    close(connection).await;
    let pool = server.pool(Role::Migration, 1);
    let outcome = MIGRATOR.run(&pool).await;
    pool.close().await;
    outcome.map_err(|error| match error {
        MigrateError::Execute(cause) | MigrateError::ExecuteMigration(cause, _) => store_error(cause),
        other => StoreError::Refused(format!("the schema cannot be brought up to date: {other}")),
    })
}

/// Creates the PostgreSQL schema `evidence`. Two processes at once can conflict in the catalogue: the second one
/// then finds the schema created.
async fn make_schema(connection: &mut PgConnection) -> Result<(), StoreError> {
    let made = sqlx::query("CREATE SCHEMA IF NOT EXISTS evidence").execute(&mut *connection).await;
    match made {
        Err(error) if !is_there(connection).await? => Err(store_error(error)),
        Ok(_) | Err(_) => Ok(()),
    }
}

async fn is_there(connection: &mut PgConnection) -> Result<bool, StoreError> {
    let select = "SELECT EXISTS (SELECT FROM pg_namespace WHERE nspname = 'evidence')";
    sqlx::query_scalar(select).fetch_one(connection).await.map_err(store_error)
}

/// Refuses a server or a schema that this program cannot work with.
pub(crate) async fn check(connection: &mut PgConnection) -> Result<(), StoreError> {
    check_server(connection).await?;
    let ours = schema_version();
    match installed(connection).await? {
        Some(theirs) if theirs == ours => Ok(()),
        Some(theirs) => {
            refuse_newer(theirs)?;
            Err(StoreError::Refused(format!(
                "the evidence schema is at version {theirs}, this program needs {ours}: migrate it first"
            )))
        }
        None => Err(StoreError::Refused(format!(
            "the database has no evidence schema yet, this program needs version {ours}: migrate it first"
        ))),
    }
}

fn refuse_newer(theirs: i64) -> Result<(), StoreError> {
    let ours = schema_version();
    if theirs <= ours {
        return Ok(());
    }
    Err(StoreError::Refused(format!(
        "the evidence schema is at version {theirs}, this program knows up to {ours}: \
         a newer program made it, run that one"
    )))
}

async fn check_server(connection: &mut PgConnection) -> Result<(), StoreError> {
    let select = "SELECT current_setting('server_version_num')::int";
    let version: i32 = sqlx::query_scalar(select).fetch_one(connection).await.map_err(store_error)?;
    if version >= limits::OLDEST_SERVER {
        return Ok(());
    }
    Err(StoreError::Refused(format!(
        "the server is PostgreSQL {}, {} or newer is needed",
        version / 10_000,
        limits::OLDEST_SERVER / 10_000
    )))
}

/// Version of the newest migration in the database, if any.
async fn installed(connection: &mut PgConnection) -> Result<Option<i64>, StoreError> {
    let select = "SELECT to_regclass('evidence._sqlx_migrations') IS NOT NULL";
    let known: bool = sqlx::query_scalar(select).fetch_one(&mut *connection).await.map_err(store_error)?;
    if !known {
        return Ok(None);
    }
    let select = "SELECT max(version) FROM _sqlx_migrations WHERE success";
    sqlx::query_scalar(select).fetch_one(connection).await.map_err(store_error)
}
