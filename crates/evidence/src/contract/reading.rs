//! Contract tests of reading records and streams.

use bytes::Bytes;

use super::{EvidenceDatabase, Stream, first, record};
use crate::{Change, DeliveryState, Record, RecordKind, StoredRecord, StreamSummary};

/// Checks that all bytes of a record are stored unchanged.
pub async fn every_field_of_a_record_comes_back_as_it_went_in(database: &impl EvidenceDatabase) {
    let (one, other) = (database.handle("one").await, database.handle("other").await);
    let mut stream = Stream::new("s");
    let mut change = stream.change(RecordKind::ALL.len() as u64);
    for (record, kind) in change.records.iter_mut().zip(RecordKind::ALL) {
        record.kind = kind;
        record.at = 1 << 40;
        record.verdict = (kind != RecordKind::Outcome).then(|| Bytes::from_static(b"\0verdict"));
    }
    one.commit(std::slice::from_ref(&change)).await.unwrap();
    for expected in &change.records {
        let stored = other.record(&expected.id).await.unwrap().unwrap();
        assert_eq!(stored, pending(expected.clone()));
    }
    assert_eq!(other.record(&record("other", 0).id).await.unwrap(), None);
}

fn pending(record: Record) -> StoredRecord {
    StoredRecord { record, instance: "one".into(), delivery: DeliveryState::Pending }
}

/// Checks `records`, which replays and audits use.
pub async fn a_streams_records_come_in_order_and_in_pages(database: &impl EvidenceDatabase) {
    let store = database.handle("one").await;
    let (mut a, mut b) = (Stream::new("a"), Stream::new("b"));
    for _ in 0..4 {
        a.grow(&*store, 2).await;
        b.grow(&*store, 1).await;
    }
    let page = async |from, limit| {
        let stored = store.records("a", from, limit).await.unwrap();
        assert!(stored.iter().all(|stored| stored.record.stream == "a"));
        stored.iter().map(|stored| stored.record.seq).collect::<Vec<_>>()
    };
    assert_eq!(page(0, 100).await, (0..8).collect::<Vec<_>>());
    assert_eq!(page(3, 2).await, [3, 4]);
    assert_eq!(page(8, 2).await, []);
    assert_eq!(page(u64::MAX, 2).await, []);
    assert_eq!(store.records("c", 0, 10).await.unwrap(), []);
}

/// Checks `list`, which people read.
pub async fn streams_are_listed_by_name(database: &impl EvidenceDatabase) {
    let store = database.handle("one").await;
    for name in ["b", "a", "c", "Z"] {
        store.commit(&[first(name)]).await.unwrap();
    }
    let names =
        |listed: Vec<StreamSummary>| listed.into_iter().map(|listed| listed.stream).collect::<Vec<_>>();
    assert_eq!(names(store.list(None, 10).await.unwrap()), ["Z", "a", "b", "c"]);
    assert_eq!(names(store.list(None, 2).await.unwrap()), ["Z", "a"]);
    let page = store.list(Some("a"), 1).await.unwrap();
    let b = StreamSummary { stream: "b".into(), version: 1, next_seq: 1, closed: false, keep_until: 1_000 };
    assert_eq!(page, [b]);
    assert_eq!(names(store.list(Some("bb"), 10).await.unwrap()), ["c"]);
}

/// Checks `due`, by which deadlines and idle streams are found.
pub async fn streams_are_due_by_time_until_they_are_closed(database: &impl EvidenceDatabase) {
    let store = database.handle("one").await;
    let mut streams = Vec::new();
    for (name, keep_until) in [("late", 300), ("soon", 100), ("later", 400), ("over", 50)] {
        let mut stream = Stream::new(name);
        let closed = name == "over";
        store.commit(&[Change { keep_until: Some(keep_until), closed, ..stream.change(1) }]).await.unwrap();
        streams.push(stream);
    }
    let due = async |at| {
        let due = store.due(at, 10).await.unwrap();
        due.into_iter().map(|listed| listed.stream).collect::<Vec<_>>()
    };
    assert_eq!(due(99).await, Vec::<String>::new());
    assert_eq!(due(100).await, ["soon"]);
    assert_eq!(due(350).await, ["soon", "late"]);
    assert_eq!(store.due(1_000, 1).await.unwrap()[0].stream, "soon");
    store.commit(&[Change { keep_until: Some(350), ..streams[1].change(1) }]).await.unwrap();
    store.commit(&[Change { keep_until: Some(350), closed: true, ..streams[0].change(1) }]).await.unwrap();
    assert_eq!(due(1_000).await, ["soon", "later"]);
}

/// Checks that `streams` returns one answer per name, also for repeated names.
pub async fn streams_are_answered_in_the_order_asked(database: &impl EvidenceDatabase) {
    let store = database.handle("one").await;
    for name in ["a", "b"] {
        store.commit(&[first(name)]).await.unwrap();
    }
    let known = async |names: &[&str]| {
        let kept = store.streams(names).await.unwrap();
        kept.into_iter().map(|kept| kept.map(|kept| kept.running)).collect::<Vec<_>>()
    };
    let running = |name: &str| Some(first(name).running);
    assert_eq!(known(&["b", "x", "a", "b"]).await, [running("b"), None, running("a"), running("b")]);
    assert_eq!(known(&[]).await, []);
    let many: Vec<String> =
        (0..300).map(|n| if n % 3 == 0 { "a".into() } else { format!("no {n}") }).collect();
    let many: Vec<&str> = many.iter().map(String::as_str).collect();
    let found = known(&many).await;
    assert_eq!((found.len(), found.iter().flatten().count()), (300, 100));
}
