//! Statements that wait for the sequencer.

use std::sync::Arc;

use bytes::Bytes;
use merkle::{EntryDigest, LeafIndex};

use super::{Appender, Database, ORIGIN, entry};
use crate::{CommitError, InboxItem, LogStore, Progress};

/// First come, first sequenced.
pub async fn pending_statements_come_oldest_first(database: &impl Database) {
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

/// A retried request is one request.
pub async fn enqueueing_a_pending_statement_again_changes_nothing(database: &impl Database) {
    let store = database.handle().await;
    store.open(ORIGIN).await.unwrap();
    store.enqueue(&item(1)).await.unwrap();
    store.enqueue(&item(2)).await.unwrap();
    let changed = InboxItem { submission: Bytes::from_static(b"changed"), ..item(1) };
    database.handle().await.enqueue(&changed).await.unwrap();
    assert_eq!(store.pending(10).await.unwrap(), [item(1), item(2)]);
}

/// The outcome is part of the same commit.
pub async fn a_commit_settles_what_waited_for_it(database: &impl Database) {
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

/// An item whose entry was found in the log needs no new head.
pub async fn a_batch_without_entries_settles_and_adds_no_head(database: &impl Database) {
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

/// A fenced process settles nothing, with entries or without.
pub async fn a_fenced_commit_settles_nothing(database: &impl Database) {
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

/// Terminal until the same statement comes again, which is a new attempt.
pub async fn a_refused_statement_says_why_until_it_is_enqueued_again(database: &impl Database) {
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

/// Neither the unknown nor the finished.
pub async fn refusing_what_does_not_wait_changes_nothing(database: &impl Database) {
    let store = database.handle().await;
    store.open(ORIGIN).await.unwrap();
    store.refuse(&entry(1).digest, "why").await.unwrap();
    assert_eq!(progress(&*store, 1).await, None);
    store.enqueue(&item(1)).await.unwrap();
    store.refuse(&entry(1).digest, "first").await.unwrap();
    store.refuse(&entry(1).digest, "second").await.unwrap();
    assert_eq!(progress(&*store, 1).await, Some(Progress::Failed("first".into())));
}

/// What waits is never forgotten.
pub async fn trimming_forgets_only_what_is_finished(database: &impl Database) {
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

/// The answer to "why was it refused" does not depend on housekeeping.
pub async fn a_failure_outlives_the_trimming(database: &impl Database) {
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

fn item(n: u64) -> InboxItem {
    InboxItem { digest: entry(n).digest, submission: Bytes::from(format!("submission {n}")) }
}

fn settled(n: u64) -> (EntryDigest, LeafIndex) {
    (entry(n).digest, LeafIndex::new(n))
}

async fn progress(store: &dyn LogStore, n: u64) -> Option<Progress> {
    store.progress(&entry(n).digest).await.unwrap()
}
