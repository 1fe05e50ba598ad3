//! A store whose commits wait at a gate: to see what happens while nothing is sequenced.

use std::ops::Range;

use async_trait::async_trait;
use bytes::Bytes;
use merkle::{EntryDigest, LeafIndex, TreeSize};
use store::{
    Arrival, Batch, Collateral, CommitError, CommittedHead, Cosignature, Cosignatures, Custody, Enqueued,
    Entry, Erased, Found, GuardKey, GuardRow, Head, HeadSignature, History, Hold, InboxItem, InboxUse,
    Indexed, KeptReport, KeyAnnouncement, KeyRotation, Lease, LogKey, LogStore, Lookup, LookupIndex, Memory,
    Moving, Page, PendingKey, Progress, Query, Quotas, Report, Reports, SeenKey, SeenRow, SignatureKind,
    SignedHead, Source, Standing, State, StoreError, TileAddress,
};
use tokio::sync::watch;

/// A memory store with a gate before `commit`.
#[derive(Clone)]
pub struct Gated {
    pub memory: Memory,
    open: watch::Sender<bool>,
    counts: watch::Sender<bool>,
}

impl Gated {
    pub fn new() -> Self {
        Self { memory: Memory::new(), open: watch::Sender::new(true), counts: watch::Sender::new(true) }
    }

    pub fn close(&self) {
        self.open.send_replace(false);
    }

    pub fn open(&self) {
        self.open.send_replace(true);
    }

    /// From now on no quota is counted, though everything else goes on.
    pub fn lose_counters(&self) {
        self.counts.send_replace(false);
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

    async fn digests(&self, from: LeafIndex, limit: usize) -> Result<Vec<EntryDigest>, StoreError> {
        self.memory.digests(from, limit).await
    }

    async fn collateral(&self, index: LeafIndex) -> Result<Vec<Collateral>, StoreError> {
        self.memory.collateral(index).await
    }

    async fn tiles(&self, addresses: &[TileAddress]) -> Result<Vec<Option<Bytes>>, StoreError> {
        self.memory.tiles(addresses).await
    }

    async fn heads(&self, from: u64, limit: usize) -> Result<Vec<CommittedHead>, StoreError> {
        self.memory.heads(from, limit).await
    }

    async fn head_of_size(&self, size: TreeSize) -> Result<Option<CommittedHead>, StoreError> {
        self.memory.head_of_size(size).await
    }

    async fn keep_signatures(&self, signatures: &[HeadSignature]) -> Result<(), StoreError> {
        self.memory.keep_signatures(signatures).await
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

    async fn enqueue_within(&self, item: &InboxItem, arrival: &Arrival<'_>) -> Result<Enqueued, StoreError> {
        self.memory.enqueue_within(item, arrival).await
    }

    async fn pending_keys(&self, after: Option<u64>, limit: usize) -> Result<Vec<PendingKey>, StoreError> {
        self.memory.pending_keys(after, limit).await
    }

    async fn submissions(&self, numbers: &[u64]) -> Result<Vec<(u64, Bytes)>, StoreError> {
        self.memory.submissions(numbers).await
    }

    async fn inbox_use(&self) -> Result<InboxUse, StoreError> {
        self.memory.inbox_use().await
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

    async fn keys(&self) -> Result<Vec<LogKey>, StoreError> {
        self.memory.keys().await
    }

    async fn check_durability(&self) -> Result<(), StoreError> {
        self.memory.check_durability().await
    }
}

#[async_trait]
impl Custody for Gated {
    async fn erase(&self, entries: &[LeafIndex]) -> Result<Erased, StoreError> {
        self.memory.erase(entries).await
    }

    async fn hold(&self, entry: LeafIndex, case: &str, at: u64) -> Result<(), StoreError> {
        self.memory.hold(entry, case, at).await
    }

    async fn release(&self, entry: LeafIndex, case: &str, at: u64) -> Result<bool, StoreError> {
        self.memory.release(entry, case, at).await
    }

    async fn holds(&self, after: Option<LeafIndex>, limit: usize) -> Result<Vec<Hold>, StoreError> {
        self.memory.holds(after, limit).await
    }

    async fn held(&self, entries: &[LeafIndex]) -> Result<Vec<LeafIndex>, StoreError> {
        self.memory.held(entries).await
    }

    async fn standing(&self, entries: &[LeafIndex]) -> Result<Vec<Standing>, StoreError> {
        self.memory.standing(entries).await
    }
}

#[async_trait]
impl Reports for Gated {
    async fn keep_report(&self, report: &Report) -> Result<bool, StoreError> {
        self.memory.keep_report(report).await
    }

    async fn reports(&self, after: Option<u64>, limit: usize) -> Result<Vec<KeptReport>, StoreError> {
        self.memory.reports(after, limit).await
    }

    async fn reports_about(&self, registered: &[LeafIndex]) -> Result<Vec<KeptReport>, StoreError> {
        self.memory.reports_about(registered).await
    }
}

#[async_trait]
impl Cosignatures for Gated {
    async fn keep_cosignature(&self, cosignature: &Cosignature) -> Result<(), StoreError> {
        self.memory.keep_cosignature(cosignature).await
    }

    async fn cosignatures(&self, size: TreeSize) -> Result<Vec<Cosignature>, StoreError> {
        self.memory.cosignatures(size).await
    }

    async fn newest_cosignature(&self, witness: &[u8]) -> Result<Option<Cosignature>, StoreError> {
        self.memory.newest_cosignature(witness).await
    }

    async fn cosigned(&self, below: Option<TreeSize>, limit: usize) -> Result<Vec<Cosignature>, StoreError> {
        self.memory.cosigned(below, limit).await
    }
}

#[async_trait]
impl LookupIndex for Gated {
    async fn indexed(&self) -> Result<Indexed, StoreError> {
        self.memory.indexed().await
    }

    async fn index(&self, from: Indexed, to: TreeSize, rows: &[Lookup]) -> Result<bool, StoreError> {
        self.memory.index(from, to, rows).await
    }

    async fn drop_index(&self, form: u32) -> Result<(), StoreError> {
        self.memory.drop_index(form).await
    }

    async fn search(&self, query: &Query) -> Result<Page, StoreError> {
        self.memory.search(query).await
    }

    async fn values(
        &self,
        kind: u8,
        prefix: &str,
        after: Option<&str>,
        limit: usize,
    ) -> Result<Vec<String>, StoreError> {
        self.memory.values(kind, prefix, after, limit).await
    }

    async fn lookups(&self, entries: &[LeafIndex]) -> Result<Vec<Lookup>, StoreError> {
        self.memory.lookups(entries).await
    }
}

#[async_trait]
impl Quotas for Gated {
    async fn take_quota(&self, bucket: &str, window: u64, limit: u64, want: u64) -> Result<u64, StoreError> {
        if !*self.counts.borrow() {
            return Err(StoreError::Unavailable("the counters are away".into()));
        }
        self.memory.take_quota(bucket, window, limit, want).await
    }

    async fn trim_quotas(&self, before: u64) -> Result<u64, StoreError> {
        self.memory.trim_quotas(before).await
    }
}

#[async_trait]
impl Moving for Gated {
    async fn state(&self) -> Result<State, StoreError> {
        self.memory.state().await
    }

    async fn freeze(&self, holder: &str, at: u64) -> Result<Head, StoreError> {
        self.memory.freeze(holder, at).await
    }

    async fn seen_rows(&self, after: Option<SeenKey>, limit: usize) -> Result<Vec<SeenRow>, StoreError> {
        self.memory.seen_rows(after, limit).await
    }

    async fn guard_rows(&self, after: Option<&GuardKey>, limit: usize) -> Result<Vec<GuardRow>, StoreError> {
        self.memory.guard_rows(after, limit).await
    }

    async fn collateral_rows(&self, entries: Range<u64>) -> Result<Vec<(LeafIndex, Collateral)>, StoreError> {
        self.memory.collateral_rows(entries).await
    }

    async fn waiting(&self, after: Option<u64>, limit: usize) -> Result<Vec<(u64, InboxItem)>, StoreError> {
        self.memory.waiting(after, limit).await
    }

    async fn begin_filling(&self, origin: &str, source: &Source) -> Result<Head, StoreError> {
        self.memory.begin_filling(origin, source).await
    }

    async fn fill(&self, source: &Source, history: &History) -> Result<(), StoreError> {
        self.memory.fill(source, history).await
    }

    async fn fill_claims(
        &self,
        source: &Source,
        seen: &[SeenRow],
        guards: &[GuardRow],
    ) -> Result<(), StoreError> {
        self.memory.fill_claims(source, seen, guards).await
    }

    async fn end_filling(&self, source: &Source, epoch: u64, policy: LeafIndex) -> Result<Head, StoreError> {
        self.memory.end_filling(source, epoch, policy).await
    }
}

#[async_trait]
impl KeyRotation for Gated {
    async fn announce_key(&self, announcement: &KeyAnnouncement) -> Result<(), StoreError> {
        self.memory.announce_key(announcement).await
    }

    async fn announced_keys(&self) -> Result<Vec<KeyAnnouncement>, StoreError> {
        self.memory.announced_keys().await
    }

    async fn take_up_key(&self, kid: &[u8], epoch: u64, at: u64) -> Result<Option<LogKey>, StoreError> {
        self.memory.take_up_key(kid, epoch, at).await
    }

    async fn mark_compromised(&self, kid: &[u8], since: TreeSize) -> Result<(), StoreError> {
        self.memory.mark_compromised(kid, since).await
    }
}
