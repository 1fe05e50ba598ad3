//! [`Database`]: a fresh database for a test, in the temporary server that `./test` starts.
//!
//! For the tests of this and other crates; behind the feature `testing`, which no program enables.

use std::fmt;

use sqlx::{AssertSqlSafe, ConnectOptions, PgConnection, Row};
use uuid::Uuid;

use crate::session::Role;
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

    /// Opens a store on this database.
    ///
    /// # Panics
    ///
    /// If the server does not answer.
    pub async fn store(&self) -> Postgres {
        Postgres::connect(&self.options()).await.expect("the database is there")
    }

    /// Opens a session with the settings of the one that commits batches.
    ///
    /// # Panics
    ///
    /// If the server does not answer.
    pub async fn sequencing_session(&self) -> PgConnection {
        self.options().server.connect(Role::Sequencer).await.expect("the database is there")
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

async fn connect(url: &str) -> PgConnection {
    let options: sqlx::postgres::PgConnectOptions = url.parse().expect("the URL is good");
    options.connect().await.expect("the throw-away server answers")
}

impl fmt::Debug for Database {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Database").finish_non_exhaustive()
    }
}
