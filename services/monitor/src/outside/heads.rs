//! Signed heads: for an outside observer, the only proof of an entry's commit time.
//!
//! A receipt signs its tree's root, size and time (`iat`). One receipt for each batch of the current page suffices,
//! because all entries of a batch were committed at once. Without a head signed by a trusted key, the time is the
//! service's unproven statement.

use audit::{HistoryHead, SourceError};
use client::{Client, ClientError};
use futures::stream::{self, StreamExt, TryStreamExt};
use merkle::{EntryDigest, LeafIndex, RootHash, TreeSize};
use store::CommittedHead;
use verifier::{Code, ReceiptFacts, StatementVerdict, TrustStore};

use crate::limits::HEADS_AT_ONCE;

/// Media type of a receipt.
const RECEIPT: &str = "application/scitt-receipt+cose";

/// An entry and the tree after its batch, as reported by the service.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Committed {
    pub leaf: LeafIndex,
    pub entry: EntryDigest,
    pub size: TreeSize,
    pub at: u64,
}

/// Signed heads of the current page.
#[derive(Debug, Default)]
pub struct PageHeads {
    page: Vec<HistoryHead>,
    /// Size of the newest head that was returned by [`give`](Self::give).
    given: Option<TreeSize>,
}

impl PageHeads {
    /// Starts a new page; returns the batches whose head was not returned yet.
    pub fn turn(&mut self, entries: impl Iterator<Item = Committed>) -> Vec<Committed> {
        self.page.clear();
        let mut batches: Vec<Committed> = entries.collect();
        batches.dedup_by_key(|entry| entry.size);
        batches.retain(|batch| self.given.is_none_or(|given| batch.size > given));
        batches
    }

    /// Stores the heads of the page.
    pub fn put(&mut self, heads: Vec<HistoryHead>) {
        self.page = heads;
    }

    /// Returns `true` if a signed head of this size is known.
    pub fn holds(&self, size: TreeSize) -> bool {
        self.given == Some(size) || self.page.iter().any(|head| head.head.size == size)
    }

    /// Returns the heads of the page, numbered from `from`: the service does not reveal its own batch numbers.
    pub fn give(&mut self, from: u64) -> Vec<HistoryHead> {
        let mut heads = std::mem::take(&mut self.page);
        (from..).zip(&mut heads).for_each(|(batch, head)| head.head.batch = batch);
        self.given = heads.last().map(|head| head.head.size).or(self.given);
        heads
    }
}

/// Fetches the heads of these batches; those without a receipt, or not signed by a trusted key, are omitted.
pub async fn fetch(
    client: &Client,
    trust: &TrustStore,
    batches: Vec<Committed>,
) -> Result<Vec<HistoryHead>, SourceError> {
    let answers = stream::iter(batches).map(|batch| signed_head(client, trust, batch));
    let heads: Vec<Option<HistoryHead>> = answers.buffered(HEADS_AT_ONCE).try_collect().await?;
    Ok(heads.into_iter().flatten().collect())
}

async fn signed_head(
    client: &Client,
    trust: &TrustStore,
    batch: Committed,
) -> Result<Option<HistoryHead>, SourceError> {
    let Committed { leaf, entry, size, at } = batch;
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
    let Some((signed_size, root)) = verdict.receipts.first().and_then(signed_tree) else { return Ok(None) };
    let time = match signed_size == size {
        true => signed_time(&verdict),
        false => Err(format!("it signs size {signed_size}")),
    };
    Ok(Some(HistoryHead { head: CommittedHead { batch: 0, epoch: 0, size, root, at }, signed: vec![time] }))
}

/// The tree size and root signed by a receipt; `None` if the size is not signed.
pub fn signed_tree(receipt: &ReceiptFacts) -> Option<(TreeSize, RootHash)> {
    let position = receipt.position.filter(|position| position.signed)?;
    Some((position.tree_size, receipt.root.as_ref()?.parse().ok()?))
}

/// The time signed by a receipt (`iat`), or the reason why it proves none.
fn signed_time(verdict: &StatementVerdict) -> Result<u64, String> {
    if !verdict.is_verified() {
        return Err(verdict.why().to_owned());
    }
    let iat = verdict.receipts.first().and_then(|receipt| receipt.iat);
    iat.and_then(|iat| u64::try_from(iat).ok()).ok_or_else(|| "it signs no time".to_owned())
}
