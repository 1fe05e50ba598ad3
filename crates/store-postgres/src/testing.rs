//! [`Database`]: a fresh database for a test, in the temporary server that `./test` starts.
//!
//! For the tests of this and other crates; behind the feature `testing`, which no program enables.

use std::ops::Deref;

use sqlx::PgConnection;

pub use postgres::testing::SERVER;

use crate::{Options, Postgres, session};

/// Fresh database for a log.
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
        Self(postgres::testing::Database::empty(&[]).await)
    }

    /// Returns [`Options`] for a store on this database.
    ///
    /// # Panics
    ///
    /// Never: the URL is valid.
    pub fn options(&self) -> Options {
        Options::from_url(self.url()).expect("the URL is good")
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
        self.options().server.connect(&session::SEQUENCER).await.expect("the database is there")
    }
}

impl Deref for Database {
    type Target = postgres::testing::Database;

    fn deref(&self) -> &Self::Target {
        &self.0
    }
}
