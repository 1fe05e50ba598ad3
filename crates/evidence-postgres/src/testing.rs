//! A database of its own for a test, in the throw-away server that `./test` starts.
//!
//! For the tests of this and other crates; behind the feature `testing`, which no program turns on.

use std::fmt;

use sqlx::{AssertSqlSafe, ConnectOptions, PgConnection, Row};
use uuid::Uuid;

use crate::session::{Role, SCHEMA};
use crate::{Options, Postgres};

/// Says where the throw-away server is.
pub const SERVER: &str = "TABELLION_TEST_POSTGRES";

/// A fresh database with the schema in it. It goes with the server, not with this value: that
/// keeps it for a look after a failed test, and dropping it would wait for the test's connections.
pub struct Database {
    url: String,
}

impl Database {
    /// Makes a database.
    ///
    /// # Panics
    ///
    /// When there is no server: a test that needs one and has none has failed.
    pub async fn fresh() -> Self {
        let database = Self::empty().await;
        Postgres::migrate(&database.options()).await.expect("the schema can be made");
        database
    }

    /// Makes a database without a schema.
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

    /// Its URL.
    pub fn url(&self) -> &str {
        &self.url
    }

    /// How a store finds it.
    ///
    /// # Panics
    ///
    /// Never: the URL is a good one.
    pub fn options(&self) -> Options {
        Options::from_url(&self.url).expect("the URL is good")
    }

    /// A handle on it, for a new instance.
    ///
    /// # Panics
    ///
    /// When the server does not answer.
    pub async fn store(&self, instance: &str) -> Postgres {
        Postgres::connect(&self.options(), instance).await.expect("the database is there")
    }

    /// Runs statements as the superuser, past the store.
    ///
    /// # Panics
    ///
    /// When they fail.
    pub async fn run(&self, statements: &str) {
        self.try_run(statements).await.expect("the statements succeed");
    }

    /// As [`Database::run`], for statements that may fail.
    ///
    /// # Errors
    ///
    /// What the server answered.
    pub async fn try_run(&self, statements: &str) -> Result<(), sqlx::Error> {
        let mut connection = connect(&self.url).await;
        sqlx::raw_sql(AssertSqlSafe(statements.to_owned())).execute(&mut connection).await.map(drop)
    }

    /// A transaction of somebody else's that has run a statement, and goes on holding what it locked.
    ///
    /// # Panics
    ///
    /// When the statement fails.
    pub async fn hold(&self, statement: &str) -> Holder {
        let mut connection = connect(&self.url).await;
        for statement in ["BEGIN", statement] {
            let done = sqlx::raw_sql(AssertSqlSafe(statement.to_owned())).execute(&mut connection).await;
            done.expect("the statement succeeds");
        }
        Holder(connection)
    }

    /// Ends the sessions of this database whose name is like that one.
    ///
    /// # Panics
    ///
    /// When the server does not answer.
    pub async fn end_sessions(&self, name: &str) {
        let end = format!(
            "SELECT pg_terminate_backend(pid, 5000) FROM pg_stat_activity
              WHERE datname = current_database() AND pid <> pg_backend_pid() AND application_name LIKE '{name}'"
        );
        self.run(&end).await;
    }

    /// How a session like the store's would answer a query.
    ///
    /// # Panics
    ///
    /// When the server does not answer.
    pub async fn plan(&self, query: &str) -> String {
        let mut connection =
            self.options().server.connect(Role::Reader).await.expect("the database is there");
        let explain = sqlx::query_scalar::<_, String>(AssertSqlSafe(format!("EXPLAIN {query}")));
        explain.fetch_all(&mut connection).await.expect("the query can be planned").join("\n")
    }

    /// The first column of the only row, as text.
    ///
    /// # Panics
    ///
    /// When the query fails, or its answer is not one row of text.
    pub async fn ask(&self, query: &str) -> String {
        let mut connection = connect(&self.url).await;
        let row = sqlx::query(AssertSqlSafe(query.to_owned()))
            .fetch_one(&mut connection)
            .await
            .expect("the query succeeds");
        row.get(0)
    }
}

/// Holds what it locked until it is let go.
#[derive(Debug)]
pub struct Holder(PgConnection);

impl Holder {
    /// Ends the transaction.
    ///
    /// # Panics
    ///
    /// When it cannot be ended.
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
