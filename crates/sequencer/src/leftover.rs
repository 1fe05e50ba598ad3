//! Heads that were committed and pinned, and whose signatures a crash took along before they were kept.
//!
//! Receipts under them may have left: so that the checkpoint of any receipt's size can be read, they are signed again, in
//! order and before anything newer is. Only what the pin covers: a head beyond it was never signed. The newest head is
//! the machine's own business; where that has its signatures, all before it have theirs.

use std::sync::Arc;

use merkle::TreeSize;
use store::{CommittedHead, HeadSignature, StoreError};

use crate::Parts;
use crate::limits::LEFT_UNSIGNED;
use crate::recover::kept_signatures;

/// Signs what was left, below the newest head. What cannot be signed or kept now stays left: the check of the storage
/// tells it, and no promise hangs on it that the newest head does not keep.
pub(crate) async fn sign_what_was_left(parts: &Arc<Parts>, newest: TreeSize) {
    match try_to(parts, newest).await {
        Ok(0) => {}
        Ok(count) => tracing::info!(count, "heads were signed again whose signatures were lost"),
        Err(why) => tracing::warn!(why, "signatures that were lost could not be made again"),
    }
}

async fn try_to(parts: &Arc<Parts>, newest: TreeSize) -> Result<usize, String> {
    let pin = parts.pin.read().await.map_err(|error| error.to_string())?;
    let Some(pin) = pin else { return Ok(0) };
    let heads = unsigned(parts, pin.size, newest).await.map_err(|error| error.to_string())?;
    let mut signatures = Vec::new();
    for head in &heads {
        signatures.extend(sign(parts, head).await?);
    }
    parts.store.keep_signatures(&signatures).await.map_err(|error| error.to_string())?;
    Ok(heads.len())
}

/// Signatures are kept in order: what is missing comes after the newest that is there.
async fn unsigned(
    parts: &Parts,
    pinned: TreeSize,
    newest: TreeSize,
) -> Result<Vec<CommittedHead>, StoreError> {
    let mut unsigned = Vec::new();
    for head in parts.store.heads(first_unsigned(parts, newest).await?, LEFT_UNSIGNED).await? {
        let may_have_left = head.size <= pinned && head.size < newest;
        if may_have_left && kept_signatures(parts, &head).await?.is_none() {
            unsigned.push(head);
        }
    }
    Ok(unsigned)
}

/// The batch after the newest one that has every kind of signature.
async fn first_unsigned(parts: &Parts, newest: TreeSize) -> Result<u64, StoreError> {
    let mut signed = Vec::new();
    for (kind, _) in parts.signer.makes(newest) {
        signed.push(parts.store.newest_signed(kind).await?.map_or(0, |signed| signed.head.batch));
    }
    Ok(signed.into_iter().min().unwrap_or(0) + 1)
}

async fn sign(parts: &Arc<Parts>, head: &CommittedHead) -> Result<Vec<HeadSignature>, String> {
    let (parts, head) = (Arc::clone(parts), *head);
    let signed = tokio::task::spawn_blocking(move || parts.signer.sign(&head)).await;
    signed.map_err(|error| error.to_string())?.map_err(|error| error.to_string())
}
