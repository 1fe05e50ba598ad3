//! Halts: those that time ends, those that an operator ends, and those that end the process.
#![allow(clippy::unwrap_used)]

mod support;

use std::sync::Arc;
use std::time::Duration;

use async_trait::async_trait;
use sequencer::{Halt, Redecide, Redecision, Remedy, Role, Step, Submission, SubmitError};
use store::{Fault, Inbox, InboxItem, LogReader, StoreMethod};
use support::{But, Log, statement};
use tokio::time::sleep;

const YEAR: i64 = 365 * 86_400;

/// Longer than any pause between two attempts, shorter than what is promised.
const HEALED_WITHIN: Duration = Duration::from_secs(30);

#[tokio::test(start_paused = true)]
async fn r12_a_pin_that_could_not_be_written_is_tried_again_until_it_can() {
    let log = Log::with(1).await;
    let process = log.start().await;
    log.block_pin();
    let outcome = log.submit(&process, statement(10)).await;
    assert!(matches!(outcome, Err(SubmitError::Halted(Halt::Pin(_)))), "{outcome:?}");
    sleep(Duration::from_secs(3600)).await;
    assert!(process.halt().is_some(), "the fault lasts: {:?}", process.role());
    log.unblock_pin();
    tokio::time::timeout(HEALED_WITHIN, process.until_leading()).await.unwrap();
    assert!(
        log.insist(&process, statement(10)).await.already_there,
        "it was committed before the pin failed"
    );
    log.insist(&process, statement(11)).await;
    log.check().await;
}

#[tokio::test(start_paused = true)]
async fn a_signer_that_failed_is_tried_again_until_it_signs() {
    let log = Log::with(1).await;
    let process = log.start().await;
    log.signer.fail(u64::MAX);
    let outcome = log.submit(&process, statement(10)).await;
    assert!(matches!(outcome, Err(SubmitError::Halted(Halt::Signer { .. }))), "{outcome:?}");
    sleep(Duration::from_secs(60)).await;
    log.signer.fail(0);
    tokio::time::timeout(HEALED_WITHIN, process.until_leading()).await.unwrap();
    log.insist(&process, statement(10)).await;
    log.check().await;
}

#[tokio::test(start_paused = true)]
async fn r36_a_clock_that_stepped_is_not_believed_until_it_is_set_right() {
    for step in [YEAR, -YEAR, 3600] {
        let log = Log::with(1).await;
        let process = log.start().await;
        log.clock.step(step);
        let outcome = log.submit(&process, statement(10)).await;
        assert!(matches!(outcome, Err(SubmitError::Halted(Halt::ClockStepped { .. }))), "{outcome:?}");
        sleep(Duration::from_secs(3600)).await;
        assert!(matches!(process.halt(), Some(Halt::ClockStepped { .. })), "{:?}", process.role());
        log.clock.step(-step);
        tokio::time::timeout(HEALED_WITHIN, process.until_leading()).await.unwrap();
        let placed = log.insist(&process, statement(10)).await;
        assert_eq!(placed.head.unwrap().head.at, support::START);
        log.check().await;
    }
}

#[tokio::test(start_paused = true)]
async fn r36_a_clock_behind_the_newest_entry_at_start_is_waited_for() {
    let log = Log::with(1).await;
    log.clock.step(-86_400);
    let process = log.start().await;
    assert!(matches!(process.halt(), Some(Halt::ClockBehind { .. })), "{:?}", process.role());
    log.clock.step(86_400);
    tokio::time::timeout(HEALED_WITHIN, process.until_leading()).await.unwrap();
    log.insist(&process, statement(10)).await;
    log.check().await;
}

#[tokio::test(start_paused = true)]
async fn a_possible_fork_stays_halted_for_an_operator() {
    let mut log = Log::with(3).await;
    log.memory = Log::with(1).await.memory;
    let process = log.start().await;
    assert!(matches!(process.halt(), Some(Halt::DatabaseBehind { .. })), "{:?}", process.role());
    let epoch = log.memory.head().await.unwrap().epoch;
    sleep(Duration::from_secs(86_400)).await;
    assert!(matches!(process.halt(), Some(Halt::DatabaseBehind { .. })), "{:?}", process.role());
    assert_eq!(log.memory.head().await.unwrap().epoch, epoch, "nothing was tried again");
}

#[tokio::test(start_paused = true)]
async fn after_a_halt_one_process_leads_and_the_other_follows() {
    let log = Log::with(1).await;
    let (one, other) = (log.start().await, log.start().await);
    log.signer.fail(u64::MAX);
    log.submit(&one, statement(10)).await.unwrap_err();
    one.until_halted().await;
    other.until_halted().await;
    log.signer.fail(0);
    let settled = async {
        let leads = |process: &support::Process| matches!(process.role(), Role::Leading { .. });
        let follows = |process: &support::Process| process.role() == Role::Following;
        while !(leads(&one) && follows(&other) || leads(&other) && follows(&one)) {
            sleep(Duration::from_millis(50)).await;
        }
    };
    tokio::time::timeout(HEALED_WITHIN, settled).await.unwrap();
    log.insist(&one, statement(11)).await;
    log.insist(&other, statement(12)).await;
    log.check().await;
}

/// A policy that cannot be asked, since asking is a bug.
struct Panics;

#[async_trait]
impl Redecide for Panics {
    async fn redecide(&self, _submission: Submission) -> Redecision {
        panic!("a bug")
    }
}

#[tokio::test(start_paused = true)]
async fn r58_a_panic_in_the_task_that_drains_the_inbox_ends_the_process() {
    let mut log = Log::with(1).await;
    log.redecide = Arc::new(Panics);
    let moved = statement(10).under(7);
    let item = InboxItem { digest: moved.entry.digest, submission: moved.encode() };
    log.memory.enqueue(&item).await.unwrap();
    let process = log.start().await;
    let halt = process.until_halted().await;
    assert_eq!((halt.remedy(), halt), (Remedy::Restart, Halt::Panicked));
    log.check().await;
}

#[tokio::test(start_paused = true)]
async fn an_inbox_that_cannot_be_read_shows_since_when() {
    let log = Log::with(1).await;
    let process = log.start().await;
    sleep(Duration::from_secs(5)).await;
    assert!(process.handle.drained().unwrap() < Duration::from_secs(1), "{:?}", process.handle.drained());
    (1..=200).for_each(|nth| process.store.fail(StoreMethod::PendingKeys, nth, Fault::Refused));
    sleep(Duration::from_secs(20)).await;
    assert!(process.handle.drained().unwrap() > Duration::from_secs(10), "{:?}", process.handle.drained());
    process.store.heal();
    sleep(Duration::from_secs(5)).await;
    assert!(process.handle.drained().unwrap() < Duration::from_secs(1), "{:?}", process.handle.drained());
    process.handle.stop().await;
    assert_eq!(process.handle.drained(), None, "it drains no more");
}

#[tokio::test(start_paused = true)]
async fn a_commit_that_cannot_be_settled_is_shown_with_its_age() {
    let log = Log::with(1).await;
    let process = log.start().await;
    assert_eq!(process.handle.activity(), None, "it waits for work");
    process.store.fail(StoreMethod::Commit, 1, Fault::AppliedWithoutAnswer);
    (1..=60).for_each(|nth| process.store.fail(StoreMethod::TakeOver, nth, Fault::Refused));
    let handle = process.handle.clone();
    let submitted = tokio::spawn(async move { handle.submit(statement(10)).await });
    sleep(Duration::from_secs(10)).await;
    let (step, age) = process.handle.activity().unwrap();
    assert!(step == Step::Settle && age > Duration::from_secs(5), "{step}: {age:?}");
    submitted.await.unwrap().unwrap_err();
    log.insist(&process, statement(10)).await;
    assert_eq!(process.handle.activity(), None);
    log.check().await;
}
