//! SQLite under the contract that every keeper is under.

use std::sync::Arc;

use async_trait::async_trait;
use evidence::contract::Database;
use evidence::{Beside, EvidenceStore};
use evidence_sqlite::{Settings, Sqlite};
use tempfile::TempDir;

struct Temporary {
    store: Sqlite,
    folder: TempDir,
}

impl Temporary {
    async fn new() -> Self {
        let folder = tempfile::tempdir().expect("a temporary folder");
        let settings = Settings::new(folder.path().join("evidence.db"), "maker");
        let store = Sqlite::open(settings).await.expect("a new database opens");
        Self { store, folder }
    }
}

#[async_trait]
impl Database for Temporary {
    async fn handle(&self, instance: &str) -> Arc<dyn EvidenceStore> {
        Arc::new(self.store.another(instance))
    }

    async fn beside(&self) -> Box<dyn Beside> {
        let path = self.folder.path().join("evidence.db");
        Box::new(evidence_sqlite::Beside::at(&path).await.expect("the database is there"))
    }
}

evidence::evidence_store_contract!(sqlite: Temporary::new);
