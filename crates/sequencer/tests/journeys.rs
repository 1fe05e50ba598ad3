//! Two processes over the whole stack, killed, cut off and robbed of the lease at random, while
//! clients insist. Seeded; time is simulated.

mod support;

use std::sync::Arc;
use std::time::Duration;

use merkle::TreeSize;
use sequencer::{Halt, HeadSigner, Role, Sequencer, SequencerParts, SignFailed};
use store::{CommittedHead, Fault, HeadSignature, Inbox, LogWriter, SignatureKind, StoreMethod};
use support::{Log, Process, policy, statement};

const SEEDS: u64 = 60;

struct Chance(u64);

impl Chance {
    fn below(&mut self, bound: u64) -> u64 {
        self.0 = self.0.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        (self.0 >> 33) % bound
    }
}

#[tokio::test(start_paused = true)]
async fn whatever_is_killed_or_cut_off_every_answer_stays_true_and_no_head_forks() {
    for seed in 0..SEEDS {
        println!("seed {seed}");
        let log = Log::with(0).await;
        let mut chance = Chance(seed);
        let mut processes = [log.start().await, log.start().await];
        for round in 0..25 {
            disturb(&log, &mut processes, &mut chance).await;
            let here = log.submit_all(&processes[0], batch(round, &mut chance));
            let there = log.submit_all(&processes[1], batch(round, &mut chance));
            let _ = tokio::join!(here, there);
        }
        for process in &processes {
            process.store.heal();
        }
        tokio::time::sleep(Duration::from_secs(30)).await; // recovery without hands
        for n in 0..150 {
            log.insist(&processes[n as usize % 2], statement(n + 1)).await;
        }
        assert_eq!(log.size().await, 151);
        tokio::time::sleep(Duration::from_secs(2)).await;
        assert!(log.memory.pending(10).await.unwrap().is_empty());
        log.check().await;
        processes[0].handle.stop().await;
        processes[1].handle.stop().await;
    }
}

fn batch(round: u64, chance: &mut Chance) -> Vec<sequencer::Submission> {
    let (count, first) = (chance.below(20), chance.below(10));
    (0..count).map(|n| statement(1 + round * 5 + first + n)).collect()
}

async fn disturb(log: &Log, processes: &mut [Process; 2], chance: &mut Chance) {
    let which = chance.below(2) as usize;
    let store = processes[which].store.clone();
    let fault = [Fault::Refused, Fault::NotApplied, Fault::AppliedWithoutAnswer][chance.below(3) as usize];
    match chance.below(10) {
        0 | 1 => {
            processes[which].handle.kill();
            tokio::time::sleep(Duration::from_millis(chance.below(900))).await;
            processes[which] = log.start().await;
        }
        2 => log.memory.break_lease(),
        3 => store.break_down(Fault::Refused),
        4 => store.mend(),
        5 | 6 => store.fail(StoreMethod::Commit, 1 + chance.below(3), fault),
        7 => store.fail_any(1 + chance.below(10), fault),
        8 => drop(log.memory.take_over("somebody").await),
        _ => log.clock.pass(chance.below(30)),
    }
}

struct Panics;

impl HeadSigner for Panics {
    fn makes(&self, _size: TreeSize) -> Vec<(SignatureKind, Vec<u8>)> {
        vec![(SignatureKind::Receipt, support::KID.into())]
    }

    fn sign(&self, _head: &CommittedHead) -> Result<Vec<HeadSignature>, SignFailed> {
        panic!("a bug")
    }
}

#[tokio::test(start_paused = true)]
async fn a_sequencer_that_panics_is_shown_as_halted_and_answers_nobody() {
    let log = Log::empty();
    let parts = SequencerParts {
        origin: support::ORIGIN.into(),
        holder: "a test".into(),
        store: Arc::new(log.memory.clone()),
        signer: Arc::new(Panics),
        pin: Arc::new(log.pin()),
        witnesses: Arc::new(()),
        clock: log.clock.clone(),
        redecide: log.redecide.clone(),
        observer: Arc::new(()),
        limits: log.limits.clone(),
    };
    let handle = Sequencer::start(parts).await.unwrap();
    assert!(handle.submit(policy(0)).await.is_err());
    let mut status = handle.status();
    status.wait_for(|status| status.role == Role::Halted(Halt::Panicked)).await.unwrap();
    assert!(handle.submit(policy(0)).await.is_err());
    let process = log.start().await;
    assert!(log.submit(&process, policy(0)).await.unwrap().already_there);
    log.check().await;
}
