//! A call from its commitment to its outcome on the log.

use admission::record::RecordKey;
use evidence::{EvidenceStore, Memory};
use jose::jws::Jws;
use scitt::Signer;
use serde_json::{Value, json};

use crate::agent::{self, call, commit, denied, read, run, sessionless};
use crate::desk::{assert_on_log_once, open, payload, record, records, settings, story};
use crate::site::Site;

const SESSION: &str = "session-0123456789abcdef";

#[tokio::test]
async fn every_decision_and_what_came_of_it_is_on_the_log_once() {
    let site = Site::start().await;
    let store = Memory::new("one");
    let (desk, running) = open(&store, &site, settings()).await;
    commit(&desk, SESSION, json!({ "max_calls": 2 })).await;
    run(read(&desk, SESSION, 1).await, None).await;
    run(read(&desk, SESSION, 2).await, None).await;
    assert_eq!(denied(&read(&desk, SESSION, 3).await), "budget_exceeded");
    assert_eq!(denied(&call(&desk, agent::job(SESSION, "delete_all", &json!({}))).await), "scope_escape");
    running.stop().await;
    let (_, again) = open(&store.another("two"), &site, settings()).await;
    assert_on_log_once(&store, &site).await;
    again.stop().await;
    let mut told = story(&store, SESSION).await;
    told.sort_unstable();
    assert_eq!(
        told,
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
async fn the_verdict_that_is_returned_is_the_one_that_was_persisted_byte_for_byte() {
    let site = Site::stopped(&crate::site::policy());
    let store = Memory::new("one");
    let (desk, running) = open(&store, &site, settings()).await;
    commit(&desk, SESSION, json!({ "max_calls": 2 })).await;
    let told = read(&desk, SESSION, 1).await;
    let evidence = told.evidence.as_ref().unwrap();
    let stored = record(&store, &evidence.id).await;
    assert_eq!(stored.record.verdict.as_deref(), Some(told.text.as_bytes()));
    assert_eq!((stored.record.seq, evidence.seq), (1, 1));
    let wire: Value = serde_json::from_str(&told.text).unwrap();
    assert_eq!(wire["audit_ref"], format!("{}/entries/{}", site.url(), stored.record.id));
    let in_record = payload(&stored);
    assert!(in_record.get("audit_ref").is_none() && in_record.get("signature").is_none());
    drop(told);
    running.stop().await;
}

#[tokio::test]
async fn a_verdict_is_signed_by_the_verdict_key_over_all_of_it() {
    let site = Site::stopped(&crate::site::policy());
    let store = Memory::new("one");
    let (desk, running) = open(&store, &site, settings()).await;
    commit(&desk, SESSION, json!({ "max_calls": 2 })).await;
    let told = read(&desk, SESSION, 1).await;
    let mut wire: Value = serde_json::from_str(&told.text).unwrap();
    let signature = wire.as_object_mut().unwrap().remove("signature").unwrap();
    let over = jose::jcs::canonical(&wire);
    let jws = Jws::open(signature.as_str().unwrap(), &over, &["req"]).unwrap();
    testkit::verifier().public_key().verify_jws(&jws).unwrap();
    assert!(testkit::gateway().public_key().verify_jws(&jws).is_err(), "not the evidence key");
    drop(told);
    running.stop().await;
}

#[tokio::test]
async fn the_key_that_is_given_opens_its_own_record_and_no_other() {
    let site = Site::stopped(&crate::site::policy());
    let store = Memory::new("one");
    let (desk, running) = open(&store, &site, settings()).await;
    commit(&desk, SESSION, json!({ "max_calls": 9 })).await;
    let (first, second) = (read(&desk, SESSION, 1).await, read(&desk, SESSION, 2).await);
    let key = |told: &gateway::desk::Told| {
        let given: Value = serde_json::from_str(&told.evidence.as_ref().unwrap().to_json()).unwrap();
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
async fn nothing_that_was_said_in_confidence_is_in_a_statement() {
    let site = Site::stopped(&crate::site::policy());
    let store = Memory::new("one");
    let (desk, running) = open(&store, &site, settings()).await;
    commit(&desk, SESSION, json!({ "max_calls": 9 })).await;
    run(call(&desk, agent::job(SESSION, "crm.read", &json!({ "secret": "hunter2" }))).await, None).await;
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
    let site = Site::stopped(&crate::site::policy());
    let store = Memory::new("one");
    let (desk, running) = open(&store, &site, settings()).await;
    assert_eq!(denied(&call(&desk, sessionless("/mcp", "crm.read", &json!({}))).await), "no_envelope");
    run(call(&desk, sessionless(agent::ADVISORY, "crm.read", &json!({}))).await, None).await;
    running.stop().await;
    assert_eq!(
        story(&store, "unbound:one").await,
        ["decision denied", "decision served", "outcome executed", "closed"]
    );
}

#[tokio::test]
async fn many_callers_at_once_never_spend_more_than_was_agreed() {
    let site = Site::stopped(&crate::site::policy());
    let store = Memory::new("one");
    let (desk, running) = open(&store, &site, settings()).await;
    commit(&desk, SESSION, json!({ "max_calls": 20 })).await;
    let calls = (0..60).map(|ticket| {
        let desk = desk.clone();
        tokio::spawn(async move {
            let told = read(&desk, SESSION, ticket).await;
            match told.pass.is_some() {
                true => run(told, None).await.exceeded_reservation as u64 + 1,
                false => 0,
            }
        })
    });
    let served: u64 = futures::future::join_all(calls).await.into_iter().map(Result::unwrap).sum();
    assert_eq!(served, 20);
    running.stop().await;
    let story = story(&store, SESSION).await;
    assert_eq!(story.iter().filter(|said| *said == "decision served").count(), 20);
    assert_eq!(story.iter().filter(|said| *said == "outcome executed").count(), 20);
    assert_eq!(story.len(), 1 + 60 + 20);
}

#[tokio::test]
async fn two_gateways_of_one_database_share_a_budget() {
    let site = Site::stopped(&crate::site::policy());
    let store = Memory::new("one");
    let other = store.another("two");
    let shared = || gateway::desk::Settings { shared: true, ..settings() };
    let (desk, running) = open(&store, &site, shared()).await;
    let (second, second_running) = open(&other, &site, shared()).await;
    commit(&desk, SESSION, json!({ "max_calls": 20 })).await;
    let calls = (0..60).map(|ticket| {
        let desk = if ticket % 2 == 0 { desk.clone() } else { second.clone() };
        tokio::spawn(async move {
            let told = read(&desk, SESSION, ticket).await;
            match told.pass.is_some() {
                true => run(told, None).await.exceeded_reservation as u64 + 1,
                false => 0,
            }
        })
    });
    let served: u64 = futures::future::join_all(calls).await.into_iter().map(Result::unwrap).sum();
    assert_eq!(served, 20);
    running.stop().await;
    second_running.stop().await;
    assert_eq!(story(&store, SESSION).await.len(), 1 + 60 + 20, "every decision has one record");
}

#[tokio::test]
async fn a_call_of_unknown_cost_waits_for_the_one_before_it() {
    let site = Site::stopped(&crate::site::policy());
    let store = Memory::new("one");
    let (desk, running) = open(&store, &site, settings()).await;
    commit(&desk, SESSION, json!({ "max_calls": 9, "limits": { "usd": 10 } })).await;
    let first = read(&desk, SESSION, 1).await;
    let second = tokio::spawn({
        let desk = desk.clone();
        async move { read(&desk, SESSION, 2).await }
    });
    crate::desk::until("it waits", || async { desk.status().waiting_for_cost == 1 }).await;
    run(first, Some(r#"{"usd":4}"#)).await;
    let second = second.await.unwrap();
    assert!(second.pass.is_some(), "{}", second.text);
    let third = read(&desk, SESSION, 3).await;
    assert_eq!(denied(&third), "budget_exceeded", "4 are spent and 4 reserved: 2 are left");
    drop(second);
    running.stop().await;
}

#[tokio::test]
async fn another_process_wakes_who_waits_too() {
    let site = Site::stopped(&crate::site::policy());
    let store = Memory::new("one");
    let other = store.another("two");
    let shared = || gateway::desk::Settings { shared: true, ..settings() };
    let (desk, running) = open(&store, &site, shared()).await;
    let (second, second_running) = open(&other, &site, shared()).await;
    commit(&desk, SESSION, json!({ "max_calls": 9, "limits": { "usd": 10 } })).await;
    let first = read(&second, SESSION, 1).await;
    let waits = tokio::spawn({
        let desk = desk.clone();
        async move { read(&desk, SESSION, 2).await }
    });
    crate::desk::until("it waits", || async { desk.status().waiting_for_cost == 1 }).await;
    run(first, Some(r#"{"usd":4}"#)).await;
    assert!(waits.await.unwrap().pass.is_some());
    running.stop().await;
    second_running.stop().await;
}

#[tokio::test]
async fn an_answer_that_cost_more_than_was_reserved_is_durable_before_it_is_given() {
    let site = Site::stopped(&crate::site::policy());
    let store = Memory::new("one");
    let (desk, running) = open(&store, &site, settings()).await;
    commit(&desk, SESSION, json!({ "max_calls": 9, "limits": { "usd": 10 } })).await;
    let settled = run(read(&desk, SESSION, 1).await, Some(r#"{"usd":11}"#)).await;
    assert!(settled.exceeded_reservation);
    assert_eq!(story(&store, SESSION).await.last().unwrap(), "outcome executed");
    assert_eq!(denied(&read(&desk, SESSION, 2).await), "meter_overrun");
    let outcome = records(&store, SESSION).await.into_iter().find(|(_, record)| record.seq == 2).unwrap();
    assert_eq!(payload(&outcome.0)["settled"], json!({ "usd": "11" }));
    running.stop().await;
}

#[tokio::test]
async fn a_caller_that_went_away_before_the_decision_leaves_nothing_open() {
    let site = Site::stopped(&crate::site::policy());
    let store = Memory::new("one");
    let (desk, running) = open(&store, &site, settings()).await;
    commit(&desk, SESSION, json!({ "max_calls": 50 })).await;
    for ticket in 0..40 {
        let gone =
            tokio::time::timeout(std::time::Duration::from_micros(ticket * 5), read(&desk, SESSION, ticket));
        drop(gone.await);
    }
    running.stop().await;
    let story = story(&store, SESSION).await;
    let count = |what: &str| story.iter().filter(|said| *said == what).count();
    assert_eq!(count("decision served"), count("outcome refused"), "{story:?}");
}

#[tokio::test]
async fn a_pass_that_is_dropped_says_what_is_known() {
    let site = Site::stopped(&crate::site::policy());
    let store = Memory::new("one");
    let (desk, running) = open(&store, &site, settings()).await;
    commit(&desk, SESSION, json!({ "max_calls": 2 })).await;
    drop(read(&desk, SESSION, 1).await);
    let mut pass = read(&desk, SESSION, 2).await.pass.unwrap();
    pass.forwarding();
    drop(pass);
    run(read(&desk, SESSION, 3).await, None).await;
    assert_eq!(
        denied(&read(&desk, SESSION, 4).await),
        "budget_exceeded",
        "what is unknown stays spent (V-12)"
    );
    running.stop().await;
    let story = story(&store, SESSION).await;
    assert_eq!(
        story,
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
    let site = Site::stopped(&crate::site::policy());
    let store = Memory::new("one");
    let (desk, running) = open(&store, &site, settings()).await;
    commit(&desk, SESSION, json!({ "max_calls": 200 })).await;
    let before = desk.status().commits;
    let calls = (0..100).map(|ticket| read(&desk, SESSION, ticket));
    let told = futures::future::join_all(calls).await;
    assert!(told.iter().all(|told| told.pass.is_some()));
    assert!(desk.status().commits - before < 50, "{}", desk.status().commits - before);
    drop(told);
    running.stop().await;
}

#[tokio::test]
async fn a_session_whose_name_no_database_takes_harms_nobody() {
    let site = Site::stopped(&crate::site::policy());
    let store = Memory::new("one");
    let (desk, running) = open(&store, &site, settings()).await;
    let bad = agent::try_commit(&desk, "session-\0-0123456789", json!({ "max_calls": 1 })).await;
    assert_eq!(denied(&bad), "evidence_unavailable");
    commit(&desk, SESSION, json!({ "max_calls": 1 })).await;
    running.stop().await;
    assert!(store.streams(&[SESSION]).await.unwrap()[0].is_some());
}
