//! A scripted upstream, a gateway before it, and clients.

use std::net::SocketAddr;
use std::sync::{Arc, Mutex};
use std::time::Duration;

use admission::principal::Caller;
use async_trait::async_trait;
use bytes::Bytes;
use futures::future::BoxFuture;
use gateway::config::{HttpServer, Intake};
use gateway::frame::reply;
use gateway::front::{
    Admits, Aside, Front, Handlers, Inbound, Late, OpenDoor, Opening, Plan, Response, Route, Serving, Times,
    unanswered,
};
use gateway::relay::{self, Opened, Over, Passing, Tap, Unanswered};
use gateway::upstream::discreet::Discreet;
use gateway::upstream::http::Http;
use http::StatusCode;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::{TcpListener, TcpStream};

/// How long anything may take before a test fails.
pub const PATIENCE: Duration = Duration::from_secs(20);

/// A request as it came over the wire.
#[derive(Clone, Debug)]
pub struct Recorded {
    pub head: String,
    pub body: Vec<u8>,
}

impl Recorded {
    pub fn header(&self, name: &str) -> Option<&str> {
        let line = self
            .head
            .lines()
            .find(|line| line.split_once(':').is_some_and(|(found, _)| found.eq_ignore_ascii_case(name)))?;
        Some(line.split_once(':')?.1.trim())
    }

    pub fn method(&self) -> &str {
        self.head.split(' ').next().unwrap()
    }

    pub fn text(&self) -> &str {
        std::str::from_utf8(&self.body).unwrap()
    }
}

/// One request's answer, in the script's hands.
pub struct Line {
    stream: TcpStream,
}

impl Line {
    pub async fn answer(&mut self, status: &str, headers: &str, body: &[u8]) {
        let head = format!(
            "HTTP/1.1 {status}\r\n{headers}content-length: {}\r\nconnection: close\r\n\r\n",
            body.len()
        );
        let _ = self.stream.write_all(head.as_bytes()).await;
        let _ = self.stream.write_all(body).await;
    }

    pub async fn json(&mut self, body: &str) {
        self.answer("200 OK", "content-type: application/json\r\n", body.as_bytes()).await;
    }

    pub async fn begin(&mut self, headers: &str) {
        let head = format!(
            "HTTP/1.1 200 OK\r\ncontent-type: text/event-stream\r\n{headers}transfer-encoding: chunked\r\nconnection: close\r\n\r\n"
        );
        let _ = self.stream.write_all(head.as_bytes()).await;
    }

    pub async fn send(&mut self, bytes: &str) {
        let chunk = format!("{:x}\r\n{bytes}\r\n", bytes.len());
        let _ = self.stream.write_all(chunk.as_bytes()).await;
    }

    pub async fn end(&mut self) {
        let _ = self.stream.write_all(b"0\r\n\r\n").await;
    }

    /// Until the gateway hangs up.
    pub async fn hung_up(&mut self) {
        let mut rest = [0; 1024];
        while self.stream.read(&mut rest).await.is_ok_and(|read| read > 0) {}
    }
}

type Script = Arc<dyn Fn(Recorded, Line) -> BoxFuture<'static, ()> + Send + Sync>;

/// A server that does what its script says.
pub struct Upstream {
    pub address: SocketAddr,
    pub requests: Arc<Mutex<Vec<Recorded>>>,
}

impl Upstream {
    pub async fn start<F, W>(script: F) -> Self
    where
        F: Fn(Recorded, Line) -> W + Send + Sync + 'static,
        W: Future<Output = ()> + Send + 'static,
    {
        let script: Script = Arc::new(move |request, line| Box::pin(script(request, line)));
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let address = listener.local_addr().unwrap();
        let requests = Arc::<Mutex<Vec<Recorded>>>::default();
        let kept = requests.clone();
        tokio::spawn(async move {
            loop {
                let (stream, _) = listener.accept().await.unwrap();
                let (script, kept) = (script.clone(), kept.clone());
                tokio::spawn(async move {
                    let Some((request, stream)) = read_request(stream).await else { return };
                    kept.lock().unwrap().push(request.clone());
                    script(request, Line { stream }).await;
                });
            }
        });
        Self { address, requests }
    }
}

async fn read_request(mut stream: TcpStream) -> Option<(Recorded, TcpStream)> {
    let mut bytes = Vec::new();
    let end = loop {
        if let Some(at) = bytes.windows(4).position(|four| four == b"\r\n\r\n") {
            break at + 4;
        }
        if stream.read_buf(&mut bytes).await.ok()? == 0 {
            return None;
        }
    };
    let body = bytes.split_off(end);
    let mut request = Recorded { head: String::from_utf8(bytes).unwrap(), body };
    let length: usize = request.header("content-length").map_or(0, |length| length.parse().unwrap());
    while request.body.len() < length {
        if stream.read_buf(&mut request.body).await.ok()? == 0 {
            return None;
        }
    }
    Some((request, stream))
}

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
    async fn ask_first(self, inbound: Inbound, opened: Opened, question: String) {
        opened.send(question.as_bytes()).await;
        self.notes.holds("answered").await;
        let answer = relay::ask(&*inbound.route.upstream, inbound.exchange, &inbound.client).await;
        match answer {
            Ok(answer) => opened.carry(answer, Box::new(Copying(self.notes))).await,
            Err(_) => {
                opened.send(&reply::error(inbound.frame.id(), -1, "no", None)).await;
            }
        }
    }

    async fn forward(&self, inbound: Inbound) -> Response {
        match relay::ask(&*inbound.route.upstream, inbound.exchange, &inbound.client).await {
            Ok(answer) => {
                relay::forward(answer, Box::new(Copying(self.notes.clone())), &inbound.client).await
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

#[async_trait]
impl Handlers for Scribe {
    async fn tools_call(&self, inbound: Inbound) -> Response {
        self.notes.write(format!("call {}", String::from_utf8_lossy(inbound.frame.text())));
        self.notes.write(format!("caller {:?}", inbound.caller));
        if let Some(Aside { key, invocation }) = &inbound.aside {
            self.notes.write(format!("aside {key} {invocation:?}"));
        }
        let Some(question) = self.asks.clone() else { return self.forward(inbound).await };
        let (opened, response) = relay::open(&inbound.client);
        let client = inbound.client.clone();
        client.spawn(self.clone().ask_first(inbound, opened, question));
        response
    }

    async fn carrier(&self, inbound: Inbound) -> Response {
        self.notes.write(format!("carrier {}", inbound.frame.meta("vap").unwrap_or_default()));
        self.forward(inbound).await
    }

    async fn amend(&self, inbound: Inbound) -> Response {
        relay::json(StatusCode::OK, reply::result(inbound.frame.id().unwrap(), "{}"))
    }

    async fn gated(&self, inbound: Inbound) -> Response {
        self.notes.write(format!("gated {}", inbound.frame.method().unwrap()));
        self.forward(inbound).await
    }

    fn gates(&self, method: &str) -> bool {
        self.gated.iter().any(|gated| gated == method)
    }

    async fn answered(&self, inbound: &Inbound) -> bool {
        let ours = inbound.frame.id().and_then(|id| id.as_str()).is_some_and(|id| id.starts_with("gw-"));
        if ours {
            self.notes.write("answered");
        }
        ours
    }

    async fn notified(&self, _: &Inbound) -> bool {
        false
    }

    fn advertise(&self, opening: &Opening, message: Bytes) -> Bytes {
        self.notes.write(format!("opened {:?}", opening.caller.mcp_session));
        let reply = reply::Reply::parse(message.clone()).unwrap();
        reply.with_result_at(&["capabilities", "experimental", "vap"], "{}").unwrap_or(message)
    }

    async fn late(&self, late: Late<'_>) -> Passing {
        self.notes.write(format!("late {}", String::from_utf8_lossy(&late.message)));
        self.late.clone().map_or(Passing::Untouched, |text| Passing::Replaced(text.into()))
    }

    fn gave(&self, _: &str) -> bool {
        true
    }

    async fn ended(&self, caller: &Caller) {
        self.notes.write(format!("ended {:?}", caller.mcp_session));
    }
}

/// A gateway before a scripted server.
pub struct World {
    pub upstream: Upstream,
    pub notes: Notes,
    pub at: SocketAddr,
    pub serving: Option<Serving>,
    pub http: reqwest::Client,
}

/// What a world can be told.
pub struct Wishes {
    pub scribe: Scribe,
    pub hosts: Vec<String>,
    pub origins: Vec<String>,
    pub intake: Intake,
    pub times: Times,
    pub forward_invocation: bool,
    pub answer_time: Duration,
    pub admits: Arc<dyn Admits>,
    /// Whether what the server says about credentials is for us.
    pub is_ours: bool,
}

impl Default for Wishes {
    fn default() -> Self {
        let intake = Intake { body_bytes: 4 << 20, requests_per_second: 200, burst: 400, connections: 1000 };
        Self {
            scribe: Scribe::default(),
            hosts: Vec::new(),
            origins: Vec::new(),
            intake,
            times: Times { drain: Duration::from_secs(5), ..Times::default() },
            forward_invocation: true,
            answer_time: PATIENCE,
            admits: Arc::new(OpenDoor),
            is_ours: false,
        }
    }
}

impl World {
    pub async fn with<F, W>(wishes: Wishes, script: F) -> Self
    where
        F: Fn(Recorded, Line) -> W + Send + Sync + 'static,
        W: Future<Output = ()> + Send + 'static,
    {
        let upstream = Upstream::start(script).await;
        let url = format!("http://{}/server", upstream.address);
        Self::before(wishes, upstream, &url).await
    }

    pub async fn before(wishes: Wishes, upstream: Upstream, url: &str) -> Self {
        let server =
            HttpServer { url: url.parse().unwrap(), token_file: None, headers: Vec::new(), ca_file: None };
        let notes = wishes.scribe.notes.clone();
        let http = Arc::new(Http::new(&server, wishes.answer_time).unwrap());
        let route = Route {
            path: "/mcp".into(),
            upstream: if wishes.is_ours { Arc::new(Discreet::new(http)) } else { http },
            handlers: Arc::new(wishes.scribe),
            admits: wishes.admits,
            forward_invocation: wishes.forward_invocation,
        };
        let plan = Plan {
            routes: vec![Arc::new(route)],
            hosts: wishes.hosts,
            origins: wishes.origins,
            intake: wishes.intake,
            pages: axum::Router::new(),
        };
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let serving = Front::new(plan).serve(listener, wishes.times).unwrap();
        let http = reqwest::Client::builder().no_proxy().pool_max_idle_per_host(0).build().unwrap();
        Self { upstream, notes, at: serving.address, serving: Some(serving), http }
    }

    pub fn url(&self) -> String {
        format!("http://{}/mcp", self.at)
    }

    /// A POST as a legacy client makes it.
    pub fn post(&self, body: impl Into<String>) -> reqwest::RequestBuilder {
        self.http
            .post(self.url())
            .header("content-type", "application/json")
            .header("accept", "application/json, text/event-stream")
            .header("mcp-session-id", "s-1")
            .body(body.into())
    }

    /// A POST as a modern client makes it.
    pub fn modern(
        &self,
        method: &str,
        name: Option<&str>,
        body: impl Into<String>,
    ) -> reqwest::RequestBuilder {
        let request = self
            .http
            .post(self.url())
            .header("content-type", "application/json")
            .header("accept", "application/json, text/event-stream")
            .header("mcp-protocol-version", "2026-07-28")
            .header("mcp-method", method)
            .body(body.into());
        match name {
            Some(name) => request.header("mcp-name", name),
            None => request,
        }
    }

    pub fn requests(&self) -> Vec<Recorded> {
        self.upstream.requests.lock().unwrap().clone()
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

/// What comes of a stream until it holds so much.
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
}

/// Sends bytes and reads what comes back until the other side closes.
pub async fn exchange(mut stream: TcpStream, bytes: &[u8]) -> String {
    let _ = stream.write_all(bytes).await;
    let mut answer = Vec::new();
    let _ = tokio::time::timeout(PATIENCE, stream.read_to_end(&mut answer)).await.unwrap();
    String::from_utf8_lossy(&answer).into_owned()
}
