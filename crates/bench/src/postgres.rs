//! A PostgreSQL server on which databases are created.

use sqlx::postgres::PgConnectOptions;
use sqlx::{ConnectOptions, Connection, PgConnection};
use url::Url;

use crate::process;

/// A server, and its process if it runs on this machine.
pub(crate) struct Server {
    url: Url,
    /// ID of the server process, if it runs on this machine.
    pub(crate) pid: Option<u32>,
}

impl Server {
    /// Connects to the server at a URL.
    pub(crate) async fn at(url: &str) -> anyhow::Result<Self> {
        let mut server = Self { url: Url::parse(url)?, pid: None };
        server.pid = server.postmaster().await?;
        Ok(server)
    }

    /// Creates an empty database, and returns its URL.
    pub(crate) async fn create(&self, name: &str) -> anyhow::Result<String> {
        let mut admin = connect(self.url.as_str()).await?;
        // A checkpoint, so that earlier writes cause none during the measurement.
        for command in [
            format!("DROP DATABASE IF EXISTS {name} WITH (FORCE)"),
            format!("CREATE DATABASE {name}"),
            "CHECKPOINT".to_owned(),
        ] {
            sqlx::raw_sql(sqlx::AssertSqlSafe(command)).execute(&mut admin).await?;
        }
        admin.close().await?;
        let mut url = self.url.clone();
        url.set_path(name);
        Ok(url.into())
    }

    /// Drops a database.
    pub(crate) async fn drop(&self, name: &str) -> anyhow::Result<()> {
        let mut admin = connect(self.url.as_str()).await?;
        let command = format!("DROP DATABASE IF EXISTS {name} WITH (FORCE)");
        sqlx::raw_sql(sqlx::AssertSqlSafe(command)).execute(&mut admin).await?;
        Ok(admin.close().await?)
    }

    /// Returns the size of the write-ahead log written so far in bytes.
    pub(crate) async fn wal_bytes(&self) -> anyhow::Result<f64> {
        let mut admin = connect(self.url.as_str()).await?;
        let query = "SELECT (pg_current_wal_insert_lsn() - '0/0'::pg_lsn)::float8";
        Ok(sqlx::query_scalar(query).fetch_one(&mut admin).await?)
    }

    /// Returns the parent of the process that serves our connection; `None` if the server runs on another machine.
    async fn postmaster(&self) -> anyhow::Result<Option<u32>> {
        let mut admin = connect(self.url.as_str()).await?;
        let pid: i32 = sqlx::query_scalar("SELECT pg_backend_pid()").fetch_one(&mut admin).await?;
        let name = std::fs::read_to_string(format!("/proc/{pid}/comm")).unwrap_or_default();
        let backend = u32::try_from(pid).ok().filter(|_| name.starts_with("postgres"));
        Ok(backend.and_then(process::parent))
    }
}

/// Connects without logging of statements.
pub(crate) async fn connect(url: &str) -> anyhow::Result<PgConnection> {
    let options: PgConnectOptions = url.parse()?;
    Ok(options.disable_statement_logging().connect().await?)
}
