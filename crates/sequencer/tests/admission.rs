//! Who gets a place: duplicates, twins, guards, policies, times, and the queue's bound.

mod support;

use std::sync::Arc;
use std::time::Duration;

use async_trait::async_trait;
use merkle::LeafIndex;
use sequencer::{Halt, Limits, Redecide, Redecision, Submission, SubmitError};
use store::{Fault, Inbox, InboxItem, LogReader, StoreMethod};
use support::{But, Log, START, named, policy, statement};

#[tokio::test(start_paused = true)]
async fn the_same_statement_submitted_many_times_at_once_is_one_leaf() {
    let log = Log::with(0).await;
    let process = log.start().await;
    let same = (0..100).map(|_| statement(7)).chain((0..10).map(statement).skip(1));
    let outcomes = log.submit_all(&process, same).await;
    let first = outcomes[0].as_ref().unwrap().index;
    assert!(outcomes[..100].iter().all(|outcome| outcome.as_ref().unwrap().index == first));
    let new = outcomes[..100].iter().filter(|outcome| !outcome.as_ref().unwrap().already_there).count();
    assert_eq!(new, 1);
    let again = log.submit(&process, statement(7)).await.unwrap();
    assert!(again.already_there && again.path.is_none() && again.index == first);
    assert_eq!(log.size().await, 10);
    log.check().await;
}

#[tokio::test(start_paused = true)]
async fn a_batch_is_looked_up_only_where_the_commit_cannot_tell_or_after_a_known_statement() {
    let mut log = Log::with(1).await;
    log.limits.look_ups_after_known = 2;
    let process = log.start().await;
    let before = process.store.calls(StoreMethod::Find);
    let look_ups = || process.store.calls(StoreMethod::Find) - before;
    for n in 2..6 {
        log.submit(&process, statement(n)).await.unwrap();
    }
    assert_eq!(look_ups(), 0, "the commit would refuse a known one");
    let mut relying = statement(6);
    relying.relied_absent.push(statement(100).entry.digest);
    log.submit(&process, relying).await.unwrap();
    assert_eq!(look_ups(), 1, "a commit does not find what a decision relied on");
    let known = log.submit(&process, statement(3)).await.unwrap();
    assert!(known.already_there);
    assert_eq!(look_ups(), 2, "the commit was refused");
    for n in 7..12 {
        log.submit(&process, statement(n)).await.unwrap();
    }
    assert_eq!(look_ups(), 4, "others like it could have followed");
    log.check().await;
}

#[tokio::test(start_paused = true)]
async fn an_empty_log_takes_a_policy_and_nothing_else() {
    let log = Log::empty();
    let process = log.start().await;
    let refused = log.submit(&process, statement(1)).await;
    assert!(matches!(refused, Err(SubmitError::NoPolicy)), "{refused:?}");
    let placed = log.submit(&process, policy(0)).await.unwrap();
    assert_eq!(placed.index.get(), 0);
    assert_eq!(placed.path.as_deref(), Some(&[][..]), "the path of the only leaf is empty");
    log.submit(&process, statement(1)).await.unwrap();
    log.check().await;
}

#[tokio::test(start_paused = true)]
async fn a_policy_is_the_last_of_its_batch_and_later_ones_must_be_decided_under_it() {
    let log = Log::with(0).await;
    let process = log.start().await;
    let mut newer = named("a newer policy");
    newer.is_policy = true;
    let outcomes = log.submit_all(&process, [statement(1), newer, statement(2), statement(3)]).await;
    let index = outcomes[1].as_ref().unwrap().index;
    assert_eq!((index.get(), log.size().await), (2, 3), "the policy is the last of its batch");
    for outcome in &outcomes[2..] {
        let moved = matches!(outcome, Err(SubmitError::PolicyMoved { policy }) if *policy == index);
        assert!(moved, "{outcome:?}");
    }
    assert_eq!(process.handle.status().borrow().policy, index);
    assert_eq!(log.submit(&process, statement(2).under(2)).await.unwrap().index.get(), 3);
    process.handle.stop().await;
    let again = log.start().await;
    assert_eq!(again.handle.status().borrow().policy, index, "also after a restart");
    assert!(matches!(log.submit(&again, statement(3)).await, Err(SubmitError::PolicyMoved { .. })));
    log.check().await;
}

#[tokio::test(start_paused = true)]
async fn of_two_entries_with_one_guard_the_later_is_refused_naming_the_earlier() {
    let log = Log::with(0).await;
    let process = log.start().await;
    let rivals = (0..50).map(|n| statement(n + 1).guarding("successor of x"));
    let outcomes = log.submit_all(&process, rivals.chain([statement(90)])).await;
    let placed: Vec<_> = outcomes[..50].iter().filter_map(|outcome| outcome.as_ref().ok()).collect();
    assert_eq!(placed.len(), 1);
    let taken = placed[0].index;
    for outcome in outcomes[..50].iter().filter(|outcome| outcome.is_err()) {
        let culprit = matches!(outcome, Err(SubmitError::GuardTaken { index, .. }) if *index == taken);
        assert!(culprit, "{outcome:?}");
    }
    assert!(outcomes[50].is_ok(), "others of the batch are not held back");
    assert_eq!(log.size().await, 3);
    assert!(log.memory.heads(0, 10).await.unwrap().len() <= 4);
    log.check().await;
}

#[tokio::test(start_paused = true)]
async fn a_twin_is_refused_naming_the_registered_one_also_within_one_batch() {
    let log = Log::with(0).await;
    let process = log.start().await;
    let (low, high) = (named("low s"), named("high s"));
    let twins = [low.clone().with_twin(&high), high.clone().with_twin(&low)];
    let outcomes = log.submit_all(&process, twins.clone()).await;
    let registered = outcomes[0].as_ref().unwrap().index;
    for outcome in [outcomes[1].clone(), log.submit(&process, twins[1].clone()).await] {
        let names = matches!(
            outcome, Err(SubmitError::Twin { index, digest }) if index == registered && digest == low.entry.digest);
        assert!(names, "{outcome:?}");
    }
    assert_eq!(log.size().await, 2);
    log.check().await;
}

#[tokio::test(start_paused = true)]
async fn a_decision_that_relied_on_absence_goes_back_when_the_statement_is_there() {
    let log = Log::with(0).await;
    let process = log.start().await;
    let missing = statement(1);
    let relying = [missing.clone(), statement(2).relying_on_absence_of(&missing)];
    let outcomes = log.submit_all(&process, relying).await;
    assert!(outcomes[0].is_ok());
    let index = outcomes[0].as_ref().unwrap().index;
    let back = matches!(&outcomes[1], Err(SubmitError::RelyOnAbsent { index: found, .. }) if *found == index);
    assert!(back, "{outcomes:?}");
    let claims = [statement(4).guarding("a place"), statement(5).relying_on_nobody_guarding("a place")];
    let outcomes = log.submit_all(&process, claims.clone()).await;
    for outcome in [outcomes[1].clone(), log.submit(&process, claims[1].clone()).await] {
        let back = matches!(outcome, Err(SubmitError::RelyOnAbsent { index }) if index.get() == 2);
        assert!(back, "{outcome:?}");
    }
    assert!(log.submit(&process, statement(6).relying_on_nobody_guarding("another")).await.is_ok());
    let absent = statement(3).relying_on_absence_of(&statement(99));
    assert!(log.submit(&process, absent).await.is_ok());
    log.check().await;
}

#[tokio::test(start_paused = true)]
async fn an_entry_enters_only_a_batch_whose_time_lies_in_its_window() {
    let log = Log::with(0).await;
    let process = log.start().await;
    log.clock.pass(10);
    let at = START + 10;
    for (from, until, holds) in
        [(at, at, true), (0, at - 1, false), (at + 1, u64::MAX, false), (0, at, true), (at, u64::MAX, true)]
    {
        let outcome = log.submit(&process, named(&format!("{from} {until}")).valid(from, until)).await;
        assert_eq!(outcome.is_ok(), holds, "{outcome:?}");
        assert!(holds || matches!(outcome, Err(SubmitError::OutsideWindow { at: found, .. }) if found == at));
    }
}

#[tokio::test(start_paused = true)]
async fn a_log_gets_exactly_as_many_entries_as_the_decision_allows() {
    for bounded in [1, 5, 9] {
        let log = Log::with(0).await;
        let process = log.start().await;
        let largest = log.size().await + bounded;
        let outcomes = log.submit_all(&process, (0..9).map(|n| statement(n).up_to(largest))).await;
        let placed = outcomes.iter().filter(|outcome| outcome.is_ok()).count() as u64;
        assert_eq!((placed, log.size().await), (bounded, largest), "{outcomes:?}");
        let full = |outcome: &&Result<_, SubmitError>| match outcome {
            Err(SubmitError::LogFull { size, largest: told }) => {
                (size.get(), told.get()) == (largest, largest)
            }
            _ => false,
        };
        assert_eq!(outcomes.iter().filter(full).count() as u64, 9 - bounded, "{outcomes:?}");
        log.check().await;
    }
}

#[tokio::test(start_paused = true)]
async fn a_full_log_takes_what_has_no_bound_and_answers_what_it_has() {
    let log = Log::with(0).await;
    let process = log.start().await;
    let largest = log.size().await + 2;
    let mixed = [statement(1).up_to(largest), statement(2), statement(3), statement(4).up_to(largest)];
    let outcomes = log.submit_all(&process, mixed).await;
    assert!(outcomes[..3].iter().all(Result::is_ok), "{outcomes:?}");
    assert!(
        matches!(outcomes[3], Err(SubmitError::LogFull { .. })),
        "entries without a bound count: {outcomes:?}"
    );
    let next = Submission { is_policy: true, ..named("the next policy") };
    let policy = log.submit(&process, next).await.unwrap();
    let late = statement(5).up_to(largest);
    let moved = log.submit(&process, late.clone()).await;
    assert!(
        matches!(moved, Err(SubmitError::PolicyMoved { .. })),
        "the new policy may lift the bound: {moved:?}"
    );
    assert!(log.submit(&process, late.up_to(100).under(policy.index.get())).await.is_ok());
    log.check().await;
}

#[tokio::test(start_paused = true)]
async fn a_place_that_a_failed_commit_leaves_free_goes_to_the_next() {
    let log = Log::with(0).await;
    let process = log.start().await;
    let largest = log.size().await + 1;
    process.store.fail(StoreMethod::Commit, 1, Fault::NotApplied);
    let outcomes = log.submit_all(&process, (0..4).map(|n| statement(n).up_to(largest))).await;
    let placed = outcomes.iter().filter(|outcome| outcome.is_ok()).count();
    assert_eq!((placed, log.size().await), (1, largest), "{outcomes:?}");
    log.check().await;
}

#[tokio::test(start_paused = true)]
async fn a_clock_that_is_set_back_a_little_does_not_take_the_log_back() {
    let log = Log::with(0).await;
    let process = log.start().await;
    log.clock.pass(100);
    let first = log.submit(&process, statement(1)).await.unwrap().head.unwrap().head.at;
    log.clock.step(-30);
    let second = log.submit(&process, statement(2)).await.unwrap().head.unwrap().head.at;
    assert_eq!((first, second), (START + 100, START + 100));
    log.check().await;
}

#[tokio::test(start_paused = true)]
async fn a_clock_that_jumps_stops_sequencing_with_a_named_error() {
    for step in [-3600, -86_400, 365 * 86_400, 61, -61] {
        let log = Log::with(1).await;
        let process = log.start().await;
        log.clock.pass(5);
        log.clock.step(step);
        let outcome = log.submit(&process, statement(10)).await;
        let Err(SubmitError::Halted(halt @ Halt::ClockStepped { .. })) = &outcome else {
            panic!("{outcome:?}");
        };
        assert!(halt.to_string().contains(&format!("{} s off", step.abs())), "{halt}");
        assert_eq!(log.size().await, 2);
        log.check().await;
    }
}

#[tokio::test(start_paused = true)]
async fn a_clock_that_is_frozen_or_steps_again_and_again_is_noticed() {
    for step in [-1, 1] {
        let log = Log::with(1).await;
        let process = log.start().await;
        let mut stopped_at = None;
        for second in 0..90 {
            log.clock.pass(1);
            log.clock.step(step);
            if log.submit(&process, statement(10 + second)).await.is_err() {
                stopped_at = Some(second);
                break;
            }
        }
        assert_eq!(stopped_at, Some(60));
        log.check().await;
    }
}

#[tokio::test(start_paused = true)]
async fn honest_drift_never_adds_up() {
    let log = Log::with(1).await;
    let process = log.start().await;
    for tenth in 0..200 {
        log.clock.pass(3600);
        log.clock.step(if tenth % 2 == 0 { 20 } else { 19 });
        log.submit(&process, statement(10 + tenth)).await.unwrap();
    }
}

#[tokio::test(start_paused = true)]
async fn a_clock_far_behind_the_newest_entry_is_refused_at_start_and_a_little_is_not() {
    let log = Log::with(1).await;
    log.clock.step(-61);
    let halt = log.start().await.halt();
    assert!(matches!(halt, Some(Halt::ClockBehind { .. })), "{halt:?}");
    log.clock.step(1);
    let process = log.start().await;
    let placed = log.submit(&process, statement(10)).await.unwrap();
    assert_eq!(placed.head.unwrap().head.at, START);
}

#[tokio::test(start_paused = true)]
async fn bytes_that_do_not_hash_to_their_digest_are_never_stored() {
    let log = Log::with(0).await;
    let process = log.start().await;
    let mut flipped = statement(1);
    flipped.entry.statement = "statement one".into();
    let outcomes = log.submit_all(&process, [flipped, statement(2)]).await;
    assert!(matches!(outcomes[0], Err(SubmitError::DigestMismatch { .. })));
    assert!(outcomes[1].is_ok());
    assert_eq!(log.size().await, 2);
    log.check().await;
}

#[tokio::test(start_paused = true)]
async fn a_full_queue_says_when_to_come_back_and_loses_nothing_it_took() {
    for (entries, bytes) in [(100, 64 << 20), (16_384, 13 * 100 + 200 * 8)] {
        let mut log = Log::with(0).await;
        log.limits = Limits { queue_entries: entries, queue_bytes: bytes, ..log.limits };
        let process = log.start().await;
        let outcomes = log.submit_all(&process, (1000..1900).map(statement)).await;
        let (placed, full): (Vec<_>, Vec<_>) = outcomes.into_iter().partition(Result::is_ok);
        assert!(!placed.is_empty() && !full.is_empty());
        let retry = Duration::from_secs(1);
        let told =
            |outcome| matches!(outcome, Err(SubmitError::QueueFull { retry_after }) if retry_after == retry);
        assert!(full.into_iter().all(told));
        assert_eq!(log.size().await, 1 + placed.len() as u64);
        assert_eq!(process.handle.queue(), (0, 0));
        log.check().await;
    }
}

#[tokio::test(start_paused = true)]
async fn no_batch_is_larger_than_its_bounds() {
    let mut log = Log::with(0).await;
    log.limits = Limits { batch_entries: 7, batch_bytes: 1000, ..log.limits };
    let process = log.start().await;
    let mut large = named(&"x".repeat(5000));
    large.entry.rule = "large".into();
    let queue = (0..40).map(|n| statement(n + 1)).chain([large]).chain((50..60).map(statement));
    let outcomes = log.submit_all(&process, queue).await;
    assert!(outcomes.iter().all(Result::is_ok));
    let sizes: Vec<u64> =
        log.memory.heads(0, 1000).await.unwrap().iter().map(|head| head.size.get()).collect();
    assert!(sizes.windows(2).all(|pair| pair[1] - pair[0] <= 7), "{sizes:?}");
    log.check().await;
}

#[tokio::test(start_paused = true)]
async fn what_queued_during_a_commit_is_one_batch() {
    let log = Log::with(0).await;
    let process = log.start().await;
    let before = log.memory.heads(0, 1000).await.unwrap().len();
    log.submit_all(&process, (1..=4000).map(statement)).await;
    let batches = log.memory.heads(0, 1000).await.unwrap().len() - before;
    assert!(batches <= 3, "{batches} batches");
    log.check().await;
}

#[tokio::test(start_paused = true)]
async fn an_entry_that_appears_behind_the_look_up_is_found_by_the_second_one() {
    let log = Log::with(0).await;
    let process = log.start().await;
    // The twin's digest is in the log, the own one is not, and only a full look-up asks for it.
    let registered = named("registered");
    log.submit(&process, registered.clone()).await.unwrap();
    let outcomes = log.submit_all(&process, [named("new").with_twin(&registered), statement(5)]).await;
    assert!(matches!(outcomes[0], Err(SubmitError::Twin { .. })), "{outcomes:?}");
    assert!(outcomes[1].is_ok());
    assert_eq!(process.store.calls(StoreMethod::Commit), 3);
    log.check().await;
}

#[tokio::test(start_paused = true)]
async fn a_submission_that_takes_too_long_is_kept_in_the_inbox_and_placed_later() {
    let mut log = Log::with(0).await;
    log.limits.wait_leading = Duration::from_millis(200);
    let process = log.start().await;
    for nth in 1..=12 {
        process.store.fail(StoreMethod::TakeOver, nth, Fault::Refused);
    }
    process.store.fail(StoreMethod::Commit, 1, Fault::NotApplied);
    let outcome = log.submit(&process, statement(1)).await;
    assert!(matches!(outcome, Err(SubmitError::Accepted)), "{outcome:?}");
    assert_eq!(log.size().await, 1, "not yet placed");
    let placed = log.insist(&process, statement(1)).await;
    assert_eq!(placed.index.get(), 1);
    tokio::time::sleep(Duration::from_secs(5)).await;
    assert!(log.memory.pending(10).await.unwrap().is_empty(), "the inbox is settled");
    assert_eq!(log.size().await, 2);
    log.check().await;
}

/// Never comes to an answer.
struct Undecided;

#[async_trait]
impl Redecide for Undecided {
    async fn redecide(&self, _: Submission) -> Redecision {
        Redecision::Later
    }
}

#[tokio::test(start_paused = true)]
async fn what_is_finished_leaves_the_inbox_though_something_waits_in_it_all_the_time() {
    let mut log = Log::with(0).await;
    log.redecide = Arc::new(Undecided);
    let stuck = Submission { decided_under: LeafIndex::new(7), ..statement(1) };
    for submission in [stuck, statement(2)] {
        let item = InboxItem { digest: submission.entry.digest, submission: submission.encode() };
        log.memory.enqueue(&item).await.unwrap();
    }
    let process = log.start().await;
    tokio::time::sleep(Duration::from_secs(30)).await;
    let waiting = log.memory.pending(10).await.unwrap();
    assert_eq!(waiting.iter().map(|item| item.digest).collect::<Vec<_>>(), [statement(1).entry.digest]);
    assert_eq!(log.size().await, 2, "the other has its place");
    assert_eq!(log.memory.trim_inbox(10).await.unwrap(), 0, "and is no longer in the inbox");
    assert!(process.store.calls(StoreMethod::TrimInbox) <= 3, "once in a while is enough");
}
