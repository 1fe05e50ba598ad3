//! Heads that were committed and pinned, and whose signatures a crash took along before they were kept.
//!
//! Receipts under them may have left: so that the checkpoint of any receipt's size can be read, they are signed again, in
//! order and before anything newer is. Only what the pin covers: a head beyond it was never signed. The newest head is
//! the machine's own business; where that has its signatures, all before it have theirs.

use std::sync::Arc;

use merkle::TreeSize;
use store::{CommittedHead, HeadSignature, SignatureKind, StoreError};

use crate::Parts;
use crate::limits::LEFT_UNSIGNED;
use crate::recover::{read_pin, signatures_of};

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
    let pin = read_pin(parts).await.map_err(|halt| halt.to_string())?;
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
    let first = first_unsigned(parts, newest).await?;
    let Some(first) = first else { return Ok(Vec::new()) };
    let mut heads = parts.store.heads(first, LEFT_UNSIGNED).await?;
    heads.retain(|head| head.size <= pinned && head.size < newest);
    let mut unsigned = Vec::new();
    for head in heads {
        let kept = signatures_of(&*parts.store, head.size).await?;
        let has = |(kind, kid): &(SignatureKind, Vec<u8>)| {
            kept.iter().any(|kept| kept.kind == *kind && kept.kid == *kid)
        };
        if !parts.signer.makes().iter().all(has) {
            unsigned.push(head);
        }
    }
    Ok(unsigned)
}

/// The batch after the newest one that has every kind of signature; `None` if that is the newest of all.
async fn first_unsigned(parts: &Parts, newest: TreeSize) -> Result<Option<u64>, StoreError> {
    let mut signed_to = None;
    for (kind, _) in parts.signer.makes() {
        let signed = parts.store.newest_signed(kind).await?.map(|signed| signed.head);
        let (size, batch) = signed.map_or((TreeSize::EMPTY, 0), |head| (head.size, head.batch));
        signed_to = Some(signed_to.map_or((size, batch), |least: (TreeSize, u64)| least.min((size, batch))));
    }
    Ok(signed_to.filter(|(size, _)| *size < newest).map(|(_, batch)| batch + 1))
}

async fn sign(parts: &Arc<Parts>, head: &CommittedHead) -> Result<Vec<HeadSignature>, String> {
    let (parts, head) = (Arc::clone(parts), *head);
    let signed = tokio::task::spawn_blocking(move || parts.signer.sign(&head)).await;
    signed.map_err(|error| error.to_string())?.map_err(|error| error.to_string())
}
