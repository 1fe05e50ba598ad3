//! Contract tests of `EvidenceStore::commit`, the one write that moves streams, records and outbox.

use std::sync::Arc;

use bytes::Bytes;

use super::fixture::{conflict, relying_on, version};
use super::{EvidenceDatabase, Stream, decision, first, record};
use crate::{Change, ClaimKind, CommitError, EvidenceStore, StoreError, StoredStream};

/// Checks that a commit of one process is visible to another.
pub async fn a_new_stream_is_seen_by_another_instance(database: &impl EvidenceDatabase) {
    let (one, other) = (database.handle("one").await, database.handle("other").await);
    let mut change = first("s");
    change.agreed = Some(Bytes::from_static(b"agreed"));
    one.commit(std::slice::from_ref(&change)).await.unwrap();
    let kept = StoredStream {
        version: 1,
        agreed: Some(Bytes::from_static(b"agreed")),
        running: change.running,
        closed: false,
        keep_until: 1_000,
        next_seq: 1,
    };
    assert_eq!(other.streams(&["s"]).await.unwrap(), [Some(kept)]);
    assert_eq!((one.instance(), other.instance()), ("one", "other"));
}

/// Checks that each change raises `StoredStream::version` by one.
pub async fn a_change_moves_a_stream_by_one_version(database: &impl EvidenceDatabase) {
    let store = database.handle("one").await;
    let mut stream = Stream::new("s");
    for expected in 1..=5 {
        stream.grow(&*store, 2).await;
        let kept = store.streams(&["s"]).await.unwrap().remove(0).unwrap();
        assert_eq!((kept.version, kept.next_seq), (expected, 2 * expected));
    }
}

/// Checks that `Change::agreed` of `None` keeps the stored value, which is large and seldom changed.
pub async fn what_is_agreed_stays_until_it_is_changed(database: &impl EvidenceDatabase) {
    let store = database.handle("one").await;
    let mut stream = Stream::new("s");
    let agreed = async || store.streams(&["s"]).await.unwrap().remove(0).unwrap().agreed;
    stream.grow(&*store, 0).await;
    assert_eq!(agreed().await, None);
    for text in [&b"first"[..], b"second"] {
        let change = Change { agreed: Some(Bytes::from_static(text)), ..stream.change(0) };
        store.commit(&[change]).await.unwrap();
        stream.grow(&*store, 1).await;
        assert_eq!(agreed().await.as_deref(), Some(text));
    }
}

/// Checks that `Change::keep_until` of `None` keeps the stored time, and that a stream is ended or not.
pub async fn when_a_stream_ends_stays_until_it_is_changed(database: &impl EvidenceDatabase) {
    let store = database.handle("one").await;
    let (mut stream, mut other) = (Stream::new("s"), Stream::new("other"));
    let end = async || {
        let kept = store.streams(&["s"]).await.unwrap().remove(0).unwrap();
        (kept.closed, kept.keep_until)
    };
    stream.grow(&*store, 1).await;
    other.grow(&*store, 1).await;
    let busy = |change: Change| Change { keep_until: None, ..change };
    for (change, expected) in [
        (busy(stream.change(1)), (false, 1_000)),
        (Change { keep_until: Some(2_000), ..stream.change(0) }, (false, 2_000)),
        (busy(stream.change(0)), (false, 2_000)),
        (Change { keep_until: Some(3_000), closed: true, ..stream.change(1) }, (true, 3_000)),
        (busy(stream.change(0)), (true, 3_000)),
        (Change { keep_until: Some(4_000), ..stream.change(0) }, (false, 4_000)),
    ] {
        store.commit(&[change, other.change(1)]).await.unwrap();
        assert_eq!(end().await, expected);
    }
    let together = [
        busy(stream.change(0)),
        Change { keep_until: Some(5_000), ..stream.change(0) },
        busy(stream.change(1)),
        busy(other.change(0)),
    ];
    store.commit(&together).await.unwrap();
    assert_eq!(end().await, (false, 5_000));
    assert_eq!(store.due(5_000, 10).await.unwrap().len(), 2);
}

/// Checks that a change is committed only while the streams that it relies on have the versions that it names.
pub async fn a_change_that_relies_on_another_version_conflicts(database: &impl EvidenceDatabase) {
    let store = database.handle("one").await;
    let (mut stream, mut read) = (Stream::new("s"), Stream::new("read"));
    let absent = relying_on(stream.change(1), "read", None);
    store.commit(&[absent]).await.unwrap();
    for version in 1..3 {
        read.grow(&*store, 1).await;
        let missed = relying_on(stream.clone().change(1), "read", None);
        let stale = relying_on(stream.clone().change(1), "read", Some(version + 1));
        assert_eq!(store.commit(&[missed]).await, Err(conflict(&["read"])));
        assert_eq!(store.commit(&[stale]).await, Err(conflict(&["read"])));
        store.commit(&[relying_on(stream.change(1), "read", Some(version))]).await.unwrap();
    }
    assert_eq!((version(&*store, "s").await, version(&*store, "read").await), (Some(3), Some(2)));
}

/// Checks that a change may rely on the absence of a stream, until another instance makes the stream.
pub async fn a_change_that_relies_on_an_absence_conflicts_once_the_stream_is_there(
    database: &impl EvidenceDatabase,
) {
    let (one, other) = (database.handle("one").await, database.handle("other").await);
    let (mut stream, mut there, mut made) = (Stream::new("s"), Stream::new("there"), Stream::new("made"));
    there.grow(&*other, 1).await;
    let relying = |change: Change, made: Option<u64>| {
        let change = relying_on(change, "absent", None);
        relying_on(relying_on(change, "made", made), "there", Some(1))
    };
    one.commit(&[relying(stream.change(1), None)]).await.unwrap();
    made.grow(&*other, 0).await;
    let before = one.streams(&["s"]).await.unwrap();
    let mut late = relying(stream.clone().change(1), None);
    late.claims = vec![stream.claim("key")];
    for _ in 0..2 {
        assert_eq!(one.commit(std::slice::from_ref(&late)).await, Err(conflict(&["made"])));
        assert_eq!(one.streams(&["s"]).await.unwrap(), before);
        assert_eq!(one.record(&late.records[0].id).await.unwrap(), None);
        assert_eq!(one.claimed(&late.claims).await.unwrap(), [false]);
    }
    one.commit(&[relying(stream.change(1), made.version)]).await.unwrap();
    assert_eq!(version(&*one, "absent").await, None, "nothing makes what is only relied on");
}

/// Checks that a commit does not move a stream that it relies on.
pub async fn a_commit_that_moves_what_it_relies_on_is_refused(database: &impl EvidenceDatabase) {
    let store = database.handle("one").await;
    let change = relying_on(first("a"), "b", None);
    let refused = store.commit(&[change, first("b")]).await;
    assert!(matches!(refused, Err(CommitError::Failed(StoreError::Refused(_)))), "{refused:?}");
}

/// Checks that one `CommitError::Conflict` refuses the whole group.
pub async fn a_change_from_another_version_conflicts_and_changes_nothing(database: &impl EvidenceDatabase) {
    let store = database.handle("one").await;
    let (mut a, mut b) = (Stream::new("a"), Stream::new("b"));
    a.grow(&*store, 1).await;
    b.grow(&*store, 1).await;
    let before = (store.streams(&["a", "b"]).await.unwrap(), store.backlog().await.unwrap());
    for from in [None, Some(2), Some(77)] {
        let stale = Change { from, records: vec![decision("b", 1, "x")], ..b.clone().change(1) };
        let mut fresh = a.clone().change(1);
        fresh.claims = vec![a.claim("key")];
        fresh.opened = vec![fresh.records[0].id];
        let stale = if from.is_none() { Change { records: Vec::new(), ..stale } } else { stale };
        assert_eq!(store.commit(&[fresh.clone(), stale]).await, Err(conflict(&["b"])), "{from:?}");
        assert_eq!((store.streams(&["a", "b"]).await.unwrap(), store.backlog().await.unwrap()), before);
        assert_eq!(store.record(&fresh.records[0].id).await.unwrap(), None);
        assert_eq!(store.claimed(&fresh.claims).await.unwrap(), [false]);
    }
    a.grow(&*store, 1).await;
}

/// Checks that a session id in use is refused (V-2).
pub async fn a_new_stream_of_a_taken_name_conflicts(database: &impl EvidenceDatabase) {
    let (one, other) = (database.handle("one").await, database.handle("other").await);
    one.commit(&[first("s")]).await.unwrap();
    let taken = Change { records: vec![decision("s", 0, "other")], ..first("s") };
    assert_eq!(other.commit(&[taken]).await, Err(conflict(&["s"])));
}

/// Covers a stream that was pruned since it was read.
pub async fn a_change_of_a_stream_that_is_not_there_conflicts(database: &impl EvidenceDatabase) {
    let store = database.handle("one").await;
    let change = Change { from: Some(3), records: Vec::new(), ..first("s") };
    assert_eq!(store.commit(&[change]).await, Err(conflict(&["s"])));
    assert_eq!(version(&*store, "s").await, None);
}

/// Checks the names in `CommitError::Conflict`: only these streams are decided again.
pub async fn a_conflict_names_every_stream_and_no_other(database: &impl EvidenceDatabase) {
    let store = database.handle("one").await;
    let names = ["a", "b", "c", "d", "e"];
    let mut streams = names.map(Stream::new);
    let mut changes: Vec<Change> = streams.iter_mut().map(|stream| stream.change(1)).collect();
    changes[2].claims = vec![streams[2].claim("used")];
    store.commit(&changes).await.unwrap();
    streams[3].clone().grow(&*store, 1).await;
    streams[0].clone().grow(&*store, 1).await;
    let claim = streams[2].claim("used");
    let mut stale: Vec<Change> = streams.iter_mut().map(|stream| stream.change(0)).collect();
    stale[2].claims = vec![claim];
    stale.push(Change { from: Some(1), ..Stream::new("f").change(0) });
    match store.commit(&stale).await {
        // A store that has found wrong versions need not look for taken claims as well.
        Err(CommitError::Conflict(found)) => {
            let without_claims: Vec<&String> = found.iter().filter(|name| *name != "c").collect();
            assert_eq!(without_claims, ["a", "d", "f"]);
        }
        other => panic!("{other:?}"),
    }
}

/// Starts several changes from one version at once and checks the compare-and-swap.
pub async fn of_changes_at_once_one_succeeds(database: &impl EvidenceDatabase) {
    let store = database.handle("maker").await;
    let mut stream = Stream::new("s");
    stream.grow(&*store, 1).await;
    let mut tries = Vec::new();
    for n in 0..6 {
        let handle = database.handle(&format!("instance {n}")).await;
        let record = decision("s", 1, &n.to_string());
        let change = Change { records: vec![record], ..stream.clone().change(1) };
        tries.push(tokio::spawn(async move { handle.commit(&[change]).await }));
    }
    let mut succeeded = 0;
    for outcome in tries {
        match outcome.await.unwrap() {
            Ok(()) => succeeded += 1,
            Err(error) => assert_eq!(error, conflict(&["s"])),
        }
    }
    assert_eq!(succeeded, 1);
    assert_eq!(version(&*store, "s").await, Some(2));
}

/// Covers a budget shared by two processes: each change is made from the one before it.
pub async fn instances_that_share_a_stream_lose_no_change(database: &impl EvidenceDatabase) {
    const EACH: u64 = 15;
    let maker = database.handle("maker").await;
    maker
        .commit(&[Change { running: Bytes::from_static(b"0"), ..Stream::new("s").change(0) }])
        .await
        .unwrap();
    let mut workers = Vec::new();
    for n in 0..3 {
        let store = database.handle(&format!("instance {n}")).await;
        workers.push(tokio::spawn(async move {
            for turn in 0..EACH {
                count_one_up(&store, &format!("{n}.{turn}")).await;
            }
        }));
    }
    for worker in workers {
        worker.await.unwrap();
    }
    let kept = maker.streams(&["s"]).await.unwrap().remove(0).unwrap();
    assert_eq!(kept.running, (3 * EACH).to_string());
    assert_eq!(kept.next_seq, 3 * EACH);
    let seqs: Vec<u64> =
        maker.records("s", 0, 100).await.unwrap().iter().map(|stored| stored.record.seq).collect();
    assert!(seqs.into_iter().eq(0..3 * EACH));
}

async fn count_one_up(store: &Arc<dyn EvidenceStore>, who: &str) {
    loop {
        let kept = store.streams(&["s"]).await.unwrap().remove(0).unwrap();
        let count: u64 = std::str::from_utf8(&kept.running).unwrap().parse().unwrap();
        let change = Change {
            from: Some(kept.version),
            running: Bytes::from((count + 1).to_string()),
            records: vec![decision("s", kept.next_seq, who)],
            ..Stream::new("s").change(0)
        };
        match store.commit(&[change]).await {
            Ok(()) => return,
            Err(error) => assert_eq!(error, conflict(&["s"])),
        }
    }
}

/// Commits a large group of queued changes, of new and of existing streams.
pub async fn many_changes_are_one_commit(database: &impl EvidenceDatabase) {
    let store = database.handle("one").await;
    let mut streams: Vec<Stream> = (0..130).map(|n| Stream::new(&format!("stream {n}"))).collect();
    for round in 0..3 {
        for known in [200, 60] {
            let mut changes = Vec::new();
            for stream in streams.iter_mut().take(known) {
                let mut change = stream.change(1 + round % 2);
                change.agreed = (round == 1).then(|| Bytes::from_static(b"agreed"));
                change.claims = vec![stream.claim(&format!("{:?}", stream.version))];
                change.opened = vec![change.records[0].id];
                changes.push(change);
            }
            store.commit(&changes).await.unwrap();
        }
    }
    for stream in &streams {
        let kept = store.streams(&[&stream.name]).await.unwrap().remove(0).unwrap();
        assert_eq!((Some(kept.version), kept.next_seq), (stream.version, stream.next_seq));
        let records = store.records(&stream.name, 0, 100).await.unwrap();
        assert_eq!(records.len() as u64, stream.next_seq);
    }
    let total: u64 = streams.iter().map(|stream| stream.next_seq).sum();
    assert_eq!(store.backlog().await.unwrap().records, total);
}

/// Commits several changes of one session in one group.
pub async fn changes_of_one_stream_follow_each_other(database: &impl EvidenceDatabase) {
    let store = database.handle("one").await;
    let (mut a, mut b) = (Stream::new("a"), Stream::new("b"));
    let mut changes = vec![a.change(1), b.change(1), a.change(2), a.change(0), b.change(1)];
    changes[0].agreed = Some(Bytes::from_static(b"agreed"));
    let (opened, settled) = (changes[0].records[0].id, changes[2].records[0].id);
    changes[0].opened = vec![opened];
    changes[2].opened = vec![settled];
    changes[3].settled = vec![settled];
    store.commit(&changes).await.unwrap();
    let kept = store.streams(&["a", "b"]).await.unwrap();
    let (a, b) = (kept[0].clone().unwrap(), kept[1].clone().unwrap());
    assert_eq!((a.version, a.next_seq, b.version, b.next_seq), (3, 3, 2, 2));
    assert_eq!((a.running, a.agreed.as_deref()), (changes[3].running.clone(), Some(&b"agreed"[..])));
    store.leave().await.unwrap();
    let orphans: Vec<_> = store.orphans(10).await.unwrap().iter().map(|open| open.id).collect();
    assert_eq!(orphans, [opened]);
}

/// Expects `StoreError::Refused` for a caller's mistake: it is not a conflict, as another decision would not repair it.
pub async fn changes_that_contradict_themselves_are_refused(database: &impl EvidenceDatabase) {
    let store = database.handle("one").await;
    let stream = Stream::new("s");
    let twice = vec![stream.clone().change(0), stream.clone().change(0)];
    let stranger = vec![Change { records: vec![record("other", 0)], ..stream.clone().change(0) }];
    let gap = vec![Change { records: vec![record("s", 0), record("s", 2)], ..stream.clone().change(0) }];
    let late = vec![Change { records: vec![record("s", 1)], ..stream.clone().change(0) }];
    let claims =
        vec![Change { claims: vec![stream.claim("a"), stream.claim("a")], ..stream.clone().change(0) }];
    let foreign = vec![Change { claims: vec![Stream::new("other").claim("a")], ..stream.clone().change(0) }];
    let opened = vec![Change { opened: vec![record("s", 0).id], ..stream.clone().change(0) }];
    let unnamed = vec![Stream::new("").change(0)];
    let long = vec![Stream::new(&"x".repeat(5_000)).change(0)];
    let nul = vec![Stream::new("a\0b").change(0)];
    let zero = vec![Change { from: Some(0), ..stream.clone().change(0) }];
    let first = vec![Change { first: 0, ..stream.clone().change(0) }];
    let timeless = vec![Change { keep_until: None, ..stream.clone().change(0) }];
    let ended = Change { keep_until: None, closed: true, from: Some(1), ..stream.clone().change(0) };
    for changes in [
        first,
        timeless,
        vec![ended],
        twice,
        stranger,
        gap,
        late,
        claims,
        foreign,
        opened,
        unnamed,
        long,
        nul,
        zero,
    ] {
        let outcome = store.commit(&changes).await;
        assert!(
            matches!(outcome, Err(CommitError::Failed(StoreError::Refused(_)))),
            "{outcome:?} {changes:?}"
        );
    }
    assert_eq!(version(&*store, "s").await, None);
}

/// Expects `StoreError::Refused` for a missing and for a repeated sequence number.
pub async fn records_out_of_sequence_are_refused(database: &impl EvidenceDatabase) {
    let store = database.handle("one").await;
    let mut stream = Stream::new("s");
    stream.grow(&*store, 2).await;
    for seq in [0, 1, 3] {
        let change = Change { records: vec![decision("s", seq, "x")], ..stream.clone().change(0) };
        let outcome = store.commit(&[change]).await;
        assert!(matches!(outcome, Err(CommitError::Failed(StoreError::Refused(_)))), "{seq}: {outcome:?}");
    }
    stream.grow(&*store, 1).await;
}

/// Checks that one statement cannot be stored as two records.
pub async fn a_record_is_kept_once(database: &impl EvidenceDatabase) {
    let store = database.handle("one").await;
    store.commit(&[first("s")]).await.unwrap();
    let mut again = first("t");
    again.records[0].id = record("s", 0).id;
    let outcome = store.commit(&[again]).await;
    assert!(matches!(outcome, Err(CommitError::Failed(StoreError::Refused(_)))), "{outcome:?}");
    assert_eq!(version(&*store, "t").await, None);
}

/// Covers a replayed message, and a question that was answered already (V-21, V-26).
pub async fn a_claim_is_taken_once_in_its_stream(database: &impl EvidenceDatabase) {
    let (one, other) = (database.handle("one").await, database.handle("other").await);
    let (mut a, mut b) = (Stream::new("a"), Stream::new("b"));
    for stream in [&mut a, &mut b] {
        let claims = vec![stream.claim("jti")];
        one.commit(&[Change { claims, ..stream.change(1) }]).await.unwrap();
    }
    assert_eq!(
        other.claimed(&[a.claim("jti"), a.claim("new"), b.claim("jti")]).await.unwrap(),
        [true, false, true]
    );
    let again = Change { claims: vec![a.claim("jti")], ..a.clone().change(1) };
    assert_eq!(other.commit(&[again]).await, Err(conflict(&["a"])));
    assert_eq!(version(&*one, "a").await, Some(1));
}

/// Checks that a nonce and a `jti` with the same bytes do not collide.
pub async fn claims_of_different_kinds_are_different(database: &impl EvidenceDatabase) {
    let store = database.handle("one").await;
    let mut stream = Stream::new("s");
    let claim = stream.claim("same");
    let question = crate::Claim { kind: ClaimKind::Question, ..claim.clone() };
    store.commit(&[Change { claims: vec![claim], ..stream.change(0) }]).await.unwrap();
    assert_eq!(store.claimed(std::slice::from_ref(&question)).await.unwrap(), [false]);
    store.commit(&[Change { claims: vec![question], ..stream.change(0) }]).await.unwrap();
}

/// Checks `happened` for both outcomes of a commit in doubt.
pub async fn a_commit_that_happened_is_told_from_one_that_did_not(database: &impl EvidenceDatabase) {
    let (one, other) = (database.handle("one").await, database.handle("other").await);
    let mut stream = Stream::new("s");
    for records in [1, 0, 2] {
        let change = [stream.change(records)];
        assert!(!one.happened(&change).await.unwrap());
        one.commit(&change).await.unwrap();
        assert!(one.happened(&change).await.unwrap());
    }
    let mine = [Change { records: vec![decision("s", 3, "one")], ..stream.clone().change(0) }];
    let theirs = [Change { records: vec![decision("s", 3, "other")], ..stream.clone().change(0) }];
    other.commit(&theirs).await.unwrap();
    assert!(!one.happened(&mine).await.unwrap(), "somebody else's change is not ours");
}

/// Checks that names (chosen by agents) and states (bytes) are stored unchanged.
pub async fn any_name_and_any_bytes_come_back(database: &impl EvidenceDatabase) {
    let store = database.handle("one").await;
    let long = "é".repeat(700);
    let names = ["S", "s", "s ", " s", "%", "_", "'; DROP TABLE stream; --", "\u{202e}\u{2028}🦀", &long];
    let bytes: Vec<u8> = (0..=255).cycle().take(70_000).collect();
    for name in names {
        let mut change = first(name);
        change.running = bytes.clone().into();
        change.agreed = Some(Bytes::new());
        change.records[0].annex = bytes.clone().into();
        change.records[0].verdict = None;
        store.commit(std::slice::from_ref(&change)).await.unwrap();
        let kept = store.streams(&[name]).await.unwrap().remove(0).unwrap();
        assert_eq!((kept.running.as_ref(), kept.agreed), (&bytes[..], Some(Bytes::new())));
        assert_eq!(store.record(&change.records[0].id).await.unwrap().unwrap().record, change.records[0]);
    }
}

/// Checks that the empty group is committed.
pub async fn nothing_at_all_is_a_commit(database: &impl EvidenceDatabase) {
    database.handle("one").await.commit(&[]).await.unwrap();
}

/// Checks that `check_durability` accepts the database under test.
pub async fn a_durable_database_passes_its_own_check(database: &impl EvidenceDatabase) {
    database.handle("one").await.check_durability().await.unwrap();
}
