//! Contract tests of the inbox: admitted statements that wait for the sequencer.

use std::sync::Arc;

use bytes::Bytes;
use merkle::{EntryDigest, LeafIndex};

use super::{Appender, LogDatabase, ORIGIN, entry};
use crate::{Arrival, CommitError, Enqueued, InboxBounds, InboxItem, InboxUse, LogStore, Progress};

/// Checks that `pending` lists items in order of arrival.
pub async fn pending_statements_come_oldest_first(database: &impl LogDatabase) {
    let store = database.handle().await;
    store.open(ORIGIN).await.unwrap();
    for n in [7, 3, 5] {
        store.enqueue(&item(n)).await.unwrap();
    }
    let other = database.handle().await;
    assert_eq!(other.pending(10).await.unwrap(), [item(7), item(3), item(5)]);
    assert_eq!(other.pending(2).await.unwrap(), [item(7), item(3)]);
    assert_eq!(progress(&*other, 3).await, Some(Progress::Pending));
    assert_eq!(progress(&*other, 4).await, None);
}

/// Checks that a repeated request makes one inbox item.
pub async fn enqueueing_a_pending_statement_again_changes_nothing(database: &impl LogDatabase) {
    let store = database.handle().await;
    store.open(ORIGIN).await.unwrap();
    store.enqueue(&item(1)).await.unwrap();
    store.enqueue(&item(2)).await.unwrap();
    let changed = InboxItem { submission: Bytes::from_static(b"changed"), ..item(1) };
    database.handle().await.enqueue(&changed).await.unwrap();
    assert_eq!(store.pending(10).await.unwrap(), [item(1), item(2)]);
}

/// Checks that `Batch::settled` is written in the transaction of the commit.
pub async fn a_commit_settles_what_waited_for_it(database: &impl LogDatabase) {
    let store = database.handle().await;
    let mut appender = Appender::with(Arc::clone(&store), 2).await;
    for n in [2, 3, 4] {
        store.enqueue(&item(n)).await.unwrap();
    }
    let mut batch = appender.batch(vec![entry(2), entry(3)]);
    batch.settled = vec![settled(2), settled(3), settled(1)];
    appender.commit(&batch).await.unwrap();
    assert_eq!(store.pending(10).await.unwrap(), [item(4)]);
    for n in [2, 3] {
        assert_eq!(progress(&*store, n).await, Some(Progress::Registered(LeafIndex::new(n))));
    }
    store.enqueue(&item(3)).await.unwrap();
    assert_eq!(store.pending(10).await.unwrap(), [item(4)]);
}

/// Covers an item whose entry is already in the log: settling it needs no new head.
pub async fn a_batch_without_entries_settles_and_adds_no_head(database: &impl LogDatabase) {
    let store = database.handle().await;
    let mut appender = Appender::with(Arc::clone(&store), 2).await;
    store.enqueue(&item(1)).await.unwrap();
    let mut batch = appender.batch(vec![]);
    batch.settled = vec![settled(1)];
    appender.commit(&batch).await.unwrap();
    assert_eq!(progress(&*store, 1).await, Some(Progress::Registered(LeafIndex::new(1))));
    assert_eq!(store.heads(0, 10).await.unwrap().len(), 1);
    assert_eq!(store.head().await.unwrap(), *appender.head());
}

/// Checks that a fenced process settles no item, by a batch with entries or without.
pub async fn a_fenced_commit_settles_nothing(database: &impl LogDatabase) {
    let store = database.handle().await;
    let appender = Appender::with(Arc::clone(&store), 2).await;
    store.enqueue(&item(1)).await.unwrap();
    store.take_over("other").await.unwrap();
    for entries in [vec![], vec![entry(2)]] {
        let mut batch = appender.batch(entries);
        batch.settled = vec![settled(1)];
        let outcome = store.commit(&batch).await;
        assert!(matches!(outcome, Err(CommitError::Fenced)), "{outcome:?}");
        assert_eq!(progress(&*store, 1).await, Some(Progress::Pending));
    }
}

/// Checks that `Progress::Failed` is terminal until the same statement is enqueued again, as a new attempt.
pub async fn a_refused_statement_says_why_until_it_is_enqueued_again(database: &impl LogDatabase) {
    let store = database.handle().await;
    let mut appender = Appender::with(Arc::clone(&store), 1).await;
    for attempt in ["first", "second"] {
        store.enqueue(&item(1)).await.unwrap();
        assert_eq!(progress(&*store, 1).await, Some(Progress::Pending));
        store.refuse(&entry(1).digest, attempt).await.unwrap();
        assert_eq!(progress(&*store, 1).await, Some(Progress::Failed(attempt.into())));
        assert_eq!(store.pending(10).await.unwrap(), []);
    }
    store.enqueue(&item(1)).await.unwrap();
    let mut batch = appender.batch(vec![entry(1)]);
    batch.settled = vec![settled(1)];
    appender.commit(&batch).await.unwrap();
    assert_eq!(progress(&*store, 1).await, Some(Progress::Registered(LeafIndex::new(1))));
}

/// Calls `refuse` for a digest that is unknown and for one that is settled.
pub async fn refusing_what_does_not_wait_changes_nothing(database: &impl LogDatabase) {
    let store = database.handle().await;
    store.open(ORIGIN).await.unwrap();
    store.refuse(&entry(1).digest, "why").await.unwrap();
    assert_eq!(progress(&*store, 1).await, None);
    store.enqueue(&item(1)).await.unwrap();
    store.refuse(&entry(1).digest, "first").await.unwrap();
    store.refuse(&entry(1).digest, "second").await.unwrap();
    assert_eq!(progress(&*store, 1).await, Some(Progress::Failed("first".into())));
}

/// Checks that `trim_inbox` never removes a pending item.
pub async fn trimming_forgets_only_what_is_finished(database: &impl LogDatabase) {
    let store = database.handle().await;
    let mut appender = Appender::with(Arc::clone(&store), 1).await;
    for n in 1..=4 {
        store.enqueue(&item(n)).await.unwrap();
    }
    let mut batch = appender.batch(vec![entry(1), entry(2), entry(3)]);
    batch.settled = vec![settled(1), settled(2), settled(3)];
    appender.commit(&batch).await.unwrap();
    assert_eq!(store.trim_inbox(2).await.unwrap(), 2);
    assert_eq!(store.trim_inbox(10).await.unwrap(), 1);
    assert_eq!(store.trim_inbox(10).await.unwrap(), 0);
    for n in 1..=3 {
        assert_eq!(progress(&*store, n).await, None);
    }
    assert_eq!(store.pending(10).await.unwrap(), [item(4)]);
}

/// Checks that `progress` still returns the reason of a failure after `trim_inbox`.
pub async fn a_failure_outlives_the_trimming(database: &impl LogDatabase) {
    let store = database.handle().await;
    store.open(ORIGIN).await.unwrap();
    store.enqueue(&item(1)).await.unwrap();
    store.refuse(&entry(1).digest, "why").await.unwrap();
    store.trim_inbox(10).await.unwrap();
    assert_eq!(progress(&*store, 1).await, Some(Progress::Failed("why".into())));
    store.enqueue(&item(1)).await.unwrap();
    assert_eq!(progress(&*store, 1).await, Some(Progress::Pending));
    store.trim_inbox(10).await.unwrap();
    assert_eq!(store.pending(10).await.unwrap(), [item(1)]);
}

/// Checks that `forget_failures` keeps the newest reasons, and the reason of an attempt that is not trimmed.
pub async fn of_failures_the_newest_are_kept(database: &impl LogDatabase) {
    let store = database.handle().await;
    store.open(ORIGIN).await.unwrap();
    for n in 1..=5 {
        store.enqueue(&item(n)).await.unwrap();
        store.refuse(&entry(n).digest, "why").await.unwrap();
    }
    assert_eq!(store.forget_failures(2, 10).await.unwrap(), 0, "no attempt is trimmed yet");
    store.trim_inbox(10).await.unwrap();
    assert_eq!(store.forget_failures(5, 10).await.unwrap(), 0);
    store.enqueue(&item(3)).await.unwrap();
    assert_eq!(store.forget_failures(2, 2).await.unwrap(), 2);
    for n in [1, 2] {
        assert_eq!(progress(&*store, n).await, None);
    }
    assert_eq!(store.forget_failures(2, 10).await.unwrap(), 1);
    assert_eq!(store.forget_failures(2, 10).await.unwrap(), 0);
    for n in [4, 5] {
        assert_eq!(progress(&*store, n).await, Some(Progress::Failed("why".into())));
    }
    assert_eq!(progress(&*store, 3).await, Some(Progress::Pending), "its new attempt is not forgotten");
    store.enqueue(&item(1)).await.unwrap();
    assert_eq!(store.pending(10).await.unwrap(), [item(3), item(1)]);
}

/// Checks that `forget_failures` counts an attempt as new that ended late, whenever it arrived.
pub async fn of_failures_the_one_that_ended_last_is_the_newest(database: &impl LogDatabase) {
    let store = database.handle().await;
    store.open(ORIGIN).await.unwrap();
    for n in [1, 2] {
        store.enqueue(&item(n)).await.unwrap();
    }
    for n in [2, 1] {
        store.refuse(&entry(n).digest, "why").await.unwrap();
    }
    store.trim_inbox(10).await.unwrap();
    assert_eq!(store.forget_failures(1, 10).await.unwrap(), 1);
    assert_eq!(progress(&*store, 2).await, None);
    assert_eq!(progress(&*store, 1).await, Some(Progress::Failed("why".into())));
}

/// Checks that a failure is kept no longer than until the statement was registered and its outcome trimmed.
pub async fn trimming_a_registered_statement_forgets_its_earlier_failures(database: &impl LogDatabase) {
    let store = database.handle().await;
    let mut appender = Appender::with(Arc::clone(&store), 1).await;
    for why in ["first", "second"] {
        store.enqueue(&item(1)).await.unwrap();
        store.refuse(&entry(1).digest, why).await.unwrap();
        store.trim_inbox(10).await.unwrap();
    }
    store.enqueue(&item(1)).await.unwrap();
    let mut batch = appender.batch(vec![entry(1)]);
    batch.settled = vec![settled(1)];
    appender.commit(&batch).await.unwrap();
    store.trim_inbox(10).await.unwrap();
    assert_eq!(progress(&*store, 1).await, None);
}

/// Checks `pending_keys`, which lists pending items without loading their statements.
pub async fn pending_keys_come_in_order_of_arrival_with_issuer_size_and_time(database: &impl LogDatabase) {
    let store = database.handle().await;
    store.open(ORIGIN).await.unwrap();
    for (n, issuer) in [(7, "https://one.example"), (3, "two\u{0}\n"), (5, "")] {
        let arrival = Arrival { issuer, at: 1_800_000_000 + n, bounds: InboxBounds::NONE };
        assert_eq!(store.enqueue_within(&item(n), &arrival).await.unwrap(), Enqueued::Kept);
    }
    let other = database.handle().await;
    let keys = other.pending_keys(None, 10).await.unwrap();
    let seen = keys.iter().map(|key| (key.digest, key.issuer.as_str(), key.bytes, key.at));
    let expected = [(7, "https://one.example"), (3, "two"), (5, "")]
        .map(|(n, issuer)| (entry(n).digest, issuer, item(n).submission.len() as u64, 1_800_000_000 + n));
    assert_eq!(seen.collect::<Vec<_>>(), expected);
    assert!(keys.is_sorted_by(|a, b| a.number < b.number));
    assert_eq!(other.pending_keys(None, 2).await.unwrap(), keys[..2]);
    assert_eq!(other.pending_keys(Some(keys[0].number), 10).await.unwrap(), keys[1..]);
    store.refuse(&entry(7).digest, "why").await.unwrap();
    assert_eq!(other.pending_keys(None, 10).await.unwrap(), keys[1..]);
}

/// Checks that `submissions` leaves out an item that was settled in between.
pub async fn submissions_are_read_by_number_while_they_are_pending(database: &impl LogDatabase) {
    let store = database.handle().await;
    store.open(ORIGIN).await.unwrap();
    for n in [1, 2, 3] {
        store.enqueue(&item(n)).await.unwrap();
    }
    let numbers: Vec<u64> =
        store.pending_keys(None, 10).await.unwrap().iter().map(|key| key.number).collect();
    store.refuse(&entry(2).digest, "why").await.unwrap();
    let asked = [numbers[2], numbers[1], numbers[0], numbers[2] + 1000];
    let read = store.submissions(&asked).await.unwrap();
    assert_eq!(read, [(numbers[0], item(1).submission), (numbers[2], item(3).submission)]);
    assert_eq!(store.submissions(&[]).await.unwrap(), []);
}

/// Checks that `Enqueued::IssuerFull` of one issuer does not affect the other issuers.
pub async fn an_issuer_that_used_up_its_share_of_the_inbox_keeps_nobody_else_out(
    database: &impl LogDatabase,
) {
    let store = database.handle().await;
    store.open(ORIGIN).await.unwrap();
    let bounds = InboxBounds { issuer_rows: 2, rows: 100, ..InboxBounds::NONE };
    let enqueue = async |n: u64, issuer: &str| {
        store.enqueue_within(&item(n), &Arrival { issuer, at: 1, bounds }).await.unwrap()
    };
    for n in [1, 2] {
        assert_eq!(enqueue(n, "greedy").await, Enqueued::Kept);
    }
    assert_eq!(enqueue(3, "greedy").await, Enqueued::IssuerFull);
    assert_eq!(progress(&*store, 3).await, None);
    assert_eq!(enqueue(2, "greedy").await, Enqueued::Kept, "it is pending already");
    assert_eq!(enqueue(3, "honest").await, Enqueued::Kept);
    store.refuse(&entry(1).digest, "why").await.unwrap();
    store.trim_inbox(10).await.unwrap();
    assert_eq!(enqueue(4, "greedy").await, Enqueued::Kept, "an outcome makes room");
    assert_eq!(enqueue(5, "greedy").await, Enqueued::IssuerFull);
}

/// Checks each of the four `InboxBounds`: an item that just fits is kept, the next one is not.
pub async fn the_inbox_keeps_no_more_rows_and_bytes_than_its_bounds(database: &impl LogDatabase) {
    let size = item(1).submission.len() as u64;
    for (bounds, full) in [
        (InboxBounds { rows: 3, ..InboxBounds::NONE }, Enqueued::Full),
        (InboxBounds { bytes: 3 * size, ..InboxBounds::NONE }, Enqueued::Full),
        (InboxBounds { issuer_rows: 3, ..InboxBounds::NONE }, Enqueued::IssuerFull),
        (InboxBounds { issuer_bytes: 3 * size, ..InboxBounds::NONE }, Enqueued::IssuerFull),
    ] {
        let store = database.handle().await;
        store.open(ORIGIN).await.unwrap();
        for n in 1..=4 {
            let outcome = store.enqueue_within(&item(n), &Arrival { issuer: "one", at: 1, bounds }).await;
            assert_eq!(outcome.unwrap(), if n < 4 { Enqueued::Kept } else { full }, "{bounds:?} {n}");
        }
        assert_eq!(store.pending(10).await.unwrap(), [item(1), item(2), item(3)]);
        for n in 1..=3 {
            store.refuse(&entry(n).digest, "why").await.unwrap();
        }
        store.trim_inbox(10).await.unwrap();
    }
}

/// Checks `inbox_use`, the depth and age that monitoring reads.
pub async fn the_use_of_the_inbox_counts_what_is_pending(database: &impl LogDatabase) {
    let store = database.handle().await;
    store.open(ORIGIN).await.unwrap();
    assert_eq!(store.inbox_use().await.unwrap(), InboxUse::default());
    store.enqueue(&item(1)).await.unwrap();
    let size = item(1).submission.len() as u64;
    assert_eq!(store.inbox_use().await.unwrap(), InboxUse { rows: 1, bytes: size, oldest: None });
    for (n, at) in [(2, 20), (3, 10), (4, 30)] {
        let arrival = Arrival { issuer: "one", at, bounds: InboxBounds::NONE };
        assert_eq!(store.enqueue_within(&item(n), &arrival).await.unwrap(), Enqueued::Kept);
    }
    assert_eq!(store.inbox_use().await.unwrap(), InboxUse { rows: 4, bytes: 4 * size, oldest: Some(10) });
    store.refuse(&entry(3).digest, "why").await.unwrap();
    assert_eq!(store.inbox_use().await.unwrap(), InboxUse { rows: 3, bytes: 3 * size, oldest: Some(20) });
}

fn item(n: u64) -> InboxItem {
    InboxItem { digest: entry(n).digest, submission: Bytes::from(format!("submission {n}")) }
}

fn settled(n: u64) -> (EntryDigest, LeafIndex) {
    (entry(n).digest, LeafIndex::new(n))
}

async fn progress(store: &dyn LogStore, n: u64) -> Option<Progress> {
    store.progress(&entry(n).digest).await.unwrap()
}
