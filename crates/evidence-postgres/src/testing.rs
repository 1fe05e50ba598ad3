//! [`Database`]: a fresh database for a test, in the temporary server that `./test` starts.
//!
//! For the tests of this and other crates; behind the feature `testing`, which no program enables.

use std::ops::Deref;

use sqlx::AssertSqlSafe;

pub use postgres::testing::{OpenTransaction, SERVER};

use crate::session::{READER, SCHEMA};
use crate::{Options, Postgres};

/// Fresh database for evidence.
#[derive(Debug)]
pub struct Database(postgres::testing::Database);

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
        Self(postgres::testing::Database::empty(&[("search_path", SCHEMA)]).await)
    }

    /// Returns [`Options`] for a store on this database.
    ///
    /// # Panics
    ///
    /// Never: the URL is valid.
    pub fn options(&self) -> Options {
        Options::from_url(self.url()).expect("the URL is good")
    }

    /// Opens a handle for a new instance.
    ///
    /// # Panics
    ///
    /// If the server does not answer.
    pub async fn store(&self, instance: &str) -> Postgres {
        Postgres::connect(&self.options(), instance).await.expect("the database is there")
    }

    /// Returns the plan (`EXPLAIN`) of a query in a session like the store's.
    ///
    /// # Panics
    ///
    /// If the server does not answer.
    pub async fn plan(&self, query: &str) -> String {
        let mut session = self.options().server.connect(&READER).await.expect("the database is there");
        let explain = sqlx::query_scalar::<_, String>(AssertSqlSafe(format!("EXPLAIN {query}")));
        explain.fetch_all(&mut session).await.expect("the query can be planned").join("\n")
    }
}

impl Deref for Database {
    type Target = postgres::testing::Database;

    fn deref(&self) -> &Self::Target {
        &self.0
    }
}
