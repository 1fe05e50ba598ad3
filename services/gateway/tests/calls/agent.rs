//! A client that speaks VAP, in either era, written by hand.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use jose::{jcs, jws};
use scitt::{Signer, SigningKey};
use serde_json::{Map, Value, json};

/// How long anything may take before a test fails.
pub const PATIENCE: Duration = Duration::from_secs(20);
pub const AGENT: &str = "did:example:agent";
pub const VAP: &str = "vap";

/// The key of the agent.
pub fn agent_key() -> SigningKey {
    SigningKey::from_ed25519_seed(&[1; 32]).unwrap()
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
        signed(self.committing_as(AGENT, budget))
    }

    /// Unsigned, in the name of an agent that the gateway does not know.
    pub fn commitment_of_a_stranger(&self) -> Value {
        self.committing_as("did:example:stranger", json!({ "max_calls": 50 }))
    }

    fn committing_as(&self, agent_id: &str, budget: Value) -> Value {
        json!({
            "vap": "0.1", "type": "scope_commitment", "session_id": self.session,
            "goal": "Answer ticket SUP-9931",
            "scope": { "tools_allow": ["crm.*", "pay", "resources/read"], "tools_deny": ["crm.delete"] },
            "budget": budget,
            "principal": { "agent_id": agent_id },
        })
    }

    pub fn envelope(&self, tool: &str, arguments: &Value) -> Value {
        json!({
            "vap": "0.1", "type": "intent_call", "session_id": self.session,
            "intent": { "rationale": "the ticket says so", "expected_effect": "one ticket is read" },
            "call": { "tool": tool, "arguments": arguments },
        })
    }

    /// An amendment of what this answer put into force, signed.
    pub fn amendment(&self, before: &Answer, additions: &Value) -> Value {
        let digest = before.vap()["accepted_commitment_digest"].clone();
        let mut message = json!({
            "vap": "0.1", "type": "scope_amendment", "session_id": self.session,
            "prev_commitment_digest": digest, "reason": "there is more to do",
        });
        message.as_object_mut().unwrap().extend(additions.as_object().unwrap().clone());
        signed(message)
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
        let mut request = self
            .http
            .post(&self.url)
            .header("content-type", "application/json")
            .header("accept", "application/json, text/event-stream")
            .body(message.to_string());
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
    pub async fn stream(&self, message: &Value) -> Stream {
        let response = self.post(message).send().await.unwrap();
        Stream { response, text: String::new() }
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

    pub async fn get(&self, last_event: &str) -> Answer {
        let mut request = self.http.get(&self.url).header("accept", "text/event-stream");
        if let Some(session) = &self.mcp {
            request = request.header("mcp-session-id", session);
        }
        read(request.header("last-event-id", last_event).send().await.unwrap()).await
    }
}

pub async fn read(response: reqwest::Response) -> Answer {
    let (status, headers) = (response.status().as_u16(), response.headers().clone());
    let text = tokio::time::timeout(PATIENCE, response.text()).await.unwrap().unwrap();
    Answer { status, headers, text }
}

/// A stream that is read bit by bit.
pub struct Stream {
    response: reqwest::Response,
    text: String,
}

impl Stream {
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

/// The message, signed by the agent.
pub fn signed(message: Value) -> Value {
    signed_with(message, &json!({}))
}

/// The same, with more in the signature's header.
pub fn signed_with(mut message: Value, more: &Value) -> Value {
    let key = agent_key();
    let mut header = json!({ "alg": "EdDSA", "kid": key.public_key().jwk_thumbprint() });
    header.as_object_mut().unwrap().extend(more.as_object().unwrap().clone());
    let input = jws::signing_input(&header, &jcs::canonical(&message));
    message["signature"] = jws::detached(&input, &key.sign(&input).unwrap()).into();
    message
}

/// The members of an object, without some.
pub fn without(object: &Value, names: &[&str]) -> Map<String, Value> {
    let mut members = object.as_object().unwrap().clone();
    members.retain(|name, _| !names.contains(&name.as_str()));
    members
}
