//! What stays of a call: on disk, in order, and the same bytes that the caller got.

use std::sync::Arc;

use admission::rules::Then;
use evidence::{EvidenceStore, FailingEvidence, Fault, Memory};
use evidence_sqlite::{Settings, Sqlite};
use serde_json::{Value, json};

use crate::world::{World, rule};

#[tokio::test]
async fn x_5_a_call_leaves_its_decision_and_its_outcome_in_the_database() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("evidence.sqlite");
    let store: Arc<dyn EvidenceStore> = Arc::new(Sqlite::open(Settings::new(&path, "first")).await.unwrap());
    let world = World::with(|wishes| wishes.store = store.clone()).await;
    let agent = world.modern("alice");
    agent.commit().await;
    let answer = agent.call("crm.read", json!({})).await.served();
    agent.call("crm.delete", json!({})).await.denied("scope_escape");
    world.outcomes(&agent.session, 1).await;
    let mut kinds: Vec<_> =
        world.records(&agent.session).await.into_iter().map(|record| record.kind).collect();
    kinds.sort();
    assert_eq!(kinds, ["commitment", "decision", "decision", "outcome"]);
    let stored = store.records(&agent.session, 0, 10).await.unwrap();
    assert!(stored.iter().zip(0..).all(|(stored, seq)| stored.record.seq == seq));
    let response = answer.vap();
    let kept = stored.iter().filter_map(|stored| stored.record.verdict.as_ref());
    let kept: Vec<Value> = kept.map(|text| serde_json::from_slice(text).unwrap()).collect();
    assert!(kept.contains(&response), "the Verdict that was told is the one that was kept");
    let audit_ref = response["audit_ref"].as_str().unwrap().to_owned();
    assert_eq!(answer.meta("dev.tabellion/evidence")["audit_ref"], json!(audit_ref));
    let id = audit_ref.rsplit('/').next().unwrap();
    let is_there = stored.iter().any(|stored| stored.record.id.to_string() == id);
    assert!(is_there, "{audit_ref}");
    let outcome =
        world.records(&agent.session).await.into_iter().find(|record| record.kind == "outcome").unwrap();
    assert_eq!(outcome.payload["backLink"], json!(id));
    let committed = outcome.payload["committed"]["result"].as_str().unwrap();
    assert!(committed.starts_with("hmac-sha256:"), "V-39: {committed}");
}

#[tokio::test]
async fn x_8_a_call_that_cannot_be_recorded_is_denied() {
    let store = Arc::new(FailingEvidence::new(Memory::new("only")));
    let world = World::with(|wishes| wishes.store = store.clone()).await;
    let agent = world.modern("alice");
    agent.commit().await;
    store.break_down(Fault::Refused);
    let denied = agent.call("crm.read", json!({})).await.denied("evidence_unavailable");
    assert!(denied.meta("dev.tabellion/evidence").is_null());
    assert!(denied.vap()["signature"].is_string());
    assert_eq!(world.server.calls(), 0);
    store.mend();
    agent.call("crm.read", json!({})).await.served();
}

#[tokio::test]
async fn s_1_a_clients_reasons_are_kept_in_the_audit_store_alone() {
    let world = World::new().await;
    let agent = world.modern("alice");
    agent.commit().await;
    let mut params = agent.call_params("crm.read", &json!({}));
    params["_meta"]["dev.tabellion/aiInvocation"] =
        json!({ "turnId": "t", "userIntent": { "text": "a wish" } });
    agent.ask("tools/call", params).await.served();
    let stored = world.store.records(&agent.session, 0, 10).await.unwrap();
    let decision = &stored[1].record;
    assert!(String::from_utf8_lossy(&decision.annex).contains("a wish"));
    assert!(!String::from_utf8_lossy(&decision.statement).contains("a wish"));
}

#[tokio::test]
async fn c_4_a_number_that_rules_read_only_as_it_was_sent_is_kept_so() {
    let deny = rule("few", "pay", Some("input.arguments.amount < 5"), Then::Deny);
    let world = World::with(|wishes| wishes.rules.policy.push(deny)).await;
    let agent = world.modern("alice");
    agent.commit().await;
    for amount in [1e16, 1e20, 7.5] {
        agent.call("pay", json!({ "amount": amount })).await.served();
    }
    let stored = world.store.records(&agent.session, 0, 10).await.unwrap();
    let annexes = stored.iter().map(|stored| serde_json::from_slice(&stored.record.annex).unwrap());
    let sent = annexes.filter_map(|annex: Value| Some(annex["replay"]["arguments"].as_str()?.to_owned()));
    let expected = [1e16, 1e20].map(|amount| json!({ "amount": amount }).to_string());
    assert_eq!(sent.collect::<Vec<_>>(), expected, "7.5 has one spelling");
}
