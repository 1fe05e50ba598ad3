//! Opening the configured database: for the service, or for a command that runs next to it.

use std::path::Path;
use std::sync::Arc;

use secrecy::ExposeSecret;
use sequencer::PinFile;
use serving::database_metrics::DatabaseSystem;
use store::{LogStore, MeasuredStore, PinStore, StoreError};
use store_postgres::{Options, PinDatabase, Postgres};
use store_sqlite::{Settings, Sqlite};

use crate::config::{Config, Database};
use crate::metrics::Metrics;

/// Opens the database for the service. With `migrate`, PostgreSQL tables are migrated first.
pub async fn open(database: &Database, migrate: bool) -> Result<Arc<dyn LogStore>, StoreError> {
    match database {
        Database::Sqlite { path, any_filesystem } => {
            Ok(Arc::new(Sqlite::open(sqlite(path, *any_filesystem)).await?))
        }
        Database::Postgres(url) => {
            let options = Options::from_url(url.expose_secret())?;
            if migrate {
                Postgres::migrate(&options).await?;
            }
            Ok(Arc::new(Postgres::connect(&options).await?))
        }
    }
}

/// Wraps an open store, whose operations are then part of the metrics.
pub fn measured(store: Arc<dyn LogStore>, database: &Database, metrics: &Metrics) -> Arc<dyn LogStore> {
    let system = match database {
        Database::Sqlite { .. } => DatabaseSystem::Sqlite,
        Database::Postgres(_) => DatabaseSystem::PostgreSql,
    };
    Arc::new(MeasuredStore::new(store, metrics.database.observer(system)))
}

/// Migrates the tables of a PostgreSQL database, and creates the missing ones. A SQLite file is migrated when it is
/// opened.
pub async fn migrate(database: &Database) -> Result<(), StoreError> {
    match database {
        Database::Sqlite { .. } => Ok(()),
        Database::Postgres(url) => Postgres::migrate(&Options::from_url(url.expose_secret())?).await,
    }
}

/// Opens a database that already contains a log, to change it. A misspelled path creates no new one.
pub async fn open_existing(database: &Database, origin: &str) -> Result<Arc<dyn LogStore>, StoreError> {
    let store: Arc<dyn LogStore> = match database {
        Database::Sqlite { path, any_filesystem } => {
            Arc::new(Sqlite::open_existing(sqlite(path, *any_filesystem)).await?)
        }
        Database::Postgres(url) => {
            Arc::new(Postgres::connect(&Options::from_url(url.expose_secret())?).await?)
        }
    };
    // Read the head first: opening would create a log where there is none.
    store.head().await?;
    store.open(origin).await?;
    Ok(store)
}

/// Opens an existing database to read it, without disturbing a running service.
pub async fn open_read_only(database: &Database) -> Result<Arc<dyn LogStore>, StoreError> {
    match database {
        Database::Sqlite { path, any_filesystem } => {
            Ok(Arc::new(Sqlite::open_read_only(sqlite(path, *any_filesystem)).await?))
        }
        Database::Postgres(url) => {
            Ok(Arc::new(Postgres::connect_read_only(&Options::from_url(url.expose_secret())?).await?))
        }
    }
}

/// The store of the log's pin, as configured. Reads nothing and does not connect yet.
///
/// # Errors
/// If the setting `pin` is not the URL of a PostgreSQL database.
pub fn pin(config: &Config) -> Result<Arc<dyn PinStore>, StoreError> {
    match &config.pin {
        Some(url) => Ok(Arc::new(PinDatabase::from_url(url.expose_secret(), &config.origin)?)),
        None => Ok(Arc::new(PinFile::in_directory(&config.state_dir))),
    }
}

fn sqlite(path: &Path, any_filesystem: bool) -> Settings {
    Settings { allow_filesystem: any_filesystem, ..Settings::new(path) }
}
