//! Contract tests of the history of heads, the signatures over heads, and the keys that sign them.

use std::sync::Arc;

use bytes::Bytes;
use merkle::{LeafIndex, TreeSize};

use super::{Appender, LogDatabase, ORIGIN, entry};
use crate::{CommitError, HeadSignature, KeyAnnouncement, LogKey, LogStore, SignatureKind, StoreError};

/// Checks that `heads` has one row per batch, in order, in pages of any size.
pub async fn every_committed_head_is_kept(database: &impl LogDatabase) {
    let store = database.handle().await;
    let mut appender = Appender::new(Arc::clone(&store)).await;
    let mut expected = Vec::new();
    for count in [1, 4, 2, 300, 1] {
        appender.append(count).await;
        expected.push(appender.head().committed());
    }
    assert_eq!(store.heads(0, 100).await.unwrap(), expected);
    assert_eq!(store.heads(2, 2).await.unwrap(), expected[1..3]);
    assert_eq!(store.heads(6, 100).await.unwrap(), []);
}

/// Checks that `head_of_size` returns no neighbour of a size that was never committed.
pub async fn a_head_is_found_by_exactly_its_size(database: &impl LogDatabase) {
    let store = database.handle().await;
    let mut appender = Appender::with(Arc::clone(&store), 3).await;
    let root = appender.head().root();
    appender.append(4).await;
    let found = store.head_of_size(TreeSize::new(3)).await.unwrap().unwrap();
    assert_eq!((found.batch, found.root), (1, root));
    for size in [0, 2, 4, 8] {
        assert_eq!(store.head_of_size(TreeSize::new(size)).await.unwrap(), None, "size {size}");
    }
}

/// Checks that `head_covering` returns the head of the leaf's own batch, and none beyond the last one.
pub async fn a_leaf_is_covered_first_by_the_head_of_its_batch(database: &impl LogDatabase) {
    let store = database.handle().await;
    let mut appender = Appender::with(Arc::clone(&store), 3).await;
    appender.append(4).await;
    for (leaf, size) in [(0, 3), (2, 3), (3, 7), (6, 7)] {
        let found = store.head_covering(LeafIndex::new(leaf)).await.unwrap();
        assert_eq!(found, store.head_of_size(TreeSize::new(size)).await.unwrap(), "leaf {leaf}");
    }
    for leaf in [7, u64::MAX] {
        assert_eq!(store.head_covering(LeafIndex::new(leaf)).await.unwrap(), None, "leaf {leaf}");
    }
}

/// Checks that a head that is signed again after a crash keeps the signature that was already served.
pub async fn the_first_signature_stands(database: &impl LogDatabase) {
    let store = database.handle().await;
    Appender::with(Arc::clone(&store), 3).await;
    let first = signature(3, SignatureKind::Receipt, "kid", "first");
    keep(&*store, &first).await;
    keep(&*store, &signature(3, SignatureKind::Receipt, "kid", "second")).await;
    assert_eq!(store.signature(first.size, first.kind, b"kid").await.unwrap(), Some(first.clone()));
    assert_eq!(store.signature(first.size, SignatureKind::Checkpoint, b"kid").await.unwrap(), None);
    assert_eq!(store.signature(first.size, first.kind, b"other").await.unwrap(), None);
}

/// Checks that a batch stores the signatures over earlier heads with its entries, or none of both.
pub async fn signatures_are_stored_with_a_batch(database: &impl LogDatabase) {
    let store = database.handle().await;
    let mut appender = Appender::with(Arc::clone(&store), 3).await;
    let first = signature(3, SignatureKind::Receipt, "kid", "first");
    keep(&*store, &first).await;
    let checkpoint = signature(3, SignatureKind::Checkpoint, "kid", "checkpoint");
    let mut batch = appender.batch(vec![entry(3)]);
    batch.signatures = vec![signature(3, SignatureKind::Receipt, "kid", "second"), checkpoint.clone()];
    appender.commit(&batch).await.unwrap();
    assert_eq!(store.signatures(None, 100).await.unwrap(), [first, checkpoint]);
    for size in [2, 5] {
        let mut batch = appender.batch(vec![entry(4)]);
        batch.signatures = vec![signature(size, SignatureKind::Receipt, "kid", "x")];
        let outcome = store.commit(&batch).await;
        assert!(matches!(outcome, Err(CommitError::NotCommitted(_))), "size {size}: {outcome:?}");
        assert_eq!(store.head().await.unwrap(), batch.from);
    }
}

/// Expects `StoreError::Refused`: every signed root must be a row of the history.
pub async fn a_signature_over_a_head_that_was_never_committed_is_refused(database: &impl LogDatabase) {
    let store = database.handle().await;
    Appender::with(Arc::clone(&store), 3).await;
    for size in [0, 2, 4] {
        let kept = store.keep_signature(&signature(size, SignatureKind::Receipt, "kid", "x")).await;
        assert!(matches!(kept, Err(StoreError::Refused(_))), "size {size}: {kept:?}");
    }
}

/// Checks that `newest_signed` skips a newer head that has no signature of that kind.
pub async fn the_newest_signed_head_is_found_by_kind(database: &impl LogDatabase) {
    let store = database.handle().await;
    let mut appender = Appender::with(Arc::clone(&store), 1).await;
    appender.append(1).await;
    appender.append(1).await;
    assert_eq!(store.newest_signed(SignatureKind::Receipt).await.unwrap(), None);
    for size in [2, 1] {
        keep(&*store, &signature(size, SignatureKind::Receipt, "kid", "receipt")).await;
    }
    keep(&*store, &signature(3, SignatureKind::Checkpoint, "kid", "checkpoint")).await;
    let newest = store.newest_signed(SignatureKind::Receipt).await.unwrap().unwrap();
    assert_eq!(newest.signature, signature(2, SignatureKind::Receipt, "kid", "receipt"));
    assert_eq!(Some(newest.head), store.head_of_size(TreeSize::new(2)).await.unwrap());
    let newest = store.newest_signed(SignatureKind::Checkpoint).await.unwrap().unwrap();
    assert_eq!(newest.head.size, TreeSize::new(3));
    assert_eq!(store.newest_signed(SignatureKind::Cosignature).await.unwrap(), None);
}

/// Checks the paging of `signatures`: the last size of a page is where the next page starts.
pub async fn the_signatures_of_a_head_are_never_split(database: &impl LogDatabase) {
    let store = database.handle().await;
    let mut appender = Appender::with(Arc::clone(&store), 1).await;
    appender.append(1).await;
    let (receipt, cosignature) = (SignatureKind::Receipt, SignatureKind::Cosignature);
    let expected = [
        signature(1, receipt, "b", "1"),
        signature(1, cosignature, "a", "2"),
        signature(1, cosignature, "b", "3"),
        signature(2, receipt, "a", "4"),
    ];
    for kept in expected.iter().rev() {
        keep(&*store, kept).await;
    }
    assert_eq!(store.signatures(None, 100).await.unwrap(), expected);
    assert_eq!(store.signatures(None, 1).await.unwrap(), expected[..3]);
    assert_eq!(store.signatures(Some(TreeSize::new(1)), 1).await.unwrap(), expected[3..]);
    assert_eq!(store.signatures(Some(TreeSize::new(2)), 1).await.unwrap(), []);
}

/// Checks that `keep_key` does not change a published key.
pub async fn a_known_key_is_left_as_it_is(database: &impl LogDatabase) {
    let store = database.handle().await;
    store.open(ORIGIN).await.unwrap();
    let (older, newer) = (key("older", 0), key("newer", 40));
    store.keep_key(&newer).await.unwrap();
    store.keep_key(&older).await.unwrap();
    store.keep_key(&LogKey { public: Bytes::from_static(b"forged"), ..older.clone() }).await.unwrap();
    assert_eq!(database.handle().await.keys().await.unwrap(), [older, newer]);
}

/// Checks that the predecessor stays listed, with its `retired_size`, so that old receipts stay verifiable.
pub async fn a_key_that_is_taken_up_retires_its_predecessor(database: &impl LogDatabase) {
    let store = database.handle().await;
    let mut appender = Appender::with(store.clone(), 4).await;
    store.keep_key(&key("one", 0)).await.unwrap();
    store.announce_key(&announcement("two", "one")).await.unwrap();
    assert_eq!(store.announced_keys().await.unwrap(), [announcement("two", "one")]);
    assert_eq!(store.keys().await.unwrap(), [key("one", 0)]);
    appender.append(3).await;
    let epoch = appender.head().epoch;
    let taken = database.handle().await.take_up_key(b"two", epoch, 1_700_000_000).await.unwrap();
    assert_eq!(taken, Some(key("two", 8)));
    let retired =
        LogKey { retired_at: Some(1_700_000_000), retired_size: Some(TreeSize::new(8)), ..key("one", 0) };
    assert_eq!(store.keys().await.unwrap(), [retired, key("two", 8)]);
    assert_eq!(store.announced_keys().await.unwrap(), []);
    assert_eq!(store.take_up_key(b"two", epoch, 1_700_000_001).await.unwrap(), None);
    appender.append(1).await;
}

/// Checks that a fenced process cannot decide from which size a key signs.
pub async fn a_key_is_not_taken_up_under_an_older_epoch(database: &impl LogDatabase) {
    let store = database.handle().await;
    let mut appender = Appender::with(store.clone(), 4).await;
    let older = appender.head().epoch;
    appender.take_over().await;
    store.keep_key(&key("one", 0)).await.unwrap();
    store.announce_key(&announcement("two", "one")).await.unwrap();
    let fenced = store.take_up_key(b"two", older, 1).await;
    assert!(matches!(fenced, Err(StoreError::Refused(_))), "{fenced:?}");
    assert_eq!(store.keys().await.unwrap(), [key("one", 0)]);
}

/// Checks that a key in force has at most one announced successor: the newest announcement.
pub async fn a_key_is_announced_only_for_one_in_force(database: &impl LogDatabase) {
    let store = database.handle().await;
    let appender = Appender::with(store.clone(), 1).await;
    let refused = |outcome| assert!(matches!(outcome, Err(StoreError::Refused(_))), "{outcome:?}");
    refused(store.announce_key(&announcement("two", "one")).await);
    store.keep_key(&key("one", 0)).await.unwrap();
    refused(store.announce_key(&announcement("one", "one")).await);
    store.announce_key(&announcement("lost", "one")).await.unwrap();
    store.announce_key(&announcement("two", "one")).await.unwrap();
    assert_eq!(store.announced_keys().await.unwrap(), [announcement("two", "one")]);
    store.take_up_key(b"two", appender.head().epoch, 1).await.unwrap();
    refused(store.announce_key(&announcement("three", "one")).await);
    store.freeze("operator", 2).await.unwrap();
    let frozen = store.announce_key(&announcement("three", "two")).await;
    assert!(matches!(frozen, Err(StoreError::Frozen)), "{frozen:?}");
}

/// Checks that `mark_compromised` can lower the size of an earlier mark and not raise it.
pub async fn a_compromise_is_only_marked_earlier(database: &impl LogDatabase) {
    let store = database.handle().await;
    store.open(ORIGIN).await.unwrap();
    store.keep_key(&key("one", 0)).await.unwrap();
    for (since, kept) in [(9, 9), (12, 9), (5, 5)] {
        store.mark_compromised(b"one", TreeSize::new(since)).await.unwrap();
        let marked = LogKey { compromised_size: Some(TreeSize::new(kept)), ..key("one", 0) };
        assert_eq!(store.keys().await.unwrap(), [marked]);
    }
    assert!(matches!(store.mark_compromised(b"other", TreeSize::new(1)).await, Err(StoreError::Refused(_))));
}

fn signature(size: u64, kind: SignatureKind, kid: &str, bytes: &str) -> HeadSignature {
    let bytes = Bytes::from(bytes.as_bytes().to_vec());
    HeadSignature { size: TreeSize::new(size), kind, kid: kid.as_bytes().to_vec(), bytes }
}

fn key(kid: &str, from: u64) -> LogKey {
    LogKey::new(kid.as_bytes().to_vec(), Bytes::from(format!("public {kid}")), TreeSize::new(from))
}

fn announcement(kid: &str, replaces: &str) -> KeyAnnouncement {
    let LogKey { kid, public, .. } = key(kid, 0);
    KeyAnnouncement { kid, public, replaces: replaces.as_bytes().to_vec(), at: 1_600_000_000 }
}

async fn keep(store: &dyn LogStore, signature: &HeadSignature) {
    store.keep_signature(signature).await.unwrap();
}
