//! The same over the database that a gateway really has.

use std::os::unix::fs::PermissionsExt;
use std::sync::Arc;

use evidence::EvidenceStore;
use evidence_sqlite::Sqlite;
use gateway::desk::{Clock, Desk, Running};
use serde_json::json;

use crate::agent::{self, commit, denied, read, run};
use crate::desk::{assert_on_log_once, keys, settings, story};
use crate::site::Site;

const SESSION: &str = "session-0123456789abcdef";

async fn open(store: &Arc<Sqlite>, site: &Site) -> (Desk, Running) {
    let rules: gateway::desk::RulesOf = Arc::new(agent::rules_of);
    Desk::open(store.clone(), &keys(), site.log(), Clock::system(), settings(), rules).await.unwrap()
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
    let (desk, running) = open(&first, &site).await;
    commit(&desk, SESSION, json!({ "max_calls": 2 })).await;
    run(read(&desk, SESSION, 1).await, None).await;
    running.stop().await;
    drop((desk, first));
    let second = store(folder.path(), "two").await;
    let (desk, running) = open(&second, &site).await;
    run(read(&desk, SESSION, 2).await, None).await;
    assert_eq!(denied(&read(&desk, SESSION, 3).await), "budget_exceeded");
    assert_on_log_once(&*second, &site).await;
    running.stop().await;
    let mode = std::fs::metadata(folder.path().join("evidence.sqlite")).unwrap().permissions().mode();
    assert_eq!(mode & 0o777, 0o600);
    assert_eq!(story(&*second, SESSION).await.len(), 6);
    assert!(second.backlog().await.unwrap().records == 0);
}
