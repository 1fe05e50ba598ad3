//! One round of delivery: the pending statements are submitted, and what each answer means is stored as soon as it is known.
//!
//! A batch has one answer for all of its statements. At a log without batches each statement is posted by itself, a few of
//! them before the receipts of the accepted ones are awaited. Only the wait for the log is ended by the deadline, never a
//! write to the database.

use bytes::Bytes;
use client::{ClientError, Posted, RunningRegistration};
use tokio::time::Instant;
use tokio_util::sync::CancellationToken;

use crate::answer::{Answer, is_about_batch, is_unavailable, lacks_batches};
use crate::limits::{
    RETRY_BATCHES_EVERY, SUBMIT_AT_ONCE, SUBMIT_BATCH, SUBMIT_BATCH_BYTES, UNDECIDED_IN_A_ROW,
};
use crate::log_connection::LogConnection;
use crate::statement::{Outbox, PendingStatement, RefusedSubmission, StorageError, UnixSeconds};

/// Result of one round of delivery.
#[derive(Debug, PartialEq, Eq)]
pub(crate) enum RoundResult {
    /// No statement is pending.
    Idle,
    /// Statements were delivered or marked as refused. `more_pending` if others may be pending.
    Progress { more_pending: bool },
    /// No statement was delivered, for this reason.
    Blocked(String),
}

/// One round of delivery. An `Err` of its methods is the reason why the round ends before all statements were submitted.
pub(crate) struct Round<'a, O> {
    outbox: &'a O,
    log: &'a LogConnection,
    now: &'a UnixSeconds,
    /// Cancelled when no answer of the log is awaited any more.
    deadline: &'a CancellationToken,
    /// Time from which batches are submitted.
    batches_from: &'a mut Instant,
    has_progress: bool,
    /// Reason of the last answer that decided nothing.
    undecided: Option<String>,
    undecided_in_a_row: usize,
}

impl<'a, O: Outbox> Round<'a, O> {
    pub(crate) fn new(
        outbox: &'a O,
        log: &'a LogConnection,
        now: &'a UnixSeconds,
        deadline: &'a CancellationToken,
        batches_from: &'a mut Instant,
    ) -> Self {
        let (has_progress, undecided, undecided_in_a_row) = (false, None, 0);
        Self { outbox, log, now, deadline, batches_from, has_progress, undecided, undecided_in_a_row }
    }

    pub(crate) async fn run(mut self) -> RoundResult {
        let found = match self.outbox.pending(SUBMIT_BATCH).await {
            Ok(found) => found,
            Err(error) => return RoundResult::Blocked(error.to_string()),
        };
        if found.is_empty() {
            return RoundResult::Idle;
        }
        let statements = within_bytes(&found);
        let more_pending = found.len() == SUBMIT_BATCH || statements.len() < found.len();
        let ended = self.submit(statements).await;
        match ended.err().or(self.undecided) {
            Some(why) if !self.has_progress => RoundResult::Blocked(why),
            _ => RoundResult::Progress { more_pending },
        }
    }

    async fn submit(&mut self, statements: &[PendingStatement]) -> Result<(), String> {
        if Instant::now() >= *self.batches_from {
            let messages: Vec<Bytes> = statements.iter().map(|one| one.statement.clone()).collect();
            match self.answer(self.log.client.submit_batch(&messages)).await? {
                Ok(answers) => return self.settle_batch(statements, answers).await,
                Err(error) if lacks_batches(&error) => {
                    *self.batches_from = Instant::now() + RETRY_BATCHES_EVERY;
                }
                Err(error) if is_about_batch(&error) => {}
                Err(error) => return Err(error.to_string()),
            }
        }
        self.submit_each(statements).await
    }

    async fn submit_each(&mut self, statements: &[PendingStatement]) -> Result<(), String> {
        for some in statements.chunks(SUBMIT_AT_ONCE) {
            let mut accepted = Vec::new();
            let posted = self.post_each(some, &mut accepted).await;
            // Also if posting ended early: the log has these already.
            self.wait_for_each(accepted).await?;
            posted?;
        }
        Ok(())
    }

    /// Posts the statements one by one; adds those whose receipts follow later to `accepted`.
    async fn post_each<'s>(
        &mut self,
        statements: &'s [PendingStatement],
        accepted: &mut Vec<(&'s PendingStatement, RunningRegistration)>,
    ) -> Result<(), String> {
        for sent in statements {
            match self.answer(self.log.client.post(&sent.statement)).await? {
                Ok(Posted::Accepted(running)) => {
                    self.undecided_in_a_row = 0;
                    accepted.push((sent, running));
                }
                Ok(Posted::Registered { receipt, .. }) => self.settle_one(sent, Ok(receipt)).await?,
                Err(error) => self.settle_one(sent, Err(error)).await?,
            }
        }
        Ok(())
    }

    async fn wait_for_each(
        &mut self,
        accepted: Vec<(&PendingStatement, RunningRegistration)>,
    ) -> Result<(), String> {
        for (sent, running) in accepted {
            let answer = self.answer(self.log.client.wait_for_receipt(running)).await?;
            self.settle_one(sent, answer.map(|(_, receipt)| receipt)).await?;
        }
        Ok(())
    }

    /// Waits for an answer of the log, until the deadline.
    async fn answer<T>(&self, exchange: impl Future<Output = T>) -> Result<T, String> {
        let answer = self.deadline.run_until_cancelled(exchange).await;
        answer.ok_or_else(|| "the service stops".to_owned())
    }

    /// Stores what the answers to a batch mean, one for each statement.
    async fn settle_batch(
        &mut self,
        statements: &[PendingStatement],
        answers: Vec<Result<Bytes, ClientError>>,
    ) -> Result<(), String> {
        let now = (self.now)();
        let answers = statements.iter().zip(answers);
        let answers = answers.map(|(sent, answer)| Answer::of(sent, answer, self.log, now)).collect();
        self.store(answers).await.map_err(|error| error.to_string())
    }

    /// Stores what the answer to one statement means. Ends the round if the log is unavailable, or after
    /// [`UNDECIDED_IN_A_ROW`] statements of which nothing was decided.
    async fn settle_one(
        &mut self,
        sent: &PendingStatement,
        answer: Result<Bytes, ClientError>,
    ) -> Result<(), String> {
        let is_unavailable = answer.as_ref().is_err_and(is_unavailable);
        let answer = Answer::of(sent, answer, self.log, (self.now)());
        if let Answer::Undecided(why) = &answer {
            self.undecided_in_a_row += 1;
            if is_unavailable || self.undecided_in_a_row >= UNDECIDED_IN_A_ROW {
                return Err(why.clone());
            }
        } else {
            self.undecided_in_a_row = 0;
        }
        self.store(vec![answer]).await.map_err(|error| error.to_string())
    }

    /// Stores deliveries and permanent refusals, each in one call.
    async fn store(&mut self, answers: Vec<Answer>) -> Result<(), StorageError> {
        let (mut delivered, mut refused) = (Vec::new(), Vec::new());
        for answer in answers {
            match answer {
                Answer::Delivered(one) => delivered.push(one),
                Answer::Refused(one) => refused.push(one),
                Answer::Undecided(why) => self.undecided = Some(why),
            }
        }
        // The outbox is asked before it is told of the deliveries: a statement may have been refused because the log did not
        // have them yet.
        let permanent = self.permanent(refused).await;
        if !delivered.is_empty() {
            self.outbox.delivered(&delivered).await?;
            self.has_progress = true;
        }
        let permanent = permanent?;
        if !permanent.is_empty() {
            self.outbox.refused(&permanent).await?;
            self.has_progress = true;
        }
        Ok(())
    }

    /// Returns the refusals that are permanent.
    async fn permanent(
        &mut self,
        refused: Vec<RefusedSubmission>,
    ) -> Result<Vec<RefusedSubmission>, StorageError> {
        let mut permanent = Vec::new();
        for one in refused {
            match self.outbox.is_permanent(&one).await? {
                true => permanent.push(one),
                false => self.undecided = Some(one.refusal.text),
            }
        }
        Ok(permanent)
    }
}

/// Returns as many statements as fit into one request, at most [`SUBMIT_BATCH_BYTES`], but at least one.
fn within_bytes(pending: &[PendingStatement]) -> &[PendingStatement] {
    let mut bytes = 0;
    let fit = pending.iter().take_while(|one| {
        bytes += one.statement.len();
        bytes <= SUBMIT_BATCH_BYTES
    });
    let fit = fit.count().max(1).min(pending.len());
    &pending[..fit]
}
