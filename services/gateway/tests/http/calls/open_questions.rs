//! A person is asked on the stream that the call opened (V-26, legacy).

use std::time::Duration;

use admission::rules::{PrincipalCeiling, Then};
use serde_json::{Value, json};
use testkit::McpResponse;

use crate::client::{Agent, Reading};
use crate::front::until;
use crate::world::{World, rule, script};

/// A call about which a person is asked on its stream.
struct OpenQuestion {
    stream: Reading,
    question: Value,
    call_id: Value,
}

/// Makes a call about which a person is asked.
async fn call_with_question(agent: &Agent) -> OpenQuestion {
    let message = agent.message("tools/call", &agent.call_params("pay", &json!({ "to": "bob" })));
    let mut stream = agent.stream(&message).await;
    let question = stream.next().await;
    assert_eq!(question["method"], "elicitation/create", "a person is asked about the call");
    OpenQuestion { stream, question, call_id: message["id"].clone() }
}

/// The answer of a person who confirms the call.
fn confirmed() -> Value {
    json!({ "action": "accept", "content": { "confirm": true } })
}

#[tokio::test]
async fn v_26_a_confirmation_admits_one_call() {
    let world = World::that_asks().await;
    let agent = world.legacy().await;
    agent.commit_to(json!({ "max_calls": 2 })).await;
    let OpenQuestion { mut stream, question, call_id } = call_with_question(&agent).await;
    assert_eq!(world.server.calls(), 0, "nothing is sent before the answer");
    let words = question["params"]["message"].as_str().unwrap();
    assert!(words.contains("pay") && words.contains("bob") && !words.contains("ticket"), "{words}");
    assert_eq!(question["params"]["requestedSchema"]["required"], json!(["confirm"]));
    assert_eq!(agent.respond(&question["id"], confirmed()).await, 202);
    let answer = stream.answer().await.served();
    assert_eq!(answer.reply()["id"], call_id);
    assert_eq!(world.server.calls(), 1);
    let seen: Vec<String> = world.server.seen().iter().map(testkit::McpRequest::rpc).collect();
    assert!(!seen.contains(&"POST".to_owned()), "the answer is for nobody else: {seen:?}");
    // It counted once, and the next one is asked about again.
    let _open = call_with_question(&agent).await;
    agent.call("crm.read", json!({})).await.denied("budget_exceeded");
}

/// What was recorded of the call is enough to decide it again, which the world does at its end.
#[tokio::test]
async fn v_3_a_confirmed_call_counts_once_against_the_principals_ceiling() {
    let world = World::with(|wishes| {
        wishes.rules.policy.push(rule("ask", "pay", None, Then::Confirm));
        let limits = admission::session::Meters::default();
        wishes.rules.principal_ceiling = Some(PrincipalCeiling { max_calls: Some(1), limits, window: None });
    })
    .await;
    let agent = world.legacy().await;
    agent.commit().await;
    let OpenQuestion { mut stream, question, .. } = call_with_question(&agent).await;
    assert_eq!(agent.respond(&question["id"], confirmed()).await, 202);
    stream.answer().await.served();
    agent.call("crm.read", json!({})).await.denied("principal_ceiling");
}

#[tokio::test]
async fn x_2_an_http_error_after_a_question_is_an_error_with_the_calls_id() {
    const NOBODYS: &str = r#"{"jsonrpc":"2.0","id":null,"error":{"code":-32001,"message":"no session"}}"#;
    for body in ["no session", NOBODYS] {
        let world = World::with(|wishes| {
            wishes.rules.policy.push(rule("ask", "pay", None, Then::Confirm));
            wishes.script = script(move |seen| {
                let headers = vec![("Content-Type", "application/json")];
                let refusal = McpResponse { status: 404, headers, body: body.into() };
                (seen.rpc() == "tools/call").then_some(refusal)
            });
        })
        .await;
        let agent = world.legacy().await;
        agent.commit().await;
        let OpenQuestion { mut stream, question, call_id } = call_with_question(&agent).await;
        assert_eq!(agent.respond(&question["id"], confirmed()).await, 202);
        let response = loop {
            let response = stream.next().await;
            if response["id"] == call_id {
                break response;
            }
        };
        assert_eq!(response["error"]["code"], -31001, "{response}");
        assert_eq!(world.outcome_status(&agent.session).await, "unknown");
    }
}

#[tokio::test]
async fn v_26_any_answer_but_a_confirmation_denies_the_call_and_frees_its_reservation() {
    let world = World::that_asks().await;
    let agent = world.legacy().await;
    agent.commit_to(json!({ "max_calls": 1 })).await;
    for no in [
        json!({ "action": "decline" }),
        json!({ "action": "cancel" }),
        json!({ "action": "accept", "content": {} }),
        json!({ "action": "accept", "content": { "confirm": "true" } }),
    ] {
        let OpenQuestion { mut stream, question, .. } = call_with_question(&agent).await;
        assert_eq!(agent.respond(&question["id"], no).await, 202);
        stream.answer().await.denied("declined");
    }
    let OpenQuestion { mut stream, question, .. } = call_with_question(&agent).await;
    let error = json!({ "jsonrpc": "2.0", "id": question["id"], "error": { "code": -1, "message": "no" } });
    assert_eq!(agent.post(&error).send().await.unwrap().status(), 202);
    stream.answer().await.denied("declined");
    assert_eq!(world.server.calls(), 0);
    agent.call("crm.read", json!({})).await.served();
}

#[tokio::test]
async fn v_26_only_the_session_that_was_asked_can_answer() {
    let world = World::that_asks().await;
    let agent = world.legacy().await;
    agent.commit().await;
    let OpenQuestion { mut stream, question, .. } = call_with_question(&agent).await;
    let other = world.legacy().await;
    assert_eq!(other.respond(&question["id"], confirmed()).await, 202);
    assert_eq!(agent.respond(&json!("tabellion-0123"), confirmed()).await, 202);
    assert_eq!(world.server.calls(), 0);
    agent.respond(&question["id"], confirmed()).await;
    stream.answer().await.served();
    // A second answer to the same question is nobody's.
    assert_eq!(agent.respond(&question["id"], confirmed()).await, 202);
    assert_eq!(world.server.calls(), 1);
}

#[tokio::test]
async fn v_26_a_cancelled_question_denies_its_call_within_the_gateway() {
    let world = World::that_asks().await;
    let agent = world.legacy().await;
    agent.commit_to(json!({ "max_calls": 1 })).await;
    let OpenQuestion { mut stream, call_id, .. } = call_with_question(&agent).await;
    assert_eq!(agent.notify("notifications/cancelled", json!({ "requestId": call_id })).await, 202);
    stream.answer().await.denied("declined");
    assert!(world.server.messages_of("notifications/cancelled").is_empty());
    agent.notify("notifications/cancelled", json!({ "requestId": 4711 })).await;
    assert_eq!(world.server.messages_of("notifications/cancelled").len(), 1, "others pass");
    agent.call("crm.read", json!({})).await.served();
}

#[tokio::test]
async fn v_26_a_question_ends_with_its_mcp_session() {
    let world = World::that_asks().await;
    let agent = world.legacy().await;
    agent.commit().await;
    let OpenQuestion { mut stream, question, .. } = call_with_question(&agent).await;
    assert_eq!(agent.end_mcp_session().await, 200);
    assert_eq!(stream.answer().await.verdict(), "denied");
    agent.respond(&question["id"], confirmed()).await;
    assert_eq!(world.server.calls(), 0);
}

#[tokio::test]
async fn v_26_a_client_that_disconnects_has_its_call_denied() {
    let world = World::that_asks().await;
    let agent = world.legacy().await;
    agent.commit_to(json!({ "max_calls": 1 })).await;
    let OpenQuestion { stream, question, .. } = call_with_question(&agent).await;
    drop(stream);
    for _ in 0..400 {
        if world.verdicts(&agent.session).await.last().is_some_and(|verdict| verdict == "denied") {
            break;
        }
        tokio::time::sleep(Duration::from_millis(20)).await;
    }
    assert_eq!(world.verdicts(&agent.session).await, ["served", "denied"]);
    agent.respond(&question["id"], confirmed()).await;
    assert_eq!(world.server.calls(), 0);
    agent.call("crm.read", json!({})).await.served();
}

#[tokio::test]
async fn v_26_an_unanswered_question_is_denied_when_its_time_is_over() {
    let world = World::with(|wishes| {
        wishes.rules.policy.push(rule("ask", "pay", None, Then::Confirm));
        wishes.patience.question = Duration::from_millis(200);
    })
    .await;
    let agent = world.legacy().await;
    agent.commit_to(json!({ "max_calls": 1 })).await;
    let OpenQuestion { mut stream, question, .. } = call_with_question(&agent).await;
    stream.answer().await.denied("unanswered");
    agent.respond(&question["id"], confirmed()).await;
    agent.call("crm.read", json!({})).await.served();
    assert_eq!(world.server.calls(), 1);
}

#[tokio::test]
async fn v_26_an_open_question_reserves_its_call() {
    let world = World::that_asks().await;
    let agent = world.legacy().await;
    agent.commit_to(json!({ "max_calls": 1 })).await;
    let OpenQuestion { mut stream, question, .. } = call_with_question(&agent).await;
    agent.call("crm.read", json!({})).await.denied("budget_exceeded");
    agent.respond(&question["id"], confirmed()).await;
    stream.answer().await.served();
    until("it ran", || world.server.calls() == 1).await;
}

#[tokio::test]
async fn v_26_a_client_that_accepts_only_json_gets_clarify() {
    let world = World::that_asks().await;
    let agent = world.legacy().await;
    agent.commit().await;
    let message = agent.message("tools/call", &agent.call_params("pay", &json!({})));
    let request = agent.post(&message).build().unwrap();
    let mut request = request;
    request.headers_mut().insert("accept", "application/json".parse().unwrap());
    let answer = crate::client::read(agent.http.execute(request).await.unwrap()).await;
    assert_eq!(answer.verdict(), "clarify", "{answer:?}");
}

#[tokio::test]
async fn v_33_a_restricted_call_is_asked_about_as_well() {
    let world = World::with(|wishes| {
        wishes.rules.policy.push(rule("ask", "pay", None, Then::Confirm));
        wishes.rules.posture = admission::rules::Posture::Restricted;
        wishes.rules.restricted = vec![vap::glob::Pattern::new("pay").unwrap()];
    })
    .await;
    let agent = world.legacy().await;
    for (said, verdict) in [(confirmed(), "downgraded"), (json!({ "action": "decline" }), "denied")] {
        let params = json!({ "name": "pay", "arguments": {} });
        let mut stream = agent.stream(&agent.message("tools/call", &params)).await;
        let question = stream.next().await;
        agent.respond(&question["id"], said).await;
        assert_eq!(stream.answer().await.verdict(), verdict);
    }
    assert_eq!(world.server.calls(), 1);
}
