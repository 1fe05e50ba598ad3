//! A client on standard input and output, before a gateway with real decisions.

use std::sync::Arc;
use std::time::Duration;

use admission::rules::Posture;
use async_trait::async_trait;
use gateway::stdio_client::StdioClient;
use gateway::upstream::stdio::Stdio;
use gateway::upstream::{Exchange, Upstream, UpstreamAnswer, UpstreamError, answer};
use http::{HeaderValue, Method, StatusCode};
use serde_json::{Value, json};
use testkit::McpResponse;
use tokio::io::{AsyncBufReadExt, AsyncReadExt, AsyncWriteExt, BufReader, DuplexStream, Lines, duplex};
use tokio::sync::mpsc;
use tokio::task::JoinHandle;
use tokio_util::sync::CancellationToken;

use crate::client::{PATIENCE, VAP};
use crate::front::until;
use crate::scripted::{Client, cancellation, modern, program};
use crate::world::{Script, World, script};

/// The two ends that a client holds, and the gateway that serves it.
struct LocalClient {
    input: DuplexStream,
    output: Lines<BufReader<DuplexStream>>,
    served: JoinHandle<std::io::Result<()>>,
}

impl LocalClient {
    fn of(world: &World) -> Self {
        Self::until(world, std::future::pending())
    }

    fn until(world: &World, stop: impl Future<Output = ()> + Send + 'static) -> Self {
        let (input, to_read) = duplex(1 << 16);
        let (to_write, output) = duplex(1 << 16);
        let client = StdioClient::new(world.front.clone(), "/mcp");
        let served = tokio::spawn(client.serve(to_read, to_write, stop));
        Self { input, output: BufReader::new(output).lines(), served }
    }

    async fn say(&mut self, line: impl ToString) {
        self.input.write_all(format!("{}\n", line.to_string()).as_bytes()).await.unwrap();
    }

    async fn next(&mut self) -> Value {
        let line = tokio::time::timeout(PATIENCE, self.output.next_line()).await.unwrap().unwrap();
        serde_json::from_str(&line.expect("another line")).unwrap()
    }

    /// Ends the input, and returns the lines that were not read.
    async fn end(mut self) -> Vec<String> {
        drop(self.input);
        let mut rest = Vec::new();
        while let Some(line) = tokio::time::timeout(PATIENCE, self.output.next_line()).await.unwrap().unwrap()
        {
            rest.push(line);
        }
        self.served.await.unwrap().unwrap();
        rest
    }
}

#[tokio::test]
async fn a_line_that_is_refused_gets_the_code_of_its_fault_and_the_id_of_its_request() {
    let world = World::new().await;
    let mut client = LocalClient::of(&world);
    for (line, code, id) in [
        (r#"{"jsonrpc":"2.0","id":7,"method":"tools/call"}"#, -32600, json!(7)),
        (r#"{"jsonrpc":"2.0","id":"8","method":"tools/call","params":{"name":["x"]}}"#, -32600, json!("8")),
        (r#"{"jsonrpc":"2.0","id":9,"id":10,"method":"ping"}"#, -32600, Value::Null),
        (r#"[{"jsonrpc":"2.0","id":11,"method":"ping"}]"#, -32600, Value::Null),
        (r#"{"jsonrpc":"2.0","id":null,"method":"ping"}"#, -32600, Value::Null),
        ("{", -32700, Value::Null),
    ] {
        client.say(line).await;
        let answer = client.next().await;
        assert_eq!((&answer["error"]["code"], &answer["id"]), (&json!(code), &id), "{line}: {answer}");
    }
    assert_eq!(client.end().await, [""; 0]);
}

#[tokio::test]
async fn a_refusal_over_http_has_the_id_of_its_request() {
    let world = World::new().await;
    let answer = world.nobody().say(&json!({ "jsonrpc": "2.0", "id": 7, "method": "tools/call" })).await;
    let reply = answer.reply();
    assert_eq!((answer.status, &reply["error"]["code"], &reply["id"]), (400, &json!(-32600), &json!(7)));
}

/// The number of requests that this server holds open.
async fn held(server: &Stdio) -> Value {
    let held = modern(json!("h"), "tools/call", json!({ "name": "held", "arguments": {} }), json!({}));
    Client::of(server).ask(held).await["result"]["held"].clone()
}

async fn until_held(server: &Stdio, count: usize) {
    let is_held = async {
        while held(server).await != json!(count) {
            tokio::time::sleep(Duration::from_millis(20)).await;
        }
    };
    tokio::time::timeout(PATIENCE, is_held).await.expect("the server holds so many requests");
}

#[tokio::test]
async fn a_modern_client_cancels_its_call_with_a_notification() {
    let server = Arc::new(Stdio::new(program("modern"), "modern"));
    let world = World::with(|wishes| {
        wishes.upstream = Some(server.clone());
        wishes.rules.posture = Posture::Advisory;
    })
    .await;
    let mut client = LocalClient::of(&world);
    let hold =
        |id: u64| modern(json!(id), "tools/call", json!({ "name": "hold", "arguments": {} }), json!({}));
    let mut with_meta = cancellation(5);
    with_meta["params"]["_meta"] = json!({ "io.modelcontextprotocol/protocolVersion": "2026-07-28" });
    for (count, cancelling) in [(1, cancellation(5)), (2, with_meta)] {
        client.say(hold(5)).await;
        until_held(&server, 1).await;
        // The request that it names is not open.
        client.say(cancellation("5")).await;
        client.say(&cancelling).await;
        until_held(&server, 0).await;
        let outcomes = world.outcomes(&world.unbound(), count).await;
        assert!(outcomes.iter().all(|outcome| outcome.status == "unknown"), "{outcomes:?}");
        // The request has ended: the same notification cancels nothing.
        client.say(&cancelling).await;
    }
    client.say(modern(json!(6), "tools/list", json!({}), json!({}))).await;
    assert_eq!(client.next().await["id"], 6, "the cancelled requests have no answer");
    assert_eq!(client.end().await, [""; 0]);
    server.stop().await;
}

#[tokio::test]
async fn a_cancellation_of_the_older_revisions_goes_to_the_server() {
    let server = Arc::new(Stdio::new(program("old"), "old"));
    let world = World::with(|wishes| {
        wishes.upstream = Some(server.clone());
        wishes.rules.posture = Posture::Advisory;
    })
    .await;
    let mut client = LocalClient::of(&world);
    client.say(crate::scripted::initialize("2025-06-18")).await;
    client.next().await;
    let call = |id: u64, tool: &str| {
        let params = json!({ "name": tool, "arguments": {} });
        json!({ "jsonrpc": "2.0", "id": id, "method": "tools/call", "params": params })
    };
    client.say(call(1, "hold")).await;
    let is_held = async {
        loop {
            client.say(call(2, "held")).await;
            if client.next().await["result"]["held"] == 1 {
                break;
            }
        }
    };
    tokio::time::timeout(PATIENCE, is_held).await.expect("the server holds the call");
    client.say(cancellation(1)).await;
    client.say(call(3, "got")).await;
    let answer = client.next().await;
    assert!(answer["result"]["got"].to_string().contains("notifications/cancelled"), "{answer}");
    server.stop().await;
}

#[tokio::test]
async fn a_cancellation_right_behind_its_call_keeps_it_from_the_server() {
    let server = Arc::new(Stdio::new(program("old"), "old"));
    let world = World::with(|wishes| {
        wishes.upstream = Some(server.clone());
        wishes.rules.posture = Posture::Advisory;
    })
    .await;
    let mut client = LocalClient::of(&world);
    client.say(crate::scripted::initialize("2025-06-18")).await;
    client.next().await;
    let params = json!({ "name": "hold", "arguments": {} });
    client.say(json!({ "jsonrpc": "2.0", "id": 1, "method": "tools/call", "params": params })).await;
    client.say(cancellation(1)).await;
    let answer = client.next().await;
    assert!(answer["id"] == 1 && answer["error"]["message"].to_string().contains("not sent"), "{answer}");
    let got = json!({ "name": "got", "arguments": {} });
    client.say(json!({ "jsonrpc": "2.0", "id": 2, "method": "tools/call", "params": got })).await;
    let answer = client.next().await.to_string();
    assert!(!answer.contains("hold") && !answer.contains("notifications/cancelled"), "{answer}");
    server.stop().await;
}

#[tokio::test]
async fn a_session_that_its_server_has_lost_ends_after_the_answer_and_leaves_the_input_open() {
    let server = Arc::new(Stdio::new(program("old"), "old"));
    let world = World::with(|wishes| {
        wishes.upstream = Some(server.clone());
        wishes.rules.posture = Posture::Advisory;
    })
    .await;
    let mut client = LocalClient::of(&world);
    client.say(crate::scripted::initialize("2025-06-18")).await;
    client.next().await;
    let call = |id: u64, tool: &str| {
        let params = json!({ "name": tool, "arguments": {} });
        json!({ "jsonrpc": "2.0", "id": id, "method": "tools/call", "params": params })
    };
    client.say(call(1, "die")).await;
    let answer = client.next().await;
    assert_eq!((&answer["id"], &answer["error"]["code"]), (&json!(1), &json!(-31001)), "{answer}");
    let is_lost = async {
        for id in 2.. {
            client.say(call(id, "echo")).await;
            let answer = client.next().await;
            assert_eq!(answer["id"], id, "{answer}");
            if answer["error"]["code"] == -32001 {
                break;
            }
        }
    };
    tokio::time::timeout(PATIENCE, is_lost).await.expect("the session is lost");
    let LocalClient { input, mut output, served } = client;
    tokio::time::timeout(PATIENCE, served).await.expect("it ends by itself").unwrap().unwrap();
    assert_eq!(output.next_line().await.unwrap(), None);
    drop(input);
    server.stop().await;
}

#[tokio::test]
async fn a_call_whose_server_ends_its_stream_early_is_answered_by_the_stream_that_resumes_it() {
    let answer = json!({ "jsonrpc": "2.0", "id": 1, "result": { "content": [] } });
    let world = World::with(|wishes| {
        wishes.script = script(move |seen| match seen.rpc().as_str() {
            "tools/call" => Some(McpResponse::event_stream("id: e-1\nretry: 10\ndata: \n\n")),
            "GET" if seen.header("last-event-id") == Some("e-1") => {
                Some(McpResponse::events(std::slice::from_ref(&answer)))
            }
            _ => None,
        });
        wishes.rules.posture = Posture::Advisory;
    })
    .await;
    let mut client = LocalClient::of(&world);
    client.say(crate::scripted::initialize("2025-11-25")).await;
    client.next().await;
    let params = json!({ "name": "crm.read", "arguments": {} });
    client.say(json!({ "jsonrpc": "2.0", "id": 1, "method": "tools/call", "params": params })).await;
    let answer = client.next().await;
    assert_eq!((&answer["id"], &answer["result"]["content"]), (&json!(1), &json!([])), "{answer}");
    assert_eq!(client.end().await, [""; 0]);
}

/// Ends the stream of the list with this id early and has it on a GET, and keeps calls open.
fn lists_later(id: u64) -> Script {
    let listed = json!({ "jsonrpc": "2.0", "id": id, "result": { "tools": [] } });
    Box::new(move |seen, wire| {
        match seen.rpc().as_str() {
            "tools/list" if seen.json()["id"] == id => {
                wire.respond(&McpResponse::event_stream("id: e-1\nretry: 10\ndata: \n\n"));
            }
            "GET" => wire.respond(&McpResponse::events(std::slice::from_ref(&listed))),
            "tools/call" => {
                wire.stream();
                wire.bytes(": begun\n\n");
                wire.is_hung_up_on();
                wire.hang_up();
            }
            _ => return false,
        }
        true
    })
}

#[tokio::test]
async fn a_list_is_resumed_although_a_call_is_open() {
    let world = World::before(lists_later(3)).await;
    let mut client = LocalClient::of(&world);
    client.say(crate::scripted::initialize("2025-11-25")).await;
    client.next().await;
    let agent = world.nobody();
    client.say(agent.message("tools/list", &json!({ "_meta": { VAP: agent.commitment() } }))).await;
    let committed = client.next().await;
    assert_eq!(committed["result"]["_meta"][VAP]["verdict"], "served", "{committed}");
    client.say(agent.message("tools/call", &agent.call_params("crm.read", &json!({})))).await;
    until("the call is open", || world.server.calls() == 1).await;
    client.say(agent.message("tools/list", &json!({}))).await;
    let listed = client.next().await;
    assert_eq!((&listed["id"], &listed["result"]["tools"]), (&json!(3), &json!([])), "{listed}");
}

#[tokio::test]
async fn a_modern_request_for_something_unknown_does_not_end_the_client() {
    let world = World::new().await;
    let mut client = LocalClient::of(&world);
    client.say(crate::scripted::initialize("2025-06-18")).await;
    client.next().await;
    for id in [1, 2] {
        client.say(modern(json!(id), "example/unknown", json!({}), json!({}))).await;
        let answer = client.next().await;
        assert_eq!((&answer["id"], &answer["error"]["code"]), (&json!(id), &json!(-32601)), "{answer}");
    }
    assert_eq!(client.end().await, [""; 0]);
}

#[tokio::test]
async fn the_end_of_the_input_ends_an_open_subscription() {
    let server = Arc::new(Stdio::new(program("modern"), "modern"));
    let world = World::with(|wishes| {
        wishes.upstream = Some(server.clone());
        wishes.rules.posture = Posture::Advisory;
    })
    .await;
    let mut client = LocalClient::of(&world);
    client.say(modern(json!(1), "subscriptions/listen", json!({ "notifications": {} }), json!({}))).await;
    assert_eq!(client.next().await["method"], "notifications/subscriptions/acknowledged");
    assert_eq!(client.end().await, [""; 0]);
    server.stop().await;
}

#[tokio::test]
async fn a_client_that_is_gone_is_not_served_on_although_a_call_is_open() {
    let server = Arc::new(Stdio::new(program("old"), "old"));
    let world = World::with(|wishes| {
        wishes.upstream = Some(server.clone());
        wishes.rules.posture = Posture::Advisory;
    })
    .await;
    let mut client = LocalClient::of(&world);
    client.say(crate::scripted::initialize("2025-06-18")).await;
    client.next().await;
    let call = |id: u64, tool: &str| {
        let params = json!({ "name": tool, "arguments": {} });
        json!({ "jsonrpc": "2.0", "id": id, "method": "tools/call", "params": params })
    };
    client.say(call(1, "hold")).await;
    let LocalClient { mut input, output, served } = client;
    drop(output);
    input.write_all(format!("{}\n", call(2, "echo")).as_bytes()).await.unwrap();
    tokio::time::timeout(PATIENCE, served).await.expect("it ends by itself").unwrap().unwrap();
    drop(input);
    server.stop().await;
}

/// A server that opens sessions and does not answer to their end. It sends on how long that is awaited.
struct WithoutEnd(mpsc::UnboundedSender<Option<Duration>>);

#[async_trait]
impl Upstream for WithoutEnd {
    async fn exchange(&self, request: Exchange) -> Result<UpstreamAnswer, UpstreamError> {
        if request.method == Method::DELETE {
            self.0.send(request.time_limit).unwrap();
            std::future::pending::<()>().await;
        }
        let result = json!({ "protocolVersion": "2025-06-18", "capabilities": {} });
        let opened = json!({ "jsonrpc": "2.0", "id": 0, "result": result }).to_string();
        let mut answer = answer::json(StatusCode::OK, opened.into());
        answer.headers.insert("mcp-session-id", HeaderValue::from_static("s"));
        Ok(answer)
    }
}

#[tokio::test]
async fn a_stop_does_not_wait_for_a_server_that_does_not_answer_to_the_end_of_its_session() {
    let (sender, mut limits) = mpsc::unbounded_channel();
    let world = World::with(|wishes| wishes.upstream = Some(Arc::new(WithoutEnd(sender)))).await;
    let stop = CancellationToken::new();
    let mut client = LocalClient::until(&world, stop.clone().cancelled_owned());
    client.say(crate::scripted::initialize("2025-06-18")).await;
    client.next().await;
    let LocalClient { input, output, served } = client;
    drop(input);
    let limit = tokio::time::timeout(PATIENCE, limits.recv()).await.unwrap().unwrap();
    assert_eq!(limit, Some(gateway::limits::CLOSE_TIME), "without a stop");
    stop.cancel();
    let ended = tokio::time::timeout(gateway::limits::CLOSE_TIME / 2, served).await;
    ended.expect("it ends at once").unwrap().unwrap();
    drop(output);
}

#[tokio::test]
async fn a_stop_does_not_wait_for_a_client_that_does_not_read() {
    let world = World::new().await;
    let (mut input, to_read) = duplex(1 << 16);
    let (to_write, mut output) = duplex(16);
    let stop = CancellationToken::new();
    let client = StdioClient::new(world.front.clone(), "/mcp");
    let served = tokio::spawn(client.serve(to_read, to_write, stop.clone().cancelled_owned()));
    input.write_all(b"{\n").await.unwrap();
    // The error for that line is longer than what fits.
    assert_eq!(output.read_u8().await.unwrap(), b'{');
    stop.cancel();
    tokio::time::timeout(PATIENCE, served).await.expect("it ends by itself").unwrap().unwrap();
    drop((input, output));
}

#[tokio::test]
async fn a_modern_call_of_a_listed_tool_has_the_headers_of_its_parameters() {
    let server = Arc::new(Stdio::new(program("modern"), "modern"));
    let world = World::with(|wishes| {
        wishes.upstream = Some(server.clone());
        wishes.rules.posture = Posture::Advisory;
    })
    .await;
    let mut client = LocalClient::of(&world);
    client.say(modern(json!(1), "tools/list", json!({ "cursor": "more" }), json!({}))).await;
    assert_eq!(client.next().await["result"]["tools"][0]["name"], "last");
    let params = json!({ "name": "last", "arguments": { "region": "gr\u{fc}n" } });
    client.say(modern(json!(2), "tools/call", params, json!({}))).await;
    let answer = client.next().await;
    assert!(answer["id"] == 2 && answer["result"]["line"].is_string(), "{answer}");
    assert_eq!(client.end().await, [""; 0]);
    server.stop().await;
}
