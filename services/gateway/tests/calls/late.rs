//! Answers that come another way (legacy): on a GET stream, after the stream of the call ended.

use std::time::Duration;

use axum::response::IntoResponse;
use http::StatusCode;
use serde_json::{Value, json};

use crate::agent::VAP;
use crate::server::{Script, events, script};
use crate::world::World;

/// Ends the stream of a call early, and has its answer on a GET; the id of the call is the last one of the client.
fn polled(id: u64) -> Script {
    script(move |seen| match seen.rpc().as_str() {
        "tools/call" => {
            Some(([("content-type", "text/event-stream")], "id: e-1\ndata: \n\n").into_response())
        }
        "GET" if seen.headers.contains_key("last-event-id") => Some(events(&[result(id)])),
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
    assert_eq!(world.outcomes(&agent.session, 1).await, [("executed".into(), json!({ "usd": "0.5" }))]);
}

#[tokio::test]
async fn the_answer_to_anothers_call_is_not_dressed_as_ones_own() {
    let world = World::before(polled(CALL)).await;
    let agent = world.legacy().await;
    agent.commit().await;
    agent.call("crm.read", json!({})).await;
    let other = world.legacy().await;
    let answer = other.get("e-1").await;
    assert_eq!(answer.vap()["cost"], json!({ "usd": 0.5 }), "nothing of ours is spliced in");
    agent.get("e-1").await.served();
}

#[tokio::test]
async fn an_answer_that_never_comes_is_unknown() {
    let world = World::with(|wishes| {
        wishes.script = polled(CALL);
        wishes.patience.late_answer = Duration::from_millis(100);
    })
    .await;
    let agent = world.legacy().await;
    agent.commit().await;
    agent.call("crm.read", json!({})).await;
    assert_eq!(world.outcomes(&agent.session, 1).await[0].0, "unknown");
}

#[tokio::test]
async fn a_session_that_ends_has_no_answers_to_come() {
    let world = World::before(polled(CALL)).await;
    let agent = world.legacy().await;
    agent.commit().await;
    agent.call("crm.read", json!({})).await;
    let deleted = agent.http.delete(&agent.url).header("mcp-session-id", agent.mcp.clone().unwrap());
    assert_eq!(deleted.send().await.unwrap().status(), StatusCode::OK);
    assert_eq!(world.outcomes(&agent.session, 1).await[0].0, "unknown");
}

#[tokio::test]
async fn an_answer_that_came_is_told_again_on_resumption() {
    let world = World::before(script(|seen| match seen.rpc().as_str() {
        "tools/call" => Some(events(&[result(CALL)])),
        "GET" => Some(events(&[result(CALL)])),
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
