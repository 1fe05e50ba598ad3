//! The configured database, opened: to serve from it, or to look at it beside the service.

use std::path::Path;
use std::sync::Arc;

use secrecy::ExposeSecret;
use store::{LogStore, StoreError};
use store_postgres::{Options, Postgres};
use store_sqlite::{Settings, Sqlite};

use crate::config::Database;

/// Opens the database to serve from it; its tables are brought up to date.
pub async fn open(database: &Database) -> Result<Arc<dyn LogStore>, StoreError> {
    match database {
        Database::Sqlite { path, any_filesystem } => {
            Ok(Arc::new(Sqlite::open(sqlite(path, *any_filesystem)).await?))
        }
        Database::Postgres(url) => {
            let options = Options::from_url(url.expose_secret())?;
            Postgres::migrate(&options).await?;
            Ok(Arc::new(Postgres::connect(&options).await?))
        }
    }
}

/// Opens a database that holds a log already, to change it: what is misspelt makes no new one.
pub async fn open_existing(database: &Database, origin: &str) -> Result<Arc<dyn LogStore>, StoreError> {
    let store: Arc<dyn LogStore> = match database {
        Database::Sqlite { path, any_filesystem } => {
            Arc::new(Sqlite::open_existing(sqlite(path, *any_filesystem)).await?)
        }
        Database::Postgres(url) => {
            Arc::new(Postgres::connect(&Options::from_url(url.expose_secret())?).await?)
        }
    };
    // Looked at first: opening would make a log where there is none.
    store.head().await?;
    store.open(origin).await?;
    Ok(store)
}

/// Opens a database that is there already, to read it; a running service is not disturbed.
pub async fn open_read_only(database: &Database) -> Result<Arc<dyn LogStore>, StoreError> {
    match database {
        Database::Sqlite { path, any_filesystem } => {
            Ok(Arc::new(Sqlite::open_read_only(sqlite(path, *any_filesystem)).await?))
        }
        Database::Postgres(url) => {
            Ok(Arc::new(Postgres::connect(&Options::from_url(url.expose_secret())?).await?))
        }
    }
}

fn sqlite(path: &Path, any_filesystem: bool) -> Settings {
    Settings { allow_filesystem: any_filesystem, ..Settings::new(path) }
}
