//! An MCP client of either era, which writes its requests as text, so that every byte of them is known.

use std::time::Duration;

use serde_json::{Value, json};

use crate::events::Coming;
use crate::http::{Answer, Connection};

/// The revisions that are spoken here.
pub const LEGACY: &str = "2025-11-25";
/// The revision without sessions.
pub const MODERN: &str = "2026-07-28";
/// What a client of either era accepts.
const ACCEPT: &str = "application/json, text/event-stream";

/// A client of one endpoint.
pub struct McpClient {
    address: String,
    path: String,
    era: &'static str,
    connection: Connection,
    capabilities: Value,
    session: Option<String>,
    next: u64,
    /// Headers that go with every request, such as a token.
    pub headers: Vec<(String, String)>,
}

/// An answer to one request.
#[derive(Clone, Debug)]
pub struct Told {
    /// As it came.
    pub answer: Answer,
    /// The messages that came before it: progress, logging.
    pub before: Vec<Value>,
    /// The message that answers; null if there was none.
    pub message: Value,
}

impl McpClient {
    /// A client of the era without sessions.
    pub fn modern(url: &str) -> Self {
        Self::new(url, MODERN)
    }

    /// A client of the era with sessions, which has not begun one.
    pub fn legacy(url: &str) -> Self {
        Self::new(url, LEGACY)
    }

    /// The same, with a session of its own.
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

    /// Declares capabilities, such as `elicitation`.
    pub fn that_can(mut self, capabilities: Value) -> Self {
        self.capabilities = capabilities;
        self
    }

    /// Shows this token with every request.
    pub fn with_token(mut self, token: &str) -> Self {
        self.headers.push(("Authorization".to_owned(), format!("Bearer {token}")));
        self
    }

    /// The MCP session that it is in.
    pub fn session(&self) -> Option<&str> {
        self.session.as_deref()
    }

    /// Pretends to be in a session.
    pub fn pretend(&mut self, session: &str) {
        self.session = Some(session.to_owned());
    }

    /// Gives up the connection, and uses another.
    pub fn reconnect(&mut self) {
        self.connection = Connection::to(&self.address);
    }

    /// Gives answers up after a time.
    pub fn patient_for(mut self, patience: Duration) -> Self {
        self.connection = Connection::to(&self.address).patient_for(patience);
        self
    }

    /// Begins a session, with this in `_meta`, and says that it has begun.
    pub fn initialize(&mut self, meta: Value) -> Told {
        let mut params = json!({
            "protocolVersion": self.era,
            "capabilities": self.capabilities,
            "clientInfo": { "name": "black-box", "version": "1" },
        });
        if meta != json!({}) {
            params["_meta"] = meta;
        }
        let told = self.request_as_is("initialize", &params);
        if let Some(session) = told.answer.header("mcp-session-id") {
            self.session = Some(session.to_owned());
        }
        if told.message["result"].is_object() {
            self.notify("notifications/initialized", &json!({}));
        }
        told
    }

    /// Asks for something.
    pub fn request(&mut self, method: &str, mut params: Value) -> Told {
        if self.era == MODERN {
            self.dress(&mut params);
        }
        self.request_as_is(method, &params)
    }

    /// Calls a tool, with this in `_meta`.
    pub fn call(&mut self, tool: &str, arguments: Value, meta: Value) -> Told {
        let mut params = json!({ "name": tool, "arguments": arguments });
        if meta != json!({}) {
            params["_meta"] = meta;
        }
        self.request("tools/call", params)
    }

    /// Sends a message of VAP on the way of a `tools/list`.
    pub fn carry(&mut self, message: Value) -> Told {
        self.request("tools/list", json!({ "_meta": { "vap": message } }))
    }

    /// Says something that has no answer.
    pub fn notify(&mut self, method: &str, params: &Value) -> Answer {
        let body = json!({ "jsonrpc": "2.0", "method": method, "params": params }).to_string();
        self.send(method, None, &body)
    }

    /// Ends its session.
    pub fn delete(&mut self) -> Answer {
        let headers = self.headers_for("", None);
        self.connection.send("DELETE", &self.path, &borrowed(&headers), b"")
    }

    /// Sends a body as it is, with the headers that belong to a method and a name.
    pub fn send(&mut self, method: &str, name: Option<&str>, body: &str) -> Answer {
        let headers = self.headers_for(method, name);
        self.connection.send("POST", &self.path, &borrowed(&headers), body.as_bytes())
    }

    /// The same, where the answer may not come.
    pub fn try_send(
        &mut self,
        method: &str,
        name: Option<&str>,
        body: &str,
    ) -> Result<Answer, crate::http::Silence> {
        let headers = self.headers_for(method, name);
        self.connection.try_send("POST", &self.path, &borrowed(&headers), body.as_bytes())
    }

    /// Sends a body, and gives the answer while it comes.
    pub fn begin(&self, method: &str, name: Option<&str>, body: &str) -> Coming {
        let headers = self.headers_for(method, name);
        Connection::to(&self.address).begin("POST", &self.path, &borrowed(&headers), body.as_bytes())
    }

    /// Listens to what the server has to say, from an event on if one is given.
    pub fn listen(&self, last: Option<&str>) -> Coming {
        let mut headers = self.headers_for("", None);
        headers.extend(last.map(|last| ("Last-Event-ID".to_owned(), last.to_owned())));
        Connection::to(&self.address).begin("GET", &self.path, &borrowed(&headers), b"")
    }

    /// Begins a call of a tool, and gives the answer while it comes.
    pub fn begin_call(&mut self, tool: &str, arguments: Value, meta: Value) -> Coming {
        let mut params = json!({ "name": tool, "arguments": arguments, "_meta": meta });
        if self.era == MODERN {
            self.dress(&mut params);
        }
        let body = self.body("tools/call", &params);
        self.begin("tools/call", Some(tool), &body)
    }

    /// The `_meta` that every request of the newer era carries.
    pub fn dress(&self, params: &mut Value) {
        for (name, value) in [
            ("protocolVersion", json!(self.era)),
            ("clientCapabilities", self.capabilities.clone()),
            ("clientInfo", json!({ "name": "black-box", "version": "1" })),
        ] {
            params["_meta"][format!("io.modelcontextprotocol/{name}")] = value;
        }
    }

    /// The text of a request with the next id.
    pub fn body(&mut self, method: &str, params: &Value) -> String {
        self.next += 1;
        json!({ "jsonrpc": "2.0", "id": self.next, "method": method, "params": params }).to_string()
    }

    fn request_as_is(&mut self, method: &str, params: &Value) -> Told {
        let name = params["name"].as_str().or(params["uri"].as_str()).map(str::to_owned);
        let body = self.body(method, params);
        let answer = self.send(method, name.as_deref(), &body);
        Told::of(answer, &json!(self.next))
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

impl Told {
    /// Reads an answer, in whichever of the two forms it came.
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

    /// The result.
    #[track_caller]
    pub fn result(&self) -> &Value {
        assert!(self.message["result"].is_object(), "no result: {self:#?}");
        &self.message["result"]
    }

    /// The code of a JSON-RPC error.
    #[track_caller]
    pub fn error(&self) -> i64 {
        self.message["error"]["code"].as_i64().unwrap_or_else(|| panic!("no error: {self:#?}"))
    }

    /// A result that came with HTTP 200, and is not a tool's error.
    #[track_caller]
    pub fn must_succeed(&self) -> &Self {
        assert_eq!(self.answer.status, 200, "{self:#?}");
        assert_ne!(self.result()["isError"], true, "{self:#?}");
        self
    }

    /// The Verdict, in whichever shape it came.
    #[track_caller]
    pub fn verdict(&self) -> Verdict {
        let slot = &self.result()["_meta"]["vap"];
        let flat = if slot["type"] == "verdict" { slot } else { &slot["verdict"] };
        assert_eq!(flat["type"], "verdict", "no Verdict: {self:#?}");
        Verdict(flat.clone())
    }

    /// A call that was let through, with a Verdict that says so.
    #[track_caller]
    pub fn must_be_served(&self) -> Verdict {
        self.must_succeed();
        let verdict = self.verdict();
        assert_eq!(verdict.word(), "served", "{self:#?}");
        verdict
    }

    /// A call that was denied in band, for this reason: X-2.
    #[track_caller]
    pub fn must_be_denied(&self, reason: &str) -> Verdict {
        assert_eq!(self.answer.status, 200, "{self:#?}");
        assert_eq!(self.result()["isError"], true, "{self:#?}");
        let content = self.result()["content"].as_array().expect("a list");
        assert!(content.len() == 1 && content[0]["type"] == "text", "{self:#?}");
        self.must_have_denied(reason)
    }

    /// A carrier that went its way, with a Verdict that denies what it carried.
    #[track_caller]
    pub fn must_have_denied(&self, reason: &str) -> Verdict {
        let verdict = self.verdict();
        assert_eq!((verdict.word(), verdict.reason()), ("denied", reason), "{self:#?}");
        verdict
    }
}

/// A Verdict of VAP.
#[derive(Clone, Debug)]
pub struct Verdict(pub Value);

impl Verdict {
    /// What it says.
    pub fn word(&self) -> &str {
        self.0["verdict"].as_str().unwrap_or_default()
    }

    /// The code of why.
    pub fn reason(&self) -> &str {
        self.0["verification"]["reason"].as_str().unwrap_or_default()
    }

    /// Where its record is, or will be.
    #[track_caller]
    pub fn audit_ref(&self) -> &str {
        self.0["audit_ref"].as_str().unwrap_or_else(|| panic!("no audit_ref: {self:#?}"))
    }

    /// The entry of its record.
    #[track_caller]
    pub fn entry(&self) -> &str {
        self.audit_ref().rsplit('/').next().unwrap_or_default()
    }

    /// The digest of the commitment that is in force.
    #[track_caller]
    pub fn digest(&self) -> &str {
        self.0["accepted_commitment_digest"].as_str().unwrap_or_else(|| panic!("no digest: {self:#?}"))
    }
}
