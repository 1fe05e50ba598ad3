//! Methods that the operator wants judged like tools, by their own names (1.4).

use admission::rules::Then;
use serde_json::{Value, json};

use crate::client::{Agent, VAP};
use crate::world::{World, rule, script};

async fn world() -> World {
    World::with(|wishes| {
        wishes.rules.gated_methods = vec!["resources/read".into(), "completion/complete".into()];
        wishes.rules.policy.push(rule(
            "secret",
            "resources/read",
            Some(r#"contains(input.arguments.uri, "secret")"#),
            Then::Deny,
        ));
        wishes.rules.policy.push(rule(
            "ask",
            "resources/read",
            Some(r#"contains(input.arguments.uri, "ask")"#),
            Then::Confirm,
        ));
        wishes.script = script(|seen| {
            let answers = ["resources/read", "completion/complete", "prompts/get"];
            answers.contains(&seen.rpc().as_str()).then(|| seen.result(&json!({ "contents": [] })))
        });
    })
    .await
}

fn read_params(agent: &Agent, uri: &str) -> Value {
    let arguments = json!({ "uri": uri });
    json!({ "uri": uri, "_meta": { VAP: agent.envelope("resources/read", &arguments) } })
}

#[tokio::test]
async fn gated_methods_are_judged_by_their_own_name_and_refused_with_an_error() {
    let world = world().await;
    let agent = world.modern("alice");
    let without = agent.ask("resources/read", json!({ "uri": "file:///a" })).await.reply();
    assert_eq!(without["error"]["code"], -31002, "{without}");
    assert_eq!(without["error"]["data"]["vap"]["verification"]["reason"], "no_envelope");
    agent.commit().await;
    let served = agent.ask("resources/read", read_params(&agent, "file:///a")).await.served();
    assert_eq!(served.reply()["result"]["contents"], json!([]));
    let denied = agent.ask("resources/read", read_params(&agent, "file:///secret")).await;
    let error = denied.reply()["error"].clone();
    assert_eq!((denied.status, &error["code"]), (200, &json!(-31002)));
    assert_eq!(error["data"]["vap"]["verification"]["reason"], "policy:secret");
    assert!(error["data"]["vap"]["signature"].is_string());
    assert!(error["data"]["dev.tabellion/evidence"]["audit_ref"].is_string());
    assert_eq!(world.server.messages_of("resources/read").len(), 1);
    // Others are nobody's matter.
    assert_eq!(agent.ask("prompts/get", json!({ "name": "p" })).await.status, 200);
    assert_eq!(world.server.messages_of("prompts/get").len(), 1);
}

#[tokio::test]
async fn gated_methods_outside_the_scope_are_refused() {
    let world = world().await;
    let agent = world.legacy().await;
    agent.commit().await;
    let params =
        json!({ "ref": {}, "_meta": { VAP: agent.envelope("completion/complete", &json!({ "ref": {} })) } });
    let error = agent.ask("completion/complete", params).await.reply()["error"].clone();
    assert_eq!(error["data"]["vap"]["verification"]["reason"], "scope_escape", "{error}");
    assert!(world.server.messages_of("completion/complete").is_empty());
}

#[tokio::test]
async fn v_7_the_declared_uri_is_the_one_that_is_read() {
    let world = world().await;
    let agent = world.modern("alice");
    agent.commit().await;
    let mut params = read_params(&agent, "file:///a");
    params["uri"] = "file:///b".into();
    let error = agent.ask("resources/read", params).await.reply()["error"].clone();
    assert_eq!(error["data"]["vap"]["verification"]["reason"], "call_mismatch", "{error}");
}

#[tokio::test]
async fn v_26_a_gated_method_may_be_answered_with_a_question() {
    let world = world().await;
    let agent = world.modern("alice");
    agent.commit().await;
    let asked = agent.ask("resources/read", read_params(&agent, "file:///ask")).await.reply();
    assert_eq!(asked["result"]["resultType"], "input_required", "{asked}");
    let mut params = read_params(&agent, "file:///ask");
    params["requestState"] = asked["result"]["requestState"].clone();
    params["inputResponses"] =
        json!({ "dev.tabellion/confirm": { "action": "accept", "content": { "confirm": true } } });
    agent.ask("resources/read", params).await.served();
    assert!(world.server.messages_of("resources/read")[0]["params"].get("inputResponses").is_none());
}

#[tokio::test]
async fn v_22_a_gated_method_is_judged_by_all_its_parameters_whatever_their_numbers_are() {
    let world = world().await;
    let agent = world.modern("alice");
    agent.commit().await;
    let mut params = json!({ "uri": "file:///secret", "n": 99_319_931 });
    params["_meta"] = json!({ VAP: agent.envelope("resources/read", &params) });
    for (number, reason) in [("1", "policy:secret"), ("1e400", "policy_failed")] {
        let message = agent.message("resources/read", &params);
        let text = message.to_string().replace("99319931", number);
        let answer = crate::client::read(agent.post(&message).body(text).send().await.unwrap()).await;
        let error = answer.reply()["error"].clone();
        assert_eq!(error["data"]["vap"]["verification"]["reason"], reason, "{error}");
    }
    assert!(world.server.messages_of("resources/read").is_empty());
}
