//! Receipts, assembled from signed heads without signing: the signature of a head serves every leaf under it.

use std::sync::Arc;

use arc_swap::ArcSwapOption;
use bytes::Bytes;
use merkle::{LeafIndex, TreeSize};
use prometheus::IntCounter;
use scitt::receipt::{ReceiptError, SignedRoot};
use sequencer::{Handle, Placement};
use store::{HeadSignature, SignatureKind, SignedLog, StoreError};

use crate::keys::recorded::sound;
use crate::proofs::tiles::{ProofFailure, Tiles};

/// The maker of receipts, from signed heads and tiles.
pub struct Receipts {
    store: Arc<dyn SignedLog>,
    tiles: Tiles,
    served: IntCounter,
    /// The most recently used signature, parsed: all receipts of a batch share it.
    newest: ArcSwapOption<(Bytes, SignedRoot)>,
}

/// Reason why there is no receipt.
#[derive(Debug, thiserror::Error)]
pub enum ReceiptUnavailable {
    /// The entry is committed and no signed head covers it yet.
    #[error("no signed head covers leaf {0} yet")]
    NotSignedYet(LeafIndex),
    /// The inclusion path could not be built.
    #[error(transparent)]
    Proof(#[from] ProofFailure),
    /// The database did not answer.
    #[error(transparent)]
    Store(#[from] StoreError),
    /// The stored signature is malformed.
    #[error("the signature over the head is damaged: {0}")]
    Signature(#[from] ReceiptError),
}

impl Receipts {
    /// Creates a maker of receipts over this store; `served` counts the receipts.
    pub fn new(store: Arc<dyn SignedLog>, tiles: Tiles, served: IntCounter) -> Self {
        Self { store, tiles, served, newest: ArcSwapOption::empty() }
    }

    /// The tiles that inclusion paths are built from.
    pub fn tiles(&self) -> &Tiles {
        &self.tiles
    }

    /// The receipt of a leaf that was just sequenced; from memory if the placement has the inclusion path.
    pub async fn placed(&self, placement: &Placement, handle: &Handle) -> Result<Bytes, ReceiptUnavailable> {
        let signature = placement.head.as_ref().and_then(|head| head.signature(SignatureKind::Receipt));
        match (signature, &placement.path) {
            (Some(signature), Some(path)) => Ok(self.assemble(signature, placement.index, path)?),
            _ => self.fresh(placement.index, handle).await,
        }
    }

    /// The receipt with the earliest time: under the head of the leaf's batch, whose time is that of the registration. If that
    /// head has no signature, or one by a key that is marked as compromised since, a receipt under the newest signed head.
    pub async fn dated(&self, leaf: LeafIndex, handle: &Handle) -> Result<Bytes, ReceiptUnavailable> {
        let Some(signature) = self.of_batch(leaf, handle).await? else {
            return self.fresh(leaf, handle).await;
        };
        let path = self.tiles.inclusion(leaf, signature.size).await?;
        self.served.inc();
        // An old signature does not take the place of the newest one in memory.
        Ok(SignedRoot::parse(signature.bytes)?.inclusion_receipt(leaf, &path).into())
    }

    /// The receipt signature over the head of the leaf's batch, by a key that is not marked as compromised since.
    async fn of_batch(&self, leaf: LeafIndex, handle: &Handle) -> Result<Option<HeadSignature>, StoreError> {
        let Some(head) = self.store.head_covering(leaf).await? else { return Ok(None) };
        let mut signatures = self.signatures_of(head.size, handle).await?;
        let keys = self.store.keys().await?;
        signatures
            .retain(|own| !keys.iter().any(|key| key.kid == own.kid && key.is_compromised_at(own.size)));
        match signatures.pop() {
            Some(signature) => sound(&*self.store, signature).await.map(Some),
            None => Ok(None),
        }
    }

    /// The receipt signatures over the head of exactly this size, as they are stored; the newest one is the last. That of the
    /// newest head may only be in memory.
    pub async fn signatures_of(
        &self,
        size: TreeSize,
        handle: &Handle,
    ) -> Result<Vec<HeadSignature>, StoreError> {
        let published = handle.published().filter(|published| published.head.size == size);
        if let Some(signature) = published.as_deref().and_then(|head| head.signature(SignatureKind::Receipt))
        {
            return Ok(vec![signature.clone()]);
        }
        let before = size.get().checked_sub(1).map(TreeSize::new);
        let mut signatures = self.store.signatures(before, 1).await?;
        signatures.retain(|own| own.size == size && own.kind == SignatureKind::Receipt);
        Ok(signatures)
    }

    /// A receipt under the newest signed head.
    pub async fn fresh(&self, leaf: LeafIndex, handle: &Handle) -> Result<Bytes, ReceiptUnavailable> {
        let signature = self.covering(leaf, handle).await?;
        let path = self.tiles.inclusion(leaf, signature.size).await?;
        Ok(self.assemble(&signature, leaf, &path)?)
    }

    /// The newest receipt signature whose head covers the leaf; [`ReceiptUnavailable::NotSignedYet`] if there is none.
    async fn covering(&self, leaf: LeafIndex, handle: &Handle) -> Result<HeadSignature, ReceiptUnavailable> {
        let published = handle.published();
        let known = published.as_deref().filter(|head| head.head.size.holds(leaf));
        if let Some(signature) = known.and_then(|head| head.signature(SignatureKind::Receipt)) {
            return Ok(signature.clone());
        }
        let stored = self.store.newest_signed(SignatureKind::Receipt).await?;
        let stored = stored.filter(|head| head.head.size.holds(leaf)).map(|head| head.signature);
        let stored = stored.ok_or(ReceiptUnavailable::NotSignedYet(leaf))?;
        match self.newest.load().as_deref().is_some_and(|newest| newest.0 == stored.bytes) {
            true => Ok(stored),
            false => Ok(sound(&*self.store, stored).await?),
        }
    }

    fn assemble(
        &self,
        signature: &HeadSignature,
        leaf: LeafIndex,
        path: &[merkle::Hash],
    ) -> Result<Bytes, ReceiptError> {
        self.served.inc();
        if let Some(newest) = self.newest.load().as_deref().filter(|newest| newest.0 == signature.bytes) {
            return Ok(newest.1.inclusion_receipt(leaf, path).into());
        }
        let signed = SignedRoot::parse(signature.bytes.clone())?;
        let receipt = signed.inclusion_receipt(leaf, path).into();
        self.newest.store(Some(Arc::new((signature.bytes.clone(), signed))));
        Ok(receipt)
    }
}
