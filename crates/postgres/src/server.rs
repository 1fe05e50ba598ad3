//! Sessions by [`SessionRole`], and the settings of each.
//!
//! All sessions plan with indexes only. A look-up that is prepared while its table is empty would otherwise be
//! planned as a sequential scan, and stay one in the plan cache while the table grows.

use std::str::FromStr;

use sqlx::postgres::{PgConnectOptions, PgPoolOptions};
use sqlx::{AssertSqlSafe, ConnectOptions, Connection, PgConnection, PgPool, Row};
use tokio::time::timeout;

use crate::failure::PostgresFailure;
use crate::limits;

/// Purpose of a session: its name in `pg_stat_activity`, and settings beside those of every session.
#[derive(Clone, Copy, Debug)]
pub struct SessionRole {
    /// `application_name` of the session.
    pub name: &'static str,
    /// Settings and their values, such as timeouts of the server.
    pub settings: &'static [(&'static str, &'static str)],
}

/// Settings of every session.
const SETTINGS: &[(&str, &str)] = &[
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

impl SessionRole {
    /// Checks that the settings are in force in a session. A pooler can drop them: statements would then have no timeouts,
    /// and a paused holder of a lock would keep it. Nothing is prepared, which a pooler could refuse.
    ///
    /// # Errors
    ///
    /// [`PostgresFailure::Refused`] with a setting that is not in force; any other for the server's.
    pub async fn check(&self, session: &mut PgConnection) -> Result<(), PostgresFailure> {
        // Over a Unix socket these are 0.
        let settings: Vec<_> = self.all_settings().filter(|(name, _)| !name.starts_with("tcp_")).collect();
        let values: Vec<String> =
            settings.iter().map(|(name, _)| format!("current_setting('{name}')")).collect();
        let select = AssertSqlSafe(format!("SELECT {}", values.join(", ")));
        let row = sqlx::query::<sqlx::Postgres>(select).persistent(false).fetch_one(session).await?;
        for (column, (name, value)) in settings.iter().enumerate() {
            let in_force: String = row.try_get(column)?;
            if in_force != *value {
                return Err(PostgresFailure::Refused(format!(
                    "{name} is {in_force} in a session that was to begin with {value}: a connection pooler drops the \
                     settings of sessions; connect to PostgreSQL itself"
                )));
            }
        }
        Ok(())
    }

    fn all_settings(&self) -> impl Iterator<Item = (&'static str, &'static str)> + use<> {
        SETTINGS.iter().chain(self.settings).copied()
    }
}

/// Address of a server, with its connection options.
#[derive(Clone, Debug)]
pub struct Server(PgConnectOptions);

impl Server {
    /// Parses a `postgres://` URL. TLS follows its `sslmode` and `sslrootcert`; the default is `prefer`.
    ///
    /// # Errors
    ///
    /// [`PostgresFailure::Refused`] if the URL is invalid.
    pub fn from_url(url: &str) -> Result<Self, PostgresFailure> {
        Ok(Self(PgConnectOptions::from_str(url)?))
    }

    /// Returns the server with a setting of every session, such as `search_path`.
    pub fn with_setting(self, name: &'static str, value: &'static str) -> Self {
        Self(self.0.options([(name, value)]))
    }

    /// Returns the server without log lines for slow statements.
    pub fn without_statement_log(self) -> Self {
        Self(self.0.disable_statement_logging())
    }

    /// Returns host and database for messages, without user and password.
    pub fn place(&self) -> String {
        format!("postgres://{}/{}", self.0.get_host(), self.0.get_database().unwrap_or_default())
    }

    /// Opens a session outside of a pool.
    ///
    /// # Errors
    ///
    /// A [`PostgresFailure`] if the server refuses or does not answer in time.
    pub async fn connect(&self, role: &SessionRole) -> Result<PgConnection, PostgresFailure> {
        let connected = timeout(limits::CONNECT, self.options(role).connect()).await;
        Ok(connected.map_err(|_| PostgresFailure::too_late("connecting to the database"))??)
    }

    /// Makes a pool of at most `connections` sessions, which connects on first use. A session that was idle for a while
    /// is tested before it is used. One that is old is replaced.
    pub fn pool(&self, role: &SessionRole, connections: u32) -> PgPool {
        PgPoolOptions::new()
            .max_connections(connections)
            .acquire_timeout(limits::CONNECT)
            .max_lifetime(limits::SESSION_LIFETIME)
            .test_before_acquire(false)
            .before_acquire(|session, metadata| {
                Box::pin(async move {
                    if metadata.idle_for >= limits::UNTESTED {
                        session.ping().await?;
                    }
                    Ok(true)
                })
            })
            .connect_lazy_with(self.options(role))
    }

    fn options(&self, role: &SessionRole) -> PgConnectOptions {
        self.0.clone().application_name(role.name).options(role.all_settings())
    }
}

/// Closes a session; gives up after five seconds.
pub async fn close(session: PgConnection) {
    let _ = timeout(limits::CONNECT, session.close()).await;
}
