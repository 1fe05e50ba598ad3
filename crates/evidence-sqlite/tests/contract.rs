//! SQLite under the contract that every keeper is under.

use std::sync::Arc;

use async_trait::async_trait;
use evidence::contract::EvidenceDatabase;
use evidence::{EvidenceStore, StreamEditor};
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
impl EvidenceDatabase for Temporary {
    async fn handle(&self, instance: &str) -> Arc<dyn EvidenceStore> {
        Arc::new(self.store.another(instance))
    }

    async fn stream_editor(&self) -> Box<dyn StreamEditor> {
        let path = self.folder.path().join("evidence.db");
        Box::new(evidence_sqlite::SqliteStreamEditor::at(&path).await.expect("the database is there"))
    }
}

evidence::evidence_store_contract!(sqlite: Temporary::new);
