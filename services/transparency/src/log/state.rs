//! The state of a running log, as all its users share it, and look-ups in it.

use std::sync::Arc;

use arc_swap::{ArcSwap, ArcSwapOption};
use bytes::Bytes;
use merkle::{EntryDigest, LeafIndex, TreeSize};
use sequencer::{Handle, Role};
use serving::failed_write::FailedWrite;
use store::{Found, LogStore, Progress, StoreError};

use crate::edge::rate_limit::AccessControl;
use crate::keys::signer::LogSigner;
use crate::log::decided::DecidedTerms;
use crate::log::erasures::{CarriedOut, EraserWakeup};
use crate::log::free_space::FreeSpace;
use crate::log::freezing::frozen_by;
use crate::log::open_findings::OpenFindings;
use crate::log::policies::Policies;
use crate::log::recent_entries::RecentEntries;
use crate::metrics::Metrics;
use crate::proofs::published_keys::PublishedKeys;
use crate::proofs::receipts::{ReceiptUnavailable, Receipts};
use crate::sequencer_runtime::SequencerRuntime;
use crate::witnessing::Witnessing;

/// Why an accepted statement is not registered once the operator has ended the log.
const LOG_ENDED: &str = "the operator ended the log before the statement was registered";

/// The permanent identity of the log, with the keys in use.
#[derive(Clone, Debug)]
pub struct Identity {
    /// The log's name in checkpoints and the `sub` of receipts.
    pub origin: String,
    /// The `iss` of receipts.
    pub iss: String,
    /// The URL at which clients reach the log.
    pub public_url: String,
    /// The path of this URL, without a slash at its end.
    pub public_path: String,
    /// Kid of the receipt key: base64url of the RFC 9679 thumbprint.
    pub receipt_kid: String,
    /// Signature algorithm of the receipts.
    pub receipt_algorithm: &'static str,
    /// The checkpoint key, as a C2SP verifier key.
    pub checkpoint_key: String,
}

/// The log's state, shared by all handlers.
pub struct Log {
    /// The log's names and keys.
    pub identity: Identity,
    /// The database that stores the log.
    pub store: Arc<dyn LogStore>,
    /// The handle of the sequencer, which orders entries into batches.
    pub sequencer: Handle,
    /// The runtime of the sequencer's tasks, which end with it.
    pub _sequencer_runtime: SequencerRuntime,
    /// The policy in force.
    pub policies: Arc<Policies>,
    /// The entries that were registered last.
    pub recent: RecentEntries,
    /// The maker of receipts.
    pub receipts: Receipts,
    /// The published keys that verify receipts and checkpoints.
    pub keys: ArcSwap<PublishedKeys>,
    /// The signer of the log's heads.
    pub signer: Arc<LogSigner>,
    /// The reason why registration is refused, found after the start.
    pub obstacle: ArcSwapOption<String>,
    /// The findings of the storage check.
    pub fsck: OpenFindings,
    /// The free space of the disks.
    pub space: FreeSpace,
    /// The last registration that the database could not store.
    pub failed_write: FailedWrite,
    /// The witnesses and their cosignatures.
    pub witnessing: Arc<Witnessing>,
    /// Wakes the task that deletes erased bytes.
    pub erasing: EraserWakeup,
    /// How far the deletion of erased bytes is.
    pub carried_out: CarriedOut,
    /// The search terms of entries that this process registered, until they are indexed.
    pub decided: DecidedTerms,
    /// The rate limiter with the issuer quotas.
    pub access: Arc<AccessControl>,
    /// The metrics.
    pub metrics: Arc<Metrics>,
}

/// The state of an entry ID.
#[derive(Debug)]
pub enum Resolved {
    /// The entry is in the log; its receipt.
    Receipt(Bytes),
    /// The statement is accepted and not in the log yet.
    Pending,
    /// The statement was accepted and then refused, for this reason.
    Failed(String),
    /// The log does not know the entry ID.
    Unknown,
}

impl Log {
    /// Looks up an entry ID: its receipt, or the state of its registration.
    pub async fn resolve(&self, digest: EntryDigest) -> Result<Resolved, ReceiptUnavailable> {
        if let Some(index) = self.index_of(digest).await? {
            return self.receipt(index).await;
        }
        match self.store.progress(&digest).await? {
            Some(Progress::Pending) => self.pending(digest).await,
            Some(Progress::Failed(why)) => Ok(Resolved::Failed(why)),
            Some(Progress::Registered(index)) => self.receipt(index).await,
            // It may have been registered, and taken out of the inbox, between the two look-ups.
            None => match self.index_of(digest).await? {
                Some(index) => self.receipt(index).await,
                None => Ok(Resolved::Unknown),
            },
        }
    }

    /// The state of a statement in the inbox: no statement gets a leaf after the one that ended the log.
    async fn pending(&self, digest: EntryDigest) -> Result<Resolved, ReceiptUnavailable> {
        if frozen_by(&*self.store).await?.is_none() {
            return Ok(Resolved::Pending);
        }
        // It may have been registered since it was looked up, and before the log ended.
        match self.index_of(digest).await? {
            Some(index) => self.receipt(index).await,
            None => Ok(Resolved::Failed(LOG_ENDED.to_owned())),
        }
    }

    /// A fresh receipt of a leaf.
    pub async fn receipt(&self, index: LeafIndex) -> Result<Resolved, ReceiptUnavailable> {
        resolved(self.receipts.fresh(index, &self.sequencer).await)
    }

    /// The receipt of a leaf with the earliest time, at which the dates of its statement are judged: that of its registration.
    pub async fn dated_receipt(&self, index: LeafIndex) -> Result<Resolved, ReceiptUnavailable> {
        resolved(self.receipts.dated(index, &self.sequencer).await)
    }

    /// The leaf of an entry ID; `None` for a twin of it.
    pub async fn index_of(&self, digest: EntryDigest) -> Result<Option<LeafIndex>, StoreError> {
        let Some(found) = self.find(digest).await? else { return Ok(None) };
        if found.digest == digest {
            return Ok(Some(found.index));
        }
        // Either its twin was found, or the stored entry is damaged, which must not pass for an answer.
        self.sound(found.index).await?;
        Ok(None)
    }

    /// The entry that has this digest or is a twin of it. A recent one is found in memory, so damage to its row is found by
    /// those who read the row.
    pub(super) async fn find(&self, digest: EntryDigest) -> Result<Option<Found>, StoreError> {
        if let Some(index) = self.recent.leaf(digest) {
            return Ok(Some(Found { index, digest }));
        }
        Ok(self.store.find(&[digest]).await?.into_iter().next().flatten())
    }

    /// Checks that the entry at this leaf is undamaged.
    pub(super) async fn sound(&self, index: LeafIndex) -> Result<(), StoreError> {
        if let Some(entry) = self.store.entry(index).await? {
            entry.verified()?;
        }
        Ok(())
    }

    /// The largest size that this process has seen committed or published.
    pub fn committed_size(&self) -> TreeSize {
        let published = self.sequencer.published().map_or(TreeSize::new(0), |published| published.head.size);
        self.sequencer.status().borrow().size.max(published)
    }

    /// The number of readable leaves. A follower learns of commits later than the database, so it asks the database.
    pub async fn readable_size(&self) -> Result<TreeSize, StoreError> {
        let leads = matches!(self.sequencer.status().borrow().role, Role::Leading { .. });
        match leads {
            true => Ok(self.committed_size()),
            false => Ok(self.store.head().await?.size()),
        }
    }

    /// The URL of an entry's receipt, for `Location`.
    pub fn location(&self, digest: EntryDigest) -> String {
        format!("{}/entries/{digest}", self.identity.public_url)
    }
}

/// An entry whose receipt is not signed yet is pending.
fn resolved(receipt: Result<Bytes, ReceiptUnavailable>) -> Result<Resolved, ReceiptUnavailable> {
    match receipt {
        Ok(receipt) => Ok(Resolved::Receipt(receipt)),
        Err(ReceiptUnavailable::NotSignedYet(_)) => Ok(Resolved::Pending),
        Err(why) => Err(why),
    }
}
