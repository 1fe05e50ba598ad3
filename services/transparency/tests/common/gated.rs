//! A store whose commits wait at a gate: to see what happens while nothing is sequenced.

use async_trait::async_trait;
use merkle::{EntryDigest, LeafIndex, TreeSize};
use store::{
    Batch, Collateral, CommitError, CommittedHead, Entry, Found, GuardKey, Head, HeadSignature, InboxItem,
    Lease, LogKey, LogStore, Memory, Progress, SignatureKind, SignedHead, StoreError, TileAddress,
};
use tokio::sync::watch;

/// A memory store with a gate before `commit`.
#[derive(Clone)]
pub struct Gated {
    pub memory: Memory,
    open: watch::Sender<bool>,
}

impl Gated {
    pub fn new() -> Self {
        Self { memory: Memory::new(), open: watch::Sender::new(true) }
    }

    pub fn close(&self) {
        self.open.send_replace(false);
    }

    pub fn open(&self) {
        self.open.send_replace(true);
    }
}

#[async_trait]
impl LogStore for Gated {
    async fn open(&self, origin: &str) -> Result<Head, StoreError> {
        self.memory.open(origin).await
    }

    async fn head(&self) -> Result<Head, StoreError> {
        self.memory.head().await
    }

    async fn lease(&self, holder: &str) -> Result<Option<Box<dyn Lease>>, StoreError> {
        self.memory.lease(holder).await
    }

    async fn take_over(&self, holder: &str) -> Result<Head, StoreError> {
        self.memory.take_over(holder).await
    }

    async fn commit(&self, batch: &Batch) -> Result<(), CommitError> {
        let _ = self.open.subscribe().wait_for(|open| *open).await;
        self.memory.commit(batch).await
    }

    async fn find(&self, digests: &[EntryDigest]) -> Result<Vec<Option<Found>>, StoreError> {
        self.memory.find(digests).await
    }

    async fn guards(&self, keys: &[GuardKey]) -> Result<Vec<Option<LeafIndex>>, StoreError> {
        self.memory.guards(keys).await
    }

    async fn entry(&self, index: LeafIndex) -> Result<Option<Entry>, StoreError> {
        self.memory.entry(index).await
    }

    async fn entries(&self, from: LeafIndex, limit: usize) -> Result<Vec<Entry>, StoreError> {
        self.memory.entries(from, limit).await
    }

    async fn collateral(&self, index: LeafIndex) -> Result<Vec<Collateral>, StoreError> {
        self.memory.collateral(index).await
    }

    async fn tiles(&self, addresses: &[TileAddress]) -> Result<Vec<Option<bytes::Bytes>>, StoreError> {
        self.memory.tiles(addresses).await
    }

    async fn heads(&self, from: u64, limit: usize) -> Result<Vec<CommittedHead>, StoreError> {
        self.memory.heads(from, limit).await
    }

    async fn head_of_size(&self, size: TreeSize) -> Result<Option<CommittedHead>, StoreError> {
        self.memory.head_of_size(size).await
    }

    async fn keep_signature(&self, signature: &HeadSignature) -> Result<(), StoreError> {
        self.memory.keep_signature(signature).await
    }

    async fn signature(
        &self,
        size: TreeSize,
        kind: SignatureKind,
        kid: &[u8],
    ) -> Result<Option<HeadSignature>, StoreError> {
        self.memory.signature(size, kind, kid).await
    }

    async fn newest_signed(&self, kind: SignatureKind) -> Result<Option<SignedHead>, StoreError> {
        self.memory.newest_signed(kind).await
    }

    async fn signatures(
        &self,
        after: Option<TreeSize>,
        limit: usize,
    ) -> Result<Vec<HeadSignature>, StoreError> {
        self.memory.signatures(after, limit).await
    }

    async fn enqueue(&self, item: &InboxItem) -> Result<(), StoreError> {
        self.memory.enqueue(item).await
    }

    async fn pending(&self, limit: usize) -> Result<Vec<InboxItem>, StoreError> {
        self.memory.pending(limit).await
    }

    async fn progress(&self, digest: &EntryDigest) -> Result<Option<Progress>, StoreError> {
        self.memory.progress(digest).await
    }

    async fn refuse(&self, digest: &EntryDigest, failure: &str) -> Result<(), StoreError> {
        self.memory.refuse(digest, failure).await
    }

    async fn trim_inbox(&self, limit: usize) -> Result<u64, StoreError> {
        self.memory.trim_inbox(limit).await
    }

    async fn keep_key(&self, key: &LogKey) -> Result<(), StoreError> {
        self.memory.keep_key(key).await
    }

    async fn retire_key(&self, kid: &[u8], at: u64) -> Result<(), StoreError> {
        self.memory.retire_key(kid, at).await
    }

    async fn keys(&self) -> Result<Vec<LogKey>, StoreError> {
        self.memory.keys().await
    }

    async fn check_durability(&self) -> Result<(), StoreError> {
        self.memory.check_durability().await
    }
}
