//! `receipt_required`: no call goes on before the log gave a receipt for its decision.

use std::time::Duration;

use evidence::{EvidenceMethod, EvidenceStore, FailingEvidence, Instances, Memory, Outbox};
use gateway::decision_writer::WriterSettings;
use serde_json::{Value, json};

use crate::agent::{SESSION, commit, denied, read, run};
use crate::setup::{assert_on_log_once, open, settings, summaries, until};
use crate::site::{Site, policy};

fn strict(wait: Duration) -> WriterSettings {
    WriterSettings { receipt_required: true, receipt_wait: wait, ..settings() }
}

/// A log that takes no records.
async fn refusing() -> Site {
    let refusing =
        policy().replace("content_type = \"application/vap-audit+json\"", "content_type = \"text/csv\"");
    Site::with(&refusing, transparency::Limits::default()).await
}

#[tokio::test]
async fn a_call_that_goes_on_has_a_receipt_that_verifies() {
    let site = Site::start().await;
    let store = Memory::new("one");
    let (writer, running) = open(&store, &site, strict(Duration::from_secs(60))).await;
    commit(&writer, SESSION, json!({ "max_calls": 2 })).await;
    let answer = read(&writer, SESSION, 1).await;
    let evidence = answer.evidence.clone().unwrap();
    let receipt = evidence.receipt.clone().unwrap();
    let now = gateway::decision_writer::Clock::system().seconds();
    assert!(verifier::verify_receipt_of(evidence.id, &receipt, &site.trust(), now).is_verified());
    let given: Value = serde_json::from_str(&evidence.to_json()).unwrap();
    let text = data_encoding::BASE64URL_NOPAD.decode(given["receipt"].as_str().unwrap().as_bytes()).unwrap();
    assert_eq!(text, receipt);
    run(answer, None).await;
    running.stop().await;
}

#[tokio::test]
async fn a_call_without_its_receipt_is_denied_and_costs_nothing() {
    let mut site = Site::stopped();
    let store = Memory::new("one");
    let (writer, running) = open(&store, &site, strict(Duration::from_millis(300))).await;
    commit(&writer, SESSION, json!({ "max_calls": 1 })).await;
    for ticket in 0..2 {
        let answer = read(&writer, SESSION, ticket).await;
        assert_eq!(denied(&answer), "receipt_unavailable");
        let stored = store.record(&answer.evidence.unwrap().id).await.unwrap().unwrap();
        assert_eq!(
            stored.record.verdict.as_deref(),
            Some(answer.text.as_bytes()),
            "the denial is the one on record"
        );
    }
    let once = ["decision served", "outcome refused", "decision denied"];
    let expected: Vec<&str> = ["commitment served"].into_iter().chain(once).chain(once).collect();
    assert_eq!(summaries(&store, SESSION).await, expected);
    site.go_on().await;
    until("the log takes records", || async { store.backlog().await.unwrap().records == 0 }).await;
    let answer = read(&writer, SESSION, 3).await;
    assert!(answer.pass.is_some() || denied(&answer) == "receipt_unavailable");
    drop(answer);
    assert_on_log_once(&store, &site).await;
    running.stop().await;
}

#[tokio::test]
async fn a_call_is_denied_at_once_when_the_log_refuses_its_record() {
    let site = refusing().await;
    let store = Memory::new("one");
    let (writer, running) = open(&store, &site, strict(Duration::from_secs(3600))).await;
    commit(&writer, SESSION, json!({ "max_calls": 1 })).await;
    assert_eq!(denied(&read(&writer, SESSION, 1).await), "receipt_unavailable");
    until("they stay", || async { store.backlog().await.unwrap().stuck >= 3 }).await;
    running.stop().await;
}

#[tokio::test]
async fn a_denial_of_a_call_that_another_gateway_settled_names_no_record() {
    let (site, memory) = (refusing().await, Memory::new("one"));
    let store = FailingEvidence::new(memory.clone());
    let shared = WriterSettings { shared: true, ..strict(Duration::from_secs(3600)) };
    let (writer, running) = open(&store, &site, shared.clone()).await;
    store.hold_calls(EvidenceMethod::Stuck);
    let call = async {
        commit(&writer, SESSION, json!({ "max_calls": 1 })).await;
        read(&writer, SESSION, 1).await
    };
    let settled = ["commitment served", "decision served", "outcome unknown"];
    let another_settles_it = async {
        until("it is decided", || async { summaries(&memory, SESSION).await.len() == 2 }).await;
        memory.renew(Duration::ZERO).await.unwrap();
        let (_, other) = open(&memory.another("two"), &Site::stopped(), shared).await;
        until("it is settled", || async {
            memory.renew(Duration::ZERO).await.is_ok() && summaries(&memory, SESSION).await == settled
        })
        .await;
        store.release_calls(EvidenceMethod::Stuck);
        other
    };
    let (answer, other) = tokio::join!(call, another_settles_it);
    assert_eq!(denied(&answer), "receipt_unavailable");
    assert!(answer.evidence.is_none() && answer.verdict.audit_ref.is_none());
    assert_eq!(summaries(&memory, SESSION).await, settled);
    running.stop().await;
    other.stop().await;
}
