//! Decision writers over stores, and waiting for what they record.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use evidence::{EvidenceStore, FailingEvidence, Memory, StoredRecord};
use gateway::decision_writer::{
    AdmittedCall, Clock, DecisionWriter, HeldRequest, RulesOf, RunningWriter, WriterKeys, WriterSettings,
};
use gateway::upstream::{ClientName, Exchange};
use merkle::EntryDigest;
use scitt::SignedStatement;
use serde_json::Value;
use vap::audit::{AuditKind, AuditRecord};

use crate::agent;
use crate::site::Site;

pub fn keys() -> WriterKeys {
    WriterKeys {
        evidence: Arc::new(testkit::gateway()),
        verdict: Arc::new(testkit::verifier()),
        jwk_set: testkit::jwk_set_json(),
    }
}

/// Gives out the request of an admitted call, as if it was sent.
pub fn release_request(pass: &mut AdmittedCall) {
    let request = Exchange {
        method: http::Method::POST,
        headers: http::HeaderMap::new(),
        body: bytes::Bytes::new(),
        client: ClientName::default(),
        time_limit: None,
    };
    drop(pass.release(HeldRequest::new(request)));
}

pub fn settings() -> WriterSettings {
    WriterSettings::of(testkit::GATEWAY)
}

pub async fn open(
    store: &(impl EvidenceStore + Clone),
    site: &Site,
    settings: WriterSettings,
) -> (DecisionWriter, RunningWriter) {
    open_under(store, site, settings, Arc::new(agent::rules_of)).await
}

/// The same, under other rules.
pub async fn open_under(
    store: &(impl EvidenceStore + Clone),
    site: &Site,
    settings: WriterSettings,
    rules: RulesOf,
) -> (DecisionWriter, RunningWriter) {
    DecisionWriter::open(Arc::new(store.clone()), &keys(), site.log(), Clock::system(), settings, rules)
        .await
        .unwrap()
}

/// A writer over a store in memory, at a log that does not run.
pub async fn offline() -> (Memory, DecisionWriter, RunningWriter) {
    offline_with(settings()).await
}

/// The same with other settings.
pub async fn offline_with(settings: WriterSettings) -> (Memory, DecisionWriter, RunningWriter) {
    let store = Memory::new("one");
    let (writer, running) = open(&store, &Site::stopped(), settings).await;
    (store, writer, running)
}

/// A writer over a store that a test makes fail, at a log that does not run.
pub struct FailingSetup {
    /// What the store really holds.
    pub memory: Memory,
    pub store: FailingEvidence,
    pub writer: DecisionWriter,
    pub running: RunningWriter,
}

pub async fn failing() -> FailingSetup {
    let memory = Memory::new("one");
    let store = FailingEvidence::new(memory.clone());
    let (writer, running) = open(&store, &Site::stopped(), settings()).await;
    FailingSetup { memory, store, writer, running }
}

/// A writer whose clock a test sets ahead, by so many milliseconds, at a log that does not run.
pub async fn open_ahead(
    store: &(impl EvidenceStore + Clone),
    settings: WriterSettings,
) -> (Arc<AtomicU64>, DecisionWriter, RunningWriter) {
    open_ahead_at(store, &Site::stopped(), settings).await
}

/// The same at this log.
pub async fn open_ahead_at(
    store: &(impl EvidenceStore + Clone),
    site: &Site,
    settings: WriterSettings,
) -> (Arc<AtomicU64>, DecisionWriter, RunningWriter) {
    let ahead = Arc::new(AtomicU64::new(0));
    let added = ahead.clone();
    let clock = Clock::of(move || Clock::system().milliseconds() + added.load(Ordering::Relaxed));
    let (store, rules) = (Arc::new(store.clone()), Arc::new(agent::rules_of));
    let opened = DecisionWriter::open(store, &keys(), site.log(), clock, settings, rules).await;
    let (writer, running) = opened.unwrap();
    (ahead, writer, running)
}

/// Waits until a condition holds. The deadline is generous: a slow machine is not a failure.
pub async fn until<F: Future<Output = bool>>(condition: &str, holds: impl Fn() -> F) {
    for _ in 0..1200 {
        if holds().await {
            return;
        }
        tokio::time::sleep(Duration::from_millis(50)).await;
    }
    panic!("waited in vain until {condition}");
}

pub async fn until_delivered(store: &impl EvidenceStore) {
    until("everything is on the log", || async { store.backlog().await.unwrap().records == 0 }).await;
}

/// All records of a stream, in order and without gaps; each statement is what its id says, and reads as a record.
pub async fn records(store: &impl EvidenceStore, stream: &str) -> Vec<(StoredRecord, AuditRecord)> {
    let stored = store.records(stream, 0, 10_000).await.unwrap();
    let read = |(seq, stored): (usize, StoredRecord)| {
        let statement = SignedStatement::parse(stored.record.statement.clone()).unwrap();
        assert_eq!(statement.digest(), stored.record.id);
        let record = AuditRecord::read(statement.payload().unwrap()).unwrap();
        assert_eq!((record.gateway.as_str(), record.stream.as_str()), (testkit::GATEWAY, stream));
        assert_eq!((stored.record.seq, record.seq), (seq as u64, seq as u64), "no number is missing");
        assert_eq!(record.kind.as_str(), stored.record.kind.as_str());
        (stored, record)
    };
    stored.into_iter().enumerate().map(read).collect()
}

/// A line for each record of a stream: its kind with its verdict or status, as in `decision served`.
pub async fn summaries(store: &impl EvidenceStore, stream: &str) -> Vec<String> {
    let records = records(store, stream).await;
    let say = |(_, record): &(StoredRecord, AuditRecord)| match &record.kind {
        AuditKind::Outcome(outcome) => format!("outcome {}", outcome.status.as_str()),
        AuditKind::Denials(denials) => format!("denials {:?}", denials.denied),
        AuditKind::Tools(tools) => {
            let names: Vec<_> = tools.tools.iter().filter_map(|tool| tool.tool.as_deref()).collect();
            format!("tools {} {names:?}", tools.event.as_str())
        }
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
pub async fn all(store: &impl EvidenceStore) -> Vec<StoredRecord> {
    let mut all = Vec::new();
    for listed in store.list(None, 10_000).await.unwrap() {
        all.extend(store.records(&listed.stream, 0, 10_000).await.unwrap());
    }
    all
}

/// The payload of an entry.
pub fn payload(stored: &StoredRecord) -> Value {
    let statement = SignedStatement::parse(stored.record.statement.clone()).unwrap();
    serde_json::from_slice(statement.payload().unwrap()).unwrap()
}

pub async fn record(store: &impl EvidenceStore, id: &EntryDigest) -> StoredRecord {
    store.record(id).await.unwrap().unwrap()
}
