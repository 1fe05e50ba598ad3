//! Keeps signatures in the database, without anybody waiting for it.
//!
//! A signature that is lost here is no loss: the newest head is signed again at the next start.
//! In order, so that no head is kept as signed before its predecessors were.

use std::sync::Arc;

use store::{HeadSignature, LogStore, StoreError};
use tokio::sync::mpsc;

use crate::crash::Point;
use crate::{Limits, Observer};

/// Runs until the sender is dropped and everything is kept.
pub(crate) async fn keep(
    store: Arc<dyn LogStore>,
    observer: Arc<dyn Observer>,
    limits: Limits,
    mut signatures: mpsc::UnboundedReceiver<HeadSignature>,
) {
    while let Some(signature) = signatures.recv().await {
        Point::BeforeKeep.visit();
        keep_one(&*store, &*observer, &limits, &signature).await;
    }
}

async fn keep_one(store: &dyn LogStore, observer: &dyn Observer, limits: &Limits, signature: &HeadSignature) {
    for attempt in 1.. {
        match store.keep_signature(signature).await {
            Ok(()) => return,
            Err(StoreError::Unavailable(why)) => {
                observer.signature_not_kept();
                tracing::warn!(size = %signature.size, why, "a signature is not kept yet");
                tokio::time::sleep(limits.pause(attempt)).await;
            }
            Err(error) => {
                observer.signature_not_kept();
                tracing::error!(size = %signature.size, %error, "a signature cannot be kept");
                return;
            }
        }
    }
}
