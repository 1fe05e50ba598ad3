//! One client that takes all it can get, and an honest one beside it that must notice nothing.

use std::net::SocketAddr;
use std::time::Duration;

use crate::common::{Place, Site};
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::{TcpSocket, TcpStream};
use transparency::{ClientToken, Config};

/// The honest client has 127.0.0.1.
const ATTACKER: [u8; 4] = [127, 0, 0, 66];
const SOON: Duration = Duration::from_secs(10);

/// A connection from the attacker's address.
async fn attacker(site: &Site) -> TcpStream {
    let socket = TcpSocket::new_v4().unwrap();
    socket.bind(SocketAddr::from((ATTACKER, 0))).unwrap();
    let address = site.url.strip_prefix("http://").unwrap().parse().unwrap();
    socket.connect(address).await.unwrap()
}

/// Sends a body of so many bytes but for its last one, and waits until the service has taken what there is.
async fn all_but_one_byte(site: &Site, path: &str, content_type: &str, bytes: usize) -> TcpStream {
    let mut stream = attacker(site).await;
    let head = format!(
        "POST {path} HTTP/1.1\r\nHost: x\r\nContent-Type: {content_type}\r\nContent-Length: {bytes}\r\n\r\n"
    );
    stream.write_all(head.as_bytes()).await.unwrap();
    // What does not fit is refused meanwhile, and then nobody reads on.
    let _ = tokio::time::timeout(Duration::from_secs(1), stream.write_all(&vec![b'-'; bytes - 1])).await;
    stream
}

/// A request on a new connection; the status, or `None` if the connection was cut.
async fn one_request(stream: &mut TcpStream) -> Option<String> {
    stream.write_all(b"GET /checkpoint HTTP/1.1\r\nHost: x\r\n\r\n").await.ok()?;
    let mut answer = vec![0; 4096];
    let read =
        tokio::time::timeout(SOON, stream.read(&mut answer)).await.expect("an answer or an end").ok()?;
    let line = String::from_utf8_lossy(&answer[..read]).lines().next().map(str::to_owned);
    line.filter(|line| !line.is_empty())
}

#[tokio::test(flavor = "multi_thread")]
async fn bodies_that_never_end_keep_no_other_client_from_registering() {
    let place = Place::new();
    let site = place
        .start_with(|config: &mut Config| {
            config.limits.bodies_in_flight_bytes = 4 << 20;
            config.limits.batch_bytes = 1 << 20;
            config.limits.statement_bytes = 256 << 10;
        })
        .await;
    let mut held = Vec::new();
    for _ in 0..6 {
        let batch = "multipart/mixed; boundary=x";
        held.push(all_but_one_byte(&site, "/v1/entries/batch", batch, 1 << 20).await);
    }
    for n in 0..20 {
        let large = testkit::opaque(&format!("honest-{n}"), &serde_json::json!({ "x": "y".repeat(100_000) }));
        site.registered(&large).await;
    }
    drop(held);
}

#[tokio::test(flavor = "multi_thread")]
async fn connections_that_stay_open_keep_nobody_out_not_even_their_own_address() {
    let place = Place::new();
    let site = place.start_with(|config| config.limits.connections = 16).await;
    site.registered(&testkit::opaque("first", &serde_json::json!({}))).await;
    let mut held = Vec::new();
    for _ in 0..64 {
        let mut stream = attacker(&site).await;
        one_request(&mut stream).await.expect("a newcomer is served, in the place of an older connection");
        held.push(stream);
    }
    for _ in 0..20 {
        let client = crate::common::client();
        let checkpoint = client.get(format!("{}/checkpoint", site.url)).send().await.unwrap();
        assert_eq!(checkpoint.status(), 200);
    }
    let mut cut = 0;
    for stream in &mut held {
        cut += usize::from(one_request(stream).await.is_none());
    }
    assert!(cut >= 60, "one address has a quarter of 16 places; {cut} of 64 connections were cut");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_client_with_a_token_has_room_when_strangers_hold_all_memory_for_bodies() {
    const TOKEN: &str = "client-of-these-tests";
    let place = Place::new();
    let site = place
        .start_with(|config| {
            config.limits.bodies_in_flight_bytes = 1 << 20;
            config.limits.batch_bytes = 1 << 20;
            config.limits.statement_bytes = 128 << 10;
            config.access.tokens = vec![ClientToken::new("client", TOKEN)];
        })
        .await;
    // The share of one address is no less than one batch: here it is everything.
    let _held = all_but_one_byte(&site, "/v1/entries/batch", "multipart/mixed; boundary=x", 1 << 20).await;
    site.until_metrics_have(&format!("tabellion_request_body_bytes {}", (1 << 20) - 1)).await;
    let large = testkit::opaque("large", &serde_json::json!({ "x": "y".repeat(50_000) }));
    let bearer = format!("Bearer {TOKEN}");
    let headers = [("content-type", crate::common::COSE), ("authorization", &*bearer)];
    let with_token = site.send(http::Method::POST, "/entries", &headers, large.bytes().clone()).await;
    assert_eq!(with_token.status, 201, "{with_token:?}");
    assert_eq!(site.register(&large).await.status, 503, "strangers share what is left, which is nothing");
}
