//! Every response of a listener has a number of its own, which the handler knows, too.

#![allow(clippy::unwrap_used)]

use axum::Router;
use axum::extract::Extension;
use axum::routing::get;
use serving::listener::{Listener, ListenerSettings, RunningListener};
use serving::request_id::RequestId;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpStream;

/// A number that a client claims, and one that a handler sets: neither is used.
const FOREIGN: &str = "00000000-0000-4000-8000-000000000000";

async fn serve() -> RunningListener {
    let routes = Router::new()
        .route("/number", get(|Extension(id): Extension<RequestId>| async move { id.to_string() }))
        .route("/own", get(|| async { [("x-request-id", FOREIGN)] }));
    let address = ([127, 0, 0, 1], 0).into();
    Listener::bind(address, ListenerSettings::default()).await.unwrap().serve(routes)
}

/// Sends a request, and returns the number in the response, and the whole response.
async fn request(listener: &RunningListener, path: &str) -> (String, String) {
    let mut stream = TcpStream::connect(listener.address().unwrap()).await.unwrap();
    let head =
        format!("GET {path} HTTP/1.1\r\nhost: x\r\nconnection: close\r\nx-request-id: {FOREIGN}\r\n\r\n");
    stream.write_all(head.as_bytes()).await.unwrap();
    let mut response = String::new();
    stream.read_to_string(&mut response).await.unwrap();
    let mut numbers = response.lines().filter_map(|line| line.strip_prefix("x-request-id: "));
    let number = numbers.next().unwrap_or_else(|| panic!("no number: {response}")).to_owned();
    assert_eq!(numbers.next(), None, "there is one number: {response}");
    (number, response)
}

#[tokio::test]
async fn every_response_has_one_number_of_its_own_also_an_error() {
    let listener = serve().await;
    let mut numbers = vec![FOREIGN.to_owned()];
    for path in ["/own", "/own", "/number", "/no-such-page"] {
        let (number, response) = request(&listener, path).await;
        assert!(!numbers.contains(&number), "{response}");
        assert_eq!(response.starts_with("HTTP/1.1 404"), path == "/no-such-page", "{response}");
        numbers.push(number);
    }
    listener.cut().await;
}

#[tokio::test]
async fn a_handler_knows_the_number_of_its_request() {
    let listener = serve().await;
    let (number, response) = request(&listener, "/number").await;
    assert!(response.ends_with(&format!("\r\n\r\n{number}")), "{response}");
    listener.cut().await;
}
