//! Contract tests of `Cosignatures`: the cosignatures of witnesses over committed heads.

use std::sync::Arc;

use bytes::Bytes;
use merkle::TreeSize;

use super::{Appender, LogDatabase};
use crate::{Cosignature, LogStore, StoreError};

/// Checks that cosignatures are read back complete, in order of witness, through another handle.
pub async fn cosignatures_come_back_in_order_of_witness(database: &impl LogDatabase) {
    let store = log_of_sizes(database, &[3, 5]).await;
    let sent = [cosignature(3, "a", 100), cosignature(3, "b", 90), cosignature(5, "a", 101)];
    for cosignature in sent.iter().rev() {
        store.keep_cosignature(cosignature).await.unwrap();
    }
    let other = database.handle().await;
    assert_eq!(other.cosignatures(TreeSize::new(3)).await.unwrap(), sent[..2]);
    assert_eq!(other.cosignatures(TreeSize::new(5)).await.unwrap(), sent[2..]);
    assert_eq!(other.cosignatures(TreeSize::new(4)).await.unwrap(), []);
}

/// A witness that confirms a head again sends a newer time; an answer that arrives late must change nothing.
pub async fn only_a_newer_cosignature_replaces_an_older_one(database: &impl LogDatabase) {
    let store = log_of_sizes(database, &[3]).await;
    for at in [100, 99, 100, 107, 103] {
        store.keep_cosignature(&cosignature(3, "a", at)).await.unwrap();
    }
    let same_time = Cosignature { line: Bytes::from_static(b"another line"), ..cosignature(3, "a", 107) };
    store.keep_cosignature(&same_time).await.unwrap();
    assert_eq!(store.cosignatures(TreeSize::new(3)).await.unwrap(), [cosignature(3, "a", 107)]);
}

/// Two processes that receive answers of one witness at once keep one of them, the newer.
pub async fn of_cosignatures_at_once_the_newest_stays(database: &impl LogDatabase) {
    let store = log_of_sizes(database, &[3]).await;
    let mut calls = Vec::new();
    for at in 0..16 {
        let store = database.handle().await;
        calls.push(tokio::spawn(async move { store.keep_cosignature(&cosignature(3, "a", 100 + at)).await }));
    }
    for call in calls {
        call.await.unwrap().unwrap();
    }
    assert_eq!(store.cosignatures(TreeSize::new(3)).await.unwrap(), [cosignature(3, "a", 115)]);
}

/// Expects `StoreError::Refused`.
pub async fn a_cosignature_of_a_head_that_was_never_committed_is_refused(database: &impl LogDatabase) {
    let store = log_of_sizes(database, &[3]).await;
    for size in [0, 2, 4] {
        let kept = store.keep_cosignature(&cosignature(size, "a", 100)).await;
        assert!(matches!(kept, Err(StoreError::Refused(_))), "size {size}: {kept:?}");
    }
}

/// After a take-over a process resumes from this cosignature: a later time must not make a smaller head count as
/// newer.
pub async fn the_newest_cosignature_of_a_witness_is_that_of_the_largest_head(database: &impl LogDatabase) {
    let store = log_of_sizes(database, &[3, 5, 9]).await;
    for kept in [cosignature(9, "b", 50), cosignature(5, "a", 100), cosignature(3, "a", 200)] {
        store.keep_cosignature(&kept).await.unwrap();
    }
    let newest = async |witness: &str| store.newest_cosignature(witness.as_bytes()).await.unwrap();
    assert_eq!(newest("a").await, Some(cosignature(5, "a", 100)));
    assert_eq!(newest("b").await, Some(cosignature(9, "b", 50)));
    assert_eq!(newest("c").await, None);
}

/// Reads page by page, as a search for the newest head with enough cosignatures does.
pub async fn cosigned_heads_come_largest_first_and_are_never_split(database: &impl LogDatabase) {
    let store = log_of_sizes(database, &[3, 5, 9]).await;
    let expected = [
        cosignature(9, "b", 1),
        cosignature(5, "a", 2),
        cosignature(5, "b", 3),
        cosignature(5, "c", 4),
        cosignature(3, "a", 5),
    ];
    for kept in expected.iter().rev() {
        store.keep_cosignature(kept).await.unwrap();
    }
    let page =
        async |below: Option<u64>, limit| store.cosigned(below.map(TreeSize::new), limit).await.unwrap();
    assert_eq!(page(None, 100).await, expected);
    assert_eq!(page(None, 1).await, expected[..1]);
    assert_eq!(page(None, 2).await, expected[..4]);
    assert_eq!(page(Some(9), 1).await, expected[1..4]);
    assert_eq!(page(Some(5), 1).await, expected[4..]);
    assert_eq!(page(Some(3), 1).await, []);
    assert_eq!(page(None, 0).await, []);
}

/// Makes a log with one committed head for each of these sizes.
async fn log_of_sizes(database: &impl LogDatabase, sizes: &[u64]) -> Arc<dyn LogStore> {
    let store = database.handle().await;
    let mut appender = Appender::new(Arc::clone(&store)).await;
    for size in sizes {
        appender.append(size - appender.head().size().get()).await;
    }
    store
}

fn cosignature(size: u64, witness: &str, at: u64) -> Cosignature {
    let line = Bytes::from(format!("{witness} saw {size} at {at}"));
    Cosignature { size: TreeSize::new(size), witness: witness.as_bytes().to_vec(), at, line }
}
