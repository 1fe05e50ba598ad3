//! Calls that wait until the log has their decision (`receipt_required`).

use std::collections::HashMap;
use std::sync::{Mutex, MutexGuard, PoisonError};

use bytes::Bytes;
use merkle::EntryDigest;
use tokio::sync::oneshot;

/// Reason why there is no receipt.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum NoReceipt {
    /// The log issued none within `receipt_wait`.
    #[error("the log gave no receipt in time")]
    TimedOut,
    /// The log refuses the record for good.
    #[error("the log refuses the record: {0}")]
    Refused(String),
}

/// The waiting calls by record. Several may wait for one record.
#[derive(Debug, Default)]
pub struct ReceiptWaiters(Mutex<HashMap<EntryDigest, Vec<Waiter>>>);

type Waiter = oneshot::Sender<Result<Bytes, NoReceipt>>;

impl ReceiptWaiters {
    /// Registers a waiter for the receipt of a record.
    pub fn wait(&self, id: EntryDigest) -> oneshot::Receiver<Result<Bytes, NoReceipt>> {
        let (reply, answer) = oneshot::channel();
        let mut waiting = self.lock();
        // Waiters that gave up are removed here, since `reply` is not called while the log is unreachable.
        waiting.retain(|_, waiters| {
            waiters.retain(|waiter| !waiter.is_closed());
            !waiters.is_empty()
        });
        waiting.entry(id).or_default().push(reply);
        answer
    }

    /// Sends the result to all waiters for this record.
    pub fn notify(&self, id: &EntryDigest, what: &Result<Bytes, NoReceipt>) {
        let waiters = self.lock().remove(id);
        for waiter in waiters.into_iter().flatten() {
            // A waiter that gave up has been denied already.
            let _ = waiter.send(what.clone());
        }
    }

    fn lock(&self) -> MutexGuard<'_, HashMap<EntryDigest, Vec<Waiter>>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
