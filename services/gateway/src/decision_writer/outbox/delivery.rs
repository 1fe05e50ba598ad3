//! Delivery of pending records to the log, in batches.
//!
//! The client waits as the log asks it to (`Retry-After`); after rounds without progress the courier waits with
//! exponential back-off. It never gives up and never skips a record: each round reads the pending records from the
//! database.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use bytes::Bytes;
use client::ClientError;
use evidence::{Delivered, DeliveryState, EvidenceStore, PendingRecord, StoreError};
use http::StatusCode;
use merkle::EntryDigest;
use scitt::{Receipt, SignedStatement};
use tokio::sync::Notify;
use tokio_util::sync::CancellationToken;

use super::{LogConnection, NoReceipt, ReceiptWaiters};
use crate::decision_writer::backlog::BacklogGauge;
use crate::decision_writer::clock::Clock;
use crate::decision_writer::status::Alarms;
use crate::limits::{
    SUBMIT_BATCH, SUBMIT_BATCH_BYTES, SUBMIT_FIRST_WAIT, SUBMIT_LONGEST_WAIT, UNSTICK_EVERY,
};

/// The rule by which a log refuses an outcome before its decision, which may be on its way.
const DECISION_REQUIRED: &str = "vap-audit-decision-required";
/// The rule by which a log refuses a record dated in the future, if the gateway's clock is ahead: later it is admitted.
const AT_FUTURE: &str = "vap-audit-at-future";

/// The task that submits records to the log.
pub struct Delivery {
    pub store: Arc<dyn EvidenceStore>,
    pub log: LogConnection,
    pub gauge: Arc<BacklogGauge>,
    pub waiting: Arc<ReceiptWaiters>,
    pub alarms: Arc<Alarms>,
    pub clock: Clock,
    /// Notified when records are committed.
    pub wake: Arc<Notify>,
    /// `true` if the log accepts batches, as far as is known.
    pub batches: AtomicBool,
    /// Time to wait for more records before a round. Zero if calls wait for receipts.
    pub linger: Duration,
}

/// Result of one round of delivery.
#[derive(Debug, PartialEq, Eq)]
enum DeliveryRound {
    /// No record is pending.
    Idle,
    /// Records were delivered or marked as stuck; `true` if more may be pending.
    Moved(bool),
    /// No record was delivered, for this reason.
    Blocked(String),
}

/// Result of submitting one statement.
enum SubmissionResult {
    Taken(Delivered),
    Stuck(String),
    /// Refused by the rule [`DECISION_REQUIRED`] until its decision is on the log.
    Early(String),
    Open(String),
}

impl Delivery {
    /// Submits until `stop` is cancelled. Statements in flight then are submitted again after the next start;
    /// registration is idempotent.
    pub async fn run(self, stop: CancellationToken) {
        let mut wait = SUBMIT_FIRST_WAIT;
        let mut unstick = tokio::time::interval(UNSTICK_EVERY);
        loop {
            let round = tokio::select! {
                () = stop.cancelled() => return,
                _ = unstick.tick() => { self.unstick().await; continue }
                round = self.round() => round,
            };
            wait = match round {
                DeliveryRound::Moved(more) => {
                    self.alarms.log_answers();
                    if !more {
                        self.gather(&stop).await;
                    }
                    SUBMIT_FIRST_WAIT
                }
                DeliveryRound::Idle => {
                    self.rest(&stop, SUBMIT_LONGEST_WAIT).await;
                    self.gather(&stop).await;
                    SUBMIT_FIRST_WAIT
                }
                DeliveryRound::Blocked(why) => {
                    self.alarms.log_is_silent(&why);
                    tokio::select! {
                        () = stop.cancelled() => return,
                        () = tokio::time::sleep(wait) => {}
                    }
                    (wait * 2).min(SUBMIT_LONGEST_WAIT)
                }
            };
        }
    }

    /// Waits until records are committed, or for at most `most`, since the records of a dead instance cause no
    /// notification.
    async fn rest(&self, stop: &CancellationToken, most: Duration) {
        tokio::select! {
            () = stop.cancelled() => {}
            () = self.wake.notified() => {}
            () = tokio::time::sleep(most) => {}
        }
    }

    /// Waits for more records, since each round has a fixed cost here, at the log and on both disks.
    async fn gather(&self, stop: &CancellationToken) {
        tokio::select! {
            () = stop.cancelled() => {}
            () = tokio::time::sleep(self.linger) => {}
        }
    }

    /// Makes stuck records pending again, since the cause may be gone: a policy without this issuer, or a key unknown
    /// to the log.
    async fn unstick(&self) {
        match self.store.unstick().await {
            Ok(0) => {}
            Ok(count) => tracing::info!(count, "records that the log refused are tried again"),
            Err(error) => tracing::warn!(%error, "the outbox does not answer"),
        }
    }

    async fn round(&self) -> DeliveryRound {
        let pending = match self.store.pending(SUBMIT_BATCH).await {
            Ok(pending) => pending,
            Err(error) => return DeliveryRound::Blocked(error.to_string()),
        };
        let (found, pending) = (pending.len(), within_bytes(pending));
        let more = found == SUBMIT_BATCH || pending.len() < found;
        if pending.is_empty() {
            return DeliveryRound::Idle;
        }
        match self.submit(&pending).await {
            Ok(fates) => {
                let concluded = self.conclude(&pending, fates, more).await;
                concluded.unwrap_or_else(|error| DeliveryRound::Blocked(error.to_string()))
            }
            Err(why) => DeliveryRound::Blocked(why),
        }
    }

    /// Submits the records and returns their results in order; records that were not reached are missing. An error
    /// concerns all of them.
    async fn submit(&self, pending: &[PendingRecord]) -> Result<Vec<SubmissionResult>, String> {
        if self.batches.load(Ordering::Relaxed) {
            let statements: Vec<Bytes> = pending.iter().map(|one| one.statement.clone()).collect();
            match self.log.client.submit_batch(&statements).await {
                Ok(results) => {
                    return Ok(pending
                        .iter()
                        .zip(results)
                        .map(|(one, result)| self.fate(one, result))
                        .collect());
                }
                Err(error) if takes_no_batches(&error) => self.batches.store(false, Ordering::Relaxed),
                Err(error) if is_about_this_batch(&error) => {}
                Err(error) => return Err(error.to_string()),
            }
        }
        self.submit_each(pending).await
    }

    async fn submit_each(&self, pending: &[PendingRecord]) -> Result<Vec<SubmissionResult>, String> {
        let mut fates = Vec::with_capacity(pending.len());
        for one in pending {
            let result = self.log.client.submit(&one.statement).await.map(|(_, receipt)| receipt);
            let away = matches!(&result, Err(ClientError::Unreachable(_) | ClientError::TryAgain { .. }));
            fates.push(self.fate(one, result));
            if away {
                break;
            }
        }
        Ok(fates)
    }

    fn fate(&self, one: &PendingRecord, result: Result<Bytes, ClientError>) -> SubmissionResult {
        match result {
            Ok(receipt) => match self.placed(&one.id, &receipt) {
                Ok(leaf_index) => {
                    SubmissionResult::Taken(Delivered { id: one.id, leaf_index, receipt: Some(receipt) })
                }
                Err(why) => SubmissionResult::Open(why),
            },
            Err(ClientError::Refused { status, problem }) if is_final(status, problem.get_rule()) => {
                SubmissionResult::Stuck(problem.to_string())
            }
            Err(ClientError::Refused { problem, .. }) if problem.get_rule() == Some(DECISION_REQUIRED) => {
                SubmissionResult::Early(problem.to_string())
            }
            Err(error) => SubmissionResult::Open(error.to_string()),
        }
    }

    /// Returns the leaf index that the receipt states, if the receipt can be parsed and verified.
    fn placed(&self, id: &EntryDigest, receipt: &Bytes) -> Result<Option<u64>, String> {
        let read =
            Receipt::parse(receipt.clone()).map_err(|error| format!("what came is no receipt: {error}"))?;
        if let Some(trust) = &self.log.trust {
            let verdict = verifier::verify_receipt_of(*id, receipt, trust, self.clock.seconds());
            if !verdict.is_verified() {
                return Err(format!("the receipt does not verify: {}", verdict.why()));
            }
        }
        Ok(read.inclusion_proofs().first().map(|proof| proof.leaf_index.get()))
    }

    /// Marks an outcome as stuck if the log has refused its decision for good; it would block all later records.
    async fn waited_out(
        &self,
        one: &PendingRecord,
        fate: SubmissionResult,
    ) -> Result<SubmissionResult, StoreError> {
        let (SubmissionResult::Early(why), Some(decision)) = (&fate, decision_of(one)) else {
            return Ok(fate);
        };
        match self.store.record(&decision).await?.map(|stored| stored.standing) {
            Some(DeliveryState::Stuck(_)) => Ok(SubmissionResult::Stuck(why.clone())),
            _ => Ok(fate),
        }
    }

    async fn conclude(
        &self,
        pending: &[PendingRecord],
        fates: Vec<SubmissionResult>,
        more: bool,
    ) -> Result<DeliveryRound, StoreError> {
        let (mut taken, mut bytes, mut open, mut stuck) = (Vec::new(), 0, None, 0_u64);
        for (one, fate) in pending.iter().zip(fates) {
            match self.waited_out(one, fate).await? {
                SubmissionResult::Taken(delivered) => {
                    bytes += u64::try_from(one.statement.len()).unwrap_or(u64::MAX);
                    taken.push(delivered);
                }
                SubmissionResult::Stuck(why) => {
                    self.store.stuck(&one.id, &why).await?;
                    self.alarms.refused(one, &why);
                    self.waiting.notify(&one.id, &Err(NoReceipt::Refused(why)));
                    stuck += 1;
                }
                SubmissionResult::Open(why) | SubmissionResult::Early(why) => open = open.or(Some(why)),
            }
        }
        if !taken.is_empty() {
            self.store.delivered(&taken).await?;
            self.gauge.remove(u64::try_from(taken.len()).unwrap_or(u64::MAX), bytes);
        }
        for delivered in &taken {
            let receipt = delivered.receipt.clone().unwrap_or_default();
            self.waiting.notify(&delivered.id, &Ok(receipt));
        }
        Ok(match open {
            Some(why) if taken.is_empty() && stuck == 0 => DeliveryRound::Blocked(why),
            _ => DeliveryRound::Moved(more),
        })
    }
}

/// Keeps as many records as fit into one request, at most [`SUBMIT_BATCH_BYTES`], but at least one.
fn within_bytes(mut pending: Vec<PendingRecord>) -> Vec<PendingRecord> {
    let mut bytes = 0;
    let fit = pending.iter().take_while(|one| {
        bytes += one.statement.len();
        bytes <= SUBMIT_BATCH_BYTES
    });
    let fit = fit.count().max(1);
    pending.truncate(fit);
    pending
}

/// Returns the decision that an outcome record refers to.
fn decision_of(one: &PendingRecord) -> Option<EntryDigest> {
    let statement = SignedStatement::parse(one.statement.clone()).ok()?;
    let record: serde_json::Value = jose::json::read_bytes(statement.payload()?).ok()?;
    record["backLink"].as_str()?.parse().ok()
}

/// Returns whether a log does not offer batches, which are an extension of Tabellion: other logs answer 404, 405, 410
/// or 501.
fn takes_no_batches(error: &ClientError) -> bool {
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
    matches!(error, ClientError::Refused { status, .. } if !is_about_us(*status))
}

/// Returns whether the log refuses the gateway itself (401, 403), and not a statement.
fn is_about_us(status: StatusCode) -> bool {
    matches!(status, StatusCode::UNAUTHORIZED | StatusCode::FORBIDDEN)
}

fn is_final(status: StatusCode, rule: Option<&str>) -> bool {
    status.is_client_error()
        && !is_about_us(status)
        && status != StatusCode::REQUEST_TIMEOUT
        && !matches!(rule, Some(DECISION_REQUIRED | AT_FUTURE))
}
