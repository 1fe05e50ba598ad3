//! Child processes as Streamable HTTP servers: sessions, streams, resumption and the shared child of the modern era.

#![allow(clippy::unwrap_used)]

mod scripted;

use std::time::Duration;

use futures::StreamExt;
use gateway::limits;
use gateway::upstream::stdio::Stdio;
use gateway::upstream::{ClientName, Upstream, UpstreamError};
use http::StatusCode;
use scripted::{Client, Events, cancellation, initialize, messages, modern, program, text};
use serde_json::{Value, json};

#[test]
fn scripted_server() {
    scripted::serve_if_asked();
}

fn server(role: &str) -> Stdio {
    Stdio::new(program(role), role)
}

const OLD: &str = "2025-06-18";
const LATER: &str = "2025-11-25";

fn listing(id: u64) -> Value {
    json!({"jsonrpc": "2.0", "id": id, "method": "tools/list"})
}

fn call(id: Value, tool: &str, token: &str) -> Value {
    let params = json!({"name": tool, "arguments": {}, "_meta": {"progressToken": token}});
    json!({"jsonrpc": "2.0", "id": id, "method": "tools/call", "params": params})
}

/// Waits until a condition holds.
async fn until<F: Future<Output = bool>>(condition: &str, mut holds: impl FnMut() -> F) {
    for _ in 0..600 {
        if holds().await {
            return;
        }
        tokio::time::sleep(Duration::from_millis(50)).await;
    }
    panic!("waited in vain until {condition}");
}

// --- sessions -------------------------------------------------------------------------------------

#[tokio::test]
async fn each_session_has_a_child_of_its_own() {
    let server = server("legacy");
    let (a, b) = (Client::with_session(&server, OLD).await, Client::with_session(&server, OLD).await);
    assert_ne!(a.headers["mcp-session-id"], b.headers["mcp-session-id"]);
    let (a, b) = (a.call("pid", json!({})).await, b.call("pid", json!({})).await);
    assert_ne!(a["result"]["pid"], b["result"]["pid"]);
    server.stop().await;
    assert_eq!(server.sessions(), 0);
}

#[tokio::test]
async fn a_request_without_session_is_400_and_one_with_an_unknown_session_404() {
    let server = server("legacy");
    let mut client = Client::of(&server);
    assert_eq!(client.post(listing(1)).await.unwrap().status, StatusCode::BAD_REQUEST);
    assert_eq!(client.get(None).await.status, StatusCode::BAD_REQUEST);
    assert_eq!(client.delete().await.status, StatusCode::BAD_REQUEST);
    client.header("mcp-session-id", "guessed");
    assert_eq!(client.post(listing(1)).await.unwrap().status, StatusCode::NOT_FOUND);
    assert_eq!(client.get(None).await.status, StatusCode::NOT_FOUND);
    assert_eq!(client.delete().await.status, StatusCode::NOT_FOUND);
}

#[tokio::test]
async fn a_request_in_an_unknown_revision_is_400_and_keeps_the_session() {
    let server = server("legacy");
    let mut client = Client::with_session(&server, "2025-10-10").await;
    for version in ["latest", "2025-10-11", "", "2024-11-05 "] {
        client.header("mcp-protocol-version", version);
        assert_eq!(client.post(listing(1)).await.unwrap().status, StatusCode::BAD_REQUEST, "{version:?}");
        assert_eq!(client.get(None).await.status, StatusCode::BAD_REQUEST, "{version:?}");
    }
    for version in ["2025-10-10", "2025-03-26", OLD, LATER] {
        client.header("mcp-protocol-version", version);
        assert_eq!(client.call("echo", json!({})).await["id"], "call of echo", "{version}");
    }
    assert_eq!(client.get(None).await.status, StatusCode::OK);
}

#[tokio::test]
async fn a_session_id_is_long_and_visible_ascii() {
    let server = server("legacy");
    let answer = Client::of(&server).post(initialize(OLD)).await.unwrap();
    let id = answer.headers["mcp-session-id"].to_str().unwrap();
    assert!(id.len() >= 32 && id.bytes().all(|byte| (0x21..=0x7e).contains(&byte)), "{id}");
}

#[tokio::test]
async fn delete_ends_the_child_and_the_session() {
    let server = server("legacy");
    let client = Client::with_session(&server, OLD).await;
    let pid = client.call("pid", json!({})).await["result"]["pid"].as_u64().unwrap();
    assert_eq!(client.delete().await.status, StatusCode::OK);
    assert_eq!(client.post(listing(1)).await.unwrap().status, StatusCode::NOT_FOUND);
    until("the child has ended", || async { !std::path::Path::new(&format!("/proc/{pid}")).exists() }).await;
}

#[tokio::test]
async fn a_dying_child_loses_its_call_and_ends_its_sessions() {
    let server = server("legacy");
    let client = Client::with_session(&server, OLD).await;
    let lost = client.post(call(json!(1), "die", "t")).await.unwrap();
    let lost = lost.body.collect::<Vec<_>>().await.pop().unwrap();
    assert!(matches!(lost, Err(UpstreamError::Lost(_))));
    assert_eq!(client.post(listing(1)).await.unwrap().status, StatusCode::NOT_FOUND);
    assert_eq!(client.get(None).await.status, StatusCode::NOT_FOUND);
    until("no session is left", || async { server.sessions() == 0 }).await;
}

#[tokio::test]
async fn a_second_initialize_in_a_session_is_400_and_keeps_it() {
    let server = server("legacy");
    let mut client = Client::with_session(&server, OLD).await;
    for version in [OLD, "latest"] {
        client.header("mcp-protocol-version", version);
        let answer = client.post(initialize(OLD)).await.unwrap();
        assert_eq!(answer.status, StatusCode::BAD_REQUEST, "{version}");
        assert!(!answer.headers.contains_key("mcp-session-id"), "{version}");
    }
    assert_eq!(server.sessions(), 1);
    client.header("mcp-protocol-version", OLD);
    assert_eq!(client.call("echo", json!({})).await["id"], "call of echo");
}

#[tokio::test]
async fn initialize_opens_a_session_whatever_revision_its_header_names() {
    let server = server("legacy");
    let mut client = Client::of(&server);
    client.header("mcp-protocol-version", "latest");
    assert_eq!(client.post(initialize(OLD)).await.unwrap().status, StatusCode::OK);
    client.header("mcp-session-id", "of-a-session-that-ended");
    assert_eq!(client.post(initialize(OLD)).await.unwrap().status, StatusCode::OK);
    assert_eq!(server.sessions(), 2);
}

#[tokio::test]
async fn a_refused_initialize_opens_no_session() {
    let server = server("modern");
    let answer = Client::of(&server).post(initialize(LATER)).await.unwrap();
    assert_eq!(answer.status, StatusCode::BAD_REQUEST);
    assert!(!answer.headers.contains_key("mcp-session-id"));
    assert_eq!(messages(answer).await[0]["error"]["code"], -32022);
    assert_eq!(server.sessions(), 0);
}

#[tokio::test]
async fn a_client_gets_503_while_all_children_are_in_use() {
    let mut program = program("legacy");
    program.children = 1;
    let server = Stdio::new(program, "small");
    let first = Client::with_session(&server, OLD).await;
    let busy = Client::of(&server).post(initialize(OLD)).await.unwrap();
    assert_eq!(busy.status, StatusCode::SERVICE_UNAVAILABLE);
    assert!(busy.headers.contains_key("retry-after"));
    first.delete().await;
    Client::with_session(&server, OLD).await;
}

#[tokio::test]
async fn a_new_session_takes_the_place_of_an_idle_one() {
    let mut program = program("legacy");
    program.children = 2;
    let server = Stdio::new(program, "small").sparing(Duration::ZERO);
    let busy = Client::with_session(&server, OLD).await;
    let held = busy.post(call(json!(1), "hold", "t")).await.unwrap();
    let left = Client::with_session(&server, OLD).await;
    let next = Client::with_session(&server, OLD).await;
    assert_eq!(server.sessions(), 2);
    assert_eq!(left.post(listing(1)).await.unwrap().status, StatusCode::NOT_FOUND);
    assert_eq!(next.call("echo", json!({})).await["id"], "call of echo");
    assert_eq!(busy.call("held", json!({})).await["result"]["held"], 1, "a session with an open call stays");
    let listens = next.get(None).await;
    let refused = Client::of(&server).post(initialize(OLD)).await.unwrap();
    assert_eq!(
        refused.status,
        StatusCode::SERVICE_UNAVAILABLE,
        "nobody loses a session that is read or busy"
    );
    drop((held, listens));
}

#[tokio::test]
async fn a_session_is_idle_from_the_end_of_its_stream_on() {
    let mut program = program("legacy");
    program.children = 2;
    let server = Stdio::new(program, "small").sparing(Duration::ZERO);
    let reads = Client::with_session(&server, OLD).await;
    let listens = reads.get(None).await;
    let older = Client::with_session(&server, OLD).await;
    drop(listens);
    let next = Client::with_session(&server, OLD).await;
    assert_eq!(older.post(listing(1)).await.unwrap().status, StatusCode::NOT_FOUND);
    for client in [reads, next] {
        assert_eq!(client.call("echo", json!({})).await["id"], "call of echo");
    }
}

#[tokio::test]
async fn a_client_replaces_only_its_own_idle_sessions() {
    let mut program = program("legacy");
    program.children = 4;
    let server = Stdio::new(program, "small").sparing(Duration::ZERO);
    let name = |number: u8| ClientName::Address([192, 0, 2, number].into());
    let victim = Client::named(&server, name(1)).in_session(OLD).await;
    let mut greedy = Vec::new();
    for _ in 0..6 {
        greedy.push(Client::named(&server, name(2)).in_session(OLD).await);
    }
    assert_eq!(server.sessions(), 3, "a client has half of them, and its own oldest ones went");
    let token = ClientName::Token("https://as.example".into(), "alice".into());
    let late = Client::named(&server, token).in_session(OLD).await;
    let refused = Client::named(&server, name(3)).post(initialize(OLD)).await.unwrap();
    assert_eq!(refused.status, StatusCode::SERVICE_UNAVAILABLE, "all are taken, and none is its own");
    for honest in [victim, late] {
        assert_eq!(honest.call("echo", json!({})).await["id"], "call of echo");
    }
    assert_eq!(greedy[0].post(listing(1)).await.unwrap().status, StatusCode::NOT_FOUND);
}

#[tokio::test]
async fn a_client_starts_only_so_many_processes_a_minute() {
    let mut program = gateway::upstream::stdio::Program::new(["/nowhere/at-all"]);
    program.children = 2;
    let server = Stdio::new(program, "missing");
    let hasty = Client::named(&server, ClientName::LocalProxy);
    for _ in 0..limits::SESSION_STARTS {
        assert!(hasty.post(initialize(OLD)).await.is_err(), "there is no such program");
    }
    let refused = hasty.post(initialize(OLD)).await.unwrap();
    assert_eq!(refused.status, StatusCode::SERVICE_UNAVAILABLE);
    let other = Client::named(&server, ClientName::Address([192, 0, 2, 1].into()));
    assert!(other.post(initialize(OLD)).await.is_err(), "another client is not held up");
}

#[tokio::test]
async fn a_call_of_a_program_that_cannot_start_counts_as_never_sent() {
    let server = Stdio::new(gateway::upstream::stdio::Program::new(["/nowhere/at-all"]), "missing");
    let legacy = Client::of(&server).post(initialize(OLD)).await;
    assert!(matches!(legacy, Err(UpstreamError::NeverSent(_))));
    let discover = modern(json!(1), "server/discover", json!({}), json!({}));
    assert!(matches!(Client::of(&server).post(discover).await, Err(UpstreamError::NeverSent(_))));
}

#[tokio::test]
async fn a_child_gets_only_the_configured_environment() {
    let mut program = program("legacy");
    program.env.insert("GIVEN".into(), "1".into());
    let server = Stdio::new(program, "legacy");
    let client = Client::with_session(&server, OLD).await;
    let answer = client.call("env", json!({})).await;
    let names: Vec<&str> =
        answer["result"]["env"].as_array().unwrap().iter().map(|name| name.as_str().unwrap()).collect();
    assert!(names.contains(&"GIVEN") && names.contains(&"PATH"), "{names:?}");
    assert!(!names.iter().any(|name| name.starts_with("CARGO")), "{names:?}");
}

// --- messages -------------------------------------------------------------------------------------

#[tokio::test]
async fn a_message_reaches_the_child_byte_for_byte_on_one_line() {
    let server = server("legacy");
    let mut client = Client::with_session(&server, OLD).await;
    client.header("accept", "application/json");
    let odd = "{ \"jsonrpc\":\"2.0\",\n\t\"id\" : \"\\u0041\",\r\n\"params\":{\"name\":\"echo\", \"x\":1e2, \"y\":\"\u{2028}\"}, \"method\":\"tools/call\"}";
    let answer = text(client.post(odd).await.unwrap()).await;
    let line: Value = serde_json::from_str(&answer).unwrap();
    assert_eq!(line["result"]["line"], odd.replace(['\n', '\r'], " "));
    assert!(answer.contains(r#""id":"\u0041""#), "the id is written as the client wrote it: {answer}");
}

#[tokio::test]
async fn an_answer_reaches_the_client_byte_for_byte() {
    let server = server("legacy");
    let mut client = Client::with_session(&server, OLD).await;
    let odd = r#"{ "result":{"n":1e2,"u":"\u0041"} , "jsonrpc":"2.0","id":7 }"#;
    let answer = text(client.post(call(json!(7), "odd", "t")).await.unwrap()).await;
    assert_eq!(answer, format!("event: message\nid: 2-1\ndata: {odd}\n\n"));
    client.header("accept", "application/json");
    let answer = text(client.post(call(json!(7), "odd", "t")).await.unwrap()).await;
    assert_eq!(answer, odd);
}

#[tokio::test]
async fn ids_keep_value_and_type_and_answers_out_of_order_find_their_requests() {
    let server = server("legacy");
    let client = Client::with_session(&server, OLD).await;
    let ids = [json!(1), json!("1"), json!(0), json!(9_007_199_254_740_991_u64)];
    let calls = ids.iter().map(|id| client.ask(call(id.clone(), "hold", "t")));
    let calls = futures::future::join_all(calls);
    let release = async {
        until("four calls are open", || async {
            client.call("held", json!({})).await["result"]["held"] == 4
        })
        .await;
        client.call("release", json!({})).await
    };
    let (answers, _) = tokio::join!(calls, release);
    for (id, answer) in ids.iter().zip(answers) {
        assert_eq!(answer["id"], *id);
        let line: Value = serde_json::from_str(answer["result"]["line"].as_str().unwrap()).unwrap();
        assert_eq!(line["id"], *id);
    }
}

#[tokio::test]
async fn a_request_with_the_id_of_an_open_one_is_refused() {
    let server = server("legacy");
    let client = Client::with_session(&server, OLD).await;
    let first = client.post(call(json!(1), "hold", "t"));
    let second = async {
        until("the first call is open", || async {
            client.call("held", json!({})).await["result"]["held"] == 1
        })
        .await;
        let second = client.post(call(json!(1), "echo", "t")).await.unwrap();
        client.call("release", json!({})).await;
        second
    };
    let (first, second) = tokio::join!(first, second);
    assert_eq!(second.status, StatusCode::BAD_REQUEST);
    assert_eq!(messages(first.unwrap()).await.pop().unwrap()["id"], 1);
}

#[tokio::test]
async fn two_accept_headers_count_together() {
    let server = server("legacy");
    let mut client = Client::with_session(&server, OLD).await;
    for kind in ["application/json", "text/event-stream"] {
        client.headers.append("accept", kind.parse().unwrap());
    }
    let answer = client.post(call(json!(1), "echo", "t")).await.unwrap();
    assert_eq!(answer.headers["content-type"], "text/event-stream");
}

#[tokio::test]
async fn progress_comes_on_the_stream_of_its_call_before_the_answer() {
    let server = server("legacy");
    let client = Client::with_session(&server, OLD).await;
    let got = messages(client.post(call(json!(1), "progress", "t")).await.unwrap()).await;
    let progress: Vec<_> = got.iter().map(|message| message["params"]["progress"].clone()).collect();
    assert_eq!(progress, [json!(0), json!(1), Value::Null]);
    assert_eq!(got[2]["result"]["done"], true);
}

#[tokio::test]
async fn a_question_comes_on_the_stream_of_the_call_and_its_answer_gets_through() {
    let server = server("legacy");
    let client = Client::with_session(&server, OLD).await;
    let mut events = Events::of(client.post(call(json!(1), "ask", "t")).await.unwrap());
    let question = events.message().await;
    assert_eq!((&question["method"], &question["id"]), (&json!("elicitation/create"), &json!(0)));
    let reply = r#"{"jsonrpc":"2.0","id":0,"result":{"action":"accept","n":1.0}}"#;
    assert_eq!(client.post(reply).await.unwrap().status, StatusCode::ACCEPTED);
    assert_eq!(events.message().await["result"]["answer"], reply);
    assert!(events.next().await.is_none());
}

#[tokio::test]
async fn messages_outside_calls_wait_for_the_get_stream() {
    let server = server("legacy");
    let client = Client::with_session(&server, OLD).await;
    client.call("change", json!({})).await;
    let mut events = Events::of(client.get(None).await);
    assert_eq!(events.message().await["method"], "notifications/tools/list_changed");
    assert_eq!(client.get(None).await.status, StatusCode::CONFLICT);
    drop(events);
    assert_eq!(client.get(None).await.status, StatusCode::OK);
}

#[tokio::test]
async fn a_call_is_cancelled_by_a_notification_alone_in_the_legacy_era() {
    let server = server("legacy");
    let client = Client::with_session(&server, OLD).await;
    drop(client.post(call(json!(5), "hold", "t")).await.unwrap());
    assert_eq!(client.call("held", json!({})).await["result"]["held"], 1);
    client.post(cancellation(5)).await.unwrap();
    assert_eq!(client.call("held", json!({})).await["result"]["held"], 0);
}

#[tokio::test]
async fn a_cancelled_calls_stream_gets_no_later_messages() {
    let server = server("legacy");
    let client = Client::with_session(&server, OLD).await;
    drop(client.post(call(json!(5), "hold", "t")).await.unwrap());
    client.post(cancellation(5)).await.unwrap();
    let got = messages(client.post(call(json!(6), "log", "t")).await.unwrap()).await;
    assert_eq!(got[0]["method"], "notifications/message", "the one open call may have caused it");
    let mut events = Events::of(client.post(call(json!(7), "ask", "t")).await.unwrap());
    assert_eq!(events.message().await["method"], "elicitation/create");
}

#[tokio::test]
async fn cancelled_calls_make_room_for_new_ones() {
    let server = server("legacy");
    let client = Client::with_session(&server, OLD).await;
    for id in 0..=limits::SESSION_CALLS {
        let held = client.post(call(json!(id), "hold", "t")).await.unwrap();
        assert_eq!(held.status, StatusCode::OK, "call {id}");
        client.post(cancellation(id)).await.unwrap();
    }
    assert_eq!(client.call("held", json!({})).await["result"]["held"], 0);
}

#[tokio::test]
async fn an_answer_without_end_is_lost() {
    let server = server("legacy");
    let client = Client::with_session(&server, OLD).await;
    let lost = client.post(call(json!(1), "endless", "t")).await;
    let lost = match lost {
        Ok(answer) => answer.body.collect::<Vec<_>>().await.into_iter().find_map(Result::err),
        Err(error) => Some(error),
    };
    assert!(matches!(lost, Some(UpstreamError::Lost(_))));
}

#[tokio::test]
async fn an_answer_of_megabytes_gets_through() {
    let server = server("legacy");
    let client = Client::with_session(&server, OLD).await;
    let bytes = limits::UNREAD_BYTES + 1;
    let answer = client.call("big", json!({"bytes": bytes})).await;
    assert_eq!(answer["result"]["big"].as_str().unwrap().len(), bytes);
}

// --- resumption -----------------------------------------------------------------------------------

#[tokio::test]
async fn a_stream_is_resumed_where_the_client_was() {
    let server = server("legacy");
    let client = Client::with_session(&server, LATER).await;
    let mut events = Events::of(client.post(call(json!(1), "progress", "t")).await.unwrap());
    let first = events.next().await.unwrap();
    assert_eq!(first.message["params"]["progress"], 0);
    drop(events);
    let mut events = Events::of(client.get(first.id.as_deref()).await);
    assert_eq!(events.message().await["params"]["progress"], 1);
    assert_eq!(events.message().await["result"]["done"], true);
    assert!(events.next().await.is_none());
}

#[tokio::test]
async fn the_first_event_of_a_stream_says_where_to_resume_since_2025_11_25() {
    for (version, primed) in [(OLD, false), (LATER, true)] {
        let server = server("legacy");
        let client = Client::with_session(&server, version).await;
        let body = text(client.post(call(json!(1), "progress", "t")).await.unwrap()).await;
        let (first, _) = body.split_once("\n\n").unwrap();
        assert_eq!(first.ends_with("\ndata: "), primed, "{first}");
    }
}

#[tokio::test]
async fn resuming_at_an_unknown_event_is_400() {
    let server = server("legacy");
    let client = Client::with_session(&server, LATER).await;
    for place in ["7-1", "nonsense", "0-99", "1-1"] {
        assert_eq!(client.get(Some(place)).await.status, StatusCode::BAD_REQUEST, "{place}");
    }
}

// --- the modern era -------------------------------------------------------------------------------

fn modern_call(id: Value, tool: &str, meta: Value) -> Value {
    modern(id, "tools/call", json!({"name": tool, "arguments": {}}), meta)
}

#[tokio::test]
async fn modern_clients_share_a_child_and_each_gets_its_own_answer() {
    let server = server("modern");
    let (a, b) = (Client::of(&server), Client::of(&server));
    let meta = json!({"progressToken": "same"});
    let held = futures::future::join(
        a.ask(modern_call(json!(1), "hold", meta.clone())),
        b.ask(modern_call(json!(1), "hold", meta)),
    );
    let release = async {
        let held = || async { a.ask(modern_call(json!(1), "held", json!({}))).await["result"]["held"] == 2 };
        until("both calls are open", held).await;
        a.ask(modern_call(json!("r"), "release", json!({}))).await
    };
    let ((first, second), _) = tokio::join!(held, release);
    assert_eq!((&first["id"], &second["id"]), (&json!(1), &json!(1)));
    assert_ne!(first["result"]["line"], second["result"]["line"]);
}

#[tokio::test]
async fn progress_has_the_token_of_its_client() {
    let server = server("modern");
    let client = Client::of(&server);
    for token in [json!("t"), json!(7), json!("7")] {
        let call = modern_call(json!("x"), "progress", json!({"progressToken": token}));
        let got = messages(client.post(call).await.unwrap()).await;
        assert_eq!(got[0]["params"]["progressToken"], token);
        assert_eq!(got[2]["id"], "x");
    }
}

#[tokio::test]
async fn a_protocol_error_has_its_own_status_and_a_result_200() {
    let server = server("modern");
    let client = Client::of(&server);
    let status = async |message: Value| client.post(message).await.unwrap().status;
    assert_eq!(status(modern(json!(1), "no/such", json!({}), json!({}))).await, StatusCode::NOT_FOUND);
    assert_eq!(status(modern_call(json!(1), "unknown", json!({}))).await, StatusCode::BAD_REQUEST);
    assert_eq!(status(modern_call(json!(1), "echo", json!({}))).await, StatusCode::OK);
}

#[tokio::test]
async fn the_modern_era_has_neither_get_nor_delete_nor_responses_of_clients() {
    let server = server("modern");
    let mut client = Client::of(&server);
    client.header("mcp-protocol-version", "2026-07-28");
    assert_eq!(client.get(None).await.status, StatusCode::METHOD_NOT_ALLOWED);
    assert_eq!(client.delete().await.status, StatusCode::METHOD_NOT_ALLOWED);
    let response = json!({"jsonrpc": "2.0", "id": 1, "result": {}});
    assert_eq!(client.post(response).await.unwrap().status, StatusCode::BAD_REQUEST);
}

#[tokio::test]
async fn headers_must_agree_with_the_body() {
    let server = server("modern");
    for (name, value) in
        [("mcp-protocol-version", "2025-11-25"), ("mcp-method", "tools/list"), ("mcp-name", "harmless")]
    {
        let mut client = Client::of(&server);
        client.header(name, value);
        let answer = client.post(modern_call(json!(1), "echo", json!({}))).await.unwrap();
        assert_eq!(answer.status, StatusCode::BAD_REQUEST, "{name}");
        assert_eq!(messages(answer).await[0]["error"]["code"], -32020, "{name}");
    }
}

#[tokio::test]
async fn a_mirrored_argument_must_agree_with_its_header() {
    let server = server("modern");
    let call = |region: &str| {
        modern(json!(1), "tools/call", json!({"name": "last", "arguments": {"region": region}}), json!({}))
    };
    let mut client = Client::of(&server);
    assert_eq!(client.post(call("eu")).await.unwrap().status, StatusCode::BAD_REQUEST);
    client.header("mcp-param-region", "eu");
    assert_eq!(client.post(call("eu")).await.unwrap().status, StatusCode::OK);
    let answer = client.post(call("us")).await.unwrap();
    assert_eq!(messages(answer).await[0]["error"]["code"], -32020);
}

#[tokio::test]
async fn a_modern_request_without_its_meta_members_is_refused() {
    let server = server("modern");
    let mut client = Client::of(&server);
    client.header("mcp-protocol-version", "2026-07-28");
    let answer = client.post(listing(1)).await.unwrap();
    assert_eq!(answer.status, StatusCode::BAD_REQUEST);
    assert_eq!(messages(answer).await[0]["error"]["code"], -32602);
}

#[tokio::test]
async fn a_call_in_a_malformed_revision_needs_a_session() {
    let server = server("both");
    for version in ["DRAFT-2026-v1", "zzzz", "2026-07-28-draft", "9999", "2026_07_28"] {
        let mut client = Client::of(&server);
        client.header("mcp-protocol-version", version);
        client.header("mcp-session-id", "invented");
        let answer = client.post(call(json!(1), "pid", "t")).await.unwrap();
        assert_eq!(answer.status, StatusCode::NOT_FOUND, "{version}");
    }
}

#[tokio::test]
async fn initialize_in_a_modern_revision_is_404() {
    let server = server("modern");
    let answer =
        Client::of(&server).post(modern(json!(1), "initialize", json!({}), json!({}))).await.unwrap();
    assert_eq!(answer.status, StatusCode::NOT_FOUND);
    assert_eq!(messages(answer).await[0]["error"]["code"], -32601);
}

#[tokio::test]
async fn a_modern_client_that_disconnects_cancels_its_own_request_only() {
    let server = server("modern");
    let (stays, goes) = (Client::of(&server), Client::of(&server));
    let staying = stays.ask(modern_call(json!(1), "hold", json!({})));
    let rest = async {
        let held = async |n: u64| {
            let held = stays.ask(modern_call(json!(2), "held", json!({}))).await;
            held["result"]["held"] == n
        };
        let going = goes.post(modern_call(json!(1), "hold", json!({})));
        let both = async { until("both calls are open", || held(2)).await };
        tokio::select! { _ = going => panic!("nobody answers"), () = both => {} }
        until("one call is open", || held(1)).await;
        stays.ask(modern_call(json!(3), "release", json!({}))).await;
    };
    let (answer, ()) = tokio::join!(staying, rest);
    assert_eq!(answer["id"], 1);
}

#[tokio::test]
async fn a_notification_of_a_subscription_carries_its_clients_id() {
    let server = server("modern");
    let client = Client::of(&server);
    let listen = |id: Value| modern(id, "subscriptions/listen", json!({"notifications": {}}), json!({}));
    let mut streams = Vec::new();
    for id in [json!(1), json!("1")] {
        let mut events = Events::of(client.post(listen(id.clone())).await.unwrap());
        let first = events.message().await;
        assert_eq!(first["method"], "notifications/subscriptions/acknowledged");
        streams.push((id, events));
    }
    client.ask(modern_call(json!(5), "change", json!({}))).await;
    for (id, events) in &mut streams {
        let changed = events.message().await;
        assert_eq!(changed["method"], "notifications/tools/list_changed");
        assert_eq!(changed["params"]["_meta"]["io.modelcontextprotocol/subscriptionId"], *id);
    }
}

#[tokio::test]
async fn a_log_message_reaches_a_client_only_if_it_is_alone() {
    let server = server("modern");
    let client = Client::of(&server);
    let wants_log = json!({"io.modelcontextprotocol/logLevel": "debug"});
    let alone = messages(client.post(modern_call(json!(1), "log", wants_log.clone())).await.unwrap()).await;
    assert_eq!(alone[0]["params"]["data"], "secret");
    let other = client.ask(modern_call(json!(1), "hold", wants_log.clone()));
    let rest = async {
        until("the other call is open", || async {
            client.ask(modern_call(json!(2), "held", json!({}))).await["result"]["held"] == 1
        })
        .await;
        let two = messages(client.post(modern_call(json!(3), "log", wants_log)).await.unwrap()).await;
        client.ask(modern_call(json!(4), "release", json!({}))).await;
        two
    };
    let (_, two) = tokio::join!(other, rest);
    assert_eq!(two.len(), 1);
}

#[tokio::test]
async fn a_request_of_a_modern_server_is_answered_with_an_error() {
    let server = server("modern");
    let answer = Client::of(&server).ask(modern_call(json!(1), "request", json!({}))).await;
    assert!(answer["result"]["answer"].as_str().unwrap().contains("-32601"), "{answer}");
}

#[tokio::test]
async fn a_dead_shared_child_loses_its_calls_and_is_started_again() {
    let server = server("modern");
    let client = Client::of(&server);
    let pid = async || client.ask(modern_call(json!(1), "pid", json!({}))).await["result"]["pid"].clone();
    let first = pid().await;
    let lost = client.post(modern_call(json!(1), "die", json!({}))).await;
    assert!(matches!(lost, Err(UpstreamError::Lost(_))));
    assert_ne!(pid().await, first);
}

#[tokio::test]
async fn a_server_that_keeps_dying_is_not_started_again() {
    let server = server("modern");
    let client = Client::of(&server);
    let mut last = None;
    for _ in 0..=limits::RESTARTS {
        last = client.post(modern_call(json!(1), "die", json!({}))).await.err();
    }
    assert!(matches!(last, Some(UpstreamError::NeverSent(_))), "{last:?}");
}

#[tokio::test]
async fn a_legacy_servers_error_to_discovery_passes_unchanged() {
    let server = server("legacy");
    let client = Client::of(&server);
    let discover = modern(json!("d"), "server/discover", json!({}), json!({}));
    let answer = client.post(discover).await.unwrap();
    assert_eq!(answer.status, StatusCode::NOT_FOUND);
    let expected =
        json!({"jsonrpc": "2.0", "id": "d", "error": {"code": -32601, "message": "Method not found"}});
    assert_eq!(messages(answer).await, [expected]);
    let call = client.post(modern_call(json!(1), "echo", json!({}))).await.unwrap();
    assert_eq!(call.status, StatusCode::BAD_REQUEST);
    Client::with_session(&server, OLD).await;
}

#[tokio::test]
async fn a_server_that_dies_of_discovery_is_legacy() {
    let server = server("dies");
    let discover = modern(json!("d"), "server/discover", json!({}), json!({}));
    assert_eq!(Client::of(&server).post(discover).await.unwrap().status, StatusCode::BAD_REQUEST);
    Client::with_session(&server, OLD).await;
}

#[tokio::test]
async fn a_server_of_both_eras_serves_both_at_once() {
    let server = server("both");
    assert!(server.is_modern().await.unwrap());
    let legacy = Client::with_session(&server, LATER).await;
    let modern = Client::of(&server).ask(modern_call(json!(1), "pid", json!({}))).await;
    assert_ne!(legacy.call("pid", json!({})).await["result"]["pid"], modern["result"]["pid"]);
    let _: &dyn Upstream = &server;
}
