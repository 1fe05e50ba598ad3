//! The upstream's own questions in the modern era (V-38): its state travels in ours, and its retry is not a second call.

use admission::rules::{Posture, Then};
use serde_json::{Value, json};
use vap::glob::Pattern;

use crate::client::{Agent, Answer};
use crate::world::{Script, World, rule, script};

/// Asks about each call once, and says of the retry whether it knows the state in it.
pub fn asks_once(state: Value) -> Script {
    script(move |seen| {
        let params = seen.json()["params"].clone();
        match (seen.rpc().as_str(), &params["inputResponses"]) {
            ("tools/call", Value::Null) => {
                let mut result = json!({
                    "resultType": "input_required",
                    "inputRequests": { "city": { "method": "elicitation/create", "params": { "mode": "form", "message": "Which?" } } },
                });
                if !state.is_null() {
                    result["requestState"] = state.clone();
                }
                Some(seen.result(&result))
            }
            ("tools/call", _) => {
                let known = params["requestState"] == state;
                let text = if known { "known" } else { "unknown" };
                Some(seen.result(&json!({ "content": [{ "type": "text", "text": text }] })))
            }
            _ => None,
        }
    })
}

/// Makes the call again with the state of this question of the upstream and an answer to it.
async fn retry_with_answer(agent: &Agent, tool: &str, question: &Answer) -> Answer {
    let mut params = agent.call_params(tool, &json!({}));
    params["requestState"] = question.reply()["result"]["requestState"].clone();
    params["inputResponses"] = json!({ "city": { "action": "accept", "content": { "city": "Bern" } } });
    agent.ask("tools/call", params).await
}

fn text(answer: &Answer) -> Value {
    answer.reply()["result"]["content"][0]["text"].clone()
}

#[tokio::test]
async fn v_38_an_upstreams_question_and_its_retry_count_as_one_call() {
    for state in [json!("their \"state\""), Value::Null] {
        let world = World::before(asks_once(state.clone())).await;
        let agent = world.modern("alice");
        agent.commit_to(json!({ "max_calls": 1 })).await;
        let question = agent.call("crm.read", json!({})).await.served();
        let result = question.reply()["result"].clone();
        assert_eq!(result["resultType"], "input_required");
        assert_eq!(result["inputRequests"]["city"]["params"]["message"], "Which?");
        assert_ne!(result["requestState"], state);
        let answer = retry_with_answer(&agent, "crm.read", &question).await.served();
        assert_eq!(text(&answer), "known");
        let retry = world.server.messages_of("tools/call").remove(1);
        assert!(retry["params"]["inputResponses"]["city"].is_object());
        agent.call("crm.read", json!({})).await.denied("budget_exceeded");
    }
}

#[tokio::test]
async fn v_38_a_second_retry_counts_as_a_new_call() {
    let world = World::before(asks_once(json!("s"))).await;
    let agent = world.modern("alice");
    agent.commit_to(json!({ "max_calls": 1 })).await;
    let question = agent.call("crm.read", json!({})).await.served();
    retry_with_answer(&agent, "crm.read", &question).await.served();
    retry_with_answer(&agent, "crm.read", &question).await.denied("budget_exceeded");
    assert_eq!(world.server.calls(), 2);
}

#[tokio::test]
async fn v_38_a_state_admits_only_the_tool_that_it_is_about() {
    let world = World::before(asks_once(json!("s"))).await;
    let agent = world.modern("alice");
    agent.commit_to(json!({ "max_calls": 1 })).await;
    let question = agent.call("crm.read", json!({})).await.served();
    retry_with_answer(&agent, "pay", &question).await.denied("invalid_state");
    assert_eq!(world.server.calls(), 1);
}

#[tokio::test]
async fn v_38_the_retry_needs_an_envelope() {
    let world = World::before(asks_once(json!("s"))).await;
    let agent = world.modern("alice");
    agent.commit().await;
    let question = agent.call("crm.read", json!({})).await.served();
    let mut params = json!({ "name": "crm.read", "arguments": {} });
    params["requestState"] = question.reply()["result"]["requestState"].clone();
    params["inputResponses"] = json!({ "city": {} });
    agent.ask("tools/call", params).await.denied("no_envelope");
}

#[tokio::test]
async fn v_26_a_person_is_asked_once_about_a_call_whose_upstream_asks_too() {
    let world = World::with(|wishes| {
        wishes.rules.policy.push(rule("ask", "pay", None, Then::Confirm));
        wishes.script = asks_once(json!("s"));
    })
    .await;
    let agent = world.modern("alice");
    agent.commit_to(json!({ "max_calls": 1 })).await;
    let ours = agent.call("pay", json!({})).await;
    assert_eq!(ours.verdict(), "clarify");
    let mut params = agent.call_params("pay", &json!({}));
    params["requestState"] = ours.reply()["result"]["requestState"].clone();
    params["inputResponses"] =
        json!({ "dev.tabellion/confirm": { "action": "accept", "content": { "confirm": true } } });
    let theirs = agent.ask("tools/call", params).await.served();
    assert_eq!(theirs.reply()["result"]["inputRequests"]["city"]["params"]["message"], "Which?");
    let answer = retry_with_answer(&agent, "pay", &theirs).await.served();
    assert_eq!(text(&answer), "known");
}

#[tokio::test]
async fn v_26_a_restricted_call_without_vap_is_asked_about_once_too() {
    let world = World::with(|wishes| {
        wishes.rules.policy.push(rule("ask", "pay", None, Then::Confirm));
        wishes.rules.posture = Posture::Restricted;
        wishes.rules.restricted = vec![Pattern::new("pay").unwrap()];
        wishes.script = asks_once(json!("s"));
    })
    .await;
    let agent = world.modern("alice");
    let ours = agent.plain("pay", json!({})).await;
    let mut params = json!({ "name": "pay", "arguments": {} });
    params["requestState"] = ours.reply()["result"]["requestState"].clone();
    params["inputResponses"] =
        json!({ "dev.tabellion/confirm": { "action": "accept", "content": { "confirm": true } } });
    let theirs = agent.ask("tools/call", params.clone()).await;
    assert_eq!(theirs.verdict(), "downgraded");
    params["requestState"] = theirs.reply()["result"]["requestState"].clone();
    params["inputResponses"] = json!({ "city": {} });
    let answer = agent.ask("tools/call", params.clone()).await;
    assert_eq!((answer.verdict().as_str(), text(&answer)), ("downgraded", json!("known")));
    // Brought again it is a new call, and asked about.
    assert_eq!(agent.ask("tools/call", params).await.verdict(), "clarify");
    assert_eq!(world.server.calls(), 2);
}

#[tokio::test]
async fn v_33_a_call_without_vap_keeps_the_upstreams_state() {
    // The state of a gateway behind this one looks like ours, and is not.
    let inner = json!("tabellion.0123456789ab.AAAA");
    for posture in [Posture::Advisory, Posture::Restricted] {
        let world = World::with(|wishes| {
            wishes.rules.posture = posture;
            wishes.rules.restricted = vec![Pattern::new("*").unwrap()];
            wishes.script = asks_once(inner.clone());
        })
        .await;
        let agent = world.modern("alice");
        let question = agent.plain("crm.read", json!({})).await;
        let mut params = json!({ "name": "crm.read", "arguments": {} });
        params["requestState"] = question.reply()["result"]["requestState"].clone();
        params["inputResponses"] = json!({ "city": {} });
        assert_eq!(text(&agent.ask("tools/call", params).await), "known", "{posture:?}");
    }
}
