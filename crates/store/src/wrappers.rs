//! Wrappers of a log's store: [`FailingStore`] fails on request, in each of the ways in which a database can fail;
//! [`MeasuredStore`] reports how long each operation takes.

use std::ops::Range;
use std::sync::Arc;

use bytes::Bytes;
use fault_injection::{Fault, InjectedError, failing_store};
use lookup_tree::{InnerNode, Posting, PostingBlock, PostingPrefix};
use merkle::{EntryDigest, LeafIndex, TreeSize};
use operation_times::measured_store;

use crate::lookup::{Build, FinishedRun, ListedValue, RunCatalog, ValueBlock};
use crate::{
    Arrival, Batch, Collateral, CommitError, CommittedHead, Cosignature, Cosignatures, Custody, Enqueued,
    Entry, EntryStatus, Erased, Found, GuardKey, GuardRow, Head, HeadSignature, History, HistoryExport,
    HistoryImport, Hold, Inbox, InboxItem, InboxUse, KeptReport, KeyAnnouncement, KeyRotation, Lease,
    Lifecycle, LogKey, LogKeys, LogReader, LogStore, LogWriter, LookupIndex, Order, PendingKey, Progress,
    Quotas, Report, Reports, SeenKey, SeenRow, SequencerStore, ServerChecks, SignatureKind, SignatureStore,
    SignedHead, Source, State, StorageFault, StoreError, TileAddress, TileStore,
};

impl FailingStore {
    /// Makes every commit wait until [`release_commits`](Self::release_commits).
    pub fn hold_commits(&self) {
        self.hold_calls(StoreMethod::Commit);
    }

    /// Lets the waiting commits go on, and those after them.
    pub fn release_commits(&self) {
        self.release_calls(StoreMethod::Commit);
    }
}

impl InjectedError for StoreError {
    fn injected(fault: Fault, text: String) -> Self {
        match fault {
            Fault::Full => Self::Storage(StorageFault::Full, text),
            Fault::Ended => Self::Refused(text),
            Fault::Refused | Fault::Overtaken | Fault::NotApplied | Fault::AppliedWithoutAnswer => {
                Self::Unavailable(text)
            }
        }
    }
}

impl InjectedError for CommitError {
    fn injected(fault: Fault, text: String) -> Self {
        match fault {
            Fault::NotApplied | Fault::AppliedWithoutAnswer => Self::Unknown(text),
            Fault::Refused | Fault::Overtaken | Fault::Full | Fault::Ended => {
                Self::NotCommitted(StoreError::injected(fault, text))
            }
        }
    }
}

/// Passes the methods of all storage traits to a macro that declares a wrapper, after `first`. Those of [`Lifecycle`] are not
/// among them, as each wrapper has some of its own.
macro_rules! declare_wrapper {
    ($wrapper:ident { $($first:tt)* }) => {
        $wrapper! {
            $($first)*

            impl LogReader {
                Head head() -> Result<Head, StoreError>;
                Find find(digests: &[EntryDigest]) -> Result<Vec<Option<Found>>, StoreError>;
                Guards guards(keys: &[GuardKey]) -> Result<Vec<Option<LeafIndex>>, StoreError>;
                Entry entry(index: LeafIndex) -> Result<Option<Entry>, StoreError>;
                Entries entries(from: LeafIndex, limit: usize) -> Result<Vec<Entry>, StoreError>;
                EntriesAt entries_at(leaves: &[LeafIndex]) -> Result<Vec<Entry>, StoreError>;
                Digests digests(from: LeafIndex, limit: usize) -> Result<Vec<EntryDigest>, StoreError>;
                Collateral collateral(index: LeafIndex) -> Result<Vec<Collateral>, StoreError>;
                Heads heads(from: u64, limit: usize) -> Result<Vec<CommittedHead>, StoreError>;
                HeadOfSize head_of_size(size: TreeSize) -> Result<Option<CommittedHead>, StoreError>;
                HeadCovering head_covering(leaf: LeafIndex) -> Result<Option<CommittedHead>, StoreError>;
            }

            impl LogWriter {
                Open open(origin: &str) -> Result<Head, StoreError>;
                TakeOver take_over(holder: &str) -> Result<Head, StoreError>;
                Commit commit(batch: &Batch) -> Result<(), CommitError>;
            }

            impl TileStore {
                Tiles tiles(addresses: &[TileAddress]) -> Result<Vec<Option<Bytes>>, StoreError>;
            }

            impl SignatureStore {
                KeepSignatures keep_signatures(signatures: &[HeadSignature]) -> Result<(), StoreError>;
                Signature signature(size: TreeSize, kind: SignatureKind, kid: &[u8])
                    -> Result<Option<HeadSignature>, StoreError>;
                NewestSigned newest_signed(kind: SignatureKind) -> Result<Option<SignedHead>, StoreError>;
                Signatures signatures(after: Option<TreeSize>, limit: usize)
                    -> Result<Vec<HeadSignature>, StoreError>;
            }

            impl Inbox {
                Enqueue enqueue_within(item: &InboxItem, arrival: &Arrival<'_>) -> Result<Enqueued, StoreError>;
                PendingKeys pending_keys(after: Option<u64>, limit: usize) -> Result<Vec<PendingKey>, StoreError>;
                Submissions submissions(numbers: &[u64]) -> Result<Vec<(u64, Bytes)>, StoreError>;
                InboxUse inbox_use() -> Result<InboxUse, StoreError>;
                Progress progress(digest: &EntryDigest) -> Result<Option<Progress>, StoreError>;
                Refuse refuse(digest: &EntryDigest, failure: &str) -> Result<(), StoreError>;
                TrimInbox trim_inbox(limit: usize) -> Result<u64, StoreError>;
                ForgetFailures forget_failures(keep: u64, limit: usize) -> Result<u64, StoreError>;
                Waiting waiting(after: Option<u64>, limit: usize) -> Result<Vec<(u64, InboxItem)>, StoreError>;
            }

            impl LogKeys {
                KeepKey keep_key(key: &LogKey) -> Result<(), StoreError>;
                Keys keys() -> Result<Vec<LogKey>, StoreError>;
            }

            impl ServerChecks {
                CheckDurability check_durability() -> Result<(), StoreError>;
                Clock clock() -> Result<Option<std::time::Duration>, StoreError>;
            }

            impl Custody {
                Erase erase(entries: &[LeafIndex]) -> Result<Erased, StoreError>;
                Hold hold(entry: LeafIndex, case: &str, at: u64) -> Result<(), StoreError>;
                Release release(entry: LeafIndex, case: &str, at: u64) -> Result<bool, StoreError>;
                Holds holds(after: Option<LeafIndex>, limit: usize) -> Result<Vec<Hold>, StoreError>;
                Held held(entries: &[LeafIndex]) -> Result<Vec<LeafIndex>, StoreError>;
                Statuses statuses(entries: &[LeafIndex]) -> Result<Vec<EntryStatus>, StoreError>;
            }

            impl Reports {
                KeepReport keep_report(report: &Report) -> Result<bool, StoreError>;
                Reports reports(after: Option<u64>, limit: usize) -> Result<Vec<KeptReport>, StoreError>;
                ReportsAbout reports_about(registered: &[LeafIndex]) -> Result<Vec<KeptReport>, StoreError>;
            }

            impl LookupIndex {
                Catalog catalog() -> Result<RunCatalog, StoreError>;
                BeginRun begin_run() -> Result<Build, StoreError>;
                AddBlocks add_blocks(build: Build, blocks: &[PostingBlock], nodes: &[InnerNode]) -> Result<(), StoreError>;
                FinishRun finish_run(run: &FinishedRun) -> Result<bool, StoreError>;
                RetireRun retire_run(build: Build) -> Result<(), StoreError>;
                Sweep sweep(abandoned: Build, limit: usize) -> Result<bool, StoreError>;
                DropIndex drop_index(form: u32) -> Result<(), StoreError>;
                Blocks blocks(build: Build, from: Posting, to: Posting, order: Order, limit: usize)
                    -> Result<Vec<PostingBlock>, StoreError>;
                BlocksWith blocks_with(build: Build, postings: &[Posting]) -> Result<Vec<PostingBlock>, StoreError>;
                Nodes nodes(build: Build, places: &[PostingPrefix]) -> Result<Vec<Option<InnerNode>>, StoreError>;
                AddValues add_values(build: Build, blocks: &[ValueBlock]) -> Result<(), StoreError>;
                ValueBlocks value_blocks(build: Build, from: &ListedValue, limit: usize)
                    -> Result<Vec<ValueBlock>, StoreError>;
            }

            impl Quotas {
                TakeQuota take_quota(bucket: &str, window: u64, limit: u64, want: u64) -> Result<u64, StoreError>;
                TrimQuotas trim_quotas(keep: Range<u64>) -> Result<u64, StoreError>;
            }

            impl Cosignatures {
                KeepCosignature keep_cosignature(cosignature: &Cosignature) -> Result<(), StoreError>;
                Cosignatures cosignatures(size: TreeSize) -> Result<Vec<Cosignature>, StoreError>;
                NewestCosignature newest_cosignature(witness: &[u8]) -> Result<Option<Cosignature>, StoreError>;
                Cosigned cosigned(below: Option<TreeSize>, limit: usize) -> Result<Vec<Cosignature>, StoreError>;
            }

            impl HistoryExport {
                SeenRows seen_rows(after: Option<SeenKey>, limit: usize) -> Result<Vec<SeenRow>, StoreError>;
                GuardRows guard_rows(after: Option<&GuardKey>, limit: usize) -> Result<Vec<GuardRow>, StoreError>;
                CollateralRows collateral_rows(entries: Range<u64>)
                    -> Result<Vec<(LeafIndex, Collateral)>, StoreError>;
            }

            impl HistoryImport {
                BeginFilling begin_filling(origin: &str, source: &Source) -> Result<Head, StoreError>;
                Fill fill(source: &Source, history: &History) -> Result<(), StoreError>;
                FillClaims fill_claims(source: &Source, seen: &[SeenRow], guards: &[GuardRow])
                    -> Result<(), StoreError>;
                EndFilling end_filling(source: &Source, epoch: u64, policy: LeafIndex) -> Result<Head, StoreError>;
            }

            impl KeyRotation {
                AnnounceKey announce_key(announcement: &KeyAnnouncement) -> Result<(), StoreError>;
                AnnouncedKeys announced_keys() -> Result<Vec<KeyAnnouncement>, StoreError>;
                TakeUpKey take_up_key(kid: &[u8], epoch: u64, at: u64) -> Result<Option<LogKey>, StoreError>;
                MarkCompromised mark_compromised(kid: &[u8], since: TreeSize) -> Result<(), StoreError>;
            }
        }
    };
}

declare_wrapper! {
    failing_store {
        /// Wrapper of a [`LogStore`] whose calls fail or wait as ordered. Clones share the orders.
        pub struct FailingStore over LogStore;
        /// Methods of all storage traits.
        pub enum StoreMethod;
        writes [];

        impl Lifecycle {
            Lease lease(holder: &str) -> Result<Option<Box<dyn Lease>>, StoreError>;
            State state() -> Result<State, StoreError>;
            Freeze freeze(holder: &str, at: u64) -> Result<Head, StoreError>;
        }
    }
}

declare_wrapper! {
    measured_store {
        /// Wrapper of a store that reports the duration of each call. Its store for sequencing is wrapped, too.
        pub struct MeasuredStore over StoreMethod;

        impl Lifecycle [
            fn for_sequencing(&self) -> Option<Arc<dyn SequencerStore>> {
                let inner = self.inner.for_sequencing()?;
                Some(Arc::new(MeasuredStore::new(inner, self.observer.clone())))
            }

            async fn close(&self) {
                self.inner.close().await;
            }
        ] {
            Lease lease(holder: &str) -> Result<Option<Box<dyn Lease>>, StoreError>;
            State state() -> Result<State, StoreError>;
            Freeze freeze(holder: &str, at: u64) -> Result<Head, StoreError>;
        }
    }
}
