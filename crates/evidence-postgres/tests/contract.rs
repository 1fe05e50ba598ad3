//! The promise, kept by PostgreSQL.

use std::sync::Arc;

use async_trait::async_trait;
use evidence::EvidenceStore;
use evidence_postgres::testing::Database;

struct Fresh(Database);

#[async_trait]
impl evidence::contract::Database for Fresh {
    async fn handle(&self, instance: &str) -> Arc<dyn EvidenceStore> {
        Arc::new(self.0.store(instance).await)
    }
}

evidence::evidence_store_contract!(postgres: || async { Fresh(Database::fresh().await) });
