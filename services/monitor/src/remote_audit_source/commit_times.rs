//! Commit times of entries, proven by receipts: for a reader outside of the log, a signed head is the only proof.
//!
//! A receipt signs its tree's root, size and time (`iat`). One receipt for each batch of the current page suffices,
//! because all entries of a batch were committed at once. Without a head signed by a trusted key, the time is the
//! service's unproven statement.

use audit::{HistoryHead, SourceError};
use client::{Client, ClientError};
use futures::stream::{self, StreamExt, TryStreamExt};
use merkle::{EntryDigest, LeafIndex, TreeSize};
use store::CommittedHead;
use verifier::{Code, ReceiptFacts, StatementVerdict, TrustStore};

use crate::limits::HEADS_AT_ONCE;
use crate::signed_checkpoint::TreeHead;

/// Media type of a receipt.
const RECEIPT: &str = "application/scitt-receipt+cose";

/// An entry, and size and commit time of the tree after its batch, as reported by the service.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct CommittedEntry {
    pub leaf: LeafIndex,
    pub entry: EntryDigest,
    pub size: TreeSize,
    pub at: u64,
}

/// Signed heads of the current page.
#[derive(Debug, Default)]
pub struct PageHeads {
    page: Vec<HistoryHead>,
    /// Size of the newest head that was returned by [`take`](Self::take).
    returned: Option<TreeSize>,
}

impl PageHeads {
    /// Starts a new page; returns the batches whose head was not returned yet.
    pub fn start_page(&mut self, entries: impl Iterator<Item = CommittedEntry>) -> Vec<CommittedEntry> {
        self.page.clear();
        let mut batches: Vec<CommittedEntry> = entries.collect();
        batches.dedup_by_key(|entry| entry.size);
        batches.retain(|batch| self.returned.is_none_or(|returned| batch.size > returned));
        batches
    }

    /// Stores the heads of the page.
    pub fn store(&mut self, heads: Vec<HistoryHead>) {
        self.page = heads;
    }

    /// Returns `true` if a signed head of this size is known.
    pub fn holds(&self, size: TreeSize) -> bool {
        self.returned == Some(size) || self.page.iter().any(|head| head.head.size == size)
    }

    /// Returns the heads of the page, numbered from `from`: the service does not reveal its own batch numbers.
    pub fn take(&mut self, from: u64) -> Vec<HistoryHead> {
        let mut heads = std::mem::take(&mut self.page);
        (from..).zip(&mut heads).for_each(|(batch, head)| head.head.batch = batch);
        self.returned = heads.last().map(|head| head.head.size).or(self.returned);
        heads
    }
}

/// Fetches the heads of these batches; those without a receipt, or not signed by a trusted key, are omitted.
pub async fn fetch_heads(
    client: &Client,
    trust: &TrustStore,
    batches: Vec<CommittedEntry>,
) -> Result<Vec<HistoryHead>, SourceError> {
    let answers = stream::iter(batches).map(|batch| signed_head(client, trust, batch));
    let heads: Vec<Option<HistoryHead>> = answers.buffered(HEADS_AT_ONCE).try_collect().await?;
    Ok(heads.into_iter().flatten().collect())
}

async fn signed_head(
    client: &Client,
    trust: &TrustStore,
    batch: CommittedEntry,
) -> Result<Option<HistoryHead>, SourceError> {
    let CommittedEntry { leaf, entry, size, at } = batch;
    let path = format!("v1/proof/inclusion?index={leaf}&size={size}");
    let receipt = match client.bytes_as(&path, RECEIPT).await {
        Ok(receipt) => receipt,
        Err(ClientError::Refused { .. }) => return Ok(None),
        Err(error) => return Err(super::unanswered(error)),
    };
    // Verified as of the reported commit time: a clock that was ahead and has been corrected signed times that are
    // still in the future.
    let verdict = verifier::verify_receipt_of(entry, &receipt, trust, at);
    if matches!(verdict.reason, Some(Code::UnknownLog | Code::UnknownLogKey | Code::MalformedReceipt)) {
        return Ok(None);
    }
    let Some(TreeHead { size: signed_size, root }) = verdict.receipts.first().and_then(signed_tree) else {
        return Ok(None);
    };
    let time = match signed_size == size {
        true => signed_time(&verdict),
        false => Err(format!("the receipt signs size {signed_size}")),
    };
    Ok(Some(HistoryHead { head: CommittedHead { batch: 0, epoch: 0, size, root, at }, signed: vec![time] }))
}

/// The tree size and root signed by a receipt; `None` if the size is not signed.
pub fn signed_tree(receipt: &ReceiptFacts) -> Option<TreeHead> {
    let position = receipt.position.filter(|position| position.signed)?;
    Some(TreeHead { size: position.tree_size, root: receipt.root.as_ref()?.parse().ok()? })
}

/// The time signed by a receipt (`iat`), or the reason why it proves none.
fn signed_time(verdict: &StatementVerdict) -> Result<u64, String> {
    if !verdict.is_verified() {
        return Err(verdict.why().to_owned());
    }
    let iat = verdict.receipts.first().and_then(|receipt| receipt.iat);
    iat.and_then(|iat| u64::try_from(iat).ok()).ok_or_else(|| "the receipt signs no time".to_owned())
}
