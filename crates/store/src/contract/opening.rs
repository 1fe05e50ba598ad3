//! Contract tests of opening a log, and of the lease that allows a process to sequence it.

use std::time::Duration;

use merkle::{LeafIndex, empty_root};

use super::{Appender, LogDatabase, ORIGIN};
use crate::StoreError;

/// Checks that size, batch and policy are zero and that the root is that of the empty tree.
pub async fn a_new_log_is_empty(database: &impl LogDatabase) {
    let store = database.handle().await;
    let head = store.open(ORIGIN).await.unwrap();
    assert_eq!((head.size().get(), head.batch, head.policy), (0, 0, LeafIndex::new(0)));
    assert_eq!(head.root(), empty_root());
    assert_eq!(store.head().await.unwrap(), head);
    assert_eq!(store.heads(0, 10).await.unwrap(), []);
    assert_eq!(store.entry(LeafIndex::new(0)).await.unwrap(), None);
}

/// Checks that `open` of an existing log returns its head unchanged.
pub async fn opening_again_answers_the_head_in_force(database: &impl LogDatabase) {
    let appender = Appender::with(database.handle().await, 5).await;
    assert_eq!(database.handle().await.open(ORIGIN).await.unwrap(), *appender.head());
}

/// Checks that processes that start at the same moment open the same log.
pub async fn concurrent_opens_see_one_log(database: &impl LogDatabase) {
    let mut openings = Vec::new();
    for _ in 0..8 {
        let store = database.handle().await;
        openings.push(tokio::spawn(async move { store.open(ORIGIN).await }));
    }
    let expected = database.handle().await.open(ORIGIN).await.unwrap();
    for opening in openings {
        assert_eq!(opening.await.unwrap().unwrap(), expected);
    }
}

/// Expects `StoreError::Refused`, so that a wrong configuration file cannot mix two logs.
pub async fn a_log_of_another_origin_is_refused(database: &impl LogDatabase) {
    let store = database.handle().await;
    store.open(ORIGIN).await.unwrap();
    let other = database.handle().await.open("other.example/log").await;
    assert!(matches!(other, Err(StoreError::Refused(_))), "{other:?}");
    assert_eq!(store.open(ORIGIN).await.unwrap().size().get(), 0);
}

/// Checks that `check_durability` accepts the database under test.
pub async fn a_durable_database_passes_its_own_check(database: &impl LogDatabase) {
    let store = database.handle().await;
    store.open(ORIGIN).await.unwrap();
    store.check_durability().await.unwrap();
}

/// Checks that `lease` returns `None` while another handle holds the lease.
pub async fn only_one_handle_holds_the_lease(database: &impl LogDatabase) {
    let (first, second) = (database.handle().await, database.handle().await);
    first.open(ORIGIN).await.unwrap();
    let mut held = first.lease("first").await.unwrap().expect("nobody holds the lease");
    assert!(second.lease("second").await.unwrap().is_none());
    assert!(first.lease("first").await.unwrap().is_none());
    let lost = tokio::time::timeout(Duration::from_millis(50), held.lost()).await;
    assert!(lost.is_err(), "a lease that is held is not lost");
}

/// Checks that a process that stops cleanly frees the lease.
pub async fn a_dropped_lease_is_free_again(database: &impl LogDatabase) {
    let (first, second) = (database.handle().await, database.handle().await);
    first.open(ORIGIN).await.unwrap();
    drop(first.lease("first").await.unwrap().expect("nobody holds the lease"));
    for _ in 0..100 {
        if second.lease("second").await.unwrap().is_some() {
            return;
        }
        tokio::time::sleep(Duration::from_millis(50)).await;
    }
    panic!("the lease was dropped but is not free");
}
