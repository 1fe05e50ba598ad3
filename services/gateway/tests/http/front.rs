//! Fronts on real sockets: their settings, and one whose handlers decide nothing.

use std::net::SocketAddr;
use std::sync::{Arc, Mutex};
use std::time::Duration;

use admission::principal::Caller;
use async_trait::async_trait;
use bytes::Bytes;
use futures::future::BoxFuture;
use gateway::config::{HttpServer, Intake};
use gateway::frame::{Kind, RawId, reply};
use gateway::front::{AllowAll, Authorizer, Front, Plan, Route, Serving, Times, unanswered};
use gateway::mcp::{
    ClientMessages, Endpoint, Handlers, Inbound, InvocationMember, Late, Mcp, McpSessions, Opening,
    RequestKind, ServerMessages, SessionEvents,
};
use gateway::relay::Response;
use gateway::relay::{self, CallLimit, OpenedStream, Over, Passing, Tap, Unanswered};
use gateway::upstream::Upstream;
use gateway::upstream::http::Http;
use gateway::upstream::time_limited::TimeLimited;
use gateway::upstream::without_challenges::WithoutChallenges;
use http::StatusCode;
use serving::http_metrics::HttpMetrics;
use serving::metrics::MetricRegistry;
use testkit::{McpRequest, McpServer, Responder};
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::{TcpListener, TcpStream};
use tokio_util::sync::CancellationToken;

use crate::client::{PATIENCE, http_client, post};

/// What the gateway's deciding side was shown.
#[derive(Clone, Default)]
pub struct Notes(Arc<Mutex<Vec<String>>>);

impl Notes {
    pub fn write(&self, note: impl Into<String>) {
        self.0.lock().unwrap().push(note.into());
    }

    pub fn all(&self) -> Vec<String> {
        self.0.lock().unwrap().clone()
    }

    pub async fn holds(&self, note: &str) {
        until(&format!("{note:?} is noted"), || self.all().iter().any(|noted| noted.contains(note))).await;
    }
}

/// Waits for something to become true.
pub async fn until(what: &str, mut is_so: impl FnMut() -> bool) {
    let deadline = tokio::time::Instant::now() + PATIENCE;
    while !is_so() {
        assert!(tokio::time::Instant::now() < deadline, "waited in vain until {what}");
        tokio::time::sleep(Duration::from_millis(5)).await;
    }
}

/// Decides nothing: lets calls through and writes down what it sees.
#[derive(Clone, Default)]
pub struct Scribe {
    pub notes: Notes,
    /// Asks the client something before the upstream is asked, with this request.
    pub asks: Option<String>,
    pub gated: Vec<String>,
    /// What responses on GET streams become.
    pub late: Option<String>,
}

struct Copying(Notes);

/// The limit of a call that no test reaches.
fn limit() -> CallLimit {
    CallLimit::new(gateway::limits::CALL_TIME, CancellationToken::new())
}

#[async_trait]
impl Tap for Copying {
    async fn message(&mut self, text: Bytes) -> Passing {
        self.0.write(format!("message {}", String::from_utf8_lossy(&text)));
        Passing::Untouched
    }

    async fn over(&mut self, how: Over) -> Option<Bytes> {
        self.0.write(format!("over {how:?}"));
        None
    }
}

impl Scribe {
    async fn ask_first(self, inbound: Inbound, opened: OpenedStream, question: String) {
        opened.send(question.as_bytes()).await;
        self.notes.holds("answered").await;
        let answer = relay::ask(&*inbound.endpoint.upstream, inbound.exchange, &inbound.client).await;
        match answer {
            Ok(answer) => opened.carry(answer, Box::new(Copying(self.notes)), limit()).await,
            Err(_) => {
                opened.send(&reply::error(inbound.frame.id(), -1, "no", None)).await;
            }
        }
    }

    async fn called(&self, inbound: Inbound) -> Response {
        self.notes.write(format!("call {}", String::from_utf8_lossy(inbound.frame.text())));
        self.notes.write(format!("caller {:?}", inbound.caller));
        if let Some(InvocationMember { keys, invocation }) = &inbound.invocation {
            self.notes.write(format!("aside {} {invocation:?}", keys.join(" ")));
        }
        let Some(question) = self.asks.clone() else { return self.forward(inbound).await };
        let (opened, response) = relay::open(&inbound.client);
        let client = inbound.client.clone();
        client.spawn(self.clone().ask_first(inbound, opened, question));
        response
    }

    async fn forward(&self, inbound: Inbound) -> Response {
        match relay::ask(&*inbound.endpoint.upstream, inbound.exchange, &inbound.client).await {
            Ok(answer) => {
                let copying = Box::new(Copying(self.notes.clone()));
                relay::forward(answer, copying, (&inbound.client, limit()), None).await
            }
            Err(Unanswered::Upstream(error)) => {
                self.notes.write(format!("unanswered {error}"));
                unanswered(inbound.frame.id(), &error)
            }
            Err(Unanswered::Cancelled) => {
                self.notes.write("cancelled");
                relay::error(StatusCode::BAD_GATEWAY, -1, "cancelled")
            }
        }
    }
}

impl ClientMessages for Scribe {
    fn gates(&self, method: &str) -> bool {
        self.gated.iter().any(|gated| gated == method)
    }

    fn time_limit(&self, _: &str) -> Option<Duration> {
        None
    }

    fn request(self: Arc<Self>, kind: RequestKind, inbound: Inbound) -> BoxFuture<'static, Response> {
        Box::pin(async move {
            match kind {
                RequestKind::ToolCall => self.called(inbound).await,
                RequestKind::Amendment => {
                    relay::json(StatusCode::OK, reply::result(inbound.frame.id().unwrap(), "{}"))
                }
                RequestKind::Gated => {
                    self.notes.write(format!("gated {}", inbound.frame.method().unwrap()));
                    self.forward(inbound).await
                }
                RequestKind::Carrier => {
                    self.notes.write(format!("carrier {}", inbound.frame.meta("vap").unwrap_or_default()));
                    self.forward(inbound).await
                }
            }
        })
    }

    fn takes(&self, inbound: &Inbound) -> bool {
        let is_ours = |id: &RawId| id.as_str().is_some_and(|id| id.starts_with("gw-"));
        let ours = inbound.frame.kind() == Kind::Response && inbound.frame.id().is_some_and(is_ours);
        if ours {
            self.notes.write("answered");
        }
        ours
    }
}

#[async_trait]
impl ServerMessages for Scribe {
    fn advertise(&self, opening: &Opening, message: Bytes) -> Bytes {
        self.notes.write(format!("opened {:?}", opening.caller.mcp_session));
        let reply = reply::Reply::parse(message.clone()).unwrap();
        reply.with_result_at(&["capabilities", "experimental", "vap"], "{}").unwrap_or(message)
    }

    async fn late(&self, late: Late<'_>) -> Passing {
        self.notes.write(format!("late {}", String::from_utf8_lossy(&late.message)));
        self.late.clone().map_or(Passing::Untouched, |text| Passing::Replaced(text.into()))
    }
}

#[async_trait]
impl SessionEvents for Scribe {
    fn gave(&self, _: &str) -> bool {
        true
    }

    async fn ended(&self, caller: &Caller) {
        self.notes.write(format!("ended {:?}", caller.mcp_session));
    }
}

/// What a front and its one route are set to.
pub struct Settings {
    pub hosts: Vec<String>,
    pub origins: Vec<String>,
    pub intake: Intake,
    pub times: Times,
    pub forward_invocation: bool,
    pub answer_time: Duration,
    /// The upstream, if it is not a server over HTTP.
    pub upstream: Option<Arc<dyn Upstream>>,
    pub admits: Arc<dyn Authorizer>,
    /// Whether what the server says about credentials is for us.
    pub is_ours: bool,
    pub pages: axum::Router,
    pub http: Arc<HttpMetrics>,
}

impl Default for Settings {
    fn default() -> Self {
        let intake =
            Intake { body_bytes: 4 << 20, requests_per_second: 5_000, burst: 5_000, connections: 1000 };
        Self {
            hosts: Vec::new(),
            origins: Vec::new(),
            intake,
            times: Times { drain: Duration::from_secs(5), ..Times::default() },
            forward_invocation: true,
            answer_time: PATIENCE,
            upstream: None,
            admits: Arc::new(AllowAll),
            is_ours: false,
            pages: axum::Router::new(),
            http: Arc::new(HttpMetrics::new(&MetricRegistry::default()).unwrap()),
        }
    }
}

impl Settings {
    /// A front before the server at this URL, and its listener.
    pub async fn serve(self, url: &str, handlers: Arc<dyn Handlers>) -> Serving {
        let times = self.times;
        listening(&self.front(url, handlers), times).await
    }

    /// A front before the server at this URL.
    pub fn front(self, url: &str, handlers: Arc<dyn Handlers>) -> Arc<Front> {
        let server =
            HttpServer { url: url.parse().unwrap(), token_file: None, headers: Vec::new(), ca_file: None };
        let upstream =
            self.upstream.unwrap_or_else(|| Arc::new(Http::new(&server, self.answer_time).unwrap()));
        let upstream: Arc<dyn Upstream> = Arc::new(TimeLimited::new(upstream, "the server behind /mcp"));
        let endpoint = Endpoint {
            path: "/mcp".into(),
            upstream: if self.is_ours { Arc::new(WithoutChallenges::new(upstream)) } else { upstream },
            handlers,
            forward_invocation: self.forward_invocation,
        };
        let protocol = Arc::new(Mcp::new(endpoint, Arc::new(McpSessions::default())));
        let route = Route { path: "/mcp".into(), admits: self.admits, protocol };
        let plan = Plan {
            certificate_proxies: Vec::new(),
            routes: vec![Arc::new(route)],
            hosts: self.hosts,
            origins: self.origins,
            intake: self.intake,
            pages: self.pages,
        };
        Front::new(plan, self.http)
    }
}

/// The listener of a front.
pub async fn listening(front: &Arc<Front>, times: Times) -> Serving {
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    front.serve(listener, times).unwrap()
}

/// A front that decides nothing, before a scripted server.
pub struct PassThrough {
    pub server: McpServer,
    pub notes: Notes,
    pub at: SocketAddr,
    pub serving: Option<Serving>,
    pub http: reqwest::Client,
}

impl PassThrough {
    /// Before a server that answers by this script alone.
    pub async fn before(script: impl Fn(&McpRequest, &mut Responder) + Send + Sync + 'static) -> Self {
        Self::set(Settings::default(), script).await
    }

    pub async fn set(
        settings: Settings,
        script: impl Fn(&McpRequest, &mut Responder) + Send + Sync + 'static,
    ) -> Self {
        Self::with(Scribe::default(), settings, script).await
    }

    pub async fn with(
        scribe: Scribe,
        settings: Settings,
        script: impl Fn(&McpRequest, &mut Responder) + Send + Sync + 'static,
    ) -> Self {
        let server = McpServer::answering(script);
        let url = format!("http://{}/server", server.address());
        Self::before_url(&url, server, scribe, settings).await
    }

    /// Before whatever is at this URL.
    pub async fn before_url(url: &str, server: McpServer, scribe: Scribe, settings: Settings) -> Self {
        let notes = scribe.notes.clone();
        let serving = settings.serve(url, Arc::new(scribe)).await;
        Self { server, notes, at: serving.address, serving: Some(serving), http: http_client() }
    }

    pub fn url(&self) -> String {
        format!("http://{}/mcp", self.at)
    }

    /// A POST as a legacy client makes it.
    pub fn post(&self, body: impl Into<String>) -> reqwest::RequestBuilder {
        post(&self.http, &self.url(), body).header("mcp-session-id", "s-1")
    }

    /// A POST as a modern client makes it.
    pub fn modern(
        &self,
        method: &str,
        name: Option<&str>,
        body: impl Into<String>,
    ) -> reqwest::RequestBuilder {
        let request = post(&self.http, &self.url(), body);
        let request = request.header("mcp-protocol-version", "2026-07-28").header("mcp-method", method);
        match name {
            Some(name) => request.header("mcp-name", name),
            None => request,
        }
    }

    /// A GET for the stream of the server's own messages.
    pub fn listen(&self) -> reqwest::RequestBuilder {
        self.http.get(self.url()).header("accept", "text/event-stream").header("mcp-session-id", "s-1")
    }

    pub fn requests(&self) -> Vec<McpRequest> {
        self.server.seen()
    }

    /// A connection to write on as one likes.
    pub async fn raw(&self) -> TcpStream {
        TcpStream::connect(self.at).await.unwrap()
    }
}

/// A modern message of this method, with more parameters.
pub fn modern_text(id: &str, method: &str, params: &str) -> String {
    let comma = if params.is_empty() { "" } else { "," };
    format!(
        r#"{{"jsonrpc":"2.0","id":{id},"method":"{method}","params":{{{params}{comma}"_meta":{{"io.modelcontextprotocol/protocolVersion":"2026-07-28","io.modelcontextprotocol/clientCapabilities":{{}}}}}}}}"#
    )
}

pub const CALL: &str =
    r#"{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"t","arguments":{}}}"#;
pub const DONE: &str = r#"{"jsonrpc":"2.0","id":1,"result":{"content":[]}}"#;

/// Sends bytes and reads what comes back until the other side closes.
pub async fn exchange(mut stream: TcpStream, bytes: &[u8]) -> String {
    let _ = stream.write_all(bytes).await;
    let mut answer = Vec::new();
    let _ = tokio::time::timeout(PATIENCE, stream.read_to_end(&mut answer)).await.unwrap();
    String::from_utf8_lossy(&answer).into_owned()
}
