//! How much of what callers say is kept, for how long, and what the log refuses in between.

use std::time::Duration;

use evidence::{Delivered, DeliveryState, EvidenceStore, Memory, Outbox, RecordKind};
use gateway::Config;
use gateway::decision_writer::{CallOutcomeReport, WriterSettings};
use gateway::replay::{ReplayedSession, replay};
use serde_json::{Value, json};
use vap::audit::CallStatus;

use crate::agent::{SESSION, call, caller_in, commit, denied, job, read, run};
use crate::setup::{all, offline, open, payload, record, settings, summaries, until, until_delivered};
use crate::site::{Site, policy};

fn annex(stored: &evidence::StoredRecord) -> Value {
    serde_json::from_slice(&stored.record.annex).unwrap()
}

#[tokio::test]
async fn arguments_and_results_of_any_length_leave_little_on_the_disk() {
    let (store, writer, running) = offline().await;
    commit(&writer, SESSION, json!({ "max_calls": 3 })).await;
    let long = "x".repeat(1 << 20);
    run(read(&writer, SESSION, 1).await, None).await;
    let mut answer = call(&writer, job(SESSION, "crm.read", &json!({ "note": long }))).await;
    let mut pass = answer.pass.take().unwrap();
    crate::setup::release_request(&mut pass);
    let result = json!({ "content": [{ "type": "text", "text": long }] }).to_string();
    pass.settle(CallOutcomeReport { status: CallStatus::Executed, cost: None, result: Some(result) }).await;
    until("it is settled", || async { summaries(&store, SESSION).await.len() == 5 }).await;
    running.stop().await;

    let stored = store.records(SESSION, 0, 10).await.unwrap();
    for stored in &stored {
        assert!(stored.record.annex.len() < 64 << 10, "{} bytes", stored.record.annex.len());
    }
    assert_eq!(annex(&stored[1])["arguments"], r#"{"ticket":1}"#, "what is short is whole");
    let (decision, outcome) = (annex(&stored[3]), annex(&stored[4]));
    assert_eq!(decision["arguments"]["bytes"], json!({ "note": long }).to_string().len());
    assert!(decision["arguments"]["beginning"].as_str().unwrap().starts_with(r#"{"note":"xxx"#));
    assert_eq!(outcome["result"]["sha256"].as_str().unwrap().len(), 64);
    assert!(payload(&stored[3])["committed"]["arguments"].is_string(), "the whole is committed to");

    let text = "issuer = \"https://gw.example\"\nlisten = \"127.0.0.1:0\"\nstate = \"gw\"\n\
                [log]\nurl = \"http://127.0.0.1:1\"\n\
                [[route]]\npath = \"/mcp\"\nupstream = \"http://127.0.0.1:1/mcp\"\n";
    let config = Config::from_toml(text, std::path::Path::new(".")).unwrap();
    let again = replay(&mut ReplayedSession::under(&config), &stored).unwrap();
    assert_eq!(again[1].now, Some(again[1].then.clone()), "{again:?}");
    assert_eq!((&again[2].now, again[2].differs), (&None, false));
    assert!(again[2].note.as_ref().unwrap().contains("not kept whole"), "{again:?}");
}

#[tokio::test]
async fn the_annexes_of_a_decision_and_its_outcome_have_these_members() {
    let (store, writer, running) = offline().await;
    commit(&writer, SESSION, json!({ "max_calls": 3 })).await;
    run(read(&writer, SESSION, 1).await, Some("2")).await;
    denied(&call(&writer, job(SESSION, "forbidden", &json!({}))).await);
    until("it is settled", || async { summaries(&store, SESSION).await.len() == 4 }).await;
    running.stop().await;

    let stored = store.records(SESSION, 0, 10).await.unwrap();
    let mut decision = annex(&stored[1]);
    let replay = decision["replay"].as_object_mut().unwrap();
    assert!(replay.remove("at").unwrap().is_u64() && replay.remove("sample").unwrap().is_u64());
    assert!(replay.remove("message").unwrap().is_string() && decision["req"].take().is_string());
    let principal = json!({
        "identity": { "mcp_session": { "id": "mcp-session-1", "route": "/mcp" } },
        "mcp_session": "mcp-session-1",
    });
    let caller = json!({
        "certificate": null, "era": "legacy", "is_given": true, "mcp_session": "mcp-session-1", "token": null,
    });
    let expected = json!({
        "aiInvocation": null,
        "arguments": r#"{"ticket":1}"#,
        "effective_commitment": annex(&stored[0])["effective_commitment"],
        "expected_effect": "one ticket is read",
        "flags": [],
        "goal": "Answer ticket SUP-9931",
        "principal": principal.to_string(),
        "rationale": "the ticket says so",
        "reason": null,
        "replay": { "caller": caller, "can_ask": false, "route": "/mcp", "tool": "crm.read" },
        "req": null,
        "reservation": 0,
        "session_id": SESSION,
        "tool": "crm.read",
    });
    assert_eq!(decision, expected);
    let expected = json!({
        "cost": "2",
        "decision": stored[1].record.id.to_string(),
        "flags": ["cost_not_a_number"],
        "reservation": 0,
        "result": r#"{"content":[{"text":"done","type":"text"}]}"#,
        "tool": "crm.read",
    });
    assert_eq!(stored[2].record.annex, expected.to_string());
    assert_eq!(annex(&stored[3])["reason"], "scope_escape");
    assert_eq!(stored[1].record.annex, annex(&stored[1]).to_string(), "the order of members is fixed");
}

#[tokio::test]
async fn repeated_denials_keep_only_short_annexes() {
    let (store, writer, running) = offline().await;
    commit(&writer, SESSION, json!({ "max_calls": 3 })).await;
    let long = json!({ "note": "secret ".repeat(10_000) });
    let mut limited = None;
    for _ in 0..=admission::limits::DENIALS_PER_MINUTE {
        let answer = call(&writer, job(SESSION, "forbidden", &long)).await;
        limited = (denied(&answer) == "rate_limited").then_some(answer).or(limited);
    }
    let stored = record(&store, &limited.unwrap().evidence.unwrap().id).await;
    assert!(stored.record.annex.len() < 2048 && !annex(&stored).to_string().contains("secret"));
    // Whoever is nobody is not kept at length either.
    let stranger = gateway::decision_writer::CallJob {
        caller: caller_in("another"),
        ..job("nobody-knows-it", "forbidden", &long)
    };
    let answer = call(&writer, stranger).await;
    let stored = record(&store, &answer.evidence.unwrap().id).await;
    assert!(stored.record.annex.len() < 8 << 10, "{}", stored.record.annex.len());
    running.stop().await;
}

#[tokio::test]
async fn records_are_removed_once_they_are_old_and_on_the_log() {
    let mut site = Site::stopped();
    let store = Memory::new("one");
    let keep = Some(Duration::from_secs(1));
    let (writer, running) = open(&store, &site, WriterSettings { keep, ..settings() }).await;
    commit(&writer, SESSION, json!({ "max_calls": 1 })).await;
    let open_call = read(&writer, SESSION, 1).await;
    tokio::time::sleep(Duration::from_secs(3)).await;
    running.stop().await;
    assert_eq!(store.records(SESSION, 0, 10).await.unwrap().len(), 2, "the log has none of them");

    site.go_on().await;
    let (writer, running) = open(&store, &site, WriterSettings { keep, ..settings() }).await;
    until("the commitment is gone", || async {
        let left = store.records(SESSION, 0, 10).await.unwrap();
        left.iter().all(|stored| stored.record.kind != RecordKind::Commitment)
    })
    .await;
    drop(open_call);
    assert_eq!(denied(&read(&writer, SESSION, 2).await), "budget_exceeded", "the session is there as ever");
    running.stop().await;
}

/// A policy of the log that admits no outcome before its decision.
fn policy_with_required_decisions() -> String {
    let content_type = "content_type = \"application/vap-audit+json\"";
    policy().replace(content_type, &format!("{content_type}\nvap_audit = {{ require_decision = true }}"))
}

#[tokio::test]
async fn an_outcome_whose_decision_is_not_sent_any_more_is_set_aside() {
    let mut site = Site::stopped_under(&policy_with_required_decisions());
    let store = Memory::new("one");
    let (writer, running) = open(&store, &site, settings()).await;
    commit(&writer, SESSION, json!({ "max_calls": 1 })).await;
    run(read(&writer, SESSION, 1).await, None).await;
    until("it is settled", || async { summaries(&store, SESSION).await.len() == 3 }).await;
    let decision = store.records(SESSION, 1, 1).await.unwrap().remove(0).record.id;
    store.delivered(&[Delivered { id: decision, leaf_index: None, receipt: None }]).await.unwrap();
    site.go_on().await;
    until("the outcome is set aside", || async {
        let outcome = store.records(SESSION, 2, 1).await.unwrap().remove(0);
        matches!(outcome.delivery, DeliveryState::Stuck(_))
    })
    .await;
    running.stop().await;
}

#[tokio::test]
async fn an_outcome_of_a_refused_decision_lets_other_records_pass() {
    let site = Site::with(&policy_with_required_decisions(), transparency::Limits::default()).await;
    // A gateway that lost its state begins a session whose first numbers the log has already.
    let before = Memory::new("before");
    let (writer, running) = open(&before, &site, settings()).await;
    commit(&writer, SESSION, json!({ "max_calls": 1 })).await;
    denied(&call(&writer, job(SESSION, "forbidden", &json!({}))).await);
    until_delivered(&before).await;
    running.stop().await;

    let store = Memory::new("one");
    let (writer, running) = open(&store, &site, settings()).await;
    commit(&writer, SESSION, json!({ "max_calls": 2 })).await;
    run(read(&writer, SESSION, 1).await, None).await;
    until("all three are refused", || async {
        let stored = store.records(SESSION, 0, 10).await.unwrap();
        stored.len() == 3 && stored.iter().all(|stored| matches!(stored.delivery, DeliveryState::Stuck(_)))
    })
    .await;
    let other = "session-of-somebody-else";
    commit(&writer, other, json!({ "max_calls": 1 })).await;
    until("others are not held up", || async {
        let stored = store.records(other, 0, 10).await.unwrap();
        matches!(stored[0].delivery, DeliveryState::Delivered { .. })
    })
    .await;
    assert_eq!(store.backlog().await.unwrap().oldest_at, None, "{:?}", all(&store).await);
    running.stop().await;
}
