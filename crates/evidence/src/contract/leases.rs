//! Contract tests of leases: which instance may settle a decision that was served and not settled.

use std::time::Duration;

use merkle::EntryDigest;

use super::{EvidenceDatabase, Stream};
use crate::{EvidenceStore, OpenDecision};

async fn orphans(store: &dyn EvidenceStore) -> Vec<EntryDigest> {
    store.orphans(10).await.unwrap().into_iter().map(|open| open.id).collect()
}

/// Checks `orphans`, from which recovery starts.
pub async fn a_served_decision_is_an_orphan_once_its_instance_has_left(database: &impl EvidenceDatabase) {
    let (one, other) = (database.handle("one").await, database.handle("other").await);
    let mut stream = Stream::new("s");
    let (first, change) = stream.serve();
    one.commit(&[change]).await.unwrap();
    let (second, change) = stream.serve();
    one.commit(&[change]).await.unwrap();
    stream.grow(&*one, 1).await;
    one.leave().await.unwrap();
    let open = |id| OpenDecision { id, stream: "s".into(), instance: "one".into() };
    assert_eq!(other.orphans(10).await.unwrap(), [open(first), open(second)]);
    assert_eq!(other.orphans(1).await.unwrap(), [open(first)]);
}

/// Checks that calls of another live process are not settled as unknown.
pub async fn a_decision_of_a_living_instance_is_nobody_elses(database: &impl EvidenceDatabase) {
    let (one, other) = (database.handle("one").await, database.handle("other").await);
    let mut stream = Stream::new("s");
    one.commit(&[stream.serve().1]).await.unwrap();
    one.renew(Duration::from_secs(600)).await.unwrap();
    for store in [&one, &other] {
        assert_eq!(orphans(&**store).await, []);
    }
    assert_eq!(one.pending(10).await.unwrap().len(), 1);
    assert_eq!(other.pending(10).await.unwrap(), []);
}

/// Covers a process that was killed, or lost its connection.
pub async fn a_lease_that_is_over_gives_its_decisions_and_its_outbox_away(database: &impl EvidenceDatabase) {
    let (one, other) = (database.handle("one").await, database.handle("other").await);
    let (mut a, mut b) = (Stream::new("a"), Stream::new("b"));
    let (served, change) = a.serve();
    one.commit(&[change]).await.unwrap();
    b.grow(&*other, 1).await;
    one.renew(Duration::ZERO).await.unwrap();
    assert_eq!(orphans(&*other).await, [served]);
    let streams = async |store: &dyn EvidenceStore| {
        let pending = store.pending(10).await.unwrap();
        pending.into_iter().map(|pending| pending.stream).collect::<Vec<_>>()
    };
    assert_eq!(streams(&*other).await, ["a", "b"]);
    assert_eq!(streams(&*one).await, ["a"], "its own it may still deliver");
    one.renew(Duration::from_secs(600)).await.unwrap();
    assert_eq!(orphans(&*other).await, []);
    assert_eq!(streams(&*other).await, ["b"]);
}

/// Covers an outcome that is known, and one that is recorded as unknown.
pub async fn a_settled_decision_is_no_orphan(database: &impl EvidenceDatabase) {
    let (one, other) = (database.handle("one").await, database.handle("other").await);
    let mut stream = Stream::new("s");
    let mut ids = Vec::new();
    for _ in 0..3 {
        let (id, change) = stream.serve();
        one.commit(&[change]).await.unwrap();
        ids.push(id);
    }
    one.commit(&[stream.settle(ids[1])]).await.unwrap();
    one.leave().await.unwrap();
    assert_eq!(orphans(&*other).await, [ids[0], ids[2]]);
    other.commit(&[stream.settle(ids[0]), stream.settle(ids[2])]).await.unwrap();
    assert_eq!(orphans(&*other).await, []);
}

/// Covers a call that was served and answered while the group waited.
pub async fn a_decision_settled_by_its_own_commit_was_never_open(database: &impl EvidenceDatabase) {
    let store = database.handle("one").await;
    let mut stream = Stream::new("s");
    let (id, served) = stream.serve();
    let settled = stream.settle(id);
    store.commit(&[served, settled]).await.unwrap();
    store.leave().await.unwrap();
    assert_eq!(orphans(&*store).await, []);
}

/// Covers two instances that recover one decision, one after the other.
pub async fn settling_twice_changes_nothing(database: &impl EvidenceDatabase) {
    let store = database.handle("one").await;
    let mut stream = Stream::new("s");
    let (id, change) = stream.serve();
    store.commit(&[change]).await.unwrap();
    for _ in 0..2 {
        store.commit(&[stream.settle(id)]).await.unwrap();
    }
    store.commit(&[stream.settle(super::record("never", 0).id)]).await.unwrap();
    store.leave().await.unwrap();
    assert_eq!(orphans(&*store).await, []);
}
