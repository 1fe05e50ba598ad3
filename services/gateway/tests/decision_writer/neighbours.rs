//! What one agent does, or what is wrong with one session, is not an other's concern.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use bytes::Bytes;
use evidence::{EvidenceMethod, EvidenceStore, FailingEvidence, Fault, Memory, StreamEditor};
use gateway::decision_writer::{Clock, DecisionAnswer, DecisionWriter, WriterKeys, WriterSettings};
use scitt::{Algorithm, PublicKey, SignError, Signer, SigningKey};
use serde_json::json;
use tokio::task::JoinHandle;

use crate::agent::{self, SESSION, call, commit, denied, read, run};
use crate::setup::{keys, offline, offline_with, open, settings, summaries, until};
use crate::site::Site;

const OTHER: &str = "session-fedcba9876543210";
/// As many calls of a session may wait for what another one costs.
const WAITING: u64 = 16;

fn later(writer: &DecisionWriter, session: &'static str, ticket: u64) -> JoinHandle<DecisionAnswer> {
    let writer = writer.clone();
    tokio::spawn(async move { read(&writer, session, ticket).await })
}

async fn waiting(writer: &DecisionWriter, count: u64) {
    until("they wait", || async { writer.status().waiting_for_cost == count }).await;
}

#[tokio::test]
async fn calls_that_wait_for_a_cost_are_limited_per_session() {
    let (store, writer, running) = offline().await;
    commit(&writer, SESSION, json!({ "max_calls": 99, "limits": { "usd": 99 } })).await;
    commit(&writer, OTHER, json!({ "max_calls": 9 })).await;
    let first = read(&writer, SESSION, 0).await;
    let others: Vec<_> = (1..=WAITING).map(|ticket| later(&writer, SESSION, ticket)).collect();
    waiting(&writer, WAITING).await;
    for ticket in 100..200 {
        assert_eq!(denied(&read(&writer, SESSION, ticket).await), "rate_limited");
    }
    run(read(&writer, OTHER, 1).await, None).await;
    run(first, Some(r#"{"usd":1}"#)).await;
    for waited in others {
        run(waited.await.unwrap(), Some(r#"{"usd":1}"#)).await;
    }
    running.stop().await;
    let summaries = summaries(&store, SESSION).await;
    let served = summaries.iter().filter(|summary| *summary == "decision served").count();
    assert_eq!(served, 17, "whoever waited had its turn");
}

#[tokio::test]
async fn long_calls_that_wait_are_limited_by_their_length() {
    let (_, writer, running) = offline().await;
    commit(&writer, SESSION, json!({ "max_calls": 99, "limits": { "usd": 99 } })).await;
    let first = read(&writer, SESSION, 0).await;
    let long = json!({ "text": "x".repeat(600 << 10) });
    let waits = tokio::spawn({
        let (writer, job) = (writer.clone(), agent::job(SESSION, "crm.read", &long));
        async move { call(&writer, job).await }
    });
    waiting(&writer, 1).await;
    assert_eq!(denied(&call(&writer, agent::job(SESSION, "crm.read", &long)).await), "rate_limited");
    run(first, Some(r#"{"usd":1}"#)).await;
    run(waits.await.unwrap(), Some(r#"{"usd":1}"#)).await;
    running.stop().await;
}

#[tokio::test]
async fn a_waiting_call_is_denied_in_time_under_load() {
    let impatient = WriterSettings { wait_for_cost: Duration::from_secs(1), ..settings() };
    let (_, writer, running) = offline_with(impatient).await;
    commit(&writer, SESSION, json!({ "max_calls": 9, "limits": { "usd": 9 } })).await;
    commit(&writer, OTHER, json!({ "max_calls": 1_000_000 })).await;
    let first = read(&writer, SESSION, 0).await;
    let waits = later(&writer, SESSION, 1);
    waiting(&writer, 1).await;
    let busy: Vec<_> = (0..8)
        .map(|_| {
            let writer = writer.clone();
            tokio::spawn(async move {
                loop {
                    drop(read(&writer, OTHER, 1).await);
                }
            })
        })
        .collect();
    assert_eq!(denied(&waits.await.unwrap()), "evidence_unavailable");
    busy.iter().for_each(JoinHandle::abort);
    drop(first);
    running.stop().await;
}

#[tokio::test]
async fn a_call_may_wait_for_a_cost_longer_than_a_decision_takes() {
    let hurried = WriterSettings { decide_time: Duration::from_millis(600), ..settings() };
    let (_, writer, running) = offline_with(hurried).await;
    commit(&writer, SESSION, json!({ "max_calls": 9, "limits": { "usd": 9 } })).await;
    let first = read(&writer, SESSION, 0).await;
    let waits = later(&writer, SESSION, 1);
    waiting(&writer, 1).await;
    tokio::time::sleep(Duration::from_secs(3)).await;
    run(first, Some(r#"{"usd":1}"#)).await;
    run(waits.await.unwrap(), Some(r#"{"usd":1}"#)).await;
    running.stop().await;
}

/// Makes what the database keeps of a session something that nobody can read, as another version might.
async fn damage(store: &Memory, session: &str) {
    let kept = EvidenceStore::streams(store, &[session]).await.unwrap().remove(0).unwrap();
    let unreadable = Bytes::from_static(br#"{"of":"another version"}"#);
    StreamEditor::amend(store, session, kept.version, &unreadable).await.unwrap();
}

#[tokio::test]
async fn an_unreadable_session_has_only_its_own_calls_denied() {
    let (store, writer, running) = offline().await;
    commit(&writer, SESSION, json!({ "max_calls": 9 })).await;
    commit(&writer, OTHER, json!({ "max_calls": 9 })).await;
    let under_way = read(&writer, SESSION, 0).await;
    damage(&store, SESSION).await;
    let (damaged, other) = tokio::join!(read(&writer, SESSION, 1), read(&writer, OTHER, 1));
    assert_eq!(denied(&damaged), "evidence_unavailable");
    run(other, None).await;
    // Its outcome is retried from now on, for ever.
    run(under_way, None).await;
    for ticket in 2..5 {
        assert_eq!(denied(&read(&writer, SESSION, ticket).await), "evidence_unavailable");
        run(read(&writer, OTHER, ticket).await, None).await;
    }
    running.stop().await;
    let summaries = summaries(&store, OTHER).await;
    assert_eq!(summaries.iter().filter(|summary| *summary == "outcome executed").count(), 4);
}

#[tokio::test]
async fn invented_sessions_leave_real_ones_in_memory() {
    let site = Site::stopped();
    let store = FailingEvidence::new(Memory::new("one"));
    let few = WriterSettings { sessions_in_memory: 6, ..settings() };
    let (writer, running) = open(&store, &site, few).await;
    commit(&writer, SESSION, json!({ "max_calls": 9 })).await;
    run(read(&writer, SESSION, 1).await, None).await;
    for ticket in 0..20 {
        let made_up = format!("session-made-up-{ticket:08}");
        assert_eq!(denied(&read(&writer, &made_up, ticket).await), "no_commitment");
    }
    store.fail(EvidenceMethod::Streams, 1, Fault::Refused);
    run(read(&writer, SESSION, 2).await, None).await;
    assert_eq!(store.faults_left(), 1, "nothing had to be read again");
    running.stop().await;
}

/// Signs, but for a while when told to.
struct Moody {
    key: SigningKey,
    fails: Arc<AtomicUsize>,
}

impl Signer for Moody {
    fn algorithm(&self) -> Algorithm {
        self.key.algorithm()
    }

    fn public_key(&self) -> &PublicKey {
        self.key.public_key()
    }

    fn sign(&self, message: &[u8]) -> Result<Vec<u8>, SignError> {
        let fails = self.fails.fetch_update(Ordering::Relaxed, Ordering::Relaxed, |left| left.checked_sub(1));
        if fails.is_ok() {
            return Err(SignError::Failed);
        }
        self.key.sign(message)
    }
}

#[tokio::test]
async fn an_outcome_survives_a_signer_that_fails_for_a_while() {
    let site = Site::stopped();
    let store = Memory::new("one");
    let fails = Arc::new(AtomicUsize::new(0));
    let evidence = Arc::new(Moody { key: testkit::gateway(), fails: fails.clone() });
    let rules: gateway::decision_writer::RulesOf = Arc::new(agent::rules_of);
    let keys = WriterKeys { evidence, ..keys() };
    let opened =
        DecisionWriter::open(Arc::new(store.clone()), &keys, site.log(), Clock::system(), settings(), rules);
    let (writer, running) = opened.await.unwrap();
    commit(&writer, SESSION, json!({ "max_calls": 9 })).await;
    let served = read(&writer, SESSION, 1).await;
    fails.store(2, Ordering::Relaxed);
    run(served, None).await;
    until("it is recorded all the same", || async {
        summaries(&store, SESSION).await.iter().any(|summary| summary == "outcome executed")
    })
    .await;
    assert_eq!(fails.load(Ordering::Relaxed), 0);
    running.stop().await;
}
