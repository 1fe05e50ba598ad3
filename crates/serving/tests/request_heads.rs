//! A request whose head is faulty is refused by the listener, and its service does not see it.

#![allow(clippy::unwrap_used)]

use std::time::Duration;

use axum::Router;
use axum::routing::get;
use serde_json::Value;
use serving::listener::{Listener, ListenerSettings, RunningListener};
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpStream;
use tokio::time::timeout;

/// Longer than all that a test waits for.
const PATIENCE: Duration = Duration::from_secs(30);
/// A second request on a connection.
const SECOND: &str = "GET / HTTP/1.1\r\nhost: x\r\n\r\n";

async fn serve() -> RunningListener {
    let routes =
        Router::new().route("/", get(|| async { "served" }).post(|body: String| async move { body }));
    let listener = Listener::bind(([127, 0, 0, 1], 0).into(), ListenerSettings::default());
    listener.await.unwrap().serve(routes)
}

/// Sends these bytes, and returns everything that comes until the server ends the connection.
async fn exchange(listener: &RunningListener, bytes: &str) -> String {
    let talking = async {
        let mut stream = TcpStream::connect(listener.address().unwrap()).await.unwrap();
        stream.write_all(bytes.as_bytes()).await.unwrap();
        let mut received = String::new();
        stream.read_to_string(&mut received).await.unwrap();
        received
    };
    timeout(PATIENCE, talking).await.expect("the server ends the connection")
}

/// Returns the status and the code of a refusal, after a check that it is the only response.
fn refusal(received: &str) -> (u64, String) {
    let (head, body) = received.split_once("\r\n\r\n").unwrap();
    assert!(head.contains("\r\ncontent-type: application/problem+json"), "{received}");
    assert!(head.contains("\r\nx-request-id: "), "{received}");
    // A second response would follow the JSON.
    let problem: Value = serde_json::from_str(body).expect("one problem and nothing else");
    let status = problem["status"].as_u64().unwrap();
    assert!(head.starts_with(&format!("HTTP/1.1 {status} ")), "{received}");
    (status, problem["code"].as_str().unwrap().to_owned())
}

#[tokio::test]
async fn a_request_names_one_host() {
    let listener = serve().await;
    let request = async |fields: &str, version: &str| {
        exchange(&listener, &format!("GET / HTTP/{version}\r\n{fields}connection: close\r\n\r\n")).await
    };
    for host in ["x", "x.example:7390", "127.0.0.1", "[::1]:7390", ""] {
        let served = request(&format!("host: {host}\r\n"), "1.1").await;
        assert!(served.starts_with("HTTP/1.1 200 "), "{host}: {served}");
    }
    for fields in ["", "host: a b\r\n", "host: x/\r\n", "host: user@x\r\n", "host: x\r\nhost: x\r\n"] {
        assert_eq!(refusal(&request(fields, "1.1").await), (400, "host".to_owned()), "{fields}");
    }
    assert!(request("", "1.0").await.starts_with("HTTP/1.0 200 "));
    listener.cut().await;
}

#[tokio::test]
async fn a_body_with_another_transfer_coding_is_refused_and_ends_the_connection() {
    let listener = serve().await;
    for (codings, status) in [
        ("gzip, chunked", 501),
        ("gzip\r\ntransfer-encoding: chunked", 501),
        ("identity, chunked", 501),
        ("chunked, chunked", 400),
        ("chunked\r\ntransfer-encoding: chunked", 400),
        (", chunked", 400),
    ] {
        let head = format!("POST / HTTP/1.1\r\nhost: x\r\ntransfer-encoding: {codings}\r\n\r\n");
        let received = exchange(&listener, &format!("{head}0\r\n\r\n{SECOND}")).await;
        assert_eq!(refusal(&received), (status, "transfer-coding".to_owned()), "{codings}");
        assert!(received.contains("\r\nconnection: close\r\n"), "{codings}: {received}");
    }
    listener.cut().await;
}

#[tokio::test]
async fn a_body_in_chunks_is_read() {
    let listener = serve().await;
    let head = "POST / HTTP/1.1\r\nhost: x\r\nconnection: close\r\ntransfer-encoding: Chunked\r\n\r\n";
    let received = exchange(&listener, &format!("{head}5\r\nhello\r\n0\r\n\r\n")).await;
    assert!(received.starts_with("HTTP/1.1 200 ") && received.ends_with("\r\n\r\nhello"), "{received}");
    listener.cut().await;
}

/// RFC 9112, section 6.3. hyper does this by itself, and does not tell the listener that there was a length.
#[tokio::test]
async fn a_request_with_chunks_and_a_length_is_read_by_its_chunks_and_is_the_last_of_its_connection() {
    let listener = serve().await;
    let (length, chunks) = ("content-length: 5\r\n", "transfer-encoding: chunked\r\n");
    for fields in [format!("{length}{chunks}"), format!("{chunks}{length}")] {
        let head = format!("POST / HTTP/1.1\r\nhost: x\r\n{fields}\r\n");
        let received = exchange(&listener, &format!("{head}0\r\n\r\n{SECOND}")).await;
        assert!(received.starts_with("HTTP/1.1 200 "), "{fields}: {received}");
        assert_eq!(received.matches("HTTP/1.1 ").count(), 1, "{fields}: {received}");
    }
    listener.cut().await;
}

/// RFC 9112, sections 6.1 and 6.3. hyper does this by itself, without problem details.
#[tokio::test]
async fn a_body_whose_end_cannot_be_known_is_refused_and_ends_the_connection() {
    let listener = serve().await;
    for (version, fields) in [
        ("1.1", "transfer-encoding: gzip\r\n"),
        ("1.1", "transfer-encoding: chunked, gzip\r\n"),
        ("1.0", "transfer-encoding: chunked\r\n"),
        ("1.1", "content-length: 5\r\ncontent-length: 6\r\n"),
    ] {
        let head = format!("POST / HTTP/{version}\r\nhost: x\r\n{fields}\r\n");
        let received = exchange(&listener, &format!("{head}0\r\n\r\n{SECOND}")).await;
        assert!(received.contains(" 400 ") && !received.contains(" 200 "), "{fields}: {received}");
    }
    listener.cut().await;
}
