//! Delivery to a log that refuses, fails, is slow or is away. Deliveries to a real log are tests of the services.
#![allow(clippy::unwrap_used)]

mod log;

use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use async_trait::async_trait;
use client::{Client, Options};
use merkle::EntryDigest;
use outbox::limits::{LAST_ROUNDS, RETRY_BATCHES_EVERY, UNDECIDED_IN_A_ROW};
use outbox::{
    DeliveredStatement, Delivery, LogConnection, Outbox, PendingStatement, RefusedSubmission, StorageError,
};
use tokio::net::TcpListener;
use tokio::sync::{Notify, mpsc};
use tokio::time::Instant;
use tokio_util::sync::CancellationToken;

use log::{Answer, ScriptedLog, accepted, page, receipt, result_of_batch};

/// What the outbox was told.
#[derive(Debug, PartialEq)]
enum Event {
    Delivered(u64),
    Refused(u64),
    Silent,
}

use Event::{Delivered, Refused, Silent};

type Pending = Arc<Mutex<Vec<PendingStatement>>>;

struct InMemory {
    pending: Pending,
    permanent: Arc<AtomicBool>,
    events: mpsc::UnboundedSender<Event>,
}

impl InMemory {
    fn remove(&self, id: EntryDigest, event: Event) {
        self.pending.lock().unwrap().retain(|one| one.id != id);
        // The test may have ended.
        let _ = self.events.send(event);
    }
}

#[async_trait]
impl Outbox for InMemory {
    async fn pending(&self, limit: usize) -> Result<Vec<PendingStatement>, StorageError> {
        Ok(self.pending.lock().unwrap().iter().take(limit).cloned().collect())
    }

    async fn delivered(&self, delivered: &[DeliveredStatement]) -> Result<(), StorageError> {
        delivered.iter().for_each(|one| self.remove(one.sent.id, Delivered(one.sent.seq)));
        Ok(())
    }

    async fn is_permanent(&self, _: &RefusedSubmission) -> Result<bool, StorageError> {
        Ok(self.permanent.load(Ordering::Relaxed))
    }

    async fn refused(&self, refused: &[RefusedSubmission]) -> Result<(), StorageError> {
        refused.iter().for_each(|one| self.remove(one.sent.id, Refused(one.sent.seq)));
        Ok(())
    }

    async fn retry_refused(&self) -> Result<u64, StorageError> {
        Ok(0)
    }

    fn log_answers(&self) {}

    fn log_is_silent(&self, _: &str) {
        let _ = self.events.send(Silent);
    }
}

/// A delivery, and what its outbox is told.
struct Run {
    delivery: Delivery<InMemory>,
    pending: Pending,
    /// Whether refusals are permanent.
    permanent: Arc<AtomicBool>,
    events: mpsc::UnboundedReceiver<Event>,
}

fn pending(n: u64) -> PendingStatement {
    let statement = log::statement(n);
    PendingStatement { id: EntryDigest::of(&statement), stream: "s".into(), seq: n, statement }
}

/// A delivery of so many statements to a log at `url`, which is asked for at most `patience`.
fn delivery(url: &str, statements: u64, patience: Duration) -> Run {
    let (sender, events) = mpsc::unbounded_channel();
    let pending: Pending = Arc::new(Mutex::new((1..=statements).map(pending).collect()));
    let permanent = Arc::new(AtomicBool::new(true));
    let outbox = InMemory { pending: pending.clone(), permanent: permanent.clone(), events: sender };
    let options = Options { patience, ..Options::default() };
    let client = Client::new(url, options).unwrap();
    let log = LogConnection { url: url.to_owned(), client, trust: None };
    let delivery = Delivery::new(outbox, log, Arc::new(|| 0), Arc::new(Notify::new()), Duration::ZERO);
    Run { delivery, pending, permanent, events }
}

impl Run {
    /// Runs the delivery until the test ends.
    fn start(self) -> (mpsc::UnboundedReceiver<Event>, Pending) {
        tokio::spawn(self.delivery.run(CancellationToken::new()));
        (self.events, self.pending)
    }
}

const SECOND: Duration = Duration::from_secs(1);

/// Waits for the next event; fails rather than to wait for a log that has timed out.
async fn next(events: &mut mpsc::UnboundedReceiver<Event>) -> Event {
    tokio::time::timeout(Duration::from_secs(20), events.recv()).await.expect("something happens").unwrap()
}

fn told_so_far(events: &mut mpsc::UnboundedReceiver<Event>) -> Vec<Event> {
    std::iter::from_fn(|| events.try_recv().ok()).collect()
}

/// A log without batches that refuses every statement.
async fn refusing_log() -> ScriptedLog {
    ScriptedLog::start(|asked| page(if asked.is_batch() { 404 } else { 400 })).await
}

#[tokio::test]
async fn a_permanent_refusal_is_marked_and_does_not_hold_up_others() {
    let log = refusing_log().await;
    let (mut events, _) = delivery(&log.url, 2, SECOND).start();
    for n in [1, 2] {
        assert_eq!(next(&mut events).await, Refused(n));
    }
}

#[tokio::test]
async fn other_refusals_and_silence_are_followed_by_further_attempts() {
    let log = refusing_log().await;
    for url in [log.url.as_str(), "http://127.0.0.1:9"] {
        let run = delivery(url, 2, SECOND);
        run.permanent.store(false, Ordering::Relaxed);
        let (mut events, _) = run.start();
        for _ in 0..3 {
            assert_eq!(next(&mut events).await, Silent, "{url}");
        }
    }
}

#[tokio::test]
async fn only_a_status_about_the_content_refuses_a_statement() {
    for status in [400, 409, 413, 415, 422] {
        let log = ScriptedLog::start(move |asked| page(if asked.is_batch() { 404 } else { status })).await;
        let (mut events, _) = delivery(&log.url, 1, SECOND).start();
        assert_eq!(next(&mut events).await, Refused(1), "{status}");
    }
    for status in [301, 401, 403, 404, 405, 407, 408, 410, 421, 425, 426, 451] {
        let log = ScriptedLog::start(move |_| page(status)).await;
        let (mut events, _) = delivery(&log.url, 60, SECOND).start();
        for _ in 0..2 {
            assert_eq!(next(&mut events).await, Silent, "{status}");
        }
    }
}

#[tokio::test]
async fn a_receipt_is_stored_before_the_log_answers_the_next_statement() {
    let log = ScriptedLog::start(|asked| match asked.statement() {
        Some(1) => receipt(),
        Some(_) => Answer::Never,
        None => page(404),
    })
    .await;
    let (mut events, _) = delivery(&log.url, 2, SECOND).start();
    assert_eq!(next(&mut events).await, Delivered(1));
}

#[tokio::test]
async fn statements_are_posted_before_the_receipts_of_accepted_ones_are_awaited() {
    let log = ScriptedLog::start(|asked| match asked.statement() {
        Some(n) => accepted(n),
        None if asked.is_batch() => page(404),
        None => receipt().with_status(200),
    })
    .await;
    let (mut events, _) = delivery(&log.url, 3, SECOND).start();
    for n in 1..=3 {
        assert_eq!(next(&mut events).await, Delivered(n));
    }
    let posted = ["POST statement 1", "POST statement 2", "POST statement 3"];
    let fetched = ["GET /entries/1", "GET /entries/2", "GET /entries/3"];
    assert_eq!(log.requests()[1..], [posted, fetched].concat());
}

#[tokio::test]
async fn a_statement_at_which_the_log_fails_does_not_hold_up_the_next_ones() {
    let log = ScriptedLog::start(|asked| match asked.statement() {
        Some(1) => page(500),
        Some(_) => receipt(),
        None => page(404),
    })
    .await;
    let (mut events, _) = delivery(&log.url, 3, Duration::ZERO).start();
    for n in [2, 3] {
        assert_eq!(next(&mut events).await, Delivered(n));
    }
    assert_eq!(next(&mut events).await, Silent);
}

#[tokio::test]
async fn a_log_that_fails_or_is_busy_is_not_asked_about_every_statement() {
    for (status, asked_about) in [(500, UNDECIDED_IN_A_ROW), (405, UNDECIDED_IN_A_ROW), (503, 1), (429, 1)] {
        let log = ScriptedLog::start(move |asked| page(if asked.is_batch() { 404 } else { status })).await;
        let mut run = delivery(&log.url, 20, Duration::ZERO);
        let stopped = CancellationToken::new();
        stopped.cancel();
        run.delivery.run(stopped).await;
        assert_eq!(log.requests().len(), 1 + asked_about, "{status}: {:?}", log.requests());
        assert_eq!(told_so_far(&mut run.events), [], "{status}");
    }
}

#[tokio::test]
async fn batches_are_tried_again_some_time_after_a_proxy_answered_for_the_log() {
    let is_away = Arc::new(Mutex::new(true));
    let log = ScriptedLog::start({
        let is_away = is_away.clone();
        move |asked| match asked.is_batch() {
            true if *is_away.lock().unwrap() => page(405),
            true => result_of_batch(r#"{"status":400,"problem":{"title":"Rejected","detail":"no"}}"#),
            false => receipt(),
        }
    })
    .await;
    let (mut events, to_deliver) = delivery(&log.url, 1, SECOND).start();
    assert_eq!(next(&mut events).await, Delivered(1));
    *is_away.lock().unwrap() = false;
    // The delivery waits for statements by now, and for no answer of the log.
    tokio::time::sleep(Duration::from_millis(200)).await;
    tokio::time::pause();
    to_deliver.lock().unwrap().push(pending(2));
    tokio::time::advance(RETRY_BATCHES_EVERY).await;
    tokio::time::resume();
    assert_eq!(next(&mut events).await, Refused(2), "{:?}", log.requests());
}

#[tokio::test]
async fn what_is_pending_at_the_stop_is_submitted_once_more() {
    let log = refusing_log().await;
    let mut run = delivery(&log.url, 2, SECOND);
    let stopped = CancellationToken::new();
    stopped.cancel();
    run.delivery.run(stopped).await;
    assert_eq!(told_so_far(&mut run.events), [Refused(1), Refused(2)]);
}

#[tokio::test]
async fn answers_that_are_on_their_way_at_the_stop_are_awaited_and_stored() {
    let log = ScriptedLog::start(|asked| match asked.statement() {
        Some(_) => receipt().after(Duration::from_millis(300)),
        None => page(404),
    })
    .await;
    let mut run = delivery(&log.url, 2, SECOND);
    let stop = CancellationToken::new();
    let running = tokio::spawn(run.delivery.run(stop.clone()));
    while log.requests().len() < 2 {
        tokio::time::sleep(Duration::from_millis(10)).await;
    }
    stop.cancel();
    running.await.unwrap();
    assert_eq!(told_so_far(&mut run.events), [Delivered(1), Delivered(2)]);
    assert_eq!(log.requests()[1..], ["POST statement 1", "POST statement 2"], "each once");
}

#[tokio::test(start_paused = true)]
async fn a_stop_does_not_wait_for_a_log_that_does_not_answer() {
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let run = delivery(&format!("http://{}", listener.local_addr().unwrap()), 2, SECOND);
    let stopped = CancellationToken::new();
    stopped.cancel();
    let begin = Instant::now();
    run.delivery.run(stopped).await;
    assert!(begin.elapsed() < LAST_ROUNDS * 2, "{:?}", begin.elapsed());
}
