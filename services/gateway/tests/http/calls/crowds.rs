//! Many calls at once, and answers that come in pieces.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use futures::future::join_all;
use serde_json::json;
use testkit::McpResponse;

use crate::client::VAP;
use crate::world::{Script, World, script};

/// Takes its time over calls, and counts how many are under way at once before the first one has ended, at most.
fn slow(beside_first: Arc<AtomicUsize>) -> Script {
    let (under_way, ended) = (Arc::new(AtomicUsize::new(0)), Arc::new(AtomicUsize::new(0)));
    script(move |seen| {
        if seen.rpc() != "tools/call" {
            return None;
        }
        let now = under_way.fetch_add(1, Ordering::SeqCst) + 1;
        if ended.load(Ordering::SeqCst) == 0 {
            beside_first.fetch_max(now, Ordering::SeqCst);
        }
        std::thread::sleep(Duration::from_millis(30));
        under_way.fetch_sub(1, Ordering::SeqCst);
        ended.fetch_add(1, Ordering::SeqCst);
        Some(seen.result(&json!({ "content": [], "_meta": { VAP: { "cost": { "usd": 0.1 } } } })))
    })
}

#[tokio::test]
async fn v_12_as_many_concurrent_calls_run_as_were_agreed() {
    let world = World::before(slow(Arc::default())).await;
    let agent = world.modern("alice");
    agent.commit_to(json!({ "max_calls": 5 })).await;
    let answers = join_all((0..20).map(|n| agent.call("crm.read", json!({ "n": n })))).await;
    let served = answers.iter().filter(|answer| answer.verdict() == "served").count();
    assert_eq!((served, world.server.calls()), (5, 5));
    assert!(
        answers.iter().all(|answer| answer.verdict() == "served" || answer.reason() == "budget_exceeded")
    );
}

#[tokio::test]
async fn v_12_the_first_call_of_a_tool_of_unknown_cost_runs_alone() {
    let beside_first = Arc::new(AtomicUsize::new(0));
    let world = World::before(slow(beside_first.clone())).await;
    let agent = world.modern("alice");
    agent.commit_to(json!({ "limits": { "usd": 10 } })).await;
    let first = join_all((0..3).map(|n| agent.call("crm.read", json!({ "n": n })))).await;
    assert!(first.iter().all(|answer| answer.verdict() == "served"), "they waited: {first:?}");
    assert_eq!(world.server.calls(), 3);
    assert_eq!(beside_first.load(Ordering::SeqCst), 1, "the first one ran alone");
}

#[tokio::test]
async fn the_verdict_is_in_the_answer_on_a_stream_and_the_servers_other_messages_pass() {
    let progress =
        json!({ "jsonrpc": "2.0", "method": "notifications/progress", "params": { "_meta": { VAP: 1 } } });
    let response = progress.clone();
    let world = World::before(script(move |seen| {
        let id = seen.json()["id"].clone();
        let other = json!({ "jsonrpc": "2.0", "id": "another", "method": "ping", "params": { "kept": 1 } });
        let result = json!({ "jsonrpc": "2.0", "id": id, "result": { "content": [] } });
        (seen.rpc() == "tools/call").then(|| McpResponse::events(&[progress.clone(), other, result]))
    }))
    .await;
    for agent in [world.modern("alice"), world.legacy().await.in_session("session-of-the-legacy-era")] {
        agent.commit().await;
        let answer = agent.call("crm.read", json!({})).await.served();
        let messages = answer.messages();
        assert_eq!((messages.len(), &messages[0]), (3, &response));
        assert_eq!(messages[1]["params"], json!({ "kept": 1 }));
        assert!(answer.text.contains("id: e-2\n"), "{answer:?}");
    }
}
