//! Delivery of pending statements to the log, in batches.
//!
//! The client waits as the log asks it to (`Retry-After`); after rounds without progress the task waits with exponential
//! back-off. It never gives up and never skips a statement: each round reads the pending statements from the database.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use bytes::Bytes;
use client::ClientError;
use http::StatusCode;
use tokio::sync::Notify;
use tokio_util::sync::CancellationToken;

use crate::limits::{
    LAST_ROUNDS, RETRY_REFUSED_EVERY, SUBMIT_BATCH, SUBMIT_BATCH_BYTES, SUBMIT_FIRST_WAIT,
    SUBMIT_LONGEST_WAIT,
};
use crate::log_connection::LogConnection;
use crate::statement::{DeliveredStatement, LogRefusal, Outbox, PendingStatement, StorageError};

/// A clock, in Unix seconds.
pub type UnixSeconds = Arc<dyn Fn() -> u64 + Send + Sync>;

/// The task that submits statements to the log.
pub struct Delivery<O> {
    outbox: O,
    log: LogConnection,
    now: UnixSeconds,
    wake: Arc<Notify>,
    linger: Duration,
    /// `true` until the log has refused batches as such.
    accepts_batches: AtomicBool,
}

/// Result of one round of delivery.
#[derive(Debug, PartialEq, Eq)]
enum DeliveryRound {
    /// No statement is pending.
    Idle,
    /// Statements were delivered or marked as refused. `more_pending` if others may be pending.
    Progress { more_pending: bool },
    /// No statement was delivered, for this reason.
    Blocked(String),
}

/// Result of submitting one statement.
enum SubmissionResult {
    Delivered(DeliveredStatement),
    /// The log refused the statement; the outbox decides whether permanently.
    Refused(LogRefusal),
    /// The statement has to be submitted again, for this reason.
    Undecided(String),
}

impl<O: Outbox> Delivery<O> {
    /// Creates the task. `now` is the time at which receipts are verified. `wake` is notified when statements are
    /// committed. The task waits for `linger` before a round, so that several statements share a request.
    pub fn new(outbox: O, log: LogConnection, now: UnixSeconds, wake: Arc<Notify>, linger: Duration) -> Self {
        Self { outbox, log, now, wake, linger, accepts_batches: AtomicBool::new(true) }
    }

    /// Submits until `stop` is cancelled, and then for at most [`LAST_ROUNDS`] what is pending. Statements that are not
    /// delivered then are submitted again after the next start; registration is idempotent.
    pub async fn run(self, stop: CancellationToken) {
        self.run_until(&stop).await;
        let _ = tokio::time::timeout(LAST_ROUNDS, self.last_rounds()).await;
    }

    /// Submits until a round delivers nothing.
    async fn last_rounds(&self) {
        while matches!(self.round().await, DeliveryRound::Progress { .. }) {}
    }

    async fn run_until(&self, stop: &CancellationToken) {
        let mut wait = SUBMIT_FIRST_WAIT;
        let mut retry_refused = tokio::time::interval(RETRY_REFUSED_EVERY);
        loop {
            let round = tokio::select! {
                () = stop.cancelled() => return,
                _ = retry_refused.tick() => { self.retry_refused().await; continue }
                round = self.round() => round,
            };
            wait = match round {
                DeliveryRound::Progress { more_pending } => {
                    self.outbox.log_answers();
                    if !more_pending {
                        self.linger(stop).await;
                    }
                    SUBMIT_FIRST_WAIT
                }
                DeliveryRound::Idle => {
                    self.wait_for_statements(stop, SUBMIT_LONGEST_WAIT).await;
                    self.linger(stop).await;
                    SUBMIT_FIRST_WAIT
                }
                DeliveryRound::Blocked(why) => {
                    self.outbox.log_is_silent(&why);
                    tokio::select! {
                        () = stop.cancelled() => return,
                        () = tokio::time::sleep(wait) => {}
                    }
                    (wait * 2).min(SUBMIT_LONGEST_WAIT)
                }
            };
        }
    }

    /// Waits until statements are committed, or for at most `most`, since other processes may leave statements without a
    /// notification.
    async fn wait_for_statements(&self, stop: &CancellationToken, most: Duration) {
        tokio::select! {
            () = stop.cancelled() => {}
            () = self.wake.notified() => {}
            () = tokio::time::sleep(most) => {}
        }
    }

    /// Waits for more statements, since each round has a fixed cost in this process, at the log and on both disks.
    async fn linger(&self, stop: &CancellationToken) {
        tokio::select! {
            () = stop.cancelled() => {}
            () = tokio::time::sleep(self.linger) => {}
        }
    }

    /// Makes refused statements pending again, since the cause may be gone: a policy without this issuer, or a key unknown
    /// to the log.
    async fn retry_refused(&self) {
        match self.outbox.retry_refused().await {
            Ok(0) => {}
            Ok(count) => tracing::info!(count, "statements that the log refused are tried again"),
            Err(error) => tracing::warn!(%error, "the outbox does not answer"),
        }
    }

    async fn round(&self) -> DeliveryRound {
        let pending = match self.outbox.pending(SUBMIT_BATCH).await {
            Ok(pending) => pending,
            Err(error) => return DeliveryRound::Blocked(error.to_string()),
        };
        let (found, pending) = (pending.len(), within_bytes(pending));
        let more_pending = found == SUBMIT_BATCH || pending.len() < found;
        if pending.is_empty() {
            return DeliveryRound::Idle;
        }
        match self.submit(&pending).await {
            Ok(results) => {
                let round = self.store_results(&pending, results, more_pending).await;
                round.unwrap_or_else(|error| DeliveryRound::Blocked(error.to_string()))
            }
            Err(why) => DeliveryRound::Blocked(why),
        }
    }

    /// Submits the statements and returns their results in order. Results are missing for those after a failure of the
    /// connection. An error concerns all statements.
    async fn submit(&self, pending: &[PendingStatement]) -> Result<Vec<SubmissionResult>, String> {
        if self.accepts_batches.load(Ordering::Relaxed) {
            let statements: Vec<Bytes> = pending.iter().map(|one| one.statement.clone()).collect();
            match self.log.client.submit_batch(&statements).await {
                Ok(results) => {
                    return Ok(pending
                        .iter()
                        .zip(results)
                        .map(|(one, result)| self.result_of(one, result))
                        .collect());
                }
                Err(error) if lacks_batches(&error) => self.accepts_batches.store(false, Ordering::Relaxed),
                Err(error) if is_about_this_batch(&error) => {}
                Err(error) => return Err(error.to_string()),
            }
        }
        Ok(self.submit_each(pending).await)
    }

    async fn submit_each(&self, pending: &[PendingStatement]) -> Vec<SubmissionResult> {
        let mut results = Vec::with_capacity(pending.len());
        for one in pending {
            let result = self.log.client.submit(&one.statement).await.map(|(_, receipt)| receipt);
            let is_unavailable =
                matches!(&result, Err(ClientError::Unreachable(_) | ClientError::TryAgain { .. }));
            results.push(self.result_of(one, result));
            if is_unavailable {
                break;
            }
        }
        results
    }

    fn result_of(&self, one: &PendingStatement, result: Result<Bytes, ClientError>) -> SubmissionResult {
        match result {
            Ok(receipt) => match self.log.leaf_index(one.id, &receipt, (self.now)()) {
                Ok(leaf_index) => {
                    SubmissionResult::Delivered(DeliveredStatement { sent: one.clone(), leaf_index, receipt })
                }
                Err(why) => SubmissionResult::Undecided(why),
            },
            Err(ClientError::Refused { status, problem }) if is_about_the_statement(status) => {
                SubmissionResult::Refused(LogRefusal {
                    rule: problem.get_rule().map(str::to_owned),
                    text: problem.to_string(),
                })
            }
            Err(error) => SubmissionResult::Undecided(error.to_string()),
        }
    }

    async fn store_results(
        &self,
        pending: &[PendingStatement],
        results: Vec<SubmissionResult>,
        more_pending: bool,
    ) -> Result<DeliveryRound, StorageError> {
        let (mut delivered, mut undecided, mut refused) = (Vec::new(), None, false);
        for (one, result) in pending.iter().zip(results) {
            match result {
                SubmissionResult::Delivered(statement) => delivered.push(statement),
                SubmissionResult::Refused(refusal) if self.outbox.is_permanent(one, &refusal).await? => {
                    self.outbox.refused(one, &refusal).await?;
                    refused = true;
                }
                SubmissionResult::Refused(LogRefusal { text: why, .. })
                | SubmissionResult::Undecided(why) => {
                    undecided = undecided.or(Some(why));
                }
            }
        }
        if !delivered.is_empty() {
            self.outbox.delivered(&delivered).await?;
        }
        Ok(match undecided {
            Some(why) if delivered.is_empty() && !refused => DeliveryRound::Blocked(why),
            _ => DeliveryRound::Progress { more_pending },
        })
    }
}

/// Keeps as many statements as fit into one request, at most [`SUBMIT_BATCH_BYTES`], but at least one.
fn within_bytes(mut pending: Vec<PendingStatement>) -> Vec<PendingStatement> {
    let mut bytes = 0;
    let fit = pending.iter().take_while(|one| {
        bytes += one.statement.len();
        bytes <= SUBMIT_BATCH_BYTES
    });
    let fit = fit.count().max(1);
    pending.truncate(fit);
    pending
}

/// Returns whether the log does not offer batches, which are an extension of Tabellion: other logs answer 404, 405, 410
/// or 501.
fn lacks_batches(error: &ClientError) -> bool {
    match error {
        ClientError::NotFound(_) => true,
        ClientError::Refused { status, .. } => {
            matches!(*status, StatusCode::METHOD_NOT_ALLOWED | StatusCode::GONE)
        }
        ClientError::TryAgain { status, .. } => *status == StatusCode::NOT_IMPLEMENTED,
        _ => false,
    }
}

/// Returns whether a refusal concerns the batch, by its size or by one of its statements: submitting one by one shows
/// which.
fn is_about_this_batch(error: &ClientError) -> bool {
    matches!(error, ClientError::Refused { status, .. } if status.is_client_error() && !is_about_sender(*status))
}

/// Returns whether the log refuses the sender itself (401, 403), and not a statement.
fn is_about_sender(status: StatusCode) -> bool {
    matches!(status, StatusCode::UNAUTHORIZED | StatusCode::FORBIDDEN)
}

fn is_about_the_statement(status: StatusCode) -> bool {
    status.is_client_error() && !is_about_sender(status) && status != StatusCode::REQUEST_TIMEOUT
}
