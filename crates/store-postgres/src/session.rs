//! Sessions of the log's store, by role.

use postgres::SessionRole;
use sqlx::{PgConnection, PgPool};
use store::StoreError;

use crate::error::of_failure;

pub(crate) use postgres::close;

/// Reads, and writes of one row.
pub(crate) const READER: SessionRole = SessionRole {
    name: "tabellion reader",
    settings: &[("statement_timeout", "10s"), ("lock_timeout", "5s")],
};

/// Plans each statement once. For few rows, planning the statement of a batch takes longer than executing it. Not for
/// reads: some of their plans depend on values, such as the partitions of the entries that are asked for.
const PLANNED_ONCE: (&str, &str) = ("plan_cache_mode", "force_generic_plan");

/// Look-ups of the sequencer.
pub(crate) const LOOK_UP: SessionRole = SessionRole {
    name: READER.name,
    settings: &[("statement_timeout", "10s"), ("lock_timeout", "5s"), PLANNED_ONCE],
};

/// Commits of batches.
pub(crate) const SEQUENCER: SessionRole = SessionRole {
    name: "tabellion sequencer",
    settings: &[
        ("statement_timeout", "25s"),
        ("lock_timeout", "10s"),
        // A sequencer that stops within a transaction releases the head row.
        ("idle_in_transaction_session_timeout", "5s"),
        PLANNED_ONCE,
    ],
};

/// Take-over: waits for the batch in progress.
pub(crate) const TAKE_OVER: SessionRole = SessionRole {
    name: "tabellion take-over",
    settings: &[
        ("statement_timeout", "40s"),
        ("lock_timeout", "40s"),
        ("idle_in_transaction_session_timeout", "5s"),
    ],
};

/// Lease: holds the advisory lock and pings; a holder that stops pinging loses the lock.
pub(crate) const LEASE: SessionRole = SessionRole {
    name: "tabellion lease",
    settings: &[("statement_timeout", "5s"), ("idle_session_timeout", "10s")],
};

/// Creation of partitions while the log is in use.
pub(crate) const UPKEEP: SessionRole = SessionRole {
    name: "tabellion upkeep",
    settings: &[("statement_timeout", "10s"), ("lock_timeout", "3s")],
};

/// Changes of the schema: may wait for another process that migrates, and may have much to rewrite.
pub(crate) const MIGRATION: SessionRole =
    SessionRole { name: "tabellion migration", settings: &[("lock_timeout", "10min")] };

/// Address of the server.
#[derive(Clone, Debug)]
pub(crate) struct Server(pub(crate) postgres::Server);

impl Server {
    pub(crate) fn from_url(url: &str) -> Result<Self, StoreError> {
        postgres::Server::from_url(url).map(Self).map_err(of_failure)
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
