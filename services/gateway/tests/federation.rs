//! Several servers behind one endpoint: whose a thing is, lists and streams of all, sessions with each.

#![allow(clippy::unwrap_used)]

mod scripted;

use std::sync::Arc;
use std::time::Duration;

use futures::StreamExt;
use gateway::limits;
use gateway::upstream::federation::{BadName, Federation};
use gateway::upstream::stdio::Stdio;
use gateway::upstream::time_limited::TimeLimited;
use gateway::upstream::{ClientName, Exchange, Upstream, UpstreamAnswer, UpstreamError, answer};
use http::StatusCode;
use scripted::{Client, Events, cancellation, initialize, messages, modern, program, text};
use serde_json::{Value, json};

#[test]
fn scripted_server() {
    scripted::serve_if_asked();
}

/// Servers `a` and `b` of these roles.
struct Pair {
    federation: Federation,
    a: Arc<Stdio>,
    b: Arc<Stdio>,
}

fn pair(a: &str, b: &str) -> Pair {
    let (a, b) = (Arc::new(Stdio::new(program(a), "a")), Arc::new(Stdio::new(program(b), "b")));
    Pair { federation: federation(a.clone(), b.clone()), a, b }
}

/// An endpoint before two servers, which are called `a` and `b`.
fn federation(a: Arc<dyn Upstream>, b: Arc<dyn Upstream>) -> Federation {
    Federation::new(vec![("a".into(), a), ("b".into(), b)], ".").unwrap()
}

const OLD: &str = "2025-06-18";
const LATER: &str = "2025-11-25";

fn request(id: impl Into<Value>, method: &str, params: Value) -> Value {
    json!({"jsonrpc": "2.0", "id": id.into(), "method": method, "params": params})
}

fn call(id: impl Into<Value>, tool: &str) -> Value {
    request(id, "tools/call", json!({"name": tool, "arguments": {}, "_meta": {"progressToken": "t"}}))
}

fn names_of(list: &Value, key: &str, name: &str) -> Vec<String> {
    let items = list["result"][key].as_array().unwrap();
    items.iter().map(|item| item[name].as_str().unwrap().to_owned()).collect()
}

// --- sessions -------------------------------------------------------------------------------------

#[tokio::test]
async fn a_session_is_one_with_each_server() {
    let pair = pair("legacy", "both");
    let answer = Client::of(&pair.federation).post(initialize(OLD)).await.unwrap();
    let mut client = Client::of(&pair.federation);
    client.header("mcp-session-id", answer.headers["mcp-session-id"].to_str().unwrap());
    let result = messages(answer).await.pop().unwrap()["result"].clone();
    assert_eq!(result["protocolVersion"], OLD);
    assert_eq!(result["instructions"], "# a\n\nI am legacy.\n\n# b\n\nI am both.");
    assert_eq!(result["capabilities"]["tools"]["listChanged"], true);
    assert_eq!((pair.a.sessions(), pair.b.sessions()), (1, 1));
    let (a, b) = (client.call("a.pid", json!({})).await, client.call("b.pid", json!({})).await);
    assert_ne!(a["result"]["pid"], b["result"]["pid"]);
    assert_eq!(client.delete().await.status, StatusCode::OK);
    assert_eq!((pair.a.sessions(), pair.b.sessions()), (0, 0));
    assert_eq!(client.post(call(1, "a.pid")).await.unwrap().status, StatusCode::NOT_FOUND);
}

#[tokio::test]
async fn a_request_in_a_nonexistent_revision_is_400_and_keeps_the_session() {
    let pair = pair("legacy", "legacy");
    let mut client = Client::with_session(&pair.federation, OLD).await;
    client.header("mcp-protocol-version", "latest");
    assert_eq!(client.post(call(1, "a.pid")).await.unwrap().status, StatusCode::BAD_REQUEST);
    assert_eq!(client.get(None).await.status, StatusCode::BAD_REQUEST);
    assert_eq!(client.delete().await.status, StatusCode::BAD_REQUEST);
    assert_eq!(client.post(initialize(OLD)).await.unwrap().status, StatusCode::BAD_REQUEST);
    assert_eq!((pair.a.sessions(), pair.federation.sessions()), (1, 1));
    for version in [OLD, LATER] {
        client.header("mcp-protocol-version", version);
        assert!(client.call("a.pid", json!({})).await["result"]["pid"].is_u64(), "{version}");
    }
    assert_eq!(client.delete().await.status, StatusCode::OK);
}

#[tokio::test]
async fn a_session_that_one_server_refuses_is_ended_at_all() {
    let pair = pair("legacy", "modern");
    let answer = Client::of(&pair.federation).post(initialize(LATER)).await.unwrap();
    assert!(!answer.headers.contains_key("mcp-session-id"));
    assert_eq!(messages(answer).await[0]["error"]["code"], -32022);
    assert_eq!((pair.a.sessions(), pair.federation.sessions()), (0, 0));
}

#[tokio::test]
async fn a_session_with_a_server_that_cannot_start_is_ended_at_all() {
    let a = Arc::new(Stdio::new(program("legacy"), "a"));
    let b = Arc::new(Stdio::new(gateway::upstream::stdio::Program::new(["/nowhere/at-all"]), "b"));
    let federation = federation(a.clone(), b);
    assert!(Client::of(&federation).post(initialize(OLD)).await.is_err());
    assert_eq!(a.sessions(), 0);
}

/// A server that does not answer.
struct Silent;

#[async_trait::async_trait]
impl Upstream for Silent {
    async fn exchange(&self, _: Exchange) -> Result<UpstreamAnswer, UpstreamError> {
        std::future::pending().await
    }
}

#[tokio::test]
async fn a_session_with_an_overdue_server_is_ended_at_all_and_the_error_names_it() {
    let b = Arc::new(Stdio::new(program("legacy"), "b"));
    let silent = Arc::new(TimeLimited::new(Arc::new(Silent), "the server a"));
    let federation = federation(silent, b.clone());
    let client = Client { time_limit: Some(Duration::from_millis(200)), ..Client::of(&federation) };
    let Err(error) = client.post(initialize(OLD)).await else { panic!("one of them did not answer") };
    assert_eq!(error.to_string(), "the server a gave no answer within 200ms");
    assert_eq!((b.sessions(), federation.sessions()), (0, 0));
}

/// A server that opens sessions and does not answer to their end.
struct WithoutEnd;

#[async_trait::async_trait]
impl Upstream for WithoutEnd {
    async fn exchange(&self, request: Exchange) -> Result<UpstreamAnswer, UpstreamError> {
        if request.method == http::Method::DELETE {
            std::future::pending::<()>().await;
        }
        let opened = json!({"jsonrpc": "2.0", "id": 0, "result": {"protocolVersion": OLD}});
        let mut answer = answer::json(StatusCode::OK, opened.to_string().into());
        answer.headers.insert("mcp-session-id", http::HeaderValue::from_static("s"));
        Ok(answer)
    }
}

#[tokio::test(start_paused = true)]
async fn the_end_of_a_session_is_awaited_for_ten_seconds() {
    let a = Arc::new(TimeLimited::new(Arc::new(WithoutEnd), "the server a"));
    let b = Arc::new(TimeLimited::new(Arc::new(Silent), "the server b"));
    let federation = federation(a, b);
    let client = Client { time_limit: Some(Duration::from_secs(60)), ..Client::of(&federation) };
    let began = tokio::time::Instant::now();
    let opening = tokio::time::timeout(Duration::from_secs(3_600), client.post(initialize(OLD)));
    let Err(error) = opening.await.expect("it ends") else { panic!("one of them did not answer") };
    assert_eq!(error.to_string(), "the server b gave no answer within 60s");
    assert_eq!(began.elapsed().as_secs(), 70);
}

/// A server whose answers are event streams without an event.
struct WithoutEvents;

#[async_trait::async_trait]
impl Upstream for WithoutEvents {
    async fn exchange(&self, _: Exchange) -> Result<UpstreamAnswer, UpstreamError> {
        Ok(answer::events(futures::stream::pending().boxed()))
    }
}

#[tokio::test(start_paused = true)]
async fn a_merged_answer_has_the_time_limit_of_its_request() {
    let server = |name: &str| Arc::new(TimeLimited::new(Arc::new(WithoutEvents), name.to_owned()));
    let federation = federation(server("the server a"), server("the server b"));
    let client = Client { time_limit: Some(Duration::from_secs(3_000)), ..Client::of(&federation) };
    let request = modern(json!(1), "tools/list", json!({}), json!({}));
    let Err(error) = client.post(request).await else { panic!("none of them answered") };
    assert_eq!(error.to_string(), "the server a gave no answer within 3000s");
}

#[tokio::test]
async fn all_servers_speak_the_earliest_revision_that_one_of_them_agreed_to() {
    let pair = pair("legacy", "old");
    let client = Client::with_session(&pair.federation, LATER).await;
    for server in ["a.got", "b.got"] {
        let got = client.call(server, json!({})).await;
        let first = got["result"]["got"][0].as_str().unwrap();
        let wanted = if server == "a.got" { OLD } else { LATER };
        assert!(first.contains(wanted), "{server} was asked for another revision: {first}");
    }
    assert_eq!(pair.a.sessions(), 1);
}

#[tokio::test]
async fn a_session_that_one_server_lost_is_404_at_all() {
    let pair = pair("legacy", "legacy");
    let client = Client::with_session(&pair.federation, OLD).await;
    let lost = client.post(call(1, "b.die")).await.unwrap().body.collect::<Vec<_>>().await;
    assert!(lost.last().unwrap().is_err());
    assert_eq!(client.post(call(2, "b.pid")).await.unwrap().status, StatusCode::NOT_FOUND);
    assert_eq!(client.post(call(3, "a.pid")).await.unwrap().status, StatusCode::NOT_FOUND);
    assert_eq!((pair.federation.sessions(), pair.a.sessions()), (0, 0));
}

#[tokio::test]
async fn a_request_without_session_is_400_and_one_with_an_unknown_session_404() {
    let pair = pair("legacy", "legacy");
    let mut client = Client::of(&pair.federation);
    assert_eq!(client.post(call(1, "a.pid")).await.unwrap().status, StatusCode::BAD_REQUEST);
    assert_eq!(client.get(None).await.status, StatusCode::BAD_REQUEST);
    client.header("mcp-session-id", "guessed");
    assert_eq!(client.post(call(1, "a.pid")).await.unwrap().status, StatusCode::NOT_FOUND);
    assert_eq!(client.get(None).await.status, StatusCode::NOT_FOUND);
    assert_eq!(client.delete().await.status, StatusCode::NOT_FOUND);
}

#[tokio::test]
async fn ambiguous_server_names_are_refused() {
    let server: Arc<dyn Upstream> = Arc::new(Stdio::new(program("legacy"), "x"));
    let servers = |name: &str| vec![(name.to_owned(), Arc::clone(&server))];
    assert!(matches!(Federation::new(servers("a__b"), "__").err(), Some(BadName::Unsound(_))));
    assert!(matches!(Federation::new(servers("a-b"), "-").err(), Some(BadName::HoldsSeparator(..))));
}

// --- requests -------------------------------------------------------------------------------------

#[tokio::test]
async fn a_call_goes_to_the_server_of_its_prefix_with_its_text_unchanged() {
    let pair = pair("legacy", "legacy");
    let mut client = Client::with_session(&pair.federation, OLD).await;
    client.header("accept", "application/json");
    let odd = "{ \"jsonrpc\":\"2.0\", \"id\" : \"\\u0041\", \"params\":{\"name\":\"b.echo\", \"x\":1e2}, \"method\":\"tools/call\"}";
    let answer = text(client.post(odd).await.unwrap()).await;
    let read: Value = serde_json::from_str(&answer).unwrap();
    assert_eq!(read["result"]["line"], odd.replace("b.echo", "echo"));
    assert!(answer.contains(r#""id":"\u0041""#));
    let odd = text(client.post(call(7, "a.odd")).await.unwrap()).await;
    assert_eq!(odd, r#"{ "result":{"n":1e2,"u":"\u0041"} , "jsonrpc":"2.0","id":7 }"#);
}

#[tokio::test]
async fn a_name_of_no_server_is_refused_by_the_endpoint() {
    let pair = pair("legacy", "legacy");
    let client = Client::with_session(&pair.federation, OLD).await;
    for name in ["echo", "c.echo", "aecho", ".echo"] {
        let answer = client.post(call(1, name)).await.unwrap();
        assert_eq!(answer.status, StatusCode::OK);
        assert_eq!(messages(answer).await[0]["error"]["code"], -32602, "{name}");
    }
    let unknown = client.ask(request(2, "no/such", json!({}))).await;
    assert_eq!(unknown["error"]["code"], -32601);
    let resource = client.ask(request(3, "resources/read", json!({"uri": "test://a"}))).await;
    assert_eq!(resource["error"]["code"], -32002);
}

#[tokio::test]
async fn a_list_merges_all_servers_and_its_cursor_continues_each() {
    let pair = pair("legacy", "legacy");
    let client = Client::with_session(&pair.federation, OLD).await;
    let first = client.ask(request(1, "tools/list", json!({}))).await;
    assert_eq!(names_of(&first, "tools", "name"), ["a.echo", "a.ask", "b.echo", "b.ask"]);
    let cursor = &first["result"]["nextCursor"];
    let second = client.ask(request(2, "tools/list", json!({"cursor": cursor}))).await;
    assert_eq!(names_of(&second, "tools", "name"), ["a.last", "b.last"]);
    assert!(second["result"].get("nextCursor").is_none());
    let forged = client.ask(request(3, "tools/list", json!({"cursor": "more"}))).await;
    assert_eq!(forged["error"]["code"], -32602);
}

#[tokio::test]
async fn resources_are_read_by_the_names_that_lists_and_answers_give() {
    let pair = pair("legacy", "legacy");
    let client = Client::with_session(&pair.federation, OLD).await;
    let list = client.ask(request(1, "resources/list", json!({}))).await;
    assert_eq!(names_of(&list, "resources", "uri"), ["a+test://a", "b+test://a"]);
    let read = client.ask(request(2, "resources/read", json!({"uri": "b+test://a"}))).await;
    assert_eq!(read["result"]["contents"][0]["uri"], "b+test://a");
    let link = client.call("b.link", json!({})).await;
    assert_eq!(link["result"]["content"][0]["uri"], "b+test://a");
    let prompt = client.ask(request(3, "prompts/get", json!({"name": "a.greet"}))).await;
    assert_eq!(prompt["result"]["description"], "greet");
    let task = client.call("a.task", json!({})).await;
    assert_eq!(task["result"]["task"]["taskId"], "a.t");
}

#[tokio::test]
async fn a_ping_reaches_all_servers() {
    let pair = pair("legacy", "legacy");
    let client = Client::with_session(&pair.federation, OLD).await;
    assert_eq!(client.ask(request(1, "ping", json!({}))).await["result"], json!({}));
    for server in ["a.got", "b.got"] {
        assert!(
            client.call(server, json!({})).await["result"]["got"].to_string().contains("ping"),
            "{server}"
        );
    }
}

// --- streams --------------------------------------------------------------------------------------

#[tokio::test]
async fn questions_of_two_servers_with_the_same_id_get_their_own_answers() {
    let pair = pair("legacy", "legacy");
    let client = Client::with_session(&pair.federation, OLD).await;
    let mut a = Events::of(client.post(call(1, "a.ask")).await.unwrap());
    let mut b = Events::of(client.post(call(2, "b.ask")).await.unwrap());
    let (of_a, of_b) = (a.message().await["id"].clone(), b.message().await["id"].clone());
    assert_ne!(of_a, of_b);
    for (id, events, said) in [(of_b, &mut b, "to b"), (of_a, &mut a, "to a")] {
        let reply = json!({"jsonrpc": "2.0", "id": id, "result": {"said": said}});
        assert_eq!(client.post(reply).await.unwrap().status, StatusCode::ACCEPTED);
        let answer = events.message().await["result"]["answer"].as_str().unwrap().to_owned();
        assert!(answer.contains(said) && answer.contains(r#""id":0"#), "{answer}");
    }
}

#[tokio::test]
async fn an_answer_without_a_question_is_refused_with_400_and_no_id() {
    let pair = pair("legacy", "legacy");
    let client = Client::with_session(&pair.federation, OLD).await;
    for id in [json!(0), json!("c:0"), json!("a")] {
        let answer = client.post(json!({"jsonrpc": "2.0", "id": id, "result": {}})).await.unwrap();
        assert_eq!(answer.status, StatusCode::BAD_REQUEST);
        let refusal = messages(answer).await.remove(0);
        assert_eq!((&refusal["error"]["code"], &refusal["id"]), (&json!(-32600), &Value::Null), "{refusal}");
    }
}

#[tokio::test]
async fn a_stream_of_a_call_is_resumed_at_its_server() {
    let pair = pair("legacy", "legacy");
    let client = Client::with_session(&pair.federation, LATER).await;
    let mut events = Events::of(client.post(call(1, "b.progress")).await.unwrap());
    let first = events.next().await.unwrap();
    assert_eq!(first.message["params"]["progress"], 0);
    drop(events);
    let mut events = Events::of(client.get(first.id.as_deref()).await);
    assert_eq!(events.message().await["params"]["progress"], 1);
    assert_eq!(events.message().await["result"]["done"], true);
}

#[tokio::test]
async fn the_common_stream_has_the_messages_of_all_and_is_resumed_at_all() {
    let pair = pair("legacy", "legacy");
    let client = Client::with_session(&pair.federation, LATER).await;
    let mut events = Events::of(client.get(None).await);
    client.call("a.change", json!({})).await;
    assert_eq!(events.message().await["method"], "notifications/tools/list_changed");
    client.call("b.change", json!({})).await;
    let last = events.next().await.unwrap();
    drop(events);
    client.call("a.change", json!({})).await;
    client.call("b.change", json!({})).await;
    let mut events = Events::of(client.get(last.id.as_deref()).await);
    for _ in 0..2 {
        assert_eq!(events.message().await["method"], "notifications/tools/list_changed");
    }
    assert_eq!(client.get(Some("nonsense")).await.status, StatusCode::BAD_REQUEST);
}

#[tokio::test]
async fn progress_keeps_the_token_of_the_client() {
    let pair = pair("legacy", "legacy");
    let client = Client::with_session(&pair.federation, OLD).await;
    let got = messages(client.post(call(1, "b.progress")).await.unwrap()).await;
    assert_eq!(got[0]["params"]["progressToken"], "t");
}

#[tokio::test]
async fn a_cancellation_reaches_the_server_of_the_call() {
    let pair = pair("legacy", "legacy");
    let client = Client::with_session(&pair.federation, OLD).await;
    drop(client.post(call(5, "b.hold")).await.unwrap());
    assert_eq!(client.call("b.held", json!({})).await["result"]["held"], 1);
    assert_eq!(client.post(cancellation(5)).await.unwrap().status, StatusCode::ACCEPTED);
    assert_eq!(client.call("b.held", json!({})).await["result"]["held"], 0);
}

// --- the modern era -------------------------------------------------------------------------------

#[tokio::test]
async fn modern_servers_are_discovered_and_called_as_one() {
    let pair = pair("modern", "both");
    let client = Client::of(&pair.federation);
    let found = client.ask(modern(json!(1), "server/discover", json!({}), json!({}))).await;
    assert_eq!(found["result"]["supportedVersions"], json!(["2026-07-28"]));
    assert_eq!(found["result"]["instructions"], "# a\n\nI am modern.\n\n# b\n\nI am both.");
    assert_eq!(found["result"]["cacheScope"], "private");
    let list = client.ask(modern(json!(2), "resources/list", json!({}), json!({}))).await;
    assert_eq!(names_of(&list, "resources", "uri"), ["a+test://a", "b+test://a"]);
    assert_eq!((&list["result"]["ttlMs"], &list["result"]["cacheScope"]), (&json!(1000), &json!("public")));
    let echo = modern(json!(3), "tools/call", json!({"name": "b.echo", "arguments": {}}), json!({}));
    assert!(client.ask(echo).await["result"]["line"].as_str().unwrap().contains(r#""name":"echo""#));
    let unknown = modern(json!(4), "tools/call", json!({"name": "echo"}), json!({}));
    assert_eq!(client.post(unknown).await.unwrap().status, StatusCode::BAD_REQUEST);
    let unknown = modern(json!(5), "no/such", json!({}), json!({}));
    assert_eq!(client.post(unknown).await.unwrap().status, StatusCode::NOT_FOUND);
}

#[tokio::test]
async fn a_legacy_server_among_modern_ones_makes_the_endpoint_a_legacy_one() {
    let pair = pair("both", "legacy");
    let client = Client::of(&pair.federation);
    let answer = client.post(modern(json!(1), "server/discover", json!({}), json!({}))).await.unwrap();
    assert_eq!(messages(answer).await[0]["error"]["code"], -32601);
    Client::with_session(&pair.federation, OLD).await;
}

#[tokio::test]
async fn a_subscription_is_one_with_each_server_and_acknowledged_once() {
    let pair = pair("modern", "modern");
    let client = Client::of(&pair.federation);
    let uris = json!({"notifications": {"toolsListChanged": true, "resourceSubscriptions": ["b+test://a"]}});
    let listen = modern(json!("l"), "subscriptions/listen", uris, json!({}));
    let mut events = Events::of(client.post(listen).await.unwrap());
    let ack = events.message().await;
    assert_eq!(ack["method"], "notifications/subscriptions/acknowledged");
    assert_eq!(ack["params"]["notifications"]["resourceSubscriptions"], json!(["b+test://a"]));
    for server in ["a.change", "b.change"] {
        let change = modern(json!(1), "tools/call", json!({"name": server, "arguments": {}}), json!({}));
        client.ask(change).await;
        let changed = events.message().await;
        assert_eq!(changed["method"], "notifications/tools/list_changed");
        assert_eq!(changed["params"]["_meta"]["io.modelcontextprotocol/subscriptionId"], "l");
    }
}

#[tokio::test]
async fn a_server_gets_the_name_header_without_its_prefix() {
    let spy = Arc::new(Spy::default());
    let servers: Vec<(String, Arc<dyn Upstream>)> = vec![("a".into(), Arc::clone(&spy) as _)];
    let federation = Federation::new(servers, ".").unwrap();
    let mut client = Client::of(&federation);
    for (outside, inside) in [("a.plain", "plain"), ("a.gr\u{fc}n", "=?base64?Z3LDvG4=?=")] {
        client.header("mcp-name", "whatever it was");
        let call = modern(json!(1), "tools/call", json!({"name": outside}), json!({}));
        client.post(call).await.unwrap();
        assert_eq!(spy.0.lock().unwrap().last().unwrap().headers["mcp-name"], inside);
    }
}

#[derive(Default)]
struct Spy(std::sync::Mutex<Vec<Exchange>>);

#[async_trait::async_trait]
impl Upstream for Spy {
    async fn exchange(&self, request: Exchange) -> Result<UpstreamAnswer, UpstreamError> {
        self.0.lock().unwrap().push(request);
        Ok(answer::json(StatusCode::OK, r#"{"jsonrpc":"2.0","id":1,"result":{}}"#.into()))
    }
}

// --- servers that say what they were not asked ------------------------------------------------------

/// A server that gives this to whatever it is asked, but for `initialize`; on GET, these messages.
struct Forger {
    body: &'static str,
    kind: &'static str,
    common: &'static str,
}

#[async_trait::async_trait]
impl Upstream for Forger {
    async fn exchange(&self, request: Exchange) -> Result<UpstreamAnswer, UpstreamError> {
        let asked: Value = serde_json::from_slice(&request.body).unwrap_or_default();
        let opens = asked["method"] == "initialize";
        let (kind, text) = match request.method {
            http::Method::GET => ("text/event-stream", self.common.to_owned()),
            _ if opens => ("application/json", json!({"jsonrpc": "2.0", "id": asked["id"], "result": {
                "protocolVersion": OLD, "capabilities": {"tools": {}}, "serverInfo": {"name": "f", "version": "1"}}}).to_string()),
            _ => (self.kind, self.body.to_owned()),
        };
        let mut answer = answer::json(StatusCode::OK, text.into());
        answer.headers.insert("content-type", kind.parse().unwrap());
        Ok(answer)
    }
}

fn with_forger(forger: Forger) -> (Federation, Arc<Stdio>) {
    let b = Arc::new(Stdio::new(program("legacy"), "b"));
    (federation(Arc::new(forger), b.clone()), b)
}

/// The text of an answer, as far as it comes.
async fn text_until_it_breaks_off(answer: UpstreamAnswer) -> String {
    let parts: Vec<_> = answer.body.collect().await;
    let parts: Vec<_> = parts.into_iter().filter_map(Result::ok).collect();
    String::from_utf8(parts.concat()).unwrap()
}

#[tokio::test]
async fn a_client_with_its_share_of_the_sessions_is_refused_and_another_one_is_not() {
    let server = || Arc::new(Forger { body: "", kind: "application/json", common: "" });
    let federation = federation(server(), server());
    let greedy = || Client::named(&federation, ClientName::Address([192, 0, 2, 1].into()));
    let first = greedy().in_session(OLD).await;
    for _ in 1..limits::FEDERATED_CLIENT_SESSIONS {
        greedy().in_session(OLD).await;
    }
    let refused = greedy().post(initialize(OLD)).await.unwrap();
    assert_eq!(refused.status, StatusCode::SERVICE_UNAVAILABLE);
    let refusal = messages(refused).await.remove(0);
    let words = refusal["error"]["message"].as_str().unwrap();
    assert!(words.starts_with("this client has as many sessions as one client may have"), "{refusal}");
    let token = ClientName::Token("https://as.example".into(), "alice".into());
    Client::named(&federation, token).in_session(OLD).await;
    assert_eq!(first.delete().await.status, StatusCode::OK);
    greedy().in_session(OLD).await;
}

#[tokio::test]
async fn a_servers_stream_carries_no_answer_to_anothers_call() {
    for (kind, body) in [
        ("application/json", r#"{"jsonrpc":"2.0","id":7,"result":{"forged":1}}"#),
        ("text/plain; application/json", r#"{"jsonrpc":"2.0","id":7,"result":{"forged":1}}"#),
        ("application/json", r#"[{"jsonrpc":"2.0","id":7,"result":{"forged":1}}]"#),
        ("text/event-stream", "data: {\"jsonrpc\":\"2.0\",\"id\":7,\"result\":{\"forged\":1}}\n\n"),
        ("x; text/event-stream", "data: {\"jsonrpc\":\"2.0\",\"id\":7,\"result\":{\"forged\":1}}\n\n"),
        ("text/event-stream", "data: {\"jsonrpc\":\"2.0\",\"id\":\"8\",\"result\":{\"forged\":1}}\n\n"),
        (
            "text/event-stream",
            "data: {\"jsonrpc\":\"2.0\",\"id\":7,\"method\":\"x\",\"result\":{\"forged\":1}}\n\n",
        ),
    ] {
        let (federation, b) = with_forger(Forger { body, kind, common: "" });
        let client = Client::with_session(&federation, OLD).await;
        let open = client.post(call(7, "b.hold")).await.unwrap();
        for asked in [
            call(8, "a.tool"),
            request(9, "ping", json!({})),
            request(10, "tools/list", json!({})),
            json!({"jsonrpc": "2.0", "method": "notifications/progress", "params": {"progressToken": "a:1", "progress": 1}}),
            json!({"jsonrpc": "2.0", "id": "a:1", "result": {}}),
        ] {
            let said = match client.post(&asked).await {
                Ok(answer) => text_until_it_breaks_off(answer).await,
                Err(_) => String::new(),
            };
            assert!(!said.contains("forged"), "{kind} {body} {asked}: {said}");
        }
        drop(open);
        b.stop().await;
    }
}

#[tokio::test]
async fn the_common_stream_carries_no_forged_answer() {
    let common = concat!(
        "id: 1\ndata: {\"jsonrpc\":\"2.0\",\"id\":7,\"result\":{\"forged\":1}}\n\n",
        "id: 2\ndata: {\"jsonrpc\":\"2.0\",\"id\":\"7\",\"result\":{\"forged\":2}}\n\n",
        "id: 3\ndata: {\"jsonrpc\":\"2.0\",\"id\":8,\"result\":{\"late\":3}}\n\n",
        "id: 4\ndata: {\"jsonrpc\":\"2.0\",\"method\":\"notifications/tools/list_changed\"}\n\n",
    );
    let body = "data: {\"jsonrpc\":\"2.0\",\"method\":\"notifications/message\",\"params\":{}}\n\n";
    let (federation, _b) = with_forger(Forger { body, kind: "text/event-stream", common });
    let client = Client::with_session(&federation, OLD).await;
    let _open = client.post(call(7, "b.hold")).await.unwrap();
    drop(client.post(call(8, "a.tool")).await.unwrap());
    let said = text_until_it_breaks_off(client.get(None).await).await;
    assert!(!said.contains("forged"), "{said}");
    assert!(said.contains("\"late\":3"), "an answer that comes late comes: {said}");
    assert!(said.contains("list_changed"), "{said}");
    assert_eq!(said.matches("id: ").count(), 4, "every event has a place: {said}");
}
