//! The keys on the log, and what becomes of records that the log refuses or that wait for it.

use evidence::{DeliveryState, EvidenceStore, Memory, Outbox, RecordKind};
use gateway::decision_writer::{Clock, WriterSettings};
use scitt::Signer;
use serde_json::json;

use crate::setup::{open, until, until_delivered};
use crate::site::{self, Site};

#[tokio::test]
async fn the_keys_are_on_the_log_once_however_often_the_gateway_starts() {
    let site = Site::start().await;
    let store = Memory::new("first");
    let (_, running) = open(&store, &site, WriterSettings::of(testkit::GATEWAY)).await;
    until_delivered(&store).await;
    running.stop().await;
    let store = store.another("second");
    let (_, running) = open(&store, &site, WriterSettings::of(testkit::GATEWAY)).await;
    running.stop().await;
    let records = store.records("unbound:.keys", 0, 10).await.unwrap();
    assert_eq!(records.len(), 1);
    assert_eq!(records[0].record.kind, RecordKind::Keys);
    let DeliveryState::Delivered { leaf_index: Some(_), receipt: Some(receipt) } = &records[0].delivery
    else {
        panic!("{:?}", records[0].delivery)
    };
    let statement = site.client().statement(&records[0].record.id).await.unwrap();
    assert_eq!(statement.bytes(), &records[0].record.statement);
    assert!(
        verifier::verify_receipt(&statement, receipt, &site.trust(), Clock::system().seconds()).is_verified()
    );
}

#[tokio::test]
async fn keys_that_return_are_published_again() {
    let site = Site::start().await;
    let store = Memory::new("only");
    let (writer, running) = open(&store, &site, WriterSettings::of(testkit::GATEWAY)).await;
    let other = json!({ "keys": [testkit::operator().public_key().to_jwk().to_value()] });
    let mut named = other.clone();
    named["keys"][0]["kid"] = "other".into();
    assert!(writer.publish(&named).await);
    assert!(!writer.publish(&named).await);
    assert!(writer.publish(&testkit::jwk_set_json()).await);
    until_delivered(&store).await;
    running.stop().await;
}

#[tokio::test]
async fn a_record_that_the_log_refuses_stays_and_is_counted() {
    let policy =
        site::policy().replace("content_type = \"application/jwk-set+json\"", "content_type = \"text/csv\"");
    let site = Site::with(&policy, transparency::Limits::default()).await;
    let store = Memory::new("only");
    let (writer, running) = open(&store, &site, WriterSettings::of(testkit::GATEWAY)).await;
    until("the record is put aside", || async { store.backlog().await.unwrap().stuck == 1 }).await;
    until("the status counts it", || async {
        writer.status().refused == 1 && writer.status().backlog.stuck == 1
    })
    .await;
    assert_eq!(store.backlog().await.unwrap().records, 1, "it stays in the outbox");
    running.stop().await;
}

#[tokio::test]
async fn a_log_gets_every_record_when_it_is_back() {
    let mut site = Site::stopped();
    let store = Memory::new("only");
    let (writer, running) = open(&store, &site, WriterSettings::of(testkit::GATEWAY)).await;
    until("the status says that the log is silent", || async { writer.status().log_silent.is_some() }).await;
    assert_eq!(writer.status().backlog.records, 1);
    site.go_on().await;
    until_delivered(&store).await;
    until("the status says that the log answers", || async { writer.status().log_silent.is_none() }).await;
    running.stop().await;
}
