//! Delivery over HTTP to a local receiver, with the time set by the test.

use std::sync::{Arc, Mutex};

use axum::Router;
use axum::body::Bytes;
use axum::extract::State;
use axum::response::{IntoResponse, Response};
use axum::routing::post;
use http::{HeaderMap, StatusCode};
use serde_json::json;

use super::*;

const NOW: u64 = 1_790_000_000;
const DAY: u64 = 24 * 3600;

/// A receiver that sends the given responses, then 204, and records the requests.
#[derive(Clone, Default)]
struct Receiver {
    answers: Arc<Mutex<Vec<(StatusCode, &'static str)>>>,
    came: Arc<Mutex<Vec<(HeaderMap, Bytes)>>>,
}

impl Receiver {
    async fn answering(answers: &[(StatusCode, &'static str)]) -> (Self, String) {
        let receiver = Self::default();
        receiver.answers.lock().unwrap().extend(answers.iter().rev());
        let routes = Router::new().route("/hook", post(receive)).with_state(receiver.clone());
        let listener = tokio::net::TcpListener::bind("127.0.0.1:0").await.unwrap();
        let url = format!("http://{}/hook", listener.local_addr().unwrap());
        tokio::spawn(async move { axum::serve(listener, routes).await });
        (receiver, url)
    }

    fn came(&self) -> Vec<(HeaderMap, Bytes)> {
        self.came.lock().unwrap().clone()
    }
}

async fn receive(State(receiver): State<Receiver>, headers: HeaderMap, body: Bytes) -> Response {
    receiver.came.lock().unwrap().push((headers, body));
    let answer = receiver.answers.lock().unwrap().pop();
    let (status, retry_after) = answer.unwrap_or((StatusCode::NO_CONTENT, ""));
    match retry_after {
        "" => status.into_response(),
        other => (status, [("retry-after", other), ("location", other)]).into_response(),
    }
}

fn target(url: &str) -> WebhookReceiver {
    WebhookReceiver { url: url.to_owned(), allow_private: true, secret: None }
}

fn webhooks(state: &Path, targets: Vec<WebhookReceiver>) -> Webhooks {
    Webhooks::new(state, WebhookKey::generate().unwrap(), targets).unwrap()
}

#[tokio::test]
async fn a_message_arrives_once_with_a_signature_that_the_public_key_verifies() {
    let state = tempfile::tempdir().unwrap();
    let (receiver, url) = Receiver::answering(&[]).await;
    let secret = Some("whsec_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw".parse().unwrap());
    let webhooks = webhooks(state.path(), vec![WebhookReceiver { secret, ..target(&url) }]);
    webhooks.enqueue("msg_1", "monitor.alarm.raised", NOW, &json!({ "kind": "split-view" })).unwrap();
    assert_eq!(webhooks.pass(NOW).await, Pass { delivered: 1, ..Pass::default() });
    assert_eq!(webhooks.pass(NOW + DAY).await, Pass::default());

    let came = receiver.came();
    let [(headers, body)] = &came[..] else { panic!("{came:?}") };
    let header = |name: &str| headers[name].to_str().unwrap();
    assert_eq!(header("webhook-id"), "msg_1");
    let timestamp: u64 = header("webhook-timestamp").parse().unwrap();
    let message = WebhookMessage { id: "msg_1", timestamp, body };
    assert!(webhooks.public_key().verifies(message, header("webhook-signature")));
    let shared: SharedSecret = "whsec_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw".parse().unwrap();
    assert!(header("webhook-signature").ends_with(&shared.sign(message)));
    let body: serde_json::Value = serde_json::from_slice(body).unwrap();
    assert_eq!(body["type"], "monitor.alarm.raised");
    assert_eq!(body["data"]["kind"], "split-view");
    assert_eq!(body["timestamp"], "2026-09-21T14:13:20Z");
}

#[tokio::test]
async fn r48_a_receiver_that_answers_500_gets_the_message_later_under_the_same_id() {
    let state = tempfile::tempdir().unwrap();
    let down = (StatusCode::INTERNAL_SERVER_ERROR, "");
    let (receiver, url) = Receiver::answering(&[down, down]).await;
    let webhooks = webhooks(state.path(), vec![target(&url)]);
    webhooks.enqueue("msg_1", "x", NOW, &json!({})).unwrap();
    let failed = Pass { failed: 1, ..Pass::default() };
    assert_eq!(webhooks.pass(NOW).await, failed);
    assert_eq!(webhooks.pass(NOW).await, Pass::default(), "it is not due yet");
    assert_eq!(webhooks.pass(NOW + 10).await, failed);
    assert_eq!(webhooks.pass(NOW + 60).await, Pass { delivered: 1, ..Pass::default() });
    let came = receiver.came();
    assert_eq!(came.len(), 3);
    assert!(came.iter().all(|(headers, _)| headers["webhook-id"] == "msg_1"));
    let verified = came.iter().all(|(headers, body)| {
        let timestamp = headers["webhook-timestamp"].to_str().unwrap().parse().unwrap();
        let message = WebhookMessage { id: "msg_1", timestamp, body };
        webhooks.public_key().verifies(message, headers["webhook-signature"].to_str().unwrap())
    });
    assert!(verified, "each attempt has a time and a signature of its own");
}

#[tokio::test]
async fn r48_a_day_without_an_answer_is_the_end_and_a_restart_within_it_is_not() {
    let state = tempfile::tempdir().unwrap();
    let closed = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
    let url = format!("http://{}/hook", closed.local_addr().unwrap());
    drop(closed);
    webhooks(state.path(), vec![target(&url)]).enqueue("msg_1", "x", NOW, &json!({})).unwrap();
    let mut now = NOW;
    let mut attempts = 0;
    loop {
        let webhooks = webhooks(state.path(), vec![target(&url)]);
        match webhooks.pass(now).await {
            Pass { failed: 1, .. } => attempts += 1,
            Pass { given_up: 1, .. } => break,
            other => panic!("{other:?}"),
        }
        now = webhooks.next_at().unwrap();
        assert!(now < NOW + DAY + 5 * 3600, "it goes on for ever");
    }
    assert!(now >= NOW + DAY && attempts > 10, "{attempts} attempts in {} s", now - NOW);
    assert_eq!(webhooks(state.path(), vec![]).waiting(), 0);
}

#[tokio::test]
async fn one_receiver_that_is_down_keeps_nothing_from_another_and_one_bad_message_nothing_from_the_next() {
    let state = tempfile::tempdir().unwrap();
    let busy = (StatusCode::SERVICE_UNAVAILABLE, "120");
    let (down, down_url) = Receiver::answering(&[busy]).await;
    let (picky, picky_url) = Receiver::answering(&[(StatusCode::BAD_REQUEST, "")]).await;
    let webhooks = webhooks(state.path(), vec![target(&down_url), target(&picky_url)]);
    webhooks.enqueue("msg_1", "x", NOW, &json!({})).unwrap();
    webhooks.enqueue("msg_2", "x", NOW + 1, &json!({})).unwrap();
    assert_eq!(webhooks.pass(NOW + 1).await, Pass { delivered: 1, failed: 2, given_up: 0 });
    assert_eq!(down.came().len(), 1, "what is down is not asked twice");
    assert_eq!(picky.came().len(), 2);
    let waits = webhooks.queue.all().unwrap();
    assert!(waits.iter().any(|message| message.next_at >= NOW + 121), "Retry-After is a minimum: {waits:?}");
    assert!(waits.iter().any(|message| message.problem.as_deref() == Some("answered 400 Bad Request")));
    webhooks.pass(NOW + 2).await;
    assert_eq!(down.came().len(), 1, "nor for its next message before its time");
}

#[tokio::test]
async fn a_receiver_may_name_the_time_as_a_date() {
    let state = tempfile::tempdir().unwrap();
    let busy = (StatusCode::SERVICE_UNAVAILABLE, "Fri, 31 Dec 9999 23:59:59 GMT");
    let (_, url) = Receiver::answering(&[busy]).await;
    let webhooks = webhooks(state.path(), vec![target(&url)]);
    webhooks.enqueue("msg_1", "x", NOW, &json!({})).unwrap();
    assert_eq!(webhooks.pass(NOW).await, Pass { failed: 1, ..Pass::default() });
    assert_eq!(webhooks.next_at(), Some(NOW + WEBHOOK_RETRY_LONGEST.as_secs()), "a wait has a maximum");
}

#[tokio::test]
async fn a_redirect_is_not_followed() {
    let state = tempfile::tempdir().unwrap();
    let (elsewhere, elsewhere_url) = Receiver::answering(&[]).await;
    let location: &'static str = Box::leak(elsewhere_url.into_boxed_str());
    let (_, url) = Receiver::answering(&[(StatusCode::TEMPORARY_REDIRECT, location)]).await;
    let webhooks = webhooks(state.path(), vec![target(&url)]);
    webhooks.enqueue("msg_1", "x", NOW, &json!({})).unwrap();
    assert_eq!(webhooks.pass(NOW).await, Pass { failed: 1, ..Pass::default() });
    assert!(elsewhere.came().is_empty());
}

#[test]
fn an_address_that_is_not_public_is_refused_before_anything_is_sent() {
    let state = tempfile::tempdir().unwrap();
    let open = |url: &str| {
        let target = WebhookReceiver { allow_private: false, ..target(url) };
        Webhooks::new(state.path(), WebhookKey::generate().unwrap(), vec![target]).err()
    };
    assert!(matches!(open("https://127.0.0.1/x"), Some(SetupError::Private { .. })));
    assert!(matches!(open("https://[fd00::1]/x"), Some(SetupError::Private { .. })));
    assert!(matches!(open("http://hooks.example/x"), Some(SetupError::Plaintext(_))));
    assert!(matches!(open("ftp://hooks.example/x"), Some(SetupError::NotAUrl(_))));
    assert!(matches!(open("https://me:secret@hooks.example/x"), Some(SetupError::Credentials(_))));
    assert!(open("https://hooks.example/x").is_none());
}

#[tokio::test]
async fn a_name_that_means_this_machine_is_refused_when_the_connection_is_made() {
    let state = tempfile::tempdir().unwrap();
    let (receiver, url) = Receiver::answering(&[]).await;
    let port = url.trim_start_matches("http://127.0.0.1:").trim_end_matches("/hook");
    let url = format!("https://localhost:{port}/hook");
    let webhooks = webhooks(state.path(), vec![WebhookReceiver { allow_private: false, ..target(&url) }]);
    webhooks.enqueue("msg_1", "x", NOW, &json!({})).unwrap();
    assert_eq!(webhooks.pass(NOW).await, Pass { failed: 1, ..Pass::default() });
    let problem = webhooks.queue.all().unwrap()[0].problem.clone().unwrap();
    assert!(problem.contains("not a public address"), "{problem}");
    assert!(receiver.came().is_empty());
}

#[tokio::test]
async fn what_waits_for_a_receiver_that_was_taken_out_is_given_up() {
    let state = tempfile::tempdir().unwrap();
    webhooks(state.path(), vec![target("http://127.0.0.1:1/")])
        .enqueue("msg_1", "x", NOW, &json!({}))
        .unwrap();
    assert_eq!(webhooks(state.path(), vec![]).pass(NOW).await, Pass { given_up: 1, ..Pass::default() });
}
