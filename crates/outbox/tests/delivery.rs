//! Delivery to a log that refuses or is away. Deliveries to a real log are tests of the services.
#![allow(clippy::unwrap_used)]

use std::sync::{Arc, Mutex};
use std::time::Duration;

use async_trait::async_trait;
use axum::Router;
use axum::http::StatusCode;
use axum::routing::post;
use bytes::Bytes;
use client::{Client, Options};
use merkle::EntryDigest;
use outbox::limits::LAST_ROUNDS;
use outbox::{
    DeliveredStatement, Delivery, LogConnection, LogRefusal, Outbox, PendingStatement, StorageError,
};
use tokio::net::TcpListener;
use tokio::sync::{Notify, mpsc};
use tokio::time::Instant;
use tokio_util::sync::CancellationToken;

/// What the outbox was told.
#[derive(Debug, PartialEq)]
enum Event {
    Refused(EntryDigest),
    Silent,
}

struct InMemory {
    pending: Mutex<Vec<PendingStatement>>,
    permanent: bool,
    events: mpsc::UnboundedSender<Event>,
}

#[async_trait]
impl Outbox for InMemory {
    async fn pending(&self, limit: usize) -> Result<Vec<PendingStatement>, StorageError> {
        Ok(self.pending.lock().unwrap().iter().take(limit).cloned().collect())
    }

    async fn delivered(&self, _: &[DeliveredStatement]) -> Result<(), StorageError> {
        unreachable!("this log takes nothing")
    }

    async fn is_permanent(&self, _: &PendingStatement, _: &LogRefusal) -> Result<bool, StorageError> {
        Ok(self.permanent)
    }

    async fn refused(&self, statement: &PendingStatement, _: &LogRefusal) -> Result<(), StorageError> {
        self.pending.lock().unwrap().retain(|one| one.id != statement.id);
        self.events.send(Event::Refused(statement.id)).unwrap();
        Ok(())
    }

    async fn retry_refused(&self) -> Result<u64, StorageError> {
        Ok(0)
    }

    fn log_answers(&self) {}

    fn log_is_silent(&self, _: &str) {
        // The test may have ended.
        let _ = self.events.send(Event::Silent);
    }
}

fn pending(n: u64) -> PendingStatement {
    let statement = Bytes::from(format!("statement {n}"));
    PendingStatement { id: EntryDigest::of(&statement), stream: "s".into(), seq: n, statement }
}

/// Delivers two statements to a log at `url`, until the test ends.
fn deliver(url: &str, permanent: bool) -> mpsc::UnboundedReceiver<Event> {
    let (delivery, received) = delivery(url, permanent);
    tokio::spawn(delivery.run(CancellationToken::new()));
    received
}

/// A delivery of two statements to a log at `url`, and what its outbox is told.
fn delivery(url: &str, permanent: bool) -> (Delivery<InMemory>, mpsc::UnboundedReceiver<Event>) {
    let (events, received) = mpsc::unbounded_channel();
    let outbox = InMemory { pending: Mutex::new(vec![pending(1), pending(2)]), permanent, events };
    let options = Options { patience: Duration::from_secs(1), ..Options::default() };
    let client = Client::new(url, options).unwrap();
    let log = LogConnection { url: url.to_owned(), client, trust: None };
    (Delivery::new(outbox, log, Arc::new(|| 0), Arc::new(Notify::new()), Duration::ZERO), received)
}

/// A log without batches that refuses every statement.
async fn refusing_log() -> String {
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let url = format!("http://{}", listener.local_addr().unwrap());
    let routes = Router::new().route("/entries", post(|| async { StatusCode::BAD_REQUEST }));
    tokio::spawn(async { axum::serve(listener, routes).await.unwrap() });
    url
}

#[tokio::test]
async fn a_permanent_refusal_is_marked_and_does_not_hold_up_others() {
    let mut events = deliver(&refusing_log().await, true);
    for n in [1, 2] {
        assert_eq!(events.recv().await, Some(Event::Refused(pending(n).id)));
    }
}

#[tokio::test]
async fn other_refusals_and_silence_are_followed_by_further_attempts() {
    for url in [refusing_log().await, "http://127.0.0.1:9".to_owned()] {
        let mut events = deliver(&url, false);
        for _ in 0..3 {
            assert_eq!(events.recv().await, Some(Event::Silent), "{url}");
        }
    }
}

#[tokio::test]
async fn what_is_pending_at_the_stop_is_submitted_once_more() {
    let (delivery, mut events) = delivery(&refusing_log().await, true);
    let stopped = CancellationToken::new();
    stopped.cancel();
    delivery.run(stopped).await;
    let told: Vec<Event> = std::iter::from_fn(|| events.try_recv().ok()).collect();
    assert_eq!(told, [1, 2].map(|n| Event::Refused(pending(n).id)));
}

#[tokio::test(start_paused = true)]
async fn a_stop_does_not_wait_for_a_log_that_does_not_answer() {
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let (delivery, _events) = delivery(&format!("http://{}", listener.local_addr().unwrap()), true);
    let stopped = CancellationToken::new();
    stopped.cancel();
    let begin = Instant::now();
    delivery.run(stopped).await;
    assert!(begin.elapsed() < LAST_ROUNDS * 2, "{:?}", begin.elapsed());
}
