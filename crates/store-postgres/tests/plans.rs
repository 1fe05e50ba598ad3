//! Every query of this crate that asks for a part of a table is answered by an index, also when it was planned over empty
//! tables.
//!
//! A look-up that is prepared while its table is empty can be cached as a sequential scan, and
//! stay one while the table grows: half the throughput at first, and less with every row.
#![allow(clippy::unwrap_used)]

use std::fs;
use std::path::Path;
use std::sync::Arc;

use sqlx::{AssertSqlSafe, PgConnection, Row};
use store::contract::Appender;
use store_postgres::testing::Database;

/// Tables with one row, and those that some query asks for as a whole.
const READ_WHOLE: [&str; 6] =
    ["log", "index_state", "log_key", "key_announcement", "index_erased", "index_run"];

#[tokio::test]
async fn no_query_reads_a_whole_table_for_a_part_of_it() {
    let database = Database::fresh().await;
    expect_indexes(&database, "empty and never analysed").await;
    fill_a_little(&database).await;
    expect_indexes(&database, "small and analysed").await;
}

async fn expect_indexes(database: &Database, tables: &str) {
    let mut session = database.sequencing_session().await;
    for query in queries() {
        let plan = generic_plan(&mut session, &query).await;
        let scanned = scanned(&plan).find(|table| !READ_WHOLE.contains(table));
        assert_eq!(scanned, None, "with tables {tables}: {query}\n\n{plan}");
    }
}

/// That the check above can see: without our settings it would fail.
#[tokio::test]
async fn without_the_session_settings_a_small_table_is_scanned() {
    let database = Database::fresh().await;
    fill_a_little(&database).await;
    let mut session = database.sequencing_session().await;
    sqlx::raw_sql("SET enable_seqscan = on").execute(&mut session).await.unwrap();
    let mut scans = 0;
    for query in queries() {
        scans += scanned(&generic_plan(&mut session, &query).await)
            .filter(|table| !READ_WHOLE.contains(table))
            .count();
    }
    assert!(scans > 5, "only {scans} queries would scan a table: the trap is not where it was");
}

async fn fill_a_little(database: &Database) {
    Appender::with(Arc::new(database.store().await), 3).await;
    database.run("VACUUM ANALYZE").await;
}

/// The text of each query, as the macros keep it.
fn queries() -> Vec<String> {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join(".sqlx");
    let queries: Vec<String> = fs::read_dir(folder)
        .unwrap()
        .map(|file| {
            let answer: serde_json::Value =
                serde_json::from_slice(&fs::read(file.unwrap().path()).unwrap()).unwrap();
            answer["query"].as_str().unwrap().to_owned()
        })
        .collect();
    assert!(queries.len() > 30, "all queries are here");
    queries
}

/// The tables that a plan reads as a whole.
fn scanned(plan: &str) -> impl Iterator<Item = &str> {
    plan.split("Seq Scan on ").skip(1).filter_map(|rest| rest.split_whitespace().next())
}

/// The plan that is made without looking at the values.
async fn generic_plan(session: &mut PgConnection, query: &str) -> String {
    let parameters = (1..100).take_while(|n| query.contains(&format!("${n}"))).count();
    let nulls =
        if parameters == 0 { String::new() } else { format!("({})", vec!["NULL"; parameters].join(", ")) };
    let prepare = format!("SET plan_cache_mode = force_generic_plan; DEALLOCATE ALL; PREPARE it AS {query}");
    sqlx::raw_sql(AssertSqlSafe(prepare)).execute(&mut *session).await.unwrap();
    let rows =
        sqlx::raw_sql(AssertSqlSafe(format!("EXPLAIN EXECUTE it{nulls}"))).fetch_all(session).await.unwrap();
    rows.iter().map(|row| row.get::<String, _>(0)).collect::<Vec<_>>().join("\n")
}
