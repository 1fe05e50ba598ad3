//! A whole service on real sockets, and a client that takes answers apart.

pub mod forms;
pub mod witness;

use std::net::{Ipv4Addr, SocketAddr};
use std::ops::Deref;
use std::sync::Arc;
use std::time::Duration;

use bytes::Bytes;
use log_for_tests::LogFolder;
use merkle::EntryDigest;
use reqwest::header::{HeaderMap, HeaderName};
use reqwest::{Client, Method, StatusCode};
use scitt::{KeySet, Receipt, SignedStatement};
use store::{LogReader, LogStore, Memory, SignatureKind, SignatureStore};
use transparency::{Config, Service};

/// What a client is told when it asks for nothing in particular.
pub const COSE: &str = "application/cose";

/// A statement that opaque payloads admit; each number gives another one.
pub fn statement(n: u64) -> SignedStatement {
    testkit::opaque(&format!("thing-{n}"), &serde_json::json!({ "n": n }))
}

/// The first erasure of a log, by its operator.
pub fn erasure(entries: &[EntryDigest]) -> SignedStatement {
    let erasure = registration::erasure::NewErasure {
        sequence: 0,
        entries: entries.to_vec(),
        reason: "somebody asked".into(),
        rule: "gdpr-17".into(),
        at: None,
        authorized_by: None,
    };
    let policy = testkit::policy();
    let log = (testkit::LOG_ISS, testkit::ORIGIN);
    registration::erasure::sign(&erasure, log, &policy.contents().operators, &testkit::operator()).unwrap()
}

/// Copies a database once it has the signatures over its newest head, which are stored a moment after they were served.
pub async fn backup_with_signatures(store: &Memory) -> Memory {
    let size = store.head().await.unwrap().size();
    for kind in [SignatureKind::Receipt, SignatureKind::Checkpoint] {
        let is_stored = async || {
            store.newest_signed(kind).await.unwrap().is_some_and(|signed| signed.signature.size == size)
        };
        while !is_stored().await {
            tokio::time::sleep(Duration::from_millis(5)).await;
        }
    }
    store.backup()
}

/// A path of the description with its parameters filled in.
pub fn filled(path: &str, statement: &SignedStatement) -> String {
    let entry = statement.digest().to_string();
    let values = [
        ("{entry_id}", entry.as_str()),
        ("{kid_value}", "AAAA"),
        ("{path}", "0/000.p/2"),
        ("{size}", "1"),
        ("{revision}", "0"),
        ("{sequence}", "0"),
        ("{sub}", "agent"),
        ("{iss}", "https%3A%2F%2Fissuer.example"),
        ("{session}", "session"),
        ("{gateway}", "gateway"),
        ("{stream}", "stream"),
    ];
    values.iter().fold(path.to_owned(), |path, (name, value)| path.replace(name, value))
}

/// A folder with everything that a log is started with.
pub struct Place(Arc<LogFolder>);

impl Deref for Place {
    type Target = LogFolder;

    fn deref(&self) -> &LogFolder {
        &self.0
    }
}

impl Place {
    /// Fresh keys, and the policy of the test kit.
    pub fn new() -> Self {
        Self(Arc::new(LogFolder::new(&testkit::policy_toml())))
    }

    /// A configuration on SQLite in this folder, with both listeners for the operator's commands.
    pub fn config(&self) -> Config {
        Config {
            admin_listen: Some(SocketAddr::from((Ipv4Addr::LOCALHOST, 0))),
            admin_socket: Some(self.path("admin.sock")),
            ..self.0.config()
        }
    }

    /// A service on SQLite.
    pub async fn start(&self) -> Site {
        self.start_with(|_| {}).await
    }

    pub async fn start_with(&self, change: impl FnOnce(&mut Config)) -> Site {
        let mut config = self.config();
        change(&mut config);
        Site::of(Service::start(config).await.unwrap(), self)
    }

    /// A service on a store of the test's choice.
    pub async fn start_on(&self, store: impl LogStore, change: impl FnOnce(&mut Config)) -> Site {
        let mut config = self.config();
        change(&mut config);
        Site::of(Service::start_on(config, Arc::new(store)).await.unwrap(), self)
    }
}

/// A running service and a client of it.
pub struct Site {
    pub service: Service,
    pub client: Client,
    pub url: String,
    pub admin: String,
    /// Kept for as long as the service runs.
    folder: Arc<LogFolder>,
}

impl Site {
    /// Waits until the metrics have this line.
    pub async fn until_metrics_have(&self, line: &str) {
        const LONGEST: Duration = Duration::from_secs(30);
        let url = format!("{}/metrics", self.admin);
        let found = async {
            while !self.get(&url).await.text().lines().any(|other| other == line) {
                tokio::time::sleep(Duration::from_millis(20)).await;
            }
        };
        tokio::time::timeout(LONGEST, found).await.unwrap_or_else(|_| panic!("no {line}"));
    }

    /// Waits until the page of alarms has this text, and returns the page.
    pub async fn alarms_with(&self, text: &str) -> String {
        const LONGEST: Duration = Duration::from_secs(60);
        let found = async {
            loop {
                let html = self.get("/ui/alarms").await.text();
                if html.contains(text) {
                    return html;
                }
                tokio::time::sleep(Duration::from_millis(20)).await;
            }
        };
        tokio::time::timeout(LONGEST, found).await.unwrap_or_else(|_| panic!("no alarm has {text:?}"))
    }

    fn of(service: Service, place: &Place) -> Self {
        let addresses = service.addresses();
        let url = format!("http://{}", addresses.public);
        let admin = format!("http://{}", addresses.admin.unwrap());
        Self { service, client: client(), url, admin, folder: place.0.clone() }
    }

    /// Sends a request; `body` is the test's business.
    pub async fn send(
        &self,
        method: Method,
        path: &str,
        headers: &[(&str, &str)],
        body: impl Into<Bytes>,
    ) -> Answer {
        let url = if path.starts_with("http") { path.to_owned() } else { format!("{}{path}", self.url) };
        let mut request = self.client.request(method, url).body(body.into());
        for (name, value) in headers {
            request = request.header(*name, *value);
        }
        Answer::of(request.send().await.unwrap()).await
    }

    /// Gives an operator's command, over the admin socket.
    pub async fn command(&self, method: Method, path: &str, body: impl Into<Bytes>) -> Answer {
        let socket = self.folder.path("admin.sock");
        let client = Client::builder().unix_socket(socket).build().unwrap();
        let request = client.request(method, format!("http://localhost{path}"));
        let request = request.header("content-type", "application/json").body(body.into());
        Answer::of(request.send().await.unwrap()).await
    }

    pub async fn get(&self, path: &str) -> Answer {
        self.send(Method::GET, path, &[], "").await
    }

    pub async fn post(&self, statement: &[u8]) -> Answer {
        let body = Bytes::copy_from_slice(statement);
        self.send(Method::POST, "/entries", &[("content-type", COSE)], body).await
    }

    pub async fn register(&self, statement: &SignedStatement) -> Answer {
        self.post(statement.bytes()).await
    }

    /// Registers a detached statement with its payload.
    pub async fn post_form(&self, statement: &[u8], payload: &[u8]) -> Answer {
        self.post_multipart("/entries", &forms::form_type(), forms::form(statement, payload)).await
    }

    pub async fn post_multipart(&self, path: &str, content_type: &str, body: Vec<u8>) -> Answer {
        self.send(Method::POST, path, &[("content-type", content_type)], body).await
    }

    /// Registers and checks all that a 201 promises, by means of the published keys alone.
    pub async fn registered(&self, statement: &SignedStatement) -> Receipt {
        let answer = self.register(statement).await;
        assert_eq!(answer.status, 201, "{answer:?}");
        assert_eq!(answer.header("content-type"), Some(COSE));
        assert_eq!(answer.header("location"), Some(self.location(statement).as_str()));
        self.verified(statement, &answer.body).await
    }

    pub fn location(&self, statement: &SignedStatement) -> String {
        format!("{}/entries/{}", self.url, statement.digest())
    }

    /// The facts of an entry.
    pub async fn facts(&self, entry: EntryDigest) -> serde_json::Value {
        self.get(&format!("/v1/entries/{entry}")).await.json()["facts"].clone()
    }

    /// Verifies a receipt as a stranger would: with the key set and nothing else.
    pub async fn verified(&self, statement: &SignedStatement, receipt: &[u8]) -> Receipt {
        let receipt = Receipt::parse(receipt.to_vec()).expect("a receipt");
        let set = KeySet::parse(&self.get("/.well-known/scitt-keys").await.body).expect("a key set");
        let kid = receipt.header().kid().expect("a kid").clone();
        let key = set.with_kid(&kid).next().expect("a published key");
        receipt.verify_inclusion(&statement.digest().leaf_hash(), &key.key).expect("a sound proof");
        receipt
    }
}

pub fn client() -> Client {
    let _ = rustls::crypto::ring::default_provider().install_default();
    Client::builder().redirect(reqwest::redirect::Policy::none()).build().unwrap()
}

/// An answer, read to its end.
#[derive(Debug)]
pub struct Answer {
    /// The path of the request.
    pub path: String,
    pub status: u16,
    pub headers: HeaderMap,
    pub body: Vec<u8>,
}

impl Answer {
    async fn of(response: reqwest::Response) -> Self {
        let (status, headers, path) =
            (response.status(), response.headers().clone(), response.url().path().to_owned());
        let body = response.bytes().await.unwrap().to_vec();
        if status != StatusCode::SWITCHING_PROTOCOLS && status.is_client_error() || status.is_server_error() {
            assert!(!body.is_empty(), "{status} without a body");
        }
        Self { path, status: status.as_u16(), headers, body }
    }

    pub fn header(&self, name: &str) -> Option<&str> {
        self.headers.get(HeaderName::from_bytes(name.as_bytes()).unwrap())?.to_str().ok()
    }

    pub fn text(&self) -> String {
        String::from_utf8_lossy(&self.body).into_owned()
    }

    pub fn json(&self) -> serde_json::Value {
        serde_json::from_slice(&self.body).unwrap_or_else(|_| panic!("no JSON: {}", self.text()))
    }

    /// The problem in the body: JSON under `/v1` (RFC 9457), elsewhere one that RFC 9290 and SCRAPI allow.
    pub fn problem(&self) -> scitt::Problem {
        let problem =
            if self.path.starts_with("/v1/") { self.problem_in_json() } else { self.problem_in_cbor() };
        assert!(problem.title.is_some() && problem.detail.is_some(), "{problem:?}");
        assert_eq!(problem.response_code, None);
        let request = self.header("x-request-id").expect("the request's number");
        assert_eq!(problem.instance.as_deref(), Some(&*format!("urn:uuid:{request}")));
        problem
    }

    pub fn problem_in_cbor(&self) -> scitt::Problem {
        assert_eq!(self.header("content-type"), Some("application/concise-problem-details+cbor"), "{self:?}");
        scitt::Problem::parse(&self.body).expect("a problem")
    }

    /// The problem in a JSON body, with the members that the CBOR form has too.
    pub fn problem_in_json(&self) -> scitt::Problem {
        assert_eq!(self.header("content-type"), Some("application/problem+json"), "{self:?}");
        let json = self.json();
        let text = |name: &str| json[name].as_str();
        let must = |name: &str| text(name).unwrap_or_else(|| panic!("no {name}: {json}"));
        assert_eq!(json["status"], self.status);
        assert_eq!(must("type"), format!("https://tabellion.dev/errors/{}", must("code")));
        let mut problem =
            scitt::Problem::new(must("title"), must("detail")).instance(must("instance")).code(must("code"));
        for name in ["rule", "entry", "place"] {
            if let Some(text) = text(name) {
                problem = problem.entry(scitt::problem::TABELLION, name, text.to_owned());
            }
        }
        match json["offset"].as_u64() {
            Some(offset) => problem.entry(scitt::problem::TABELLION, "offset", offset),
            None => problem,
        }
    }

    /// Status, title and code: what a refusal is told apart by.
    pub fn refusal(&self) -> (u16, String, String) {
        let problem = self.problem();
        (self.status, problem.title.clone().unwrap(), problem.get_code().unwrap_or_default().to_owned())
    }
}

/// A statement is refused by this rule.
#[track_caller]
pub fn refused_by(answer: &Answer, code: &str, rule: &str) {
    assert_eq!(answer.refusal(), refusal(400, "Rejected", code), "{answer:?}");
    assert_eq!(answer.problem().get_rule(), Some(rule), "{answer:?}");
}

/// For comparing with [`Answer::refusal`].
pub fn refusal(status: u16, title: &str, code: &str) -> (u16, String, String) {
    (status, title.to_owned(), code.to_owned())
}
