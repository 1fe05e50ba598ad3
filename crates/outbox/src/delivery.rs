//! Delivery of pending statements to the log, in rounds.
//!
//! The client waits as the log asks it to (`Retry-After`); after rounds without progress the task waits with exponential
//! back-off. It never gives up and never skips a statement: each round reads the pending statements from the database.

use std::sync::Arc;
use std::time::Duration;

use tokio::sync::Notify;
use tokio::time::{Instant, sleep};
use tokio_util::sync::CancellationToken;

use crate::limits::{LAST_ROUNDS, RETRY_REFUSED_EVERY, SUBMIT_FIRST_WAIT, SUBMIT_LONGEST_WAIT};
use crate::log_connection::LogConnection;
use crate::round::{Round, RoundResult};
use crate::statement::{Outbox, UnixSeconds};

/// The task that submits statements to the log.
pub struct Delivery<O> {
    outbox: O,
    log: LogConnection,
    now: UnixSeconds,
    wake: Arc<Notify>,
    linger: Duration,
    /// Time from which batches are submitted: later than now if the log does not seem to offer them.
    batches_from: Instant,
    retry_refused_at: Instant,
}

impl<O: Outbox> Delivery<O> {
    /// Creates the task. `now` is the time at which receipts are verified. `wake` is notified when statements are
    /// committed. The task waits for `linger` before a round, so that several statements share a request.
    pub fn new(outbox: O, log: LogConnection, now: UnixSeconds, wake: Arc<Notify>, linger: Duration) -> Self {
        let start = Instant::now();
        Self { outbox, log, now, wake, linger, batches_from: start, retry_refused_at: start }
    }

    /// Submits until `stop` is cancelled, and then for at most [`LAST_ROUNDS`] what is pending. Statements that are not
    /// delivered then are submitted again after the next start; registration is idempotent.
    pub async fn run(mut self, stop: CancellationToken) {
        let deadline = CancellationToken::new();
        let cancel_at_deadline = async {
            stop.cancelled().await;
            sleep(LAST_ROUNDS).await;
            deadline.cancel();
            // The round ends by itself, once it has stored what it knows.
            std::future::pending::<()>().await;
        };
        tokio::select! {
            () = self.run_rounds(&stop, &deadline) => {}
            () = cancel_at_deadline => {}
        }
    }

    /// Runs rounds until one that began after the stop delivers nothing.
    async fn run_rounds(&mut self, stop: &CancellationToken, deadline: &CancellationToken) {
        let mut wait = SUBMIT_FIRST_WAIT;
        loop {
            let is_stopping = stop.is_cancelled();
            self.retry_refused_if_due().await;
            let result = self.round(deadline).await;
            let has_progress = matches!(result, RoundResult::Progress { .. });
            if deadline.is_cancelled() || (is_stopping && !has_progress) {
                return;
            }
            wait = match result {
                RoundResult::Progress { more_pending } => {
                    self.outbox.log_answers();
                    if !more_pending {
                        self.linger(stop).await;
                    }
                    SUBMIT_FIRST_WAIT
                }
                RoundResult::Idle => {
                    self.wait_for_statements(stop).await;
                    self.linger(stop).await;
                    SUBMIT_FIRST_WAIT
                }
                RoundResult::Blocked(why) => {
                    self.outbox.log_is_silent(&why);
                    stop.run_until_cancelled(sleep(wait)).await;
                    (wait * 2).min(SUBMIT_LONGEST_WAIT)
                }
            };
        }
    }

    async fn round(&mut self, deadline: &CancellationToken) -> RoundResult {
        let Self { outbox, log, now, batches_from, .. } = self;
        Round::new(outbox, log, now, deadline, batches_from).run().await
    }

    /// Waits until statements are committed, or for at most [`SUBMIT_LONGEST_WAIT`], since other processes may leave
    /// statements without a notification.
    async fn wait_for_statements(&self, stop: &CancellationToken) {
        tokio::select! {
            () = stop.cancelled() => {}
            () = self.wake.notified() => {}
            () = sleep(SUBMIT_LONGEST_WAIT) => {}
        }
    }

    /// Waits for more statements, since each round has a fixed cost in this process, at the log and on both disks.
    async fn linger(&self, stop: &CancellationToken) {
        stop.run_until_cancelled(sleep(self.linger)).await;
    }

    /// Makes refused statements pending again every [`RETRY_REFUSED_EVERY`], since the cause may be gone: a policy without
    /// this issuer, or a key unknown to the log.
    async fn retry_refused_if_due(&mut self) {
        if Instant::now() < self.retry_refused_at {
            return;
        }
        self.retry_refused_at = Instant::now() + RETRY_REFUSED_EVERY;
        match self.outbox.retry_refused().await {
            Ok(0) => {}
            Ok(count) => tracing::info!(count, "statements that the log refused are tried again"),
            Err(error) => tracing::warn!(%error, "the outbox does not answer"),
        }
    }
}
