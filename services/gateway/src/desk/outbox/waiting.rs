//! Calls that wait until the log has their decision (`receipt_required`).

use std::collections::HashMap;
use std::sync::{Mutex, MutexGuard, PoisonError};

use bytes::Bytes;
use merkle::EntryDigest;
use tokio::sync::oneshot;

/// Why no receipt came.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum NoReceipt {
    /// Not in time.
    #[error("the log gave no receipt in time")]
    TimedOut,
    /// The log will not have the record.
    #[error("the log refuses the record: {0}")]
    Refused(String),
}

/// Who waits for which record. Several may wait for one.
#[derive(Debug, Default)]
pub struct Waiting(Mutex<HashMap<EntryDigest, Vec<Waiter>>>);

type Waiter = oneshot::Sender<Result<Bytes, NoReceipt>>;

impl Waiting {
    /// Waits from now on.
    pub fn wait(&self, id: EntryDigest) -> oneshot::Receiver<Result<Bytes, NoReceipt>> {
        let (tell, told) = oneshot::channel();
        let mut waiting = self.lock();
        // Whoever gave up is forgotten here: nobody else comes by while the log is away.
        waiting.retain(|_, waiters| {
            waiters.retain(|waiter| !waiter.is_closed());
            !waiters.is_empty()
        });
        waiting.entry(id).or_default().push(tell);
        told
    }

    /// Tells whoever waits for this record.
    pub fn tell(&self, id: &EntryDigest, what: &Result<Bytes, NoReceipt>) {
        let waiters = self.lock().remove(id);
        for waiter in waiters.into_iter().flatten() {
            // Whoever gave up has been denied.
            let _ = waiter.send(what.clone());
        }
    }

    fn lock(&self) -> MutexGuard<'_, HashMap<EntryDigest, Vec<Waiter>>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
