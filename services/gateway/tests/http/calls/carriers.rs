//! What carries commitments and amendments, and when they count (X-1, V-6, V-34).

use serde_json::{Value, json};
use testkit::McpResponse;

use crate::client::{VAP, initialize, without};
use crate::world::{POSTURE, World, script};

fn posture() -> Value {
    serde_json::from_str(POSTURE).unwrap()
}

#[tokio::test]
async fn x_1_a_commitment_on_initialize_binds_the_session_of_the_answer() {
    let world = World::new().await;
    let mut agent = world.nobody();
    let mut params = initialize(&json!({}));
    params["_meta"] = json!({ VAP: agent.commitment() });
    let answer = agent.ask("initialize", params).await.served();
    assert_eq!(answer.vap()["in_response_to"], "scope_commitment");
    assert_eq!(answer.meta("dev.tabellion/commitment")["session_id"], json!(agent.session));
    assert_eq!(answer.reply()["result"]["capabilities"]["experimental"]["vap"], posture());
    assert!(answer.reply()["result"].get("cacheScope").is_none());
    agent.mcp = Some(answer.headers["mcp-session-id"].to_str().unwrap().to_owned());
    agent.call("crm.read", json!({})).await.served();
    let mut stranger = world.legacy().await;
    stranger.call("crm.read", json!({})).await.denied("wrong_principal");
    stranger.mcp = None;
    stranger.call("crm.read", json!({})).await.denied("wrong_principal");
    assert!(
        world.server.messages_of("initialize").iter().all(|seen| seen["params"]["_meta"].get(VAP).is_none())
    );
}

#[tokio::test]
async fn x_1_in_the_modern_era_the_answer_is_the_callers_own() {
    let world = World::new().await;
    let alice = world.modern("alice");
    for (agent, method) in
        [(alice.clone(), "server/discover"), (alice.in_session("session-on-tools-list"), "tools/list")]
    {
        let answer = agent.carry(method, &agent.commitment()).await.served();
        let result = &answer.reply()["result"];
        assert_eq!((&result["cacheScope"], &result["ttlMs"]), (&json!("private"), &json!(0)));
        agent.call("crm.read", json!({})).await.served();
    }
    let discovered = alice.ask("server/discover", json!({})).await.reply();
    assert_eq!(discovered["result"]["capabilities"]["extensions"]["dev.tabellion/vap"], posture());
    assert_eq!(discovered["result"]["cacheScope"], "public", "nothing was carried");
}

#[tokio::test]
async fn x_1_a_failed_carrier_voids_its_commitment_and_frees_its_id() {
    for how in ["error", "status"] {
        let world = World::before(script(move |seen| {
            let fails = seen.rpc() == "tools/list" && seen.header("x-fail").is_some();
            fails.then(|| match how {
                "error" => seen.error(&json!({ "code": -32603, "message": "no" })),
                _ => McpResponse { status: 503, ..seen.result(&json!({ "tools": [] })) },
            })
        }))
        .await;
        for agent in [world.modern("alice"), world.legacy().await.in_session("session-of-the-legacy-era")] {
            let message = agent.message("tools/list", &json!({ "_meta": { VAP: agent.commitment() } }));
            let failed = agent.post(&message).header("x-fail", "1").send().await.unwrap();
            let text = failed.text().await.unwrap();
            assert!(!text.contains("_meta"), "{text}");
            agent.call("crm.read", json!({})).await.denied("no_commitment");
            agent.commit().await;
            agent.call("crm.read", json!({})).await.served();
        }
    }
}

#[tokio::test]
async fn x_1_a_second_commitment_is_denied_and_its_carrier_forwarded_without_it() {
    let world = World::new().await;
    let agent = world.modern("alice");
    agent.commit_to(json!({ "max_calls": 1 })).await;
    agent.call("crm.read", json!({})).await.served();
    let again = agent.carry("tools/list", &agent.committing(json!({ "max_calls": 100 }))).await;
    assert_eq!(again.reply()["result"]["tools"].as_array().unwrap().len(), 4);
    again.denied("session_in_use");
    assert!(
        world.server.messages_of("tools/list").iter().all(|seen| seen["params"]["_meta"].get(VAP).is_none())
    );
    agent.call("crm.read", json!({})).await.denied("budget_exceeded");
}

#[tokio::test]
async fn v_2_a_modern_commitment_needs_a_token_or_a_known_key() {
    let world = World::new().await;
    let mut agent = world.modern("alice");
    agent.token = None;
    // In the modern era a session header means nothing.
    agent.mcp = Some("mcp-of-my-choice".into());
    let answer = agent.carry("tools/list", &agent.commitment_of_a_stranger(json!({ "max_calls": 50 }))).await;
    assert_eq!(answer.reply()["result"]["tools"].as_array().unwrap().len(), 4, "the carrier went on");
    answer.denied("no_principal");
}

#[tokio::test]
async fn v_2_a_commitment_on_initialize_needs_a_session_in_the_answer() {
    let world = World::before(script(|seen| {
        (seen.rpc() == "initialize").then(|| seen.result(&json!({ "capabilities": {} })))
    }))
    .await;
    let mut agent = world.nobody();
    agent.mcp = Some("mcp-of-my-choice".into());
    let mut params = initialize(&json!({}));
    params["_meta"] = json!({ VAP: agent.commitment_of_a_stranger(json!({ "max_calls": 50 })) });
    agent.ask("initialize", params).await.denied("no_principal");
}

#[tokio::test]
async fn v_6_amendments_ride_on_tools_list_on_ping_and_alone() {
    let world = World::new().await;
    let legacy = world.legacy().await;
    for (agent, methods) in [
        (legacy, vec!["tools/list", "ping", "vap/amend"]),
        (world.modern("alice").in_session("session-of-alice-01234"), vec!["tools/list", "vap/amend"]),
    ] {
        let mut before = agent.commit_to(json!({ "max_calls": 1 })).await;
        for method in methods {
            let amendment = agent.amendment(&before, &json!({ "increase_budget": { "add_calls": 1 } }));
            let answer = agent.carry(method, &amendment).await.served();
            assert_eq!(answer.vap()["in_response_to"], "scope_amendment");
            let budget = &answer.meta("dev.tabellion/commitment")["budget"];
            assert!(budget["max_calls"].as_u64() > Some(1), "{answer:?}");
            // The digest is the new one: the old chain is broken.
            agent.carry(method, &amendment).await.denied("chain_broken");
            before = answer;
        }
    }
    assert!(world.server.messages_of("vap/amend").is_empty());
}

#[tokio::test]
async fn v_19_an_amendment_needs_a_signature() {
    let world = World::new().await;
    let agent = world.modern("alice");
    let before = agent.commit_to(json!({ "max_calls": 1 })).await;
    let amendment = agent.amendment(&before, &json!({ "add_scope": { "tools_allow": ["mail.*"] } }));
    let unsigned = Value::from(without(&amendment, &["signature"]));
    agent.carry("vap/amend", &unsigned).await.denied("signature_required");
    agent.call("mail.send", json!({})).await.denied("scope_escape");
    agent.carry("vap/amend", &amendment).await.served();
    agent.call("mail.send", json!({})).await.served();
}

#[tokio::test]
async fn v_6_an_amend_request_without_a_message_is_an_error() {
    let world = World::new().await;
    let agent = world.legacy().await;
    let answer = agent.ask("vap/amend", json!({ "_meta": { "progressToken": 1 } })).await;
    assert_eq!((answer.status, answer.reply()["error"]["code"].as_i64()), (200, Some(-32602)), "{answer:?}");
    assert!(world.server.messages_of("vap/amend").is_empty());
}

#[tokio::test]
async fn v_6_a_message_on_the_wrong_carrier_is_denied() {
    let world = World::new().await;
    let agent = world.legacy().await;
    agent.carry("ping", &agent.commitment()).await.denied("wrong_carrier");
    agent.carry("tools/list", &agent.envelope("crm.read", &json!({}))).await.denied("wrong_carrier");
    let elsewhere = agent.carry("prompts/list", &agent.commitment()).await;
    assert!(!elsewhere.text.contains("verdict") && elsewhere.reply()["error"]["code"] == -32601);
    agent.call("crm.read", json!({})).await.denied("no_commitment");
}

#[tokio::test]
async fn x_1_an_unreachable_upstream_voids_a_commitment() {
    let world = World::with(|wishes| wishes.url = Some("http://127.0.0.1:9/".into())).await;
    let agent = world.modern("alice");
    let answer = agent.carry("tools/list", &agent.commitment()).await;
    assert_eq!(answer.reply()["error"]["code"], -31001, "{answer:?}");
    assert_eq!(world.records(&agent.session).await, []);
}

#[tokio::test]
async fn v_2_a_session_ends_with_the_mcp_session_that_committed_it() {
    let world = World::new().await;
    let agent = world.legacy().await;
    agent.commit().await;
    assert_eq!(agent.end_mcp_session().await, 200);
    world.until_closed(&agent.session).await;
}
