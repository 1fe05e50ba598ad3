//! Answers of the service, compared with its description: the status, the content type and the header fields of each.
//!
//! Not here: 501, which no client of these tests can cause, and the stream of entries, whose answers do not end.

use std::collections::BTreeSet;
use std::time::Duration;

use crate::common::{Answer, COSE, Place, Site, filled, statement};
use reqwest::Method;
use scitt::SignedStatement;
use serde_json::Value;
use store::{FailingStore, Fault, Memory};
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpStream;
use transparency::{Config, Rate};

/// The types that some resource of the service has, and one that none has.
const TYPES: [&str; 10] = [
    "*/*",
    "application/cbor",
    "application/cose",
    "application/json",
    "application/jwk-set+json",
    "application/scitt-receipt+cose",
    "application/scitt-statement+cose",
    "image/png",
    "text/html",
    "text/x.tlog.proof",
];

/// An operation of the description.
struct Operation {
    method: Method,
    path: String,
    responses: Value,
}

fn operations() -> Vec<Operation> {
    let description: Value = serde_json::from_str(&transparency::openapi_json()).unwrap();
    let paths = description["paths"].as_object().unwrap();
    let mut all = Vec::new();
    for (path, item) in paths.iter().filter(|(path, _)| *path != "/v1/entries/stream") {
        for (method, operation) in [(Method::GET, &item["get"]), (Method::POST, &item["post"])] {
            if operation.is_object() {
                let responses = operation["responses"].clone();
                all.push(Operation { method, path: path.clone(), responses });
            }
        }
    }
    all
}

fn operation(method: &Method, path: &str) -> Operation {
    let mut all = operations().into_iter();
    all.find(|one| one.method == *method && one.path == path).unwrap()
}

impl Operation {
    /// The path and query of a request about a log with this statement.
    fn target(&self, statement: &SignedStatement) -> String {
        let query = match self.path.as_str() {
            "/v1/proof/inclusion" => "?index=0",
            "/v1/proof/consistency" => "?first=1&second=2",
            _ => "",
        };
        format!("{}{query}", filled(&self.path, statement))
    }
}

/// What the description lacks of the answers that came.
#[derive(Default)]
struct Comparison {
    statuses: BTreeSet<u16>,
    lacking: BTreeSet<String>,
}

impl Comparison {
    fn add(&mut self, operation: &Operation, answer: &Answer) {
        self.statuses.insert(answer.status);
        let response = &operation.responses[answer.status.to_string()];
        let lacking = match response {
            Value::Null => vec!["the status".to_owned()],
            response => lacking_of(response, answer),
        };
        let Operation { method, path, .. } = operation;
        let named = lacking.iter().map(|what| format!("{method} {path} {}: {what}", answer.status));
        self.lacking.extend(named);
    }

    /// Asserts that answers of these statuses came, and that the description lacks nothing of all answers.
    #[track_caller]
    fn must_be_complete(&self, statuses: &[u16]) {
        assert!(self.lacking.is_empty(), "{:#?}", self.lacking);
        let missing: Vec<_> = statuses.iter().filter(|status| !self.statuses.contains(*status)).collect();
        assert!(missing.is_empty(), "no answer {missing:?}, only {:?}", self.statuses);
    }
}

/// The content type and the header fields of an answer that the description of the response does not have.
fn lacking_of(response: &Value, answer: &Answer) -> Vec<String> {
    let has_type = |media: &&str| response["content"].get(*media).is_some();
    let media = answer.header("content-type").filter(|media| !has_type(media));
    let caching = (answer.status == 204).then_some("Cache-Control");
    let fields = ["Deprecation", "Location", "Link", "Retry-After"].into_iter().chain(caching);
    let undescribed = fields.filter(|field| {
        answer.header(&field.to_ascii_lowercase()).is_some() && response["headers"].get(*field).is_none()
    });
    media.into_iter().chain(undescribed).map(str::to_owned).collect()
}

/// Sends a request for each operation with these header fields, and compares the answers.
async fn compare_all(site: &Site, headers: &[(&str, &str)], query: &str) -> Comparison {
    let mut comparison = Comparison::default();
    for operation in operations() {
        let target = format!("{}{query}", operation.target(&statement(1)));
        let answer = site.send(operation.method.clone(), &target, headers, "").await;
        comparison.add(&operation, &answer);
    }
    comparison
}

#[tokio::test]
async fn each_resource_answers_as_described_in_each_type_and_to_a_client_that_has_it() {
    let site = Place::new().start().await;
    site.registered(&statement(1)).await;
    let mut comparison = Comparison::default();
    for operation in operations() {
        let target = operation.target(&statement(1));
        for accept in TYPES {
            for headers in [&[("accept", accept)][..], &[("accept", accept), ("if-none-match", "*")]] {
                let answer = site.send(operation.method.clone(), &target, headers, "").await;
                comparison.add(&operation, &answer);
            }
        }
    }
    comparison.must_be_complete(&[200, 303, 304, 400, 404, 406, 415]);
}

#[tokio::test]
async fn a_path_that_is_not_text_is_answered_as_described() {
    let site = Place::new().start().await;
    let mut comparison = Comparison::default();
    for operation in operations().iter().filter(|operation| operation.path.contains('{')) {
        let (before, _) = operation.path.split_once('{').unwrap();
        let (_, after) = operation.path.split_once('}').unwrap();
        let target = filled(&format!("{before}%ff{after}"), &statement(1));
        comparison.add(operation, &site.get(&target).await);
    }
    comparison.must_be_complete(&[400, 404]);
}

#[tokio::test]
async fn each_resource_refuses_a_wrong_token_and_a_head_that_is_too_large_as_described() {
    let site = Place::new().start().await;
    let wrong = compare_all(&site, &[("authorization", "Bearer of a wrong token")], "").await;
    wrong.must_be_complete(&[401]);
    let large = "a".repeat(40 << 10);
    compare_all(&site, &[("x-large", &large)], "").await.must_be_complete(&[431]);
    compare_all(&site, &[], &format!("?x={large}")).await.must_be_complete(&[414]);
}

#[tokio::test]
async fn each_resource_answers_a_client_over_its_rate_as_described() {
    let site = Place::new()
        .start_with(|config: &mut Config| {
            let hourly = Rate { period: Duration::from_secs(3600), ..Rate::per_second(1, 1) };
            (config.limits.reads, config.limits.writes) = (hourly, hourly);
        })
        .await;
    site.get("/v1/limits").await;
    site.post(b"").await;
    let comparison = compare_all(&site, &[], "").await;
    comparison.must_be_complete(&[429]);
    assert_eq!(comparison.statuses.len(), 1, "{:?}", comparison.statuses);
}

#[tokio::test]
async fn each_resource_answers_as_described_without_its_database() {
    let store = FailingStore::new(Memory::new());
    let site = Place::new().start_on(store.clone(), |_| {}).await;
    site.registered(&statement(1)).await;
    store.break_down(Fault::Refused);
    compare_all(&site, &[], "").await.must_be_complete(&[200, 503]);
}

#[tokio::test]
async fn a_registration_is_answered_as_described() {
    let site = Place::new().start().await;
    let (one, register) = (statement(1), operation(&Method::POST, "/entries"));
    let mut comparison = Comparison::default();
    for accept in TYPES {
        let headers = [("content-type", COSE), ("accept", accept)];
        let answer = site.send(Method::POST, "/entries", &headers, one.bytes().clone()).await;
        comparison.add(&register, &answer);
    }
    comparison.add(&register, &site.post(b"no statement").await);
    comparison.add(&register, &site.post(&[0; 2 << 20]).await);
    let from_a_page = [("origin", "https://page.example")];
    comparison.add(&register, &site.send(Method::POST, "/entries", &from_a_page, "").await);
    comparison.must_be_complete(&[201, 400, 403, 413]);
}

#[tokio::test]
async fn a_statement_that_waits_is_answered_as_described() {
    let store = FailingStore::new(Memory::new());
    let soon = |config: &mut Config| config.limits.receipt_wait = Duration::from_millis(50);
    let site = Place::new().start_on(store.clone(), soon).await;
    store.hold_commits();
    let one = statement(1);
    let mut comparison = Comparison::default();
    comparison.add(&operation(&Method::POST, "/entries"), &site.register(&one).await);
    for operation in operations().iter().filter(|operation| operation.path.contains("{entry_id}")) {
        comparison.add(operation, &site.get(&filled(&operation.path, &one)).await);
    }
    comparison.must_be_complete(&[202, 204, 404]);
    store.release_commits();
}

#[tokio::test]
async fn a_body_that_does_not_arrive_is_answered_as_described() {
    let soon = |config: &mut Config| config.limits.body_time = Duration::from_millis(50);
    let site = Place::new().start_with(soon).await;
    for operation in operations().iter().filter(|operation| operation.method == Method::POST) {
        let mut stream = TcpStream::connect(site.url.strip_prefix("http://").unwrap()).await.unwrap();
        let types = "Content-Type: multipart/mixed; boundary=x";
        let types = if operation.path.ends_with("/batch") { types } else { "Content-Type: application/cose" };
        let head =
            format!("POST {} HTTP/1.1\r\nHost: x\r\n{types}\r\nContent-Length: 2\r\n\r\n-", operation.path);
        stream.write_all(head.as_bytes()).await.unwrap();
        let mut status_line = [0; 12];
        stream.read_exact(&mut status_line).await.unwrap();
        assert_eq!(&status_line, b"HTTP/1.1 408", "{}", operation.path);
        assert!(operation.responses["408"].is_object(), "{}", operation.path);
    }
}
