//! How much of what callers say is kept, for how long, and what the log refuses in between.

use std::sync::Arc;
use std::time::Duration;

use admission::rules::{Ceiling, Rules};
use evidence::{Delivered, DeliveryState, EvidenceStore, Memory, Outbox, RecordKind};
use gateway::Config;
use gateway::decision_writer::{CallOutcomeReport, MessageAnswer, MessageJob, WriterSettings};
use gateway::replay::{Hypothesis, ReplayError, ReplayedSession, explain, replay};
use serde_json::{Value, json};
use vap::audit::CallStatus;
use vap::message::slot::Carrier;

use crate::agent::{
    POLICY, SESSION, call, caller, caller_in, commit, commitment, denied, job, read, received, run,
};
use crate::setup::{
    all, offline, open, open_under, payload, record, settings, summaries, until, until_delivered,
};
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
        assert!(stored.record.annex.len() < 300 << 10, "{} bytes", stored.record.annex.len());
    }
    assert_eq!(annex(&stored[1])["arguments"], r#"{"ticket":1}"#, "what is short is whole");
    let (decision, outcome) = (annex(&stored[3]), annex(&stored[4]));
    assert_eq!(decision["arguments"]["bytes"], json!({ "note": long }).to_string().len());
    assert!(decision["arguments"]["beginning"].as_str().unwrap().starts_with(r#"{"note":"xxx"#));
    assert_eq!(outcome["result"]["sha256"].as_str().unwrap().len(), 64);
    assert!(payload(&stored[3])["committed"]["arguments"].is_string(), "the whole is committed to");

    let again = replay(&mut ReplayedSession::under(&config()), &stored).unwrap();
    assert_eq!(again[1].now, Some(again[1].then.clone()), "{again:?}");
    assert_eq!((&again[2].now, again[2].differs), (&None, false));
    assert!(again[2].note.as_ref().unwrap().contains("not kept whole"), "{again:?}");
}

/// A configuration with one route, for replays.
fn config() -> Config {
    let text = "issuer = \"https://gw.example\"\nlisten = \"127.0.0.1:0\"\nstate = \"gw\"\n\
                [log]\nurl = \"http://127.0.0.1:1\"\n\
                [[route]]\npath = \"/mcp\"\nupstream = \"http://127.0.0.1:1/mcp\"\n";
    Config::from_toml(text, std::path::Path::new(".")).unwrap()
}

/// The records of a session of one call with arguments of this length, and a second one, which is denied.
async fn records_of_a_call_with(length: usize) -> Vec<evidence::StoredRecord> {
    let (store, writer, running) = offline().await;
    commit(&writer, SESSION, json!({ "max_calls": 1 })).await;
    let long = job(SESSION, "crm.read", &json!({ "note": "x".repeat(length) }));
    run(call(&writer, long).await, None).await;
    assert_eq!(denied(&read(&writer, SESSION, 2).await), "budget_exceeded");
    running.stop().await;
    store.records(SESSION, 0, 10).await.unwrap()
}

#[tokio::test]
async fn a_session_with_the_longest_arguments_of_a_call_is_decided_again() {
    let stored = records_of_a_call_with(gateway::limits::ARGUMENT_BYTES - 20).await;
    let again = replay(&mut ReplayedSession::under(&config()), &stored).unwrap();
    assert!(again.iter().all(|decision| decision.now.as_ref() == Some(&decision.then)), "{again:?}");
}

#[tokio::test]
async fn what_follows_a_call_that_was_not_kept_whole_is_not_decided_again() {
    let stored = records_of_a_call_with(1 << 20).await;
    let mut session = ReplayedSession::under(&config());
    let again = replay(&mut session, &stored).unwrap();
    let [commitment, long, denied] = &again[..] else { panic!("{again:?}") };
    assert_eq!(commitment.now.as_ref(), Some(&commitment.then));
    assert_eq!((&long.now, &denied.now, denied.differs), (&None, &None, false));
    assert!(denied.note.as_ref().unwrap().contains("it depends on record 1"), "{again:?}");
    let call = Hypothesis {
        route: "/mcp",
        session: Some(SESSION),
        tool: "crm.read",
        arguments: "{}",
        envelope: None,
        tool_fault: None,
        now: jiff::Timestamp::now(),
    };
    assert!(explain(&mut session, &call).unwrap_err().to_string().contains("its record 1"));
}

#[tokio::test]
async fn what_follows_a_denied_call_that_was_not_kept_whole_is_not_decided_again() {
    let (store, writer, running) = offline().await;
    commit(&writer, SESSION, json!({ "max_calls": 1 })).await;
    let long = job(SESSION, "forbidden", &json!({ "note": "x".repeat(20_000) }));
    assert_eq!(denied(&call(&writer, long).await), "scope_escape");
    run(read(&writer, SESSION, 1).await, None).await;
    running.stop().await;
    let stored = store.records(SESSION, 0, 10).await.unwrap();
    let again = replay(&mut ReplayedSession::under(&config()), &stored).unwrap();
    let [_, long, later] = &again[..] else { panic!("{again:?}") };
    assert_eq!((&long.now, &later.now, later.differs), (&None, &None, false));
    assert!(later.note.as_ref().unwrap().contains("it depends on record 1"), "{again:?}");
}

#[tokio::test]
async fn a_session_without_one_of_its_records_is_not_decided_again() {
    let mut stored = records_of_a_call_with(1).await;
    stored.remove(1);
    let replayed = replay(&mut ReplayedSession::under(&config()), &stored);
    assert!(matches!(replayed, Err(ReplayError::Forgotten(_, 2))), "{replayed:?}");
}

#[tokio::test]
async fn a_commitment_that_the_ceiling_reduced_is_kept_whole() {
    let ceiling = Ceiling { max_calls: Some(1), ..Ceiling::default() };
    let rules = Arc::new(Rules { ceiling, ..Rules::new("/mcp", testkit::GATEWAY, POLICY) });
    let (store, in_force) = (Memory::new("one"), rules.clone());
    let (writer, running) =
        open_under(&store, &Site::stopped(), settings(), Arc::new(move |_| Some(in_force.clone()))).await;
    let patterns: Vec<String> = (0..250).map(|n| format!("{n}.{}", "x".repeat(200))).collect();
    let scope = json!({ "scope": { "tools_allow": patterns } });
    let message = testkit::agent::with(commitment(SESSION, &json!({ "max_calls": 9 })), &scope);
    let message = Ok(received(&message, Carrier::Initialize));
    let job = MessageJob { route: "/mcp".into(), caller: caller(), message, invocation: None };
    assert!(matches!(writer.commitment(job).await, MessageAnswer::Ruled(_)));
    running.stop().await;
    let stored = store.records(SESSION, 0, 10).await.unwrap();
    let again =
        replay(&mut ReplayedSession::under_rules([("/mcp".to_owned(), rules)].into()), &stored).unwrap();
    assert_eq!(again[0].then.verdict, "downgraded");
    assert_eq!(again[0].now.as_ref(), Some(&again[0].then));
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
