//! The end of a log: whoever leads hears of it, the last head is signed, and nothing comes after it.

mod support;

use sequencer::Submission;
use sequencer::{Halt, Role, SubmitError};
use store::{
    Effect, FREEZE, Fault, Inbox, Lifecycle, LogReader, SignatureKind, SignatureStore, State, StoreMethod,
};
use support::{Log, Process, named, statement};

async fn until_frozen(process: &Process) {
    process.until(|role| *role == Role::Halted(Halt::Frozen)).await;
}

fn is_frozen<T: std::fmt::Debug>(outcome: &Result<T, SubmitError>) -> bool {
    matches!(outcome, Err(SubmitError::Halted(Halt::Frozen)))
}

#[tokio::test(start_paused = true)]
async fn whoever_leads_hears_that_the_log_is_frozen_and_so_does_whoever_follows() {
    let log = Log::with(3).await;
    let (leader, follower) = (log.start().await, log.start().await);
    log.memory.freeze("operator", 7).await.unwrap();
    until_frozen(&leader).await;
    until_frozen(&follower).await;
    for process in [&leader, &follower] {
        let refused = log.submit(process, statement(9)).await;
        assert!(is_frozen(&refused), "{refused:?}");
        assert_eq!(process.handle.published().unwrap().head.size.get(), 4, "what is signed is still shown");
    }
    assert_eq!(log.size().await, 4);
    log.check().await;
}

#[tokio::test(start_paused = true)]
async fn a_statement_that_meets_the_end_is_told_so_and_not_accepted() {
    let log = Log::with(1).await;
    let process = log.start().await;
    log.memory.freeze("operator", 7).await.unwrap();
    // Before the process looks by itself.
    let refused = log.submit_all(&process, (5..20).map(statement)).await;
    assert!(refused.iter().all(is_frozen), "{refused:?}");
    assert_eq!(log.memory.pending(10).await.unwrap(), []);
    assert_eq!(log.size().await, 2);
    log.check().await;
}

#[tokio::test(start_paused = true)]
async fn a_follower_that_meets_the_end_accepts_nothing() {
    let log = Log::with(1).await;
    let (_leader, follower) = (log.start().await, log.start().await);
    log.memory.freeze("operator", 7).await.unwrap();
    let refused = log.submit(&follower, statement(5)).await;
    assert!(is_frozen(&refused), "{refused:?}");
    assert_eq!(log.memory.pending(10).await.unwrap(), []);
}

#[tokio::test(start_paused = true)]
async fn the_last_head_is_signed_by_whoever_starts_after_the_end() {
    let log = Log::with(2).await;
    let process = log.start().await;
    log.signer.fail(1000);
    let _ = log.submit(&process, statement(9)).await;
    process.handle.kill();
    log.signer.fail(0);
    let frozen = log.memory.freeze("operator", 7).await.unwrap();
    assert_eq!(frozen.size().get(), 4);
    for _start in 0..2 {
        let process = log.start().await;
        assert_eq!(process.halt(), Some(Halt::Frozen));
        assert_eq!(process.handle.published().unwrap().head.size, frozen.size());
        assert!(is_frozen(&log.submit(&process, statement(10)).await));
        process.handle.stop().await;
    }
    let signed = log.memory.newest_signed(SignatureKind::Receipt).await.unwrap().unwrap();
    assert_eq!((signed.head.size, signed.head.root), (frozen.size(), frozen.root()));
    assert_eq!(log.memory.head().await.unwrap(), frozen, "not even the epoch moved");
    log.check().await;
}

#[tokio::test(start_paused = true)]
async fn an_unknown_commit_is_settled_by_the_end_of_the_log() {
    for (fault, happened) in [(Fault::AppliedWithoutAnswer, true), (Fault::NotApplied, false)] {
        let log = Log::with(2).await;
        let process = log.start().await;
        process.store.fail(StoreMethod::Commit, 1, fault);
        for nth in 1..=5 {
            process.store.fail(StoreMethod::TakeOver, nth, Fault::Refused);
        }
        let handle = process.handle.clone();
        let submitted = tokio::spawn(async move { handle.submit(named("last")).await });
        while process.store.calls(StoreMethod::TakeOver) < 2 {
            tokio::time::sleep(std::time::Duration::from_millis(1)).await;
        }
        let frozen = log.memory.freeze("operator", 7).await.unwrap();
        until_frozen(&process).await;
        let outcome = submitted.await.unwrap();
        match happened {
            true => assert_eq!(outcome.unwrap().index.get(), 3),
            false => assert!(is_frozen(&outcome), "{outcome:?}"),
        }
        assert_eq!(frozen.size().get(), 3 + u64::from(happened));
        assert_eq!(process.handle.published().unwrap().head.size, frozen.size());
        process.handle.stop().await;
        log.check().await;
    }
}

#[tokio::test(start_paused = true)]
async fn a_frozen_log_without_its_pin_is_not_signed() {
    let log = Log::with(2).await;
    log.memory.freeze("operator", 7).await.unwrap();
    let signed = log.signer.signed().len();
    let process = log.start_at(log.other_pin()).await;
    assert!(matches!(process.halt(), Some(Halt::NoPin { .. })), "{:?}", process.halt());
    assert_eq!(log.signer.signed().len(), signed);
}

/// The operator's statement that ends the log.
fn freeze() -> Submission {
    let mut freeze = named("freeze");
    freeze.entry.rule = FREEZE.into();
    freeze.effect = Some(Effect::Freeze);
    freeze
}

#[tokio::test(start_paused = true)]
async fn nothing_follows_the_entry_that_freezes_the_log() {
    let log = Log::with(2).await;
    let (leader, follower) = (log.start().await, log.start().await);
    let all = (5..9).map(statement).chain([freeze()]).chain((9..20).map(statement));
    let outcomes = log.submit_all(&leader, all).await;
    let placed = outcomes[4].as_ref().unwrap();
    assert_eq!(placed.index.get(), 7, "what came before it is before it");
    assert!(outcomes[..4].iter().all(Result::is_ok) && outcomes[5..].iter().all(is_frozen), "{outcomes:?}");
    assert_eq!(placed.head.as_ref().unwrap().head.size.get(), 8, "whoever froze it has its last head");
    assert!(matches!(log.memory.state().await.unwrap(), State::Frozen { .. }));
    until_frozen(&leader).await;
    until_frozen(&follower).await;
    for process in [leader, follower, log.start().await] {
        let refused = log.submit(&process, statement(30)).await;
        assert!(is_frozen(&refused), "{refused:?}");
        assert_eq!(process.handle.published().unwrap().head.size.get(), 8);
        process.handle.stop().await;
    }
    assert_eq!(log.size().await, 8);
    log.check().await;
}

#[tokio::test(start_paused = true)]
async fn a_freeze_of_which_nobody_heard_whether_it_happened_is_settled() {
    for (fault, happened) in [(Fault::AppliedWithoutAnswer, true), (Fault::NotApplied, true)] {
        let log = Log::with(2).await;
        let process = log.start().await;
        process.store.fail(StoreMethod::Commit, 1, fault);
        let outcome = log.submit(&process, freeze()).await;
        assert_eq!(outcome.is_ok(), happened, "{outcome:?}");
        until_frozen(&process).await;
        assert_eq!(process.handle.published().unwrap().head.size.get(), 4);
        process.handle.stop().await;
        log.check().await;
    }
}

#[tokio::test(start_paused = true)]
async fn a_freeze_is_accepted_by_a_follower_and_placed_by_the_leader() {
    let log = Log::with(2).await;
    let (leader, follower) = (log.start().await, log.start().await);
    let outcome = log.submit(&follower, freeze()).await;
    assert_eq!(outcome.unwrap().index.get(), 3);
    until_frozen(&leader).await;
    until_frozen(&follower).await;
    assert_eq!(log.size().await, 4);
    log.check().await;
}
