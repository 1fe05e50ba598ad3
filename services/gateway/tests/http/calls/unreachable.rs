//! Answers that do not come (X-2, V-12, V-14): what the caller is told, what is spent, and that nothing is sent twice.

use std::sync::Arc;
use std::time::Duration;

use gateway::upstream::Upstream;
use gateway::upstream::federation::Federation;
use gateway::upstream::stdio::Stdio;
use serde_json::json;
use testkit::{McpRequest, McpResponse};

use crate::client::Answer;
use crate::front::until;
use crate::scripted::program;
use crate::world::{Script, World, script, silent};

/// Answers a call with a stream that shows some life and is cut before the answer.
fn cut() -> Script {
    Box::new(|seen, wire| {
        let asked = seen.rpc() == "tools/call";
        if asked {
            wire.stream();
            wire.bytes("data: {\"jsonrpc\":\"2.0\",\"method\":\"notifications/x\"}\n\n");
            wire.hang_up();
        }
        asked
    })
}

/// Asserts that the answer is the error for a call that was admitted and whose answer is lost.
fn assert_lost(answer: &Answer) {
    let error = answer.reply()["error"].clone();
    assert_eq!((answer.status, error["code"].as_i64()), (200, Some(-31001)), "{answer:?}");
    assert_eq!(error["data"]["vap"]["verdict"], "served", "it was admitted: {answer:?}");
}

#[tokio::test]
async fn x_2_a_call_of_an_unreachable_upstream_costs_nothing() {
    let world = World::with(|wishes| wishes.script = script(|_| None)).await;
    let agent = world.modern("alice");
    agent.commit_to(json!({ "max_calls": 1 })).await;
    let away = World::with(|wishes| {
        wishes.store = world.store.clone();
        wishes.url = Some("http://127.0.0.1:9/".into());
    })
    .await;
    let there = away.modern("alice");
    for _ in 0..3 {
        assert_lost(&there.call("crm.read", json!({})).await);
    }
    let outcomes = away.outcomes(&agent.session, 3).await;
    assert!(outcomes.iter().all(|outcome| outcome.status == "refused"), "{outcomes:?}");
}

#[tokio::test]
async fn v_14_a_call_of_a_name_that_no_server_of_a_federation_has_costs_nothing() {
    let server = Arc::new(Stdio::new(program("both"), "both"));
    let servers: Vec<(String, Arc<dyn Upstream>)> =
        vec![("a".into(), server.clone()), ("b".into(), server.clone())];
    let federation = Arc::new(Federation::new(servers, ".").unwrap());
    let world = World::with(|wishes| wishes.upstream = Some(federation)).await;
    let legacy = world.legacy().await.in_session("session-of-the-legacy-era");
    for (agent, status) in [(world.modern("alice"), 400), (legacy, 200)] {
        agent.commit_to_tools(&["*"], json!({ "max_calls": 1 })).await;
        let refused = agent.call("nobody.echo", json!({})).await;
        let error = &refused.reply()["error"];
        assert_eq!((refused.status, &error["code"]), (status, &json!(-32602)), "{refused:?}");
        assert_eq!(error["data"]["vap"]["verdict"], "served", "it was admitted: {refused:?}");
        agent.call("a.echo", json!({})).await.served();
        agent.call("a.echo", json!({})).await.denied("budget_exceeded");
        let outcomes = world.outcomes(&agent.session, 2).await;
        assert_eq!((&*outcomes[0].status, &*outcomes[1].status), ("refused", "executed"));
    }
    server.stop().await;
}

#[tokio::test]
async fn v_14_a_call_that_the_gateway_does_not_send_to_a_started_server_costs_nothing() {
    let server = Arc::new(Stdio::new(program("modern"), "modern"));
    let world = World::with(|wishes| wishes.upstream = Some(server.clone())).await;
    let agent = world.modern("alice");
    agent.commit_to_tools(&["last"], json!({ "max_calls": 1 })).await;
    let without_header = agent.call("last", json!({ "region": "eu" })).await;
    let code = &without_header.reply()["error"]["code"];
    assert_eq!((without_header.status, code), (400, &json!(-32020)), "{without_header:?}");
    agent.call("last", json!({})).await.served();
    let outcomes = world.outcomes(&agent.session, 2).await;
    assert_eq!((&*outcomes[0].status, &*outcomes[1].status), ("refused", "executed"));
    server.stop().await;
}

#[tokio::test]
async fn x_2_a_call_of_a_silent_upstream_keeps_its_reservation() {
    let world = World::with(|wishes| {
        wishes.script = silent(&["tools/call"], false);
        wishes.answer_time = Duration::from_millis(300);
    })
    .await;
    let agent = world.modern("alice");
    agent.commit_to(json!({ "max_calls": 1 })).await;
    assert_lost(&agent.call("crm.read", json!({})).await);
    assert_eq!(world.outcome_status(&agent.session).await, "unknown");
    agent.call("crm.read", json!({})).await.denied("budget_exceeded");
    assert_eq!(world.server.calls(), 1, "a forwarded call is never sent again");
}

#[tokio::test]
async fn x_2_a_call_whose_answer_breaks_off_is_lost_and_sent_once() {
    let world = World::before(cut()).await;
    let agent = world.modern("alice");
    agent.commit_to(json!({ "max_calls": 1 })).await;
    let answer = agent.call("crm.read", json!({})).await;
    assert_eq!(answer.messages()[0]["method"], "notifications/x");
    assert_lost(&answer);
    assert_eq!(world.outcome_status(&agent.session).await, "unknown");
    assert_eq!(world.server.calls(), 1);
}

#[tokio::test]
async fn x_2_a_stream_that_ends_without_an_answer_is_lost_in_the_modern_era() {
    let world =
        World::before(script(|seen| (seen.rpc() == "tools/call").then(|| McpResponse::events(&[])))).await;
    let agent = world.modern("alice");
    agent.commit().await;
    assert_lost(&agent.call("crm.read", json!({})).await);
}

#[tokio::test]
async fn x_2_an_unreadable_answer_is_an_error_with_the_calls_id() {
    let twice = |seen: &McpRequest| {
        let id = seen.id().unwrap();
        format!(r#"{{"jsonrpc":"2.0","id":{id},"result":{{}},"result":{{"tools":[],"prompts":[]}}}}"#)
    };
    let unreadable: [fn(String) -> McpResponse; 4] = [
        |twice| McpResponse::json(twice),
        |twice| McpResponse { status: 500, ..McpResponse::json(twice) },
        |twice| McpResponse::event_stream(format!("data: {twice}\n\n")),
        |_| McpResponse::event_stream("data: {not json\n\n"),
    ];
    for answer in unreadable {
        let world =
            World::before(script(move |seen| (seen.rpc() == "tools/call").then(|| answer(twice(seen)))))
                .await;
        for agent in [world.legacy().await, world.modern("alice").in_session("session-of-alice-01234")] {
            agent.commit().await;
            let response = agent.call("crm.read", json!({})).await;
            assert_lost(&response);
            assert!(response.reply()["id"].is_u64(), "{response:?}");
            assert_eq!(world.outcome_status(&agent.session).await, "unknown");
        }
    }
}

#[tokio::test]
async fn x_2_an_unreadable_list_is_an_error_with_the_requests_id() {
    let world = World::before(script(|seen| {
        let asked = ["tools/list", "prompts/list"].contains(&seen.rpc().as_str());
        asked.then(|| McpResponse::json(format!(r#"{{"id":{},"result":1,"result":2}}"#, seen.id().unwrap())))
    }))
    .await;
    for agent in [world.legacy().await, world.modern("alice")] {
        for method in ["tools/list", "prompts/list"] {
            let response = agent.ask(method, json!({})).await;
            let reply = response.reply();
            assert_eq!(
                (response.status, reply["error"]["code"].as_i64()),
                (200, Some(-31001)),
                "{response:?}"
            );
            assert!(reply["id"].is_u64(), "{response:?}");
        }
    }
}

#[tokio::test]
async fn x_2_an_unreadable_event_is_replaced_by_an_error_with_the_requests_id() {
    let world = World::before(script(|seen| {
        let id = seen.id().unwrap_or_default();
        let twice = format!(r#"{{"id":{id},"result":1,"result":2}}"#);
        let asked = ["tools/list", "prompts/list"].contains(&seen.rpc().as_str());
        asked.then(|| McpResponse::event_stream(format!("id: 1\ndata: {twice}\n\n")))
    }))
    .await;
    for agent in [world.legacy().await, world.modern("alice")] {
        for method in ["tools/list", "prompts/list"] {
            let response = agent.ask(method, json!({})).await;
            let messages = response.messages();
            assert_eq!((messages.len(), &messages[0]["error"]["code"]), (1, &json!(-31001)), "{response:?}");
            assert!(messages[0]["id"].is_u64(), "{response:?}");
        }
    }
}

#[tokio::test]
async fn x_2_an_answer_after_unreadable_text_is_the_only_one() {
    let world = World::before(script(|seen| {
        let prompts = json!({ "jsonrpc": "2.0", "id": seen.json()["id"], "result": { "prompts": [] } });
        let stream = format!("data: {{not json\n\ndata: {prompts}\n\n");
        (seen.rpc() == "prompts/list").then(|| McpResponse::event_stream(stream))
    }))
    .await;
    for agent in [world.legacy().await, world.modern("alice")] {
        let messages = agent.ask("prompts/list", json!({})).await.messages();
        assert_eq!((messages.len(), &messages[0]["result"]["prompts"]), (1, &json!([])), "{messages:?}");
    }
}

#[tokio::test]
async fn an_unreadable_refusal_keeps_its_status_and_challenge() {
    let challenge = ("WWW-Authenticate", "Bearer");
    let world = World::before(script(move |seen| {
        let status = match seen.rpc().as_str() {
            "tools/call" => 404,
            "prompts/list" => 401,
            _ => return None,
        };
        let headers = vec![challenge, ("Content-Type", "application/json"), ("Content-Encoding", "gzip")];
        Some(McpResponse { status, headers, body: b"\x1f\x8b".to_vec() })
    }))
    .await;
    let agent = world.legacy().await;
    agent.commit().await;
    let call = agent.call("crm.read", json!({})).await;
    assert_eq!(world.outcome_status(&agent.session).await, "unknown");
    let list = agent.ask("prompts/list", json!({})).await;
    for (response, status) in [(call, 404), (list, 401)] {
        assert_eq!(
            (response.status, &response.reply()["error"]["code"]),
            (status, &json!(-31001)),
            "{response:?}"
        );
        assert_eq!(response.headers["www-authenticate"], "Bearer");
        assert!(!response.headers.contains_key("content-encoding"), "{response:?}");
    }
}

#[tokio::test]
async fn x_2_an_error_to_a_caller_without_vap_has_no_verdict() {
    let world = World::with(|wishes| {
        wishes.url = Some("http://127.0.0.1:9/".into());
        wishes.rules.posture = admission::rules::Posture::Advisory;
    })
    .await;
    let answer = world.modern("alice").plain("crm.read", json!({})).await;
    assert_eq!(answer.reply()["error"]["code"], -31001);
    assert!(answer.reply()["error"].get("data").is_none(), "{answer:?}");
}

#[tokio::test]
async fn an_answer_that_is_no_json_rpc_passes_with_an_unknown_outcome() {
    for legacy in [true, false] {
        let world = World::before(script(|seen| {
            let gone = McpResponse { status: 404, headers: Vec::new(), body: b"no such session".into() };
            (seen.rpc() == "tools/call").then_some(gone)
        }))
        .await;
        let agent = if legacy { world.legacy().await } else { world.modern("alice") };
        agent.commit().await;
        let answer = agent.call("crm.read", json!({})).await;
        assert_eq!((answer.status, answer.text.as_str()), (404, "no such session"));
        assert_eq!(world.outcome_status(&agent.session).await, "unknown");
    }
}

#[tokio::test]
async fn a_disconnection_cancels_a_modern_call_and_keeps_a_legacy_one() {
    let world = World::before(silent(&["tools/call"], false)).await;
    let modern = world.modern("alice");
    modern.commit().await;
    let message = modern.message("tools/call", &modern.call_params("crm.read", &json!({})));
    let request = tokio::spawn(modern.post(&message).send());
    until("it is sent", || world.server.calls() == 1).await;
    request.abort();
    assert_eq!(world.outcome_status(&modern.session).await, "unknown");

    let world = World::before(script(|seen| {
        if seen.rpc() == "tools/call" {
            std::thread::sleep(Duration::from_millis(500));
        }
        None
    }))
    .await;
    let legacy = world.legacy().await;
    legacy.commit().await;
    let message = legacy.message("tools/call", &legacy.call_params("crm.read", &json!({})));
    let request = tokio::spawn(legacy.post(&message).send());
    until("it is sent", || world.server.calls() == 1).await;
    request.abort();
    assert_eq!(world.outcome_status(&legacy.session).await, "executed");
}
