//! Commit times of entries, proven by receipts: for a reader outside of the log, a signed head is the only proof.
//!
//! A receipt signs its tree's root, size and time (`iat`). One receipt for each batch of the current page suffices,
//! because all entries of a batch were committed at once. Without a head signed by a trusted key, the time is the
//! service's unproven statement. A receipt that fails to verify is a finding of the audit; a receipt by an unknown key
//! counts as none, since keys that are missing in the trust file are no fault of the log.

use audit::{HistoryHead, SourceError};
use client::{Client, ClientError};
use futures::stream::{self, StreamExt, TryStreamExt};
use merkle::{EntryDigest, LeafIndex, TreeSize};
use scitt::media::RECEIPT;
use store::CommittedHead;
use verifier::{Code, ReceiptFacts, StatementVerdict, TrustStore, VerificationOutcome};

use crate::limits::HEADS_AT_ONCE;
use crate::signed_checkpoint::TreeHead;

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

/// What the service's receipt of a batch proves.
pub enum BatchReceipt {
    /// A trusted key signed this head.
    Signed(HistoryHead),
    /// The receipt of this leaf does not verify, for this reason.
    Refused(LeafIndex, String),
    /// The service has no receipt, or none that a trusted key can verify.
    Absent,
}

/// Fetches and verifies one receipt for each of these batches.
pub async fn fetch_receipts(
    client: &Client,
    trust: &TrustStore,
    batches: Vec<CommittedEntry>,
) -> Result<Vec<BatchReceipt>, SourceError> {
    let answers = stream::iter(batches).map(|batch| fetch_receipt(client, trust, batch));
    answers.buffered(HEADS_AT_ONCE).try_collect().await
}

async fn fetch_receipt(
    client: &Client,
    trust: &TrustStore,
    batch: CommittedEntry,
) -> Result<BatchReceipt, SourceError> {
    let path = format!("v1/proof/inclusion?index={}&size={}", batch.leaf, batch.size);
    match client.bytes_as(&path, RECEIPT).await {
        Ok(receipt) => Ok(BatchReceipt::verify(&receipt, trust, batch)),
        Err(ClientError::Refused { .. }) => Ok(BatchReceipt::Absent),
        Err(error) => Err(super::unanswered(error)),
    }
}

impl BatchReceipt {
    /// Verifies a receipt as of the reported commit time: a clock that was ahead and has been corrected signed times that
    /// are still in the future.
    fn verify(receipt: &[u8], trust: &TrustStore, batch: CommittedEntry) -> Self {
        let CommittedEntry { leaf, entry, size, at } = batch;
        let verdict = verifier::verify_receipt_of(entry, receipt, trust, at);
        let Some(TreeHead { size: signed_size, root }) = verdict.receipts.first().and_then(signed_tree)
        else {
            // A compromised key proves nothing, for or against the log.
            let compromised = verdict.reason == Some(Code::LogKeyCompromised);
            return match verdict.outcome == VerificationOutcome::Failed && !compromised {
                true => Self::Refused(leaf, verdict.why().to_owned()),
                false => Self::Absent,
            };
        };
        let time = match signed_size == size {
            true => signed_time(&verdict),
            false => Err(format!("the receipt signs size {signed_size}")),
        };
        let head = CommittedHead { batch: 0, epoch: 0, size, root, at };
        Self::Signed(HistoryHead { head, signed: vec![time] })
    }
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
