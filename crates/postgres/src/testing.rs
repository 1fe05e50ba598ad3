//! [`Database`]: a fresh database for a test, in the temporary server that `./test` starts.
//!
//! For the tests of the stores; behind the feature `testing`, which no program enables.

use std::fmt;

use sqlx::{AssertSqlSafe, ConnectOptions, PgConnection, Row};
use uuid::Uuid;

/// Environment variable with the URL of the temporary server.
pub const SERVER: &str = "TABELLION_TEST_POSTGRES";

/// Fresh database. It is removed with the server, not when this value is dropped: so it can be inspected after a
/// failed test, and dropping need not wait for the test's connections.
pub struct Database {
    url: String,
    settings: &'static [(&'static str, &'static str)],
}

impl Database {
    /// Creates a database without a schema; `settings`, such as `search_path`, hold for the statements of the test.
    ///
    /// # Panics
    ///
    /// If there is no server: a test that needs one must not pass without it.
    pub async fn empty(settings: &'static [(&'static str, &'static str)]) -> Self {
        let server = std::env::var(SERVER).unwrap_or_else(|_| {
            panic!("{SERVER} is not set: run the tests by ./test, which starts a server")
        });
        let name = format!("test_{}", Uuid::new_v4().simple());
        let (folder, _) = server.rsplit_once('/').expect("the URL names a database");
        let url = format!("{folder}/{name}");
        Self { url: server, settings: &[] }.run(&format!("CREATE DATABASE {name}")).await;
        Self { url, settings }
    }

    /// Returns the `postgres://` URL of the database.
    pub fn url(&self) -> &str {
        &self.url
    }

    /// Runs statements as the superuser, bypassing the store.
    ///
    /// # Panics
    ///
    /// If they fail.
    pub async fn run(&self, statements: &str) {
        self.try_run(statements).await.expect("the statements succeed");
    }

    /// Runs statements as [`Database::run`] does, and returns their error.
    ///
    /// # Errors
    ///
    /// The server's error.
    pub async fn try_run(&self, statements: &str) -> Result<(), sqlx::Error> {
        let mut session = self.session().await;
        sqlx::raw_sql(AssertSqlSafe(statements.to_owned())).execute(&mut session).await.map(drop)
    }

    /// Changes the database by `ALTER DATABASE`, such as a setting with which new sessions begin, even if that makes them
    /// read-only.
    ///
    /// # Panics
    ///
    /// If the statement fails.
    pub async fn alter(&self, change: &str) {
        let name = self.ask("SELECT current_database()::text").await;
        self.run(&format!("BEGIN READ WRITE; ALTER DATABASE {name} {change}; COMMIT")).await;
    }

    /// Returns the first column of the only row, as text.
    ///
    /// # Panics
    ///
    /// If the query fails, or if its result is not one row of text.
    pub async fn ask(&self, query: &str) -> String {
        let query = sqlx::query(AssertSqlSafe(query.to_owned()));
        query.fetch_one(&mut self.session().await).await.expect("the query succeeds").get(0)
    }

    /// Begins a transaction that runs a statement and keeps its locks until [`OpenTransaction::commit`].
    ///
    /// # Panics
    ///
    /// If the statement fails.
    pub async fn hold(&self, statement: &str) -> OpenTransaction {
        let mut session = self.session().await;
        for statement in ["BEGIN", statement] {
            let done = sqlx::raw_sql(AssertSqlSafe(statement.to_owned())).execute(&mut session).await;
            done.expect("the statement succeeds");
        }
        OpenTransaction(session)
    }

    /// Ends the sessions of this database whose `application_name` is like that name.
    ///
    /// # Panics
    ///
    /// If the server does not answer.
    pub async fn end_sessions(&self, name: &str) {
        let end = format!(
            "SELECT pg_terminate_backend(pid, 5000) FROM pg_stat_activity
              WHERE datname = current_database() AND pid <> pg_backend_pid() AND application_name LIKE '{name}'"
        );
        self.run(&end).await;
    }

    async fn session(&self) -> PgConnection {
        let options: sqlx::postgres::PgConnectOptions = self.url.parse().expect("the URL is good");
        let options = options.options(self.settings.iter().copied());
        options.connect().await.expect("the throw-away server answers")
    }
}

impl fmt::Debug for Database {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Database").finish_non_exhaustive()
    }
}

/// Open transaction that keeps its locks until [`commit`](Self::commit).
#[derive(Debug)]
pub struct OpenTransaction(PgConnection);

impl OpenTransaction {
    /// Commits the transaction, which releases its locks.
    ///
    /// # Panics
    ///
    /// If it cannot be committed.
    pub async fn commit(mut self) {
        sqlx::raw_sql("COMMIT").execute(&mut self.0).await.expect("the transaction ends");
    }
}
