//! Keeps signatures in the database, without anybody waiting for it.
//!
//! A signature that is lost here is no loss: the newest head is signed again at the next start.
//! In order, so that no head is kept as signed before its predecessors were.

use std::sync::Arc;

use store::{HeadSignature, LogStore, StoreError};
use tokio::sync::{mpsc, oneshot};

use crate::crash::Point;
use crate::{Limits, Observer};

/// What the task is given, in order.
pub(crate) enum Keep {
    /// A signature to keep.
    Signature(HeadSignature),
    /// A question, answered once everything since the last one is kept, and dropped if something could not be kept.
    Flush(oneshot::Sender<()>),
}

/// The most signatures in one transaction.
const AT_ONCE: usize = 64;

/// Runs until the sender is dropped and everything is kept. What came while the database was busy goes together: each
/// transaction is one more flush beside the commits.
pub(crate) async fn keep(
    store: Arc<dyn LogStore>,
    observer: Arc<dyn Observer>,
    limits: Limits,
    mut given: mpsc::UnboundedReceiver<Keep>,
) {
    let (mut received, mut lost) = (Vec::new(), false);
    while given.recv_many(&mut received, AT_ONCE).await > 0 {
        let (mut waiting, mut flushes) = (Vec::new(), Vec::new());
        for keep in received.drain(..) {
            match keep {
                Keep::Signature(signature) => waiting.push(signature),
                Keep::Flush(answer) => flushes.push(answer),
            }
        }
        Point::BeforeKeep.visit();
        let keeper = Keeper { store: &*store, observer: &*observer, limits: &limits };
        if !keeper.keep(&waiting).await {
            // One that cannot be kept takes none with it.
            match &waiting[..] {
                [_] => lost = true,
                several => {
                    for signature in several {
                        lost |= !keeper.keep(std::slice::from_ref(signature)).await;
                    }
                }
            }
        }
        for answer in flushes {
            if !std::mem::take(&mut lost) {
                let _ = answer.send(()); // who asked may be gone
            }
        }
    }
}

struct Keeper<'k> {
    store: &'k dyn LogStore,
    observer: &'k dyn Observer,
    limits: &'k Limits,
}

impl Keeper<'_> {
    /// Answers whether they are kept; if not, they never will be together.
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
