//! Contract tests of `prune`: which records and streams are removed, and which are not.

use super::fixture::{delivered, refused, version};
use super::{EvidenceDatabase, Stream, at};
use crate::{Change, EvidenceStore, Horizon, Pruned};

const ALL: Horizon = Horizon { streams: u64::MAX, records: u64::MAX };

async fn deliver_all(store: &dyn EvidenceStore) {
    let pending = store.pending(1_000).await.unwrap();
    let deliveries: Vec<_> = pending.into_iter().map(|pending| delivered(pending.id)).collect();
    store.delivered(&deliveries).await.unwrap();
}

/// Checks `Horizon::records`, the retention period of the local copy.
pub async fn old_records_go_once_they_are_delivered(database: &impl EvidenceDatabase) {
    let store = database.handle("one").await;
    let ids = Stream::new("s").grow(&*store, 4).await;
    store.delivered(&[delivered(ids[0]), delivered(ids[1]), delivered(ids[3])]).await.unwrap();
    store.stuck(&[refused(ids[2])]).await.unwrap();
    let horizon = Horizon { streams: 0, records: at(1) };
    assert_eq!(store.prune(horizon, 100).await.unwrap(), Pruned { streams: 0, records: 1 });
    assert_eq!(store.record(&ids[0]).await.unwrap(), None);
    assert_eq!(store.prune(ALL, 100).await.unwrap(), Pruned { streams: 0, records: 2 });
    let left: Vec<u64> =
        store.records("s", 0, 10).await.unwrap().iter().map(|stored| stored.record.seq).collect();
    assert_eq!(left, [2]);
    store.delivered(&[delivered(ids[0])]).await.unwrap();
    assert_eq!(store.backlog().await.unwrap().records, 1);
}

/// Checks that a decision stays until it has its outcome.
pub async fn an_unsettled_decision_stays(database: &impl EvidenceDatabase) {
    let store = database.handle("one").await;
    let mut stream = Stream::new("s");
    let (id, change) = stream.serve();
    store.commit(&[change]).await.unwrap();
    deliver_all(&*store).await;
    assert_eq!(store.prune(ALL, 100).await.unwrap(), Pruned::default());
    store.commit(&[stream.settle(id)]).await.unwrap();
    deliver_all(&*store).await;
    assert_eq!(store.prune(ALL, 100).await.unwrap(), Pruned { streams: 0, records: 2 });
    assert_eq!(version(&*store, "s").await, Some(2), "it is not closed");
}

/// Checks that the name of a closed stream is remembered until its `keep_until` (V-2).
pub async fn a_stream_goes_when_it_is_over_and_its_records_are_gone(database: &impl EvidenceDatabase) {
    let store = database.handle("one").await;
    let mut stream = Stream::new("s");
    let claims = vec![stream.claim("key")];
    let agreed = Some(bytes::Bytes::from_static(b"agreed"));
    store.commit(&[Change { claims, agreed, ..stream.change(1) }]).await.unwrap();
    store.commit(&[Change { closed: true, keep_until: Some(500), ..stream.change(1) }]).await.unwrap();
    let over = Horizon { streams: 501, records: 0 };
    assert_eq!(store.prune(over, 10).await.unwrap(), Pruned::default());
    deliver_all(&*store).await;
    assert_eq!(store.prune(over, 10).await.unwrap(), Pruned::default(), "its records are there");
    let early = Horizon { streams: 500, records: u64::MAX };
    assert_eq!(store.prune(early, 10).await.unwrap(), Pruned { streams: 0, records: 2 });
    assert_eq!(version(&*store, "s").await, Some(2));
    assert_eq!(store.prune(over, 10).await.unwrap(), Pruned { streams: 1, records: 0 });
    assert_eq!(version(&*store, "s").await, None);
    assert_eq!(store.claimed(&[stream.claim("key")]).await.unwrap(), [false]);
}

/// Checks `limit`, which bounds the time that other calls wait for `prune`.
pub async fn pruning_does_a_bounded_amount(database: &impl EvidenceDatabase) {
    let store = database.handle("one").await;
    for name in ["a", "b", "c"] {
        store.commit(&[Change { closed: true, ..Stream::new(name).change(2) }]).await.unwrap();
    }
    deliver_all(&*store).await;
    let (mut gone, mut turns) = (Pruned::default(), 0);
    loop {
        let pruned = store.prune(ALL, 2).await.unwrap();
        assert!(pruned.records <= 2 && pruned.streams <= 2, "{pruned:?}");
        if pruned == Pruned::default() {
            break;
        }
        gone = Pruned { streams: gone.streams + pruned.streams, records: gone.records + pruned.records };
        turns += 1;
    }
    assert_eq!(gone, Pruned { streams: 3, records: 6 });
    assert!(turns >= 3);
}

/// Checks that nothing of a pruned stream prevents a new one of the same name.
pub async fn a_name_that_was_forgotten_begins_anew(database: &impl EvidenceDatabase) {
    let store = database.handle("one").await;
    for _ in 0..2 {
        let mut stream = Stream::new("s");
        let claims = vec![stream.claim("key")];
        store.commit(&[Change { claims, closed: true, ..stream.change(2) }]).await.unwrap();
        deliver_all(&*store).await;
        store.prune(ALL, 10).await.unwrap();
        store.prune(ALL, 10).await.unwrap();
        assert_eq!(version(&*store, "s").await, None);
    }
}

/// Checks that a process that still holds the state of a pruned stream cannot change the new stream of that name.
pub async fn a_stream_begun_anew_is_not_taken_for_the_forgotten_one(database: &impl EvidenceDatabase) {
    let (one, other) = (database.handle("one").await, database.handle("other").await);
    let mut old = Stream::new("s");
    old.grow(&*one, 0).await;
    let remembered = old.clone();
    one.commit(&[Change { closed: true, ..old.change(0) }]).await.unwrap();
    assert_eq!(other.prune(ALL, 10).await.unwrap().streams, 1);
    let mut new = Stream { first: 1_000, ..Stream::new("s") };
    new.grow(&*other, 0).await;
    assert_eq!(version(&*other, "s").await, Some(1_000));
    new.grow(&*other, 1).await;
    assert_eq!(version(&*other, "s").await, Some(1_001));
    assert_eq!(one.commit(&[remembered.clone().change(0)]).await, Err(super::fixture::conflict(&["s"])));
}
