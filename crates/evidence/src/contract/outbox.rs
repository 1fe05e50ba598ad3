//! Contract tests of the outbox: records that wait for the log.

use bytes::Bytes;
use merkle::EntryDigest;

use super::fixture::delivered;
use super::{EvidenceDatabase, Stream, at, record, refused};
use crate::{Backlog, Delivered, DeliveryState, EvidenceStore, PendingRecord, RefusedRecord, limits};

async fn waiting(store: &dyn EvidenceStore, limit: usize) -> Vec<EntryDigest> {
    store.pending(limit).await.unwrap().into_iter().map(|pending| pending.id).collect()
}

/// Checks that `pending` returns a stream's records in order of their numbers.
pub async fn what_is_committed_waits_in_order(database: &impl EvidenceDatabase) {
    let store = database.handle("one").await;
    let (mut a, mut b) = (Stream::new("a"), Stream::new("b"));
    let mut ids = Vec::new();
    for _ in 0..3 {
        ids.extend(b.grow(&*store, 2).await);
        ids.extend(a.grow(&*store, 1).await);
    }
    assert_eq!(waiting(&*store, 100).await, ids);
    assert_eq!(waiting(&*store, 4).await, ids[..4]);
    let (record, first) = (record("b", 0), store.pending(1).await.unwrap().remove(0));
    let expected = PendingRecord {
        id: record.id,
        stream: record.stream,
        seq: 0,
        kind: record.kind,
        at: at(0),
        statement: record.statement,
    };
    assert_eq!(first, expected);
}

/// Checks that `record` still returns a record after `delivered`.
pub async fn what_is_delivered_waits_no_more_and_stays_on_record(database: &impl EvidenceDatabase) {
    let store = database.handle("one").await;
    let ids = Stream::new("s").grow(&*store, 3).await;
    let bare = Delivered { id: ids[2], leaf_index: None, receipt: None };
    store.delivered(&[delivered(ids[0]), bare]).await.unwrap();
    assert_eq!(waiting(&*store, 10).await, [ids[1]]);
    let deliveries: Vec<DeliveryState> =
        store.records("s", 0, 10).await.unwrap().into_iter().map(|stored| stored.delivery).collect();
    let receipt = Some(Bytes::from_static(b"receipt"));
    let first = DeliveryState::Delivered { leaf_index: Some(7), receipt };
    let third = DeliveryState::Delivered { leaf_index: None, receipt: None };
    assert_eq!(deliveries, [first.clone(), DeliveryState::Pending, third]);
    assert_eq!(store.record(&ids[0]).await.unwrap().unwrap().delivery, first);
}

/// Delivery is at least once, so `delivered` may be called twice for a record.
pub async fn delivering_again_keeps_the_first_receipt(database: &impl EvidenceDatabase) {
    let store = database.handle("one").await;
    let ids = Stream::new("s").grow(&*store, 2).await;
    let bare = Delivered { id: ids[0], leaf_index: None, receipt: None };
    store.delivered(std::slice::from_ref(&bare)).await.unwrap();
    store.delivered(&[delivered(ids[0])]).await.unwrap();
    let other = Delivered { id: ids[0], leaf_index: Some(9), receipt: Some(Bytes::from_static(b"other")) };
    store.delivered(&[other.clone(), other]).await.unwrap();
    store.delivered(&[bare]).await.unwrap();
    let receipt = Some(Bytes::from_static(b"receipt"));
    let delivery = store.record(&ids[0]).await.unwrap().unwrap().delivery;
    assert_eq!(delivery, DeliveryState::Delivered { leaf_index: Some(7), receipt });
    assert_eq!(store.backlog().await.unwrap().records, 1);
}

/// Covers a record that was pruned meanwhile.
pub async fn delivering_the_unknown_changes_nothing(database: &impl EvidenceDatabase) {
    let store = database.handle("one").await;
    let ids = Stream::new("s").grow(&*store, 1).await;
    store.delivered(&[]).await.unwrap();
    store.delivered(&[delivered(record("other", 0).id)]).await.unwrap();
    store.stuck(&[]).await.unwrap();
    store.stuck(&[refused(record("other", 0).id)]).await.unwrap();
    assert_eq!(waiting(&*store, 10).await, ids);
}

/// Checks that a record that the log refuses does not delay the others.
pub async fn what_is_stuck_is_counted_and_not_pending(database: &impl EvidenceDatabase) {
    let store = database.handle("one").await;
    let ids = Stream::new("s").grow(&*store, 3).await;
    let because = |why: &str| RefusedRecord { why: why.to_owned(), ..refused(ids[0]) };
    store.stuck(&[because("the log's policy refuses it"), because("in one call")]).await.unwrap();
    store.stuck(&[because("again")]).await.unwrap();
    assert_eq!(waiting(&*store, 10).await, ids[1..]);
    let backlog = store.backlog().await.unwrap();
    assert_eq!((backlog.records, backlog.stuck, backlog.oldest_at), (3, 1, Some(at(1))));
    let stuck = store.stuck_records(10).await.unwrap();
    assert_eq!((stuck.len(), stuck[0].id, stuck[0].seq, stuck[0].stream.as_str()), (1, ids[0], 0, "s"));
    let stored = store.record(&ids[0]).await.unwrap().unwrap();
    assert_eq!(stored.delivery, DeliveryState::Stuck(stuck[0].why.clone()));
    assert_ne!(stuck[0].why, "again", "the first refusal counts");
    assert_eq!(store.stuck_records(0).await.unwrap(), []);
}

/// Checks `unstick` and `delivered` for stuck records.
pub async fn what_is_stuck_can_be_tried_again_or_delivered(database: &impl EvidenceDatabase) {
    let store = database.handle("one").await;
    let ids = Stream::new("s").grow(&*store, 3).await;
    store.stuck(&[refused(ids[0]), refused(ids[1])]).await.unwrap();
    store.delivered(&[delivered(ids[1])]).await.unwrap();
    store.stuck(&[refused(ids[1])]).await.unwrap();
    assert_eq!(store.unstick().await.unwrap(), 1);
    assert_eq!(store.unstick().await.unwrap(), 0);
    assert_eq!(waiting(&*store, 10).await, [ids[2], ids[0]]);
    let backlog = store.backlog().await.unwrap();
    assert_eq!((backlog.records, backlog.stuck), (2, 0));
}

/// Checks the order of `pending`: records that the log refuses each time do not delay the others.
pub async fn what_was_stuck_once_waits_behind_the_rest(database: &impl EvidenceDatabase) {
    let store = database.handle("one").await;
    let mut stream = Stream::new("s");
    let old = stream.grow(&*store, 4).await;
    let refusals: Vec<RefusedRecord> = old[..3].iter().copied().map(refused).collect();
    store.stuck(&refusals).await.unwrap();
    assert_eq!(store.unstick().await.unwrap(), 3);
    let new = stream.grow(&*store, 1).await;
    assert_eq!(waiting(&*store, 1).await, [old[3]]);
    assert_eq!(waiting(&*store, 3).await, [old[3], new[0], old[0]]);
    assert_eq!(waiting(&*store, 10).await, [old[3], new[0], old[0], old[1], old[2]]);
    let more = stream.grow(&*store, 4).await;
    let found = waiting(&*store, 4).await;
    assert_eq!(found, [old[3], new[0], more[0], old[0]], "fresh records may wait for a retried one");
}

/// Checks that `Backlog::oldest_at` leaves out a record that was stuck once: the log refused it long ago, and its
/// age does not mean that the log takes no records.
pub async fn what_was_stuck_once_says_nothing_about_the_age_of_the_rest(database: &impl EvidenceDatabase) {
    let store = database.handle("one").await;
    let mut stream = Stream::new("s");
    let ids = stream.grow(&*store, 2).await;
    for _ in 0..2 {
        store.stuck(&[refused(ids[0])]).await.unwrap();
        assert_eq!(store.unstick().await.unwrap(), 1);
        assert_eq!(waiting(&*store, 10).await, [ids[1], ids[0]], "it is tried again");
        assert_eq!(store.backlog().await.unwrap().oldest_at, Some(at(1)));
    }
    store.delivered(&[delivered(ids[1])]).await.unwrap();
    let backlog = store.backlog().await.unwrap();
    assert_eq!((backlog.records, backlog.stuck, backlog.oldest_at), (1, 0, None));
    stream.grow(&*store, 1).await;
    assert_eq!(store.backlog().await.unwrap().oldest_at, Some(at(2)));
}

/// Checks that `stuck` cuts a reason at `STUCK_REASON` bytes.
pub async fn a_long_reason_is_cut(database: &impl EvidenceDatabase) {
    let store = database.handle("one").await;
    let ids = Stream::new("s").grow(&*store, 1).await;
    store.stuck(&[RefusedRecord { why: "é".repeat(2_000), ..refused(ids[0]) }]).await.unwrap();
    let why = store.stuck_records(1).await.unwrap().remove(0).why;
    assert!(why.len() <= limits::STUCK_REASON && why.starts_with("éé"));
}

/// Checks `backlog`, on which alarms and the refusal of new calls are based.
pub async fn the_backlog_counts_what_waits(database: &impl EvidenceDatabase) {
    let store = database.handle("one").await;
    assert_eq!(store.backlog().await.unwrap(), Backlog::default());
    let mut stream = Stream::new("s");
    let mut ids = stream.grow(&*store, 2).await;
    ids.extend(stream.grow(&*store, 3).await);
    let length = record("s", 0).statement.len() as u64;
    let full = Backlog { records: 5, bytes: 5 * length, stuck: 0, oldest_at: Some(at(0)) };
    assert_eq!(store.backlog().await.unwrap(), full);
    store.delivered(&[delivered(ids[0]), delivered(ids[0]), delivered(ids[3])]).await.unwrap();
    let less = Backlog { records: 3, bytes: 3 * length, stuck: 0, oldest_at: Some(at(1)) };
    assert_eq!(store.backlog().await.unwrap(), less);
    let rest: Vec<Delivered> = ids.into_iter().map(delivered).collect();
    store.delivered(&rest).await.unwrap();
    assert_eq!(store.backlog().await.unwrap(), Backlog::default());
}

/// Checks that `backlog` counts the records of all instances.
pub async fn the_backlog_is_the_same_for_every_instance(database: &impl EvidenceDatabase) {
    let (one, other) = (database.handle("one").await, database.handle("other").await);
    let ids = Stream::new("a").grow(&*one, 3).await;
    Stream::new("b").grow(&*other, 1).await;
    other.delivered(&ids.iter().copied().map(delivered).collect::<Vec<_>>()).await.unwrap();
    for store in [one, other, database.handle("third").await] {
        let backlog = store.backlog().await.unwrap();
        assert_eq!((backlog.records, backlog.bytes), (1, record("b", 0).statement.len() as u64));
    }
}
