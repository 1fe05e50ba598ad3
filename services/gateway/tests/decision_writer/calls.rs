//! A call from its commitment to its outcome on the log.

use std::sync::Arc;

use admission::rules::{Posture, Rules};
use evidence::{EvidenceMethod, EvidenceStore, Memory};
use gateway::decision_writer::WriterSettings;
use jose::jws::Jws;
use scitt::Signer;
use serde_json::{Value, json};
use vap::glob::Pattern;
use vap::record_key::RecordKey;

use crate::agent::{self, SESSION, call, commit, denied, job_without_session, read, run};
use crate::setup::{
    FailingSetup, assert_on_log_once, failing, offline, open, open_under, payload, record, records, settings,
    summaries, until,
};
use crate::site::Site;

#[tokio::test]
async fn every_decision_and_its_outcome_is_on_the_log_once() {
    let site = Site::start().await;
    let store = Memory::new("one");
    let (writer, running) = open(&store, &site, settings()).await;
    commit(&writer, SESSION, json!({ "max_calls": 2 })).await;
    run(read(&writer, SESSION, 1).await, None).await;
    run(read(&writer, SESSION, 2).await, None).await;
    assert_eq!(denied(&read(&writer, SESSION, 3).await), "budget_exceeded");
    assert_eq!(denied(&call(&writer, agent::job(SESSION, "delete_all", &json!({}))).await), "scope_escape");
    running.stop().await;
    let (_, again) = open(&store.another("two"), &site, settings()).await;
    assert_on_log_once(&store, &site).await;
    again.stop().await;
    let mut answer = summaries(&store, SESSION).await;
    answer.sort_unstable();
    assert_eq!(
        answer,
        [
            "commitment served",
            "decision denied",
            "decision denied",
            "decision served",
            "decision served",
            "outcome executed",
            "outcome executed",
        ]
    );
}

#[tokio::test]
async fn a_returned_verdict_is_the_persisted_one_byte_for_byte() {
    let site = Site::stopped();
    let store = Memory::new("one");
    let (writer, running) = open(&store, &site, settings()).await;
    commit(&writer, SESSION, json!({ "max_calls": 2 })).await;
    let answer = read(&writer, SESSION, 1).await;
    let evidence = answer.evidence.as_ref().unwrap();
    let stored = record(&store, &evidence.id).await;
    assert_eq!(stored.record.verdict.as_deref(), Some(answer.text.as_bytes()));
    assert_eq!((stored.record.seq, evidence.seq), (1, 1));
    let wire: Value = serde_json::from_str(&answer.text).unwrap();
    assert_eq!(wire["audit_ref"], format!("{}/entries/{}", site.url(), stored.record.id));
    let in_record = payload(&stored);
    assert!(in_record.get("audit_ref").is_none() && in_record.get("signature").is_none());
    drop(answer);
    running.stop().await;
}

#[tokio::test]
async fn a_verdict_is_signed_by_the_verdict_key_over_all_of_it() {
    let (_, writer, running) = offline().await;
    commit(&writer, SESSION, json!({ "max_calls": 2 })).await;
    let answer = read(&writer, SESSION, 1).await;
    let mut wire: Value = serde_json::from_str(&answer.text).unwrap();
    let signature = wire.as_object_mut().unwrap().remove("signature").unwrap();
    let over = jose::jcs::canonical(&wire);
    let jws = Jws::open(signature.as_str().unwrap(), &over, &["req"]).unwrap();
    testkit::verifier().public_key().verify_jws(&jws).unwrap();
    assert!(testkit::gateway().public_key().verify_jws(&jws).is_err(), "not the evidence key");
    drop(answer);
    running.stop().await;
}

#[tokio::test]
async fn a_record_key_opens_its_own_record_only() {
    let (store, writer, running) = offline().await;
    commit(&writer, SESSION, json!({ "max_calls": 9 })).await;
    let (first, second) = (read(&writer, SESSION, 1).await, read(&writer, SESSION, 2).await);
    let key = |answer: &gateway::decision_writer::DecisionAnswer| {
        let given: Value = serde_json::from_str(&answer.evidence.as_ref().unwrap().to_json()).unwrap();
        RecordKey::from_text(given["key"].as_str().unwrap()).unwrap()
    };
    let committed =
        |id| async move { payload(&record(&store.clone(), &id).await)["committed"]["rationale"].clone() };
    let in_first = committed(first.evidence.as_ref().unwrap().id).await;
    let rationale = br#""the ticket says so""#;
    assert_eq!(in_first, key(&first).commit("rationale", rationale));
    assert_ne!(in_first, key(&second).commit("rationale", rationale));
    drop((first, second));
    running.stop().await;
}

#[tokio::test]
async fn confidential_text_stays_out_of_statements() {
    let (store, writer, running) = offline().await;
    commit(&writer, SESSION, json!({ "max_calls": 9 })).await;
    run(call(&writer, agent::job(SESSION, "crm.read", &json!({ "secret": "hunter2" }))).await, None).await;
    running.stop().await;
    for (stored, _) in records(&store, SESSION).await {
        let text = String::from_utf8_lossy(&stored.record.statement).into_owned();
        for said in ["hunter2", "SUP-9931", "the ticket says so", "done", "mcp-session-1"] {
            assert!(!text.contains(said), "{said} is in {text}");
        }
    }
}

#[tokio::test]
async fn a_call_without_vap_is_recorded_outside_any_session() {
    let (store, writer, running) = offline().await;
    assert_eq!(
        denied(&call(&writer, job_without_session("/mcp", "crm.read", &json!({}))).await),
        "no_envelope"
    );
    run(call(&writer, job_without_session(agent::ADVISORY, "crm.read", &json!({}))).await, None).await;
    running.stop().await;
    assert_eq!(
        summaries(&store, "unbound:one").await,
        ["decision denied", "decision served", "outcome executed", "closed"]
    );
}

#[tokio::test]
async fn concurrent_callers_spend_exactly_what_was_agreed() {
    let (store, writer, running) = offline().await;
    commit(&writer, SESSION, json!({ "max_calls": 20 })).await;
    let calls = (0..60).map(|ticket| {
        let writer = writer.clone();
        tokio::spawn(async move {
            let answer = read(&writer, SESSION, ticket).await;
            match answer.pass.is_some() {
                true => run(answer, None).await.exceeded_reservation as u64 + 1,
                false => 0,
            }
        })
    });
    let served: u64 = futures::future::join_all(calls).await.into_iter().map(Result::unwrap).sum();
    assert_eq!(served, 20);
    running.stop().await;
    let summaries = summaries(&store, SESSION).await;
    assert_eq!(summaries.iter().filter(|summary| *summary == "decision served").count(), 20);
    assert_eq!(summaries.iter().filter(|summary| *summary == "outcome executed").count(), 20);
    assert_eq!(summaries.len(), 1 + 60 + 20);
}

#[tokio::test]
async fn a_call_of_unknown_cost_waits_for_the_one_before_it() {
    let (_, writer, running) = offline().await;
    commit(&writer, SESSION, json!({ "max_calls": 9, "limits": { "usd": 10 } })).await;
    let first = read(&writer, SESSION, 1).await;
    let second = tokio::spawn({
        let writer = writer.clone();
        async move { read(&writer, SESSION, 2).await }
    });
    until("it waits", || async { writer.status().waiting_for_cost == 1 }).await;
    run(first, Some(r#"{"usd":4}"#)).await;
    let second = second.await.unwrap();
    assert!(second.pass.is_some(), "{}", second.text);
    let third = read(&writer, SESSION, 3).await;
    assert_eq!(denied(&third), "budget_exceeded", "4 are spent and 4 reserved: 2 are left");
    drop(second);
    running.stop().await;
}

#[tokio::test]
async fn an_outcome_at_another_process_wakes_a_waiting_call() {
    let site = Site::stopped();
    let store = Memory::new("one");
    let other = store.another("two");
    let shared = || WriterSettings { shared: true, ..settings() };
    let (writer, running) = open(&store, &site, shared()).await;
    let (second, second_running) = open(&other, &site, shared()).await;
    commit(&writer, SESSION, json!({ "max_calls": 9, "limits": { "usd": 10 } })).await;
    let first = read(&second, SESSION, 1).await;
    let waits = tokio::spawn({
        let writer = writer.clone();
        async move { read(&writer, SESSION, 2).await }
    });
    until("it waits", || async { writer.status().waiting_for_cost == 1 }).await;
    run(first, Some(r#"{"usd":4}"#)).await;
    assert!(waits.await.unwrap().pass.is_some());
    running.stop().await;
    second_running.stop().await;
}

#[tokio::test]
async fn a_cost_over_the_reservation_is_durable_before_the_answer() {
    let (store, writer, running) = offline().await;
    commit(&writer, SESSION, json!({ "max_calls": 9, "limits": { "usd": 10 } })).await;
    let settled = run(read(&writer, SESSION, 1).await, Some(r#"{"usd":11}"#)).await;
    assert!(settled.exceeded_reservation);
    assert_eq!(summaries(&store, SESSION).await.last().unwrap(), "outcome executed");
    assert_eq!(denied(&read(&writer, SESSION, 2).await), "meter_overrun");
    let outcome = records(&store, SESSION).await.into_iter().find(|(_, record)| record.seq == 2).unwrap();
    assert_eq!(payload(&outcome.0)["settled"], json!({ "usd": "11" }));
    running.stop().await;
}

#[tokio::test]
async fn a_call_of_a_caller_that_left_gets_the_outcome_refused() {
    let (store, writer, running) = offline().await;
    commit(&writer, SESSION, json!({ "max_calls": 50 })).await;
    for ticket in 0..40 {
        let gone = tokio::time::timeout(
            std::time::Duration::from_micros(ticket * 5),
            read(&writer, SESSION, ticket),
        );
        drop(gone.await);
    }
    running.stop().await;
    let summaries = summaries(&store, SESSION).await;
    let count = |what: &str| summaries.iter().filter(|summary| *summary == what).count();
    assert_eq!(count("decision served"), count("outcome refused"), "{summaries:?}");
}

#[tokio::test]
async fn a_dropped_pass_is_settled_with_what_is_known() {
    let (store, writer, running) = offline().await;
    commit(&writer, SESSION, json!({ "max_calls": 2 })).await;
    drop(read(&writer, SESSION, 1).await);
    let mut pass = read(&writer, SESSION, 2).await.pass.unwrap();
    crate::setup::release_request(&mut pass);
    drop(pass);
    run(read(&writer, SESSION, 3).await, None).await;
    assert_eq!(
        denied(&read(&writer, SESSION, 4).await),
        "budget_exceeded",
        "what is unknown stays spent (V-12)"
    );
    running.stop().await;
    let summaries = summaries(&store, SESSION).await;
    assert_eq!(
        summaries,
        [
            "commitment served",
            "decision served",
            "outcome refused",
            "decision served",
            "outcome unknown",
            "decision served",
            "outcome executed",
            "decision denied",
        ]
    );
}

#[tokio::test]
async fn two_calls_at_once_are_written_in_one_transaction() {
    let (_, writer, running) = offline().await;
    commit(&writer, SESSION, json!({ "max_calls": 200 })).await;
    let before = writer.status().commits;
    let calls = (0..100).map(|ticket| read(&writer, SESSION, ticket));
    let answer = futures::future::join_all(calls).await;
    assert!(answer.iter().all(|answer| answer.pass.is_some()));
    assert!(writer.status().commits - before < 50, "{}", writer.status().commits - before);
    drop(answer);
    running.stop().await;
}

#[tokio::test]
async fn a_session_with_an_unstorable_name_is_denied_alone() {
    let (store, writer, running) = offline().await;
    let bad = agent::try_commit(&writer, "session-\0-0123456789", json!({ "max_calls": 1 })).await;
    assert_eq!(denied(&bad), "evidence_unavailable");
    commit(&writer, SESSION, json!({ "max_calls": 1 })).await;
    running.stop().await;
    assert!(store.streams(&[SESSION]).await.unwrap()[0].is_some());
}

#[tokio::test]
async fn calls_of_a_caller_without_an_account_read_nothing_from_the_database() {
    let FailingSetup { store, writer, running, .. } = failing().await;
    // That there is no account is remembered for a second only, which a call on a busy machine may take.
    until("a call reads nothing", || async {
        let before = store.calls(EvidenceMethod::Streams);
        let job = agent::job_without_vap(agent::ADVISORY, "crm.read", &json!({}));
        run(call(&writer, job).await, None).await;
        store.calls(EvidenceMethod::Streams) == before
    })
    .await;
    running.stop().await;
}

/// V-33: that the caller had no account is still remembered, and the account that it has by then is not in memory any more.
#[tokio::test]
async fn a_committed_caller_needs_an_envelope_even_if_its_account_is_not_in_memory() {
    let mut rules = Rules::new("/mcp", testkit::GATEWAY, agent::POLICY);
    rules.posture = Posture::Restricted;
    rules.restricted.push(Pattern::new("crm.read").unwrap());
    let rules = Arc::new(rules);
    let few = WriterSettings { sessions_in_memory: 1, ..settings() };
    let (site, store) = (Site::stopped(), Memory::new("one"));
    let (writer, running) = open_under(&store, &site, few, Arc::new(move |_| Some(rules.clone()))).await;
    let plain = || call(&writer, agent::job_without_vap("/mcp", "crm.read", &json!({})));
    run(plain().await, None).await;
    commit(&writer, SESSION, json!({ "max_calls": 1 })).await;
    assert_eq!(denied(&plain().await), "no_envelope");
    running.stop().await;
}
