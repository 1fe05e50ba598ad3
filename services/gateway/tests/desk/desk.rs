//! Desks over stores, and waiting for what they bring about.

use std::sync::Arc;
use std::time::Duration;

use evidence::{EvidenceStore, Stored};
use gateway::desk::{Clock, Desk, Keys, RulesOf, Running, Settings};
use merkle::EntryDigest;
use registration::vap::{AuditKind, AuditRecord};
use scitt::SignedStatement;
use serde_json::Value;

use crate::agent;
use crate::site::Site;

pub fn keys() -> Keys {
    Keys {
        evidence: Arc::new(testkit::gateway()),
        verdict: Arc::new(testkit::verifier()),
        jwk_set: testkit::jwk_set_json(),
    }
}

pub fn settings() -> Settings {
    Settings::of(testkit::GATEWAY)
}

pub async fn open(store: &(impl EvidenceStore + Clone), site: &Site, settings: Settings) -> (Desk, Running) {
    open_under(store, site, settings, Arc::new(agent::rules_of)).await
}

/// The same, under other rules.
pub async fn open_under(
    store: &(impl EvidenceStore + Clone),
    site: &Site,
    settings: Settings,
    rules: RulesOf,
) -> (Desk, Running) {
    Desk::open(Arc::new(store.clone()), &keys(), site.log(), Clock::system(), settings, rules).await.unwrap()
}

/// Until it is so. The deadline is generous: a slow machine is no failure.
pub async fn until<F: Future<Output = bool>>(what: &str, so: impl Fn() -> F) {
    for _ in 0..1200 {
        if so().await {
            return;
        }
        tokio::time::sleep(Duration::from_millis(50)).await;
    }
    panic!("never: {what}");
}

pub async fn until_delivered(store: &impl EvidenceStore) {
    until("everything is on the log", || async { store.backlog().await.unwrap().records == 0 }).await;
}

/// All records of a stream, in order and without gaps; each statement is what its id says, and reads as a record.
pub async fn records(store: &impl EvidenceStore, stream: &str) -> Vec<(Stored, AuditRecord)> {
    let stored = store.records(stream, 0, 10_000).await.unwrap();
    let read = |(seq, stored): (usize, Stored)| {
        let statement = SignedStatement::parse(stored.record.statement.clone()).unwrap();
        assert_eq!(statement.digest(), stored.record.id);
        let record = AuditRecord::read(statement.payload().unwrap()).unwrap();
        record.agrees(testkit::GATEWAY, stream).unwrap();
        assert_eq!((stored.record.seq, record.seq), (seq as u64, seq as u64), "no number is missing");
        assert_eq!(record.kind.as_str(), stored.record.kind.as_str());
        (stored, record)
    };
    stored.into_iter().enumerate().map(read).collect()
}

/// The kinds of a stream's records, with verdicts and statuses.
pub async fn story(store: &impl EvidenceStore, stream: &str) -> Vec<String> {
    let records = records(store, stream).await;
    let say = |(_, record): &(Stored, AuditRecord)| match &record.kind {
        AuditKind::Outcome(outcome) => format!("outcome {}", outcome.status.as_str()),
        AuditKind::Denials(denials) => format!("denials {:?}", denials.denied),
        AuditKind::Tools(tools) => format!("tools {} {:?}", tools.event.as_str(), tools.tools),
        AuditKind::Closed => "closed".to_owned(),
        kind => format!("{} {}", kind.as_str(), kind.decided().unwrap().verdict.as_str()),
    };
    records.iter().map(say).collect()
}

/// Every stream's records are on the log, each once, and nothing else is but the policy.
pub async fn assert_on_log_once(store: &impl EvidenceStore, site: &Site) {
    until("one leaf for each record, and the policy's", || async {
        until_delivered(store).await;
        let size = site.size().await;
        size == all(store).await.len() as u64 + 1
    })
    .await;
    let client = site.client();
    for stored in all(store).await {
        let statement = client.statement(&stored.record.id).await.unwrap();
        assert_eq!(statement.bytes(), &stored.record.statement);
    }
}

/// All records of all streams.
pub async fn all(store: &impl EvidenceStore) -> Vec<Stored> {
    let mut all = Vec::new();
    for listed in store.list(None, 10_000).await.unwrap() {
        all.extend(store.records(&listed.stream, 0, 10_000).await.unwrap());
    }
    all
}

/// The payload of an entry.
pub fn payload(stored: &Stored) -> Value {
    let statement = SignedStatement::parse(stored.record.statement.clone()).unwrap();
    serde_json::from_slice(statement.payload().unwrap()).unwrap()
}

pub async fn record(store: &impl EvidenceStore, id: &EntryDigest) -> Stored {
    store.record(id).await.unwrap().unwrap()
}
