//! Contract tests of `LogWriter::commit`, the only operation in which the history could fork.

use std::sync::Arc;

use bytes::Bytes;
use merkle::{CompactRange, EntryDigest, LeafIndex, TreeSize};

use super::{Appender, LogDatabase, ORIGIN, entry, statement};
use crate::{
    Batch, CLOCK_CORRECTION, CommitError, Effect, FREEZE, Found, GuardKey, Head, Hold, LogStore, NewEntry,
    State, StoreError, TILE_BYTES, TileAddress,
};

/// Checks that one `commit` makes head, entries, tiles and history visible to a second handle.
pub async fn a_commit_is_seen_whole_by_another_handle(database: &impl LogDatabase) {
    let appender = Appender::with(database.handle().await, 3).await;
    let other = database.handle().await;
    assert_eq!(other.head().await.unwrap(), *appender.head());
    let digests: Vec<EntryDigest> = (0..3).map(|n| entry(n).digest).collect();
    let stored = other.entries(LeafIndex::new(0), 10).await.unwrap();
    assert_eq!(stored.iter().map(|entry| entry.digest).collect::<Vec<_>>(), digests);
    let tile = tile(&*other, 0, 0).await.expect("the leaves are in a tile");
    let leaves: Vec<u8> = appender.leaves().iter().flat_map(|leaf| *leaf.as_bytes()).collect();
    assert_eq!(tile, leaves);
    let head = other.head_of_size(TreeSize::new(3)).await.unwrap().expect("the head is in the history");
    assert_eq!((head.root, head.batch, head.at), (appender.head().root(), 1, appender.head().at));
}

/// R61: the edge changes shape at powers of two, the tiles at powers of 256.
pub async fn a_log_is_reopened_at_every_size_around_a_power_of_two(database: &impl LogDatabase) {
    let mut appender = Appender::new(database.handle().await).await;
    for size in [1, 2, 3, 4, 5, 7, 8, 9, 15, 16, 17, 255, 256, 257, 511, 512, 513] {
        appender.append(size - appender.leaves().len() as u64).await;
        let head = database.handle().await.open(ORIGIN).await.unwrap();
        assert_eq!(head, *appender.head(), "at size {size}");
    }
}

/// Tries an epoch that is too old and one that is too new; both are `CommitError::Fenced`.
pub async fn a_commit_under_another_epoch_is_fenced(database: &impl LogDatabase) {
    let store = database.handle().await;
    let appender = Appender::with(Arc::clone(&store), 2).await;
    for epoch in [appender.head().epoch + 1, appender.head().epoch + 7] {
        let mut batch = appender.batch(vec![entry(2)]);
        (batch.from.epoch, batch.to.epoch) = (epoch, epoch);
        expect_fenced(store.commit(&batch).await);
    }
}

/// Commits with an older head, of the same epoch and another size: `CommitError::Fenced`.
pub async fn a_commit_over_another_size_is_fenced(database: &impl LogDatabase) {
    let store = database.handle().await;
    let mut appender = Appender::with(Arc::clone(&store), 2).await;
    let stale = appender.batch(vec![entry(100)]);
    appender.append(1).await;
    expect_fenced(store.commit(&stale).await);
}

/// R28: a database of the same size and another root was restored under a running server.
pub async fn a_commit_over_another_root_is_fenced(database: &impl LogDatabase) {
    let store = database.handle().await;
    let appender = Appender::with(Arc::clone(&store), 2).await;
    let mut batch = appender.batch(vec![entry(2)]);
    let foreign = [entry(8), entry(9)].map(|entry| entry.digest.leaf_hash());
    batch.from.edge = CompactRange::empty().grow(&foreign).into_range();
    batch.to.edge = batch.from.edge.grow(&[entry(2).digest.leaf_hash()]).into_range();
    expect_fenced(store.commit(&batch).await);
}

/// Starts several commits over one head at once and checks the compare-and-swap.
pub async fn of_commits_over_one_head_one_succeeds(database: &impl LogDatabase) {
    let appender = Appender::with(database.handle().await, 1).await;
    let mut commits = Vec::new();
    for n in 0..6 {
        let (store, batch) = (database.handle().await, appender.batch(vec![entry(100 + n)]));
        commits.push(tokio::spawn(async move { store.commit(&batch).await }));
    }
    let mut succeeded = 0;
    for commit in commits {
        match commit.await.unwrap() {
            Ok(()) => succeeded += 1,
            other => expect_fenced(other),
        }
    }
    assert_eq!(succeeded, 1);
    assert_eq!(database.handle().await.head().await.unwrap().size().get(), 2);
}

/// Checks that a process that was paused during a `take_over` cannot write when it resumes.
pub async fn a_take_over_raises_the_epoch_and_fences_the_older_holder(database: &impl LogDatabase) {
    let (first, second) = (database.handle().await, database.handle().await);
    let mut appender = Appender::with(Arc::clone(&first), 2).await;
    let stale = appender.batch(vec![entry(2)]);
    let head = second.take_over("second").await.unwrap();
    assert_eq!(head, Head { epoch: appender.head().epoch + 1, ..appender.head().clone() });
    expect_fenced(first.commit(&stale).await);
    appender.take_over().await;
    appender.append(1).await;
    assert_eq!(second.head().await.unwrap(), *appender.head());
}

/// Checks that concurrent `take_over` calls receive different epochs.
pub async fn no_epoch_is_given_twice(database: &impl LogDatabase) {
    database.handle().await.open(ORIGIN).await.unwrap();
    let mut take_overs = Vec::new();
    for n in 0..8 {
        let store = database.handle().await;
        take_overs.push(tokio::spawn(async move { store.take_over(&format!("holder {n}")).await }));
    }
    let mut epochs = Vec::new();
    for take_over in take_overs {
        epochs.push(take_over.await.unwrap().unwrap().epoch);
    }
    epochs.sort_unstable();
    epochs.dedup();
    assert_eq!(epochs.len(), 8);
}

/// Checks that `take_over` settles a commit of unknown outcome.
pub async fn a_take_over_sees_the_commit_it_raced_or_fences_it(database: &impl LogDatabase) {
    let (writer, rival) = (database.handle().await, database.handle().await);
    let mut appender = Appender::with(Arc::clone(&writer), 1).await;
    for n in 1..=10 {
        let batch = appender.batch(vec![entry(100 + n)]);
        let (writer, rival) = (Arc::clone(&writer), Arc::clone(&rival));
        let raced = batch.clone();
        let commit = tokio::spawn(async move { writer.commit(&raced).await });
        let head = rival.take_over("rival").await.unwrap();
        match commit.await.unwrap() {
            Ok(()) => {
                assert_eq!(head.size(), batch.to.size(), "a commit that the take-over did not see");
                return;
            }
            other => expect_fenced(other),
        }
        assert_eq!(head.edge, batch.from.edge, "a fenced commit left something behind");
        appender.take_over().await;
    }
}

/// Checks that a commit is all or nothing.
pub async fn a_fenced_commit_changes_nothing(database: &impl LogDatabase) {
    let store = database.handle().await;
    let appender = Appender::with(Arc::clone(&store), 2).await;
    let mut batch = appender.batch(vec![guarded(2, "guard")]);
    store.take_over("other").await.unwrap();
    batch.settled.push((entry(2).digest, LeafIndex::new(2)));
    expect_fenced(store.commit(&batch).await);
    expect_untouched(&*store, &batch).await;
}

/// Checks that `Batch::check` refuses a wrong batch before the database is asked.
pub async fn a_batch_that_contradicts_itself_is_not_committed(database: &impl LogDatabase) {
    let store = database.handle().await;
    let appender = Appender::with(Arc::clone(&store), 2).await;
    let wrong: [fn(&mut Batch); 7] = [
        |batch| batch.to.batch += 1,
        |batch| batch.to.epoch += 1,
        |batch| batch.to.at = batch.from.at - 1,
        |batch| batch.to.policy = LeafIndex::new(3),
        |batch| batch.entries.push(entry(3)),
        |batch| batch.entries.clear(),
        |batch| batch.tiles[0].data = Bytes::from_static(b"not a hash"),
    ];
    for (n, change) in wrong.iter().enumerate() {
        let mut batch = appender.batch(vec![entry(2)]);
        change(&mut batch);
        let outcome = store.commit(&batch).await;
        assert!(matches!(outcome, Err(CommitError::NotCommitted(_))), "contradiction {n}: {outcome:?}");
    }
    assert_eq!(store.head().await.unwrap(), *appender.head());
}

/// Checks that a `CLOCK_CORRECTION` counts only as the first entry of its batch.
pub async fn only_a_clock_correction_sets_the_time_back(database: &impl LogDatabase) {
    let store = database.handle().await;
    let mut appender = Appender::with(Arc::clone(&store), 2).await;
    let mut ahead = appender.batch(vec![entry(2)]);
    ahead.to.at += 1000;
    appender.commit(&ahead).await.unwrap();
    let correction = |n| NewEntry { rule: CLOCK_CORRECTION.into(), ..entry(n) };
    for entries in [vec![entry(3)], vec![entry(3), correction(4)]] {
        let mut batch = appender.batch(entries);
        batch.to.at = batch.from.at - 500;
        assert!(matches!(store.commit(&batch).await, Err(CommitError::NotCommitted(_))));
    }
    let mut fenced = appender.batch(vec![correction(3)]);
    (fenced.to.at, fenced.from.epoch, fenced.to.epoch) = (fenced.from.at - 500, 99, 99);
    assert!(matches!(store.commit(&fenced).await, Err(CommitError::Fenced)));
    let mut batch = appender.batch(vec![correction(3), entry(4)]);
    batch.to.at = batch.from.at - 500;
    appender.commit(&batch).await.unwrap();
    assert_eq!(store.head().await.unwrap(), *appender.head());
    assert_eq!(store.heads(1, 10).await.unwrap().last().map(|head| head.at), Some(batch.to.at));
    appender.append_entries(vec![entry(5)]).await.unwrap();
}

/// Checks that `Effect::Hold` and `Effect::Release` are committed in the same transaction as their entries.
pub async fn holds_begin_and_end_with_the_entries_that_say_so(database: &impl LogDatabase) {
    let store = database.handle().await;
    let mut appender = Appender::with(Arc::clone(&store), 2).await;
    let (held, case) = (LeafIndex::new(1), "2026-17".to_owned());
    let mut batch = appender.batch(vec![entry(2), entry(3)]);
    batch.effects = vec![
        Effect::Hold { entry: held, case: case.clone() },
        Effect::Hold { entry: held, case: case.clone() },
    ];
    appender.commit(&batch).await.unwrap();
    let hold = Hold { entry: held, case: case.clone(), at: batch.to.at, released: None };
    let other = database.handle().await;
    assert_eq!(other.holds(None, 9).await.unwrap(), std::slice::from_ref(&hold));
    assert_eq!(other.erase(&[held]).await.unwrap().held, [held]);

    let mut fenced = appender.batch(vec![entry(4)]);
    (fenced.from.epoch, fenced.to.epoch) = (99, 99);
    fenced.effects = vec![Effect::Release { entry: held, case: case.clone() }];
    assert!(matches!(store.commit(&fenced).await, Err(CommitError::Fenced)));
    assert_eq!(other.held(&[held]).await.unwrap(), [held], "what is not committed has no effect");

    let mut batch = appender.batch(vec![entry(4), entry(5)]);
    batch.effects =
        vec![Effect::Release { entry: held, case: case.clone() }, Effect::Release { entry: held, case }];
    appender.commit(&batch).await.unwrap();
    assert_eq!(other.holds(None, 9).await.unwrap(), [Hold { released: Some(batch.to.at), ..hold }]);
    assert_eq!(other.erase(&[held]).await.unwrap().erased, [held]);
}

/// Checks that a batch is committed without its `Effect::Hold` if the entry was erased meanwhile.
pub async fn an_entry_without_bytes_is_not_held_by_a_batch(database: &impl LogDatabase) {
    let store = database.handle().await;
    let mut appender = Appender::with(Arc::clone(&store), 2).await;
    store.erase(&[LeafIndex::new(1)]).await.unwrap();
    let mut batch = appender.batch(vec![entry(2)]);
    batch.effects = vec![Effect::Hold { entry: LeafIndex::new(1), case: "too late".to_owned() }];
    appender.commit(&batch).await.unwrap();
    assert_eq!(store.holds(None, 9).await.unwrap(), []);
}

/// Checks that after a batch with `Effect::Freeze` no commit succeeds, under any head.
pub async fn a_log_is_frozen_with_the_entry_that_says_so(database: &impl LogDatabase) {
    let store = database.handle().await;
    let mut appender = Appender::with(Arc::clone(&store), 2).await;
    let mut batch = appender.batch(vec![entry(2), NewEntry { rule: FREEZE.into(), ..entry(3) }]);
    batch.effects = vec![Effect::Freeze];
    appender.commit(&batch).await.unwrap();
    let other = database.handle().await;
    assert_eq!(other.state().await.unwrap(), State::Frozen { at: batch.to.at });
    let head = other.head().await.unwrap();
    assert_eq!(head, Head { epoch: batch.to.epoch + 1, ..batch.to.clone() });
    let next = appender.batch(vec![entry(4)]);
    for store in [&store, &other] {
        let refused = store.commit(&next).await;
        assert!(matches!(refused, Err(CommitError::NotCommitted(StoreError::Frozen))), "{refused:?}");
        assert!(matches!(store.take_over("next").await, Err(StoreError::Frozen)));
    }
    assert_eq!(other.freeze("again", 9).await.unwrap(), head);
}

/// Checks that `Batch::check` refuses wrong effects before the database is asked.
pub async fn effects_that_no_entry_has_are_not_committed(database: &impl LogDatabase) {
    let store = database.handle().await;
    let appender = Appender::with(Arc::clone(&store), 2).await;
    let freeze = || NewEntry { rule: FREEZE.into(), ..entry(2) };
    let hold = |leaf, case: &str| Effect::Hold { entry: LeafIndex::new(leaf), case: case.to_owned() };
    for (entries, effects) in [
        (vec![freeze(), entry(3)], vec![Effect::Freeze]),
        (vec![entry(2)], vec![Effect::Freeze]),
        (vec![freeze()], vec![Effect::Freeze, Effect::Freeze]),
        (vec![], vec![Effect::Freeze]),
        (vec![entry(2)], vec![hold(2, "of its own batch")]),
        (vec![entry(2)], vec![hold(1, "")]),
    ] {
        let mut batch = appender.batch(entries);
        batch.effects = effects;
        let outcome = store.commit(&batch).await;
        assert!(matches!(outcome, Err(CommitError::NotCommitted(StoreError::Refused(_)))), "{outcome:?}");
    }
    assert_eq!(store.state().await.unwrap(), State::Open);
    assert_eq!(store.head().await.unwrap(), *appender.head());
}

/// Expects `CommitError::AlreadySeen`, which the table `seen` decides.
pub async fn an_entry_of_the_log_is_not_appended_again(database: &impl LogDatabase) {
    let store = database.handle().await;
    let appender = Appender::with(Arc::clone(&store), 3).await;
    let batch = appender.batch(vec![guarded(3, "guard"), entry(1)]);
    expect_seen(store.commit(&batch).await);
    expect_untouched(&*store, &batch).await;
}

/// Expects two equal leaves in one batch to be refused, as they are in two batches.
pub async fn an_entry_is_not_appended_twice_by_one_batch(database: &impl LogDatabase) {
    let store = database.handle().await;
    let appender = Appender::with(Arc::clone(&store), 1).await;
    let batch = appender.batch(vec![entry(1), entry(1)]);
    expect_seen(store.commit(&batch).await);
    expect_untouched(&*store, &batch).await;
}

/// Checks that the digest of the other encoding of an ECDSA signature (the twin) leads to the entry, and that the
/// answer has the entry's own digest.
pub async fn a_twin_is_found_as_the_entry_and_cannot_enter(database: &impl LogDatabase) {
    let store = database.handle().await;
    let mut appender = Appender::with(Arc::clone(&store), 1).await;
    let twin = entry(77);
    appender.append_entries(vec![NewEntry { twin: Some(twin.digest), ..entry(1) }]).await.unwrap();
    let found = Found { index: LeafIndex::new(1), digest: entry(1).digest };
    assert_eq!(store.find(&[twin.digest, entry(1).digest]).await.unwrap(), [Some(found), Some(found)]);
    expect_seen(store.commit(&appender.batch(vec![twin])).await);
}

/// Expects `CommitError::AlreadySeen` also when the twin was registered first.
pub async fn an_entry_whose_twin_is_in_the_log_cannot_enter(database: &impl LogDatabase) {
    let store = database.handle().await;
    let appender = Appender::with(Arc::clone(&store), 2).await;
    let batch = appender.batch(vec![NewEntry { twin: Some(entry(1).digest), ..entry(2) }]);
    expect_seen(store.commit(&batch).await);
    assert_eq!(store.find(&[entry(2).digest]).await.unwrap(), [None]);
}

/// Expects `CommitError::GuardTaken`.
pub async fn a_taken_guard_refuses_the_batch_and_nothing_changes(database: &impl LogDatabase) {
    let store = database.handle().await;
    let mut appender = Appender::with(Arc::clone(&store), 1).await;
    appender.append_entries(vec![guarded(1, "taken")]).await.unwrap();
    let batch = appender.batch(vec![guarded(2, "free"), guarded(3, "taken")]);
    expect_guard_taken(store.commit(&batch).await);
    assert_eq!(store.guards(&[key("free")]).await.unwrap(), [None]);
    assert_eq!(store.find(&[entry(2).digest, entry(3).digest]).await.unwrap(), [None, None]);
    assert_eq!(store.head().await.unwrap(), *appender.head());
}

/// Expects two claims to one guard in one batch to be refused.
pub async fn a_guard_is_not_taken_twice_by_one_batch(database: &impl LogDatabase) {
    let store = database.handle().await;
    let appender = Appender::with(Arc::clone(&store), 1).await;
    let batch = appender.batch(vec![guarded(1, "guard"), guarded(2, "guard")]);
    expect_guard_taken(store.commit(&batch).await);
    expect_untouched(&*store, &batch).await;
}

/// Grows a log beyond the end of a tile and into a new level.
pub async fn a_partial_tile_grows_and_a_full_one_stays(database: &impl LogDatabase) {
    let store = database.handle().await;
    let mut appender = Appender::with(Arc::clone(&store), 200).await;
    let partial = tile(&*store, 0, 0).await.unwrap();
    appender.append(100).await;
    let full = tile(&*store, 0, 0).await.unwrap();
    assert_eq!((partial.len(), full.len()), (200 * 32, TILE_BYTES));
    assert!(full.starts_with(&partial));
    assert_eq!(tile(&*store, 0, 1).await.unwrap().len(), 44 * 32);
    assert_eq!(tile(&*store, 1, 0).await.unwrap().len(), 32);
    appender.append(300).await;
    assert_eq!(tile(&*store, 0, 0).await.unwrap(), full);
    assert_eq!(tile(&*store, 1, 0).await.unwrap().len(), 64);
}

/// Tries to change or to shorten tiles. The batch is refused; a store that writes only what is added to a tile may
/// commit it if the hashes that it adds are right.
pub async fn a_tile_that_would_change_refuses_the_batch(database: &impl LogDatabase) {
    let store = database.handle().await;
    let appender = Appender::with(Arc::clone(&store), 300).await;
    let mut shrunk = appender.batch(vec![entry(300)]);
    shrunk.tiles[0].data = shrunk.tiles[0].data.slice(..32);
    let mut changed = appender.batch(vec![entry(300)]);
    let mut data = changed.tiles[0].data.to_vec();
    data[0] ^= 1;
    changed.tiles[0].data = data.into();
    let mut full = appender.batch(vec![entry(300)]);
    full.tiles[0].address.number = 0;
    for batch in [shrunk, full] {
        let outcome = store.commit(&batch).await;
        assert!(matches!(outcome, Err(CommitError::NotCommitted(_))), "{outcome:?}");
        expect_untouched(&*store, &batch).await;
    }
    let before = tile(&*store, 0, 1).await.unwrap();
    match store.commit(&changed).await {
        Ok(()) => assert!(tile(&*store, 0, 1).await.unwrap().starts_with(&before), "hashes were changed"),
        Err(CommitError::NotCommitted(_)) => expect_untouched(&*store, &changed).await,
        outcome => panic!("{outcome:?}"),
    }
}

/// Fills a tile by batches of every size, so that it is put together from what each of them added.
pub async fn a_tile_has_the_same_hashes_however_it_was_filled(database: &impl LogDatabase) {
    let store = database.handle().await;
    let mut appender = Appender::new(Arc::clone(&store)).await;
    for count in [1, 1, 7, 200, 46, 1, 1, 254, 300, 1] {
        appender.append(count).await;
        let leaves: Vec<u8> = appender.leaves().iter().flat_map(|leaf| *leaf.as_bytes()).collect();
        for (number, expected) in (0..).zip(leaves.chunks(TILE_BYTES)) {
            assert_eq!(tile(&*store, 0, number).await.as_deref(), Some(expected), "after {count} more");
        }
        let width = leaves.len() / TILE_BYTES;
        assert_eq!(tile(&*store, 1, 0).await.map_or(0, |tile| tile.len() / 32), width);
    }
}

fn key(name: &str) -> GuardKey {
    GuardKey(name.as_bytes().to_vec())
}

fn guarded(n: u64, name: &str) -> NewEntry {
    NewEntry { guards: vec![key(name)], ..entry(n) }
}

async fn tile(store: &dyn LogStore, level: u8, number: u64) -> Option<Bytes> {
    store.tiles(&[TileAddress { level, number }]).await.unwrap().remove(0)
}

fn expect_fenced(outcome: Result<(), CommitError>) {
    assert!(matches!(outcome, Err(CommitError::Fenced)), "{outcome:?}");
}

fn expect_seen(outcome: Result<(), CommitError>) {
    assert!(matches!(outcome, Err(CommitError::AlreadySeen)), "{outcome:?}");
}

fn expect_guard_taken(outcome: Result<(), CommitError>) {
    assert!(matches!(outcome, Err(CommitError::GuardTaken)), "{outcome:?}");
}

/// Asserts that a refused batch left head, entries, guards and tiles as they were.
async fn expect_untouched(store: &dyn LogStore, batch: &Batch) {
    let head = store.head().await.unwrap();
    assert_eq!((head.edge, head.batch, head.at), (batch.from.edge.clone(), batch.from.batch, batch.from.at));
    let next = batch.from.size().next_leaf();
    assert_eq!(store.entry(next).await.unwrap(), None);
    let old = |entry: &NewEntry| (0..next.get()).any(|n| statement(n) == entry.statement);
    let new: Vec<&NewEntry> = batch.entries.iter().filter(|entry| !old(entry)).collect();
    let digests: Vec<EntryDigest> = new.iter().map(|entry| entry.digest).collect();
    assert!(store.find(&digests).await.unwrap().iter().all(Option::is_none));
    let guards: Vec<GuardKey> = new.iter().flat_map(|entry| entry.guards.clone()).collect();
    assert!(store.guards(&guards).await.unwrap().iter().all(Option::is_none));
    assert_eq!(store.head_of_size(batch.to.size()).await.unwrap(), None);
}
