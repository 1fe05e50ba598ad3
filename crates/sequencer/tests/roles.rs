//! Two processes over one database: one leads, the other hands over and takes over.

mod support;

use std::sync::Arc;
use std::time::Duration;

use async_trait::async_trait;
use merkle::{LeafIndex, TreeSize};
use sequencer::{Halt, Redecide, Redecision, Role, Submission, SubmitError};
use store::{Fault, GuardKey, Inbox, InboxItem, LogReader, LogWriter, Progress, StoreMethod};
use support::{But, Log, ORIGIN, START, named, policy, statement};

#[tokio::test(start_paused = true)]
async fn of_two_processes_one_leads_and_the_other_gets_places_through_the_inbox() {
    let log = Log::with(0).await;
    let leader = log.start().await;
    let follower = log.start().await;
    assert!(matches!(leader.role(), Role::Leading { .. }));
    assert_eq!(follower.role(), Role::Following);
    let places = log.submit_all(&follower, (1..=20).map(statement)).await;
    assert!(places.iter().all(Result::is_ok), "{places:?}");
    log.submit_all(&leader, (21..=40).map(statement)).await;
    assert_eq!(log.size().await, 41);
    assert_eq!(follower.store.calls(StoreMethod::Commit), 0);
    assert!(log.memory.pending(10).await.unwrap().is_empty());
    log.check().await;
}

#[tokio::test(start_paused = true)]
async fn one_statement_submitted_at_both_processes_is_one_leaf() {
    let log = Log::with(0).await;
    let (leader, follower) = (log.start().await, log.start().await);
    for n in 1..=10 {
        let (here, there) =
            tokio::join!(log.submit(&leader, statement(n)), log.submit(&follower, statement(n)));
        assert_eq!(here.unwrap().index, there.unwrap().index);
    }
    assert_eq!(log.size().await, 11);
    log.check().await;
}

#[tokio::test(start_paused = true)]
async fn when_the_leader_dies_the_follower_takes_over_and_places_what_waits() {
    let log = Log::with(0).await;
    let leader = log.start().await;
    let follower = log.start().await;
    log.submit(&leader, statement(1)).await.unwrap();
    leader.handle.kill();
    let outcome = log.submit(&follower, statement(2)).await;
    assert!(matches!(outcome, Ok(_) | Err(SubmitError::Accepted)), "{outcome:?}");
    follower.until_leading().await;
    assert_eq!(log.insist(&follower, statement(2)).await.index.get(), 2);
    log.check().await;
}

#[tokio::test(start_paused = true)]
async fn without_a_leader_a_follower_accepts_and_the_next_leader_places() {
    let mut log = Log::with(0).await;
    log.limits.lease_poll = Duration::from_secs(3600);
    let leader = log.start().await;
    let follower = log.start().await;
    leader.handle.kill();
    tokio::task::yield_now().await;
    let outcome = log.submit(&follower, statement(1)).await;
    assert!(matches!(outcome, Err(SubmitError::Accepted)), "{outcome:?}");
    let digest = statement(1).entry.digest;
    assert_eq!(log.memory.progress(&digest).await.unwrap(), Some(Progress::Pending));
    let third = log.start().await;
    third.until_leading().await;
    tokio::time::sleep(Duration::from_secs(1)).await;
    assert_eq!(log.digests().await[1], digest);
    assert!(matches!(log.memory.progress(&digest).await.unwrap(), Some(Progress::Registered(_))));
    log.check().await;
}

#[tokio::test(start_paused = true)]
async fn a_leader_that_lost_its_lease_hands_over_what_waits_and_never_signs_again() {
    let log = Log::with(0).await;
    let first = log.start().await;
    let second = log.start().await;
    for round in 0..20 {
        log.memory.break_lease();
        let (here, there) = tokio::join!(
            log.submit(&first, statement(100 + round)),
            log.submit(&second, statement(200 + round)),
        );
        for outcome in [here, there] {
            assert!(matches!(outcome, Ok(_) | Err(SubmitError::Accepted)), "{outcome:?}");
        }
        tokio::time::sleep(Duration::from_secs(2)).await;
    }
    let leading = [&first, &second].map(|it| matches!(it.role(), Role::Leading { .. }));
    assert_eq!(leading.iter().filter(|leads| **leads).count(), 1);
    assert_eq!(log.size().await, 41);
    let epochs: Vec<u64> = log.signer.heads().iter().map(|head| head.epoch).collect();
    assert!(epochs.is_sorted(), "an old leader signed after a new one: {epochs:?}");
    log.check().await;
}

#[tokio::test(start_paused = true)]
async fn a_leader_that_was_paused_while_another_took_over_commits_and_signs_nothing() {
    let log = Log::with(0).await;
    let paused = log.start().await;
    let signed = log.signer.signed().len();
    // The lease is still held: only the epoch tells.
    let head = log.memory.take_over("another").await.unwrap();
    let outcome = log.submit(&paused, statement(1)).await;
    assert!(matches!(outcome, Ok(_) | Err(SubmitError::Accepted)), "{outcome:?}");
    paused.until(|role| matches!(role, Role::Leading { epoch } if *epoch > head.epoch)).await;
    log.insist(&paused, statement(1)).await;
    assert_eq!(log.signer.signed().len(), signed + 1);
    log.check().await;
}

#[tokio::test(start_paused = true)]
async fn a_process_with_a_pin_of_its_own_takes_over_only_when_it_may() {
    let log = Log::with(0).await;
    let leader = log.start().await;
    let stranger = log.start_at(log.other_pin()).await;
    leader.handle.stop().await;
    let halt = stranger.until_halted().await;
    assert!(matches!(halt, Halt::NoPin { .. }), "{halt:?}");
    assert!(log.submit(&stranger, statement(1)).await.is_err());
    let third = log.start().await;
    third.until_leading().await;
    log.submit(&third, statement(1)).await.unwrap();
    log.check().await;
}

#[tokio::test(start_paused = true)]
async fn r23_a_process_that_may_not_lead_fences_nobody_and_leads_once_its_pin_does() {
    let log = Log::with(3).await;
    let before = log.memory.head().await.unwrap().epoch;
    let stranger = log.start_at(log.other_pin()).await;
    assert!(matches!(stranger.halt(), Some(Halt::NoPin { .. })), "{:?}", stranger.role());
    assert_eq!(stranger.role(), Role::Following);
    assert_eq!(stranger.handle.published().map(|head| head.head.size), Some(TreeSize::new(4)), "reads go on");
    tokio::time::sleep(Duration::from_secs(60)).await;
    assert_eq!(log.memory.head().await.unwrap().epoch, before, "no epoch was raised");
    let refused = log.submit(&stranger, statement(20)).await;
    assert!(matches!(refused, Err(SubmitError::Halted(Halt::NoPin { .. }))), "{refused:?}");

    // Another process leads: what this one accepts is placed.
    let leader = log.start().await;
    leader.until_leading().await;
    tokio::time::sleep(Duration::from_secs(60)).await;
    assert_eq!(stranger.halt(), None);
    log.insist(&stranger, statement(20)).await;
    leader.handle.stop().await;

    // An operator adopts the newest head here: nobody restarts anything.
    let head = log.memory.head().await.unwrap();
    sequencer::pin::adopt(&log.memory, &log.other_pin(), ORIGIN, "operator", head.size(), head.root())
        .await
        .unwrap();
    stranger.until_leading().await;
    log.submit(&stranger, statement(21)).await.unwrap();

    // Now the first pin is the one that is too old, though the database agrees with it.
    stranger.handle.stop().await;
    let old = log.start().await;
    assert!(matches!(old.halt(), Some(Halt::PinTooOld { .. })), "{:?}", old.role());
    log.check().await;
}

#[tokio::test(start_paused = true)]
async fn r21_a_pin_that_a_newer_signature_in_the_database_outdates_does_not_let_a_copy_be_continued() {
    let log = Log::with(50).await;
    let head = log.memory.head().await.unwrap();
    sequencer::pin::adopt(&log.memory, &log.other_pin(), ORIGIN, "operator", head.size(), head.root())
        .await
        .unwrap();
    let second = log.start_at(log.other_pin()).await;
    log.submit_all(&second, (100..150).map(statement)).await;
    let copy = log.memory.backup();
    log.submit_all(&second, (150..180).map(statement)).await;
    second.handle.stop().await;
    let signed = log.signer.signed().len();
    log.memory.restore(&copy);
    let first = log.start().await;
    assert!(matches!(first.halt(), Some(Halt::PinTooOld { .. })), "{:?}", first.role());
    assert!(log.submit(&first, statement(999)).await.is_err());
    assert_eq!(log.signer.signed().len(), signed, "not one size has two roots");
}

#[tokio::test(start_paused = true)]
async fn r36_a_clock_that_is_ahead_or_behind_is_refused_and_the_process_goes_on_once_it_is_set_right() {
    for off in [-86_400, 365 * 86_400] {
        let log = Log::with(3).await;
        let server = || Some(Duration::from_secs(START));
        log.memory.set_clock(server());
        log.clock.step(off);
        let process = log.start().await;
        assert!(matches!(process.halt(), Some(Halt::ClockDiffers { ahead, .. }) if ahead == off));
        assert!(log.submit(&process, statement(10)).await.is_err());
        log.clock.step(-off);
        process.until_leading().await;
        log.submit(&process, statement(10)).await.unwrap();
        // And while it leads.
        log.clock.step(off);
        assert!(matches!(process.until_halted().await, Halt::ClockDiffers { .. }));
        log.clock.step(-off);
        process.until_leading().await;
        log.submit(&process, statement(11)).await.unwrap();
        assert!(log.memory.head().await.unwrap().at <= START + 1);
        log.check().await;
    }
}

struct Decide;

#[async_trait]
impl Redecide for Decide {
    async fn redecide(&self, submission: Submission) -> Redecision {
        match &submission.entry.statement[..] {
            b"statement 1" => Redecision::Refuse("the new policy does not know it".into()),
            _ => Redecision::Admit(Box::new(submission.under(1))),
        }
    }

    async fn guard_taken(&self, submission: &Submission, key: &GuardKey, by: LeafIndex) -> String {
        let claim = String::from_utf8_lossy(&key.0);
        format!("{} makes the claim {claim} of {by}", submission.entry.digest)
    }
}

#[tokio::test(start_paused = true)]
async fn whoever_waited_for_a_claim_that_is_taken_is_told_in_the_owners_words() {
    let mut log = Log::with(0).await;
    log.redecide = Arc::new(Decide);
    let process = log.start().await;
    log.submit(&process, statement(1).guarding("claim")).await.unwrap();
    let rival = statement(2).guarding("claim");
    let item = InboxItem { digest: rival.entry.digest, submission: rival.encode() };
    log.memory.enqueue(&item).await.unwrap();
    tokio::time::sleep(Duration::from_secs(1)).await;
    let told = format!("{} makes the claim claim of 1", rival.entry.digest);
    assert_eq!(log.memory.progress(&rival.entry.digest).await.unwrap(), Some(Progress::Failed(told)));
    log.check().await;
}

#[tokio::test(start_paused = true)]
async fn what_waits_while_the_policy_moves_is_decided_again() {
    let mut log = Log::with(0).await;
    log.redecide = Arc::new(Decide);
    for n in 1..=3 {
        let submission = statement(n).encode();
        let item = InboxItem { digest: statement(n).entry.digest, submission };
        if n == 1 {
            let process = log.start().await;
            let mut newer = named("a newer policy");
            newer.is_policy = true;
            log.submit(&process, newer).await.unwrap();
            process.handle.stop().await;
        }
        log.memory.enqueue(&item).await.unwrap();
    }
    let leader = log.start().await;
    let follower = log.start().await;
    log.insist(&follower, statement(3)).await;
    let progress = log.memory.progress(&statement(1).entry.digest).await.unwrap();
    assert_eq!(progress, Some(Progress::Failed("the new policy does not know it".into())));
    let outcome = log.submit(&follower, statement(1)).await;
    assert!(matches!(outcome, Err(SubmitError::Accepted)), "{outcome:?}");
    assert_eq!(log.size().await, 4);
    assert_eq!(log.memory.entry(LeafIndex::new(3)).await.unwrap().unwrap().policy.get(), 1);
    drop(leader);
    log.check().await;
}

#[tokio::test(start_paused = true)]
async fn an_inbox_row_that_cannot_be_read_or_makes_a_taken_claim_is_refused_for_good() {
    let log = Log::with(0).await;
    let process = log.start().await;
    log.submit(&process, statement(1).guarding("claim")).await.unwrap();
    let rival = statement(2).guarding("claim");
    let items = [
        (rival.entry.digest, rival.encode()),
        (statement(3).entry.digest, "not a submission".into()),
        (statement(4).entry.digest, statement(5).encode()),
    ];
    for (digest, submission) in items.clone() {
        log.memory.enqueue(&InboxItem { digest, submission }).await.unwrap();
    }
    tokio::time::sleep(Duration::from_secs(1)).await;
    for (digest, _) in items {
        let progress = log.memory.progress(&digest).await.unwrap();
        assert!(matches!(progress, Some(Progress::Failed(_))), "{progress:?}");
    }
    assert!(log.submit(&process, statement(6)).await.is_ok());
    assert_eq!(log.size().await, 3);
}

#[tokio::test(start_paused = true)]
async fn an_inbox_item_that_is_in_the_log_already_is_settled_without_a_new_head() {
    let log = Log::with(2).await;
    let heads = log.memory.heads(0, 100).await.unwrap().len();
    let item = InboxItem { digest: statement(1).entry.digest, submission: statement(1).encode() };
    log.memory.enqueue(&item).await.unwrap();
    let process = log.start().await;
    process.store.fail(StoreMethod::Commit, 1, Fault::AppliedWithoutAnswer);
    tokio::time::sleep(Duration::from_secs(2)).await;
    let progress = log.memory.progress(&item.digest).await.unwrap();
    assert!(matches!(progress, Some(Progress::Registered(index)) if index.get() == 1), "{progress:?}");
    assert_eq!(log.memory.heads(0, 100).await.unwrap().len(), heads);
    log.submit(&process, statement(9)).await.unwrap();
    log.check().await;
}

#[tokio::test(start_paused = true)]
async fn a_follower_shows_the_newest_signed_head_and_the_policy_in_force() {
    let log = Log::empty();
    let (leader, follower) = (log.start().await, log.start().await);
    log.submit(&leader, policy(0)).await.unwrap();
    let mut newer = named("a newer policy");
    newer.is_policy = true;
    log.submit(&leader, newer).await.unwrap();
    tokio::time::sleep(Duration::from_secs(2)).await;
    let status = follower.handle.status().borrow().clone();
    assert_eq!((status.policy.get(), status.size.get()), (1, 2));
    assert_eq!(status.published, leader.handle.published());
}
