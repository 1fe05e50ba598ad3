//! The same over the database that a gateway really has.

use std::os::unix::fs::PermissionsExt;
use std::sync::Arc;

use evidence::Outbox;
use evidence_sqlite::Sqlite;
use gateway::decision_writer::{Clock, DecisionWriter, RunningWriter};
use serde_json::json;

use crate::agent::{self, SESSION, commit, denied, read, run};
use crate::setup::{assert_on_log_once, keys, settings, summaries};
use crate::site::Site;

async fn open(store: &Arc<Sqlite>, site: &Site) -> (DecisionWriter, RunningWriter) {
    let rules: gateway::decision_writer::RulesOf = Arc::new(agent::rules_of);
    DecisionWriter::open(store.clone(), &keys(), site.log(), Clock::system(), settings(), rules)
        .await
        .unwrap()
}

async fn store(folder: &std::path::Path, instance: &str) -> Arc<Sqlite> {
    let settings = evidence_sqlite::Settings::new(folder.join("evidence.sqlite"), instance);
    Arc::new(Sqlite::open(settings).await.unwrap())
}

#[tokio::test]
async fn budgets_and_records_outlive_the_process() {
    let site = Site::start().await;
    let folder = tempfile::tempdir().unwrap();
    let first = store(folder.path(), "one").await;
    let (writer, running) = open(&first, &site).await;
    commit(&writer, SESSION, json!({ "max_calls": 2 })).await;
    run(read(&writer, SESSION, 1).await, None).await;
    running.stop().await;
    drop((writer, first));
    let second = store(folder.path(), "two").await;
    let (writer, running) = open(&second, &site).await;
    run(read(&writer, SESSION, 2).await, None).await;
    assert_eq!(denied(&read(&writer, SESSION, 3).await), "budget_exceeded");
    assert_on_log_once(&*second, &site).await;
    running.stop().await;
    let mode = std::fs::metadata(folder.path().join("evidence.sqlite")).unwrap().permissions().mode();
    assert_eq!(mode & 0o777, 0o600);
    assert_eq!(summaries(&*second, SESSION).await.len(), 6);
    assert!(second.backlog().await.unwrap().records == 0);
}
