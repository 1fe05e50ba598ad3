//! An MCP server that does what its callers ask for: this test program once more, started as a child.
//!
//! A test named `scripted_server` in each program of tests calls [`serve_if_asked`]; [`program`] starts that test alone,
//! and what the test harness prints around it is not a message.

#![allow(dead_code, clippy::unwrap_used)]

use std::io::{BufRead, Write};
use std::time::Duration;

use bytes::Bytes;
use futures::StreamExt;
use gateway::upstream::stdio::Program;
use gateway::upstream::{AnswerBody, ClientName, Exchange, Upstream, UpstreamAnswer, UpstreamError};
use http::{HeaderMap, HeaderName, HeaderValue, Method, StatusCode};
use serde_json::{Value, json};

const ROLE: &str = "SCRIPTED_SERVER";

/// A scripted server: `modern`, `legacy` (which knows no `server/discover`), `old` (which knows one revision), `both`, or
/// `dies` (if it is discovered).
pub fn program(role: &str) -> Program {
    let this = std::env::current_exe().unwrap();
    let mut program = Program::new([
        this.to_str().unwrap(),
        "scripted_server",
        "--exact",
        "--nocapture",
        "--test-threads=1",
    ]);
    program.env.insert(ROLE.into(), role.into());
    program.env.insert("SCRIPTED_NAME".into(), role.into());
    program
}

/// Is the server, if this process was started as one.
pub fn serve_if_asked() {
    if let Ok(role) = std::env::var(ROLE) {
        raw(""); // The test harness may have begun a line.
        let mut server = Server {
            role,
            open_requests: Vec::new(),
            subscriptions: Vec::new(),
            waiting_call: None,
            received: Vec::new(),
        };
        for line in std::io::stdin().lock().lines() {
            server.receive(&line.unwrap());
        }
        std::process::exit(0);
    }
}

struct Server {
    role: String,
    /// Requests that are answered when somebody calls the tool `release`.
    open_requests: Vec<String>,
    /// The ids of `subscriptions/listen` requests.
    subscriptions: Vec<Value>,
    /// The id of the call that waits for the client's answer to a request of the server.
    waiting_call: Option<Value>,
    /// Every line that came.
    received: Vec<String>,
}

impl Server {
    fn receive(&mut self, line: &str) {
        self.received.push(line.to_owned());
        let message: Value = serde_json::from_str(line).unwrap();
        let id = message["id"].clone();
        match message["method"].as_str() {
            Some("server/discover") => self.discover(id),
            Some("initialize") if self.role == "modern" => {
                say(json!({"jsonrpc": "2.0", "id": id, "error": {"code": -32022, "message": "Unsupported",
                    "data": {"supported": ["2026-07-28"]}}}));
            }
            Some("initialize") => answer(
                &id,
                json!({
                    "protocolVersion": self.version(&message),
                    "capabilities": {"tools": {"listChanged": true}, "prompts": {}, "resources": {"subscribe": true}},
                    "serverInfo": {"name": self.role, "version": "1"},
                    "instructions": format!("I am {}.", self.role),
                }),
            ),
            Some("subscriptions/listen") => {
                say(json!({"jsonrpc": "2.0", "method": "notifications/subscriptions/acknowledged",
                    "params": {"notifications": message["params"]["notifications"], "_meta": {"io.modelcontextprotocol/subscriptionId": id}}}));
                self.subscriptions.push(id);
            }
            Some("tools/call") => self.call(&message),
            Some("tools/list") => self.list(&message),
            Some("ping") => answer(&id, json!({})),
            Some("resources/list") => answer(
                &id,
                json!({"resources": [{"uri": "test://a", "name": "a"}], "ttlMs": 1000, "cacheScope": "public"}),
            ),
            Some("resources/read") if message["params"]["uri"] == "test://hold" => {
                self.open_requests.push(line.to_owned())
            }
            Some("resources/read") => {
                answer(&id, json!({"contents": [{"uri": message["params"]["uri"], "text": "read"}]}))
            }
            Some("prompts/list") => answer(&id, json!({"prompts": [{"name": "greet"}]})),
            Some("prompts/get") => {
                answer(&id, json!({"description": message["params"]["name"], "messages": []}))
            }
            Some("notifications/cancelled") => {
                let request = &message["params"]["requestId"];
                self.open_requests
                    .retain(|open| serde_json::from_str::<Value>(open).unwrap()["id"] != *request);
            }
            Some(other) if !id.is_null() => {
                say(json!({"jsonrpc": "2.0", "id": id, "error": {"code": -32601, "message": other}}));
            }
            Some(_) => {}
            None => {
                if let Some(call) = self.waiting_call.take() {
                    answer(&call, json!({"answer": line}));
                }
            }
        }
    }

    /// What was asked for, or an old revision if that is all it knows.
    fn version(&self, message: &Value) -> Value {
        if self.role == "old" { json!("2025-06-18") } else { message["params"]["protocolVersion"].clone() }
    }

    fn discover(&self, id: Value) {
        match &*self.role {
            "modern" | "both" => answer(
                &id,
                json!({"supportedVersions": ["2026-07-28"], "capabilities": {"tools": {}}, "resultType": "complete",
                    "ttlMs": 0, "cacheScope": "private", "instructions": format!("I am {}.", self.role)}),
            ),
            "dies" => std::process::exit(3),
            _ => say(
                json!({"jsonrpc": "2.0", "id": id, "error": {"code": -32601, "message": "Method not found"}}),
            ),
        }
    }

    fn list(&self, message: &Value) {
        let cursor = message["params"]["cursor"].as_str();
        let tool = |name: &str| json!({"name": name, "inputSchema": {"type": "object"}});
        answer(
            &message["id"],
            match cursor {
                None => json!({"tools": [tool("echo"), tool("ask")], "nextCursor": "more"}),
                Some("more") => json!({"tools": [{"name": "last", "inputSchema": {"type": "object",
                    "properties": {"region": {"type": "string", "x-mcp-header": "Region"}}}}]}),
                Some(_) => json!({"tools": []}),
            },
        );
    }

    /// Does what the tool says: among others, `hold` leaves its call open, `held` counts the open requests, `release`
    /// answers them, `got` returns every line that came, and `ask` answers with what the client answers to its question.
    fn call(&mut self, message: &Value) {
        let id = &message["id"];
        let arguments = &message["params"]["arguments"];
        match message["params"]["name"].as_str().unwrap() {
            "echo" | "last" => answer(id, json!({"content": [], "line": self.received.last()})),
            "got" => answer(id, json!({"got": self.received})),
            "pid" => answer(id, json!({"pid": std::process::id()})),
            "env" => answer(id, json!({"env": std::env::vars().map(|(name, _)| name).collect::<Vec<_>>()})),
            "hold" => self.open_requests.push(self.received.last().unwrap().clone()),
            "held" => answer(id, json!({"held": self.open_requests.len()})),
            "release" => {
                for held in std::mem::take(&mut self.open_requests).iter().rev() {
                    answer(&serde_json::from_str::<Value>(held).unwrap()["id"], json!({"line": held}));
                }
                answer(id, json!({}));
            }
            "progress" => {
                let token = &message["params"]["_meta"]["progressToken"];
                for step in 0..arguments["steps"].as_u64().unwrap_or(2) {
                    let params =
                        json!({"progressToken": token, "progress": step, "message": arguments["message"]});
                    say(json!({"jsonrpc": "2.0", "method": "notifications/progress", "params": params}));
                }
                answer(id, json!({"done": true}));
            }
            "ask" => {
                self.waiting_call = Some(id.clone());
                say(
                    json!({"jsonrpc": "2.0", "id": 0, "method": "elicitation/create", "params": {"message": "?"}}),
                );
            }
            "change" => {
                for listen in &self.subscriptions {
                    say(json!({"jsonrpc": "2.0", "method": "notifications/tools/list_changed",
                        "params": {"_meta": {"io.modelcontextprotocol/subscriptionId": listen}}}));
                }
                if self.subscriptions.is_empty() {
                    say(json!({"jsonrpc": "2.0", "method": "notifications/tools/list_changed"}));
                }
                answer(id, json!({}));
            }
            "log" => {
                say(
                    json!({"jsonrpc": "2.0", "method": "notifications/message", "params": {"data": "secret"}}),
                );
                answer(id, json!({}));
            }
            "request" => {
                say(json!({"jsonrpc": "2.0", "id": "r", "method": "roots/list"}));
                self.waiting_call = Some(id.clone());
            }
            "odd" => raw(&format!(
                "{{ \"result\":{{\"n\":1e2,\"u\":\"\\u0041\"}} , \"jsonrpc\":\"2.0\",\"id\":{id} }}"
            )),
            "task" => answer(id, json!({"task": {"taskId": "t", "status": "working"}})),
            "link" => {
                answer(id, json!({"content": [{"type": "resource_link", "uri": "test://a", "name": "a"}]}))
            }
            "big" => answer(
                id,
                json!({"big": "x".repeat(usize::try_from(arguments["bytes"].as_u64().unwrap()).unwrap())}),
            ),
            "endless" => loop {
                std::io::stdout().write_all(&[b'x'; 1 << 16]).unwrap();
            },
            "die" => std::process::exit(1),
            other => say(json!({"jsonrpc": "2.0", "id": id, "error": {"code": -32602, "message": other}})),
        }
    }
}

fn answer(id: &Value, result: Value) {
    say(json!({"jsonrpc": "2.0", "id": id, "result": result}));
}

fn say(message: Value) {
    raw(&message.to_string());
}

fn raw(line: &str) {
    // Not `println!`: the test harness may keep that to itself.
    let mut out = std::io::stdout().lock();
    out.write_all(line.as_bytes()).unwrap();
    out.write_all(b"\n").unwrap();
    out.flush().unwrap();
}

/// What a client says, over what looks like HTTP.
pub struct Client<'a> {
    pub upstream: &'a dyn Upstream,
    pub headers: HeaderMap,
    pub named: ClientName,
    pub time_limit: Option<Duration>,
}

impl<'a> Client<'a> {
    /// One without a session.
    pub fn of(upstream: &'a dyn Upstream) -> Self {
        Self::named(upstream, ClientName::Gateway)
    }

    /// One that counts as this client.
    pub fn named(upstream: &'a dyn Upstream, named: ClientName) -> Self {
        Self { upstream, headers: HeaderMap::new(), named, time_limit: None }
    }

    /// One with a session in this revision.
    pub async fn with_session(upstream: &'a dyn Upstream, version: &str) -> Self {
        Self::of(upstream).in_session(version).await
    }

    /// The same, with a session in this revision.
    pub async fn in_session(mut self, version: &str) -> Self {
        let client = &mut self;
        let answer = client.post(initialize(version)).await.unwrap();
        assert_eq!(answer.status, StatusCode::OK);
        client.header("mcp-session-id", answer.headers["mcp-session-id"].to_str().unwrap());
        self
    }

    pub fn header(&mut self, name: &'static str, value: &str) {
        self.headers.insert(HeaderName::from_static(name), HeaderValue::from_str(value).unwrap());
    }

    /// A message, with the headers that repeat it if it is a modern one.
    pub async fn post(&self, body: impl ToString) -> Result<UpstreamAnswer, UpstreamError> {
        let body = body.to_string();
        let mirrors = mirrors(&body);
        let mirrors: Vec<_> = mirrors.iter().map(|(name, value)| (*name, &**value)).collect();
        self.send(Method::POST, &mirrors, body.into()).await
    }

    pub async fn get(&self, last_event: Option<&str>) -> UpstreamAnswer {
        let headers: Vec<_> = last_event.map(|id| ("last-event-id", id)).into_iter().collect();
        self.send(Method::GET, &headers, Bytes::new()).await.unwrap()
    }

    pub async fn delete(&self) -> UpstreamAnswer {
        self.send(Method::DELETE, &[], Bytes::new()).await.unwrap()
    }

    /// A tool's answer, as JSON or the last of the events.
    pub async fn call(&self, name: &str, arguments: Value) -> Value {
        let params = json!({"name": name, "arguments": arguments});
        self.ask(json!({"jsonrpc": "2.0", "id": format!("call of {name}"), "method": "tools/call", "params": params})).await
    }

    /// The answer of any request.
    pub async fn ask(&self, message: Value) -> Value {
        messages(self.post(message).await.unwrap()).await.pop().unwrap()
    }

    async fn send(
        &self,
        method: Method,
        more: &[(&'static str, &str)],
        body: Bytes,
    ) -> Result<UpstreamAnswer, UpstreamError> {
        let mut headers = HeaderMap::new();
        for (name, value) in more {
            headers.insert(*name, HeaderValue::from_str(value).unwrap());
        }
        headers.extend(self.headers.clone());
        let (client, time_limit) = (self.named.clone(), self.time_limit);
        self.upstream.exchange(Exchange { method, headers, body, client, time_limit }).await
    }
}

fn mirrors(body: &str) -> Vec<(&'static str, String)> {
    let message: Value = serde_json::from_str(body).unwrap();
    let params = &message["params"];
    let version = params["_meta"]["io.modelcontextprotocol/protocolVersion"].as_str();
    let (Some(version), Some(method)) = (version, message["method"].as_str()) else { return Vec::new() };
    let mut mirrors = vec![("mcp-protocol-version", version.to_owned()), ("mcp-method", method.to_owned())];
    if let Some(name) = params["name"].as_str().or(params["uri"].as_str()).filter(|name| name.is_ascii()) {
        mirrors.push(("mcp-name", name.to_owned()));
    }
    mirrors
}

/// `initialize`.
pub fn initialize(version: &str) -> Value {
    json!({"jsonrpc": "2.0", "id": 0, "method": "initialize", "params": {"protocolVersion": version,
        "capabilities": {"elicitation": {}}, "clientInfo": {"name": "test", "version": "1"}}})
}

/// The notification that cancels the request with this id.
pub fn cancellation(request_id: impl Into<Value>) -> Value {
    let params = json!({"requestId": request_id.into()});
    json!({"jsonrpc": "2.0", "method": "notifications/cancelled", "params": params})
}

/// A modern request; `meta` goes to its `_meta`.
pub fn modern(id: Value, method: &str, mut params: Value, meta: Value) -> Value {
    let mut all = json!({"io.modelcontextprotocol/protocolVersion": "2026-07-28",
        "io.modelcontextprotocol/clientCapabilities": {}});
    all.as_object_mut().unwrap().extend(meta.as_object().unwrap().clone());
    params["_meta"] = all;
    json!({"jsonrpc": "2.0", "id": id, "method": method, "params": params})
}

/// The whole body.
pub async fn text(answer: UpstreamAnswer) -> String {
    let parts: Vec<_> = answer.body.map(|part| part.unwrap()).collect().await;
    String::from_utf8(parts.concat()).unwrap()
}

/// All messages of an answer.
pub async fn messages(answer: UpstreamAnswer) -> Vec<Value> {
    let is_json = answer.headers["content-type"] == "application/json";
    let text = text(answer).await;
    match is_json {
        true => vec![serde_json::from_str(&text).unwrap()],
        false => text.split("\n\n").filter_map(read_event).map(|event| event.message).collect(),
    }
}

/// An event that has a message.
pub struct Event {
    pub id: Option<String>,
    pub message: Value,
}

fn read_event(text: &str) -> Option<Event> {
    let id = text.lines().find_map(|line| line.strip_prefix("id: ")).map(str::to_owned);
    let data = text.lines().find_map(|line| line.strip_prefix("data: "))?;
    Some(Event { id, message: serde_json::from_str(data).ok()? })
}

/// Events as they come.
pub struct Events {
    body: AnswerBody,
    unread: String,
}

impl Events {
    pub fn of(answer: UpstreamAnswer) -> Self {
        assert_eq!(answer.status, StatusCode::OK);
        assert_eq!(answer.headers["content-type"], "text/event-stream");
        Self { body: answer.body, unread: String::new() }
    }

    /// The next event with a message; none when they are over.
    pub async fn next(&mut self) -> Option<Event> {
        loop {
            while let Some((event, rest)) = self.unread.split_once("\n\n") {
                let (event, rest) = (read_event(event), rest.to_owned());
                self.unread = rest;
                if event.is_some() {
                    return event;
                }
            }
            let part = self.body.next().await?.unwrap();
            self.unread.push_str(std::str::from_utf8(&part).unwrap());
        }
    }

    /// The next message.
    pub async fn message(&mut self) -> Value {
        self.next().await.unwrap().message
    }
}
