//! A database that contains the operator's statements without their effects.

use std::sync::Arc;

use registration::operator::{FREEZE_RULE, HOLD_RULE, RELEASE_RULE};
use serde_json::json;
use store::contract::Appender;
use store::{Custody, Lifecycle, Memory, NewEntry};

use super::*;

/// The policy at leaf 0, a statement at leaf 1, and the operator's statements after it.
struct Copied {
    store: Memory,
    appender: Appender,
}

impl Copied {
    async fn log() -> Self {
        let store = Memory::new();
        let appender = Appender::new(Arc::new(store.clone())).await;
        let mut log = Self { store, appender };
        log.append(&testkit::policy_statement(), "policy", Vec::new()).await;
        log.append(&note(), "application/json", Vec::new()).await;
        log
    }

    async fn append(&mut self, statement: &SignedStatement, rule: &str, guards: Vec<GuardKey>) {
        let entry = NewEntry {
            digest: statement.digest(),
            twin: None,
            statement: statement.bytes().clone(),
            policy: LeafIndex::new(0),
            rule: rule.to_owned(),
            facts: "{}".into(),
            guards,
            collateral: Vec::new(),
        };
        self.appender.append_entries(vec![entry]).await.unwrap();
    }

    /// Appends the entry of an action without its effect.
    async fn state(&mut self, action: &Action, rule: &str) {
        let statement = testkit::operator_action(action);
        let guards = action.guards(&statement.digest());
        let guards = guards.iter().map(|guard| GuardKey(guard.as_bytes().to_vec())).collect();
        self.append(&statement, rule, guards).await;
    }

    /// The missing effect of the newest entry.
    async fn missing(&self) -> Option<String> {
        let last = self.appender.head().size().last_leaf().unwrap();
        let entry = self.store.entry(last).await.unwrap().unwrap();
        effect_missing(&self.store, &entry).await.unwrap()
    }
}

fn note() -> SignedStatement {
    testkit::opaque_with(&testkit::operator(), testkit::ISSUER, b"key", "thing", &json!({}))
}

fn numbered(number: u64) -> Action {
    Action::numbered(note().digest(), "2026-17", number)
}

#[tokio::test]
async fn a_hold_that_the_log_states_is_missed_and_one_that_it_has_released_too() {
    let (mut log, leaf) = (Copied::log().await, LeafIndex::new(1));
    log.state(&numbered(0), HOLD_RULE).await;
    assert!(log.missing().await.unwrap().contains("not held"));
    log.store.hold(leaf, "2026-17", 7).await.unwrap();
    assert_eq!(log.missing().await, None);
    log.state(&numbered(1), RELEASE_RULE).await;
    assert!(log.missing().await.unwrap().contains("still held"));
    log.store.release(leaf, "2026-17", 8).await.unwrap();
    assert_eq!(log.missing().await, None);
    let first = log.store.entry(LeafIndex::new(2)).await.unwrap().unwrap();
    assert_eq!(effect_missing(&log.store, &first).await.unwrap(), None, "an older one has had its time");
    log.state(&numbered(2), HOLD_RULE).await;
    log.store.erase(&[leaf]).await.unwrap();
    assert_eq!(log.missing().await, None, "what has no bytes cannot be held");
}

/// A backup is written while the log grows: its holds may be newer than its entries.
#[tokio::test]
async fn the_holds_of_a_copy_are_brought_to_what_its_log_says() {
    let (mut log, leaf) = (Copied::log().await, LeafIndex::new(1));
    log.state(&numbered(0), HOLD_RULE).await;
    log.store.hold(leaf, "2026-17", 7).await.unwrap();
    log.store.hold(leaf, "not stated", 7).await.unwrap();
    log.store.release(leaf, "2026-17", 8).await.unwrap();
    restore_holds(&log.store).await.unwrap();
    assert_eq!(log.missing().await, None);
    log.state(&numbered(1), RELEASE_RULE).await;
    restore_holds(&log.store).await.unwrap();
    assert_eq!(log.missing().await, None);
    let holds = log.store.holds(None, 9).await.unwrap();
    assert!(holds.iter().all(|hold| hold.released.is_some()), "a hold that the log does not state ends, too");
}

#[tokio::test]
async fn a_log_that_its_operator_ended_is_frozen_wherever_its_entries_are() {
    let mut log = Copied::log().await;
    keep_frozen(&log.store).await.unwrap();
    assert_eq!(log.store.state().await.unwrap(), LogState::Open);
    log.state(&Action::Freeze { reason: "replaced".into() }, FREEZE_RULE).await;
    assert!(log.missing().await.unwrap().contains("not frozen"));
    keep_frozen(&log.store).await.unwrap();
    keep_frozen(&log.store).await.unwrap();
    assert!(matches!(log.store.state().await.unwrap(), LogState::Frozen { .. }));
    assert_eq!(log.missing().await, None);
    assert_eq!(frozen_by(&log.store).await.unwrap(), Some(LeafIndex::new(2)));
}

#[tokio::test]
async fn an_entry_after_the_end_is_told_of_the_one_that_ended_the_log() {
    let mut log = Copied::log().await;
    log.state(&Action::Freeze { reason: "replaced".into() }, FREEZE_RULE).await;
    let freeze = log.store.entry(LeafIndex::new(2)).await.unwrap().unwrap();
    log.append(&testkit::vrf(1), "application/vrf+cbor", Vec::new()).await;
    let told = effect_missing(&log.store, &freeze).await.unwrap();
    assert!(told.unwrap().contains("ended the log: 1"));
}

#[tokio::test]
async fn the_next_number_is_found_however_many_there_were() {
    let mut log = Copied::log().await;
    for number in 0..2 * NUMBERS + 1 {
        assert_eq!(next_number(&log.store, &note().digest(), "2026-17").await.unwrap(), number);
        let rule = if number % 2 == 0 { HOLD_RULE } else { RELEASE_RULE };
        log.state(&numbered(number), rule).await;
    }
    assert_eq!(next_number(&log.store, &note().digest(), "another").await.unwrap(), 0);
}
