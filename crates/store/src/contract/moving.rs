//! Contract tests of `Lifecycle`, `HistoryExport` and `HistoryImport`: freezing a log, and filling another database with its history.

use std::sync::Arc;

use bytes::Bytes;
use merkle::{EntryDigest, LeafIndex, TreeSize};

use super::LogDatabase;
use super::fixture::{Appender, ORIGIN, entry};
use crate::{
    Batch, Collateral, CommitError, CommittedHead, Cosignature, GuardKey, Head, HeadSignature, History,
    InboxItem, LogKey, LogStore, NewEntry, Progress, SignatureKind, Source, State, StoreError,
};

const SOURCE: Source = Source([7; 32]);

fn is_frozen<T: std::fmt::Debug>(outcome: Result<T, StoreError>) -> bool {
    matches!(outcome, Err(StoreError::Frozen))
}

fn is_refused<T: std::fmt::Debug>(outcome: Result<T, StoreError>) -> bool {
    matches!(outcome, Err(StoreError::Refused(_)))
}

/// Tries a commit also under the epoch that `freeze` itself raised.
pub async fn a_frozen_log_takes_no_commit_and_no_take_over(database: &dyn LogDatabase) {
    let mut log = Appender::with(database.handle().await, 3).await;
    let store = database.handle().await;
    assert_eq!(store.state().await.unwrap(), State::Open);
    let frozen = store.freeze("operator", 77).await.unwrap();
    assert_eq!((frozen.epoch, frozen.size()), (log.head().epoch + 1, TreeSize::new(3)));
    let batch = log.batch(vec![entry(3)]);
    assert!(matches!(log.commit(&batch).await, Err(CommitError::NotCommitted(StoreError::Frozen))));
    let of_this_epoch = |head: &Head| Head { epoch: frozen.epoch, ..head.clone() };
    let batch = Batch { from: of_this_epoch(&batch.from), to: of_this_epoch(&batch.to), ..batch };
    assert!(matches!(store.commit(&batch).await, Err(CommitError::NotCommitted(StoreError::Frozen))));
    assert!(is_frozen(store.take_over("another").await));
    let later = database.handle().await;
    assert_eq!(later.state().await.unwrap(), State::Frozen { at: 77 });
    assert_eq!(later.open(ORIGIN).await.unwrap(), frozen);
}

/// Checks that a commit that races `freeze` is either in the last head or did not happen.
pub async fn freezing_sees_the_commit_it_raced_or_refuses_it(database: &dyn LogDatabase) {
    let mut log = Appender::with(database.handle().await, 2).await;
    let store = database.handle().await;
    let batch = log.batch(vec![entry(2)]);
    let (committed, frozen) = tokio::join!(log.commit(&batch), store.freeze("operator", 1));
    let frozen = frozen.unwrap();
    assert_eq!(committed.is_ok(), frozen.size() == TreeSize::new(3), "{committed:?}");
    assert_eq!(store.head().await.unwrap(), frozen);
}

/// Checks that the second `freeze` returns the same head and keeps the time of the first.
pub async fn a_frozen_log_stays_as_it_is_when_it_is_frozen_again(database: &dyn LogDatabase) {
    let store = database.handle().await;
    Appender::with(store.clone(), 1).await;
    let frozen = store.freeze("operator", 5).await.unwrap();
    assert_eq!(store.freeze("another", 6).await.unwrap(), frozen);
    assert_eq!(store.state().await.unwrap(), State::Frozen { at: 5 });
}

/// Checks that signatures, holds and erasures, which add no entries, still succeed after `freeze`.
pub async fn a_frozen_log_is_signed_held_and_erased(database: &dyn LogDatabase) {
    let store = database.handle().await;
    Appender::with(store.clone(), 4).await;
    store.freeze("operator", 5).await.unwrap();
    let (size, kind, kid) = (TreeSize::new(4), SignatureKind::Receipt, b"kid".to_vec());
    let signature = HeadSignature { size, kind, kid, bytes: Bytes::from_static(b"signed") };
    store.keep_signature(&signature).await.unwrap();
    assert_eq!(store.signature(size, kind, b"kid").await.unwrap(), Some(signature));
    store.hold(LeafIndex::new(1), "case", 6).await.unwrap();
    assert_eq!(
        store.erase(&[LeafIndex::new(1), LeafIndex::new(2)]).await.unwrap().erased,
        [LeafIndex::new(2)]
    );
    assert!(store.release(LeafIndex::new(1), "case", 7).await.unwrap());
}

/// Checks that `enqueue` is refused, as a frozen log can give no position, and that pending items stay readable.
pub async fn a_frozen_log_accepts_nothing_into_its_inbox(database: &dyn LogDatabase) {
    let store = database.handle().await;
    Appender::with(store.clone(), 1).await;
    let item = |name: &'static str| InboxItem {
        digest: EntryDigest::of(name.as_bytes()),
        submission: Bytes::from_static(name.as_bytes()),
    };
    store.enqueue(&item("first")).await.unwrap();
    store.enqueue(&item("second")).await.unwrap();
    store.freeze("operator", 5).await.unwrap();
    assert!(is_frozen(store.enqueue(&item("third")).await));
    assert_eq!(store.progress(&item("third").digest).await.unwrap(), None);
    assert_eq!(store.progress(&item("first").digest).await.unwrap(), Some(Progress::Pending));
    let first = store.waiting(None, 1).await.unwrap();
    assert_eq!(first[0].1, item("first"));
    let rest = store.waiting(Some(first[0].0), 10).await.unwrap();
    assert_eq!(rest.iter().map(|(_, item)| item.clone()).collect::<Vec<_>>(), [item("second")]);
    assert!(store.waiting(Some(rest[0].0), 10).await.unwrap().is_empty());
}

/// Reads `seen_rows` (own digests and twins) and `guard_rows` page by page.
pub async fn rows_that_lead_to_entries_come_in_order_of_key(database: &dyn LogDatabase) {
    let store = database.handle().await;
    let mut log = Appender::with(store.clone(), 3).await;
    let twin = EntryDigest::of(b"twin");
    let guards = vec![GuardKey(b"zz".to_vec()), GuardKey(b"a".to_vec()), GuardKey(vec![5; 33])];
    let collateral = vec![Collateral { kind: 2, bytes: Bytes::from_static(b"beside") }];
    let decorated =
        NewEntry { twin: Some(twin), guards: guards.clone(), collateral: collateral.clone(), ..entry(3) };
    log.append_entries(vec![decorated, entry(4)]).await.unwrap();
    let (mut seen, mut after) = (Vec::new(), None);
    loop {
        let page = store.seen_rows(after, 2).await.unwrap();
        assert!(page.len() <= 2);
        let Some((last, _)) = page.last() else { break };
        after = Some(*last);
        seen.extend(page);
    }
    let key = |digest: &EntryDigest| -> [u8; 16] { digest.as_bytes()[..16].try_into().unwrap() };
    let mut expected: Vec<_> = (0..5).map(|n| (key(&entry(n).digest), LeafIndex::new(n))).collect();
    expected.push((key(&twin), LeafIndex::new(3)));
    expected.sort_unstable();
    assert_eq!(seen, expected);
    let first = store.guard_rows(None, 1).await.unwrap();
    let rest = store.guard_rows(Some(&first[0].0), 10).await.unwrap();
    let mut expected: Vec<_> = guards.into_iter().map(|key| (key, LeafIndex::new(3))).collect();
    expected.sort_unstable();
    assert_eq!([first, rest].concat(), expected);
    let rows: Vec<_> = collateral.into_iter().map(|item| (LeafIndex::new(3), item)).collect();
    assert_eq!(store.collateral_rows(0..5).await.unwrap(), rows);
    assert_eq!(store.collateral_rows(0..3).await.unwrap(), []);
}

/// Makes a log of two batches with signatures and returns it with its [`History`].
async fn history() -> (Arc<dyn LogStore>, History) {
    let old: Arc<dyn LogStore> = Arc::new(crate::Memory::new());
    let mut log = Appender::new(old.clone()).await;
    let from = log.head().clone();
    log.take_over().await;
    log.append(2).await;
    log.take_over().await;
    log.append(258).await;
    let heads: Vec<CommittedHead> = old.heads(1, 10).await.unwrap();
    let entries = (0..260).map(entry).collect();
    let mut addresses: Vec<_> = (0..2).map(|number| crate::TileAddress { level: 0, number }).collect();
    addresses.push(crate::TileAddress { level: 1, number: 0 });
    let data = old.tiles(&addresses).await.unwrap().into_iter().map(Option::unwrap);
    let tiles =
        addresses.iter().zip(data).map(|(address, data)| crate::TileWrite { address: *address, data });
    let tiles = tiles.collect();
    let batch = Batch {
        from,
        to: log.head().clone(),
        entries,
        tiles,
        settled: Vec::new(),
        effects: Vec::new(),
        signatures: Vec::new(),
    };
    let signature = |head: &CommittedHead| HeadSignature {
        size: head.size,
        kind: SignatureKind::Checkpoint,
        kid: b"kid".to_vec(),
        bytes: Bytes::from_static(b"signed"),
    };
    let signatures = heads.iter().map(signature).collect();
    let line = Bytes::from_static(b"line");
    let cosignatures = vec![Cosignature { size: heads[1].size, witness: b"w".to_vec(), at: 9, line }];
    (old, History { batch, heads, signatures, cosignatures })
}

/// Fills a database in pieces of several sizes and compares heads, epochs and batch numbers with the original.
pub async fn a_filled_log_is_the_log_that_it_was(database: &dyn LogDatabase) {
    let (old, history) = history().await;
    let store = database.handle().await;
    store.begin_filling(ORIGIN, &SOURCE).await.unwrap();
    store.fill(&SOURCE, &history).await.unwrap();
    let twin = [9; 16];
    let guard = (GuardKey(b"claim".to_vec()), LeafIndex::new(3));
    for _again in 0..2 {
        store.fill_claims(&SOURCE, &[(twin, LeafIndex::new(1))], std::slice::from_ref(&guard)).await.unwrap();
    }
    let head = store.end_filling(&SOURCE, 40, LeafIndex::new(0)).await.unwrap();
    assert_eq!(head, Head { epoch: 40, ..old.head().await.unwrap() });
    let later = database.handle().await;
    assert_eq!(later.open(ORIGIN).await.unwrap(), head);
    assert_eq!(later.heads(1, 10).await.unwrap(), old.heads(1, 10).await.unwrap());
    let zero = LeafIndex::new(0);
    assert_eq!(later.entries(zero, 300).await.unwrap(), old.entries(zero, 300).await.unwrap());
    assert_eq!(later.signatures(None, 10).await.unwrap(), history.signatures);
    assert_eq!(later.cosignatures(head.size()).await.unwrap(), history.cosignatures);
    assert_eq!(later.guards(&[guard.0]).await.unwrap(), [Some(guard.1)]);
    assert_eq!(later.take_over("who goes on").await.unwrap().epoch, 41);
}

/// Checks that a log in `State::Filling` cannot be opened, led, appended to or frozen, or filled from a second
/// source.
pub async fn a_log_that_is_being_filled_is_nobody_elses(database: &dyn LogDatabase) {
    let (_, history) = history().await;
    let store = database.handle().await;
    assert!(is_refused(store.fill(&SOURCE, &history).await) || store.head().await.is_err());
    store.begin_filling(ORIGIN, &SOURCE).await.unwrap();
    let other = Source([8; 32]);
    assert!(is_refused(store.begin_filling(ORIGIN, &other).await));
    assert!(is_refused(store.begin_filling("another.example/log", &SOURCE).await));
    assert!(is_refused(store.fill(&other, &history).await));
    assert!(is_refused(store.end_filling(&other, 9, LeafIndex::new(0)).await));
    store.fill(&SOURCE, &history).await.unwrap();
    assert!(is_refused(store.fill(&SOURCE, &history).await), "the same history twice");
    assert_eq!(store.begin_filling(ORIGIN, &SOURCE).await.unwrap(), history.batch.to);
    assert_eq!(store.state().await.unwrap(), State::Filling { source: SOURCE });
    let service = database.handle().await;
    assert!(is_refused(service.open(ORIGIN).await));
    assert!(is_refused(service.take_over("a service").await));
    assert!(is_refused(service.freeze("operator", 1).await));
    let empty = Batch {
        from: history.batch.to.clone(),
        to: history.batch.to.clone(),
        entries: Vec::new(),
        tiles: Vec::new(),
        settled: Vec::new(),
        effects: Vec::new(),
        signatures: Vec::new(),
    };
    assert!(matches!(service.commit(&empty).await, Err(CommitError::NotCommitted(StoreError::Refused(_)))));
    store.end_filling(&SOURCE, 40, LeafIndex::new(0)).await.unwrap();
    assert!(is_refused(store.fill(&SOURCE, &history).await));
    assert!(is_refused(store.begin_filling(ORIGIN, &SOURCE).await), "it holds a log now");
}

/// Expects `StoreError::Refused` even if the log in the database is empty.
pub async fn a_database_with_a_log_is_not_filled(database: &dyn LogDatabase) {
    let store = database.handle().await;
    store.open(ORIGIN).await.unwrap();
    let key = LogKey::new(b"kid".to_vec(), Bytes::new(), TreeSize::new(0));
    store.keep_key(&key).await.unwrap();
    assert!(is_refused(store.begin_filling(ORIGIN, &SOURCE).await));
    assert_eq!(store.state().await.unwrap(), State::Open);
}

/// Expects the refusal to write no row.
pub async fn history_that_contradicts_itself_is_not_filled(database: &dyn LogDatabase) {
    let (_, whole) = history().await;
    let store = database.handle().await;
    store.begin_filling(ORIGIN, &SOURCE).await.unwrap();
    let changed = |change: &dyn Fn(&mut History)| {
        let mut history = whole.clone();
        change(&mut history);
        history
    };
    for (what, history) in [
        ("a head is missing", changed(&|it| it.heads.truncate(1))),
        ("heads run back", changed(&|it| it.heads.swap(0, 1))),
        ("an entry is missing", changed(&|it| drop(it.batch.entries.pop()))),
        ("an epoch runs back", changed(&|it| it.heads[1].epoch = 0)),
        ("the end is another", changed(&|it| it.batch.to.at += 1)),
        ("a signature is over nothing", changed(&|it| it.signatures[0].size = TreeSize::new(1))),
        ("an entry comes twice", changed(&|it| it.batch.entries[9] = it.batch.entries[8].clone())),
    ] {
        assert!(store.fill(&SOURCE, &history).await.is_err(), "{what}");
        assert_eq!(store.head().await.unwrap().size(), TreeSize::EMPTY, "{what}");
    }
    store.fill(&SOURCE, &whole).await.unwrap();
    let taken = [(whole.batch.entries[4].digest.as_bytes()[..16].try_into().unwrap(), LeafIndex::new(5))];
    assert!(store.fill_claims(&SOURCE, &taken, &[]).await.is_err(), "a digest leads to another entry");
    assert!(is_refused(store.end_filling(&SOURCE, 1, LeafIndex::new(0)).await), "an epoch that was passed");
    assert!(
        is_refused(store.end_filling(&SOURCE, 40, LeafIndex::new(260)).await),
        "a policy that is not there"
    );
}

/// Covers a history with a batch that begins with a `CLOCK_CORRECTION` entry.
pub async fn history_in_which_the_clock_was_corrected_is_filled(database: &dyn LogDatabase) {
    let (_, mut history) = history().await;
    let store = database.handle().await;
    store.begin_filling(ORIGIN, &SOURCE).await.unwrap();
    history.heads[0].at += 1000;
    assert!(is_refused(store.fill(&SOURCE, &history).await), "the time runs back without a correction");
    history.batch.entries[3].rule = crate::CLOCK_CORRECTION.into();
    assert!(is_refused(store.fill(&SOURCE, &history).await), "the correction does not begin its batch");
    history.batch.entries[2].rule = crate::CLOCK_CORRECTION.into();
    store.fill(&SOURCE, &history).await.unwrap();
    assert_eq!(store.heads(1, 10).await.unwrap(), history.heads);
}
