//! Stores signatures in the database, in the background, where no batch takes them along.
//!
//! No caller waits for it, as a signature that is lost here is made again: the newest head is signed again at the
//! next start. Signatures are stored in order, so that no head is stored as signed before its predecessors are: while
//! any wait here ([`SignatureQueue::is_empty`]), later ones have to queue here, too.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use store::{HeadSignature, SignatureStore, StoreError};
use tokio::sync::{mpsc, oneshot};

use crate::crash::Point;
use crate::{Limits, Observer};

/// Sender to the task [`keep`], which ends when this is dropped.
pub(crate) struct SignatureQueue {
    messages: mpsc::UnboundedSender<Keep>,
    waiting: Arc<AtomicUsize>,
}

/// Receiver of the task [`keep`].
pub(crate) struct QueuedSignatures {
    messages: mpsc::UnboundedReceiver<Keep>,
    waiting: Arc<AtomicUsize>,
}

/// Makes an empty queue.
pub(crate) fn queue() -> (SignatureQueue, QueuedSignatures) {
    let (sender, receiver) = mpsc::unbounded_channel();
    let waiting = Arc::<AtomicUsize>::default();
    let queued = QueuedSignatures { messages: receiver, waiting: Arc::clone(&waiting) };
    (SignatureQueue { messages: sender, waiting }, queued)
}

impl SignatureQueue {
    /// Appends signatures, in the order in which they are to be stored.
    pub(crate) fn push(&self, signatures: Vec<HeadSignature>) {
        for signature in signatures {
            self.waiting.fetch_add(1, Ordering::Relaxed);
            if self.messages.send(Keep::Signature(signature)).is_err() {
                tracing::error!("the task that keeps signatures is gone");
            }
        }
    }

    /// Returns whether everything is stored, or will never be.
    pub(crate) fn is_empty(&self) -> bool {
        self.waiting.load(Ordering::Acquire) == 0
    }

    /// Waits until everything so far is stored; returns `false` if some of it could not be.
    pub(crate) async fn flush(&self) -> bool {
        let (answer, kept) = oneshot::channel();
        self.messages.send(Keep::Flush(answer)).is_ok() && kept.await.is_ok()
    }
}

/// Message to the task [`keep`], processed in order.
enum Keep {
    /// A signature to store.
    Signature(HeadSignature),
    /// Request for an answer once everything since the last `Flush` is stored; dropped without an answer if some
    /// of it could not be stored.
    Flush(oneshot::Sender<()>),
}

/// Maximum number of signatures in one transaction.
const AT_ONCE: usize = 64;

/// Runs until the sender is dropped and everything is stored. Signatures that arrive while the database is busy
/// are stored together, as each transaction is one more flush besides those of the commits.
pub(crate) async fn keep(
    store: Arc<dyn SignatureStore>,
    observer: Arc<dyn Observer>,
    limits: Limits,
    mut queued: QueuedSignatures,
) {
    let (mut received, mut lost) = (Vec::new(), false);
    while queued.messages.recv_many(&mut received, AT_ONCE).await > 0 {
        let (mut waiting, mut flushes) = (Vec::new(), Vec::new());
        for keep in received.drain(..) {
            match keep {
                Keep::Signature(signature) => waiting.push(signature),
                Keep::Flush(answer) => flushes.push(answer),
            }
        }
        Point::BeforeKeep.visit();
        let writer = SignatureWriter { store: &*store, observer: &*observer, limits: &limits };
        if !writer.keep(&waiting).await {
            // Stores them one by one, so that one that cannot be stored does not affect the others.
            match &waiting[..] {
                [_] => lost = true,
                several => {
                    for signature in several {
                        lost |= !writer.keep(std::slice::from_ref(signature)).await;
                    }
                }
            }
        }
        queued.waiting.fetch_sub(waiting.len(), Ordering::Release);
        for answer in flushes {
            if !std::mem::take(&mut lost) {
                let _ = answer.send(()); // who asked may be gone
            }
        }
    }
}

struct SignatureWriter<'k> {
    store: &'k dyn SignatureStore,
    observer: &'k dyn Observer,
    limits: &'k Limits,
}

impl SignatureWriter<'_> {
    /// Stores signatures in one transaction, with retries; returns `false` if that can never succeed.
    async fn keep(&self, signatures: &[HeadSignature]) -> bool {
        let Some(newest) = signatures.last().map(|signature| signature.size) else { return true };
        for attempt in 1.. {
            match self.store.keep_signatures(signatures).await {
                Ok(()) => break,
                Err(error @ (StoreError::Unavailable(_) | StoreError::Storage(..))) => {
                    self.observer.signature_not_kept();
                    tracing::warn!(size = %newest, %error, "a signature is not kept yet");
                    tokio::time::sleep(self.limits.pause(attempt)).await;
                }
                Err(error) => {
                    self.observer.signature_not_kept();
                    tracing::error!(size = %newest, %error, "a signature cannot be kept");
                    return false;
                }
            }
        }
        true
    }
}
