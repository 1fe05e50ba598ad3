//! A client that speaks VAP, in either era, written by hand.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use scitt::SigningKey;
use serde_json::{Map, Value, json};
use testkit::agent::{self, with};

/// How long anything may take before a test fails.
pub const PATIENCE: Duration = Duration::from_secs(20);
pub const AGENT: &str = "did:example:agent";
pub const VAP: &str = "vap";

/// The key of the agent.
pub fn agent_key() -> SigningKey {
    testkit::ed25519([1; 32])
}

#[derive(Clone)]
pub struct Agent {
    pub url: String,
    pub http: reqwest::Client,
    pub modern: bool,
    pub token: Option<String>,
    /// Its MCP session (legacy).
    pub mcp: Option<String>,
    pub capabilities: Value,
    /// Its VAP session.
    pub session: String,
    pub ids: Arc<AtomicU64>,
}

/// What came back.
#[derive(Clone, Debug)]
pub struct Answer {
    pub status: u16,
    pub headers: http::HeaderMap,
    pub text: String,
}

impl Answer {
    /// Every message of it.
    pub fn messages(&self) -> Vec<Value> {
        match self.headers.get("content-type").and_then(|value| value.to_str().ok()) {
            Some(media) if media.starts_with("text/event-stream") => {
                let data = self.text.lines().filter_map(|line| line.strip_prefix("data: "));
                // The first event of a legacy stream only has an id.
                let data = data.filter(|data| !data.is_empty());
                data.map(|data| serde_json::from_str(data).unwrap()).collect()
            }
            _ => vec![serde_json::from_str(&self.text).unwrap_or_else(|_| panic!("{self:?}"))],
        }
    }

    /// The response in it.
    pub fn reply(&self) -> Value {
        self.messages().pop().unwrap_or_else(|| panic!("no message in {self:?}"))
    }

    pub fn meta(&self, key: &str) -> Value {
        self.reply()["result"]["_meta"][key].clone()
    }

    /// The Verdict, where the message was.
    pub fn vap(&self) -> Value {
        self.meta(VAP)
    }

    pub fn verdict(&self) -> String {
        let vap = self.vap();
        vap["verdict"].as_str().unwrap_or_else(|| panic!("no verdict in {self:?}")).to_owned()
    }

    pub fn reason(&self) -> String {
        self.vap()["verification"]["reason"].as_str().unwrap_or_default().to_owned()
    }

    /// A served call, with its evidence.
    pub fn served(self) -> Self {
        assert_eq!((self.status, self.verdict().as_str()), (200, "served"), "{self:?}");
        assert!(self.meta("dev.tabellion/evidence")["audit_ref"].is_string(), "{self:?}");
        self
    }

    /// A denial in band.
    pub fn denied(self, reason: &str) -> Self {
        assert_eq!((self.status, self.verdict().as_str()), (200, "denied"), "{self:?}");
        assert_eq!(self.reason(), reason, "{self:?}");
        self
    }
}

impl Agent {
    /// A client of the legacy era without an MCP session: nobody knows who it is, and it can be asked nothing.
    pub fn nobody(url: String) -> Self {
        Self {
            url,
            http: http_client(),
            modern: false,
            token: None,
            mcp: None,
            capabilities: json!({}),
            session: "session-0123456789abcdef".into(),
            ids: Arc::new(AtomicU64::new(1)),
        }
    }

    /// The same client in a new MCP session.
    pub async fn initialized(self, capabilities: &Value) -> Self {
        self.opened(initialize(capabilities)).await
    }

    /// The same client in a new MCP session, which these parameters of `initialize` open.
    pub async fn opened(mut self, params: Value) -> Self {
        let answer = self.ask("initialize", params).await;
        self.mcp = Some(answer.headers["mcp-session-id"].to_str().unwrap().to_owned());
        self
    }

    pub fn next_id(&self) -> u64 {
        self.ids.fetch_add(1, Ordering::SeqCst)
    }

    /// The same client in another VAP session.
    pub fn in_session(&self, session: &str) -> Self {
        Self { session: session.to_owned(), ..self.clone() }
    }

    pub fn commitment(&self) -> Value {
        self.committing(json!({ "max_calls": 50 }))
    }

    /// Signed, for the gateway knows the agent's key.
    pub fn committing(&self, budget: Value) -> Value {
        signed(self.committing_as(AGENT, &budget))
    }

    /// Unsigned, in the name of an agent that the gateway does not know.
    pub fn commitment_of_a_stranger(&self, budget: Value) -> Value {
        self.committing_as("did:example:stranger", &budget)
    }

    fn committing_as(&self, agent_id: &str, budget: &Value) -> Value {
        let scope =
            json!({ "tools_allow": ["crm.*", "pay", "resources/read"], "tools_deny": ["crm.delete"] });
        with(agent::commitment(agent_id, &self.session, budget), &json!({ "scope": scope }))
    }

    pub fn envelope(&self, tool: &str, arguments: &Value) -> Value {
        agent::intent(&self.session, tool, arguments)
    }

    /// An amendment of what this answer put into force, signed.
    pub fn amendment(&self, before: &Answer, additions: &Value) -> Value {
        let digest = before.vap()["accepted_commitment_digest"].clone();
        signed(agent::amendment(&self.session, digest.as_str().unwrap(), additions))
    }

    /// A message of this client, as it sends it.
    pub fn message(&self, method: &str, params: &Value) -> Value {
        let mut params = params.clone();
        if self.modern {
            let meta = params.as_object_mut().unwrap().entry("_meta").or_insert(json!({}));
            meta["io.modelcontextprotocol/protocolVersion"] = "2026-07-28".into();
            meta["io.modelcontextprotocol/clientCapabilities"] = self.capabilities.clone();
        }
        json!({ "jsonrpc": "2.0", "id": self.next_id(), "method": method, "params": params })
    }

    pub fn post(&self, message: &Value) -> reqwest::RequestBuilder {
        let mut request = post(&self.http, &self.url, message.to_string());
        if let Some(token) = &self.token {
            request = request.bearer_auth(token);
        }
        if let Some(session) = &self.mcp {
            request = request.header("mcp-session-id", session);
        }
        if !self.modern {
            return request;
        }
        if let Some(method) = message["method"].as_str() {
            request = request.header("mcp-protocol-version", "2026-07-28").header("mcp-method", method);
        }
        let params = &message["params"];
        match params["name"].as_str().or(params["uri"].as_str()) {
            Some(name) => request.header("mcp-name", name),
            None => request,
        }
    }

    pub async fn say(&self, message: &Value) -> Answer {
        read(self.post(message).send().await.unwrap()).await
    }

    pub async fn ask(&self, method: &str, params: Value) -> Answer {
        self.say(&self.message(method, &params)).await
    }

    /// A request that carries a VAP message.
    pub async fn carry(&self, method: &str, vap: &Value) -> Answer {
        self.ask(method, json!({ "_meta": { VAP: vap } })).await
    }

    /// The commitment, on `tools/list`.
    pub async fn commit(&self) -> Answer {
        self.carry("tools/list", &self.commitment()).await.served()
    }

    pub async fn commit_to(&self, budget: Value) -> Answer {
        self.carry("tools/list", &self.committing(budget)).await.served()
    }

    /// The commitment to these tools, on `tools/list`.
    pub async fn commit_to_tools(&self, tools: &[&str], budget: Value) -> Answer {
        let scope = json!({ "scope": { "tools_allow": tools } });
        let commitment = signed(with(self.committing_as(AGENT, &budget), &scope));
        self.carry("tools/list", &commitment).await.served()
    }

    /// A call's parameters, with its envelope.
    pub fn call_params(&self, tool: &str, arguments: &Value) -> Value {
        let envelope = self.envelope(tool, arguments);
        json!({ "name": tool, "arguments": arguments, "_meta": { VAP: envelope } })
    }

    /// A call with its envelope.
    pub async fn call(&self, tool: &str, arguments: Value) -> Answer {
        self.ask("tools/call", self.call_params(tool, &arguments)).await
    }

    /// A call without VAP.
    pub async fn plain(&self, tool: &str, arguments: Value) -> Answer {
        self.ask("tools/call", json!({ "name": tool, "arguments": arguments })).await
    }

    /// Sends and reads the stream until something, which is given back with what came before it.
    pub async fn stream(&self, message: &Value) -> Reading {
        Reading::of(self.post(message)).await
    }

    /// Answers a request of the other side.
    pub async fn respond(&self, id: &Value, result: Value) -> u16 {
        let message = json!({ "jsonrpc": "2.0", "id": id, "result": result });
        self.post(&message).send().await.unwrap().status().as_u16()
    }

    pub async fn notify(&self, method: &str, params: Value) -> u16 {
        let message = json!({ "jsonrpc": "2.0", "method": method, "params": params });
        self.post(&message).send().await.unwrap().status().as_u16()
    }

    /// Ends the client's MCP session, and returns the status of the answer.
    pub async fn end_mcp_session(&self) -> u16 {
        let request = self.http.delete(&self.url).header("mcp-session-id", self.mcp.as_deref().unwrap());
        request.send().await.unwrap().status().as_u16()
    }

    pub async fn get(&self, last_event: &str) -> Answer {
        let mut request = self.http.get(&self.url).header("accept", "text/event-stream");
        if let Some(session) = &self.mcp {
            request = request.header("mcp-session-id", session);
        }
        read(request.header("last-event-id", last_event).send().await.unwrap()).await
    }
}

/// A client that takes a new connection for each request.
pub fn http_client() -> reqwest::Client {
    reqwest::Client::builder().no_proxy().pool_max_idle_per_host(0).build().unwrap()
}

/// A POST of a message.
pub fn post(http: &reqwest::Client, url: &str, message: impl Into<String>) -> reqwest::RequestBuilder {
    let request = http.post(url).header("content-type", "application/json");
    request.header("accept", "application/json, text/event-stream").body(message.into())
}

pub async fn read(response: reqwest::Response) -> Answer {
    let (status, headers) = (response.status().as_u16(), response.headers().clone());
    let text = tokio::time::timeout(PATIENCE, response.text()).await.unwrap().unwrap();
    Answer { status, headers, text }
}

/// A response whose body is read bit by bit.
pub struct Reading {
    response: reqwest::Response,
    pub text: String,
}

impl Reading {
    pub async fn of(request: reqwest::RequestBuilder) -> Self {
        Self { response: request.send().await.unwrap(), text: String::new() }
    }

    pub fn header(&self, name: &str) -> Option<&str> {
        self.response.headers().get(name).map(|value| value.to_str().unwrap())
    }

    pub fn status(&self) -> u16 {
        self.response.status().as_u16()
    }

    /// Reads until this is in it.
    pub async fn until(&mut self, part: &str) {
        while !self.text.contains(part) {
            let chunk = tokio::time::timeout(PATIENCE, self.response.chunk()).await;
            let chunk = chunk.unwrap_or_else(|_| panic!("waited in vain for {part:?} after {:?}", self.text));
            let chunk = chunk.unwrap().unwrap_or_else(|| panic!("no {part:?} in {:?}", self.text));
            self.text.push_str(std::str::from_utf8(&chunk).unwrap());
        }
    }

    /// Reads to its end.
    pub async fn ended(mut self) -> String {
        let mut bytes = self.text.into_bytes();
        loop {
            let chunk = tokio::time::timeout(PATIENCE, self.response.chunk()).await.unwrap().unwrap();
            let Some(chunk) = chunk else { break };
            bytes.extend_from_slice(&chunk);
        }
        String::from_utf8(bytes).unwrap()
    }

    /// The next message.
    pub async fn next(&mut self) -> Value {
        loop {
            if let Some((event, rest)) = self.text.split_once("\n\n") {
                let data = event.lines().find_map(|line| line.strip_prefix("data: ")).map(str::to_owned);
                self.text = rest.to_owned();
                match data {
                    Some(data) if !data.is_empty() => return serde_json::from_str(&data).unwrap(),
                    _ => continue,
                }
            }
            let chunk = tokio::time::timeout(PATIENCE, self.response.chunk()).await.unwrap().unwrap();
            let chunk = chunk.unwrap_or_else(|| panic!("the stream ended after {:?}", self.text));
            self.text.push_str(std::str::from_utf8(&chunk).unwrap());
        }
    }

    /// The next message as an answer.
    pub async fn answer(&mut self) -> Answer {
        let text = self.next().await.to_string();
        Answer { status: self.response.status().as_u16(), headers: http::HeaderMap::new(), text }
    }
}

/// The parameters of an `initialize`.
pub fn initialize(capabilities: &Value) -> Value {
    json!({
        "protocolVersion": "2025-11-25", "capabilities": capabilities,
        "clientInfo": { "name": "by hand", "version": "1" },
    })
}

/// The message, signed by the agent.
pub fn signed(message: Value) -> Value {
    signed_with(message, &json!({}))
}

/// The same, with more in the signature's header.
pub fn signed_with(message: Value, more: &Value) -> Value {
    agent::signed(&message, &agent_key(), more)
}

/// The members of an object, without some.
pub fn without(object: &Value, names: &[&str]) -> Map<String, Value> {
    let mut members = object.as_object().unwrap().clone();
    members.retain(|name, _| !names.contains(&name.as_str()));
    members
}
