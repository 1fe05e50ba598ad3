//! The promise, kept by PostgreSQL.

use std::sync::Arc;

use async_trait::async_trait;
use evidence::{EvidenceStore, StreamEditor};
use evidence_postgres::testing::Database;

struct Fresh(Database);

#[async_trait]
impl evidence::contract::EvidenceDatabase for Fresh {
    async fn handle(&self, instance: &str) -> Arc<dyn EvidenceStore> {
        Arc::new(self.0.store(instance).await)
    }

    async fn stream_editor(&self) -> Box<dyn StreamEditor> {
        let options = self.0.options();
        Box::new(evidence_postgres::PostgresStreamEditor::at(&options).await.expect("the database is there"))
    }
}

evidence::evidence_store_contract!(postgres: || async { Fresh(Database::fresh().await) });
