//! The store that fails on request does what it was told, and nothing else.
#![allow(clippy::unwrap_used)]

use evidence::contract::Stream;
use evidence::{
    CommitError, Delivered, EvidenceMethod, EvidenceStore, FailingEvidence, Fault, Memory, Outbox, StoreError,
};

#[tokio::test]
async fn the_nth_commit_fails_as_ordered_and_the_others_do_not() {
    let store = FailingEvidence::new(Memory::new("one"));
    let mut stream = Stream::new("s");
    store.fail(EvidenceMethod::Commit, 2, Fault::Refused);
    stream.grow(&store, 1).await;
    let change = [stream.change(1)];
    assert!(matches!(store.commit(&change).await, Err(CommitError::Failed(_))));
    store.commit(&change).await.unwrap();
    assert_eq!(store.faults_left(), 0);
}

#[tokio::test]
async fn a_commit_in_doubt_happened_or_did_not_as_ordered() {
    for (fault, happened) in [(Fault::NotApplied, false), (Fault::AppliedWithoutAnswer, true)] {
        let store = FailingEvidence::new(Memory::new("one"));
        let change = [Stream::new("s").change(1)];
        store.fail(EvidenceMethod::Commit, 1, fault);
        assert!(matches!(store.commit(&change).await, Err(CommitError::MayHaveHappened(_))));
        assert_eq!(store.happened(&change).await.unwrap(), happened);
    }
}

#[tokio::test]
async fn a_full_disk_refuses_every_write_and_no_read() {
    let store = FailingEvidence::new(Memory::new("one"));
    let mut stream = Stream::new("s");
    let ids = stream.grow(&store, 1).await;
    store.break_down(Fault::Full);
    let delivery = Delivered { id: ids[0], leaf_index: None, receipt: None };
    assert!(matches!(store.commit(&[stream.clone().change(1)]).await, Err(CommitError::Full(_))));
    assert!(matches!(store.delivered(&[delivery]).await, Err(StoreError::Full(_))));
    assert!(store.streams(&["s"]).await.unwrap()[0].is_some());
    assert_eq!(store.pending(10).await.unwrap().len(), 1);
    store.mend();
    stream.grow(&store, 1).await;
}

#[tokio::test]
async fn a_database_that_is_away_answers_nothing() {
    let store = FailingEvidence::new(Memory::new("one"));
    store.break_down(Fault::Refused);
    assert!(matches!(store.streams(&["s"]).await, Err(StoreError::Unavailable(_))));
    assert!(matches!(store.backlog().await, Err(StoreError::Unavailable(_))));
    assert!(matches!(store.commit(&[Stream::new("s").change(1)]).await, Err(CommitError::Failed(_))));
}
