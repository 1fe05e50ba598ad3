//! Connections by [`Role`], and the settings of each.
//!
//! All sessions plan with indexes only. A look-up that is prepared while its table is empty would otherwise be
//! planned as a sequential scan, and stay one in the plan cache while the table grows.

use std::str::FromStr;

use sqlx::postgres::{PgConnectOptions, PgPoolOptions};
use sqlx::{ConnectOptions, Connection, PgConnection, PgPool};
use store::StoreError;
use tokio::time::timeout;

use crate::error::{store_error, too_late};
use crate::limits;

/// Purpose of a connection.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Role {
    /// Reads, and writes of one row.
    Reader,
    /// Commits of batches.
    Sequencer,
    /// Take-over: waits for the batch in progress.
    TakeOver,
    /// Lease: holds the advisory lock and pings.
    Lease,
    /// Creation of partitions while the log is in use.
    Upkeep,
    /// Changes of the schema.
    Migration,
}

impl Role {
    /// `application_name` of the session.
    pub(crate) const fn name(self) -> &'static str {
        match self {
            Self::Reader => "tabellion reader",
            Self::Sequencer => "tabellion sequencer",
            Self::TakeOver => "tabellion take-over",
            Self::Lease => "tabellion lease",
            Self::Upkeep => "tabellion upkeep",
            Self::Migration => "tabellion migration",
        }
    }

    /// Timeouts of the server; those in [`limits`] are the client's and a little longer.
    const fn timeouts(self) -> &'static [(&'static str, &'static str)] {
        match self {
            Self::Reader => &[("statement_timeout", "10s"), ("lock_timeout", "5s")],
            Self::Sequencer => &[
                ("statement_timeout", "25s"),
                ("lock_timeout", "10s"),
                // A sequencer that stops within a transaction releases the head row.
                ("idle_in_transaction_session_timeout", "5s"),
            ],
            Self::TakeOver => &[
                ("statement_timeout", "40s"),
                ("lock_timeout", "40s"),
                ("idle_in_transaction_session_timeout", "5s"),
            ],
            // A holder that stops pinging loses the lock.
            Self::Lease => &[("statement_timeout", "5s"), ("idle_session_timeout", "10s")],
            Self::Upkeep => &[("statement_timeout", "10s"), ("lock_timeout", "3s")],
            // A migration may wait for another process that migrates, and may have much to rewrite.
            Self::Migration => &[("lock_timeout", "10min")],
        }
    }
}

/// Settings of every session.
const SETTINGS: &[(&str, &str)] = &[
    ("enable_seqscan", "off"),
    ("enable_hashjoin", "off"),
    ("enable_mergejoin", "off"),
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

    /// Host and database for messages; without user and password.
    pub(crate) fn place(&self) -> String {
        format!("postgres://{}/{}", self.0.get_host(), self.0.get_database().unwrap_or_default())
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
        let settings = SETTINGS.iter().chain(role.timeouts()).copied();
        self.0.clone().application_name(role.name()).options(settings)
    }
}

/// Closes a connection; gives up after [`limits::CONNECT`].
pub(crate) async fn close(connection: PgConnection) {
    let _ = timeout(limits::CONNECT, connection.close()).await;
}
