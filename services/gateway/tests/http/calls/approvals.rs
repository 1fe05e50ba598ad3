//! Calls that wait for an approver outside of the client (V-26).

use std::sync::Arc;
use std::time::Duration;

use admission::approval::{Approval, Decision, Question};
use admission::rules::{Approver, Then};
use admission::signature::{AgentKey, Holder};
use gateway::upstream::Upstream;
use gateway::upstream::stdio::Stdio;
use scitt::{Signer, SigningKey};
use serde_json::json;

use crate::client::{Agent, PATIENCE, initialize, read};
use crate::scripted::program;
use crate::world::{World, rule};

/// The key of the approver.
fn approver_key() -> SigningKey {
    testkit::ed25519([2; 32])
}

/// A gateway where an approver decides about `pay`, before this upstream or else before the scripted server.
async fn world(upstream: Option<Arc<dyn Upstream>>) -> World {
    World::with(|wishes| {
        let key = approver_key().public_key().to_jwk();
        let keys = vec![AgentKey::new(Holder::Approver, &key, None, None).unwrap()];
        let approver = Approver { name: "carol".into(), tools: Vec::new(), keys };
        wishes.rules.approvals.approvers.push(approver);
        wishes.rules.policy.push(rule("approved", "pay", None, Then::Approve));
        wishes.upstream = upstream;
    })
    .await
}

/// The question to the approver, as soon as there is one.
async fn question(world: &World) -> Question {
    let asked = async {
        loop {
            if let Some(question) = world.writer.open_questions().await.unwrap().pop() {
                break question;
            }
            tokio::time::sleep(Duration::from_millis(5)).await;
        }
    };
    tokio::time::timeout(PATIENCE, asked).await.expect("an approver is asked")
}

/// Waits until no question is open.
async fn until_withdrawn(world: &World) {
    let withdrawn = async {
        while !world.writer.open_questions().await.unwrap().is_empty() {
            tokio::time::sleep(Duration::from_millis(5)).await;
        }
    };
    tokio::time::timeout(PATIENCE, withdrawn).await.expect("the question is withdrawn");
}

/// Asserts that the newest record of the agent's session is the denial of a call to which nobody has answered.
async fn assert_recorded_as_unanswered(world: &World, agent: &Agent) {
    let record = world.records(&agent.session).await.pop().unwrap();
    assert_eq!((record.kind.as_str(), &record.payload["verdict"]), ("decision", &json!("denied")));
    assert_eq!(record.payload["verification"]["reason"], "unanswered", "{record:?}");
    assert!(record.payload.get("confirmation").is_none(), "{record:?}");
}

/// The approver permits the call. Returns whether the question was open.
async fn approve(world: &World, question: &Question) -> bool {
    let signed = Approval::of(question, "carol", Decision::Approve, None).sign(&approver_key()).unwrap();
    world.writer.answer_question(&question.id, &signed).await.is_ok()
}

#[tokio::test]
async fn a_call_that_waits_for_an_approver_keeps_its_session_busy() {
    let mut program = program("old");
    program.children = 1;
    // A session that is idle, if only for a moment, makes room for another one.
    let server = Arc::new(Stdio::new(program, "old").sparing(Duration::ZERO));
    let world = world(Some(server.clone())).await;
    let agent = world.legacy().await;
    agent.commit().await;
    let opened = async || world.nobody().ask("initialize", initialize(&json!({}))).await.status;
    let call = agent.message("tools/call", &agent.call_params("pay", &json!({})));
    let waiting = agent.stream(&call).await;
    assert_eq!(waiting.header("content-type"), Some("text/event-stream"));
    assert_eq!(opened().await, 503);
    drop(waiting);
    let let_go = async { while opened().await != 200 {} };
    tokio::time::timeout(PATIENCE, let_go).await.expect("the call is taken back with its client");
    server.stop().await;
}

#[tokio::test]
async fn v_26_a_client_that_reads_no_events_cancels_its_call_while_an_approver_is_asked() {
    let world = world(None).await;
    let agent = world.legacy().await;
    agent.commit_to(json!({ "max_calls": 1 })).await;
    let call = agent.message("tools/call", &agent.call_params("pay", &json!({})));
    let mut request = agent.post(&call).build().unwrap();
    request.headers_mut().insert("accept", "application/json".parse().unwrap());
    let http = agent.http.clone();
    let waiting = tokio::spawn(async move { read(http.execute(request).await.unwrap()).await });
    let question = question(&world).await;
    assert_eq!(agent.notify("notifications/cancelled", json!({ "requestId": call["id"] })).await, 202);
    let denied = tokio::time::timeout(PATIENCE, waiting).await.expect("the call ends").unwrap();
    denied.denied("unanswered");
    assert_recorded_as_unanswered(&world, &agent).await;
    assert!(!approve(&world, &question).await, "the question was withdrawn");
    assert_eq!(world.server.calls(), 0);
    assert!(world.server.messages_of("notifications/cancelled").is_empty());
    agent.call("crm.read", json!({})).await.served();
}

#[tokio::test]
async fn v_26_a_call_that_its_client_cancels_on_its_stream_is_declined_by_nobody() {
    let world = world(None).await;
    let agent = world.legacy().await;
    agent.commit().await;
    let call = agent.message("tools/call", &agent.call_params("pay", &json!({})));
    let mut waiting = agent.stream(&call).await;
    question(&world).await;
    assert_eq!(agent.notify("notifications/cancelled", json!({ "requestId": call["id"] })).await, 202);
    waiting.answer().await.denied("unanswered");
    assert_recorded_as_unanswered(&world, &agent).await;
}

#[tokio::test]
async fn v_26_a_call_whose_client_leaves_while_an_approver_is_asked_is_denied_on_record() {
    let world = world(None).await;
    let agent = world.legacy().await;
    agent.commit_to(json!({ "max_calls": 1 })).await;
    for accepted in ["application/json, text/event-stream", "application/json"] {
        let call = agent.message("tools/call", &agent.call_params("pay", &json!({})));
        let mut request = agent.post(&call).build().unwrap();
        request.headers_mut().insert("accept", accepted.parse().unwrap());
        let http = agent.http.clone();
        let waiting = tokio::spawn(async move { read(http.execute(request).await.unwrap()).await });
        let question = question(&world).await;
        waiting.abort();
        until_withdrawn(&world).await;
        assert!(!approve(&world, &question).await);
        assert_recorded_as_unanswered(&world, &agent).await;
    }
    assert_eq!(world.verdicts(&agent.session).await, ["served", "denied", "denied"]);
    assert_eq!(world.server.calls(), 0);
    agent.call("crm.read", json!({})).await.served();
}

#[tokio::test]
async fn v_26_without_an_mcp_session_a_cancellation_takes_back_no_call_of_another_client() {
    let world = world(None).await;
    let named = |who: &str| Agent { token: Some(who.into()), ..world.nobody() };
    let (alice, bob) = (named("alice"), named("bob"));
    alice.commit().await;
    let call = alice.message("tools/call", &alice.call_params("pay", &json!({})));
    let mut waiting = alice.stream(&call).await;
    let question = question(&world).await;
    bob.notify("notifications/cancelled", json!({ "requestId": call["id"] })).await;
    assert_eq!(world.server.messages_of("notifications/cancelled").len(), 1, "it names no call here");
    assert!(approve(&world, &question).await, "the call still waits");
    waiting.answer().await.served();
    assert_eq!(world.server.calls(), 1);
}
