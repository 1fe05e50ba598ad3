//! The databases that desks share: in memory, in a file, and on a server.

use std::sync::Arc;

use async_trait::async_trait;
use evidence::{EvidenceStore, Memory};
use evidence_postgres::testing::Database;
use evidence_sqlite::{Settings, Sqlite};
use tempfile::TempDir;

/// A database that no other test uses.
#[async_trait]
pub trait Store: Send + Sync {
    /// A handle for another instance.
    async fn instance(&self, name: &str) -> Arc<dyn EvidenceStore>;
}

pub struct InMemory(Memory);

pub struct InAFile {
    store: Sqlite,
    _folder: TempDir,
}

pub struct OnAServer(Database);

impl InMemory {
    pub async fn fresh() -> Self {
        Self(Memory::new("maker"))
    }
}

impl InAFile {
    pub async fn fresh() -> Self {
        let folder = tempfile::tempdir().unwrap();
        let settings = Settings::new(folder.path().join("evidence.db"), "maker");
        Self { store: Sqlite::open(settings).await.unwrap(), _folder: folder }
    }
}

impl OnAServer {
    pub async fn fresh() -> Self {
        Self(Database::fresh().await)
    }
}

#[async_trait]
impl Store for InMemory {
    async fn instance(&self, name: &str) -> Arc<dyn EvidenceStore> {
        Arc::new(self.0.another(name))
    }
}

#[async_trait]
impl Store for InAFile {
    async fn instance(&self, name: &str) -> Arc<dyn EvidenceStore> {
        Arc::new(self.store.another(name))
    }
}

#[async_trait]
impl Store for OnAServer {
    async fn instance(&self, name: &str) -> Arc<dyn EvidenceStore> {
        Arc::new(self.0.store(name).await)
    }
}
