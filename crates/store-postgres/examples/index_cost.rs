//! What the lookup index costs for each term: write-ahead log of PostgreSQL, and time of the task that writes runs.
//!
//! ```text
//! ./test --run cargo run --release -p store-postgres --example index_cost --features testing -- 20
//! ```
//!
//! The number is that of full runs of 4,096 entries; each entry has nine terms, of which five occur once. The server
//! must have no other work meanwhile.

use std::sync::Arc;
use std::time::{Duration, Instant};

use lookup_tree::limits::LEVEL_0_LEAVES;
use sqlx::Row;
use store::LogStore;
use store::contract::{Appender, Indexer};
use store::lookup::EntryTerms;
use store_postgres::testing::Database;

/// Terms of one entry.
const TERMS: u64 = 9;

#[tokio::main]
async fn main() -> Result<(), Box<dyn std::error::Error>> {
    let runs: u64 = std::env::args().nth(1).unwrap_or_else(|| "9".into()).parse()?;
    let database = Database::fresh().await;
    let store: Arc<dyn LogStore> = Arc::new(database.store().await);
    let mut appender = Appender::new(Arc::clone(&store)).await;
    let mut index = Indexer::of(Arc::clone(&store)).await;
    let (mut bytes, mut time) = (0, Duration::ZERO);
    for run in 1..=runs {
        appender.append(LEVEL_0_LEAVES).await;
        let (before, begun) = (written(&database).await?, Instant::now());
        index.add_up_to(run * LEVEL_0_LEAVES, terms);
        index.settle().await;
        time += begun.elapsed();
        bytes += written(&database).await? - before;
    }
    let terms = runs * LEVEL_0_LEAVES * TERMS;
    println!(
        "{terms} terms: {:.1} bytes of write-ahead log and {:.2} µs each",
        bytes as f64 / terms as f64,
        time.as_secs_f64() * 1e6 / terms as f64
    );
    Ok(())
}

/// Bytes of write-ahead log since the cluster was made.
async fn written(database: &Database) -> Result<i64, sqlx::Error> {
    let mut session = database.sequencing_session().await;
    let row =
        sqlx::query("SELECT (pg_current_wal_insert_lsn() - '0/0')::bigint").fetch_one(&mut session).await?;
    Ok(row.get(0))
}

fn terms(leaf: u64) -> EntryTerms {
    let mut terms = EntryTerms::default();
    for kind in [1, 10, 11, 12, 14] {
        terms.add(kind, &format!("{kind} {leaf}"));
    }
    terms.add_listed(3, format!("session {}", leaf / 50));
    terms.add_listed(4, format!("agent {}", leaf % 20));
    terms.add_listed(5, "https://issuer.example".into());
    terms.add_listed(7, "application/vap-audit+json".into());
    terms
}
