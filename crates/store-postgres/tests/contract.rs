//! The promise, kept by PostgreSQL.

use std::sync::Arc;

use async_trait::async_trait;
use store::LogStore;
use store_postgres::testing::Database;

struct Fresh(Database);

#[async_trait]
impl store::contract::LogDatabase for Fresh {
    async fn handle(&self) -> Arc<dyn LogStore> {
        Arc::new(self.0.store().await)
    }
}

store::log_store_contract!(postgres: || async { Fresh(Database::fresh().await) });
