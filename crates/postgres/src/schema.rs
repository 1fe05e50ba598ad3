//! Versions of a schema: migrating to the program's, and refusing that of a newer program.

use sqlx::migrate::{MigrateError, Migrator};
use sqlx::{AssertSqlSafe, PgConnection};

use crate::failure::PostgresFailure;
use crate::limits;
use crate::server::{Server, SessionRole, close};

/// Tables of one store, with the migrations that make them.
pub struct DatabaseSchema {
    /// Migrations of the program.
    pub migrator: Migrator,
    /// Noun for messages, such as "the evidence schema".
    pub name: &'static str,
    /// PostgreSQL schema of the tables; `None` for the default one.
    pub namespace: Option<&'static str>,
}

impl DatabaseSchema {
    /// Returns the version for which the program was written.
    pub fn version(&self) -> i64 {
        self.migrator.iter().map(|migration| migration.version).max().unwrap_or_default()
    }

    /// Migrates the tables. Safe to run from several processes at once: an advisory lock lets one of them work, and
    /// the others then find nothing to do.
    ///
    /// # Errors
    ///
    /// [`PostgresFailure::Refused`] for a server that is too old or the tables of a newer program; any other for the server's.
    pub async fn migrate(&self, server: &Server, role: &SessionRole) -> Result<(), PostgresFailure> {
        let mut session = server.connect(role).await?;
        role.check(&mut session).await?;
        check_server(&mut session).await?;
        if let Some(theirs) = self.installed(&mut session).await? {
            self.refuse_newer(theirs)?;
        }
        if let Some(namespace) = self.namespace {
            create_namespace(&mut session, namespace).await?;
        }
        close(session).await;
        let pool = server.pool(role, 1);
        let outcome = self.migrator.run(&pool).await;
        pool.close().await;
        outcome.map_err(|error| match error {
            MigrateError::Execute(cause) | MigrateError::ExecuteMigration(cause, _) => cause.into(),
            other => PostgresFailure::Refused(format!("the schema cannot be brought up to date: {other}")),
        })
    }

    /// Refuses a server or tables that the program cannot work with, and a session without the settings of its role.
    /// Warns if data checksums are off.
    ///
    /// # Errors
    ///
    /// [`PostgresFailure::NoSchema`] without tables, [`PostgresFailure::Refused`] for another version, any other for the server's.
    pub async fn check(&self, session: &mut PgConnection, role: &SessionRole) -> Result<(), PostgresFailure> {
        role.check(session).await?;
        check_server(session).await?;
        warn_without_checksums(session).await?;
        let (name, ours) = (self.name, self.version());
        match self.installed(session).await? {
            Some(theirs) if theirs == ours => Ok(()),
            Some(theirs) => {
                self.refuse_newer(theirs)?;
                Err(PostgresFailure::Refused(format!(
                    "{name} is at version {theirs}, this program needs {ours}: migrate it first"
                )))
            }
            None => Err(PostgresFailure::NoSchema(format!(
                "{name} is not there yet, this program needs version {ours}: migrate it first"
            ))),
        }
    }

    fn refuse_newer(&self, theirs: i64) -> Result<(), PostgresFailure> {
        let ours = self.version();
        if theirs <= ours {
            return Ok(());
        }
        Err(PostgresFailure::Refused(format!(
            "{} is at version {theirs}, this program knows up to {ours}: a newer program made it, run that one",
            self.name
        )))
    }

    /// Returns the version of the newest migration in the database, if any.
    async fn installed(&self, session: &mut PgConnection) -> Result<Option<i64>, PostgresFailure> {
        let namespace = self.namespace.map(|namespace| format!("{namespace}.")).unwrap_or_default();
        let table = format!("{namespace}_sqlx_migrations");
        let known: bool = sqlx::query_scalar("SELECT to_regclass($1) IS NOT NULL")
            .bind(&table)
            .fetch_one(&mut *session)
            .await?;
        if !known {
            return Ok(None);
        }
        let select = AssertSqlSafe(format!("SELECT max(version) FROM {table} WHERE success"));
        Ok(sqlx::query_scalar(select).fetch_one(session).await?)
    }
}

async fn check_server(session: &mut PgConnection) -> Result<(), PostgresFailure> {
    let select = "SELECT current_setting('server_version_num')::int";
    let version: i32 = sqlx::query_scalar(select).fetch_one(session).await?;
    if version >= limits::OLDEST_SERVER {
        return Ok(());
    }
    Err(PostgresFailure::Refused(format!(
        "the server is PostgreSQL {}, {} or newer is needed",
        version / 10_000,
        limits::OLDEST_SERVER / 10_000
    )))
}

/// Warns if data checksums are off: the server then does not detect damage on its disk, except in rows that a store
/// checks itself.
async fn warn_without_checksums(session: &mut PgConnection) -> Result<(), PostgresFailure> {
    let checksums: String = sqlx::query_scalar("SHOW data_checksums").fetch_one(session).await?;
    if checksums == "off" {
        tracing::warn!(
            "data_checksums is off on the database server: damage on its disk is noticed late (pg_checksums --enable)"
        );
    }
    Ok(())
}

/// Creates a PostgreSQL schema. Two processes at once can conflict in the catalogue: the second one then finds the
/// schema created.
async fn create_namespace(session: &mut PgConnection, name: &'static str) -> Result<(), PostgresFailure> {
    let create = AssertSqlSafe(format!("CREATE SCHEMA IF NOT EXISTS {name}"));
    let Err(error) = sqlx::query(create).execute(&mut *session).await else { return Ok(()) };
    let select = "SELECT EXISTS (SELECT FROM pg_namespace WHERE nspname = $1)";
    match sqlx::query_scalar(select).bind(name).fetch_one(session).await? {
        true => Ok(()),
        false => Err(error.into()),
    }
}
