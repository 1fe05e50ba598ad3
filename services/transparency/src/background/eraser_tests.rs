//! The walk of the erasures over a log in memory, with a database that fails on demand.

use bytes::Bytes;
use merkle::EntryDigest;
use registration::erasure::{NewErasure, sequence_guard, sign};
use scitt::SignedStatement;
use serde_json::json;
use store::contract::Appender;
use store::{Custody, FailingStore, Fault, GuardKey, Memory, NewEntry, StoreMethod};

use super::*;

/// A log whose statements claim no permanence, as if the database had lost these guards.
struct Unguarded {
    store: FailingStore,
    appender: Appender,
}

impl Unguarded {
    /// The policy at leaf 0, and `count` statements after it.
    async fn with(count: u64) -> Self {
        let store = FailingStore::new(Memory::new());
        let mut appender = Appender::new(Arc::new(store.clone())).await;
        let mut entries = vec![entry(&testkit::policy_statement(), "policy", vec![])];
        entries.extend((1..=count).map(|n| entry(&statement(n), "application/json", vec![])));
        appender.append_entries(entries).await.unwrap();
        Self { store, appender }
    }

    async fn append(&mut self, entry: NewEntry) {
        self.appender.append_entries(vec![entry]).await.unwrap();
    }

    /// Registers an erasure without checking it against the rules.
    async fn erase(&mut self, number: u64, entries: &[EntryDigest]) {
        let erasure = erasure(number, entries);
        self.append(entry(&erasure, "erasure", vec![numbered(number)])).await;
    }

    async fn has(&self, leaf: u64) -> bool {
        self.store.statuses(&[LeafIndex::new(leaf)]).await.unwrap()[0].has_statement
    }
}

fn numbered(number: u64) -> GuardKey {
    GuardKey(sequence_guard(number).as_bytes().to_vec())
}

fn statement(n: u64) -> SignedStatement {
    testkit::opaque_with(&testkit::operator(), testkit::ISSUER, b"key", "thing", &json!({ "n": n }))
}

fn erasure(sequence: u64, entries: &[EntryDigest]) -> SignedStatement {
    let mut entries = entries.to_vec();
    entries.sort();
    let (reason, rule) = ("asked to".to_owned(), "request".to_owned());
    let erasure = NewErasure { sequence, entries, reason, rule, at: None, authorized_by: None };
    let policy = testkit::policy();
    let log = (testkit::LOG_ISS, testkit::ORIGIN);
    sign(&erasure, log, &policy.contents().operators, &testkit::operator()).unwrap()
}

fn entry(statement: &SignedStatement, rule: &str, guards: Vec<GuardKey>) -> NewEntry {
    NewEntry {
        digest: statement.digest(),
        twin: None,
        statement: Bytes::clone(statement.bytes()),
        policy: LeafIndex::new(0),
        rule: rule.to_owned(),
        facts: "{}".into(),
        guards,
        collateral: vec![],
    }
}

impl Eraser {
    /// Runs the walk of a start to its end.
    async fn start(&mut self, store: &dyn ErasureStore) -> Result<(), StoreError> {
        self.newer(store).await?;
        while self.older(store).await? {}
        Ok(())
    }
}

#[tokio::test]
async fn what_a_hold_kept_is_erased_though_the_database_fails_in_between() {
    let mut log = Unguarded::with(2).await;
    for n in [0, 1] {
        log.erase(n, &[statement(n + 1).digest()]).await;
        log.store.hold(LeafIndex::new(n + 1), "case", 7).await.unwrap();
    }
    let mut eraser = Eraser::default();
    eraser.start(&log.store).await.unwrap();
    eraser.again(&log.store).await.unwrap();
    assert!(log.has(1).await && log.has(2).await && eraser.held.len() == 2);
    assert_eq!(eraser.carried_out(), None);
    for n in [1, 2] {
        log.store.release(LeafIndex::new(n), "case", 8).await.unwrap();
    }
    for (call, fault) in [
        (StoreMethod::Held, Fault::Refused),
        (StoreMethod::Erase, Fault::Refused),
        (StoreMethod::Erase, Fault::AppliedWithoutAnswer),
        (StoreMethod::Held, Fault::NotApplied),
    ] {
        log.store.fail(call, 1, fault);
        assert!(eraser.again(&log.store).await.is_err());
        assert_eq!(eraser.held.len(), 2, "nothing is forgotten after {call:?}");
    }
    eraser.again(&log.store).await.unwrap();
    assert!(!log.has(1).await && !log.has(2).await && eraser.held.is_empty());
    assert_eq!(eraser.carried_out(), Some(2));
}

#[tokio::test]
async fn a_policy_whose_guard_is_lost_is_not_erased() {
    let mut log = Unguarded::with(1).await;
    let policy = testkit::policy_statement().digest();
    // An operator's own rule may have any name.
    log.append(entry(&statement(2), "policy", vec![])).await;
    log.erase(0, &[policy, statement(1).digest(), statement(2).digest()]).await;
    log.erase(1, &[erasure(0, &[policy, statement(1).digest(), statement(2).digest()]).digest()]).await;
    Eraser::default().start(&log.store).await.unwrap();
    let mut there = Vec::new();
    for leaf in 0..5 {
        there.push(log.has(leaf).await);
    }
    assert_eq!(there, [true, false, false, true, true]);
}

#[tokio::test]
async fn an_erasure_that_cannot_be_read_keeps_no_other_from_being_done() {
    let mut log = Unguarded::with(2).await;
    log.erase(0, &[statement(1).digest()]).await;
    log.append(entry(&statement(3), "erasure", vec![numbered(1)])).await;
    log.erase(2, &[statement(2).digest()]).await;
    let mut eraser = Eraser::default();
    eraser.start(&log.store).await.unwrap();
    assert!(!log.has(1).await && !log.has(2).await);
    assert_eq!(eraser.carried_out(), None, "what it erases is not known");
}

#[tokio::test]
async fn an_erasure_that_is_refused_keeps_no_other_from_being_done_and_is_tried_again() {
    let mut log = Unguarded::with(3).await;
    for n in [0, 1, 2] {
        log.erase(n, &[statement(n + 1).digest()]).await;
    }
    log.store.hold(LeafIndex::new(3), "case", 7).await.unwrap();
    log.store.fail(StoreMethod::Erase, 1, Fault::Ended);
    let mut eraser = Eraser::default();
    eraser.start(&log.store).await.unwrap();
    assert!(log.has(1).await && !log.has(2).await && log.has(3).await);
    assert_eq!(eraser.carried_out(), None, "one is not done");
    log.store.release(LeafIndex::new(3), "case", 8).await.unwrap();
    log.store.fail(StoreMethod::Erase, 1, Fault::Ended);
    eraser.again(&log.store).await.unwrap();
    assert!(log.has(3).await && eraser.held.is_empty());
    assert_eq!(eraser.carried_out(), None, "two are not done");
    eraser.retry_refused(&log.store).await.unwrap();
    assert!(!log.has(1).await && !log.has(3).await);
    assert_eq!(eraser.carried_out(), Some(3));
}

#[tokio::test]
async fn a_start_does_new_erasures_before_it_walks_the_old_ones() {
    let old = 2 * AT_ONCE + 3;
    let mut log = Unguarded::with(old + 1).await;
    for n in 0..old {
        log.erase(n, &[statement(n + 1).digest()]).await;
    }
    let mut eraser = Eraser::default();
    eraser.newer(&log.store).await.unwrap();
    log.erase(old, &[statement(old + 1).digest()]).await;
    eraser.newer(&log.store).await.unwrap();
    assert!(!log.has(old + 1).await && log.has(old).await && log.has(1).await);
    assert_eq!(eraser.carried_out(), None);
    while eraser.older(&log.store).await.unwrap() {}
    for leaf in 1..=old {
        assert!(!log.has(leaf).await, "{leaf}");
    }
    assert_eq!(eraser.carried_out(), Some(old + 1));
}

#[tokio::test]
async fn a_start_asks_once_for_all_that_an_erasure_names_and_erases_nothing_again() {
    let mut log = Unguarded::with(20).await;
    let named: Vec<EntryDigest> = (1..=20).map(|n| statement(n).digest()).collect();
    log.erase(0, &named).await;
    Eraser::default().start(&log.store).await.unwrap();
    let before =
        [StoreMethod::Statuses, StoreMethod::Entry, StoreMethod::Erase].map(|call| log.store.calls(call));
    Eraser::default().start(&log.store).await.unwrap();
    let after =
        [StoreMethod::Statuses, StoreMethod::Entry, StoreMethod::Erase].map(|call| log.store.calls(call));
    assert_eq!(after, [before[0] + 1, before[1] + 1, before[2]]);
}
