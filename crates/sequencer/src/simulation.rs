//! Several machines over one database and one pin, under seeded faults: calls fail before or after
//! their effect, answers come late, commits of unknown outcome land later, processes are paused and
//! killed at any step, anybody may take over at any time, and old copies of the database come back.
//!
//! Whatever happens: one root for each size, only committed and pinned heads are signed, every
//! answer stays true, and no statement has two leaves. A failing seed is printed;
//! `SEQUENCER_SEEDS=n` runs so many.

mod props;

use std::collections::{BTreeMap, HashMap, HashSet};
use std::sync::{Arc, Mutex};

use merkle::{EntryDigest, LeafIndex, RootHash, TreeSize, verify};
use store::{Batch, CommitError, CommittedHead, GuardKey, HeadSignature, LogStore, Memory, StoreError};

use self::props::{Chance, Signer, Wall, named};
use crate::draft::Known;
use crate::handle::Answer;
use crate::machine::{Effect, Event, Leave, Machine};
use crate::recover::{Obstacle, recover};
use crate::{Halt, HeadSigner, Limits, NeverAgain, Parts, PinFile, Placement, SignFailed, Submission};

const SEEDS: u64 = 500;
const STEPS: u32 = 250;
const PROCESSES: usize = 3;

#[derive(Default)]
struct Process {
    machine: Option<Machine<EntryDigest>>,
    /// Asked for, not yet performed.
    asked: Option<Effect<EntryDigest>>,
    /// Performed, the machine does not know yet.
    heard: Option<Event<EntryDigest>>,
    halted: bool,
}

struct World {
    chance: Chance,
    memory: Memory,
    parts: Parts,
    wall: Arc<Wall>,
    processes: Vec<Process>,
    /// Commits whose sender was told that the outcome is unknown, and that may still land.
    limbo: Vec<Arc<Batch>>,
    backup: Option<Memory>,
    restored: bool,
    signed: BTreeMap<TreeSize, RootHash>,
    placed: HashMap<EntryDigest, LeafIndex>,
    to_keep: Vec<HeadSignature>,
    faults: bool,
}

#[tokio::test]
async fn no_history_forks_and_no_answer_is_taken_back_whatever_fails() {
    let seeds = std::env::var("SEQUENCER_SEEDS").ok().and_then(|text| text.parse().ok()).unwrap_or(SEEDS);
    let directory =
        tempfile::tempdir_in(if cfg!(target_os = "linux") { "/dev/shm" } else { "/tmp" }).unwrap();
    let mut leaves = 0;
    for seed in 0..seeds {
        let world = World::new(seed, &directory);
        let run = tokio::spawn(world.run());
        leaves += run.await.unwrap_or_else(|panic| panic!("seed {seed}: {panic}"));
        std::fs::remove_dir_all(directory.path().join(seed.to_string())).unwrap();
    }
    assert!(leaves > 3 * seeds, "the simulation hardly gets anywhere: {leaves} leaves");
}

impl World {
    fn new(seed: u64, directory: &tempfile::TempDir) -> Self {
        let memory = Memory::new();
        let wall = Arc::new(Wall(Mutex::new(1_800_000_000)));
        let parts = Parts {
            origin: "log.example".into(),
            holder: "simulation".into(),
            store: Arc::new(memory.clone()),
            signer: Arc::new(Signer),
            pin: PinFile::in_directory(directory.path().join(seed.to_string())),
            witnesses: Arc::new(()),
            clock: wall.clone(),
            redecide: Arc::new(NeverAgain),
            observer: Arc::new(()),
            limits: Limits { batch_entries: 5, ..Limits::default() },
        };
        std::fs::create_dir(directory.path().join(seed.to_string())).unwrap();
        Self {
            chance: Chance(seed),
            memory,
            parts,
            wall,
            processes: (0..PROCESSES).map(|_| Process::default()).collect(),
            limbo: Vec::new(),
            backup: None,
            restored: false,
            signed: BTreeMap::new(),
            placed: HashMap::new(),
            to_keep: Vec::new(),
            faults: true,
        }
    }

    async fn run(mut self) -> u64 {
        self.memory.open("log.example").await.unwrap();
        for _ in 0..STEPS {
            self.step().await;
        }
        self.recover_for_good().await;
        self.memory.head().await.unwrap().size().get()
    }

    async fn step(&mut self) {
        *self.wall.0.lock().unwrap() += self.chance.below(3);
        for signature in std::mem::take(&mut self.to_keep) {
            let _ = self.memory.keep_signature(&signature).await; // refused where the database went back
        }
        let process = self.chance.below(PROCESSES as u64) as usize;
        match self.chance.below(100) {
            0..2 => self.processes[process] = Process { halted: false, ..Process::default() },
            2..3 => self.deliver(process, Event::Leave(Leave::StepDown("the lease is lost"))),
            3..4 => self.backup = Some(self.memory.backup()),
            4 if self.chance.percent(3) => self.restore(),
            5..9 => self.land().await,
            9..40 => self.submit(process).await,
            _ => self.advance(process).await,
        }
    }

    /// The next thing that this process does.
    async fn advance(&mut self, at: usize) {
        let process = &mut self.processes[at];
        if process.machine.is_none() {
            if !process.halted && self.chance.percent(20) {
                self.start(at).await;
            }
        } else if let Some(event) = process.heard.take() {
            self.deliver(at, event);
        } else if let Some(effect) = process.asked.take() {
            self.perform(at, effect).await;
        } else if process.machine.as_ref().is_some_and(Machine::has_work) {
            let now = self.parts.clock.now();
            self.deliver(at, Event::Seal(now));
        }
    }

    async fn start(&mut self, at: usize) {
        match recover(&self.parts).await {
            Ok((recovered, clock)) => {
                let (origin, limits) = (self.parts.origin.clone(), self.parts.limits.clone());
                let (machine, effects) = Machine::start(origin, limits, clock, recovered);
                self.processes[at].machine = Some(machine);
                self.take(at, effects);
            }
            Err(Obstacle::Halt(Halt::DatabaseBehind { .. } | Halt::DatabaseDisagrees { .. })) => {
                assert!(self.restored, "a database that never went back is refused");
                self.processes[at].halted = true;
            }
            Err(other) => panic!("{other:?}"),
        }
    }

    fn deliver(&mut self, at: usize, event: Event<EntryDigest>) {
        if let Some(machine) = &mut self.processes[at].machine {
            let effects = machine.handle(event);
            self.take(at, effects);
        }
    }

    fn take(&mut self, at: usize, effects: Vec<Effect<EntryDigest>>) {
        for effect in effects {
            match effect {
                Effect::Answer(digest, answer) => self.answered(digest, answer),
                Effect::Publish { head, .. } => {
                    assert_eq!(self.signed.get(&head.head.size), Some(&head.head.root));
                }
                Effect::Keep(signatures) => self.keep_or_lose(signatures),
                Effect::Leave(leave) => {
                    if let Leave::Halt(Halt::Damaged(why) | Halt::Inconsistent(why)) = &leave {
                        assert!(self.restored, "{why}");
                    }
                    self.processes[at] = Process::default();
                }
                reporting => {
                    let replaced = self.processes[at].asked.replace(reporting);
                    assert!(replaced.is_none() && self.processes[at].heard.is_none(), "two things at once");
                }
            }
        }
    }

    fn keep_or_lose(&mut self, signatures: Vec<HeadSignature>) {
        if self.chance.percent(70) {
            self.to_keep.extend(signatures);
        }
    }

    async fn perform(&mut self, at: usize, effect: Effect<EntryDigest>) {
        let unavailable = || StoreError::Unavailable("simulated".into());
        let event = match effect {
            Effect::LookUp(_) if self.fails(5) => Event::LookedUp(Err(unavailable())),
            Effect::LookUp(ask) => {
                let found = self.memory.find(&ask.digests).await.unwrap();
                let guards = self.memory.guards(&ask.guards).await.unwrap();
                Event::LookedUp(Ok(Known { found, guards }))
            }
            Effect::Commit { batch, .. } => Event::Committed(self.commit(batch).await),
            Effect::TakeOver if self.fails(30) => {
                self.processes[at].asked = Some(Effect::TakeOver); // tried until it is answered
                return;
            }
            Effect::TakeOver => Event::TakenOver(self.memory.take_over("simulation").await.unwrap()),
            Effect::Pin(pin) => {
                let raised = self.parts.pin.raise(&pin);
                match self.fails(2) {
                    true => return self.processes[at] = Process::default(), // killed right after it
                    false => Event::Pinned(raised),
                }
            }
            Effect::Sign { .. } if self.fails(5) => Event::Signed(Err(SignFailed("simulated".into()))),
            Effect::Sign { head, .. } => {
                self.check_signable(&head).await;
                Event::Signed(Signer.sign(&head))
            }
            _ => unreachable!("not an effect that reports"),
        };
        self.processes[at].heard = Some(event);
    }

    async fn commit(&mut self, batch: Arc<Batch>) -> Result<(), CommitError> {
        let unknown = || CommitError::Unknown("simulated".into());
        match self.chance.below(100) {
            0..5 if self.faults => {
                Err(CommitError::NotCommitted(StoreError::Unavailable("simulated".into())))
            }
            5..10 if self.faults => Err(unknown()),
            10..15 if self.faults => self.memory.commit(&batch).await.and_then(|()| Err(unknown())),
            15..22 if self.faults => {
                self.limbo.push(batch);
                Err(unknown())
            }
            _ => self.memory.commit(&batch).await,
        }
    }

    /// A commit that everybody lost sight of reaches the database.
    async fn land(&mut self) {
        if !self.limbo.is_empty() {
            let which = self.chance.below(self.limbo.len() as u64) as usize;
            let batch = self.limbo.swap_remove(which);
            let _ = self.memory.commit(&batch).await;
        }
    }

    /// An operator puts an old copy back.
    fn restore(&mut self) {
        if let Some(backup) = self.backup.take() {
            self.memory.restore(&backup);
            self.restored = true;
        }
    }

    /// The heart of it: what may be signed.
    async fn check_signable(&mut self, head: &CommittedHead) {
        let known = self.signed.entry(head.size).or_insert(head.root);
        assert_eq!(*known, head.root, "size {} is signed with two roots", head.size);
        if !self.restored {
            let committed = self.memory.head_of_size(head.size).await.unwrap();
            assert_eq!(committed.as_ref(), Some(head), "a head is signed that is not in the history");
        }
        let pin = self.parts.pin.read().unwrap().unwrap();
        let newest = self.signed.last_key_value().map(|(size, _)| *size);
        assert!(Some(pin.size) >= newest, "the pin is behind a head that is signed");
    }

    async fn submit(&mut self, at: usize) {
        let policy = self.memory.head().await.unwrap().policy;
        let submission = self.any_submission(policy);
        let waiter = submission.entry.digest;
        let in_inbox = self.chance.percent(10);
        self.deliver(at, Event::Submitted { submission: Arc::new(submission), waiter, in_inbox });
    }

    /// Out of few, so that they meet: statements, their twins, claims, policies.
    fn any_submission(&mut self, policy: LeafIndex) -> Submission {
        let name = self.chance.below(60);
        let mut submission = named(name);
        submission.decided_under = match self.chance.percent(95) {
            true => policy,
            false => LeafIndex::new(0),
        };
        submission.is_policy = name.is_multiple_of(20);
        if name % 5 == 1 {
            submission.entry.twin = Some(named(name + 1000).entry.digest);
        }
        if name % 5 == 2 {
            submission.entry.guards.push(GuardKey((name % 7).to_be_bytes().to_vec()));
        }
        if name % 5 == 3 {
            submission.relied_absent.push(named(name + 1).entry.digest);
        }
        if name % 11 == 4 && self.chance.percent(50) {
            // The twin of another one.
            let other = named(1 + 5 * (name % 11));
            submission = named(1 + 5 * (name % 11) + 1000);
            submission.entry.twin = Some(other.entry.digest);
            submission.decided_under = policy;
        }
        submission
    }

    fn answered(&mut self, digest: EntryDigest, answer: Answer) {
        match answer {
            Answer::Done(Ok(placement)) => self.check_placement(digest, &placement),
            Answer::Done(Err(_)) | Answer::HandBack => {}
        }
    }

    fn check_placement(&mut self, digest: EntryDigest, placement: &Placement) {
        let index = *self.placed.entry(digest).or_insert(placement.index);
        assert_eq!(index, placement.index, "a statement got two places");
        let Some(head) = &placement.head else {
            panic!("a placement without a head");
        };
        let CommittedHead { size, root, .. } = head.head;
        assert_eq!(self.signed.get(&size), Some(&root), "an answer under a head that was not signed");
        assert!(size.holds(index));
        if let Some(path) = &placement.path {
            verify::inclusion(digest.leaf_hash(), index, size, path, root).unwrap();
        }
    }

    fn fails(&mut self, chance: u64) -> bool {
        self.faults && self.chance.percent(chance)
    }

    /// All faults end; one process goes on; everything is checked.
    async fn recover_for_good(&mut self) {
        self.faults = false;
        for process in &mut self.processes {
            *process = Process::default();
        }
        self.start(0).await;
        if !self.processes[0].halted {
            self.settle().await;
            for name in 0..60 {
                let mut submission = named(name);
                submission.decided_under = self.memory.head().await.unwrap().policy;
                submission.is_policy = name == 0;
                let waiter = submission.entry.digest;
                let submission = Arc::new(submission);
                self.deliver(0, Event::Submitted { submission, waiter, in_inbox: false });
                self.settle().await;
            }
        }
        self.check_log().await;
    }

    async fn settle(&mut self) {
        while self.processes[0].machine.as_ref().is_some_and(Machine::has_work)
            || self.processes[0].asked.is_some()
            || self.processes[0].heard.is_some()
        {
            self.advance(0).await;
        }
    }

    async fn check_log(&self) {
        let entries = self.memory.entries(LeafIndex::new(0), usize::MAX).await.unwrap();
        let history = self.memory.heads(0, usize::MAX).await.unwrap();
        let mut range = merkle::CompactRange::empty();
        let mut epoch = 0;
        for head in &history {
            for entry in &entries[range.size().get() as usize..head.size.get() as usize] {
                range.append(entry.digest.leaf_hash());
            }
            assert_eq!((range.size(), range.root()), (head.size, head.root));
            assert!(head.epoch >= epoch, "an older epoch committed after a newer one");
            epoch = head.epoch;
        }
        assert_eq!(range.size().get() as usize, entries.len());
        let unique: HashSet<EntryDigest> = entries.iter().map(|entry| entry.digest).collect();
        assert_eq!(unique.len(), entries.len(), "a statement has two leaves");
        let behind = self.processes[0].halted;
        assert!(!behind || self.restored);
        if !behind {
            for (size, root) in &self.signed {
                let row = history.iter().find(|head| head.size == *size);
                assert_eq!(row.map(|head| head.root), Some(*root), "a signed head is not in the history");
            }
            for (digest, index) in &self.placed {
                assert_eq!(entries[index.get() as usize].digest, *digest, "an answer was taken back");
            }
        }
    }
}
