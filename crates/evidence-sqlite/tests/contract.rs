//! SQLite under the contract that every keeper is under.

use std::sync::Arc;

use async_trait::async_trait;
use evidence::EvidenceStore;
use evidence::contract::Database;
use evidence_sqlite::{Settings, Sqlite};
use tempfile::TempDir;

struct Temporary {
    store: Sqlite,
    _folder: TempDir,
}

impl Temporary {
    async fn new() -> Self {
        let folder = tempfile::tempdir().expect("a temporary folder");
        let settings = Settings::new(folder.path().join("evidence.db"), "maker");
        let store = Sqlite::open(settings).await.expect("a new database opens");
        Self { store, _folder: folder }
    }
}

#[async_trait]
impl Database for Temporary {
    async fn handle(&self, instance: &str) -> Arc<dyn EvidenceStore> {
        Arc::new(self.store.another(instance))
    }
}

evidence::evidence_store_contract!(sqlite: Temporary::new);
