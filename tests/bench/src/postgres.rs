//! A PostgreSQL server: the one in `--postgres`, or a temporary one.

use std::path::{Path, PathBuf};
use std::process::Command;

use anyhow::{Context, ensure};
use sqlx::postgres::PgConnectOptions;
use sqlx::{ConnectOptions, Connection, PgConnection};
use url::Url;

use crate::cpu;

/// Settings of a temporary server, as an operator would choose them for this write load. Durability stays on.
const TUNING: [&str; 4] = ["-c", "shared_buffers=1GB", "-c", "max_wal_size=4GB"];

/// A server on which databases are created.
pub struct Server {
    url: Url,
    /// ID of the server process, if it runs on this machine.
    pub pid: Option<u32>,
    /// Folder of a temporary server, which is stopped on drop.
    own: Option<PathBuf>,
}

impl Server {
    /// Uses the server at a URL.
    pub async fn given(url: &str) -> anyhow::Result<Self> {
        let mut server = Self { url: Url::parse(url)?, pid: None, own: None };
        server.pid = server.postmaster().await?;
        Ok(server)
    }

    /// Starts a temporary server in a new folder.
    pub async fn start(folder: PathBuf) -> anyhow::Result<Self> {
        let output = tool("start", &folder).args(TUNING).output().context("tools/throwaway-postgres")?;
        ensure!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
        let url = String::from_utf8(output.stdout)?;
        let mut server = Self { url: Url::parse(url.trim())?, pid: None, own: Some(folder) };
        server.pid = server.postmaster().await?;
        Ok(server)
    }

    /// Creates a database, and returns its URL.
    pub async fn make(&self, name: &str) -> anyhow::Result<String> {
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
    pub async fn drop(&self, name: &str) -> anyhow::Result<()> {
        let mut admin = connect(self.url.as_str()).await?;
        let command = format!("DROP DATABASE {name} WITH (FORCE)");
        sqlx::raw_sql(sqlx::AssertSqlSafe(command)).execute(&mut admin).await?;
        Ok(admin.close().await?)
    }

    /// Returns the size of the write-ahead log written so far in bytes.
    pub async fn wal_bytes(&self) -> anyhow::Result<f64> {
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
        Ok(backend.and_then(cpu::parent))
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        if let Some(folder) = &self.own {
            let _ = tool("stop", folder).status();
        }
    }
}

/// Opens a connection that does not log its statements.
pub async fn connect(url: &str) -> anyhow::Result<PgConnection> {
    let options: PgConnectOptions = url.parse()?;
    Ok(options.disable_statement_logging().connect().await?)
}

fn tool(verb: &str, folder: &Path) -> Command {
    let program = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../tools/throwaway-postgres");
    let mut command = Command::new(program);
    command.arg(verb).arg(folder);
    command
}
