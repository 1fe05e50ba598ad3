//! Requests other than calls that a server does not answer in time (X-2), and answers that have no such limit.

use std::sync::Arc;
use std::time::Duration;

use admission::rules::Posture;
use async_trait::async_trait;
use bytes::Bytes;
use futures::executor::block_on;
use futures::{StreamExt, stream};
use gateway::upstream::stdio::Stdio;
use gateway::upstream::{Exchange, Upstream, UpstreamAnswer, UpstreamError, answer};
use http::StatusCode;
use serde_json::{Value, json};
use tokio::sync::Notify;

use crate::client::{Agent, Answer, PATIENCE, Reading, initialize};
use crate::front::until;
use crate::scripted::{self, program};
use crate::world::{Script, World, silent};

const METHODS: [&str; 5] = ["ping", "tools/list", "prompts/get", "resources/read", "completion/complete"];

fn params(method: &str) -> Value {
    match method {
        "prompts/get" => json!({ "name": "p" }),
        "resources/read" => json!({ "uri": "test://a" }),
        "completion/complete" => {
            json!({ "ref": { "type": "ref/prompt", "name": "p" }, "argument": { "name": "a", "value": "v" } })
        }
        _ => json!({}),
    }
}

/// A gateway that waits for the answers to requests for 200 ms only.
async fn world_with_short_request_time(script: Script) -> World {
    World::with(|wishes| {
        wishes.script = script;
        wishes.request_time = Duration::from_millis(200);
    })
    .await
}

/// A client of the legacy era in a session of its own choice: to open one takes a request.
fn legacy(world: &World) -> Agent {
    Agent { mcp: Some("session-of-its-own".into()), ..world.nobody() }
}

/// Asserts that this is the error for a request that the server did not answer in time.
fn assert_overdue(answer: &Answer) {
    let error = answer.reply()["error"].clone();
    assert_eq!((answer.status, &error["code"]), (200, &json!(-31001)), "{answer:?}");
    let words = error["message"].as_str().unwrap();
    assert!(words.starts_with("the server behind /mcp gave no answer within 200ms;"), "{answer:?}");
}

#[tokio::test]
async fn an_overdue_request_ends_with_an_error_that_names_the_server() {
    for streams in [true, false] {
        let world = world_with_short_request_time(silent(&METHODS, streams)).await;
        for client in [legacy(&world), world.modern("alice")] {
            for method in METHODS {
                let message = client.message(method, &params(method));
                let answer = client.say(&message).await;
                assert_overdue(&answer);
                assert_eq!(answer.reply()["id"], message["id"]);
            }
        }
        let cancellations = || world.server.messages_of("notifications/cancelled");
        until("the server gets a cancellation of each", || cancellations().len() >= METHODS.len()).await;
        let mut ids: Vec<_> =
            cancellations().iter().map(|message| message["params"]["requestId"].as_u64().unwrap()).collect();
        ids.sort_unstable();
        assert_eq!(ids, [1, 2, 3, 4, 5], "those of the legacy client");
    }
}

#[tokio::test]
async fn an_overdue_opening_ends_with_the_error_and_without_a_cancellation() {
    for streams in [true, false] {
        let world = world_with_short_request_time(silent(&["initialize", "server/discover"], streams)).await;
        assert_overdue(&world.nobody().ask("initialize", initialize(&json!({}))).await);
        assert_overdue(&world.modern("alice").ask("server/discover", json!({})).await);
        assert!(world.server.messages_of("notifications/cancelled").is_empty(), "MCP forbids it");
    }
}

#[tokio::test]
async fn an_overdue_notification_is_504() {
    const METHOD: &str = "notifications/roots/list_changed";
    let world = world_with_short_request_time(silent(&[METHOD], false)).await;
    assert_eq!(legacy(&world).notify(METHOD, json!({})).await, 504);
}

/// A server whose answers are JSON that does not come.
struct WithoutBody;

#[async_trait]
impl Upstream for WithoutBody {
    async fn exchange(&self, _: Exchange) -> Result<UpstreamAnswer, UpstreamError> {
        let body = stream::pending().boxed();
        Ok(UpstreamAnswer { body, ..answer::json(StatusCode::OK, Bytes::new()) })
    }
}

#[tokio::test]
async fn an_overdue_json_body_ends_with_the_error() {
    let world = World::with(|wishes| {
        wishes.upstream = Some(Arc::new(WithoutBody));
        wishes.request_time = Duration::from_millis(200);
    })
    .await;
    assert_overdue(&world.nobody().ask("ping", json!({})).await);
    assert_overdue(&world.modern("alice").ask("tools/list", json!({})).await);
}

#[tokio::test]
async fn an_overdue_request_is_cancelled_at_a_started_server() {
    for (role, revision) in [("old", Some("2025-06-18")), ("modern", None)] {
        let server = Arc::new(Stdio::new(program(role), role));
        let world = World::with(|wishes| {
            wishes.upstream = Some(server.clone());
            wishes.rules.posture = Posture::Advisory;
            wishes.request_time = Duration::from_millis(200);
        })
        .await;
        // The program starts without a limit of time, however slow the machine is.
        let client = match revision {
            Some(revision) => {
                let opened = scripted::Client::with_session(&*server, revision).await;
                let session = opened.headers["mcp-session-id"].to_str().unwrap().to_owned();
                Agent { mcp: Some(session), ..world.nobody() }
            }
            None => {
                assert!(server.is_modern().await.unwrap());
                world.modern("alice")
            }
        };
        assert_overdue(&client.ask("resources/read", json!({ "uri": "test://hold" })).await);
        let open_requests = async || client.plain("held", json!({})).await.reply()["result"]["held"].clone();
        let cancelled = async { while open_requests().await != json!(0) {} };
        tokio::time::timeout(PATIENCE, cancelled).await.expect("the server gets a cancellation");
        server.stop().await;
    }
}

#[tokio::test]
async fn calls_task_results_and_endless_streams_may_exceed_the_request_time() {
    let released = Arc::new(Notify::new());
    let goes_on = released.clone();
    let silence = silent(&["resources/read"], true);
    let script: Script = Box::new(move |seen, wire| {
        match seen.rpc().as_str() {
            "GET" | "tools/call" | "tasks/result" | "prompts/get" | "subscriptions/listen" => wire.stream(),
            _ => return silence(seen, wire),
        }
        wire.bytes(": begun\n\n");
        block_on(goes_on.notified());
        wire.event(r#"{"jsonrpc":"2.0","method":"notifications/late"}"#);
        true
    });
    let world = World::with(|wishes| {
        wishes.script = script;
        wishes.rules.posture = Posture::Advisory;
        wishes.rules.gated_methods.push("prompts/get".into());
        wishes.request_time = Duration::from_millis(200);
    })
    .await;
    let (legacy, modern) = (legacy(&world), world.modern("alice"));
    let session = legacy.mcp.as_deref().unwrap();
    let listening = legacy.http.get(&legacy.url).header("mcp-session-id", session);
    let call = json!({ "name": "crm.read", "arguments": {} });
    let subscription = json!({ "notifications": { "toolsListChanged": true } });
    for request in [
        listening.header("accept", "text/event-stream"),
        legacy.post(&legacy.message("tools/call", &call)),
        legacy.post(&legacy.message("tasks/result", &json!({ "taskId": "t" }))),
        legacy.post(&legacy.message("prompts/get", &params("prompts/get"))),
        modern.post(&modern.message("subscriptions/listen", &subscription)),
    ] {
        let mut reading = Reading::of(request).await;
        reading.until(": begun").await;
        // Sent after it, and ended by the limit.
        assert_overdue(&legacy.ask("resources/read", params("resources/read")).await);
        released.notify_one();
        reading.until("notifications/late").await;
    }
}
