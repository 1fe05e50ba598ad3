//! [`Database`]: a fresh database for a test, in the temporary server that `./test` starts.
//!
//! For the tests of this and other crates; behind the feature `testing`, which no program enables.

use std::fmt;

use sqlx::{AssertSqlSafe, ConnectOptions, PgConnection, Row};
use uuid::Uuid;

use crate::session::{Role, SCHEMA};
use crate::{Options, Postgres};

/// Environment variable with the URL of the temporary server.
pub const SERVER: &str = "TABELLION_TEST_POSTGRES";

/// Fresh database with the schema. It is removed with the server, not when this value is dropped: so it can be
/// inspected after a failed test, and dropping need not wait for the test's connections.
pub struct Database {
    url: String,
}

impl Database {
    /// Creates a database with the schema.
    ///
    /// # Panics
    ///
    /// If there is no server: a test that needs one must not pass without it.
    pub async fn fresh() -> Self {
        let database = Self::empty().await;
        Postgres::migrate(&database.options()).await.expect("the schema can be made");
        database
    }

    /// Creates a database without a schema.
    ///
    /// # Panics
    ///
    /// As [`Database::fresh`].
    pub async fn empty() -> Self {
        let server = std::env::var(SERVER).unwrap_or_else(|_| {
            panic!("{SERVER} is not set: run the tests by ./test, which starts a server")
        });
        let name = format!("test_{}", Uuid::new_v4().simple());
        let mut connection = connect(&server).await;
        sqlx::query(AssertSqlSafe(format!("CREATE DATABASE {name}")))
            .execute(&mut connection)
            .await
            .expect("a database can be created");
        let (server, _) = server.rsplit_once('/').expect("the URL names a database");
        Self { url: format!("{server}/{name}") }
    }

    /// `postgres://` URL of the database.
    pub fn url(&self) -> &str {
        &self.url
    }

    /// [`Options`] for a store on this database.
    ///
    /// # Panics
    ///
    /// Never: the URL is valid.
    pub fn options(&self) -> Options {
        Options::from_url(&self.url).expect("the URL is good")
    }

    /// Opens a handle for a new instance.
    ///
    /// # Panics
    ///
    /// If the server does not answer.
    pub async fn store(&self, instance: &str) -> Postgres {
        Postgres::connect(&self.options(), instance).await.expect("the database is there")
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
        let mut connection = connect(&self.url).await;
        sqlx::raw_sql(AssertSqlSafe(statements.to_owned())).execute(&mut connection).await.map(drop)
    }

    /// Begins a transaction that runs a statement and keeps its locks until [`Holder::let_go`].
    ///
    /// # Panics
    ///
    /// If the statement fails.
    pub async fn hold(&self, statement: &str) -> Holder {
        let mut connection = connect(&self.url).await;
        for statement in ["BEGIN", statement] {
            let done = sqlx::raw_sql(AssertSqlSafe(statement.to_owned())).execute(&mut connection).await;
            done.expect("the statement succeeds");
        }
        Holder(connection)
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

    /// Returns the plan (`EXPLAIN`) of a query in a session like the store's.
    ///
    /// # Panics
    ///
    /// If the server does not answer.
    pub async fn plan(&self, query: &str) -> String {
        let mut connection =
            self.options().server.connect(Role::Reader).await.expect("the database is there");
        let explain = sqlx::query_scalar::<_, String>(AssertSqlSafe(format!("EXPLAIN {query}")));
        explain.fetch_all(&mut connection).await.expect("the query can be planned").join("\n")
    }

    /// Returns the first column of the only row, as text.
    ///
    /// # Panics
    ///
    /// If the query fails, or if its result is not one row of text.
    pub async fn ask(&self, query: &str) -> String {
        let mut connection = connect(&self.url).await;
        let row = sqlx::query(AssertSqlSafe(query.to_owned()))
            .fetch_one(&mut connection)
            .await
            .expect("the query succeeds");
        row.get(0)
    }
}

/// Open transaction that keeps its locks until [`let_go`](Self::let_go).
#[derive(Debug)]
pub struct Holder(PgConnection);

impl Holder {
    /// Commits the transaction, which releases its locks.
    ///
    /// # Panics
    ///
    /// If it cannot be committed.
    pub async fn let_go(mut self) {
        sqlx::raw_sql("COMMIT").execute(&mut self.0).await.expect("the transaction ends");
    }
}

async fn connect(url: &str) -> PgConnection {
    let options: sqlx::postgres::PgConnectOptions = url.parse().expect("the URL is good");
    options.options([("search_path", SCHEMA)]).connect().await.expect("the throw-away server answers")
}

impl fmt::Debug for Database {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Database").finish_non_exhaustive()
    }
}
