//! An MCP client for both protocol revisions, which writes its requests as text, so that every byte is known.

use std::time::Duration;

use serde_json::{Value, json};

use crate::events::Coming;
use crate::http::{Answer, Connection};

/// MCP revision with sessions.
pub const LEGACY: &str = "2025-11-25";
/// MCP revision without sessions.
pub const MODERN: &str = "2026-07-28";
/// `Accept` header of both revisions.
const ACCEPT: &str = "application/json, text/event-stream";

/// A client of one MCP endpoint.
pub struct McpClient {
    address: String,
    path: String,
    era: &'static str,
    connection: Connection,
    capabilities: Value,
    session: Option<String>,
    next: u64,
    /// Headers of every request, such as a token.
    pub headers: Vec<(String, String)>,
}

/// Response to one request.
#[derive(Clone, Debug)]
pub struct McpAnswer {
    /// HTTP response.
    pub answer: Answer,
    /// Messages before the response message: progress and logging notifications.
    pub before: Vec<Value>,
    /// Response message; null if there is none.
    pub message: Value,
}

impl McpClient {
    /// Creates a client of the revision without sessions ([`MODERN`]).
    pub fn modern(url: &str) -> Self {
        Self::new(url, MODERN)
    }

    /// Creates a client of the revision with sessions ([`LEGACY`]), without starting a session.
    pub fn legacy(url: &str) -> Self {
        Self::new(url, LEGACY)
    }

    /// Creates a client of the revision with sessions, and starts a session.
    #[track_caller]
    pub fn in_session(url: &str) -> Self {
        let mut client = Self::legacy(url);
        client.initialize(json!({})).must_succeed();
        client
    }

    fn new(url: &str, era: &'static str) -> Self {
        let (address, path) =
            url.trim_start_matches("http://").split_once('/').expect("an endpoint with a path");
        Self {
            address: address.to_owned(),
            path: format!("/{path}"),
            era,
            connection: Connection::to(address),
            capabilities: json!({}),
            session: None,
            next: 0,
            headers: Vec::new(),
        }
    }

    /// Declares client capabilities, such as `elicitation`.
    pub fn that_can(mut self, capabilities: Value) -> Self {
        self.capabilities = capabilities;
        self
    }

    /// Sends this token with every request.
    pub fn with_token(mut self, token: &str) -> Self {
        self.headers.push(("Authorization".to_owned(), format!("Bearer {token}")));
        self
    }

    /// Returns the ID of the client's MCP session (`Mcp-Session-Id`).
    pub fn session(&self) -> Option<&str> {
        self.session.as_deref()
    }

    /// Sets a session ID without starting a session.
    pub fn pretend(&mut self, session: &str) {
        self.session = Some(session.to_owned());
    }

    /// Sets the timeout of responses.
    pub fn patient_for(mut self, patience: Duration) -> Self {
        self.connection = Connection::to(&self.address).patient_for(patience);
        self
    }

    /// Sends `initialize` with this `_meta`, then `notifications/initialized`, and adopts the session ID.
    pub fn initialize(&mut self, meta: Value) -> McpAnswer {
        let mut params = json!({
            "protocolVersion": self.era,
            "capabilities": self.capabilities,
            "clientInfo": { "name": "black-box", "version": "1" },
        });
        if meta != json!({}) {
            params["_meta"] = meta;
        }
        let response = self.request_as_is("initialize", &params);
        if let Some(session) = response.answer.header("mcp-session-id") {
            self.session = Some(session.to_owned());
        }
        if response.message["result"].is_object() {
            self.notify("notifications/initialized", &json!({}));
        }
        response
    }

    /// Sends a request, with the `_meta` of the revision.
    pub fn request(&mut self, method: &str, mut params: Value) -> McpAnswer {
        if self.era == MODERN {
            self.dress(&mut params);
        }
        self.request_as_is(method, &params)
    }

    /// Calls a tool, with this `_meta`.
    pub fn call(&mut self, tool: &str, arguments: Value, meta: Value) -> McpAnswer {
        let mut params = json!({ "name": tool, "arguments": arguments });
        if meta != json!({}) {
            params["_meta"] = meta;
        }
        self.request("tools/call", params)
    }

    /// Sends a VAP message in the `_meta` of a `tools/list` request.
    pub fn carry(&mut self, message: Value) -> McpAnswer {
        self.request("tools/list", json!({ "_meta": { "vap": message } }))
    }

    /// Sends a notification, which has no response message.
    pub fn notify(&mut self, method: &str, params: &Value) -> Answer {
        let body = json!({ "jsonrpc": "2.0", "method": method, "params": params }).to_string();
        self.send(method, None, &body)
    }

    /// Ends the session (`DELETE`).
    pub fn delete(&mut self) -> Answer {
        let headers = self.headers_for("", None);
        self.connection.send("DELETE", &self.path, &borrowed(&headers), b"")
    }

    /// Sends a body unchanged, with the headers for a method and a name.
    pub fn send(&mut self, method: &str, name: Option<&str>, body: &str) -> Answer {
        let headers = self.headers_for(method, name);
        self.connection.send("POST", &self.path, &borrowed(&headers), body.as_bytes())
    }

    /// Sends a body like [`send`](Self::send), to a server that may not respond.
    pub fn try_send(
        &mut self,
        method: &str,
        name: Option<&str>,
        body: &str,
    ) -> Result<Answer, crate::http::Silence> {
        let headers = self.headers_for(method, name);
        self.connection.try_send("POST", &self.path, &borrowed(&headers), body.as_bytes())
    }

    /// Sends a body on a new connection, and returns the response after its head.
    pub fn begin(&self, method: &str, name: Option<&str>, body: &str) -> Coming {
        let headers = self.headers_for(method, name);
        Connection::to(&self.address).begin("POST", &self.path, &borrowed(&headers), body.as_bytes())
    }

    /// Opens the stream of server messages (HTTP GET), resumed after the event `last` if given.
    pub fn listen(&self, last: Option<&str>) -> Coming {
        let mut headers = self.headers_for("", None);
        headers.extend(last.map(|last| ("Last-Event-ID".to_owned(), last.to_owned())));
        Connection::to(&self.address).begin("GET", &self.path, &borrowed(&headers), b"")
    }

    /// Calls a tool, and returns the response after its head.
    pub fn begin_call(&mut self, tool: &str, arguments: Value, meta: Value) -> Coming {
        let mut params = json!({ "name": tool, "arguments": arguments, "_meta": meta });
        if self.era == MODERN {
            self.dress(&mut params);
        }
        let body = self.body("tools/call", &params);
        self.begin("tools/call", Some(tool), &body)
    }

    /// Adds the `_meta` members that every request of the revision without sessions has.
    pub fn dress(&self, params: &mut Value) {
        for (name, value) in [
            ("protocolVersion", json!(self.era)),
            ("clientCapabilities", self.capabilities.clone()),
            ("clientInfo", json!({ "name": "black-box", "version": "1" })),
        ] {
            params["_meta"][format!("io.modelcontextprotocol/{name}")] = value;
        }
    }

    /// Returns the text of a request with the next ID.
    pub fn body(&mut self, method: &str, params: &Value) -> String {
        self.next += 1;
        json!({ "jsonrpc": "2.0", "id": self.next, "method": method, "params": params }).to_string()
    }

    fn request_as_is(&mut self, method: &str, params: &Value) -> McpAnswer {
        let name = params["name"].as_str().or(params["uri"].as_str()).map(str::to_owned);
        let body = self.body(method, params);
        let answer = self.send(method, name.as_deref(), &body);
        McpAnswer::of(answer, &json!(self.next))
    }

    fn headers_for(&self, method: &str, name: Option<&str>) -> Vec<(String, String)> {
        let mut headers = self.headers.clone();
        let mut add = |name: &str, value: &str| headers.push((name.to_owned(), value.to_owned()));
        add("Content-Type", "application/json");
        add("Accept", ACCEPT);
        if method != "initialize" {
            add("MCP-Protocol-Version", self.era);
        }
        if self.era == MODERN {
            add("Mcp-Method", method);
            let named = matches!(method, "tools/call" | "resources/read" | "prompts/get");
            name.filter(|_| named).into_iter().for_each(|name| add("Mcp-Name", name));
        } else if let Some(session) = &self.session {
            add("Mcp-Session-Id", session);
        }
        headers
    }
}

fn borrowed(headers: &[(String, String)]) -> Vec<(&str, &str)> {
    headers.iter().map(|(name, value)| (name.as_str(), value.as_str())).collect()
}

impl McpAnswer {
    /// Parses a response, which may be one JSON document or a stream of events.
    pub fn of(answer: Answer, id: &Value) -> Self {
        let kind = answer.header("content-type").unwrap_or_default();
        let mut messages: Vec<Value> = if kind.starts_with("text/event-stream") {
            let text = String::from_utf8_lossy(&answer.body);
            text.lines()
                .filter_map(|line| serde_json::from_str(line.strip_prefix("data:")?.trim()).ok())
                .collect()
        } else {
            serde_json::from_slice(&answer.body).into_iter().collect()
        };
        let at = messages.iter().position(|message| &message["id"] == id && message["method"].is_null());
        let message = at.map_or(Value::Null, |at| messages.remove(at));
        let message = if message.is_null() && messages.len() == 1 { messages.remove(0) } else { message };
        Self { answer, before: messages, message }
    }

    /// Returns the JSON-RPC result. Panics if there is none.
    #[track_caller]
    pub fn result(&self) -> &Value {
        assert!(self.message["result"].is_object(), "no result: {self:#?}");
        &self.message["result"]
    }

    /// Returns the code of the JSON-RPC error. Panics if there is none.
    #[track_caller]
    pub fn error(&self) -> i64 {
        self.message["error"]["code"].as_i64().unwrap_or_else(|| panic!("no error: {self:#?}"))
    }

    /// Asserts HTTP 200 and a result without `isError`.
    #[track_caller]
    pub fn must_succeed(&self) -> &Self {
        assert_eq!(self.answer.status, 200, "{self:#?}");
        assert_ne!(self.result()["isError"], true, "{self:#?}");
        self
    }

    /// Returns the VAP Verdict in the result, in either of its two forms.
    #[track_caller]
    pub fn verdict(&self) -> Verdict {
        self.result();
        Verdict::of(&self.message)
    }

    /// Asserts that the call was served, and returns the Verdict.
    #[track_caller]
    pub fn must_be_served(&self) -> Verdict {
        self.must_succeed();
        let verdict = self.verdict();
        assert_eq!(verdict.word(), "served", "{self:#?}");
        verdict
    }

    /// Asserts that the call was denied with a tool result for this reason, and returns the Verdict.
    #[track_caller]
    pub fn must_be_denied(&self, reason: &str) -> Verdict {
        assert_eq!(self.answer.status, 200, "{self:#?}");
        assert_eq!(self.result()["isError"], true, "{self:#?}");
        let content = self.result()["content"].as_array().expect("a list");
        assert!(content.len() == 1 && content[0]["type"] == "text", "{self:#?}");
        self.must_have_denied(reason)
    }

    /// Asserts that the Verdict denies the VAP message for this reason. The request that carried the message may have
    /// succeeded.
    #[track_caller]
    pub fn must_have_denied(&self, reason: &str) -> Verdict {
        let verdict = self.verdict();
        assert_eq!((verdict.word(), verdict.reason()), ("denied", reason), "{self:#?}");
        verdict
    }
}

/// A VAP Verdict, as JSON; see [`McpAnswer::verdict`].
#[derive(Clone, Debug)]
pub struct Verdict(pub Value);

impl Verdict {
    /// Returns the Verdict in the result of a response, in either of its two forms.
    #[track_caller]
    pub fn of(response: &Value) -> Self {
        let slot = &response["result"]["_meta"]["vap"];
        let flat = if slot["type"] == "verdict" { slot } else { &slot["verdict"] };
        assert_eq!(flat["type"], "verdict", "no Verdict: {response:#?}");
        Self(flat.clone())
    }

    /// Returns the decision, such as `served` or `denied`.
    pub fn word(&self) -> &str {
        self.0["verdict"].as_str().unwrap_or_default()
    }

    /// Returns the code of the reason.
    pub fn reason(&self) -> &str {
        self.0["verification"]["reason"].as_str().unwrap_or_default()
    }

    /// Returns the URL of the decision's record, which may not be on the log yet.
    #[track_caller]
    pub fn audit_ref(&self) -> &str {
        self.0["audit_ref"].as_str().unwrap_or_else(|| panic!("no audit_ref: {self:#?}"))
    }

    /// Returns the entry ID of the decision's record.
    #[track_caller]
    pub fn entry(&self) -> &str {
        self.audit_ref().rsplit('/').next().unwrap_or_default()
    }

    /// Returns the digest of the commitment in force.
    #[track_caller]
    pub fn digest(&self) -> &str {
        self.0["accepted_commitment_digest"].as_str().unwrap_or_else(|| panic!("no digest: {self:#?}"))
    }
}
