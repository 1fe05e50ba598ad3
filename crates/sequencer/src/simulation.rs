//! Simulation of several processes over one database, each with its own pin or all with one, under seeded faults:
//! calls fail before or after their effect, answers arrive late, commits of unknown outcome take effect later,
//! processes are paused and killed at any step, between any two calls of the database and any two steps of the
//! pin, any process may take over at any time, lagging copies of the database replace the database, clocks are
//! wrong, and operators adopt heads.
//!
//! Checked in every case: one root for each size, only committed and pinned heads are signed, only their signatures
//! are stored, every answer stays true, no statement has two leaves, and no batch is of the future. A failing seed
//! is printed; `SEQUENCER_SEEDS=n` runs n seeds.

mod props;

use std::collections::{BTreeMap, HashMap, HashSet};
use std::future::{Future, ready};
use std::panic::{AssertUnwindSafe, catch_unwind, resume_unwind};
use std::sync::Arc;
use std::sync::atomic::{AtomicI64, AtomicU64, Ordering};
use std::task::{Context, Poll, Waker};
use std::time::Duration;

use merkle::{EntryDigest, LeafIndex, RootHash, TreeSize, verify};
use store::{
    Batch, CommitError, CommittedHead, FailingStore, GuardKey, HeadSignature, LogReader, LogWriter, Memory,
    SignatureStore, StoreError,
};

pub(crate) use self::props::named;
use self::props::{Chance, HostClock, MemoryPin, Signer, Wall};
use crate::clock::{ClockCheck, ClockReference};
use crate::command::CommandAnswer;
use crate::draft::KnownEntries;
use crate::limits::CLOCK_TOLERANCE;
use crate::machine::{Leave, Machine, MachineInput, MachineOutput, Recovered};
use crate::pin::adopt;
use crate::recover::{Obstacle, recover};
use crate::{Halt, HeadSigner, Limits, Placement, RefuseOutdated, SequencerParts, SignFailed, Submission};

const ORIGIN: &str = "log.example";
const SEEDS: u64 = 300;
const STEPS: u32 = 400;
const PROCESSES: usize = 3;
/// Deviations of wrong clocks, in seconds.
const OFF: [i64; 6] = [-86_400, -100, -30, 30, 100, 365 * 86_400];

type Doing<T> = std::pin::Pin<Box<dyn Future<Output = T> + Send>>;

/// One process on a host of its own. It does nothing until it is chosen for the next step.
struct Process {
    parts: Arc<SequencerParts>,
    clock: Arc<HostClock>,
    pin: MemoryPin,
    /// Clock reference, which lives as long as the process.
    reference: ClockReference,
    starting: Option<Doing<Result<(Recovered, ClockCheck), Obstacle>>>,
    machine: Option<Machine<EntryDigest>>,
    /// Effect that was requested and has not begun.
    asked: Option<MachineOutput<EntryDigest>>,
    /// Effect in progress.
    doing: Option<Doing<MachineInput<EntryDigest>>>,
    /// Result of an effect that the machine has not received yet.
    next_input: Option<MachineInput<EntryDigest>>,
    halted: bool,
    ineligible: Option<Halt>,
}

struct World {
    chance: Chance,
    memory: Memory,
    wall: Arc<Wall>,
    /// `true` if the database's server has a clock of its own, which is right.
    second_clock: bool,
    shared_pin: bool,
    processes: Vec<Process>,
    /// Effects in progress of processes that left or were killed: a thread that writes a file does not end with
    /// its future.
    orphans: Vec<Doing<MachineInput<EntryDigest>>>,
    /// Commits that were reported as of unknown outcome, and that may still take effect.
    limbo: Vec<Arc<Batch>>,
    backup: Option<Memory>,
    /// Epoch of the last adopted pin, until a batch of it or of a newer epoch is in the database.
    adopted: Option<u64>,
    restored: bool,
    signed: BTreeMap<TreeSize, RootHash>,
    placed: HashMap<EntryDigest, LeafIndex>,
    to_keep: Vec<HeadSignature>,
    faults: bool,
}

/// Runs [`SEEDS`] schedules, or as many as `SEQUENCER_SEEDS` asks for: `SEQUENCER_SEEDS=1000000 cargo test
/// --release -p sequencer --lib simulation` runs a million.
#[test]
fn no_history_forks_and_no_answer_is_taken_back_whatever_fails() {
    let seeds = std::env::var("SEQUENCER_SEEDS").ok().and_then(|text| text.parse().ok()).unwrap_or(SEEDS);
    let next = AtomicU64::new(0);
    let leaves = AtomicU64::new(0);
    let threads = std::thread::available_parallelism().map_or(1, usize::from);
    std::thread::scope(|scope| {
        for _ in 0..threads {
            scope.spawn(|| {
                loop {
                    let seed = next.fetch_add(1, Ordering::Relaxed);
                    if seed >= seeds {
                        break;
                    }
                    leaves.fetch_add(play(seed), Ordering::Relaxed);
                }
            });
        }
    });
    let leaves = leaves.into_inner();
    assert!(leaves > 3 * seeds, "the simulation hardly gets anywhere: {leaves} leaves");
}

/// Runs seeds that forked the log when a pin was accepted that was older than the signed or committed heads in the
/// database.
#[test]
fn r21_two_hosts_with_a_pin_each_and_a_lagging_copy_do_not_fork_the_log() {
    for seed in [524, 1333, 15690, 27870, 150_823, 383_727, 460_978] {
        play(seed);
    }
}

/// Plays one schedule to its end; returns the number of leaves in the log then.
fn play(seed: u64) -> u64 {
    let runtime = tokio::runtime::Builder::new_current_thread().build().unwrap();
    let played = catch_unwind(AssertUnwindSafe(|| runtime.block_on(World::new(seed).run())));
    played.unwrap_or_else(|panic| {
        eprintln!("seed {seed} fails");
        resume_unwind(panic)
    })
}

/// Polls a future once.
fn poll<T>(doing: &mut Doing<T>) -> Option<T> {
    match doing.as_mut().poll(&mut Context::from_waker(Waker::noop())) {
        Poll::Ready(done) => Some(done),
        Poll::Pending => None,
    }
}

impl Process {
    fn new(memory: &Memory, wall: &Arc<Wall>, pin: MemoryPin) -> Self {
        let clock = Arc::new(HostClock { wall: wall.clone(), ahead: AtomicI64::new(0) });
        let store = FailingStore::new(memory.clone());
        store.pause_before_calls();
        let parts = SequencerParts {
            origin: ORIGIN.into(),
            holder: "simulation".into(),
            store: Arc::new(store),
            signer: Arc::new(Signer),
            pin: Arc::new(pin.clone()),
            witnesses: Arc::new(()),
            clock: clock.clone(),
            redecide: Arc::new(RefuseOutdated),
            observer: Arc::new(()),
            limits: Limits { batch_entries: 5, look_ups_after_known: 1, ..Limits::default() },
        };
        Self {
            parts: Arc::new(parts),
            clock,
            pin,
            reference: ClockReference::default(),
            starting: None,
            machine: None,
            asked: None,
            doing: None,
            next_input: None,
            halted: false,
            ineligible: None,
        }
    }

    /// Stops leading. Returns the effect in progress.
    fn left(&mut self) -> Option<Doing<MachineInput<EntryDigest>>> {
        (self.starting, self.machine, self.asked, self.next_input) = (None, None, None, None);
        self.doing.take()
    }

    /// Kills the process and starts it again.
    fn killed(&mut self) {
        drop(self.left());
        self.reference = ClockReference::default();
        (self.halted, self.ineligible) = (false, None);
    }
}

impl World {
    fn new(seed: u64) -> Self {
        let mut chance = Chance(seed);
        let memory = Memory::new();
        let wall = Arc::new(Wall(AtomicU64::new(1_800_000_000)));
        let (shared_pin, second_clock) = (chance.percent(40), chance.percent(60));
        let shared = MemoryPin::default();
        let pin = |_| if shared_pin { shared.clone() } else { MemoryPin::default() };
        Self {
            processes: (0..PROCESSES).map(pin).map(|pin| Process::new(&memory, &wall, pin)).collect(),
            chance,
            memory,
            wall,
            second_clock,
            shared_pin,
            orphans: Vec::new(),
            limbo: Vec::new(),
            backup: None,
            adopted: None,
            restored: false,
            signed: BTreeMap::new(),
            placed: HashMap::new(),
            to_keep: Vec::new(),
            faults: true,
        }
    }

    async fn run(mut self) -> u64 {
        self.memory.open(ORIGIN).await.unwrap();
        for _ in 0..STEPS {
            self.step().await;
        }
        self.recover_for_good().await;
        self.memory.head().await.unwrap().size().get()
    }

    async fn step(&mut self) {
        self.pass_time();
        for signature in std::mem::take(&mut self.to_keep) {
            let _ = self.memory.keep_signature(&signature).await; // refused where the database went back
        }
        let process = self.chance.below(PROCESSES as u64) as usize;
        match self.chance.below(100) {
            0 => self.processes[process].killed(),
            1 => self.deliver(process, MachineInput::Leave(Leave::StepDown("the lease is lost"))),
            2 => self.back_up().await,
            3 if self.chance.percent(20) => self.restore(),
            4 => self.set_clock(process),
            5..8 => self.adopt(process).await,
            8..10 => self.land().await,
            10..12 => self.advance_orphan(),
            12..35 => self.submit(process).await,
            _ => self.advance(process).await,
        }
    }

    fn pass_time(&mut self) {
        self.wall.0.fetch_add(self.chance.below(3), Ordering::Relaxed);
        let now = Duration::from_secs(self.wall.seconds());
        self.memory.set_clock(self.second_clock.then_some(now));
    }

    /// Sets a host's clock. Without a second clock none is set ahead, as no check at the start of a process could
    /// notice that.
    fn set_clock(&mut self, at: usize) {
        let which = self.chance.below(2 * OFF.len() as u64) as usize;
        let ahead = OFF.get(which).copied().unwrap_or(0);
        if self.second_clock || ahead < 60 {
            self.processes[at].clock.ahead.store(ahead, Ordering::Relaxed);
        }
    }

    /// Makes a copy of the database, unless the newest pin has left no trace in it yet: such a copy does not show
    /// which pin is the newest, and a copy of an empty log is a new log to a host without a pin.
    async fn back_up(&mut self) {
        let head = self.memory.head().await.unwrap();
        if head.batch == 0 && !self.shared_pin {
            return;
        }
        let newest = self.memory.head_of_size(head.size()).await.unwrap().map_or(0, |newest| newest.epoch);
        if self.adopted.is_none_or(|epoch| newest >= epoch) {
            self.adopted = None;
            self.backup = Some(self.memory.backup());
        }
    }

    /// Plays an operator who knows that the database holds all signed heads, has stopped every other process, and
    /// adopts the head for a process that may not lead. A process left running could sign a head that it has
    /// committed and that the operator does not know.
    async fn adopt(&mut self, at: usize) {
        let process = &self.processes[at];
        if !matches!(process.ineligible, Some(Halt::NoPin { .. } | Halt::PinTooOld { .. })) {
            return;
        }
        for (size, root) in &self.signed {
            if self.memory.head_of_size(*size).await.unwrap().map(|head| head.root) != Some(*root) {
                return;
            }
        }
        let head = self.memory.head().await.unwrap();
        self.orphans.clear();
        (0..PROCESSES).filter(|other| *other != at).for_each(|other| self.processes[other].killed());
        let process = &self.processes[at];
        let adopted = adopt(&self.memory, &process.pin, ORIGIN, "operator", head.size(), head.root()).await;
        if let Ok(pin) = adopted {
            self.adopted = Some(pin.epoch);
            self.backup = None;
        }
    }

    fn advance_orphan(&mut self) {
        if !self.orphans.is_empty() {
            let which = self.chance.below(self.orphans.len() as u64) as usize;
            if poll(&mut self.orphans[which]).is_some() {
                drop(self.orphans.swap_remove(which));
            }
        }
    }

    /// Advances this process by one step.
    async fn advance(&mut self, at: usize) {
        let process = &mut self.processes[at];
        if let Some(starting) = &mut process.starting {
            // Usually many steps, as the start has many.
            let steps = 1 + self.chance.below(16);
            if let Some(outcome) = (0..steps).find_map(|_| poll(starting)) {
                process.starting = None;
                self.started(at, outcome);
            }
        } else if process.machine.is_none() {
            if !process.halted && self.chance.percent(30) {
                self.start(at);
            }
        } else if let Some(event) = process.next_input.take() {
            self.deliver(at, event);
        } else if let Some(doing) = &mut process.doing {
            if let Some(event) = poll(doing) {
                process.doing = None;
                process.next_input = Some(event);
            }
        } else if let Some(effect) = process.asked.take() {
            self.perform(at, effect).await;
        } else if self.hands_over(at) {
            self.deliver(at, MachineInput::HandOver);
        } else if self.processes[at].machine.as_ref().is_some_and(Machine::has_work) {
            let now = self.processes[at].parts.clock.now();
            self.deliver(at, MachineInput::Seal(now));
        }
    }

    /// Decides whether the signatures of a resting process do not wait for its next batch.
    fn hands_over(&mut self, at: usize) -> bool {
        self.processes[at].machine.as_ref().is_some_and(Machine::has_unkept) && self.chance.percent(30)
    }

    fn start(&mut self, at: usize) {
        let process = &mut self.processes[at];
        let (parts, reference) = (process.parts.clone(), process.reference.clone());
        process.starting = Some(Box::pin(async move { recover(&parts, &reference, None).await }));
    }

    fn started(&mut self, at: usize, outcome: Result<(Recovered, ClockCheck), Obstacle>) {
        let process = &mut self.processes[at];
        match outcome {
            Ok((recovered, clock)) => {
                let (origin, limits) = (process.parts.origin.clone(), process.parts.limits.clone());
                let (machine, effects) = Machine::start(origin, limits, clock, recovered);
                process.machine = Some(machine);
                process.ineligible = None;
                self.take(at, effects);
            }
            Err(Obstacle::Halt(
                Halt::DatabaseBehind { .. } | Halt::DatabaseDisagrees { .. } | Halt::Damaged(_),
            )) => {
                assert!(self.restored, "a database that never went back is refused");
                process.halted = true;
            }
            Err(Obstacle::Ineligible(halt)) => {
                let of_pin = matches!(halt, Halt::NoPin { .. } | Halt::PinTooOld { .. });
                assert!(
                    !of_pin || !self.shared_pin || self.restored,
                    "the one pin there is does not do: {halt}"
                );
                process.ineligible = Some(halt);
            }
            Err(Obstacle::Later(_)) => {}
            Err(other) => panic!("{other:?}"),
        }
    }

    fn deliver(&mut self, at: usize, event: MachineInput<EntryDigest>) {
        if let Some(machine) = &mut self.processes[at].machine {
            let effects = machine.handle(event);
            self.take(at, effects);
        }
    }

    fn take(&mut self, at: usize, effects: Vec<MachineOutput<EntryDigest>>) {
        for effect in effects {
            match effect {
                MachineOutput::Answer(digest, answer) => self.answered(digest, answer),
                MachineOutput::Publish { head, .. } => {
                    assert_eq!(self.signed.get(&head.head.size), Some(&head.head.root));
                }
                MachineOutput::Keep(signatures) => self.keep_or_lose(signatures),
                MachineOutput::Leave(leave) => {
                    if let Leave::Halt(Halt::Damaged(why) | Halt::Inconsistent(why)) = &leave {
                        assert!(self.restored, "{why}");
                    }
                    let orphan = self.processes[at].left();
                    self.orphans.extend(orphan);
                }
                reporting => {
                    let process = &mut self.processes[at];
                    let replaced = process.asked.replace(reporting);
                    let alone = replaced.is_none() && process.next_input.is_none() && process.doing.is_none();
                    assert!(alone, "two things at once");
                }
            }
        }
    }

    fn keep_or_lose(&mut self, signatures: Vec<HeadSignature>) {
        if self.chance.percent(70) {
            self.to_keep.extend(signatures);
        }
    }

    async fn perform(&mut self, at: usize, effect: MachineOutput<EntryDigest>) {
        let unavailable = || StoreError::Unavailable("simulated".into());
        let parts = self.processes[at].parts.clone();
        let at_once = |event| -> Doing<_> { Box::pin(ready(event)) };
        let doing: Doing<MachineInput<EntryDigest>> = match effect {
            MachineOutput::LookUp(_) if self.fails(5) => at_once(MachineInput::LookedUp(Err(unavailable()))),
            MachineOutput::LookUp(ask) => Box::pin(async move {
                let found = parts.store.find(&ask.digests).await.unwrap();
                let guards = parts.store.guards(&ask.guards).await.unwrap();
                MachineInput::LookedUp(Ok(KnownEntries { found, guards }))
            }),
            MachineOutput::Commit { batch, .. } => self.commit(parts, batch),
            MachineOutput::TakeOver if self.fails(30) => {
                self.processes[at].asked = Some(MachineOutput::TakeOver); // tried until it is answered
                return;
            }
            MachineOutput::TakeOver => Box::pin(async move {
                MachineInput::TakenOver(parts.store.take_over("simulation").await.unwrap())
            }),
            MachineOutput::Claim(pin) => {
                Box::pin(async move { MachineInput::Pinned(parts.pin.claim(&pin).await) })
            }
            MachineOutput::Pin(pin) => {
                Box::pin(async move { MachineInput::Pinned(parts.pin.raise(&pin).await) })
            }
            MachineOutput::Sign { .. } if self.fails(5) => {
                at_once(MachineInput::Signed(Err(SignFailed("simulated".into()))))
            }
            MachineOutput::Sign { head, .. } => {
                self.check_signable(at, &head).await;
                at_once(MachineInput::Signed(Signer.sign(&head)))
            }
            _ => unreachable!("not an effect that reports"),
        };
        self.processes[at].doing = Some(doing);
    }

    fn commit(&mut self, parts: Arc<SequencerParts>, batch: Arc<Batch>) -> Doing<MachineInput<EntryDigest>> {
        let unknown = || Err(CommitError::Unknown("simulated".into()));
        let latest = self.wall.seconds() + 2 * CLOCK_TOLERANCE;
        assert!(!self.second_clock || batch.to.at <= latest, "a batch of the future");
        let refused = || Err(CommitError::NotCommitted(StoreError::Unavailable("simulated".into())));
        match self.chance.below(100) {
            0..5 if self.faults => Box::pin(ready(MachineInput::Committed(refused()))),
            5..10 if self.faults => Box::pin(ready(MachineInput::Committed(unknown()))),
            10..15 if self.faults => Box::pin(async move {
                MachineInput::Committed(parts.store.commit(&batch).await.and_then(|()| unknown()))
            }),
            15..22 if self.faults => {
                self.limbo.push(batch);
                Box::pin(ready(MachineInput::Committed(unknown())))
            }
            _ => Box::pin(async move { MachineInput::Committed(parts.store.commit(&batch).await) }),
        }
    }

    /// Applies a commit of unknown outcome to the database.
    async fn land(&mut self) {
        if !self.limbo.is_empty() {
            let which = self.chance.below(self.limbo.len() as u64) as usize;
            let batch = self.limbo.swap_remove(which);
            let _ = self.memory.commit(&batch).await;
        }
    }

    /// Plays an operator who restores an old copy.
    fn restore(&mut self) {
        if let Some(backup) = self.backup.take() {
            self.memory.restore(&backup);
            self.restored = true;
        }
    }

    /// Checks the central property: which heads may be signed.
    async fn check_signable(&mut self, at: usize, head: &CommittedHead) {
        let known = self.signed.entry(head.size).or_insert(head.root);
        assert_eq!(*known, head.root, "size {} is signed with two roots", head.size);
        if !self.restored {
            let committed = self.memory.head_of_size(head.size).await.unwrap();
            assert_eq!(committed.as_ref(), Some(head), "a head is signed that is not in the history");
        }
        let pin = self.processes[at].pin.stands().unwrap();
        let newest = self.signed.last_key_value().map(|(size, _)| *size);
        let least = if self.shared_pin { newest } else { Some(head.size) };
        assert!(Some(pin.size) >= least, "the pin is behind a head that is signed");
    }

    async fn submit(&mut self, at: usize) {
        let policy = self.memory.head().await.unwrap().policy;
        let submission = self.any_submission(policy);
        let waiter = submission.entry.digest;
        let in_inbox = self.chance.percent(10);
        self.deliver(at, MachineInput::Submitted { submission: Arc::new(submission), waiter, in_inbox });
    }

    /// Chooses from a small set of statements, twins, claims and policies, so that they collide.
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
            // The twin of another statement.
            let other = named(1 + 5 * (name % 11));
            submission = named(1 + 5 * (name % 11) + 1000);
            submission.entry.twin = Some(other.entry.digest);
            submission.decided_under = policy;
        }
        submission
    }

    fn answered(&mut self, digest: EntryDigest, answer: CommandAnswer) {
        match answer {
            CommandAnswer::Done(Ok(placement)) => self.check_placement(digest, &placement),
            CommandAnswer::Done(Err(_)) | CommandAnswer::HandBack => {}
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

    /// Ends all faults, lets one process continue, and checks everything.
    async fn recover_for_good(&mut self) {
        self.faults = false;
        while !self.orphans.is_empty() {
            self.advance_orphan();
        }
        for at in 0..PROCESSES {
            self.processes[at].killed();
            self.processes[at].clock.ahead.store(0, Ordering::Relaxed);
        }
        self.start(0);
        self.settle().await;
        if self.processes[0].ineligible.is_some() {
            self.adopt(0).await;
            self.start(0);
            self.settle().await;
        }
        if self.processes[0].machine.is_some() {
            for name in 0..60 {
                let mut submission = named(name);
                submission.decided_under = self.memory.head().await.unwrap().policy;
                submission.is_policy = name == 0;
                let waiter = submission.entry.digest;
                let submission = Arc::new(submission);
                self.deliver(0, MachineInput::Submitted { submission, waiter, in_inbox: false });
                self.settle().await;
            }
        }
        self.check_log().await;
    }

    async fn settle(&mut self) {
        let is_busy = |process: &Process| {
            process.machine.as_ref().is_some_and(Machine::has_work)
                || process.starting.is_some()
                || process.asked.is_some()
                || process.doing.is_some()
                || process.next_input.is_some()
        };
        while is_busy(&self.processes[0]) {
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
        for signature in self.memory.signatures(None, usize::MAX).await.unwrap() {
            assert!(self.signed.contains_key(&signature.size), "a signature is stored that nobody made");
        }
        let unique: HashSet<EntryDigest> = entries.iter().map(|entry| entry.digest).collect();
        assert_eq!(unique.len(), entries.len(), "a statement has two leaves");
        let leads = self.processes[0].machine.is_some();
        assert!(leads || self.restored, "{:?}", self.processes[0].ineligible);
        if leads {
            for (size, root) in &self.signed {
                let row = history.iter().find(|head| head.size == *size);
                assert_eq!(row.map(|head| head.root), Some(*root), "a signed head is not in the history");
            }
            for submission in (0..60).chain(1000..1060).map(named) {
                let index = entries.iter().position(|entry| entry.digest == submission.entry.digest);
                let fits = index.is_none_or(|index| submission.may_follow(TreeSize::new(index as u64)));
                assert!(fits, "an entry is beyond its largest tree");
            }
            for (digest, index) in &self.placed {
                assert_eq!(entries[index.get() as usize].digest, *digest, "an answer was taken back");
            }
        }
    }
}
