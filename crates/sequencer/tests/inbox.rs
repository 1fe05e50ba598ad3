//! Every statement in the inbox reaches an outcome, and none holds up another.
#![allow(clippy::unwrap_used)]

mod support;

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use async_trait::async_trait;
use sequencer::{
    ClockOpinion, Confirmation, Halt, Now, Redecide, Redecision, Role, Submission, SubmitError, Witnesses,
};
use store::{Fault, Inbox, InboxBounds, InboxItem, LogReader, Progress, StoreMethod};
use support::{But, Log, START, named, policy, statement};

/// Answers what it was made with, and counts how often it was asked.
struct Judge {
    answer: fn(Submission) -> Redecision,
    asked: AtomicU64,
}

impl Judge {
    fn who_answers(answer: fn(Submission) -> Redecision) -> Arc<Self> {
        Arc::new(Self { answer, asked: AtomicU64::new(0) })
    }

    fn asked(&self) -> u64 {
        self.asked.load(Ordering::SeqCst)
    }
}

#[async_trait]
impl Redecide for Judge {
    async fn redecide(&self, submission: Submission) -> Redecision {
        self.asked.fetch_add(1, Ordering::SeqCst);
        (self.answer)(submission)
    }
}

/// Witnesses of which only the clocks are known, which agree with that of this host.
struct AgreeingClocks;

#[async_trait]
impl Witnesses for AgreeingClocks {
    async fn confirm(&self, _patience: Duration) -> Confirmation {
        Confirmation::Unknown("only the clocks are known".into())
    }

    async fn contradicted(&self) -> Halt {
        std::future::pending().await
    }

    fn clocks(&self, _now: Now) -> Vec<ClockOpinion> {
        vec![ClockOpinion { by: "a witness".into(), ahead: 0 }]
    }
}

fn undecided(_: Submission) -> Redecision {
    Redecision::Later
}

/// Under the newest policy, with the window that it had.
fn same_window(submission: Submission) -> Redecision {
    Redecision::Admit(Box::new(submission.under(1)))
}

fn unchanged(submission: Submission) -> Redecision {
    Redecision::Admit(Box::new(submission))
}

async fn enqueue(log: &Log, submission: &Submission) {
    let item = InboxItem { digest: submission.entry.digest, submission: submission.encode() };
    log.memory.enqueue(&item).await.unwrap();
}

async fn progress(log: &Log, submission: &Submission) -> Option<Progress> {
    log.memory.progress(&submission.entry.digest).await.unwrap()
}

async fn seconds(seconds: u64) {
    tokio::time::sleep(Duration::from_secs(seconds)).await;
}

#[tokio::test(start_paused = true)]
async fn r36_a_statement_in_the_inbox_whose_window_is_closed_is_refused_once_and_for_good() {
    let mut log = Log::with(0).await;
    let judge = Judge::who_answers(unchanged);
    log.redecide = judge.clone();
    let past = statement(1).valid(0, START - 1);
    let future = statement(2).valid(START + 3600, u64::MAX);
    let never = statement(3).valid(START + 1, START - 1);
    for submission in [&past, &future, &never] {
        enqueue(&log, submission).await;
    }
    let process = log.start().await;
    seconds(2).await;
    for submission in [&past, &future, &never] {
        let Some(Progress::Failed(why)) = progress(&log, submission).await else {
            panic!("{:?}", progress(&log, submission).await);
        };
        assert!(why.contains(&format!("the log's time is {START}")), "{why}");
    }
    assert_eq!((judge.asked(), log.size().await), (0, 1));
    assert_eq!(process.store.calls(StoreMethod::Refuse), 3);
    assert!(log.submit(&process, statement(4)).await.is_ok());
    log.check().await;
}

#[tokio::test(start_paused = true)]
async fn of_statements_that_were_refused_the_newest_reasons_are_kept() {
    let mut log = Log::with(0).await;
    log.limits.inbox_failures = 2;
    let closed: Vec<_> = (1..=5).map(|n| statement(n).valid(0, START - 1)).collect();
    for submission in &closed {
        enqueue(&log, submission).await;
    }
    let process = log.start().await;
    seconds(60).await;
    let mut kept = 0;
    for submission in &closed {
        match progress(&log, submission).await {
            Some(Progress::Failed(_)) => kept += 1,
            other => assert_eq!(other, None),
        }
    }
    assert_eq!((kept, log.memory.inbox_use().await.unwrap().rows), (2, 0));
    assert!(log.submit(&process, statement(6)).await.is_ok());
    log.check().await;
}

#[tokio::test(start_paused = true)]
async fn r36_a_window_that_opens_within_the_tolerance_of_clocks_is_waited_for() {
    let log = Log::with(0).await;
    let soon = statement(1).valid(START + 30, u64::MAX);
    enqueue(&log, &soon).await;
    let process = log.start().await;
    seconds(20).await;
    assert_eq!(progress(&log, &soon).await, Some(Progress::Pending));
    assert_eq!(process.handle.delay(&soon.entry.digest).unwrap().attempts, 1);
    log.clock.pass(30);
    seconds(15).await;
    assert!(matches!(progress(&log, &soon).await, Some(Progress::Registered(_))));
    log.check().await;
}

#[tokio::test(start_paused = true)]
async fn r36_deciding_again_with_the_same_closed_window_ends() {
    let mut log = Log::with(0).await;
    let judge = Judge::who_answers(same_window);
    log.redecide = judge.clone();
    let closed = statement(1).valid(0, START - 1);
    enqueue(&log, &closed).await;
    let process = log.start().await;
    log.submit(&process, policy(0)).await.unwrap();
    let old = statement(2).valid(0, START - 1);
    enqueue(&log, &old).await;
    seconds(2).await;
    for submission in [&closed, &old] {
        assert!(matches!(progress(&log, submission).await, Some(Progress::Failed(_))));
    }
    assert!(judge.asked() <= 2, "{}", judge.asked());
}

#[tokio::test(start_paused = true)]
async fn a_decision_that_stays_under_an_old_policy_is_not_repeated_without_pause() {
    let mut log = Log::with(0).await;
    let judge = Judge::who_answers(unchanged);
    log.redecide = judge.clone();
    let stale = Submission { decided_under: merkle::LeafIndex::new(7), ..statement(1) };
    enqueue(&log, &stale).await;
    let process = log.start().await;
    seconds(600).await;
    assert!((10..30).contains(&judge.asked()), "{}", judge.asked());
    let delay = process.handle.delay(&stale.entry.digest).unwrap();
    assert!(delay.next <= Duration::from_secs(60) && delay.why.contains("policy"), "{delay:?}");
}

#[tokio::test(start_paused = true)]
async fn undecidable_items_hold_up_no_others_and_are_asked_about_less_and_less() {
    const STUCK: u64 = 1500;
    let mut log = Log::with(0).await;
    let judge = Judge::who_answers(undecided);
    log.redecide = judge.clone();
    for n in 0..STUCK {
        let stuck = named(&format!("stuck {n}"));
        enqueue(&log, &Submission { decided_under: merkle::LeafIndex::new(7), ..stuck }).await;
    }
    enqueue(&log, &statement(1)).await;
    let process = log.start().await;
    seconds(1).await;
    assert!(matches!(progress(&log, &statement(1)).await, Some(Progress::Registered(_))));
    assert_eq!(judge.asked(), STUCK);
    seconds(300).await;
    enqueue(&log, &statement(2)).await;
    seconds(1).await;
    assert!(matches!(progress(&log, &statement(2)).await, Some(Progress::Registered(_))));
    assert!(judge.asked() < 15 * STUCK, "{}", judge.asked());
    assert_eq!(log.memory.inbox_use().await.unwrap().rows, STUCK);
    let digest = named("stuck 0").entry.digest;
    assert!(process.handle.delay(&digest).unwrap().attempts >= 8);
    log.memory.refuse(&digest, "by the operator").await.unwrap();
    seconds(120).await;
    assert_eq!(process.handle.delay(&digest), None, "an item with an outcome is forgotten");
    log.check().await;
}

#[tokio::test(start_paused = true)]
async fn a_backlog_is_placed_within_the_budget_of_memory_and_each_statement_is_read_once() {
    const ITEMS: u64 = 100;
    let mut log = Log::with(0).await;
    log.limits.inbox_held_bytes = 12_000;
    let large = |n: u64| named(&format!("{n:01000}"));
    let larger_than_the_budget = named(&"x".repeat(50_000));
    for n in 0..ITEMS {
        enqueue(&log, &large(n)).await;
        if n == ITEMS / 2 {
            enqueue(&log, &larger_than_the_budget).await;
        }
    }
    let before = log.memory.heads(0, usize::MAX).await.unwrap().len();
    let process = log.start().await;
    seconds(30).await;
    assert_eq!(log.memory.inbox_use().await.unwrap().rows, 0);
    assert_eq!(log.size().await, ITEMS + 2);
    let heads = log.memory.heads(0, usize::MAX).await.unwrap();
    let sizes: Vec<u64> = heads[before - 1..].iter().map(|head| head.size.get()).collect();
    let most = sizes.windows(2).map(|two| two[1] - two[0]).max().unwrap();
    assert!(most <= 12, "{most} statements of a kilobyte were held at once");
    assert!(process.store.calls(StoreMethod::Submissions) <= ITEMS / 10 + 2 * ITEMS / most + 10);
    log.check().await;
}

#[tokio::test(start_paused = true)]
async fn a_refusal_that_cannot_be_written_down_is_written_down_later() {
    let log = Log::with(0).await;
    let past = statement(1).valid(0, START - 1);
    let process = log.start().await;
    process.store.fail(StoreMethod::Refuse, 1, Fault::Refused);
    process.store.fail(StoreMethod::Refuse, 2, Fault::AppliedWithoutAnswer);
    enqueue(&log, &past).await;
    seconds(10).await;
    assert!(process.store.faults_left() == 0);
    assert!(matches!(progress(&log, &past).await, Some(Progress::Failed(_))));
    assert_eq!(process.handle.delay(&past.entry.digest), None);
}

#[tokio::test(start_paused = true)]
async fn what_a_failed_commit_left_in_the_inbox_is_placed_soon_after_the_database_is_back() {
    let log = Log::with(0).await;
    let process = log.start().await;
    for nth in 1..=40 {
        process.store.fail(StoreMethod::Commit, nth, Fault::Refused);
    }
    for n in 1..=5 {
        enqueue(&log, &statement(n)).await;
    }
    seconds(120).await;
    process.store.heal();
    seconds(5).await;
    assert_eq!(log.memory.inbox_use().await.unwrap().rows, 0);
    assert_eq!(log.size().await, 6);
    log.check().await;
}

#[tokio::test(start_paused = true)]
async fn r36_a_closed_window_is_refused_at_the_door_of_leader_and_follower_and_nothing_is_kept() {
    let log = Log::with(0).await;
    let (leader, follower) = (log.start().await, log.start().await);
    log.clock.pass(10);
    let now = START + 10;
    for process in [&leader, &follower] {
        for (from, until) in [(0, now - 1), (now + 1, u64::MAX)] {
            let outcome = log.submit(process, statement(1).valid(from, until)).await;
            let at_the_door = matches!(outcome, Err(SubmitError::OutsideWindow { at, .. }) if at == now);
            assert!(at_the_door, "{outcome:?}");
        }
        assert_eq!(process.store.calls(StoreMethod::Enqueue), 0);
    }
    assert!(log.submit(&follower, statement(1).valid(now, now)).await.is_ok());
    assert_eq!(log.memory.inbox_use().await.unwrap().rows, 0);
    log.check().await;
}

#[tokio::test(start_paused = true)]
async fn a_full_log_refuses_at_the_door_of_leader_and_follower_and_keeps_nothing() {
    let log = Log::with(2).await;
    let (leader, follower) = (log.start().await, log.start().await);
    seconds(10).await;
    let size = log.size().await;
    for process in [&leader, &follower] {
        let outcome = log.submit(process, statement(9).up_to(size)).await;
        assert!(matches!(outcome, Err(SubmitError::LogFull { .. })), "{outcome:?}");
        assert_eq!(process.store.calls(StoreMethod::Enqueue), 0);
    }
    assert!(log.submit(&follower, statement(9).up_to(size + 1)).await.is_ok());
    log.check().await;
}

#[tokio::test(start_paused = true)]
async fn what_waits_in_the_inbox_of_a_log_that_fills_up_is_refused_for_good() {
    let log = Log::with(0).await;
    let largest = log.size().await + 3;
    let waiting: Vec<_> = (0..8).map(|n| statement(n).up_to(largest)).collect();
    for submission in &waiting {
        enqueue(&log, submission).await;
    }
    let process = log.start().await;
    seconds(30).await;
    let mut refused = 0;
    for submission in &waiting {
        match progress(&log, submission).await {
            Some(Progress::Failed(why)) => {
                assert!(why.contains(&format!("the log has {largest} entries")), "{why}");
                refused += 1;
            }
            other => assert!(!matches!(other, Some(Progress::Pending)), "{other:?}"),
        }
        assert_eq!(process.handle.delay(&submission.entry.digest), None);
    }
    assert_eq!((refused, log.size().await), (5, largest));
    log.check().await;
}

#[tokio::test(start_paused = true)]
async fn a_follower_whose_clock_was_set_refuses_nothing_by_it() {
    let log = Log::with(0).await;
    let leader = log.start().await;
    let follower = log.start().await;
    log.clock.step(3600);
    let outcome = log.submit(&follower, statement(1).valid(0, START + 60)).await;
    assert!(!matches!(outcome, Err(SubmitError::OutsideWindow { .. })), "{outcome:?}");
    drop(leader);
}

#[tokio::test(start_paused = true)]
async fn a_follower_whose_clock_was_set_refuses_by_it_again_once_other_clocks_agree() {
    let mut log = Log::with(0).await;
    log.witnesses = Arc::new(AgreeingClocks);
    let leader = log.start().await;
    let follower = log.start().await;
    seconds(2).await;
    log.clock.step(3600);
    seconds(2).await;
    let outcome = log.submit(&follower, statement(1).valid(0, START + 60)).await;
    let at_the_door = matches!(outcome, Err(SubmitError::OutsideWindow { at, .. }) if at == START + 3600);
    assert!(at_the_door, "{outcome:?}");
    assert_eq!((follower.role(), follower.store.calls(StoreMethod::Enqueue)), (Role::Following, 0));
    drop(leader);
}

#[tokio::test(start_paused = true)]
async fn a_window_that_closes_while_the_leader_is_stuck_ends_in_a_recorded_refusal() {
    let mut log = Log::with(0).await;
    log.limits.wait_leading = Duration::from_millis(200);
    let process = log.start().await;
    process.store.fail(StoreMethod::Commit, 1, Fault::NotApplied);
    for nth in 1..=12 {
        process.store.fail(StoreMethod::TakeOver, nth, Fault::Refused);
    }
    let other = process.handle.clone();
    let stuck = tokio::spawn(async move { other.submit(statement(1)).await });
    tokio::task::yield_now().await;
    let closing = statement(2).valid(0, START + 5);
    let outcome = log.submit(&process, closing.clone()).await;
    assert!(matches!(outcome, Err(SubmitError::Accepted)), "{outcome:?}");
    log.clock.pass(10);
    seconds(60).await;
    assert!(matches!(progress(&log, &closing).await, Some(Progress::Failed(_))));
    assert!(matches!(stuck.await.unwrap(), Err(SubmitError::Accepted)));
    assert_eq!(log.size().await, 2, "the other one is placed");
    log.check().await;
}

#[tokio::test(start_paused = true)]
async fn r57_beyond_its_bounds_the_inbox_turns_statements_away_per_issuer_first() {
    let mut log = Log::with(0).await;
    log.limits.lease_poll = Duration::from_secs(3600);
    log.limits.inbox = InboxBounds { rows: 5, issuer_rows: 3, ..InboxBounds::NONE };
    let leader = log.start().await;
    let follower = log.start().await;
    leader.handle.kill();
    let submit = async |n: u64, issuer: &str| follower.handle.submit_for(issuer, statement(n)).await;
    for n in 1..=3 {
        assert!(matches!(submit(n, "greedy").await, Err(SubmitError::Accepted)));
    }
    let outcome = submit(4, "greedy").await;
    assert!(matches!(outcome, Err(SubmitError::InboxFull { issuer_only: true, .. })), "{outcome:?}");
    assert!(matches!(submit(1, "greedy").await, Err(SubmitError::Accepted)), "it is there already");
    for n in 5..=6 {
        assert!(matches!(submit(n, "honest").await, Err(SubmitError::Accepted)));
    }
    let outcome = submit(7, "third").await;
    assert!(matches!(outcome, Err(SubmitError::InboxFull { issuer_only: false, .. })), "{outcome:?}");
    let third = log.start().await;
    third.until_leading().await;
    seconds(15).await;
    assert_eq!(log.size().await, 6);
    assert!(!matches!(submit(7, "third").await, Err(SubmitError::InboxFull { .. })));
    log.check().await;
}
