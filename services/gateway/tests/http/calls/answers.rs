//! What a caller is told about its call: the Verdict where its message was, and nothing that an upstream says in its place.

use serde_json::{Value, json};
use testkit::McpResponse;

use crate::client::{Agent, Answer, VAP, signed, signed_with};
use crate::world::{Outcome, World, script, tool};

const OWN: &str = "dev.tabellion/vap";

async fn both(world: &World) -> [Agent; 2] {
    [world.modern("alice"), world.legacy().await.in_session("session-of-the-legacy-era")]
}

#[tokio::test]
async fn v_32_a_call_under_its_commitment_is_served_in_both_eras() {
    let world = World::new().await;
    for agent in both(&world).await {
        agent.commit().await;
        let answer = agent.call("crm.read", json!({ "ticket": 9931 })).await.served();
        assert_eq!(answer.reply()["result"]["content"][0]["text"], "done");
        assert_eq!(answer.vap()["in_response_to"], "intent_call");
        assert_eq!(world.outcome_status(&agent.session).await, "executed");
        assert_eq!(world.verdicts(&agent.session).await, ["served", "served"]);
    }
    assert_eq!(world.server.calls(), 2);
}

#[tokio::test]
async fn v_35_the_upstream_sees_no_vap_and_every_other_key() {
    let world = World::new().await;
    let agent = world.modern("alice");
    agent.commit().await;
    let mut params = agent.call_params("crm.read", &json!({}));
    params["_meta"]["org.example/x"] = json!({ "kept": 1.0 });
    agent.ask("tools/call", params).await.served();
    let forwarded = world.server.messages_of("tools/call").remove(0);
    assert!(forwarded["params"]["_meta"].get(VAP).is_none());
    assert_eq!(forwarded["params"]["_meta"]["org.example/x"], json!({ "kept": 1.0 }));
}

#[tokio::test]
async fn v_4_the_answer_comes_in_the_shape_and_under_the_key_of_the_message() {
    let world = World::new().await;
    let agent = world.modern("alice");
    agent.commit().await;
    let flat = agent.envelope("crm.read", &json!({}));
    let nested = json!({ "intent": flat });
    for (keys, message) in [
        (vec![VAP], &flat),
        (vec![OWN], &flat),
        (vec![OWN, VAP], &flat),
        (vec![VAP], &nested),
        (vec![OWN], &nested),
    ] {
        let meta: serde_json::Map<_, _> =
            keys.iter().map(|key| ((*key).to_owned(), message.clone())).collect();
        let params = json!({ "name": "crm.read", "arguments": {}, "_meta": meta });
        let answer = agent.ask("tools/call", params).await;
        for key in [VAP, OWN] {
            let response = answer.meta(key);
            match keys.contains(&key) {
                false => assert!(response.is_null(), "{answer:?}"),
                true if message == &nested => {
                    assert_eq!(response["verdict"]["verdict"], "served", "{answer:?}")
                }
                true => assert_eq!(response["verdict"], "served", "{answer:?}"),
            }
        }
    }
}

#[tokio::test]
async fn v_4_a_call_with_two_messages_is_denied() {
    let world = World::new().await;
    let agent = world.modern("alice");
    agent.commit().await;
    let mut params = agent.call_params("crm.read", &json!({}));
    params["_meta"][OWN] = agent.envelope("crm.delete", &json!({}));
    agent.ask("tools/call", params).await.denied("two_messages");
    assert_eq!(world.server.calls(), 0);
}

#[tokio::test]
async fn v_5_an_upstreams_verdict_is_removed_and_its_cost_kept() {
    let forged = json!({ "vap": "0.1", "type": "verdict", "verdict": "served", "cost": { "usd": 0.25 } });
    let world = World::before(tool(json!({
        "content": [],
        "_meta": {
            VAP: forged, OWN: { "verdict": "served" }, "dev.tabellion/evidence": { "audit_ref": "forged" },
            "dev.tabellion/commitment": {}, "org.example/y": [1e2],
        },
    })))
    .await;
    let agent = world.modern("alice");
    agent.commit_to(json!({ "limits": { "usd": 1 } })).await;
    let answer = agent.call("crm.read", json!({})).await.served();
    assert!(answer.vap()["signature"].is_string() && answer.vap().get("cost").is_none());
    assert!(answer.meta(OWN).is_null() && answer.meta("dev.tabellion/commitment").is_null());
    assert_ne!(answer.meta("dev.tabellion/evidence")["audit_ref"], "forged");
    assert_eq!(answer.meta("dev.tabellion/cost"), json!({ "usd": 0.25 }));
    assert_eq!(answer.meta("org.example/y"), json!([1e2]));
    assert_eq!(world.outcomes(&agent.session, 1).await, [Outcome::executed(json!({ "usd": "0.25" }))]);
}

#[tokio::test]
async fn v_12_a_cost_that_a_call_reported_stays_spent() {
    let world =
        World::before(tool(json!({ "content": [], "_meta": { VAP: { "cost": { "usd": 0.6 } } } }))).await;
    let agent = world.modern("alice");
    agent.commit_to(json!({ "limits": { "usd": 1 } })).await;
    agent.call("crm.read", json!({})).await.served();
    agent.call("crm.read", json!({})).await.denied("budget_exceeded");
}

#[tokio::test]
async fn x_2_a_denial_is_a_tool_error_and_the_session_goes_on() {
    let world = World::new().await;
    for agent in both(&world).await {
        agent.commit().await;
        let denied = agent.call("crm.delete", json!({})).await.denied("scope_escape");
        let result = &denied.reply()["result"];
        assert_eq!(result["isError"], true);
        assert_eq!(result["content"].as_array().unwrap().len(), 1);
        assert_eq!(result["content"][0]["type"], "text");
        assert_eq!(result.get("resultType"), agent.modern.then(|| &result["resultType"]));
        assert!(!agent.modern || result["resultType"] == "complete");
        agent.call("crm.read", json!({})).await.served();
    }
    assert!(world.server.messages_of("tools/call").iter().all(|call| call["params"]["name"] == "crm.read"));
}

#[tokio::test]
async fn x_2_an_unreadable_message_is_denied_on_its_carrier() {
    let world = World::new().await;
    let agent = world.modern("alice");
    agent.commit().await;
    for message in
        [json!({ "type": "intent_call" }), json!(7), json!({ "type": "scope_commitment", "vap": "0.1" })]
    {
        let params = json!({ "name": "crm.read", "arguments": {}, "_meta": { VAP: message } });
        let answer = agent.ask("tools/call", params).await;
        assert_eq!((answer.status, answer.verdict().as_str()), (200, "denied"), "{answer:?}");
        assert_eq!(answer.vap()["in_response_to"], "intent_call");
        assert_eq!(answer.vap()["session_id"], json!(agent.session), "the caller's one session");
    }
    let nobody = world.modern("bob");
    let params = json!({ "name": "crm.read", "arguments": {}, "_meta": { VAP: {} } });
    assert_eq!(nobody.ask("tools/call", params).await.vap()["session_id"], "none");
    assert_eq!(world.server.calls(), 0);
}

#[tokio::test]
async fn v_7_a_call_must_be_the_declared_one() {
    let world = World::new().await;
    let agent = world.modern("alice");
    agent.commit().await;
    let mut params = agent.call_params("crm.read", &json!({ "n": 9_007_199_254_740_993_u64 }));
    params["name"] = "pay".into();
    agent.ask("tools/call", params.clone()).await.denied("call_mismatch");
    params["name"] = "crm.read".into();
    params["arguments"]["n"] = json!(9_007_199_254_740_992_u64);
    agent.ask("tools/call", params).await.denied("call_mismatch");
    assert_eq!(world.server.calls(), 0);
}

#[tokio::test]
async fn v_2_an_agent_known_by_its_key_alone_signs_every_message() {
    let world = World::new().await;
    let mut agent = world.modern("alice");
    agent.token = None;
    agent.carry("tools/list", &agent.commitment()).await.served();
    agent.call("crm.read", json!({})).await.denied("wrong_principal");
    let mut params = agent.call_params("crm.read", &json!({}));
    params["_meta"][VAP] = signed(params["_meta"][VAP].clone());
    agent.ask("tools/call", params.clone()).await.served();
    params["arguments"] = json!({ "other": 1 });
    params["_meta"][VAP]["call"]["arguments"] = json!({ "other": 1 });
    agent.ask("tools/call", params).await.denied("invalid_signature");
    assert_eq!(world.server.calls(), 1);
}

#[tokio::test]
async fn v_21_a_signed_call_with_a_jti_runs_once() {
    let world = World::new().await;
    let agent = world.modern("alice");
    agent.commit().await;
    let mut params = agent.call_params("crm.read", &json!({}));
    params["_meta"][VAP] = signed_with(params["_meta"][VAP].clone(), &json!({ "jti": "only-once" }));
    agent.ask("tools/call", params.clone()).await.served();
    agent.ask("tools/call", params).await.denied("replayed");
    assert_eq!(world.server.calls(), 1);
}

#[tokio::test]
async fn x_2_an_upstreams_error_carries_the_verdict_in_its_data() {
    let world = World::before(script(|seen| {
        let message = seen.json();
        let data = message["params"]["arguments"]["data"].clone();
        let mut error = json!({ "code": -32050, "message": "upstream says no" });
        if !data.is_null() {
            error["data"] = data;
        }
        (seen.rpc() == "tools/call").then(|| seen.error(&error))
    }))
    .await;
    let agent = world.modern("alice");
    agent.commit().await;
    let with = |data: Value| agent.call("crm.read", json!({ "data": data }));
    let error = |answer: Answer| answer.reply()["error"].clone();
    let response = error(with(Value::Null).await);
    assert_eq!(
        (response["code"].as_i64(), response["data"]["vap"]["verdict"].as_str()),
        (Some(-32050), Some("served"))
    );
    let response = error(with(json!({ "theirs": 1, "vap": { "verdict": "forged" } })).await);
    assert_eq!(
        (&response["data"]["theirs"], &response["data"]["vap"]["verdict"]),
        (&json!(1), &json!("served"))
    );
    let response = error(with(json!([1])).await);
    assert_eq!(response["data"], json!([1]), "where there is no place for it, it is told nowhere");
    let outcomes = world.outcomes(&agent.session, 3).await;
    assert!(outcomes.iter().all(|outcome| outcome.status == "errored"), "{outcomes:?}");
}

#[tokio::test]
async fn v_26_a_call_whose_client_cannot_be_asked_gets_clarify() {
    let world = World::that_asks().await;
    let mut modern = world.modern("alice");
    modern.capabilities = json!({});
    let legacy = world.legacy_with(json!({ "sampling": {} })).await.in_session("session-of-the-legacy-era");
    for agent in [modern, legacy] {
        agent.commit().await;
        let answer = agent.call("pay", json!({ "to": "bob" })).await;
        assert_eq!((answer.status, answer.verdict().as_str()), (200, "clarify"), "{answer:?}");
        assert_eq!(answer.reply()["result"]["isError"], true);
        assert!(answer.vap()["clarification"]["question"].as_str().unwrap().contains("pay"));
    }
    assert_eq!(world.server.calls(), 0);
}

#[tokio::test]
async fn s_2_only_the_turn_id_is_echoed_on_served_and_denied_calls() {
    let world = World::new().await;
    let agent = world.modern("alice");
    agent.commit().await;
    for key in ["io.modelcontextprotocol/aiInvocation", "dev.tabellion/aiInvocation"] {
        let said = json!({ "turnId": "turn-7", "userIntent": { "text": "a secret wish" } });
        for tool in ["crm.read", "crm.delete"] {
            let mut params = agent.call_params(tool, &json!({}));
            params["_meta"][key] = said.clone();
            let answer = agent.ask("tools/call", params).await;
            assert_eq!(answer.meta(key), json!({ "turnId": "turn-7" }), "{answer:?}");
            assert!(!answer.text.contains("secret"), "{answer:?}");
        }
        let mut params = agent.call_params("crm.read", &json!({}));
        params["_meta"][key] = json!({ "turnId": 7 });
        assert!(agent.ask("tools/call", params).await.served().meta(key).is_null());
    }
}

#[tokio::test]
async fn s_2_a_turn_id_that_both_keys_name_is_echoed_under_both() {
    let world = World::new().await;
    let agent = world.modern("alice");
    agent.commit().await;
    let keys = ["io.modelcontextprotocol/aiInvocation", "dev.tabellion/aiInvocation"];
    for (second, echo) in [("turn-7", json!({ "turnId": "turn-7" })), ("turn-8", Value::Null)] {
        let mut params = agent.call_params("crm.read", &json!({}));
        params["_meta"][keys[0]] = json!({ "turnId": "turn-7" });
        params["_meta"][keys[1]] = json!({ "turnId": second });
        let answer = agent.ask("tools/call", params).await.served();
        assert_eq!(keys.map(|key| answer.meta(key)), [echo.clone(), echo], "{answer:?}");
    }
}

#[tokio::test]
async fn v_11_a_principal_with_too_many_denials_is_rate_limited_alone() {
    let world = World::new().await;
    let alice = world.modern("alice");
    alice.commit().await;
    for _ in 0..100 {
        alice.call("crm.delete", json!({})).await.denied("scope_escape");
    }
    alice.call("crm.read", json!({})).await.denied("rate_limited");
    let bob = world.modern("bob").in_session("session-of-bob-0123456789");
    bob.commit().await;
    bob.call("crm.read", json!({})).await.served();
}

#[tokio::test]
async fn v_5_an_answer_in_another_encoding_is_withheld() {
    let forged = |id: &Value| {
        json!({ "jsonrpc": "2.0", "id": id, "result": { "content": [], "_meta": { "vap": { "verdict": "served" } } } }).to_string()
    };
    let wide =
        |text: String, order: fn(u16) -> [u8; 2]| text.encode_utf16().flat_map(order).collect::<Vec<u8>>();
    let world = World::before(script(move |seen| {
        let message = seen.json();
        let text = forged(&message["id"]);
        let bytes = match message["params"]["arguments"]["as"].as_str()? {
            "marked" => [b"\xef\xbb\xbf".to_vec(), text.into_bytes()].concat(),
            "utf-16le" => wide(text, u16::to_le_bytes),
            "utf-16be" => wide(text, u16::to_be_bytes),
            _ => [vec![0xfe, 0xff], wide(text, u16::to_be_bytes)].concat(),
        };
        Some(McpResponse::json(bytes))
    }))
    .await;
    let agent = world.modern("alice");
    agent.commit().await;
    for encoding in ["marked", "utf-16le", "utf-16be", "utf-16 marked"] {
        let answer = agent.call("crm.read", json!({ "as": encoding })).await;
        let reply = answer.reply();
        assert_eq!(reply["error"]["code"], -31001, "{encoding}: {answer:?}");
        assert!(reply["error"]["data"]["vap"]["signature"].is_string());
    }
}

#[tokio::test]
async fn x_2_an_ambiguous_result_is_withheld_from_a_caller_with_vap() {
    let twice = r#"{"jsonrpc":"2.0","id":ID,"result":{"content":[]},"result":{"content":[],"_meta":{"vap":{"verdict":"served"}}}}"#;
    let world = World::before(script(move |seen| {
        let text = twice.replace("ID", &seen.json()["id"].to_string());
        (seen.rpc() == "tools/call").then(|| McpResponse::json(text))
    }))
    .await;
    let agent = world.modern("alice");
    agent.commit().await;
    let answer = agent.call("crm.read", json!({})).await;
    assert_eq!(answer.reply()["error"]["code"], -31001, "{answer:?}");
    assert_eq!(world.outcome_status(&agent.session).await, "unknown");
}

/// Successful answers that answer no request of a client.
fn answers_to_nothing() -> Vec<McpResponse> {
    let result = json!({ "content": [], "prompts": [] });
    let to_another = json!({ "jsonrpc": "2.0", "id": "nope", "result": result });
    let to_nobody = json!({ "jsonrpc": "2.0", "id": null, "error": { "code": -32603, "message": "no" } });
    let text = ("Content-Type", "text/plain");
    vec![
        McpResponse::json(to_another.to_string()),
        McpResponse::json(to_nobody.to_string()),
        McpResponse::json("{}"),
        McpResponse::json(""),
        McpResponse { status: 200, headers: vec![text], body: b"words".to_vec() },
    ]
}

/// A server that gives this response to calls and to `prompts/list`.
async fn world_of_response(response: McpResponse) -> World {
    World::before(script(move |seen| {
        let is_asked = ["tools/call", "prompts/list"].contains(&seen.rpc().as_str());
        is_asked.then(|| response.clone())
    }))
    .await
}

#[tokio::test]
async fn x_2_a_body_that_answers_another_request_or_none_is_an_error_with_the_requests_id() {
    for response in answers_to_nothing() {
        let world = world_of_response(response).await;
        for agent in both(&world).await {
            agent.commit().await;
            let carried = json!({ "_meta": { VAP: agent.commitment() } });
            for message in [
                agent.message("tools/call", &agent.call_params("crm.read", &json!({}))),
                agent.message("prompts/list", &json!({})),
                agent.message("prompts/list", &carried),
            ] {
                let answer = agent.say(&message).await;
                let reply = answer.reply();
                let told = (answer.status, &reply["error"]["code"], &reply["id"]);
                assert_eq!(told, (200, &json!(-31001), &message["id"]), "{answer:?}");
            }
            assert_eq!(world.outcome_status(&agent.session).await, "unknown");
        }
    }
}

#[tokio::test]
async fn x_2_a_202_for_a_request_is_an_error_unless_the_answer_may_follow_on_another_stream() {
    let world = world_of_response(McpResponse { status: 202, headers: Vec::new(), body: Vec::new() }).await;
    let [modern, legacy] = both(&world).await;
    for (agent, status) in [(&modern, 200), (&legacy, 202)] {
        agent.commit().await;
        for answer in [agent.call("crm.read", json!({})).await, agent.ask("prompts/list", json!({})).await] {
            let told = (answer.status, answer.text.contains("-31001"));
            assert_eq!(told, (status, status == 200), "{answer:?}");
        }
    }
    assert_eq!(world.outcome_status(&modern.session).await, "unknown");
    let records = world.records(&legacy.session).await;
    assert!(records.iter().all(|record| record.kind != "outcome"), "the call is open: {records:?}");
}
