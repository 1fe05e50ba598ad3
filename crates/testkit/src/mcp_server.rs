//! A scripted MCP server that records every request byte for byte, to be put behind a gateway under test.
//!
//! It implements both MCP revisions well enough for any client. A test can pass a script: a closure that sees each
//! request first, and answers it or leaves it to the default.

use std::collections::BTreeMap;
use std::io::{BufRead, BufReader, Read, Write};
use std::net::{SocketAddr, TcpListener, TcpStream};
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::thread;
use std::time::{Duration, Instant};

use serde_json::value::RawValue;
use serde_json::{Value, json};

/// Maximum time to wait for an event.
const PATIENCE: Duration = Duration::from_secs(30);

/// A JSON object whose values are kept as written.
type Members = BTreeMap<String, Box<RawValue>>;
/// Script for requests; returns `true` if it has answered.
type Script = dyn Fn(&McpRequest, &mut Responder) -> bool + Send + Sync;

/// A scripted server, which runs until the test process ends.
#[derive(Clone)]
pub struct McpServer {
    address: SocketAddr,
    shared: Arc<Shared>,
}

struct Shared {
    script: Box<Script>,
    seen: Mutex<Vec<McpRequest>>,
    arrived: Condvar,
    sessions: AtomicU64,
    ended: Mutex<Vec<String>>,
}

/// A recorded request.
#[derive(Clone, Debug)]
pub struct McpRequest {
    /// Request line and headers, as received.
    pub head: String,
    /// Body, without transfer coding.
    pub body: Vec<u8>,
}

/// A whole response, as a script composes it.
#[derive(Clone, Debug)]
pub struct McpResponse {
    /// HTTP status.
    pub status: u16,
    /// Headers besides `Content-Length`.
    pub headers: Vec<(&'static str, &'static str)>,
    /// Body.
    pub body: Vec<u8>,
}

/// Response channel of one request.
pub struct Responder {
    stream: TcpStream,
    streaming: bool,
    broken: bool,
}

impl McpServer {
    /// Starts a server with default answers. The result of a `tools/call` contains its arguments.
    pub fn ordinary() -> Self {
        Self::scripted(|_, _| false)
    }

    /// Starts a server with a script; requests that the script does not answer get the default answer.
    pub fn scripted(script: impl Fn(&McpRequest, &mut Responder) -> bool + Send + Sync + 'static) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").expect("a free port");
        let address = listener.local_addr().expect("it is bound");
        let shared = Arc::new(Shared {
            script: Box::new(script),
            seen: Mutex::default(),
            arrived: Condvar::new(),
            sessions: AtomicU64::new(0),
            ended: Mutex::default(),
        });
        let serving = Arc::clone(&shared);
        thread::spawn(move || {
            for stream in listener.incoming().flatten() {
                let shared = Arc::clone(&serving);
                thread::spawn(move || shared.serve(stream));
            }
        });
        Self { address, shared }
    }

    /// Starts a server that answers every request by the script alone.
    pub fn answering(script: impl Fn(&McpRequest, &mut Responder) + Send + Sync + 'static) -> Self {
        Self::scripted(move |seen, wire| {
            script(seen, wire);
            true
        })
    }

    /// Returns the URL of the MCP endpoint.
    pub fn url(&self) -> String {
        format!("http://{}/mcp", self.address)
    }

    /// Returns the listening address.
    pub fn address(&self) -> String {
        self.address.to_string()
    }

    /// Returns all requests so far.
    pub fn seen(&self) -> Vec<McpRequest> {
        self.shared.seen().clone()
    }

    /// Returns the requests of one JSON-RPC method.
    pub fn of(&self, rpc: &str) -> Vec<McpRequest> {
        self.shared.seen().iter().filter(|seen| seen.rpc() == rpc).cloned().collect()
    }

    /// Returns the number of tool calls so far.
    pub fn calls(&self) -> usize {
        self.of("tools/call").len()
    }

    /// Returns the only tool call. Panics if there is none, or more than one.
    #[track_caller]
    pub fn only_call(&self) -> McpRequest {
        let calls = self.of("tools/call");
        let [call] = &calls[..] else { panic!("{} calls: {calls:#?}", calls.len()) };
        call.clone()
    }

    /// Returns the bodies of the requests of one JSON-RPC method.
    pub fn messages_of(&self, rpc: &str) -> Vec<Value> {
        self.of(rpc).iter().map(McpRequest::json).collect()
    }

    /// Waits until at least `count` requests of a method have arrived.
    #[track_caller]
    pub fn wait_for(&self, rpc: &str, count: usize) -> Vec<McpRequest> {
        let begun = Instant::now();
        let mut seen = self.shared.seen();
        loop {
            let found: Vec<McpRequest> = seen.iter().filter(|seen| seen.rpc() == rpc).cloned().collect();
            if found.len() >= count {
                return found;
            }
            assert!(begun.elapsed() < PATIENCE, "{rpc} came {} times, not {count}: {seen:#?}", found.len());
            let waited = self.shared.arrived.wait_timeout(seen, Duration::from_millis(100));
            seen = waited.unwrap_or_else(PoisonError::into_inner).0;
        }
    }
}

impl Shared {
    fn seen(&self) -> MutexGuard<'_, Vec<McpRequest>> {
        self.seen.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn serve(&self, stream: TcpStream) {
        let Ok(copy) = stream.try_clone() else { return };
        let _ = stream.set_nodelay(true);
        let mut reader = BufReader::new(copy);
        while let Some(seen) = McpRequest::read(&mut reader) {
            self.seen().push(seen.clone());
            self.arrived.notify_all();
            let Ok(stream) = stream.try_clone() else { return };
            let mut wire = Responder { stream, streaming: false, broken: false };
            if !(self.script)(&seen, &mut wire) {
                self.ordinary(&seen, &mut wire);
            }
            if wire.streaming {
                wire.end();
            }
            if wire.broken {
                return;
            }
        }
    }

    fn ordinary(&self, seen: &McpRequest, wire: &mut Responder) {
        if seen.header("mcp-session-id").is_some_and(|session| self.has_ended(session)) {
            return wire.answer(404, &[], b"");
        }
        match (seen.method(), seen.rpc().as_str()) {
            ("DELETE", _) => {
                self.end(seen.header("mcp-session-id").unwrap_or_default());
                wire.answer(200, &[], b"");
            }
            ("POST", "initialize") => {
                let session = format!("session-{}", self.sessions.fetch_add(1, Ordering::Relaxed) + 1);
                wire.result_with(seen, &[("Mcp-Session-Id", &session)], &initialized(seen));
            }
            ("POST", "server/discover") => wire.result(seen, &discovered()),
            ("POST", "tools/list") => wire.result(seen, &listed(seen.is_modern())),
            ("POST", "tools/call") => wire.result(seen, &called(seen)),
            ("POST", "ping") => wire.result(seen, "{}"),
            ("POST", _) if seen.id().is_none() => wire.answer(202, &[], b""),
            ("POST", method) => {
                let error = json!({ "code": -32601, "message": format!("no {method} here") });
                let status = if seen.is_modern() { 404 } else { 200 };
                wire.answer(status, &[JSON], message(seen, "error", &error.to_string()).as_bytes());
            }
            _ => wire.answer(405, &[("Allow", "POST, DELETE")], b""),
        }
    }

    fn has_ended(&self, session: &str) -> bool {
        self.ended.lock().unwrap_or_else(PoisonError::into_inner).iter().any(|ended| ended == session)
    }

    fn end(&self, session: &str) {
        self.ended.lock().unwrap_or_else(PoisonError::into_inner).push(session.to_owned());
    }
}

const JSON: (&str, &str) = ("Content-Type", "application/json");

fn initialized(seen: &McpRequest) -> String {
    let version = seen.json()["params"]["protocolVersion"].clone();
    json!({
        "protocolVersion": version,
        "capabilities": { "tools": { "listChanged": true }, "experimental": { "other": { "kept": true } } },
        "serverInfo": { "name": "scripted", "version": "1" },
    })
    .to_string()
}

fn discovered() -> String {
    json!({
        "resultType": "complete",
        "supportedVersions": ["2026-07-28"],
        "capabilities": { "tools": {}, "extensions": { "example/other": {} } },
        "ttlMs": 60_000,
        "cacheScope": "public",
    })
    .to_string()
}

fn listed(modern: bool) -> String {
    let tool = |name| json!({ "name": name, "description": name, "inputSchema": { "type": "object" } });
    let mut result = json!({ "tools": [tool("echo"), tool("payments.send"), tool("files.delete")] });
    if modern {
        result["resultType"] = "complete".into();
        result["ttlMs"] = 60_000.into();
        result["cacheScope"] = "public".into();
    }
    result.to_string()
}

/// Returns a result that contains the arguments as written.
fn called(seen: &McpRequest) -> String {
    let arguments = seen.param("arguments").unwrap_or_else(|| "null".to_owned());
    let kind = if seen.is_modern() { "\"resultType\":\"complete\"," } else { "" };
    format!(
        "{{{kind}\"content\":[{{\"type\":\"text\",\"text\":\"done\"}}],\"structuredContent\":{{\"arguments\":{arguments}}}}}"
    )
}

fn message(seen: &McpRequest, member: &str, text: &str) -> String {
    let id = seen.id().unwrap_or_else(|| "null".to_owned());
    format!("{{\"jsonrpc\":\"2.0\",\"id\":{id},\"{member}\":{text}}}")
}

impl McpRequest {
    fn read(stream: &mut BufReader<TcpStream>) -> Option<Self> {
        let mut head = String::new();
        loop {
            let mut line = String::new();
            if stream.read_line(&mut line).ok()? == 0 {
                return None;
            }
            if line == "\r\n" {
                break;
            }
            head.push_str(&line);
        }
        let mut seen = Self { head, body: Vec::new() };
        if let Some(length) = seen.header("content-length").and_then(|length| length.parse().ok()) {
            seen.body = vec![0; length];
            stream.read_exact(&mut seen.body).ok()?;
        } else if seen.header("transfer-encoding").is_some() {
            while let Some(chunk) = chunk(stream).filter(|chunk| !chunk.is_empty()) {
                seen.body.extend(chunk);
            }
        }
        Some(seen)
    }

    /// Returns the HTTP method.
    pub fn method(&self) -> &str {
        self.head.split(' ').next().unwrap_or_default()
    }

    /// Returns the value of a header.
    pub fn header(&self, name: &str) -> Option<&str> {
        self.head.lines().skip(1).find_map(|line| {
            let (known, value) = line.split_once(':')?;
            known.eq_ignore_ascii_case(name).then_some(value.trim())
        })
    }

    /// Returns the body as text.
    pub fn text(&self) -> &str {
        std::str::from_utf8(&self.body).expect("JSON is UTF-8")
    }

    /// Returns the body as JSON; null if it is none.
    pub fn json(&self) -> Value {
        serde_json::from_slice(&self.body).unwrap_or(Value::Null)
    }

    /// Returns the JSON-RPC method; for other messages the HTTP method.
    pub fn rpc(&self) -> String {
        // Parsed as raw values, so that numbers beyond the range of a double are not an error.
        let method = self.member("method", &self.body).and_then(|raw| serde_json::from_str(&raw).ok());
        method.unwrap_or_else(|| self.method().to_owned())
    }

    /// Returns a JSON-RPC result for the request.
    pub fn result(&self, result: &Value) -> McpResponse {
        McpResponse::json(message(self, "result", &result.to_string()))
    }

    /// Returns a JSON-RPC error for the request.
    pub fn error(&self, error: &Value) -> McpResponse {
        McpResponse::json(message(self, "error", &error.to_string()))
    }

    /// Returns the JSON-RPC ID, as written.
    pub fn id(&self) -> Option<String> {
        self.member("id", &self.body)
    }

    /// Returns a parameter, as written.
    pub fn param(&self, name: &str) -> Option<String> {
        let params = self.member("params", &self.body)?;
        self.member(name, params.as_bytes())
    }

    /// Returns the keys of `_meta`, in alphabetical order.
    pub fn meta_keys(&self) -> Vec<String> {
        let members = |raw: String| serde_json::from_str::<Members>(&raw).ok();
        let meta = self.param("_meta").and_then(members);
        meta.map(|meta| meta.into_keys().collect()).unwrap_or_default()
    }

    /// Returns `true` if the request is of the MCP revision without sessions.
    pub fn is_modern(&self) -> bool {
        self.meta_keys().iter().any(|key| key == "io.modelcontextprotocol/protocolVersion")
    }

    fn member(&self, name: &str, text: &[u8]) -> Option<String> {
        let members: Members = serde_json::from_slice(text).ok()?;
        members.get(name).map(|raw| raw.get().to_owned())
    }
}

/// Reads the next chunk of a body in chunked transfer coding; empty after the last.
fn chunk(stream: &mut BufReader<TcpStream>) -> Option<Vec<u8>> {
    let mut size = String::new();
    stream.read_line(&mut size).ok()?;
    let mut chunk = vec![0; usize::from_str_radix(size.trim_end(), 16).ok()? + 2];
    stream.read_exact(&mut chunk).ok()?;
    chunk.truncate(chunk.len() - 2);
    Some(chunk)
}

impl McpResponse {
    /// Creates a response with status 200 and a JSON document.
    pub fn json(text: impl Into<Vec<u8>>) -> Self {
        Self { status: 200, headers: vec![JSON], body: text.into() }
    }

    /// Creates a stream of server-sent events, which ends.
    pub fn event_stream(text: impl Into<Vec<u8>>) -> Self {
        Self { status: 200, headers: vec![("Content-Type", "text/event-stream")], body: text.into() }
    }

    /// Creates a stream of messages with event IDs from `e-0` on, which ends.
    pub fn events(messages: &[Value]) -> Self {
        let events = messages.iter().enumerate();
        let text: String = events.map(|(n, message)| format!("id: e-{n}\ndata: {message}\n\n")).collect();
        Self::event_stream(text)
    }
}

impl Responder {
    /// Sends a response.
    pub fn respond(&mut self, response: &McpResponse) {
        self.answer(response.status, &response.headers, &response.body);
    }

    /// Sends a response with status 200 and a JSON document.
    pub fn json(&mut self, text: &str) {
        self.answer(200, &[JSON], text.as_bytes());
    }

    /// Sends a complete response.
    pub fn answer(&mut self, status: u16, headers: &[(&str, &str)], body: &[u8]) {
        let mut head = format!("HTTP/1.1 {status} Scripted\r\nContent-Length: {}\r\n", body.len());
        for (name, value) in headers {
            head.push_str(&format!("{name}: {value}\r\n"));
        }
        head.push_str("\r\n");
        self.write(head.as_bytes());
        self.write(body);
    }

    /// Sends a JSON-RPC result, given as JSON text.
    pub fn result(&mut self, seen: &McpRequest, result: &str) {
        self.result_with(seen, &[], result);
    }

    /// Sends a JSON-RPC result with additional headers.
    pub fn result_with(&mut self, seen: &McpRequest, headers: &[(&str, &str)], result: &str) {
        let headers = [&[JSON][..], headers].concat();
        self.answer(200, &headers, message(seen, "result", result).as_bytes());
    }

    /// Sends a JSON-RPC error, given as JSON text.
    pub fn error(&mut self, seen: &McpRequest, error: &str) {
        self.answer(200, &[JSON], message(seen, "error", error).as_bytes());
    }

    /// Starts a stream of server-sent events.
    pub fn stream(&mut self) {
        self.stream_with("Cache-Control: no-cache\r\n");
    }

    /// Starts a stream of server-sent events with these header lines.
    pub fn stream_with(&mut self, headers: &str) {
        let kind = "Content-Type: text/event-stream\r\nTransfer-Encoding: chunked";
        self.write(format!("HTTP/1.1 200 OK\r\n{kind}\r\n{headers}\r\n").as_bytes());
        self.streaming = true;
    }

    /// Sends bytes of the stream, as one chunk.
    pub fn bytes(&mut self, bytes: &str) {
        self.write(format!("{:x}\r\n{bytes}\r\n", bytes.len()).as_bytes());
    }

    /// Sends a message as a server-sent event.
    pub fn event(&mut self, message: &str) {
        self.bytes(&format!("event: message\ndata: {message}\n\n"));
    }

    /// Sends the result as an event, and ends the stream.
    pub fn last(&mut self, seen: &McpRequest, result: &str) {
        self.event(&message(seen, "result", result));
        self.end();
    }

    /// Ends the stream.
    pub fn end(&mut self) {
        self.write(b"0\r\n\r\n");
        self.streaming = false;
    }

    /// Breaks the connection.
    pub fn hang_up(&mut self) {
        let _ = self.stream.shutdown(std::net::Shutdown::Both);
        self.streaming = false;
        self.broken = true;
    }

    /// Waits until the peer has closed the connection; `false` on a timeout.
    pub fn is_hung_up_on(&mut self) -> bool {
        let _ = self.stream.set_read_timeout(Some(PATIENCE));
        matches!(self.stream.read(&mut [0; 64]), Ok(0))
            || self.stream.peek(&mut [0; 1]).is_err_and(|why| why.kind() != std::io::ErrorKind::WouldBlock)
    }

    fn write(&mut self, bytes: &[u8]) {
        if self.stream.write_all(bytes).is_err() {
            self.broken = true;
        }
    }
}
