//! Calls whose answer is not awaited any longer (V-12): they took too long, or their client cancelled them.

use std::sync::Arc;
use std::time::Duration;

use admission::rules::Posture;
use futures::executor::block_on;
use gateway::upstream::stdio::Stdio;
use serde_json::{Value, json};
use testkit::McpResponse;
use tokio::sync::Notify;

use crate::client::{Agent, PATIENCE};
use crate::front::until;
use crate::scripted::program;
use crate::world::{Script, World, script, silent};

/// A gateway that waits for the answer to a cancelled call for 50 ms only.
async fn world_with_short_patience(script: Script) -> World {
    World::with(|wishes| {
        wishes.script = script;
        wishes.patience.cancelled = Duration::from_millis(50);
    })
    .await
}

#[tokio::test]
async fn v_12_an_overdue_call_ends_in_both_eras_and_keeps_its_reservation() {
    let world = World::with(|wishes| {
        wishes.script = silent(&["tools/call"], true);
        wishes.call_time = Duration::from_millis(300);
    })
    .await;
    for agent in [world.legacy().await, world.modern("alice").in_session("session-of-alice-01234")] {
        agent.commit_to(json!({ "max_calls": 1 })).await;
        let answer = agent.call("crm.read", json!({})).await;
        let error = answer.reply()["error"].clone();
        assert_eq!((answer.status, &error["code"]), (200, &json!(-31001)), "{answer:?}");
        assert!(error["message"].as_str().unwrap().contains("exceeded the time limit"), "{answer:?}");
        assert_eq!(error["data"]["vap"]["verdict"], "served", "it was admitted: {answer:?}");
        assert_eq!(world.outcome_status(&agent.session).await, "unknown");
        agent.call("crm.read", json!({})).await.denied("budget_exceeded");
    }
    let cancellations = || world.server.messages_of("notifications/cancelled");
    until("the legacy server gets a cancellation", || !cancellations().is_empty()).await;
    let cancelled: Vec<_> =
        cancellations().iter().map(|message| message["params"]["requestId"].clone()).collect();
    assert_eq!(cancelled, [json!(3)], "the call of the legacy client, after `initialize` and the commitment");
}

#[tokio::test]
async fn an_overdue_call_is_cancelled_at_a_started_server() {
    let server = Arc::new(Stdio::new(program("old"), "old"));
    let world = World::with(|wishes| {
        wishes.upstream = Some(server.clone());
        wishes.rules.posture = Posture::Advisory;
        wishes.call_time = Duration::from_secs(1);
    })
    .await;
    let client = world.legacy().await;
    let answer = client.plain("hold", json!({})).await;
    assert_eq!(answer.reply()["error"]["code"], -31001, "{answer:?}");
    let open_calls = async || client.plain("held", json!({})).await.reply()["result"]["held"].clone();
    let cancelled = async { while open_calls().await != json!(0) {} };
    tokio::time::timeout(PATIENCE, cancelled).await.expect("the server gets a cancellation");
    server.stop().await;
}

#[tokio::test]
async fn v_12_a_cancelled_legacy_call_ends_soon_and_keeps_its_reservation() {
    for leaves in [false, true] {
        let world = world_with_short_patience(silent(&["tools/call"], true)).await;
        let agent = world.legacy().await;
        agent.commit_to(json!({ "max_calls": 1 })).await;
        let call = agent.message("tools/call", &agent.call_params("crm.read", &json!({})));
        let mut reading = agent.stream(&call).await;
        reading.until(": begun").await;
        let reading = (!leaves).then_some(reading);
        let status = agent.notify("notifications/cancelled", json!({ "requestId": call["id"] })).await;
        assert_eq!(status, 202);
        if let Some(reading) = reading {
            let text = reading.ended().await;
            assert!(text.contains("-31001") && text.contains("was cancelled"), "{text}");
        }
        assert_eq!(world.outcome_status(&agent.session).await, "unknown");
        assert_eq!(world.server.messages_of("notifications/cancelled").len(), 1, "the client's own");
        agent.call("crm.read", json!({})).await.denied("budget_exceeded");
    }
}

/// Cancels a call until the notification stays in the gateway: it may overtake the call.
async fn cancel_before_it_is_sent(world: &World, agent: &Agent, call_id: &Value) {
    let at_server = || world.server.messages_of("notifications/cancelled").len();
    let cancelled = async {
        loop {
            let before = at_server();
            agent.notify("notifications/cancelled", json!({ "requestId": call_id })).await;
            if at_server() == before {
                break;
            }
        }
    };
    tokio::time::timeout(PATIENCE, cancelled).await.expect("a call that was not sent is cancelled here");
}

#[tokio::test]
async fn v_14_a_legacy_call_that_is_cancelled_while_it_waits_for_another_is_never_sent() {
    let release = Arc::new(Notify::new());
    let released = release.clone();
    let world = World::before(Box::new(move |seen, _| {
        if seen.rpc() == "tools/call" {
            block_on(released.notified());
        }
        false
    }))
    .await;
    let agent = world.legacy().await;
    agent.commit_to(json!({ "max_calls": 2, "limits": { "usd": 1 } })).await;
    let call = || agent.message("tools/call", &agent.call_params("crm.read", &json!({})));
    let say = |call: Value| {
        let agent = agent.clone();
        tokio::spawn(async move { agent.say(&call).await })
    };
    let first = say(call());
    until("the first call is sent", || world.server.calls() == 1).await;
    // The cost of the tool is not known, so the second call waits for the first one.
    let second = call();
    let waiting = say(second.clone());
    cancel_before_it_is_sent(&world, &agent, &second["id"]).await;
    release.notify_one();
    first.await.unwrap().served();
    let cancelled = waiting.await.unwrap().reply();
    assert!(cancelled["error"]["message"].as_str().unwrap().contains("not sent"), "{cancelled}");
    let statuses = world.outcomes(&agent.session, 2).await.into_iter().map(|outcome| outcome.status);
    assert_eq!(statuses.collect::<Vec<_>>(), ["executed", "refused"]);
    assert_eq!(world.server.calls(), 1);
    release.notify_one();
    agent.call("crm.read", json!({})).await.served();
}

#[tokio::test]
async fn an_answer_that_comes_after_the_cancellation_of_its_call_settles_it() {
    let cancelled = Notify::new();
    let world = World::before(Box::new(move |seen, wire| match seen.rpc().as_str() {
        "tools/call" => {
            wire.stream();
            wire.bytes(": begun\n\n");
            block_on(cancelled.notified());
            wire.last(seen, r#"{"content":[]}"#);
            true
        }
        "notifications/cancelled" => {
            cancelled.notify_one();
            false
        }
        _ => false,
    }))
    .await;
    let agent = world.legacy().await;
    agent.commit().await;
    let call = agent.message("tools/call", &agent.call_params("crm.read", &json!({})));
    let mut reading = agent.stream(&call).await;
    reading.until(": begun").await;
    agent.notify("notifications/cancelled", json!({ "requestId": call["id"] })).await;
    reading.answer().await.served();
    assert_eq!(world.outcome_status(&agent.session).await, "executed");
}

#[tokio::test]
async fn a_call_that_is_cancelled_after_its_stream_ended_is_settled_soon() {
    let world = world_with_short_patience(script(|seen| {
        (seen.rpc() == "tools/call").then(|| McpResponse::event_stream("id: e-1\ndata: \n\n"))
    }))
    .await;
    let agent = world.legacy().await;
    agent.commit().await;
    let call = agent.message("tools/call", &agent.call_params("crm.read", &json!({})));
    agent.say(&call).await;
    agent.notify("notifications/cancelled", json!({ "requestId": call["id"] })).await;
    assert_eq!(world.outcome_status(&agent.session).await, "unknown");
}
