//! The records that wait for the log, in the evidence database.

use std::sync::Arc;

use async_trait::async_trait;
use evidence::{Delivered, DeliveryState, EvidenceStore, PendingRecord, RefusedRecord, StoreError};
use jiff::{SignedDuration, Timestamp};
use merkle::EntryDigest;
use outbox::{DeliveredStatement, Outbox, PendingStatement, RefusedSubmission, StorageError};
use scitt::SignedStatement;
use serde_json::Value;

use super::{NoReceipt, ReceiptWaiters};
use crate::decision_writer::backlog::BacklogGauge;
use crate::decision_writer::clock::Clock;
use crate::decision_writer::status::Alarms;
use crate::limits::AHEAD_TOLERATED;

/// The rule by which a log refuses an outcome before its decision, which may be on its way.
const DECISION_REQUIRED: &str = "vap-audit-decision-required";
/// The rules by which a log refuses a record or an execution receipt dated in the future, each with the member that dates it.
/// Later the statement is admitted.
const IN_FUTURE: [(&str, &str); 2] =
    [("vap-audit-at-future", "at"), ("aer-produced-at-future", "produced_at")];

/// The outbox of the evidence database. Deliveries and refusals also reach the backlog, waiting calls and alarms.
pub struct RecordOutbox {
    pub store: Arc<dyn EvidenceStore>,
    pub backlog: Arc<BacklogGauge>,
    pub receipt_waiters: Arc<ReceiptWaiters>,
    pub alarms: Arc<Alarms>,
    pub clock: Clock,
}

#[async_trait]
impl Outbox for RecordOutbox {
    async fn pending(&self, limit: usize) -> Result<Vec<PendingStatement>, StorageError> {
        let records = self.store.pending(limit).await.map_err(storage_error)?;
        Ok(records.into_iter().map(statement_of).collect())
    }

    async fn delivered(&self, delivered: &[DeliveredStatement]) -> Result<(), StorageError> {
        let taken: Vec<Delivered> = delivered.iter().map(record_of).collect();
        self.store.delivered(&taken).await.map_err(storage_error)?;
        let bytes = delivered.iter().map(|one| number(one.sent.statement.len())).sum();
        self.backlog.remove(number(taken.len()), bytes);
        for one in delivered {
            self.receipt_waiters.notify(&one.sent.id, &Ok(one.receipt.clone()));
        }
        Ok(())
    }

    /// An outcome that the log refuses without its decision is refused for good unless the decision still waits for the log,
    /// and a record from the future if it was made while this gateway's clock was ahead: they would be sent again and again.
    async fn is_permanent(&self, refused: &RefusedSubmission) -> Result<bool, StorageError> {
        let RefusedSubmission { sent, refusal } = refused;
        let rule = refusal.rule.as_deref();
        if let Some((_, dated)) = IN_FUTURE.iter().find(|(in_future, _)| rule == Some(*in_future)) {
            return Ok(self.is_ahead(sent, dated));
        }
        match rule {
            Some(DECISION_REQUIRED) => Ok(!self.is_decision_pending(sent).await.map_err(storage_error)?),
            _ => Ok(true),
        }
    }

    async fn refused(&self, refused: &[RefusedSubmission]) -> Result<(), StorageError> {
        let records: Vec<RefusedRecord> = refused.iter().map(refused_record_of).collect();
        self.store.stuck(&records).await.map_err(storage_error)?;
        for RefusedSubmission { sent, refusal } in refused {
            self.alarms.refused(sent, &refusal.text);
            self.receipt_waiters.notify(&sent.id, &Err(NoReceipt::Refused(refusal.text.clone())));
        }
        Ok(())
    }

    async fn retry_refused(&self) -> Result<u64, StorageError> {
        self.store.unstick().await.map_err(storage_error)
    }

    fn log_answers(&self) {
        self.alarms.log_answers();
    }

    fn log_is_silent(&self, why: &str) {
        self.alarms.log_is_silent(why);
    }
}

impl RecordOutbox {
    /// Returns whether the decision of an outcome waits for its delivery. One that was delivered or removed is not sent
    /// again.
    async fn is_decision_pending(&self, outcome: &PendingStatement) -> Result<bool, StoreError> {
        let Some(decision) = decision_of(outcome) else { return Ok(false) };
        let stored = self.store.record(&decision).await?;
        Ok(stored.is_some_and(|stored| stored.delivery == DeliveryState::Pending))
    }

    /// Returns whether the time of a statement, in the member `dated` of its payload, is further ahead of this gateway's
    /// clock than [`AHEAD_TOLERATED`].
    fn is_ahead(&self, statement: &PendingStatement, dated: &str) -> bool {
        let made: Option<Timestamp> =
            payload_of(statement).and_then(|json| json[dated].as_str()?.parse().ok());
        let tolerated = SignedDuration::try_from(AHEAD_TOLERATED).unwrap_or(SignedDuration::MAX);
        made.is_some_and(|made| self.clock.now().duration_until(made) > tolerated)
    }
}

/// Returns the decision that an outcome record refers to.
fn decision_of(outcome: &PendingStatement) -> Option<EntryDigest> {
    payload_of(outcome)?["backLink"].as_str()?.parse().ok()
}

fn payload_of(statement: &PendingStatement) -> Option<Value> {
    let statement = SignedStatement::parse(statement.statement.clone()).ok()?;
    jose::json::read_bytes(statement.payload()?).ok()
}

fn statement_of(record: PendingRecord) -> PendingStatement {
    let PendingRecord { id, stream, seq, statement, .. } = record;
    PendingStatement { id, stream, seq, statement }
}

fn record_of(delivered: &DeliveredStatement) -> Delivered {
    Delivered {
        id: delivered.sent.id,
        leaf_index: delivered.leaf_index,
        receipt: Some(delivered.receipt.clone()),
    }
}

fn refused_record_of(refused: &RefusedSubmission) -> RefusedRecord {
    RefusedRecord { id: refused.sent.id, why: refused.refusal.text.clone() }
}

fn storage_error(error: StoreError) -> StorageError {
    StorageError(error.to_string())
}

fn number(count: usize) -> u64 {
    u64::try_from(count).unwrap_or(u64::MAX)
}
