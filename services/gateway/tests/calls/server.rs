//! A server that answers as servers do, unless the test's script has another answer. It remembers what reached it.

use std::net::SocketAddr;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex};

use axum::body::Body;
use axum::response::{IntoResponse, Response};
use bytes::Bytes;
use futures::future::BoxFuture;
use http::{HeaderMap, Method, Request, StatusCode};
use serde_json::{Value, json};
use tokio::net::TcpListener;

/// A request as it reached the server.
#[derive(Clone, Debug)]
pub struct Seen {
    pub method: Method,
    pub headers: HeaderMap,
    pub body: Bytes,
}

impl Seen {
    pub fn message(&self) -> Value {
        serde_json::from_slice(&self.body).unwrap_or_default()
    }

    /// The JSON-RPC method, or that of HTTP where there is no message.
    pub fn rpc(&self) -> String {
        let message = self.message();
        message["method"].as_str().map_or_else(|| self.method.to_string(), str::to_owned)
    }

    /// A result for this request.
    pub fn result(&self, result: &Value) -> Response {
        answer(&json!({ "jsonrpc": "2.0", "id": self.message()["id"], "result": result }).to_string())
    }

    /// An error for this request.
    pub fn error(&self, error: &Value) -> Response {
        answer(&json!({ "jsonrpc": "2.0", "id": self.message()["id"], "error": error }).to_string())
    }
}

/// A message as JSON.
pub fn answer(message: &str) -> Response {
    ([("content-type", "application/json")], message.to_owned()).into_response()
}

/// A stream of messages, which ends.
pub fn events(messages: &[Value]) -> Response {
    let text: String =
        messages.iter().enumerate().map(|(n, message)| format!("id: e-{n}\ndata: {message}\n\n")).collect();
    ([("content-type", "text/event-stream")], text).into_response()
}

pub type Script = Arc<dyn Fn(Seen) -> BoxFuture<'static, Option<Response>> + Send + Sync>;

/// A script that answers some requests at once, and leaves the others to the server.
pub fn script(script: impl Fn(&Seen) -> Option<Response> + Send + Sync + 'static) -> Script {
    Arc::new(move |seen| {
        let answer = script(&seen);
        Box::pin(async move { answer })
    })
}

/// A script about tool calls alone: what they return.
pub fn tool(result: Value) -> Script {
    script(move |seen| (seen.rpc() == "tools/call").then(|| seen.result(&result)))
}

/// What the server got, in order.
#[derive(Clone, Default)]
pub struct Heard(Arc<Mutex<Vec<Seen>>>);

impl Heard {
    pub fn all(&self) -> Vec<Seen> {
        self.0.lock().unwrap().clone()
    }

    /// The requests of one method.
    pub fn of(&self, rpc: &str) -> Vec<Value> {
        self.all().iter().filter(|seen| seen.rpc() == rpc).map(Seen::message).collect()
    }

    pub fn calls(&self) -> usize {
        self.of("tools/call").len()
    }
}

/// Starts a server.
pub async fn start(script: Script) -> (SocketAddr, Heard) {
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let address = listener.local_addr().unwrap();
    let (heard, sessions) = (Heard::default(), Arc::new(AtomicU64::new(0)));
    let kept = heard.clone();
    let app = axum::Router::new().fallback(move |request: Request<Body>| {
        let (script, kept, sessions) = (script.clone(), kept.clone(), sessions.clone());
        async move {
            let (head, body) = request.into_parts();
            let body = axum::body::to_bytes(body, usize::MAX).await.unwrap();
            let seen = Seen { method: head.method, headers: head.headers, body };
            kept.0.lock().unwrap().push(seen.clone());
            match script(seen.clone()).await {
                Some(response) => response,
                None => usual(&seen, &sessions),
            }
        }
    });
    tokio::spawn(async move { axum::serve(listener, app).await.unwrap() });
    (address, heard)
}

/// Tools that the server has.
pub const TOOLS: [&str; 4] = ["crm.read", "crm.delete", "mail.send", "pay"];

fn usual(seen: &Seen, sessions: &AtomicU64) -> Response {
    match seen.rpc().as_str() {
        "initialize" => {
            let mut response = seen.result(&json!({
                "protocolVersion": "2025-11-25", "capabilities": { "tools": {} },
                "serverInfo": { "name": "scripted", "version": "1" },
            }));
            let session = format!("mcp-{}", sessions.fetch_add(1, Ordering::SeqCst));
            response.headers_mut().insert("mcp-session-id", session.parse().unwrap());
            response
        }
        "server/discover" => seen.result(&json!({
            "resultType": "complete", "supportedVersions": ["2026-07-28"], "capabilities": { "tools": {} },
            "ttlMs": 60000, "cacheScope": "public",
        })),
        "tools/list" => {
            let tools = TOOLS.map(|name| json!({ "name": name, "inputSchema": { "type": "object" } }));
            seen.result(&json!({ "tools": tools, "ttlMs": 60000, "cacheScope": "public" }))
        }
        "ping" => seen.result(&json!({})),
        "tools/call" => seen.result(&json!({ "content": [{ "type": "text", "text": "done" }] })),
        "DELETE" => StatusCode::OK.into_response(),
        "GET" => StatusCode::METHOD_NOT_ALLOWED.into_response(),
        _ if seen.message()["id"].is_null() => StatusCode::ACCEPTED.into_response(),
        _ => seen.error(&json!({ "code": -32601, "message": "no such method" })),
    }
}
