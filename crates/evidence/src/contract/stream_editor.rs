//! Contract tests of `StreamEditor`: the access of a command.

use bytes::Bytes;

use super::fixture::conflict;
use super::{EvidenceDatabase, Stream, first, record};
use crate::DeliveryState;

const NEW: Bytes = Bytes::from_static(b"changed by a command");

/// Checks that `amend` leaves all other fields of the stream unchanged.
pub async fn what_a_command_changes_is_seen_by_every_instance(database: &impl EvidenceDatabase) {
    let (one, other) = (database.handle("one").await, database.handle("other").await);
    let change = crate::Change { agreed: Some(Bytes::from_static(b"agreed")), ..first("s") };
    one.commit(std::slice::from_ref(&change)).await.unwrap();
    let before = one.streams(&["s"]).await.unwrap().remove(0).unwrap();
    let command = database.stream_editor().await;
    assert_eq!(command.streams(&["s", "t"]).await.unwrap(), [Some(before.clone()), None]);
    command.amend("s", before.version, &NEW).await.unwrap();
    command.close().await;
    let expected = crate::StoredStream { version: before.version + 1, running: NEW, ..before };
    for store in [one, other] {
        assert_eq!(store.streams(&["s"]).await.unwrap(), [Some(expected.clone())]);
    }
}

/// Checks that `amend` compares the version, and that it creates no stream.
pub async fn a_command_changes_only_what_it_has_seen(database: &impl EvidenceDatabase) {
    let store = database.handle("one").await;
    let mut stream = Stream::new("s");
    stream.grow(&*store, 1).await;
    stream.grow(&*store, 1).await;
    let over = crate::Change { closed: true, ..first("over") };
    store.commit(&[over]).await.unwrap();
    let before = store.streams(&["s", "over", "none"]).await.unwrap();
    let command = database.stream_editor().await;
    for (name, version) in [("s", 1), ("s", 3), ("s", u64::MAX), ("over", 1), ("none", 1)] {
        assert_eq!(command.amend(name, version, &NEW).await, Err(conflict(&[name])), "{name} {version}");
    }
    command.close().await;
    assert_eq!(store.streams(&["s", "over", "none"]).await.unwrap(), before);
}

/// Checks that no change is lost when a gateway and a command change one stream.
pub async fn a_gateway_that_changes_what_a_command_changed_loads_it_first(database: &impl EvidenceDatabase) {
    let store = database.handle("one").await;
    let mut stream = Stream::new("s");
    stream.grow(&*store, 1).await;
    let command = database.stream_editor().await;
    command.amend("s", 1, &NEW).await.unwrap();
    let late = stream.clone().change(1);
    assert_eq!(store.commit(&[late]).await, Err(conflict(&["s"])));
    stream.version = Some(2);
    stream.grow(&*store, 1).await;
    assert_eq!(command.amend("s", 2, &NEW).await, Err(conflict(&["s"])));
    command.amend("s", 3, &NEW).await.unwrap();
    command.close().await;
    // A command does not affect the numbers that the gateway gives to new streams and records.
    store.commit(&[first("t")]).await.unwrap();
    let stored = store.record(&record("s", 1).id).await.unwrap().unwrap();
    assert_eq!((stored.record.seq, stored.delivery), (1, DeliveryState::Pending));
}

/// Checks `list` in pages, in order of name.
pub async fn a_command_lists_what_the_gateways_keep(database: &impl EvidenceDatabase) {
    let store = database.handle("one").await;
    for name in ["a", "b", "c"] {
        store.commit(&[first(name)]).await.unwrap();
    }
    let command = database.stream_editor().await;
    assert_eq!(command.list(None, 10).await.unwrap(), store.list(None, 10).await.unwrap());
    let page = command.list(Some("a"), 1).await.unwrap();
    assert_eq!(page.iter().map(|listed| listed.stream.as_str()).collect::<Vec<_>>(), ["b"]);
    command.close().await;
}
