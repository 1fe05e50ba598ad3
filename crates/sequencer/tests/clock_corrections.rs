//! Logs whose newest head carries a time in the future, because a clock was ahead.

#![allow(missing_docs, clippy::unwrap_used)]

mod support;

use std::time::Duration;

use merkle::TreeSize;
use sequencer::{ClockCorrection, Halt, Role, Submission, SubmitError, TimeWindow};
use store::{Fault, LogReader, StoreMethod};
use support::{But, Log, START, statement};
use tokio::time::{Instant, sleep};

const YEAR: i64 = 365 * 86_400;

/// A log of four entries, the newest of which was committed while the clock was a year ahead; nobody leads it now, and the
/// clock is right again.
async fn ahead() -> Log {
    let log = Log::with(2).await;
    log.clock.step(YEAR);
    let process = log.start().await;
    log.submit(&process, statement(3)).await.unwrap();
    process.handle.stop().await;
    log.clock.step(-YEAR);
    log
}

fn correction(size: u64, committed_at: u64, time: u64) -> Submission {
    let mut correction = support::named(&format!("correction of {size}: {committed_at} was {time}"));
    correction.entry.rule = store::CLOCK_CORRECTION.into();
    correction.valid = TimeWindow { from: time, until: committed_at - 1 };
    correction.corrects = Some(ClockCorrection { size: TreeSize::new(size), committed_at, time });
    correction
}

/// The right one.
fn right() -> Submission {
    correction(4, START + YEAR as u64, START)
}

#[tokio::test(start_paused = true)]
async fn r36_a_correction_lets_a_log_continue_whose_time_was_ahead() {
    let log = ahead().await;
    let process = log.start().await;
    assert!(matches!(process.halt(), Some(Halt::ClockBehind { .. })), "{:?}", process.role());
    let waiting = log.submit(&process, statement(10)).await;
    assert!(matches!(waiting, Err(SubmitError::Halted(Halt::ClockBehind { .. }))), "{waiting:?}");
    let placed = process.handle.submit(right()).await.unwrap();
    assert_eq!((placed.index.get(), placed.head.unwrap().head.at), (4, START));
    let after = log.submit(&process, statement(10)).await.unwrap();
    assert_eq!(after.head.unwrap().head.at, START);
    process.handle.stop().await;
    let next = log.start().await;
    log.submit(&next, statement(11)).await.unwrap();
    let times: Vec<u64> = log.memory.heads(3, 9).await.unwrap().iter().map(|head| head.at).collect();
    assert_eq!(times, [START + YEAR as u64, START, START, START]);
}

#[tokio::test(start_paused = true)]
async fn r36_a_process_that_led_while_its_clock_was_set_back_takes_the_correction_without_a_restart() {
    let log = Log::with(2).await;
    log.clock.step(YEAR);
    let process = log.start().await;
    log.submit(&process, statement(3)).await.unwrap();
    log.clock.step(-YEAR);
    log.submit(&process, statement(4)).await.unwrap_err();
    assert!(matches!(process.halt(), Some(Halt::ClockStepped { .. })), "{:?}", process.role());
    process.handle.submit(right()).await.unwrap();
    log.submit(&process, statement(4)).await.unwrap();
    tokio::select! {
        biased;
        outcome = process.handle.submit(statement(5).valid(0, START - 1)) => {
            assert!(matches!(outcome, Err(SubmitError::OutsideWindow { at: START, .. })), "{outcome:?}");
        }
        () = std::future::ready(()) => panic!("a closed window is not refused at once"),
    }
}

#[tokio::test(start_paused = true)]
async fn r36_a_correction_is_refused_that_the_log_or_the_clock_contradicts() {
    let log = ahead().await;
    let process = log.start().await;
    let year = YEAR as u64;
    for (wrong, why) in [
        (correction(3, START + year, START), "another size"),
        (correction(4, START + year - 1, START), "another time"),
        (correction(4, START + year, START + 61), "a true time after the clock's"),
        (correction(4, START + year, START - 61), "a true time before the clock's"),
    ] {
        let outcome = process.handle.submit(wrong).await;
        assert!(matches!(outcome, Err(SubmitError::Halted(_))), "{why}: {outcome:?}");
        assert_eq!(log.size().await, 4, "{why}");
    }
    process.handle.submit(right()).await.unwrap();
    let again = process.handle.submit(correction(5, START + 5, START)).await;
    assert!(matches!(again, Err(SubmitError::NoCorrection(_))), "{again:?}");
}

#[tokio::test(start_paused = true)]
async fn r36_a_process_whose_correction_is_not_admitted_places_nothing_else() {
    let log = ahead().await;
    let process = log.start().await;
    let outcome = process.handle.submit(right().under_policy(3)).await;
    assert!(matches!(outcome, Err(SubmitError::PolicyMoved { .. })), "{outcome:?}");
    sleep(Duration::from_secs(60)).await;
    assert!(matches!(process.halt(), Some(Halt::ClockBehind { .. })), "{:?}", process.role());
    log.submit(&process, statement(10)).await.unwrap_err();
    assert_eq!(log.size().await, 4);
}

#[tokio::test(start_paused = true)]
async fn a_correction_waits_longer_after_each_failure_of_the_database() {
    let log = ahead().await;
    let process = log.start().await;
    let failures = 6;
    for n in 1..=failures {
        process.store.fail(StoreMethod::TakeOver, n, Fault::Refused);
    }
    let since = Instant::now();
    process.handle.submit(right()).await.unwrap();
    let pauses: Duration = (0..failures as u32).map(|n| log.limits.first_pause * 2u32.pow(n)).sum();
    assert!(since.elapsed() >= pauses, "{:?}", since.elapsed());
}

#[tokio::test(start_paused = true)]
async fn a_correction_is_refused_while_another_process_leads() {
    let log = Log::with(1).await;
    let (leader, follower) = (log.start().await, log.start().await);
    assert!(matches!(leader.role(), Role::Leading { .. }));
    for process in [&leader, &follower] {
        let outcome = process.handle.submit(correction(2, START, START - 1)).await;
        assert!(matches!(outcome, Err(SubmitError::NoCorrection(_))), "{outcome:?}");
    }
    log.submit(&leader, statement(10)).await.unwrap();
    log.check().await;
}

trait UnderPolicy {
    fn under_policy(self, policy: u64) -> Self;
}

impl UnderPolicy for Submission {
    fn under_policy(mut self, policy: u64) -> Self {
        self.decided_under = merkle::LeafIndex::new(policy);
        self
    }
}
