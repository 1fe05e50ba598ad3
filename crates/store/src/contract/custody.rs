//! Contract tests of `Custody`: erasing the bytes of entries, and the holds that prevent it.

use std::sync::Arc;

use bytes::Bytes;
use lookup_tree::limits::LEVEL_0_LEAVES;
use merkle::LeafIndex;

use super::{Appender, Indexer, LogDatabase, entry};
use crate::{Collateral, Entry, EntryStatus, Erased, GuardKey, Hold, InboxItem, NewEntry, StoreError};

/// Checks that erasure removes the bytes only: position, digest, tiles, guards and look-ups by digest stay.
pub async fn an_erased_entry_keeps_its_place_and_loses_its_bytes(database: &impl LogDatabase) {
    let store = database.handle().await;
    let mut appender = Appender::with(Arc::clone(&store), 2).await;
    appender.append_entries(vec![telling(2)]).await.unwrap();
    let mut index = Indexer::of(Arc::clone(&store)).await;
    index.add(&[(0, "other"), (1, "other"), (2, "said")]);
    let answer = store.erase(&[leaf(2)]).await.unwrap();
    assert_eq!(answer, Erased { erased: vec![leaf(2)], held: vec![] });

    let other = database.handle().await;
    let erased = other.entry(leaf(2)).await.unwrap().unwrap();
    let NewEntry { digest, policy, rule, .. } = telling(2);
    assert_eq!(erased, Entry { index: leaf(2), digest, statement: None, policy, rule, facts: "{}".into() });
    assert_eq!(other.entries(leaf(2), 1).await.unwrap(), [erased]);
    assert_eq!(other.collateral(leaf(2)).await.unwrap(), []);
    assert_eq!(index.found("said").await, [0; 0]);
    assert!(other.find(&[digest]).await.unwrap()[0].is_some(), "it is still in the log");
    assert_eq!(other.guards(&telling(2).guards).await.unwrap(), [Some(leaf(2))]);
    assert_eq!(other.head().await.unwrap(), *appender.head());
    let untouched = other.entry(leaf(1)).await.unwrap().unwrap();
    assert!(untouched.statement.is_some());
}

/// Checks that `erase` is idempotent.
pub async fn erasing_again_changes_nothing(database: &impl LogDatabase) {
    let store = database.handle().await;
    Appender::with(Arc::clone(&store), 3).await;
    let expected = Erased { erased: vec![leaf(0), leaf(2)], held: vec![] };
    for _ in 0..2 {
        assert_eq!(store.erase(&[leaf(2), leaf(0), leaf(2)]).await.unwrap(), expected);
    }
    assert_eq!(store.erase(&[]).await.unwrap(), Erased::default());
}

/// Checks `statuses` for many entries in one call, without reading the statements.
pub async fn the_standing_of_entries_comes_in_order_and_without_those_that_are_not_there(
    database: &impl LogDatabase,
) {
    let store = database.handle().await;
    let mut appender = Appender::with(Arc::clone(&store), 2).await;
    appender.append_entries(vec![telling(2)]).await.unwrap();
    store.erase(&[leaf(1)]).await.unwrap();
    let status = |n, rule: String, has_statement| EntryStatus { entry: leaf(n), rule, has_statement };
    let asked = [leaf(2), leaf(1), leaf(3), leaf(2), leaf(0)];
    let expected =
        [status(0, entry(0).rule, true), status(1, entry(1).rule, false), status(2, telling(2).rule, true)];
    assert_eq!(database.handle().await.statuses(&asked).await.unwrap(), expected);
    assert_eq!(store.statuses(&[]).await.unwrap(), []);
}

/// Checks that one wrong index refuses the whole list, so that a typing mistake does not erase half of it.
pub async fn erasing_what_is_not_in_the_log_is_refused_whole(database: &impl LogDatabase) {
    let store = database.handle().await;
    Appender::with(Arc::clone(&store), 2).await;
    let refused = store.erase(&[leaf(1), leaf(2)]).await;
    assert!(matches!(refused, Err(StoreError::Refused(_))), "{refused:?}");
    assert!(store.entry(leaf(1)).await.unwrap().unwrap().statement.is_some());
}

/// Checks that commits succeed after an erasure.
pub async fn a_log_grows_over_erased_entries(database: &impl LogDatabase) {
    let store = database.handle().await;
    let mut appender = Appender::with(Arc::clone(&store), 2).await;
    store.erase(&[leaf(0), leaf(1)]).await.unwrap();
    appender.append(2).await;
    assert_eq!(store.head().await.unwrap(), *appender.head());
    let again = appender.append_entries(vec![entry(1)]).await;
    assert!(again.is_err(), "what was erased is not registered a second time");
}

/// Checks that the inbox keeps no second copy of the statement: the submission of a settled attempt is erased too.
pub async fn erasing_forgets_the_finished_submission(database: &impl LogDatabase) {
    let store = database.handle().await;
    let mut appender = Appender::with(Arc::clone(&store), 1).await;
    let item = InboxItem { digest: entry(1).digest, submission: Bytes::from_static(b"waits") };
    store.enqueue(&item).await.unwrap();
    let mut batch = appender.batch(vec![entry(1)]);
    batch.settled = vec![(entry(1).digest, leaf(1))];
    appender.commit(&batch).await.unwrap();
    store.erase(&[leaf(1)]).await.unwrap();
    assert_eq!(store.trim_inbox(10).await.unwrap(), 0, "nothing of it is left");
}

/// Checks that a hold prevents an erasure exactly as long as it lasts.
pub async fn a_held_entry_is_not_erased_until_it_is_released(database: &impl LogDatabase) {
    let store = database.handle().await;
    Appender::with(Arc::clone(&store), 3).await;
    for case in ["case 1", "case 2"] {
        store.hold(leaf(1), case, 100).await.unwrap();
    }
    let kept = Erased { erased: vec![leaf(0), leaf(2)], held: vec![leaf(1)] };
    assert_eq!(store.erase(&[leaf(0), leaf(1), leaf(2)]).await.unwrap(), kept);
    assert!(store.release(leaf(1), "case 1", 200).await.unwrap());
    let other = database.handle().await;
    assert_eq!(other.erase(&[leaf(1)]).await.unwrap().held, [leaf(1)], "the other case holds it still");
    assert_eq!(other.held(&[leaf(2), leaf(1)]).await.unwrap(), [leaf(1)]);
    assert!(other.entry(leaf(1)).await.unwrap().unwrap().statement.is_some());
    assert!(other.release(leaf(1), "case 2", 201).await.unwrap());
    assert_eq!(other.held(&[leaf(1)]).await.unwrap(), []);
    assert_eq!(other.erase(&[leaf(1)]).await.unwrap().erased, [leaf(1)]);
}

/// Checks that `hold` is idempotent, that an ended hold stays listed, and that the same case may hold the entry
/// again.
pub async fn holds_are_listed_with_their_ends(database: &impl LogDatabase) {
    let store = database.handle().await;
    Appender::with(Arc::clone(&store), 3).await;
    for (index, case, at) in [(2, "b", 5), (1, "a", 6), (1, "b", 7), (1, "a", 8)] {
        store.hold(leaf(index), case, at).await.unwrap();
    }
    assert!(store.release(leaf(1), "a", 9).await.unwrap());
    assert!(!store.release(leaf(1), "a", 10).await.unwrap(), "it has ended");
    assert!(!store.release(leaf(2), "a", 10).await.unwrap(), "it never began");
    store.hold(leaf(1), "a", 11).await.unwrap();
    let hold = |index, case: &str, at, released| Hold { entry: leaf(index), case: case.into(), at, released };
    let first = [hold(1, "a", 6, Some(9)), hold(1, "b", 7, None), hold(1, "a", 11, None)];
    assert_eq!(store.holds(None, 1).await.unwrap(), first, "the holds of one entry are never split");
    assert_eq!(store.holds(Some(leaf(1)), 10).await.unwrap(), [hold(2, "b", 5, None)]);
    assert_eq!(store.holds(None, 10).await.unwrap().len(), 4);
    assert_eq!(store.holds(Some(leaf(2)), 10).await.unwrap(), []);
}

/// Expects `StoreError::Refused` for an index beyond the log and for an erased entry.
pub async fn only_an_entry_that_is_there_can_be_held(database: &impl LogDatabase) {
    let store = database.handle().await;
    Appender::with(Arc::clone(&store), 2).await;
    store.erase(&[leaf(0)]).await.unwrap();
    let long = "x".repeat(crate::custody::CASE_BYTES + 1);
    for (index, case) in [(2, "case"), (0, "case"), (1, ""), (1, "a\0b"), (1, &long)] {
        let refused = store.hold(leaf(index), case, 1).await;
        assert!(matches!(refused, Err(StoreError::Refused(_))), "{index} {case:?}: {refused:?}");
    }
    assert_eq!(store.holds(None, 10).await.unwrap(), []);
}

/// Races `hold` against `erase`: an entry on hold always has its bytes.
pub async fn a_hold_and_an_erasure_at_once_do_not_both_succeed(database: &impl LogDatabase) {
    let store = database.handle().await;
    Appender::with(Arc::clone(&store), 20).await;
    for index in (0..20).map(leaf) {
        let (holder, eraser) = (database.handle().await, database.handle().await);
        let hold = tokio::spawn(async move { holder.hold(index, "case", 1).await });
        let erased = eraser.erase(&[index]).await.unwrap();
        let held = hold.await.unwrap().is_ok();
        assert_eq!(held, erased.held == [index], "entry {index}");
        assert_eq!(held, store.entry(index).await.unwrap().unwrap().statement.is_some(), "entry {index}");
    }
}

/// Checks that terms read before an erasure are not found after it, and are in no run that is completed after it.
pub async fn an_index_that_is_behind_does_not_bring_an_erased_entry_back(database: &impl LogDatabase) {
    let store = database.handle().await;
    Appender::with(Arc::clone(&store), LEVEL_0_LEAVES).await;
    store.erase(&[leaf(1)]).await.unwrap();
    let mut index = Indexer::of(Arc::clone(&store)).await;
    index.add(&[(0, "said"), (1, "said"), (LEVEL_0_LEAVES - 1, "said")]);
    assert_eq!(index.found("said").await, [0, LEVEL_0_LEAVES - 1]);
    index.settle().await;
    assert_eq!(index.found("said").await, [0, LEVEL_0_LEAVES - 1]);
    let catalog = store.catalog().await.unwrap();
    assert_eq!((catalog.runs.len(), catalog.runs[0].summary.blind), (1, 1));
    assert!(catalog.erased.is_empty(), "the run was completed without the entry");
}

fn leaf(index: u64) -> LeafIndex {
    LeafIndex::new(index)
}

/// Makes an entry with facts, guards and collateral, so that a test sees an erasure in each of them.
fn telling(n: u64) -> NewEntry {
    let item = |kind, bytes: &'static [u8]| Collateral { kind, bytes: Bytes::from_static(bytes) };
    NewEntry {
        facts: r#"{"name":"somebody"}"#.into(),
        guards: vec![GuardKey(b"guard".to_vec())],
        collateral: vec![item(1, b"chain"), item(2, b"payload")],
        ..entry(n)
    }
}
