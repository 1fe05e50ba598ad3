//! The store that fails on request: transparent until told otherwise, and exact about its faults.

#![allow(clippy::unwrap_used)]

use std::sync::Arc;

use async_trait::async_trait;
use bytes::Bytes;
use store::contract::{Appender, LogDatabase, entry};
use store::{
    CommitError, FailingStore, Fault, Inbox, InboxItem, LogKeys, LogReader, LogStore, Memory, StoreError,
    StoreMethod,
};

struct Wrapped(Memory);

#[async_trait]
impl LogDatabase for Wrapped {
    async fn handle(&self) -> Arc<dyn LogStore> {
        Arc::new(FailingStore::new(self.0.clone()))
    }
}

store::log_store_contract!(untold: || async { Wrapped(Memory::new()) });

async fn log() -> (FailingStore, Appender) {
    let store = FailingStore::new(Memory::new());
    let appender = Appender::with(Arc::new(store.clone()), 2).await;
    (store, appender)
}

#[tokio::test]
async fn a_commit_fails_in_each_of_the_three_ways() {
    for (fault, happened) in
        [(Fault::Refused, false), (Fault::NotApplied, false), (Fault::AppliedWithoutAnswer, true)]
    {
        let (store, mut appender) = log().await;
        store.fail(StoreMethod::Commit, 1, fault);
        let outcome = appender.append_entries(vec![entry(2)]).await;
        match fault {
            Fault::Refused => assert!(matches!(outcome, Err(CommitError::NotCommitted(_))), "{outcome:?}"),
            _ => assert!(matches!(outcome, Err(CommitError::Unknown(_))), "{outcome:?}"),
        }
        assert_eq!(store.find(&[entry(2).digest]).await.unwrap()[0].is_some(), happened);
    }
}

#[tokio::test]
async fn a_fault_strikes_the_call_it_was_ordered_for_and_only_once() {
    let (store, mut appender) = log().await;
    store.fail(StoreMethod::Commit, 2, Fault::Refused);
    store.head().await.unwrap();
    appender.append(1).await;
    assert!(store.faults_left() > 0);
    assert!(appender.append_entries(vec![entry(3)]).await.is_err());
    assert!(store.faults_left() == 0);
    appender.append(1).await;
    assert_eq!(store.calls(StoreMethod::Commit), 4);
}

#[tokio::test]
async fn the_nth_call_of_any_kind_fails() {
    let (store, _) = log().await;
    store.fail_any(3, Fault::NotApplied);
    store.head().await.unwrap();
    store.keys().await.unwrap();
    assert!(matches!(store.pending(1).await, Err(StoreError::Unavailable(_))));
    store.pending(1).await.unwrap();
}

#[tokio::test]
async fn a_write_that_happened_unheard_is_there_when_it_is_repeated() {
    let (store, _) = log().await;
    let item = InboxItem { digest: entry(9).digest, submission: Bytes::from_static(b"item") };
    store.fail(StoreMethod::Enqueue, 1, Fault::AppliedWithoutAnswer);
    assert!(store.enqueue(&item).await.is_err());
    store.enqueue(&item).await.unwrap();
    assert_eq!(store.pending(10).await.unwrap(), [item]);
}

#[tokio::test]
async fn a_database_that_is_down_answers_nothing_until_it_is_back() {
    let (store, mut appender) = log().await;
    store.break_down(Fault::Refused);
    assert!(store.head().await.is_err());
    assert!(matches!(appender.append_entries(vec![entry(2)]).await, Err(CommitError::NotCommitted(_))));
    store.heal();
    appender.append(1).await;
}
