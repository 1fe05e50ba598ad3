//! Signs heads again that were committed and pinned, and whose signatures a crash lost before they were stored.
//!
//! Receipts under such heads may have been issued. So that the checkpoint of any receipt's size can be read, the
//! heads are signed again, in order and before any newer head. Heads beyond the pin are left out, as they were
//! never signed. The newest head is signed by the machine; if it has its signatures, all earlier heads have
//! theirs.

use std::sync::Arc;

use merkle::TreeSize;
use store::{CommittedHead, HeadSignature, StoreError};

use crate::SequencerParts;
use crate::limits::LEFT_UNSIGNED;
use crate::recover::kept_signatures;

/// Signs the heads below the newest that lack signatures. On an error they stay unsigned: the storage check
/// ([`store::fsck`]) reports them, and receipts under the newest head do not depend on them.
pub(crate) async fn sign_what_was_left(parts: &Arc<SequencerParts>, newest: TreeSize) {
    match try_to(parts, newest).await {
        Ok(0) => {}
        Ok(count) => tracing::info!(count, "heads whose signatures were lost were signed again"),
        Err(why) => tracing::warn!(why, "signatures that were lost could not be made again"),
    }
}

async fn try_to(parts: &Arc<SequencerParts>, newest: TreeSize) -> Result<usize, String> {
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

/// Returns the heads without signatures. Signatures are stored in order, so these come after the newest signed head.
async fn unsigned(
    parts: &SequencerParts,
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

/// Returns the batch after the newest one that has every kind of signature.
async fn first_unsigned(parts: &SequencerParts, newest: TreeSize) -> Result<u64, StoreError> {
    let mut signed = Vec::new();
    for (kind, _) in parts.signer.makes(newest) {
        signed.push(parts.store.newest_signed(kind).await?.map_or(0, |signed| signed.head.batch));
    }
    Ok(signed.into_iter().min().unwrap_or(0) + 1)
}

async fn sign(parts: &Arc<SequencerParts>, head: &CommittedHead) -> Result<Vec<HeadSignature>, String> {
    let (parts, head) = (Arc::clone(parts), *head);
    let signed = tokio::task::spawn_blocking(move || parts.signer.sign(&head)).await;
    signed.map_err(|error| error.to_string())?.map_err(|error| error.to_string())
}
