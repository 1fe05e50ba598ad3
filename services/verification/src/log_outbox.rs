//! Signed statements that wait for the log.
//!
//! A log that refuses a receipt because the chain goes on elsewhere proves that another process signs with this key: the
//! chain halts, and nothing is signed again. Other refusals are tried again from time to time.

use std::sync::{Arc, Mutex, PoisonError};

use async_trait::async_trait;
use durable::crash;
use outbox::{DeliveredStatement, LogRefusal, Outbox, PendingStatement, RefusedSubmission, StorageError};
use registration::GuardKind;
use tokio::sync::watch;
use verification_store::{DeliveredEntry, StoreError, VerificationStore, WaitingStatement};

use crate::metrics::Metrics;
use crate::time::now;

/// Visited when the log has answered, and the answer is not stored yet.
const ANSWERED: &str = "log-answered";

/// The outbox of the verification store.
pub struct LogOutbox {
    pub issuer: String,
    pub store: Arc<VerificationStore>,
    pub metrics: Arc<Metrics>,
    /// Changed when a statement is delivered or refused.
    pub changes: watch::Sender<()>,
    /// The reason why the log takes nothing.
    pub silent: Mutex<Option<String>>,
}

#[async_trait]
impl Outbox for LogOutbox {
    async fn pending(&self, limit: usize) -> Result<Vec<PendingStatement>, StorageError> {
        let waiting = self.store.sendable(limit).await.map_err(storage_error)?;
        Ok(waiting.into_iter().map(pending_of).collect())
    }

    async fn delivered(&self, delivered: &[DeliveredStatement]) -> Result<(), StorageError> {
        crash::visit(ANSWERED);
        let at = now();
        let entries: Vec<DeliveredEntry> = delivered
            .iter()
            .map(|one| DeliveredEntry { id: one.sent.id, receipt: one.receipt.clone(), at })
            .collect();
        self.store.delivered(&entries).await.map_err(storage_error)?;
        self.metrics.delivered(entries.len());
        self.changes.send_replace(());
        Ok(())
    }

    async fn is_permanent(&self, _: &RefusedSubmission) -> Result<bool, StorageError> {
        Ok(true)
    }

    async fn refused(&self, refused: &[RefusedSubmission]) -> Result<(), StorageError> {
        for one in refused {
            self.mark_refused(one).await?;
        }
        self.changes.send_replace(());
        Ok(())
    }

    async fn retry_refused(&self) -> Result<u64, StorageError> {
        self.store.retry_refused().await.map_err(storage_error)
    }

    fn log_answers(&self) {
        if self.put_silence(None).is_some() {
            tracing::info!("the log registers receipts again");
        }
    }

    fn log_is_silent(&self, why: &str) {
        if self.put_silence(Some(why.to_owned())).is_none() {
            tracing::error!(why, "ALARM: no receipt can be registered; receipts are stored and sent again");
        }
    }
}

impl LogOutbox {
    /// Marks a receipt as refused, and halts its chain if that goes on elsewhere.
    async fn mark_refused(
        &self,
        RefusedSubmission { sent, refusal }: &RefusedSubmission,
    ) -> Result<(), StorageError> {
        let PendingStatement { id, stream, seq, .. } = sent;
        if is_fork(refusal) {
            let why = format!(
                "the log has another receipt at position {seq} ({}): another process signs with this key. Stop it, and \
                 go on with a new key and a new state folder",
                refusal.text
            );
            self.store.halt_chain(&self.issuer, stream, &why).await.map_err(storage_error)?;
            tracing::error!(%id, stream, seq, why, "ALARM: a receipt chain is halted");
        } else {
            tracing::error!(%id, stream, seq, why = refusal.text, "ALARM: the log refuses a receipt");
        }
        self.store.refused(id, &refusal.text).await.map_err(storage_error)
    }

    /// Replaces the reason for silence, and returns the earlier one.
    fn put_silence(&self, why: Option<String>) -> Option<String> {
        self.metrics.log_silent(why.is_some());
        std::mem::replace(&mut *self.silent.lock().unwrap_or_else(PoisonError::into_inner), why)
    }
}

fn is_fork(refusal: &LogRefusal) -> bool {
    let kinds = [GuardKind::VrfGenesis, GuardKind::VrfSuccessor, GuardKind::VrfPosition, GuardKind::VrfPlace];
    kinds.iter().any(|kind| refusal.rule.as_deref() == Some(kind.rule().as_str()))
}

/// A chain is a stream: `stream` is the agent, `seq` the position.
fn pending_of(waiting: WaitingStatement) -> PendingStatement {
    let WaitingStatement { id, subject, position, statement, .. } = waiting;
    PendingStatement { id, stream: subject, seq: position.unwrap_or_default(), statement }
}

fn storage_error(error: StoreError) -> StorageError {
    StorageError(error.to_string())
}
