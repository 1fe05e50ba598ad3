//! Every error of a listener has problem details with the number of its request and the address of its documentation.

#![allow(clippy::unwrap_used)]

use axum::Router;
use axum::routing::get;
use http::StatusCode;
use serde_json::Value;
use serving::listener::{Listener, ListenerSettings, RunningListener};
use serving::problem::{ErrorDocumentation, JsonProblem, for_every_error};
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpStream;

async fn serve() -> RunningListener {
    let busy = JsonProblem::new(StatusCode::SERVICE_UNAVAILABLE, "busy", "ask again").at("/a").retry_after(2);
    let anonymous = JsonProblem::new(StatusCode::UNAUTHORIZED, "token", "show a token").titled("Who Is It");
    let routes = Router::new()
        .route("/busy", get(|| async { busy }))
        .route("/anonymous", get(|| async { anonymous }))
        .route("/defect", get(|| async { panic!("as a defect would") as &str }))
        .route("/plain", get(|| async { (StatusCode::BAD_REQUEST, "a text of the framework") }))
        .route("/fine", get(|| async { "fine" }));
    let settings = ListenerSettings {
        error_documentation: ErrorDocumentation::parse("https://docs.example/errors").unwrap(),
        ..ListenerSettings::default()
    };
    let listener = Listener::bind(([127, 0, 0, 1], 0).into(), settings).await.unwrap();
    listener.serve(for_every_error(routes, "there is /fine"))
}

/// Sends a request, and returns the head and the body of the response.
async fn request(listener: &RunningListener, line: &str) -> (String, String) {
    let mut stream = TcpStream::connect(listener.address().unwrap()).await.unwrap();
    let head = format!("{line} HTTP/1.1\r\nhost: x\r\nconnection: close\r\n\r\n");
    stream.write_all(head.as_bytes()).await.unwrap();
    let mut response = String::new();
    stream.read_to_string(&mut response).await.unwrap();
    let (head, body) = response.split_once("\r\n\r\n").unwrap();
    (head.to_owned(), body.to_owned())
}

fn field<'h>(head: &'h str, name: &str) -> Option<&'h str> {
    head.lines().find_map(|line| line.strip_prefix(name)?.strip_prefix(": "))
}

#[tokio::test]
async fn errors_of_handlers_of_the_router_and_of_defects_have_one_form() {
    let listener = serve().await;
    for (line, status, title, code) in [
        ("GET /busy", 503, "Service Unavailable", "busy"),
        ("GET /anonymous", 401, "Who Is It", "token"),
        ("GET /defect", 500, "Internal Server Error", "internal"),
        ("GET /plain", 400, "Bad Request", "request-malformed"),
        ("GET /elsewhere", 404, "Not Found", "not-found"),
        ("POST /fine", 405, "Method Not Allowed", "method"),
    ] {
        let (head, body) = request(&listener, line).await;
        assert!(head.starts_with(&format!("HTTP/1.1 {status} ")), "{line}: {head}");
        assert_eq!(field(&head, "content-type"), Some("application/problem+json"), "{line}");
        assert_eq!(field(&head, "content-length"), Some(&*body.len().to_string()), "{line}: {head}");
        let problem: Value = serde_json::from_str(&body).unwrap();
        let number = field(&head, "x-request-id").unwrap();
        assert_eq!(problem["type"], format!("https://docs.example/errors/{code}"), "{line}");
        assert_eq!(problem["instance"], format!("urn:uuid:{number}"), "{line}");
        assert_eq!((&problem["status"], &problem["title"]), (&status.into(), &title.into()), "{line}");
        assert_eq!(problem["code"], code, "{line}");
        assert!(problem["detail"].is_string(), "{line}: {problem}");
        assert_eq!(problem.get("pointer").is_some(), code == "busy", "{line}: {problem}");
        assert_eq!(field(&head, "retry-after").is_some(), code == "busy", "{line}: {head}");
        assert_eq!(field(&head, "www-authenticate").is_some(), status == 401, "{line}: {head}");
        assert_eq!(field(&head, "allow").is_some(), status == 405, "{line}: {head}");
    }
    listener.cut().await;
}

#[tokio::test]
async fn an_answer_that_is_no_error_stays_as_it_is() {
    let listener = serve().await;
    let (head, body) = request(&listener, "GET /fine").await;
    assert!(head.starts_with("HTTP/1.1 200 "), "{head}");
    assert_eq!((field(&head, "content-length"), &*body), (Some("4"), "fine"));
    let (head, body) = request(&listener, "HEAD /elsewhere").await;
    assert!(head.starts_with("HTTP/1.1 404 ") && body.is_empty(), "{head} {body}");
    listener.cut().await;
}
