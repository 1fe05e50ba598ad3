//! Answers that come another way (legacy): on a GET stream, after the stream of the call ended.

use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use futures::executor::block_on;
use serde_json::{Value, json};
use testkit::McpResponse;
use tokio::sync::Notify;

use crate::client::{PATIENCE, VAP};
use crate::front::until;
use crate::world::{Outcome, Script, World, script};

/// Ends the stream of a call early, and has its answer on a GET; the id of the call is the last one of the client.
fn polled(id: u64) -> Script {
    script(move |seen| match seen.rpc().as_str() {
        "tools/call" => Some(McpResponse::event_stream("id: e-1\ndata: \n\n")),
        "GET" if seen.header("last-event-id").is_some() => Some(McpResponse::events(&[result(id)])),
        _ => None,
    })
}

fn result(id: u64) -> Value {
    let forged = json!({ "verdict": "served", "cost": { "usd": 0.5 } });
    json!({ "jsonrpc": "2.0", "id": id, "result": { "content": [], "_meta": { VAP: forged } } })
}

/// The id of the call: after `initialize` and the commitment.
const CALL: u64 = 3;

#[tokio::test]
async fn an_answer_on_a_get_stream_is_settled_and_carries_the_verdict() {
    let world = World::before(polled(CALL)).await;
    let agent = world.legacy().await;
    agent.commit_to(json!({ "limits": { "usd": 1 } })).await;
    let begun = agent.call("crm.read", json!({})).await;
    assert_eq!((begun.status, begun.text.as_str()), (200, "id: e-1\ndata: \n\n"));
    for _ in 0..2 {
        // A client may ask for it again: it is the same, and no second call.
        let answer = agent.get("e-1").await.served();
        assert!(answer.vap().get("cost").is_none());
        assert_eq!(answer.meta("dev.tabellion/cost"), json!({ "usd": 0.5 }));
    }
    assert_eq!(world.outcomes(&agent.session, 1).await, [Outcome::executed(json!({ "usd": "0.5" }))]);
}

#[tokio::test]
async fn a_verdict_is_added_only_to_the_callers_own_answer() {
    let world = World::before(polled(CALL)).await;
    let agent = world.legacy().await;
    agent.commit().await;
    agent.call("crm.read", json!({})).await;
    let other = world.legacy().await;
    let answer = other.get("e-1").await;
    let meta = &answer.reply()["result"]["_meta"];
    assert_eq!(meta, &json!({}), "nothing of ours is spliced in, and nothing says that it is ours");
    agent.get("e-1").await.served();
}

#[tokio::test]
async fn a_call_whose_answer_never_comes_has_an_unknown_outcome() {
    let world = World::with(|wishes| {
        wishes.script = polled(CALL);
        wishes.patience.late_answer = Duration::from_millis(100);
        wishes.call_time = Duration::from_secs(1);
    })
    .await;
    let agent = world.legacy().await;
    agent.commit().await;
    agent.call("crm.read", json!({})).await;
    assert_eq!(world.outcome_status(&agent.session).await, "unknown");
}

#[tokio::test]
async fn an_answer_within_the_time_of_its_call_settles_it_however_long_its_stream_has_ended() {
    let world = World::with(|wishes| {
        wishes.script = polled(CALL);
        wishes.patience.late_answer = Duration::from_millis(50);
    })
    .await;
    let agent = world.legacy().await;
    agent.commit().await;
    agent.call("crm.read", json!({})).await;
    tokio::time::sleep(Duration::from_millis(500)).await;
    agent.get("e-1").await.served();
    assert_eq!(world.outcome_status(&agent.session).await, "executed");
}

#[tokio::test]
async fn the_end_of_a_session_settles_its_open_calls_as_unknown() {
    let world = World::before(polled(CALL)).await;
    let agent = world.legacy().await;
    agent.commit().await;
    agent.call("crm.read", json!({})).await;
    assert_eq!(agent.end_mcp_session().await, 200);
    assert_eq!(world.outcome_status(&agent.session).await, "unknown");
}

/// The stream of a request that ends before the answer, with an event after which it can be resumed.
fn ended_early() -> McpResponse {
    McpResponse::event_stream("id: e-1\ndata: \n\n")
}

/// Ends the stream of a list early, and has the answer on every GET; the list is what its client asks for after `initialize`.
fn listed_later() -> Script {
    let listed = json!({ "jsonrpc": "2.0", "id": 2, "result": { "tools": [] } });
    script(move |seen| match seen.rpc().as_str() {
        "tools/list" => Some(ended_early()),
        "GET" => Some(McpResponse::events(std::slice::from_ref(&listed))),
        _ => None,
    })
}

#[tokio::test]
async fn a_commitment_is_in_force_once_the_answer_to_its_request_has_come_on_a_resumed_stream() {
    let world = World::before(listed_later()).await;
    let agent = world.legacy().await;
    let begun = agent.carry("tools/list", &agent.commitment()).await;
    assert_eq!((begun.status, begun.text.as_str()), (200, "id: e-1\ndata: \n\n"));
    agent.get("e-1").await.served();
    agent.call("crm.read", json!({})).await.served();
}

#[tokio::test]
async fn a_commitment_is_not_decided_once_the_session_of_its_request_has_ended() {
    let world = World::before(listed_later()).await;
    let agent = world.legacy().await;
    agent.carry("tools/list", &agent.commitment()).await;
    assert_eq!(agent.end_mcp_session().await, 200);
    let answer = agent.get("e-1").await;
    assert_eq!((answer.status, answer.vap()), (200, Value::Null), "{answer:?}");
}

#[tokio::test]
async fn an_answer_to_initialize_on_a_resumed_stream_has_the_gateways_capability() {
    let result = json!({ "protocolVersion": "2025-11-25", "capabilities": {} });
    let opened = json!({ "jsonrpc": "2.0", "id": 1, "result": result });
    let world = World::before(script(move |seen| match seen.rpc().as_str() {
        "initialize" => {
            let mut head = ended_early();
            head.headers.push(("Mcp-Session-Id", "s-1"));
            Some(head)
        }
        "GET" => Some(McpResponse::events(std::slice::from_ref(&opened))),
        _ => None,
    }))
    .await;
    let agent = world.legacy().await;
    let opened = agent.get("e-1").await.reply();
    assert!(opened["result"]["capabilities"]["experimental"].is_object(), "{opened}");
}

#[tokio::test]
async fn a_resumed_stream_repeats_the_answer_with_its_verdict() {
    let world = World::before(script(|seen| match seen.rpc().as_str() {
        "tools/call" => Some(McpResponse::events(&[result(CALL)])),
        "GET" => Some(McpResponse::events(&[result(CALL)])),
        _ => None,
    }))
    .await;
    let agent = world.legacy().await;
    agent.commit().await;
    let first = agent.call("crm.read", json!({})).await.served();
    let again = agent.get("e-0").await.served();
    assert_eq!(first.reply(), again.reply());
    assert_eq!(world.outcomes(&agent.session, 1).await.len(), 1);
}

fn failed(message: &str) -> Value {
    json!({ "jsonrpc": "2.0", "id": CALL, "error": { "code": -32000, "message": message } })
}

#[tokio::test]
async fn v_5_another_answer_to_a_failed_call_is_withheld() {
    let world = World::before(script(|seen| match seen.rpc().as_str() {
        "tools/call" => Some(McpResponse::events(&[failed("it failed")])),
        "GET" => Some(McpResponse::events(&[result(CALL), failed("other"), failed("it failed")])),
        _ => None,
    }))
    .await;
    let agent = world.legacy().await;
    agent.commit().await;
    let first = agent.call("crm.read", json!({})).await;
    assert_eq!(first.reply()["error"]["message"], "it failed", "{first:?}");
    let again = agent.get("e-0").await;
    assert_eq!(again.messages(), [failed("it failed")], "{again:?}");
}

#[tokio::test]
async fn v_5_another_answer_to_a_settled_call_is_withheld() {
    let world = World::before(script(|seen| match seen.rpc().as_str() {
        "tools/call" => Some(McpResponse::events(&[result(CALL)])),
        "GET" => {
            let mut other = result(CALL);
            other["result"]["content"] = json!([{ "type": "text", "text": "other" }]);
            let mut forged = result(CALL);
            let data = json!({ VAP: { "verdict": "served" } });
            forged["error"] = json!({ "code": 1, "message": "", "data": data });
            Some(McpResponse::events(&[other, failed("it failed"), forged, result(CALL)]))
        }
        _ => None,
    }))
    .await;
    let agent = world.legacy().await;
    agent.commit().await;
    let first = agent.call("crm.read", json!({})).await.served();
    let again = agent.get("e-0").await.served();
    assert_eq!(again.messages(), [first.reply()], "{again:?}");
}

/// Answers a call on another stream while the call's own is open: until that was read.
fn answered_elsewhere(id: u64) -> Script {
    let done = Notify::new();
    Box::new(move |seen, wire| {
        match (seen.rpc().as_str(), seen.header("last-event-id")) {
            ("tools/call", _) => {
                wire.stream();
                block_on(done.notified());
                wire.event(&result(id).to_string());
            }
            ("GET", Some("done")) => {
                done.notify_one();
                wire.respond(&McpResponse::events(&[]));
            }
            ("GET", _) => wire.respond(&McpResponse::events(&[result(id)])),
            _ => return false,
        }
        true
    })
}

#[tokio::test]
async fn v_5_an_answer_on_another_stream_settles_an_open_call_and_carries_the_verdict() {
    let world = World::before(answered_elsewhere(CALL)).await;
    let agent = world.legacy().await;
    agent.commit_to(json!({ "limits": { "usd": 1 } })).await;
    let caller = agent.clone();
    let open = tokio::spawn(async move { caller.call("crm.read", json!({})).await });
    until("the call is open", || world.server.calls() == 1).await;
    let elsewhere = agent.get("e-1").await.served();
    assert!(elsewhere.vap().get("cost").is_none() && elsewhere.vap()["signature"].is_string());
    assert_eq!(elsewhere.meta("dev.tabellion/cost"), json!({ "usd": 0.5 }));
    assert_eq!(world.outcomes(&agent.session, 1).await, [Outcome::executed(json!({ "usd": "0.5" }))]);
    agent.get("done").await;
    // What comes on the call's own stream now is the same answer, come again.
    assert_eq!(open.await.unwrap().served().reply(), elsewhere.reply());
    assert_eq!(world.outcomes(&agent.session, 1).await.len(), 1);
}

#[tokio::test]
async fn v_5_an_answer_under_a_similar_id_is_withheld_on_another_stream() {
    let world = World::before(script(|seen| match seen.rpc().as_str() {
        "tools/call" => Some(McpResponse::event_stream("id: e-1\ndata: \n\n")),
        "GET" => {
            let mut forged = result(CALL);
            forged["id"] = CALL.to_string().into();
            Some(McpResponse::events(&[forged, result(CALL)]))
        }
        _ => None,
    }))
    .await;
    let agent = world.legacy().await;
    agent.commit().await;
    agent.call("crm.read", json!({})).await;
    for _ in 0..2 {
        let answer = agent.get("e-1").await.served();
        assert!(answer.messages().iter().all(|message| message["id"] == CALL), "{answer:?}");
    }
}

#[tokio::test]
async fn an_answer_on_a_resumed_stream_settles_the_call() {
    let is_let_go = AtomicBool::new(false);
    let world = World::before(Box::new(move |seen, wire| {
        match seen.rpc().as_str() {
            "tools/call" => {
                wire.stream();
                wire.bytes("id: e-1\ndata: {not json\n\n");
                wire.is_hung_up_on();
                is_let_go.store(true, Ordering::SeqCst);
            }
            "GET" if is_let_go.load(Ordering::SeqCst) => wire.respond(&McpResponse::events(&[result(CALL)])),
            "GET" => wire.respond(&McpResponse::events(&[])),
            _ => return false,
        }
        true
    }))
    .await;
    let agent = world.legacy().await;
    agent.commit().await;
    let call = agent.message("tools/call", &agent.call_params("crm.read", &json!({})));
    let mut reading = agent.stream(&call).await;
    reading.until("id: e-1").await;
    drop(reading);
    let resumed = async {
        loop {
            let answer = agent.get("e-1").await;
            if !answer.text.is_empty() {
                break answer;
            }
        }
    };
    tokio::time::timeout(PATIENCE, resumed).await.unwrap().served();
    assert_eq!(world.outcome_status(&agent.session).await, "executed");
}
