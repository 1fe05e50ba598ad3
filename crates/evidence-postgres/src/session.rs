//! Connections by [`Role`], and the settings of each.
//!
//! All sessions plan with indexes only. A look-up that is prepared while its table is empty would otherwise be
//! planned as a sequential scan, and stay one in the plan cache while the table grows.

use std::str::FromStr;

use evidence::StoreError;
use sqlx::postgres::{PgConnectOptions, PgPoolOptions};
use sqlx::{ConnectOptions, Connection, PgConnection, PgPool};
use tokio::time::timeout;

use crate::error::{store_error, too_late};
use crate::limits;

/// PostgreSQL schema of all tables, so that a log may be in the same database.
pub(crate) const SCHEMA: &str = "evidence";

/// Purpose of a connection.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Role {
    /// Reads, and writes that must be durable.
    Reader,
    /// Commits.
    Writer,
    /// Deliveries and leases: losing the newest of them in a crash is harmless.
    Courier,
    /// Settling a commit in doubt: waits for it.
    Doubter,
    /// Changes of the schema.
    Migration,
}

impl Role {
    /// `application_name` of the session.
    const fn name(self) -> &'static str {
        match self {
            Self::Reader => "tabellion evidence reader",
            Self::Writer => "tabellion evidence writer",
            Self::Courier => "tabellion evidence courier",
            Self::Doubter => "tabellion evidence doubter",
            Self::Migration => "tabellion evidence migration",
        }
    }

    /// Timeouts of the server; those in [`limits`] are the client's and a little longer.
    const fn settings(self) -> &'static [(&'static str, &'static str)] {
        match self {
            Self::Reader => &[("statement_timeout", "10s"), ("lock_timeout", "5s"), IDLE],
            Self::Writer => &[("statement_timeout", "25s"), ("lock_timeout", "10s"), IDLE],
            Self::Courier => {
                &[("statement_timeout", "10s"), ("lock_timeout", "5s"), ("synchronous_commit", "off"), IDLE]
            }
            Self::Doubter => &[("statement_timeout", "50s"), ("lock_timeout", "50s")],
            // A migration may wait for another process that migrates, and may have much to rewrite.
            Self::Migration => &[("lock_timeout", "10min")],
        }
    }
}

/// Timeout by which a session that stops within a transaction releases its rows.
const IDLE: (&str, &str) = ("idle_in_transaction_session_timeout", "5s");

/// Settings of every session.
const SETTINGS: &[(&str, &str)] = &[
    ("search_path", SCHEMA),
    ("enable_seqscan", "off"),
    ("enable_hashjoin", "off"),
    ("enable_mergejoin", "off"),
    ("jit", "off"),
    ("default_transaction_isolation", "read committed"),
    ("client_min_messages", "warning"),
    ("tcp_keepalives_idle", "10"),
    ("tcp_keepalives_interval", "5"),
    ("tcp_keepalives_count", "3"),
];

/// Address of the server, with its connection options.
#[derive(Clone, Debug)]
pub(crate) struct Server(PgConnectOptions);

impl Server {
    pub(crate) fn from_url(url: &str) -> Result<Self, StoreError> {
        PgConnectOptions::from_str(url).map(Self).map_err(store_error)
    }

    /// Opens a connection outside of the pool.
    pub(crate) async fn connect(&self, role: Role) -> Result<PgConnection, StoreError> {
        let options = self.options(role);
        timeout(limits::CONNECT, options.connect())
            .await
            .map_err(|_| too_late("connecting to the database"))?
            .map_err(store_error)
    }

    /// Makes a bounded pool, which connects on first use.
    pub(crate) fn pool(&self, role: Role, connections: u32) -> PgPool {
        PgPoolOptions::new()
            .max_connections(connections.clamp(1, limits::MAX_CONNECTIONS))
            .acquire_timeout(limits::CONNECT)
            .connect_lazy_with(self.options(role))
    }

    fn options(&self, role: Role) -> PgConnectOptions {
        let settings = SETTINGS.iter().chain(role.settings()).copied();
        self.0.clone().application_name(role.name()).options(settings).disable_statement_logging()
    }
}

/// Closes a connection; gives up after [`limits::CONNECT`].
pub(crate) async fn close(connection: PgConnection) {
    let _ = timeout(limits::CONNECT, connection.close()).await;
}
