//! A person is asked by a result that the client brings back answered (V-26, modern).

use admission::rules::Then;
use serde_json::{Value, json};

use crate::client::{Agent, Answer, VAP};
use crate::world::{World, rule};

const CONFIRM: &str = "dev.tabellion/confirm";

fn arguments() -> Value {
    json!({ "to": "bob", "amount": 7 })
}

/// Makes a call that is answered with a question, and returns its `requestState`.
async fn call_with_question(agent: &Agent) -> Value {
    let answer = agent.call("pay", arguments()).await;
    let result = answer.reply()["result"].clone();
    assert_eq!((answer.status, &result["resultType"]), (200, &json!("input_required")), "{answer:?}");
    assert_eq!(answer.verdict(), "clarify");
    let request = &result["inputRequests"][CONFIRM];
    assert_eq!(request["method"], "elicitation/create");
    assert_eq!(request["params"]["mode"], "form");
    assert!(!request["params"]["message"].as_str().unwrap().contains("ticket"), "no word of the rationale");
    result["requestState"].clone()
}

/// The `inputResponses` of a person who confirms the call.
fn confirmed() -> Value {
    json!({ CONFIRM: { "action": "accept", "content": { "confirm": true } } })
}

fn retry_params(agent: &Agent, tool: &str, arguments: &Value, state: &Value, responses: &Value) -> Value {
    let mut params = agent.call_params(tool, arguments);
    params["requestState"] = state.clone();
    params["inputResponses"] = responses.clone();
    params
}

/// Makes the call again with this state and these `inputResponses`.
async fn retry(agent: &Agent, state: &Value, responses: Value) -> Answer {
    agent.ask("tools/call", retry_params(agent, "pay", &arguments(), state, &responses)).await
}

#[tokio::test]
async fn v_26_a_confirmed_retry_is_served_once_without_our_state_and_answer() {
    let world = World::that_asks().await;
    let agent = world.modern("alice");
    agent.commit_to(json!({ "max_calls": 1 })).await;
    let state = call_with_question(&agent).await;
    assert_eq!(world.server.calls(), 0);
    retry(&agent, &state, confirmed()).await.served();
    let forwarded = world.server.messages_of("tools/call").remove(0);
    assert!(forwarded["params"].get("requestState").is_none(), "{forwarded}");
    assert!(forwarded["params"].get("inputResponses").is_none(), "{forwarded}");
    // A question is not an admitted call: this was the one.
    retry(&agent, &state, confirmed()).await.denied("invalid_state");
    agent.call("crm.read", json!({})).await.denied("budget_exceeded");
    assert_eq!(world.server.calls(), 1);
}

#[tokio::test]
async fn v_26_one_of_two_concurrent_retries_is_served() {
    let world = World::that_asks().await;
    let agent = world.modern("alice");
    agent.commit().await;
    let state = call_with_question(&agent).await;
    let (first, second) =
        tokio::join!(retry(&agent, &state, confirmed()), retry(&agent, &state, confirmed()));
    let mut verdicts = [first.verdict(), second.verdict()];
    verdicts.sort();
    assert_eq!(verdicts, ["denied", "served"]);
    assert_eq!(world.server.calls(), 1);
}

#[tokio::test]
async fn v_26_any_answer_but_a_confirmation_denies_the_call() {
    let world = World::that_asks().await;
    let agent = world.modern("alice");
    agent.commit().await;
    for no in [
        json!({}),
        json!(null),
        json!({ CONFIRM: { "action": "decline" } }),
        json!({ CONFIRM: { "action": "cancel" } }),
        json!({ CONFIRM: { "action": "accept", "content": { "confirm": 1 } } }),
        json!({ "another": { "action": "accept", "content": { "confirm": true } } }),
    ] {
        let state = call_with_question(&agent).await;
        retry(&agent, &state, no).await.denied("declined");
        // It was said: the same state says nothing else.
        retry(&agent, &state, confirmed()).await.denied("invalid_state");
    }
    assert_eq!(world.server.calls(), 0);
}

#[tokio::test]
async fn v_26_a_state_admits_only_its_own_call_and_survives_other_attempts() {
    let world = World::that_asks().await;
    let alice = world.modern("alice");
    alice.commit().await;
    let other_session = alice.in_session("another-session-of-alice");
    other_session.commit().await;
    let bob = world.modern("bob").in_session("session-of-bob-0123456789");
    bob.commit().await;
    let state = call_with_question(&alice).await;
    // Another session, another principal, other arguments, another tool.
    retry(&other_session, &state, confirmed()).await.denied("invalid_state");
    retry(&bob, &state, confirmed()).await.denied("invalid_state");
    let thief = bob.in_session(&alice.session);
    retry(&thief, &state, confirmed()).await.denied("wrong_principal");
    let other = json!({ "to": "bob", "amount": 7000 });
    let params = retry_params(&alice, "pay", &other, &state, &confirmed());
    alice.ask("tools/call", params).await.denied("invalid_state");
    let params = retry_params(&alice, "crm.read", &arguments(), &state, &confirmed());
    alice.ask("tools/call", params).await.denied("invalid_state");
    assert_eq!(world.server.calls(), 0);
    retry(&alice, &state, confirmed()).await.served();
}

#[tokio::test]
async fn v_26_an_altered_state_is_refused_with_an_error() {
    let world = World::that_asks().await;
    let agent = world.modern("alice");
    agent.commit().await;
    let state = call_with_question(&agent).await;
    let text = state.as_str().unwrap();
    let last = if text.ends_with('A') { "B" } else { "A" };
    for altered in [format!("{}{last}", &text[..text.len() - 1]), text[..text.len() - 4].to_owned()] {
        assert_altered_state(&retry(&agent, &json!(altered), confirmed()).await);
    }
    // So does a harmless call that brings one.
    let params = retry_params(&agent, "crm.read", &json!({}), &json!(format!("{text}x")), &confirmed());
    assert_altered_state(&agent.ask("tools/call", params).await);
    assert_eq!(world.server.calls(), 0);
}

/// Asserts that the answer is MCP's error for a state that was altered, with the Verdict in its data.
fn assert_altered_state(answer: &Answer) {
    let error = answer.reply()["error"].clone();
    assert_eq!((answer.status, &error["code"]), (400, &json!(-32602)), "{answer:?}");
    let vap = &error["data"][VAP];
    assert_eq!(
        (&vap["verdict"], &vap["verification"]["reason"]),
        (&json!("denied"), &json!("invalid_state"))
    );
    assert!(vap["signature"].is_string(), "{answer:?}");
    assert!(error["data"]["dev.tabellion/evidence"]["audit_ref"].is_string(), "{answer:?}");
}

#[tokio::test]
async fn v_26_a_state_is_valid_only_under_the_rules_that_it_was_made_under() {
    let before = World::that_asks().await;
    let agent = before.modern("alice");
    agent.commit().await;
    let state = call_with_question(&agent).await;
    let after = World::with(|wishes| {
        wishes.rules.policy.push(rule("ask", "pay", None, Then::Confirm));
        wishes.rules.policy_digest = format!("sha256:{}", "0".repeat(64));
        wishes.store = before.store.clone();
    })
    .await;
    let agent = after.modern("alice");
    retry(&agent, &state, confirmed()).await.denied("invalid_state");
    assert_eq!(after.server.calls(), 0);
    // Under the same rules the state outlives the process that gave it.
    let same = World::with(|wishes| {
        wishes.rules.policy.push(rule("ask", "pay", None, Then::Confirm));
        wishes.store = before.store.clone();
    })
    .await;
    retry(&same.modern("alice"), &state, confirmed()).await.served();
}

#[tokio::test]
async fn v_26_the_retry_is_checked_again_from_the_start() {
    let world = World::that_asks().await;
    let agent = world.modern("alice");
    agent.commit_to(json!({ "max_calls": 1 })).await;
    let state = call_with_question(&agent).await;
    agent.call("crm.read", json!({})).await.served();
    retry(&agent, &state, confirmed()).await.denied("budget_exceeded");
    let mut params = retry_params(&agent, "pay", &arguments(), &state, &confirmed());
    params["_meta"] = json!({});
    agent.ask("tools/call", params).await.denied("no_envelope");
    assert_eq!(world.server.calls(), 1);
}

#[tokio::test]
async fn v_26_an_upstreams_own_state_passes_to_it() {
    let world = World::that_asks().await;
    let agent = world.modern("alice");
    agent.commit().await;
    let params = retry_params(&agent, "crm.read", &json!({}), &json!("theirs"), &json!({ "q": {} }));
    agent.ask("tools/call", params).await.served();
    let forwarded = world.server.messages_of("tools/call").remove(0);
    assert_eq!(forwarded["params"]["requestState"], "theirs");
    assert_eq!(forwarded["params"]["inputResponses"], json!({ "q": {} }));
}

#[tokio::test]
async fn v_26_a_signed_call_is_asked_about_and_brought_back_as_it_was() {
    let world = World::that_asks().await;
    let agent = world.modern("alice");
    agent.commit().await;
    let mut params = agent.call_params("pay", &arguments());
    params["_meta"][VAP] = crate::client::signed(params["_meta"][VAP].clone());
    let first = agent.ask("tools/call", params.clone()).await;
    params["requestState"] = first.reply()["result"]["requestState"].clone();
    params["inputResponses"] = confirmed();
    agent.ask("tools/call", params).await.served();
}
