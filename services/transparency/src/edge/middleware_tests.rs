//! The middleware around minimal routes, over real sockets: limits, response forms, panics, time limits.

use std::net::{Ipv4Addr, SocketAddr};
use std::sync::Arc;
use std::time::Duration;

use axum::Router;
use axum::extract::FromRef;
use axum::routing::{get, post};
use serving::listener::{Listener, ListenerSettings, RunningListener};
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpStream;

use crate::config::AccessConfig;
use crate::edge::body::ReceivedBody;
use crate::edge::media;
use crate::edge::middleware;
use crate::edge::request_parsing::SubmittedStatement;
use crate::edge::state::EdgeState;
use crate::limits::{HYPER_HEAD_BYTES, HYPER_HEADERS, Limits, Rate};
use crate::metrics::Metrics;

#[derive(Clone, FromRef)]
struct Toy(Arc<EdgeState>);

impl AsRef<EdgeState> for Toy {
    fn as_ref(&self) -> &EdgeState {
        &self.0
    }
}

struct Site {
    serving: RunningListener,
    address: SocketAddr,
    edge: Arc<EdgeState>,
}

impl Site {
    async fn open(limits: Limits) -> Self {
        Self::with_doors(limits, AccessConfig::default()).await
    }

    async fn with_doors(limits: Limits, access: AccessConfig) -> Self {
        let edge = Arc::new(EdgeState::new(&limits, &access, Arc::new(Metrics::new().unwrap())));
        let routes = Router::new()
            .route("/entries", post(|body: ReceivedBody| async move { body.bytes }))
            .route("/v1/policy/evaluate", post(|form: SubmittedStatement| async move { form.statement }))
            .route("/v1/policy", get(|| async { "thing" }))
            .route("/tile/{*path}", get(|| async { "tile" }))
            .route("/checkpoint", get(|| async { panic!("a toy broke") as &str }))
            .route("/v1/limits", get(|| async { tokio::time::sleep(Duration::from_millis(300)).await }))
            .with_state(Toy(edge.clone()));
        let here = SocketAddr::from((Ipv4Addr::LOCALHOST, 0));
        let settings = ListenerSettings {
            connections: limits.connections,
            client_connections: limits.connections,
            header_time: limits.header_time,
            headers: HYPER_HEADERS,
            head_bytes: HYPER_HEAD_BYTES,
            refuses_faulty_heads: false,
            ..ListenerSettings::default()
        };
        let listener = Listener::bind(here, settings).await.unwrap();
        let address = listener.address().unwrap();
        Self { serving: listener.serve(middleware::enclose(routes, edge.clone())), address, edge }
    }

    /// Sends raw bytes and reads until the peer closes the connection or is silent for a while.
    async fn raw(&self, bytes: &[u8]) -> Answer {
        let mut stream = TcpStream::connect(self.address).await.unwrap();
        stream.write_all(bytes).await.unwrap();
        let mut answer = Vec::new();
        let _ = tokio::time::timeout(Duration::from_secs(2), stream.read_to_end(&mut answer)).await;
        Answer::parse(&answer)
    }

    async fn get(&self, path: &str, headers: &str) -> Answer {
        self.raw(format!("GET {path} HTTP/1.1\r\nHost: x\r\nConnection: close\r\n{headers}\r\n").as_bytes())
            .await
    }
}

/// A response parsed by hand: the tests do not trust the library under test.
#[derive(Debug)]
struct Answer {
    status: u16,
    head: String,
    body: Vec<u8>,
}

impl Answer {
    fn parse(bytes: &[u8]) -> Self {
        let Some(end) = bytes.windows(4).position(|four| four == b"\r\n\r\n") else {
            return Self { status: 0, head: String::new(), body: Vec::new() };
        };
        let head = String::from_utf8(bytes[..end].to_vec()).unwrap().to_ascii_lowercase();
        let status = head.split(' ').nth(1).unwrap().parse().unwrap();
        Self { status, head, body: bytes[end + 4..].to_vec() }
    }

    fn header(&self, name: &str) -> Option<&str> {
        self.head.lines().find_map(|line| line.strip_prefix(name)?.strip_prefix(": "))
    }

    /// The problem's title, after a check of its form.
    fn title(&self) -> String {
        match self.header("content-type") {
            Some(media::JSON_PROBLEM) => self.title_in_json(),
            _ => self.title_in_cbor(),
        }
    }

    fn title_in_cbor(&self) -> String {
        assert_eq!(self.header("content-type"), Some(media::CONCISE_PROBLEM), "{self:?}");
        let problem = scitt::Problem::parse(&self.body).expect("a problem");
        assert!(!problem.detail.expect("a detail").is_empty());
        assert_eq!(problem.instance, self.request_urn());
        assert_eq!(problem.response_code, None, "-4 is a CoAP code");
        problem.title.expect("a title")
    }

    fn title_in_json(&self) -> String {
        let problem: serde_json::Value = serde_json::from_slice(&self.body).expect("a problem");
        assert!(!problem["detail"].as_str().expect("a detail").is_empty());
        assert_eq!(problem["instance"].as_str().map(str::to_owned), self.request_urn());
        problem["title"].as_str().expect("a title").to_owned()
    }

    /// The request's number, as a problem names it.
    fn request_urn(&self) -> Option<String> {
        self.header("x-request-id").map(|id| format!("urn:uuid:{id}"))
    }
}

fn post_of(length: usize) -> Vec<u8> {
    let head =
        format!("POST /entries HTTP/1.1\r\nHost: x\r\nConnection: close\r\nContent-Length: {length}\r\n\r\n");
    [head.as_bytes(), &vec![b'a'; length]].concat()
}

/// A form with a statement and a payload of so many bytes each.
fn form_of(length: usize) -> Vec<u8> {
    let part = |name: &str| {
        format!("--x\r\nContent-Disposition: form-data; name={name}\r\n\r\n{}\r\n", "a".repeat(length))
    };
    let body = format!("{}{}--x--\r\n", part("statement"), part("payload"));
    let head = "POST /v1/policy/evaluate HTTP/1.1\r\nHost: x\r\nConnection: close\r\n";
    let head =
        format!("{head}Content-Type: multipart/form-data; boundary=x\r\nContent-Length: {}", body.len());
    format!("{head}\r\n\r\n{body}").into_bytes()
}

#[tokio::test]
async fn whatever_the_framework_refuses_has_a_concise_problem_body() {
    let site = Site::open(Limits::default()).await;
    let unknown = site.get("/nothing", "").await;
    assert_eq!((unknown.status, unknown.title().as_str()), (404, "Not Found"));
    let page = site.get("/nothing", "Accept: text/html\r\n").await;
    assert_eq!((page.status, page.header("content-type")), (404, Some(media::HTML)));
    assert!(page.header("content-security-policy").is_some(), "{page:?}");
    let method = site.get("/entries", "").await;
    assert_eq!((method.status, method.title().as_str()), (405, "Method Not Allowed"));
    assert_eq!(method.header("allow"), Some("post"));
    assert_eq!(method.header("server"), Some("tabellion"));
    for method in ["PUT", "DELETE", "PATCH", "OPTIONS", "TRACE"] {
        let request = format!("{method} /entries HTTP/1.1\r\nHost: x\r\nConnection: close\r\n\r\n");
        let refused = site.raw(request.as_bytes()).await;
        assert_eq!((refused.status, refused.title().as_str()), (405, "Method Not Allowed"), "{method}");
    }
    let odd = site.raw(b"BREW /entries HTTP/1.1\r\nHost: x\r\nConnection: close\r\n\r\n").await;
    assert_eq!((odd.status, odd.title().as_str()), (405, "Method Not Allowed"));
}

#[tokio::test]
async fn a_request_names_one_host() {
    let site = Site::open(Limits::default()).await;
    let ask = async |hosts: &str, version: &str| {
        let request = format!("GET /v1/policy HTTP/{version}\r\n{hosts}Connection: close\r\n\r\n");
        site.raw(request.as_bytes()).await
    };
    for host in ["x", "x.example:7390", "my_log:7390", "x:", "127.0.0.1", "[::1]", "[::1]:7390", ""] {
        assert_eq!(ask(&format!("Host: {host}\r\n"), "1.1").await.status, 200, "{host}");
    }
    for host in ["a b", "x/", "https://x", "user@x", "x?y", "x#y", "[::1", "[::1]x", "x:y", "x@x", "\u{e9}"] {
        let refused = ask(&format!("Host: {host}\r\n"), "1.1").await;
        assert_eq!((refused.status, refused.title().as_str()), (400, "Malformed request"), "{host}");
    }
    assert_eq!(ask("Host: x\r\nHost: x\r\n", "1.1").await.status, 400);
    assert_eq!(ask("", "1.1").await.status, 400);
    assert_eq!(ask("", "1.0").await.status, 200);
}

#[tokio::test]
async fn a_page_of_another_site_may_read_what_is_public_and_not_write() {
    let site = Site::open(Limits::default()).await;
    let ask = async |path: &str, method: &str| {
        let head = format!(
            "OPTIONS {path} HTTP/1.1\r\nHost: x\r\nConnection: close\r\nOrigin: https://a.example\r\n"
        );
        let asks = format!(
            "Access-Control-Request-Method: {method}\r\nAccess-Control-Request-Headers: last-event-id\r\n\r\n"
        );
        site.raw(format!("{head}{asks}").as_bytes()).await
    };
    for method in ["GET", "HEAD"] {
        let may = ask("/v1/policy", method).await;
        assert_eq!((may.status, may.body.len()), (204, 0));
        assert!(may.header("ratelimit").is_some() && may.header("ratelimit-policy").is_some(), "{may:?}");
        assert_eq!(may.header("access-control-allow-origin"), Some("*"));
        assert_eq!(may.header("access-control-allow-methods"), Some("get, head"));
        assert_eq!(
            may.header("access-control-allow-headers"),
            Some("authorization, last-event-id, if-none-match, accept")
        );
    }
    for (path, method) in [("/entries", "POST"), ("/v1/policy", "POST"), ("/v1/policy", "")] {
        let may_not = ask(path, method).await;
        assert_eq!(may_not.status, 405, "{method} {path}");
        assert_eq!(may_not.header("access-control-allow-origin"), None, "{method} {path}");
    }
    assert_eq!(ask("/nothing", "GET").await.status, 404);
}

#[tokio::test]
async fn under_v1_a_problem_is_json_unless_the_client_prefers_cbor_and_elsewhere_it_is_cbor() {
    let site = Site::open(Limits::default()).await;
    let json = site.get("/v1/nothing", "").await;
    assert_eq!(json.header("content-type"), Some(media::JSON_PROBLEM));
    let body: serde_json::Value = serde_json::from_slice(&json.body).unwrap();
    assert_eq!((body["status"].as_u64(), body["code"].as_str()), (Some(404), Some("route-unknown")));
    assert_eq!(body["type"], "https://tabellion.dev/errors/route-unknown");
    let cbor = site.get("/v1/nothing", "Accept: application/cbor\r\n").await;
    assert_eq!(cbor.title_in_cbor(), "Not Found");
    assert_eq!(site.get("/nothing", "").await.title_in_cbor(), "Not Found");
    let cbor = site.get("/nothing", "Accept: application/json\r\n").await;
    assert_eq!(cbor.title_in_cbor(), "Not Found");
}

#[tokio::test]
async fn every_response_has_a_request_number_of_its_own() {
    let site = Site::open(Limits::default()).await;
    let mut numbers = Vec::new();
    for path in ["/v1/policy", "/v1/policy", "/nothing", "/checkpoint"] {
        let answer = site.get(path, "X-Request-Id: mine\r\n").await;
        numbers.push(answer.header("x-request-id").unwrap().to_owned());
    }
    assert!(numbers.iter().all(|number| uuid::Uuid::try_parse(number).is_ok()), "{numbers:?}");
    numbers.sort();
    numbers.dedup();
    assert_eq!(numbers.len(), 4);
}

#[tokio::test]
async fn a_read_whose_type_is_not_accepted_is_refused() {
    let site = Site::open(Limits::default()).await;
    let refused = site.get("/v1/policy", "Accept: image/png\r\n").await;
    assert_eq!((refused.status, refused.title_in_json().as_str()), (406, "Not Acceptable"));
    let rate = (refused.header("ratelimit"), refused.header("ratelimit-policy"));
    assert!(rate.0.is_some() && rate.1.is_some(), "the request was counted: {refused:?}");
    assert_eq!(site.get("/v1/policy", "Accept: image/png, */*;q=0.1\r\n").await.status, 200);
    assert_eq!(site.get("/checkpoint", "Accept: image/png\r\n").await.status, 500, "not under /v1");
}

#[tokio::test]
async fn a_panic_costs_one_request() {
    let site = Site::open(Limits::default()).await;
    let broken = site.get("/checkpoint", "").await;
    assert_eq!((broken.status, broken.title().as_str()), (500, "Internal Server Error"));
    assert!(!String::from_utf8_lossy(&broken.body).contains("a toy broke"));
    assert_eq!(site.get("/v1/policy", "").await.status, 200);
}

#[tokio::test]
async fn heads_beyond_our_limits_are_refused_with_a_body() {
    let site = Site::open(Limits::default()).await;
    let many: String = (0..150).map(|n| format!("X-{n}: 1\r\n")).collect();
    let refused = site.get("/v1/policy", &many).await;
    assert_eq!((refused.status, refused.title().as_str()), (431, "Request Header Fields Too Large"));
    let large = format!("X-Large: {}\r\n", "a".repeat(40 << 10));
    let refused = site.get("/v1/policy", &large).await;
    assert_eq!((refused.status, refused.title().as_str()), (431, "Request Header Fields Too Large"));
    let refused = site.get(&format!("/{}", "a".repeat(40 << 10)), "").await;
    assert_eq!((refused.status, refused.title().as_str()), (414, "URI Too Long"));
    let fits: String = (0..90).map(|n| format!("X-{n}: 1\r\n")).collect();
    assert_eq!(site.get("/v1/policy", &fits).await.status, 200);
}

#[tokio::test]
async fn what_hyper_refuses_itself_is_at_least_refused() {
    let site = Site::open(Limits::default()).await;
    let too_many: String = (0..300).map(|n| format!("X-{n}: 1\r\n")).collect();
    assert_eq!(site.get("/v1/policy", &too_many).await.status, 431);
    let long = site.get(&format!("/{}", "a".repeat(64 << 10)), "").await;
    assert_eq!((long.status, long.body.len()), (414, 0));
    assert_eq!(site.raw(b"this is not HTTP\r\n\r\n").await.status, 400);
    assert_eq!(site.get("/v1/policy", "").await.status, 200);
}

#[tokio::test]
async fn bodies_are_bounded_one_by_one() {
    let site = Site::open(Limits { statement_bytes: 1000, ..Limits::default() }).await;
    assert_eq!(site.raw(&post_of(1000)).await.body.len(), 1000);
    let refused = site.raw(&post_of(1001)).await;
    assert_eq!((refused.status, refused.title().as_str()), (413, "Content Too Large"));
    // A client that is still sending can read the response.
    assert_eq!(site.raw(&post_of(2 << 20)).await.status, 413);
    let chunk = format!("1f4\r\n{}\r\n", "a".repeat(500));
    let head = "POST /entries HTTP/1.1\r\nHost: x\r\nConnection: close\r\nTransfer-Encoding: chunked\r\n\r\n";
    let two = format!("{head}{chunk}{chunk}0\r\n\r\n");
    assert!(site.raw(two.as_bytes()).await.status == 200);
    let three = format!("{head}{chunk}{chunk}{chunk}0\r\n\r\n");
    assert_eq!(site.raw(three.as_bytes()).await.status, 413);
}

#[tokio::test]
async fn a_body_with_a_content_coding_is_refused_with_the_one_that_is_accepted() {
    let site = Site::open(Limits::default()).await;
    let coded = async |coding: &str| {
        let head = format!(
            "POST /entries HTTP/1.1\r\nHost: x\r\nConnection: close\r\nContent-Encoding: {coding}\r\n"
        );
        site.raw(format!("{head}Content-Length: 2\r\n\r\n{{}}").as_bytes()).await
    };
    for coding in ["gzip", "identity, br"] {
        let refused = coded(coding).await;
        assert_eq!((refused.status, refused.title().as_str()), (415, "Unsupported Media Type"), "{coding}");
        assert_eq!(refused.header("accept-encoding"), Some("identity"), "{coding}");
    }
    assert_eq!(coded("identity").await.status, 200);
}

#[tokio::test]
async fn a_body_with_another_transfer_coding_is_refused_and_ends_the_connection() {
    let site = Site::open(Limits::default()).await;
    for (codings, status, title) in [
        ("gzip, chunked", 501, "Not Implemented"),
        ("gzip\r\nTransfer-Encoding: chunked", 501, "Not Implemented"),
        ("chunked, chunked", 400, "Malformed request"),
    ] {
        let head = format!("POST /entries HTTP/1.1\r\nHost: x\r\nTransfer-Encoding: {codings}\r\n\r\n");
        let refused = site.raw(format!("{head}0\r\n\r\n").as_bytes()).await;
        assert_eq!((refused.status, refused.title_in_cbor().as_str()), (status, title), "{codings}");
        assert_eq!(refused.header("connection"), Some("close"), "{codings}");
        assert_eq!(refused.header("server"), Some("tabellion"), "{codings}");
    }
}

#[tokio::test]
async fn a_client_that_asks_first_is_told_before_it_sends() {
    let site = Site::open(Limits { statement_bytes: 1000, ..Limits::default() }).await;
    let head = "POST /entries HTTP/1.1\r\nHost: x\r\nExpect: 100-continue\r\nConnection: close\r\n";
    let refused = site.raw(format!("{head}Content-Length: 1001\r\n\r\n").as_bytes()).await;
    assert_eq!(refused.status, 413, "and not 100");
}

#[tokio::test]
async fn bodies_share_one_budget_and_give_it_back() {
    let site = Site::open(Limits { bodies_in_flight_bytes: 1000, ..Limits::default() }).await;
    let mut held = TcpStream::connect(site.address).await.unwrap();
    let whole = post_of(900);
    held.write_all(&whole[..whole.len() - 1]).await.unwrap();
    tokio::time::sleep(Duration::from_millis(100)).await;
    let refused = site.raw(&post_of(200)).await;
    assert_eq!((refused.status, refused.title().as_str()), (503, "Service Unavailable"));
    assert_eq!(refused.header("retry-after"), Some("1"));
    drop(held);
    tokio::time::sleep(Duration::from_millis(100)).await;
    assert_eq!(site.raw(&post_of(900)).await.status, 200);
}

#[tokio::test]
async fn a_client_that_only_announces_a_large_body_holds_nothing() {
    let site = Site::open(Limits { bodies_in_flight_bytes: 1000, ..Limits::default() }).await;
    let mut held = TcpStream::connect(site.address).await.unwrap();
    held.write_all(b"POST /entries HTTP/1.1\r\nHost: x\r\nContent-Length: 900\r\n\r\n").await.unwrap();
    tokio::time::sleep(Duration::from_millis(50)).await;
    assert_eq!(site.raw(&post_of(900)).await.status, 200);
}

#[tokio::test]
async fn a_form_of_two_largest_parts_has_room() {
    let limits = Limits { statement_bytes: 10_000, batch_bytes: 1, ..Limits::default() };
    let site = Site::open(Limits { bodies_in_flight_bytes: 30_000, ..limits }).await;
    let whole = site.raw(&form_of(10_000)).await;
    assert_eq!((whole.status, whole.body.len()), (200, 10_000), "{whole:?}");
}

#[tokio::test]
async fn the_largest_body_of_a_reload_has_room() {
    let small = Limits { statement_bytes: 100, batch_bytes: 100, ..Limits::default() };
    let site = Site::open(Limits { bodies_in_flight_bytes: 100_000, ..small }).await;
    let raised = Limits { statement_bytes: 40_000, batch_bytes: 100, ..Limits::default() };
    site.edge.reload(&raised, &AccessConfig::default());
    assert_eq!(site.raw(&post_of(40_000)).await.status, 200);
    assert_eq!(site.raw(&form_of(40_000)).await.status, 200);
}

#[tokio::test]
async fn a_body_that_the_memory_for_bodies_can_never_hold_is_too_large() {
    let small = Limits { statement_bytes: 1000, batch_bytes: 100, ..Limits::default() };
    let site = Site::open(Limits { bodies_in_flight_bytes: 1500, ..small }).await;
    assert_eq!(site.raw(&form_of(1000)).await.status, 413);
    let raised = Limits { statement_bytes: 2000, bodies_in_flight_bytes: 10_000, ..Limits::default() };
    site.edge.reload(&raised, &AccessConfig::default());
    assert_eq!(
        site.raw(&post_of(2000)).await.status,
        413,
        "the memory for bodies is what it was at the start"
    );
}

#[tokio::test]
async fn slow_bodies_and_cut_bodies_are_refused() {
    let limits = Limits { body_time: Duration::from_millis(200), ..Limits::default() };
    let site = Site::open(limits).await;
    let whole = post_of(100);
    let slow = site.raw(&whole[..whole.len() - 1]).await;
    assert_eq!((slow.status, slow.title().as_str()), (408, "Request Timeout"));
    let mut cut = TcpStream::connect(site.address).await.unwrap();
    cut.write_all(&whole[..whole.len() - 1]).await.unwrap();
    cut.shutdown().await.unwrap();
    let mut answer = Vec::new();
    cut.read_to_end(&mut answer).await.unwrap();
    let answer = Answer::parse(&answer);
    assert!(answer.status == 400 || answer.status == 0, "{answer:?}");
}

#[tokio::test]
async fn a_head_that_never_ends_closes_the_connection() {
    let limits = Limits { header_time: Duration::from_millis(200), ..Limits::default() };
    let site = Site::open(limits).await;
    let served = "GET /v1/policy HTTP/1.1\r\nHost: x\r\n\r\n";
    for start in ["", "GET /v1/policy HTTP/1.1\r\nX-Slow: ", served] {
        let mut stream = TcpStream::connect(site.address).await.unwrap();
        stream.write_all(start.as_bytes()).await.unwrap();
        let mut answer = Vec::new();
        let closed = tokio::time::timeout(Duration::from_secs(2), stream.read_to_end(&mut answer)).await;
        assert!(closed.is_ok(), "still open after {start:?}");
    }
}

#[tokio::test]
async fn the_rate_limit_answers_429_with_retry_after() {
    let site = Site::open(Limits { reads: Rate::per_second(1, 3), ..Limits::default() }).await;
    let mut statuses = Vec::new();
    for _ in 0..4 {
        statuses.push(site.get("/v1/policy", "").await);
    }
    assert_eq!(statuses.iter().map(|answer| answer.status).collect::<Vec<_>>(), [200, 200, 200, 429]);
    assert_eq!(statuses[3].title(), "Too Many Requests");
    assert_eq!(statuses[3].header("retry-after"), Some("1"));
    assert_eq!(statuses[3].header("ratelimit-policy"), Some("\"reads\";q=3;w=3"));
    let left: Vec<_> = statuses.iter().map(|answer| answer.header("ratelimit").unwrap()).collect();
    assert_eq!(left, ["\"reads\";r=2", "\"reads\";r=1", "\"reads\";r=0", "\"reads\";r=0;t=1"]);
    assert_eq!(site.raw(&post_of(1)).await.status, 200, "writes are counted apart");
}

#[tokio::test]
async fn a_request_that_panics_or_takes_too_long_is_not_counted() {
    let hourly = Rate { period: Duration::from_secs(3600), ..Rate::per_second(1, 1) };
    for (path, status) in [("/checkpoint", 500), ("/v1/limits", 503)] {
        let (body_time, request_time) = (Duration::from_millis(50), Duration::from_millis(50));
        let site = Site::open(Limits { reads: hourly, body_time, request_time, ..Limits::default() }).await;
        let failed = site.get(path, "").await;
        assert_eq!((failed.status, failed.header("ratelimit")), (status, Some("\"reads\";r=0")), "{path}");
        let statuses = [site.get("/v1/policy", "").await.status, site.get("/v1/policy", "").await.status];
        assert_eq!(statuses, [200, 429], "{path}");
    }
}

#[tokio::test]
async fn a_required_token_opens_the_door_for_writes_and_reads_stay_open() {
    let token = crate::config::ClientToken::new("ci", "0123456789abcdef");
    let access = AccessConfig { tokens: vec![token], token_required: true, ..AccessConfig::default() };
    let site = Site::with_doors(Limits::default(), access).await;
    let with = |header: &str| {
        format!("POST /entries HTTP/1.1\r\nHost: x\r\nConnection: close\r\nContent-Length: 0\r\n{header}\r\n")
            .into_bytes()
    };
    for header in ["", "Authorization: Bearer wrong\r\n", "Authorization: Basic 0123456789abcdef\r\n"] {
        let refused = site.raw(&with(header)).await;
        assert_eq!((refused.status, refused.title().as_str()), (401, "Unauthorized"));
        assert_eq!(refused.header("www-authenticate"), Some("bearer"));
    }
    assert_eq!(site.raw(&with("Authorization: bearer 0123456789abcdef\r\n")).await.status, 200);
    assert_eq!(site.get("/v1/policy", "").await.status, 200);
}

#[tokio::test]
async fn public_reads_are_for_every_origin_and_writes_for_none() {
    let site = Site::open(Limits::default()).await;
    let read = site.get("/v1/policy", "Origin: https://elsewhere.example\r\n").await;
    assert_eq!(read.header("access-control-allow-origin"), Some("*"));
    assert_eq!(read.header("access-control-allow-credentials"), None);
    assert_eq!(site.raw(&post_of(1)).await.header("access-control-allow-origin"), None);
}

#[tokio::test]
async fn what_a_browser_opened_itself_may_be_read_by_every_origin_from_its_cache() {
    let site = Site::open(Limits::default()).await;
    let opened = site.get("/tile/0/000", "Accept: text/html,*/*;q=0.8\r\n").await;
    assert_eq!((opened.status, opened.header("access-control-allow-origin")), (200, Some("*")));
    let page = site.get("/ui/nothing", "Accept: text/html,*/*;q=0.8\r\n").await;
    assert_eq!((page.status, page.header("access-control-allow-origin")), (404, None));
}

#[tokio::test]
async fn a_stop_lets_requests_in_flight_finish() {
    let site = Site::open(Limits::default()).await;
    let mut stream = TcpStream::connect(site.address).await.unwrap();
    stream.write_all(b"GET /v1/limits HTTP/1.1\r\nHost: x\r\n\r\n").await.unwrap();
    tokio::time::sleep(Duration::from_millis(50)).await;
    let address = site.address;
    let drained = tokio::spawn(site.serving.drain());
    let mut answer = Vec::new();
    stream.read_to_end(&mut answer).await.unwrap();
    assert_eq!(Answer::parse(&answer).status, 200);
    drained.await.unwrap();
    assert!(TcpStream::connect(address).await.is_err(), "no new connections");
}

#[tokio::test]
async fn a_reload_changes_the_limits_of_the_next_request() {
    let site = Site::open(Limits::default()).await;
    let smaller = Limits { statement_bytes: 10, ..Limits::default() };
    site.edge.reload(&smaller, &AccessConfig::default());
    assert_eq!(site.raw(&post_of(11)).await.status, 413);
}
