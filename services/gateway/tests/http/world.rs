//! A gateway's front, writer and calls in one process, before a scripted server.

use std::net::SocketAddr;
use std::sync::Arc;
use std::time::Duration;

use admission::principal::TokenSubject;
use admission::rules::{PolicyRule, Rules, Then};
use admission::signature::{AgentKey, Holder, Keyring};
use async_trait::async_trait;
use client::{Client, Options};
use evidence::{EvidenceStore, Memory};
use gateway::calls::{Calls, Judging, Offer, Patience, Shared};
use gateway::clarify::state::Sealer;
use gateway::decision_writer::{
    Clock, DecisionWriter, LogConnection, RunningWriter, WriterKeys, WriterSettings,
};
use gateway::front::{Authorized, Authorizer, Front, Serving, Times};
use gateway::relay::Response;
use gateway::replay::{self, ReplayedSession};
use gateway::telemetry::Telemetry;
use gateway::upstream::Upstream;
use http::request::Parts;
use scitt::{SignedStatement, Signer};
use serde_json::{Value, json};
use testkit::{GATEWAY, McpRequest, McpResponse, McpServer, Responder};
use vap::glob::Pattern;
use zeroize::Zeroizing;

use crate::client::{AGENT, Agent, PATIENCE, agent_key};
use crate::front::{Settings, listening};

const POLICY: &str = "sha256:ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad";
const LOG: &str = "http://127.0.0.1:9";
/// What the gateway says of itself.
pub const POSTURE: &str = r#"{"version":"1","tiers":["static","deterministic"]}"#;

/// Answers some requests, and leaves the others to the server.
pub type Script = Box<dyn Fn(&McpRequest, &mut Responder) -> bool + Send + Sync>;

/// A script of whole responses.
pub fn script(script: impl Fn(&McpRequest) -> Option<McpResponse> + Send + Sync + 'static) -> Script {
    Box::new(move |seen, wire| script(seen).inspect(|response| wire.respond(response)).is_some())
}

/// A script about tool calls alone: what they return.
pub fn tool(result: Value) -> Script {
    script(move |seen| (seen.rpc() == "tools/call").then(|| seen.result(&result)))
}

/// Does not answer these methods: with a stream that is silent, or without even the head of an answer.
pub fn silent(methods: &'static [&'static str], streams: bool) -> Script {
    Box::new(move |seen, wire| {
        let is_silent = methods.contains(&seen.rpc().as_str());
        if is_silent {
            if streams {
                wire.stream();
                wire.bytes(": begun\n\n");
            }
            wire.is_hung_up_on();
            wire.hang_up();
        }
        is_silent
    })
}

/// Tools that the server has.
pub const TOOLS: [&str; 4] = ["crm.read", "crm.delete", "mail.send", "pay"];

fn lists_tools(seen: &McpRequest, wire: &mut Responder) -> bool {
    let tools = TOOLS.map(|name| json!({ "name": name, "inputSchema": { "type": "object" } }));
    let listed = json!({ "tools": tools, "ttlMs": 60000, "cacheScope": "public" });
    let asked = seen.rpc() == "tools/list";
    if asked {
        wire.respond(&seen.result(&listed));
    }
    asked
}

/// What a test may change about a world before it starts.
pub struct Wishes {
    pub rules: Rules,
    pub script: Script,
    pub store: Arc<dyn EvidenceStore>,
    pub judging: Option<Judging>,
    pub filter_tools: bool,
    pub patience: Patience,
    /// Where the server is, if not where it listens.
    pub url: Option<String>,
    pub answer_time: Duration,
    pub call_time: Duration,
    pub request_time: Duration,
    /// The upstream, if it is not the server.
    pub upstream: Option<Arc<dyn Upstream>>,
    pub session_idle: Option<Duration>,
}

pub struct World {
    pub server: McpServer,
    pub store: Arc<dyn EvidenceStore>,
    pub writer: DecisionWriter,
    pub front: Arc<Front>,
    rules: Rules,
    /// Whether nobody else writes into the store, and nothing in it fails.
    is_alone: bool,
    at: SocketAddr,
    _serving: Serving,
    _running: RunningWriter,
}

/// A record of a stream, as the log gets it.
#[derive(Debug, PartialEq)]
pub struct LoggedRecord {
    pub kind: String,
    pub payload: Value,
}

/// What the record of an outcome says: how an admitted call ended, and what it cost.
#[derive(Debug, PartialEq)]
pub struct Outcome {
    pub status: String,
    pub settled: Value,
}

impl Outcome {
    /// A call that ran and cost this.
    pub fn executed(settled: Value) -> Self {
        Self { status: "executed".into(), settled }
    }

    fn of(record: &LoggedRecord) -> Self {
        let status = record.payload["status"].as_str().unwrap().to_owned();
        Self { status, settled: record.payload["settled"].clone() }
    }
}

/// Lets those in who say who they are.
struct ByName;

#[async_trait]
impl Authorizer for ByName {
    async fn admit(&self, head: &Parts) -> Result<Authorized, Box<Response>> {
        let bearer = head.headers.get("authorization").and_then(|value| value.to_str().ok());
        let token = bearer.and_then(|value| value.strip_prefix("Bearer ")).map(|sub| TokenSubject {
            iss: "https://as.example".into(),
            sub: sub.into(),
            client_id: None,
        });
        Ok(Authorized { token, ..Authorized::default() })
    }
}

impl Default for Wishes {
    fn default() -> Self {
        let mut rules = Rules::new("/mcp", GATEWAY, POLICY);
        let holder = Holder::Agent(AGENT.into());
        let key = AgentKey::new(holder, &agent_key().public_key().to_jwk(), None, None).unwrap();
        rules.keyring = Keyring::new(vec![key]).unwrap();
        Self {
            rules,
            script: script(|_| None),
            store: Arc::new(Memory::new("only")),
            judging: None,
            filter_tools: false,
            patience: Patience::default(),
            url: None,
            answer_time: PATIENCE,
            call_time: gateway::limits::CALL_TIME,
            request_time: gateway::limits::REQUEST_TIME,
            upstream: None,
            session_idle: None,
        }
    }
}

/// A rule of the operator about a tool.
pub fn rule(name: &str, tool: &str, when: Option<&str>, then: Then) -> PolicyRule {
    PolicyRule::new(name, Some(Pattern::new(tool).unwrap()), when, then).unwrap()
}

impl World {
    pub async fn new() -> Self {
        Self::with(|_| ()).await
    }

    /// Before a server that does as this script says.
    pub async fn before(script: Script) -> Self {
        Self::with(|wishes| wishes.script = script).await
    }

    /// A gateway that asks a person about each call of the tool `pay`.
    pub async fn that_asks() -> Self {
        Self::with(|wishes| wishes.rules.policy.push(rule("ask", "pay", None, Then::Confirm))).await
    }

    pub async fn with(change: impl FnOnce(&mut Wishes)) -> Self {
        let mut wishes = Wishes::default();
        let own = wishes.store.clone();
        change(&mut wishes);
        let is_alone = Arc::ptr_eq(&own, &wishes.store);
        let script = wishes.script;
        let server = McpServer::scripted(move |seen, wire| script(seen, wire) || lists_tools(seen, wire));
        let url = wishes.url.unwrap_or_else(|| server.url());
        let (writer, running) = writer(wishes.store.clone(), wishes.rules.clone(), wishes.session_idle).await;
        let sealer = Sealer::new(Zeroizing::new([7; 32]), GATEWAY);
        let telemetry = Arc::new(Telemetry::new().unwrap());
        let shared = Shared::new(writer.clone(), sealer, telemetry, wishes.patience);
        let arguments_bytes = gateway::limits::ARGUMENT_BYTES;
        let filter_tools = wishes.filter_tools;
        let (call_time, request_time) = (wishes.call_time, wishes.request_time);
        let offer = Offer { posture: POSTURE.into(), filter_tools, arguments_bytes, call_time, request_time };
        let rules = wishes.rules.clone();
        let calls = Calls::new(wishes.rules, offer, wishes.judging, shared);
        let settings = Settings {
            admits: Arc::new(ByName),
            answer_time: wishes.answer_time,
            upstream: wishes.upstream,
            ..Settings::default()
        };
        let front = settings.front(&url, Arc::new(calls));
        let serving = listening(&front, Times::default()).await;
        let at = serving.address;
        let store = wishes.store;
        Self { server, store, writer, front, rules, is_alone, at, _serving: serving, _running: running }
    }

    /// A client of the modern era, with this token.
    pub fn modern(&self, who: &str) -> Agent {
        let capabilities = json!({ "elicitation": { "form": {} } });
        Agent { token: Some(who.into()), modern: true, capabilities, ..self.nobody() }
    }

    /// Nobody knows who it is, and it can be asked nothing.
    pub fn nobody(&self) -> Agent {
        Agent::nobody(format!("http://{}/mcp", self.at))
    }

    /// A client of the legacy era in a new MCP session, which can be asked.
    pub async fn legacy(&self) -> Agent {
        self.legacy_with(json!({ "elicitation": {} })).await
    }

    pub async fn legacy_with(&self, capabilities: Value) -> Agent {
        self.nobody().initialized(&capabilities).await
    }

    /// The records of a stream as the log gets them.
    pub async fn records(&self, stream: &str) -> Vec<LoggedRecord> {
        let stored = self.store.records(stream, 0, 1000).await.unwrap();
        let read = |stored: &evidence::StoredRecord| {
            let statement = SignedStatement::parse(stored.record.statement.clone()).unwrap();
            let payload = serde_json::from_slice(statement.payload().unwrap()).unwrap();
            LoggedRecord { kind: stored.record.kind.as_str().to_owned(), payload }
        };
        stored.iter().map(read).collect()
    }

    /// The outcomes in a stream, as soon as it has at least `count` of them.
    pub async fn outcomes(&self, stream: &str, count: usize) -> Vec<Outcome> {
        for _ in 0..400 {
            let records = self.records(stream).await;
            let outcomes: Vec<_> = records.iter().filter(|record| record.kind == "outcome").collect();
            if outcomes.len() >= count {
                return outcomes.into_iter().map(Outcome::of).collect();
            }
            tokio::time::sleep(Duration::from_millis(25)).await;
        }
        panic!("no {count} outcomes in {stream}: {:?}", self.records(stream).await);
    }

    /// The status of the first outcome in a stream, as soon as it has one.
    pub async fn outcome_status(&self, stream: &str) -> String {
        self.outcomes(stream, 1).await[0].status.clone()
    }

    /// Waits until the last record of a stream is the one that closes it.
    pub async fn until_closed(&self, stream: &str) {
        for _ in 0..800 {
            if self.records(stream).await.last().is_some_and(|record| record.kind == "closed") {
                return;
            }
            tokio::time::sleep(Duration::from_millis(25)).await;
        }
        panic!("the stream {stream} is not closed: {:?}", self.records(stream).await);
    }

    /// The verdicts in a stream, in order.
    pub async fn verdicts(&self, stream: &str) -> Vec<String> {
        let records = self.records(stream).await;
        let verdict = |record: &LoggedRecord| record.payload["verdict"].as_str().map(str::to_owned);
        records.iter().filter_map(verdict).collect()
    }

    /// The one stream whose name continues this.
    pub async fn stream_below(&self, name: &str) -> String {
        let listed = self.store.list(Some(&format!("{name}:")), 1).await.unwrap();
        listed.into_iter().next().unwrap().stream
    }

    /// The stream of what belongs to no session.
    pub fn unbound(&self) -> String {
        format!("unbound:{}", self.store.instance())
    }
}

impl Drop for World {
    /// Whatever the test did: what was decided is decided again, and comes out the same.
    fn drop(&mut self) {
        if std::thread::panicking() || !self.is_alone {
            return;
        }
        let (store, rules) = (self.store.clone(), self.rules.clone());
        let replays = std::thread::spawn(move || {
            let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
            runtime.block_on(replayed(&*store, &rules));
        });
        replays.join().expect("a recorded session is decided otherwise");
    }
}

async fn replayed(store: &dyn EvidenceStore, rules: &Rules) {
    for listed in store.list(None, 1000).await.unwrap() {
        let records = store.records(&listed.stream, 0, 1000).await.unwrap();
        let mut again = ReplayedSession::under_rules([("/mcp".to_owned(), Arc::new(rules.clone()))].into());
        let compared = replay::replay(&mut again, &records).unwrap();
        assert!(compared.iter().all(|decision| !decision.differs), "{}: {compared:#?}", listed.stream);
    }
}

async fn writer(
    store: Arc<dyn EvidenceStore>,
    rules: Rules,
    idle: Option<Duration>,
) -> (DecisionWriter, RunningWriter) {
    let keys = WriterKeys {
        evidence: Arc::new(testkit::gateway()),
        verdict: Arc::new(testkit::verifier()),
        jwk_set: testkit::jwk_set_json(),
    };
    let options = Options { patience: Duration::from_millis(100), ..Options::default() };
    let log = LogConnection { url: LOG.into(), client: Client::new(LOG, options).unwrap(), trust: None };
    let mut settings = WriterSettings::of(GATEWAY);
    settings.session_idle = idle.unwrap_or(settings.session_idle);
    let rules = Arc::new(rules);
    let rules_now = Arc::new(move |_: &str| Some(rules.clone()));
    DecisionWriter::open(store, &keys, log, Clock::system(), settings, rules_now).await.unwrap()
}
