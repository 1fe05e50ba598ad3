//! Sessions of the evidence store, by role.

use evidence::StoreError;
use postgres::SessionRole;
use sqlx::{PgConnection, PgPool};

use crate::error::of_failure;

pub(crate) use postgres::close;

/// PostgreSQL schema of all tables, so that a log may be in the same database.
pub(crate) const SCHEMA: &str = "evidence";

/// Reads, and writes that must be durable.
pub(crate) const READER: SessionRole = SessionRole {
    name: "tabellion evidence reader",
    settings: &[("statement_timeout", "10s"), ("lock_timeout", "5s"), IDLE],
};

/// Commits.
pub(crate) const WRITER: SessionRole = SessionRole {
    name: "tabellion evidence writer",
    settings: &[("statement_timeout", "25s"), ("lock_timeout", "10s"), IDLE],
};

/// Deliveries and leases: losing the newest of them in a crash is harmless.
pub(crate) const COURIER: SessionRole = SessionRole {
    name: "tabellion evidence courier",
    settings: &[("statement_timeout", "10s"), ("lock_timeout", "5s"), ("synchronous_commit", "off"), IDLE],
};

/// Settling a commit in doubt: waits for it.
pub(crate) const DOUBTER: SessionRole = SessionRole {
    name: "tabellion evidence doubter",
    settings: &[("statement_timeout", "50s"), ("lock_timeout", "50s")],
};

/// Changes of the schema: may wait for another process that migrates, and may have much to rewrite.
pub(crate) const MIGRATION: SessionRole =
    SessionRole { name: "tabellion evidence migration", settings: &[("lock_timeout", "10min")] };

/// Timeout by which a session that stops within a transaction releases its rows.
const IDLE: (&str, &str) = ("idle_in_transaction_session_timeout", "5s");

/// Address of the server.
#[derive(Clone, Debug)]
pub(crate) struct Server(pub(crate) postgres::Server);

impl Server {
    pub(crate) fn from_url(url: &str) -> Result<Self, StoreError> {
        let server = postgres::Server::from_url(url).map_err(of_failure)?;
        Ok(Self(server.with_setting("search_path", SCHEMA).without_statement_log()))
    }

    /// Opens a session outside of a pool.
    pub(crate) async fn connect(&self, role: &SessionRole) -> Result<PgConnection, StoreError> {
        self.0.connect(role).await.map_err(of_failure)
    }

    /// Makes a pool, which connects on first use.
    pub(crate) fn pool(&self, role: &SessionRole, connections: u32) -> PgPool {
        self.0.pool(role, connections)
    }
}
