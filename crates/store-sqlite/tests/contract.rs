//! SQLite under the contract that every store is under.

use std::sync::Arc;

use async_trait::async_trait;
use store::LogStore;
use store::contract::LogDatabase;
use store_sqlite::{Settings, Sqlite};
use tempfile::TempDir;

struct Temporary {
    store: Sqlite,
    _folder: TempDir,
}

impl Temporary {
    async fn new() -> Self {
        Self::with(|settings| settings).await
    }

    async fn with(change: impl FnOnce(Settings) -> Settings) -> Self {
        let folder = tempfile::tempdir().expect("a temporary folder");
        let settings = change(Settings::new(folder.path().join("log.db")));
        let store = Sqlite::open(settings).await.expect("a new database opens");
        Self { store, _folder: folder }
    }
}

#[async_trait]
impl LogDatabase for Temporary {
    async fn handle(&self) -> Arc<dyn LogStore> {
        Arc::new(self.store.another().await.expect("the database opens again"))
    }
}

async fn on_any_file_system() -> Temporary {
    Temporary::with(|settings| Settings { allow_filesystem: true, ..settings }).await
}

store::log_store_contract!(sqlite: Temporary::new, sqlite_on_any_file_system: on_any_file_system);
