//! What was written is what was stored, and what is filled is what was written.
#![allow(clippy::unwrap_used)]

mod support;

use archive::{ArchivePurpose, ArchiveWriteError, FillError};
use merkle::{EntryDigest, LeafIndex};
use store::contract::{Appender, ORIGIN, entry, statement};
use store::{
    Custody, FailingStore, Fault, GuardKey, HistoryImport, Lifecycle, LogKeys, LogReader, LogStore,
    LogWriter, Memory, State, StoreError, TileStore, fsck,
};
use support::{Plain, full, header, sign, written};

async fn fill(store: &dyn LogStore, bytes: &[u8]) -> Result<archive::FillResult, FillError> {
    let summary = archive::verify(bytes, &Plain, &|_| ()).unwrap();
    archive::fill(store, bytes, (&summary, &Plain), &|_| ()).await
}

/// Everything that can be asked of a store, but for holder, state and epoch of its head.
async fn assert_same(left: &dyn LogStore, right: &dyn LogStore) {
    let (ours, theirs) = (left.head().await.unwrap(), right.head().await.unwrap());
    assert_eq!(
        (ours.batch, &ours.edge, ours.at, ours.policy),
        (theirs.batch, &theirs.edge, theirs.at, theirs.policy)
    );
    let size = ours.size().get();
    let zero = LeafIndex::new(0);
    assert_eq!(left.entries(zero, 1000).await.unwrap(), right.entries(zero, 1000).await.unwrap());
    assert_eq!(left.collateral_rows(0..size).await.unwrap(), right.collateral_rows(0..size).await.unwrap());
    assert_eq!(left.heads(1, 1000).await.unwrap(), right.heads(1, 1000).await.unwrap());
    assert_eq!(left.signatures(None, 1000).await.unwrap(), right.signatures(None, 1000).await.unwrap());
    assert_eq!(left.cosigned(None, 1000).await.unwrap(), right.cosigned(None, 1000).await.unwrap());
    assert_eq!(left.keys().await.unwrap(), right.keys().await.unwrap());
    assert_eq!(left.holds(None, 1000).await.unwrap(), right.holds(None, 1000).await.unwrap());
    assert_eq!(left.reports(None, 1000).await.unwrap(), right.reports(None, 1000).await.unwrap());
    assert_eq!(left.seen_rows(None, 1000).await.unwrap(), right.seen_rows(None, 1000).await.unwrap());
    assert_eq!(left.guard_rows(None, 1000).await.unwrap(), right.guard_rows(None, 1000).await.unwrap());
    assert_eq!(left.pending(1000).await.unwrap(), right.pending(1000).await.unwrap());
}

#[tokio::test]
async fn a_log_comes_out_of_its_archive_as_it_went_in() {
    let store = full().await;
    let (bytes, summary) = written(&store, ArchivePurpose::Backup).await;
    assert_eq!(archive::verify(&bytes[..], &Plain, &|_| ()).unwrap(), summary);
    assert_eq!((summary.counts.entries, summary.counts.erased), (306, 2));
    assert_eq!((summary.counts.holds, summary.counts.reports, summary.counts.waiting), (5, 2, 1));
    let copy = Memory::new();
    let filled = fill(&copy, &bytes).await.unwrap();
    assert_eq!((filled.already_present, filled.written), (0, 306));
    let head = archive::finish(&copy, &summary).await.unwrap();
    assert_eq!(head.epoch, store.head().await.unwrap().epoch);
    assert_same(&store, &copy).await;
    assert_eq!(copy.state().await.unwrap(), State::Open);
    let head = copy.take_over("who goes on").await.unwrap();
    assert_eq!(head.epoch, summary.epoch + 1);
}

#[tokio::test]
async fn a_filled_log_passes_a_deep_check_and_keeps_its_claims() {
    let (bytes, summary) = written(&full().await, ArchivePurpose::Backup).await;
    let copy = Memory::new();
    fill(&copy, &bytes).await.unwrap();
    archive::finish(&copy, &summary).await.unwrap();
    let report = fsck::Fsck::new(&copy, &fsck::NoFacts).deep().await.unwrap();
    let silent = |finding: &fsck::Defect| matches!(finding, fsck::Defect::ErasedSilently { .. });
    assert!(report.findings.iter().all(silent), "{report:?}");
    let twin = copy.find(&[EntryDigest::of(b"a twin")]).await.unwrap();
    assert_eq!(twin[0].unwrap().index, LeafIndex::new(301));
    let guards = copy.guards(&[GuardKey(b"kept for ever".to_vec())]).await.unwrap();
    assert_eq!(guards, [Some(LeafIndex::new(302))]);
}

#[tokio::test]
async fn an_archive_is_the_same_bytes_when_the_log_is_the_same() {
    let store = full().await;
    assert_eq!(
        written(&store, ArchivePurpose::Backup).await.0,
        written(&store, ArchivePurpose::Backup).await.0
    );
}

#[tokio::test]
async fn nothing_but_its_own_filling_uses_a_half_filled_database() {
    let (bytes, summary) = written(&full().await, ArchivePurpose::Backup).await;
    let copy = Memory::new();
    fill(&copy, &bytes).await.unwrap();
    for refused in [copy.open(ORIGIN).await, copy.take_over("a service").await] {
        assert!(
            matches!(&refused, Err(StoreError::Refused(why)) if why.contains("not complete")),
            "{refused:?}"
        );
    }
    assert!(matches!(copy.freeze("operator", 1).await, Err(StoreError::Refused(_))));
    let mut other = summary.clone();
    other.source.0[0] ^= 1;
    assert!(copy.begin_filling(ORIGIN, &other.source).await.is_err());
    assert!(archive::finish(&copy, &other).await.is_err());
    archive::finish(&copy, &summary).await.unwrap();
    assert!(copy.open(ORIGIN).await.is_ok());
}

#[tokio::test]
async fn a_database_that_holds_a_log_is_not_filled() {
    let (bytes, _) = written(&full().await, ArchivePurpose::Backup).await;
    let used = Appender::with(std::sync::Arc::new(Memory::new()), 3).await;
    drop(used);
    let store = Memory::new();
    Appender::with(std::sync::Arc::new(store.clone()), 3).await;
    let before = store.head().await.unwrap();
    let refused = fill(&store, &bytes).await;
    assert!(
        matches!(&refused, Err(FillError::Store(StoreError::Refused(why))) if why.contains("not empty")),
        "{refused:?}"
    );
    assert_eq!(store.head().await.unwrap(), before);
}

#[tokio::test]
async fn an_interrupted_filling_goes_on_wherever_it_stopped() {
    let store = full().await;
    let (bytes, summary) = written(&store, ArchivePurpose::Backup).await;
    let mut interrupted = 0;
    for nth in 1.. {
        let copy = Memory::new();
        let failing = FailingStore::new(copy.clone());
        failing.fail_any(nth, if nth % 2 == 0 { Fault::Refused } else { Fault::AppliedWithoutAnswer });
        if fill(&failing, &bytes).await.is_ok() {
            break;
        }
        interrupted += 1;
        fill(&copy, &bytes).await.unwrap();
        archive::finish(&copy, &summary).await.unwrap();
        assert_same(&store, &copy).await;
    }
    assert!(interrupted > 15, "{interrupted}");
}

#[tokio::test]
async fn an_export_wants_a_frozen_log_with_a_signed_head() {
    let store = Memory::new();
    let mut log = Appender::with(std::sync::Arc::new(store.clone()), 2).await;
    let export = async || {
        let mut out = Vec::new();
        archive::write(&store, &Plain, header(ArchivePurpose::Export), &mut out, &|_| ()).await
    };
    assert!(matches!(export().await, Err(ArchiveWriteError::Empty)));
    let key = store::LogKey::new(support::KID.to_vec(), Default::default(), merkle::TreeSize::new(0));
    store.keep_key(&key).await.unwrap();
    sign(&store).await;
    assert!(matches!(export().await, Err(ArchiveWriteError::NotFrozen)));
    log.append(1).await;
    store.freeze("operator", 5).await.unwrap();
    assert!(matches!(export().await, Err(ArchiveWriteError::NotSigned { .. })));
    sign(&store).await;
    let summary = export().await.unwrap();
    assert_eq!((summary.size.get(), summary.purpose), (3, ArchivePurpose::Export));
}

#[tokio::test]
async fn a_backup_ends_with_the_newest_signed_head() {
    let store = full().await;
    let signed = store.head().await.unwrap().size();
    let mut log = Appender2::of(&store).await;
    log.append(400).await;
    let (bytes, summary) = written(&store, ArchivePurpose::Backup).await;
    assert_eq!(summary.size, signed);
    let copy = Memory::new();
    fill(&copy, &bytes).await.unwrap();
    archive::finish(&copy, &summary).await.unwrap();
    assert_eq!(copy.head().await.unwrap().size(), signed);
    assert_eq!(copy.entry(LeafIndex::new(signed.get())).await.unwrap(), None);
    assert_eq!(copy.find(&[EntryDigest::of(&statement(400))]).await.unwrap(), [None]);
}

#[tokio::test]
async fn a_backup_goes_on_until_an_erasure_that_came_meanwhile_is_in_it() {
    let store = full().await;
    let mut log = Appender2::of(&store).await;
    let bytes = bytes::Bytes::from_static(b"erase 7");
    log.append_entries(vec![store::NewEntry {
        digest: EntryDigest::of(&bytes),
        statement: bytes,
        ..entry(0)
    }])
    .await;
    let unsigned = store.head().await.unwrap().size();
    store.erase(&[LeafIndex::new(7)]).await.unwrap();
    let late = store.clone();
    let signing = tokio::spawn(async move {
        tokio::time::sleep(std::time::Duration::from_millis(300)).await;
        sign(&late).await;
    });
    let (bytes, summary) = tokio::task::spawn_blocking(move || {
        tokio::runtime::Runtime::new()
            .unwrap()
            .block_on(async { written(&store, ArchivePurpose::Backup).await })
    })
    .await
    .unwrap();
    signing.await.unwrap();
    assert_eq!((summary.size, summary.counts.erased), (unsigned, 3));
    assert!(archive::verify(&bytes[..], &Plain, &|_| ()).is_ok());
}

#[tokio::test]
async fn an_entry_that_lost_its_bytes_silently_is_not_backed_up() {
    let store = full().await;
    store.erase(&[LeafIndex::new(9)]).await.unwrap();
    let mut out = Vec::new();
    let refused = archive::write(&store, &Plain, header(ArchivePurpose::Backup), &mut out, &|_| ()).await;
    assert!(
        matches!(&refused, Err(ArchiveWriteError::Damaged(why)) if why.contains("entry 9")),
        "{refused:?}"
    );
}

/// Appends to a log that has entries already.
struct Appender2 {
    store: Memory,
}

impl Appender2 {
    async fn of(store: &Memory) -> Self {
        Self { store: store.clone() }
    }

    async fn append(&mut self, count: u64) {
        let from = self.store.head().await.unwrap().size().get() + 1000;
        self.append_entries((from..from + count).map(entry).collect()).await;
    }

    async fn append_entries(&mut self, entries: Vec<store::NewEntry>) {
        let from = self.store.head().await.unwrap();
        let needed: Vec<_> =
            merkle::tile::OpenTiles::needed(from.size()).into_iter().map(store::proofs::address_of).collect();
        let open =
            self.store.tiles(&needed).await.unwrap().into_iter().map(Option::unwrap).collect::<Vec<_>>();
        let open = merkle::tile::OpenTiles::restore(from.size(), &open).unwrap();
        let appended = store::Batch::append(&from, &open, from.at, entries).unwrap();
        self.store.commit(&appended.batch).await.unwrap();
    }
}
