//! Databases that fail in every way, logs that are away, and outboxes that are full: nothing is served without evidence, and no
//! evidence is lost or written twice.

use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::{Duration, Instant};

use axum::http::StatusCode;
use client::{Client, Options};
use evidence::{
    DeliveryState, EvidenceMethod, EvidenceStore, FailingEvidence, Fault, Instances, Memory, Outbox,
};
use evidence_postgres::testing::Database;
use gateway::authority::{PositionError, RegistryPositions};
use gateway::decision_writer::{Clock, DecisionWriter, LogConnection, OutboxLimits, RulesOf, WriterSettings};
use roa::registry::{Registry, RegistryDocument};
use roa::signed::Signed;
use scitt::Signer;
use serde_json::json;
use testkit::agentroa;

use crate::agent::{self, SESSION, commit, denied, read, run, try_commit};
use crate::setup::{
    FailingSetup, assert_on_log_once, failing, keys, offline_with, open, open_ahead_at, record, records,
    settings, summaries, until,
};
use crate::site::Site;

#[tokio::test]
async fn a_log_that_was_away_under_load_has_every_decision_once() {
    let mut site = Site::stopped();
    let store = Memory::new("one");
    let (writer, running) = open(&store, &site, settings()).await;
    commit(&writer, SESSION, json!({ "max_calls": 1000 })).await;
    let calls =
        |from: u64| (from..from + 100).map(|ticket| read(&writer, SESSION, ticket)).collect::<Vec<_>>();
    for response in futures::future::join_all(calls(0)).await {
        run(response, None).await;
    }
    site.go_on().await;
    for response in futures::future::join_all(calls(100)).await {
        run(response, None).await;
    }
    site.stop().await;
    for response in futures::future::join_all(calls(200)).await {
        run(response, None).await;
    }
    site.go_on().await;
    assert_on_log_once(&store, &site).await;
    running.stop().await;
    assert_eq!(summaries(&store, SESSION).await.len(), 1 + 300 * 2);
}

#[tokio::test]
async fn records_of_the_right_time_pass_those_of_a_clock_that_was_ahead() {
    const TWO_HOURS: u64 = 2 * 3600 * 1000;
    /// With their outcomes more than one request to the log holds.
    const CALLS: u64 = 140;
    let site = Site::start().await;
    let store = Memory::new("one");
    let (ahead, writer, running) = open_ahead_at(&store, &site, settings()).await;
    ahead.store(TWO_HOURS, Ordering::Relaxed);
    commit(&writer, "session-ahead", json!({ "max_calls": CALLS })).await;
    for ticket in 0..CALLS {
        run(read(&writer, "session-ahead", ticket).await, None).await;
    }
    ahead.store(0, Ordering::Relaxed);
    let now = commit(&writer, SESSION, json!({ "max_calls": 1 })).await.evidence.unwrap().id;
    until("what was made at the right time is on the log", || async {
        matches!(record(&store, &now).await.delivery, DeliveryState::Delivered { .. })
    })
    .await;
    let backlog = store.backlog().await.unwrap();
    assert!(backlog.stuck >= CALLS, "those of the other session wait for their time: {backlog:?}");
    running.stop().await;
}

/// A fail-over that lost the newest commits.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_database_that_was_set_back_is_an_alarm() {
    let (database, site) = (Database::fresh().await, Site::stopped());
    let store = Arc::new(database.store("one").await);
    let rules = Arc::new(agent::rules_of);
    let opened = DecisionWriter::open(store, &keys(), site.log(), Clock::system(), settings(), rules).await;
    let (writer, running) = opened.unwrap();
    commit(&writer, SESSION, json!({ "max_calls": 9 })).await;
    run(read(&writer, SESSION, 0).await, None).await;
    assert_eq!(writer.status().set_back, 0);
    // The triggers would refuse it.
    database
        .run("SET session_replication_role = replica; UPDATE stream SET version = version - 1 WHERE version > 1")
        .await;
    run(read(&writer, SESSION, 1).await, None).await;
    assert!(writer.status().set_back > 0);
    running.stop().await;
}

#[tokio::test]
async fn a_commit_whose_answer_was_lost_happens_once() {
    for fault in [Fault::AppliedWithoutAnswer, Fault::NotApplied] {
        let FailingSetup { memory, store, writer, running } = failing().await;
        commit(&writer, SESSION, json!({ "max_calls": 3 })).await;
        store.fail(EvidenceMethod::Commit, 1, fault);
        store.fail(EvidenceMethod::Happened, 1, Fault::Refused);
        let response = read(&writer, SESSION, 1).await;
        assert_eq!(store.faults_left(), 0);
        assert_eq!(writer.status().doubtful, 1);
        let evidence = response.evidence.clone().unwrap();
        assert_eq!(evidence.seq, 1, "{fault:?}");
        let stored = memory.record(&evidence.id).await.unwrap().unwrap();
        assert_eq!(stored.record.verdict.as_deref(), Some(response.text.as_bytes()));
        store.fail(EvidenceMethod::Commit, 1, fault);
        run(response, None).await;
        until("the call is settled", || async { summaries(&memory, SESSION).await.len() == 3 }).await;
        run(read(&writer, SESSION, 2).await, None).await;
        running.stop().await;
        assert_eq!(summaries(&memory, SESSION).await.len(), 5, "{fault:?}");
    }
}

#[tokio::test]
async fn calls_are_denied_at_once_while_a_commit_is_in_doubt() {
    let FailingSetup { store, writer, running, .. } = failing().await;
    commit(&writer, SESSION, json!({ "max_calls": 2 })).await;
    store.fail(EvidenceMethod::Commit, 1, Fault::AppliedWithoutAnswer);
    let first = tokio::spawn({
        let (writer, store) = (writer.clone(), store.clone());
        async move {
            (1..13).for_each(|nth| store.fail(EvidenceMethod::Happened, nth, Fault::Refused));
            read(&writer, SESSION, 1).await
        }
    });
    until("the commit is in doubt", || async { writer.status().doubtful == 1 }).await;
    until("others are denied", || async {
        let response = read(&writer, SESSION, 2).await;
        response.evidence.is_none() && denied(&response) == "evidence_unavailable"
    })
    .await;
    assert!(first.await.unwrap().pass.is_some(), "it had happened");
    running.stop().await;
}

#[tokio::test]
async fn a_commit_that_fails_three_times_denies_its_call_only() {
    let FailingSetup { memory, store, writer, running } = failing().await;
    commit(&writer, SESSION, json!({ "max_calls": 1 })).await;
    (1..=3).for_each(|nth| store.fail(EvidenceMethod::Commit, nth, Fault::NotApplied));
    assert_eq!(denied(&read(&writer, SESSION, 1).await), "evidence_unavailable");
    assert_eq!((writer.status().doubtful, store.faults_left()), (3, 0));
    run(read(&writer, SESSION, 2).await, None).await;
    running.stop().await;
    let summaries = summaries(&memory, SESSION).await;
    assert_eq!(summaries, ["commitment served", "decision served", "outcome executed"], "nothing was spent");
}

#[tokio::test]
async fn an_overtaken_commit_is_retried_at_short_intervals() {
    /// Waits that double up to a second would last 7 s.
    const TIMES: u64 = 16;
    let FailingSetup { store, writer, running, .. } = failing().await;
    commit(&writer, SESSION, json!({ "max_calls": 1 })).await;
    (1..=TIMES).for_each(|nth| store.fail(EvidenceMethod::Commit, nth, Fault::Overtaken));
    let begun = Instant::now();
    run(read(&writer, SESSION, 1).await, None).await;
    assert!(begun.elapsed() < Duration::from_secs(5), "{:?}", begun.elapsed());
    assert_eq!((writer.status().conflicts, store.faults_left()), (TIMES, 0));
    running.stop().await;
}

#[tokio::test]
async fn a_gateway_stops_although_a_commit_is_in_doubt() {
    let FailingSetup { store, writer, running, .. } = failing().await;
    commit(&writer, SESSION, json!({ "max_calls": 2 })).await;
    store.fail(EvidenceMethod::Commit, 1, Fault::AppliedWithoutAnswer);
    (1..100_000).for_each(|nth| store.fail(EvidenceMethod::Happened, nth, Fault::Refused));
    let first = tokio::spawn({
        let writer = writer.clone();
        async move { read(&writer, SESSION, 1).await }
    });
    until("the commit is in doubt", || async { writer.status().doubtful == 1 }).await;
    running.stop().await;
    assert_eq!(denied(&first.await.unwrap()), "evidence_unavailable");
    assert!(store.faults_left() > 0, "it was still in doubt");
}

#[tokio::test]
async fn a_gateway_denies_calls_and_stops_after_its_database_failed_for_good() {
    let site = Site::stopped();
    let memory = Memory::new("one");
    let store = FailingEvidence::new(memory.clone());
    let (writer, running) = open(&store, &site, settings()).await;
    commit(&writer, SESSION, json!({ "max_calls": 9 })).await;
    let under_way = read(&writer, SESSION, 0).await;
    store.fail(EvidenceMethod::Commit, 1, Fault::AppliedWithoutAnswer);
    store.fail(EvidenceMethod::Happened, 1, Fault::Ended);
    assert_eq!(denied(&read(&writer, SESSION, 1).await), "evidence_unavailable");
    store.break_down(Fault::Ended);
    for ticket in 2..5 {
        let response = read(&writer, SESSION, ticket).await;
        assert_eq!(denied(&response), "evidence_unavailable");
    }
    assert!(writer.status().store_failing.is_some());
    run(under_way, None).await;
    running.stop().await;
    memory.leave().await.unwrap();
    let (_, again) = open(&memory.another("two"), &site, settings()).await;
    until("what was under way is settled", || async {
        summaries(&memory, SESSION).await.iter().filter(|summary| *summary == "outcome unknown").count() == 2
    })
    .await;
    again.stop().await;
}

#[tokio::test]
async fn a_call_without_a_commit_is_denied_and_names_no_record() {
    for (fault, reason) in [(Fault::Refused, "evidence_unavailable"), (Fault::Full, "evidence_backpressure")]
    {
        let FailingSetup { memory, store, writer, running } = failing().await;
        commit(&writer, SESSION, json!({ "max_calls": 1 })).await;
        store.break_down(fault);
        for ticket in 0..3 {
            let response = read(&writer, SESSION, ticket).await;
            assert_eq!(denied(&response), reason);
            assert!(response.evidence.is_none() && response.verdict.audit_ref.is_none());
        }
        assert!(writer.status().store_failing.is_some());
        store.mend();
        run(read(&writer, SESSION, 9).await, None).await;
        assert!(writer.status().store_failing.is_none());
        running.stop().await;
        let summaries = summaries(&memory, SESSION).await;
        assert_eq!(
            summaries,
            ["commitment served", "decision served", "outcome executed"],
            "nothing was spent"
        );
    }
}

#[tokio::test]
async fn an_item_that_changes_nothing_is_not_answered_before_the_changes_that_it_has_read() {
    let FailingSetup { store, writer, running, .. } = failing().await;
    commit(&writer, SESSION, json!({ "max_calls": 1 })).await;
    let signed = Signed::<RegistryDocument>::parse(&agentroa::registry(1, |_| ())).unwrap();
    let operators = [agentroa::key_of("operator").public_key().clone()];
    let registry = Registry::open(&signed, &operators).unwrap();
    store.fail(EvidenceMethod::Commit, 1, Fault::Refused);
    let (first, second) = tokio::join!(biased; writer.raise(&registry), writer.raise(&registry));
    assert_eq!(store.faults_left(), 0);
    assert!(matches!(first, Err(PositionError::NotStored(_))), "{first:?}");
    assert!(matches!(second, Err(PositionError::NotStored(_))), "{second:?}");
    let before = writer.status().commits;
    let (first, second) = tokio::join!(biased; writer.raise(&registry), writer.raise(&registry));
    assert_eq!((first, second), (Ok(()), Ok(())));
    assert_eq!(writer.status().commits, before + 1);
    store.fail(EvidenceMethod::Commit, 1, Fault::Refused);
    let (call, stored) = tokio::join!(biased; read(&writer, SESSION, 1), writer.raise(&registry));
    assert_eq!(denied(&call), "evidence_unavailable");
    assert_eq!(stored, Ok(()), "it has read nothing that the call changes");
    running.stop().await;
}

#[tokio::test]
async fn an_outcome_is_retried_until_it_is_committed() {
    let FailingSetup { memory, store, writer, running } = failing().await;
    commit(&writer, SESSION, json!({ "max_calls": 1 })).await;
    let response = read(&writer, SESSION, 1).await;
    store.break_down(Fault::Full);
    run(response, None).await;
    until("a commit has failed", || async { writer.status().store_failing.is_some() }).await;
    store.mend();
    until("the call is settled", || async { summaries(&memory, SESSION).await.len() == 3 }).await;
    running.stop().await;
}

#[tokio::test]
async fn a_commitment_counts_only_once_it_is_committed() {
    let FailingSetup { store, writer, running, .. } = failing().await;
    store.break_down(Fault::Refused);
    assert_eq!(
        denied(&try_commit(&writer, SESSION, json!({ "max_calls": 1 })).await),
        "evidence_unavailable"
    );
    store.mend();
    assert_eq!(denied(&read(&writer, SESSION, 1).await), "no_commitment");
    commit(&writer, SESSION, json!({ "max_calls": 1 })).await;
    running.stop().await;
}

#[tokio::test]
async fn a_full_outbox_denies_calls_until_the_log_takes_records() {
    let mut site = Site::stopped();
    let store = Memory::new("one");
    let outbox = OutboxLimits { records: 5, ..OutboxLimits::default() };
    let (writer, running) = open(&store, &site, WriterSettings { outbox, ..settings() }).await;
    commit(&writer, SESSION, json!({ "max_calls": 100 })).await;
    let served = read(&writer, SESSION, 1).await;
    let others = [read(&writer, SESSION, 2).await, read(&writer, SESSION, 3).await];
    assert!(served.pass.is_some() && others.iter().all(|response| response.pass.is_some()));
    let response = read(&writer, SESSION, 4).await;
    assert_eq!(denied(&response), "evidence_backpressure");
    assert!(response.evidence.is_none());
    assert!(writer.status().backpressure.is_some());
    run(served, None).await;
    until("what ran is recorded all the same", || async { summaries(&store, SESSION).await.len() == 5 })
        .await;
    site.go_on().await;
    until("there is room again", || async { writer.status().backpressure.is_none() }).await;
    assert!(read(&writer, SESSION, 5).await.pass.is_some());
    drop(others);
    running.stop().await;
}

#[tokio::test]
async fn an_old_record_in_the_outbox_denies_messages_too() {
    let outbox = OutboxLimits { age: Duration::from_secs(1), ..OutboxLimits::default() };
    let (_, writer, running) = offline_with(WriterSettings { outbox, ..settings() }).await;
    until("it is too old", || async {
        let response = try_commit(&writer, SESSION, json!({ "max_calls": 1 })).await;
        response
            .verdict
            .verification
            .reason
            .is_some_and(|reason| reason.to_string() == "evidence_backpressure")
    })
    .await;
    running.stop().await;
}

#[tokio::test]
async fn a_record_without_a_valid_receipt_stays_in_the_outbox() {
    let listener = tokio::net::TcpListener::bind("127.0.0.1:0").await.unwrap();
    let url = format!("http://{}", listener.local_addr().unwrap());
    let answer = || async { (StatusCode::CREATED, [("location", "/entries/a")], "not a receipt") };
    tokio::spawn(async move { axum::serve(listener, axum::Router::new().fallback(answer)).await.unwrap() });
    let store = Memory::new("one");
    let client =
        Client::new(&url, Options { patience: Duration::from_millis(200), ..Options::default() }).unwrap();
    let log = LogConnection { url, client, trust: None };
    let rules: RulesOf = Arc::new(|_| None);
    let keys = keys();
    let opened =
        DecisionWriter::open(Arc::new(store.clone()), &keys, log, Clock::system(), settings(), rules);
    let (writer, running) = opened.await.unwrap();
    until("the status says that the log is silent", || async { writer.status().log_silent.is_some() }).await;
    assert_eq!(store.backlog().await.unwrap().records, 1);
    running.stop().await;
}

#[tokio::test]
async fn every_decision_has_one_record_and_one_outcome_whatever_commit_fails() {
    let mut site = Site::stopped();
    let memory = Memory::new("one");
    let store = FailingEvidence::new(memory.clone());
    let (writer, running) = open(&store, &site, settings()).await;
    commit(&writer, SESSION, json!({ "max_calls": 1000 })).await;
    site.go_on().await;
    let faults = [Fault::Refused, Fault::AppliedWithoutAnswer, Fault::Full, Fault::NotApplied];
    let (mut served, mut unrecorded) = (0, 0);
    for round in 0..60_u64 {
        let fault = faults[usize::try_from(round % 4).unwrap()];
        if store.faults_left() == 0 {
            store.fail(EvidenceMethod::Commit, round % 3 + 1, fault);
        }
        let calls = (0..4).map(|call| read(&writer, SESSION, round * 10 + call));
        for response in futures::future::join_all(calls).await {
            match response.pass.is_some() {
                true => {
                    served += 1;
                    run(response, None).await;
                }
                false => unrecorded += u64::from(response.evidence.is_none()),
            }
        }
    }
    assert_on_log_once(&memory, &site).await;
    running.stop().await;
    let summaries = summaries(&memory, SESSION).await;
    let count = |what: &str| summaries.iter().filter(|summary| *summary == what).count();
    assert!(unrecorded > 0 && served > 0, "{served} served, {unrecorded} without a record");
    assert_eq!((count("decision served"), count("outcome executed")), (served, served));
    assert_eq!(records(&memory, SESSION).await.len(), 1 + 2 * served);
}
