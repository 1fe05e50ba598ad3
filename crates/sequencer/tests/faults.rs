//! Every write can fail, or succeed unheard; whatever happens, one history is signed.

mod support;

use std::sync::atomic::Ordering;
use std::time::Duration;

use sequencer::{Halt, Role, SubmitError};
use store::{Fault, LogReader, SignatureKind, SignatureStore, StoreMethod};
use support::{Log, policy, statement};

const FAULTS: [Fault; 3] = [Fault::Refused, Fault::NotApplied, Fault::AppliedWithoutAnswer];

#[tokio::test(start_paused = true)]
async fn after_a_commit_of_unknown_outcome_no_second_history_is_signed() {
    for fault in FAULTS {
        let log = Log::with(253).await;
        let process = log.start().await;
        process.store.fail(StoreMethod::Commit, 1, fault);
        let outcomes = log.submit_all(&process, (1000..1003).map(statement)).await;
        assert!(outcomes.iter().all(Result::is_ok), "{fault:?}: {outcomes:?}");
        process.handle.kill();
        let process = log.start().await;
        log.insist(&process, statement(2000)).await;
        log.check().await;
        assert_eq!(log.size().await, 254 + 3 + 1);
    }
}

#[tokio::test(start_paused = true)]
async fn nothing_is_signed_until_an_unknown_commit_is_settled() {
    let log = Log::with(3).await;
    let process = log.start().await;
    let signed = log.signer.signed().len();
    process.store.fail(StoreMethod::Commit, 1, Fault::AppliedWithoutAnswer);
    for nth in 1..=5 {
        process.store.fail(StoreMethod::TakeOver, nth, Fault::Refused);
    }
    let outcome = {
        let submitted = log.submit(&process, statement(10));
        tokio::pin!(submitted);
        assert!(tokio::time::timeout(Duration::from_millis(20), &mut submitted).await.is_err());
        assert_eq!(log.signer.signed().len(), signed, "signed before it was settled");
        submitted.await
    };
    assert_eq!(outcome.unwrap().index.get(), 4);
    assert_eq!(log.signer.signed().len(), signed + 1);
    assert_eq!(log.counts.unknown.load(Ordering::SeqCst), 1);
    log.check().await;
}

#[tokio::test(start_paused = true)]
async fn r4_r5_any_one_call_may_fail_before_or_after_its_effect() {
    for fault in FAULTS {
        for nth in 1..40 {
            let log = Log::with(5).await;
            let store = store::FailingStore::new(log.memory.clone());
            store.fail_any(nth, fault);
            let Ok(process) = log.start_over(store.clone(), log.pin()).await else {
                continue; // it could not be opened, and says so
            };
            for n in 10..13 {
                log.insist(&process, statement(n)).await;
            }
            process.handle.stop().await;
            let again = log.start().await;
            log.insist(&again, statement(20)).await;
            assert_eq!(log.size().await, 6 + 3 + 1, "{fault:?} at call {nth}");
            log.check().await;
        }
    }
}

#[tokio::test(start_paused = true)]
async fn r6_any_two_calls_may_fail_in_one_round_and_the_restart_as_well() {
    for first in 1..8 {
        for second in 1..8 {
            let log = Log::with(1).await;
            let process = log.start().await;
            process.store.fail_any(first, FAULTS[second % 3]);
            process.store.fail_any(second as u64, FAULTS[first as usize % 3]);
            let _ = log.submit(&process, statement(10)).await;
            process.handle.kill();
            let store = store::FailingStore::new(log.memory.clone());
            store.fail_any(first, Fault::Refused);
            if let Ok(broken) = log.start_over(store, log.pin()).await {
                broken.handle.kill();
                tokio::task::yield_now().await;
            }
            let again = log.start().await;
            again.until_leading().await;
            log.insist(&again, statement(10)).await;
            log.check().await;
            assert_eq!(log.size().await, 3);
        }
    }
}

#[tokio::test(start_paused = true)]
async fn a_batch_that_certainly_did_not_happen_is_sent_again_and_then_refused() {
    let log = Log::with(0).await;
    let process = log.start().await;
    process.store.fail(StoreMethod::Commit, 1, Fault::Refused);
    process.store.fail(StoreMethod::Commit, 2, Fault::Refused);
    assert!(log.submit(&process, statement(1)).await.is_ok());
    for nth in 1..=4 {
        process.store.fail(StoreMethod::Commit, nth, Fault::Refused);
    }
    let refused = log.submit(&process, statement(2)).await;
    assert!(matches!(refused, Err(SubmitError::Store(_))), "{refused:?}");
    assert!(matches!(process.role(), Role::Leading { .. }));
    assert!(log.submit(&process, statement(2)).await.is_ok());
    log.check().await;
}

#[tokio::test(start_paused = true)]
async fn a_database_that_goes_away_and_comes_back_needs_no_hands() {
    let log = Log::with(2).await;
    let process = log.start().await;
    process.store.break_down(Fault::Refused);
    assert!(log.submit(&process, statement(10)).await.is_err());
    process.store.mend();
    log.insist(&process, statement(10)).await;
    log.check().await;
}

#[tokio::test(start_paused = true)]
async fn signatures_that_could_not_be_kept_are_kept_later_and_in_order() {
    let log = Log::with(0).await;
    let process = log.start().await;
    for nth in 1..=3 {
        process.store.fail(StoreMethod::KeepSignatures, nth, Fault::Refused);
    }
    for n in 1..=3 {
        log.submit(&process, statement(n)).await.unwrap();
    }
    process.handle.stop().await;
    assert_eq!(log.counts.not_kept.load(Ordering::SeqCst), 3);
    let kept = log.memory.signatures(None, 100).await.unwrap();
    assert_eq!(kept.len(), 2 * 4, "{kept:?}");
}

#[tokio::test(start_paused = true)]
async fn a_head_that_was_committed_but_not_signed_is_signed_at_the_next_start() {
    let log = Log::with(1).await;
    let process = log.start().await;
    log.signer.fail(u64::MAX);
    log.clock.pass(7);
    let outcome = log.submit(&process, statement(10)).await;
    assert!(matches!(outcome, Err(SubmitError::Halted(Halt::Signer { .. }))), "{outcome:?}");
    process.handle.kill();
    log.signer.fail(0);
    log.clock.pass(100);
    let again = log.start().await;
    let published = again.handle.published().unwrap();
    assert_eq!(published.head.size.get(), 3);
    assert_eq!(published.head.at, support::START + 7, "the head keeps the time of its commit");
    assert!(log.submit(&again, statement(10)).await.unwrap().already_there);
    log.check().await;
}

#[tokio::test(start_paused = true)]
async fn a_signer_that_fails_for_a_moment_is_asked_again() {
    let log = Log::with(1).await;
    let process = log.start().await;
    log.signer.fail(2);
    assert!(log.submit(&process, statement(10)).await.is_ok());
    log.check().await;
}

#[tokio::test(start_paused = true)]
async fn one_signature_of_each_kind_is_made_for_each_batch_also_across_restarts() {
    let log = Log::empty();
    for restart in 0..3 {
        let process = log.start().await;
        log.insist(&process, policy(0)).await;
        log.submit_all(&process, (0..50).map(|n| statement(100 * restart + n))).await;
        process.handle.stop().await;
    }
    let batches = log.memory.heads(0, 1000).await.unwrap().len();
    assert_eq!(log.signer.signed().len(), batches);
    assert_eq!(log.counts.signatures.load(Ordering::SeqCst), 2 * batches as u64);
    assert_eq!(log.counts.batches.load(Ordering::SeqCst), batches as u64);
    assert_eq!(log.counts.entries.load(Ordering::SeqCst), log.size().await);
    let newest = log.memory.newest_signed(SignatureKind::Checkpoint).await.unwrap().unwrap();
    assert_eq!(newest.head.size.get(), log.size().await);
    log.check().await;
}
