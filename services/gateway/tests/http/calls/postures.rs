//! Callers without VAP (V-33), and what `tools/list` shows (V-36).

use admission::rules::{Posture, Then};
use serde_json::{Value, json};
use testkit::McpResponse;
use vap::glob::Pattern;

use crate::client::{VAP, read};
use crate::world::{TOOLS, World, rule, script};

/// An answer with everything that a careless proxy changes.
const ODD: &str = "{ \"result\" : {\"content\":[ ],\"_meta\":{\"vap\":{\"cost\":{\"usd\":1e2}},\"dev.tabellion/cost\":1},\"n\":1.0e1,\"u\":\"\\u2028\"} ,\"jsonrpc\":\"2.0\", \"id\": ID }\n";

#[tokio::test]
async fn v_33_advisory_an_answer_passes_byte_for_byte_and_its_call_is_recorded() {
    let world = World::with(|wishes| {
        wishes.rules.posture = Posture::Advisory;
        wishes.script = script(|seen| {
            let id = seen.json()["id"].to_string();
            (seen.rpc() == "tools/call").then(|| McpResponse::json(ODD.replace("ID", &id)))
        });
    })
    .await;
    for agent in [world.modern("alice"), world.legacy().await, world.nobody()] {
        let message = agent.message("tools/call", &json!({ "name": "anything", "arguments": {} }));
        let got = agent.say(&message).await;
        assert_eq!(got.text, ODD.replace("ID", &message["id"].to_string()));
    }
    assert_eq!(world.verdicts(&world.unbound()).await, ["served", "served"]);
    let own = world.stream_below(&world.unbound()).await;
    assert_eq!(world.verdicts(&own).await, ["served"], "a legacy session has a stream of its own");
    for (stream, count) in [(world.unbound(), 2), (own, 1)] {
        let outcomes = world.outcomes(&stream, count).await;
        assert!(outcomes.iter().all(|outcome| outcome.status == "executed"), "{outcomes:?}");
    }
}

#[tokio::test]
async fn v_33_advisory_a_caller_with_a_commitment_needs_an_envelope() {
    let world = World::with(|wishes| wishes.rules.posture = Posture::Advisory).await;
    let agent = world.modern("alice");
    agent.call("crm.read", json!({})).await.denied("no_commitment");
    agent.plain("crm.delete", json!({})).await;
    assert_eq!(world.server.calls(), 1);
    agent.commit().await;
    agent.call("crm.delete", json!({})).await.denied("scope_escape");
    agent.plain("crm.delete", json!({})).await.denied("no_envelope");
    assert_eq!(world.server.calls(), 1);
}

#[tokio::test]
async fn an_agentroa_envelope_is_denied_or_removed_on_a_route_without_agentroa() {
    let world = World::new().await;
    let agent = world.modern("alice");
    agent.commit().await;
    for key in ["dev.tabellion/roa", "dev.tabellion/roa-proof"] {
        let mut message = agent.message("tools/call", &agent.call_params("crm.read", &json!({})));
        message["params"]["_meta"][key] = json!([]);
        agent.say(&message).await.denied("roa_not_enforced");
    }
    let params = json!({ "name": "crm.read", "arguments": {}, "_meta": { "dev.tabellion/roa": [] } });
    world.nobody().ask("tools/call", params).await.denied("roa_not_enforced");
    assert_eq!(world.server.calls(), 0);
    let world = World::with(|wishes| wishes.rules.posture = Posture::Advisory).await;
    let params = json!({ "name": "crm.read", "arguments": {}, "_meta": { "dev.tabellion/roa": [] } });
    world.nobody().ask("tools/call", params).await;
    assert!(!world.server.messages_of("tools/call")[0].to_string().contains("roa"));
    let record = &world.records(&world.unbound()).await[0];
    assert_eq!(record.payload["advised"], json!({ "verdict": "denied", "reason": "roa_not_enforced" }));
}

#[tokio::test]
async fn v_33_restricted_serves_what_the_operator_listed_and_says_so() {
    let world = World::with(|wishes| {
        wishes.rules.posture = Posture::Restricted;
        wishes.rules.restricted = vec![Pattern::new("crm.r*").unwrap()];
        wishes.rules.policy.push(rule("no", "crm.remove", None, Then::Deny));
    })
    .await;
    let agent = world.modern("alice");
    let served = agent.plain("crm.read", json!({})).await;
    assert_eq!((served.verdict(), served.reason()), ("downgraded".into(), "restricted".into()));
    assert!(served.vap()["downgrade"]["note"].is_string());
    agent.plain("crm.delete", json!({})).await.denied("restricted");
    agent.plain("crm.remove", json!({})).await.denied("policy:no");
    assert_eq!(world.server.calls(), 1);
}

#[tokio::test]
async fn v_33_by_default_a_call_without_vap_is_denied_in_band() {
    let world = World::new().await;
    for agent in [world.modern("alice"), world.legacy().await, world.nobody()] {
        let denied = agent.plain("crm.read", json!({})).await.denied("no_envelope");
        assert_eq!(denied.reply()["result"]["isError"], true);
        assert_eq!(denied.vap()["session_id"], "none");
    }
    assert_eq!(world.server.calls(), 0);
}

fn names(reply: &Value) -> Vec<String> {
    let tools = reply["result"]["tools"].as_array().unwrap();
    tools.iter().map(|tool| tool["name"].as_str().unwrap().to_owned()).collect()
}

#[tokio::test]
async fn v_36_the_list_of_tools_passes_unchanged_by_default() {
    let world = World::new().await;
    let agent = world.modern("alice");
    agent.commit().await;
    let listed = agent.ask("tools/list", json!({})).await.reply();
    assert_eq!(names(&listed), TOOLS);
    assert_eq!(listed["result"]["cacheScope"], "public");
}

#[tokio::test]
async fn v_36_a_filtered_list_shows_a_committed_caller_what_it_may_call() {
    let world = World::with(|wishes| wishes.filter_tools = true).await;
    let agent = world.modern("alice");
    let before = agent.ask("tools/list", json!({})).await.reply();
    assert_eq!(names(&before), TOOLS, "it has to know what it could commit to");
    assert_eq!(before["result"]["cacheScope"], "private", "another caller's is another");
    // The answer that carries the Verdict is filtered by what was committed on it.
    let committed = agent.commit().await.reply();
    assert_eq!(names(&committed), ["crm.read", "pay"]);
    let listed = agent.ask("tools/list", json!({})).await.reply();
    assert_eq!(names(&listed), ["crm.read", "pay"]);
    assert_eq!((&listed["result"]["cacheScope"], &listed["result"]["ttlMs"]), (&json!("private"), &json!(0)));
    assert!(listed["result"].get("_meta").is_none());
    assert_eq!(names(&world.modern("bob").ask("tools/list", json!({})).await.reply()), TOOLS);
    let legacy = world.legacy().await.in_session("session-of-the-legacy-era");
    legacy.commit().await;
    let listed = legacy.ask("tools/list", json!({ "cursor": "2" })).await.reply();
    assert_eq!(names(&listed), ["crm.read", "pay"]);
    assert_eq!(listed["result"]["cacheScope"], "public", "a legacy list has no such member of ours");
    assert_eq!(world.server.messages_of("tools/list").last().unwrap()["params"]["cursor"], "2");
}

#[tokio::test]
async fn v_36_the_tools_of_a_filtered_list_stay_byte_for_byte() {
    const TOOL: &str = r#"{ "name" : "crm.read", "x":1e2, "description":"a\u2028b" }"#;
    let world = World::with(|wishes| {
        wishes.filter_tools = true;
        wishes.script = script(|seen| {
            let text = format!(
                r#"{{"jsonrpc":"2.0","id":{},"result":{{"tools":[{{"name":"mail.send"}},{TOOL},{{"name":"other"}}],"nextCursor":"n"}}}}"#,
                seen.json()["id"]
            );
            (seen.rpc() == "tools/list").then(|| McpResponse::json(text))
        });
    })
    .await;
    let agent = world.legacy().await;
    agent.commit().await;
    let listed = agent.ask("tools/list", json!({})).await;
    assert!(listed.text.contains(&format!(r#""tools":[{TOOL}],"nextCursor":"n""#)), "{}", listed.text);
}

#[tokio::test]
async fn v_3_a_session_belongs_to_the_mcp_session_that_committed_it() {
    let world = World::new().await;
    let first = world.legacy().await;
    first.commit().await;
    let second = world.legacy().await;
    second.carry("tools/list", &second.commitment()).await.denied("session_in_use");
    second.call("crm.read", json!({})).await.denied("wrong_principal");
    first.call("crm.read", json!({})).await.served();
}

#[tokio::test]
async fn v_2_an_mcp_session_counts_only_if_the_server_issued_it() {
    let world = World::new().await;
    let mut agent = world.legacy().await;
    agent.commit().await;
    agent.mcp = Some("invented-0123456789abcdef".into());
    let other = agent.in_session("another-session-0123456789");
    other
        .carry("tools/list", &other.commitment_of_a_stranger(json!({ "max_calls": 50 })))
        .await
        .denied("no_principal");
    // Not even by asking, with that session, what an opening asks.
    let discovered = other.ask("server/discover", json!({ "capabilities": { "elicitation": {} } })).await;
    assert_eq!(discovered.status, 200, "{discovered:?}");
    other
        .carry("tools/list", &other.commitment_of_a_stranger(json!({ "max_calls": 50 })))
        .await
        .denied("no_principal");
    agent.call("crm.read", json!({})).await.denied("wrong_principal");
}

#[tokio::test]
async fn x_2_a_call_without_an_id_is_refused() {
    let world = World::with(|wishes| wishes.rules.posture = Posture::Advisory).await;
    let agent = world.legacy().await;
    let message = json!({ "jsonrpc": "2.0", "method": "tools/call",
        "params": { "name": "crm.read", "_meta": { VAP: agent.envelope("crm.read", &json!({})) } } });
    let answer = read(agent.post(&message).send().await.unwrap()).await;
    assert_eq!(answer.status, 400, "{answer:?}");
    assert_eq!(world.server.calls(), 0);
}
