//! A log under test: one database, one state directory, one clock and one signer, which outlive
//! the processes that are started over them and remember all that left the building.
#![allow(dead_code, missing_docs, clippy::unwrap_used)]

use std::collections::{BTreeMap, HashSet};
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use async_trait::async_trait;
use bytes::Bytes;
use merkle::{CompactRange, EntryDigest, LeafIndex, RootHash, TreeSize, verify};
use sequencer::{
    Clock, Halt, Handle, HeadSigner, Limits, Now, Observer, PinFile, Placement, Redecide, Redecision, Role,
    Sequencer, SequencerParts, SignFailed, Submission, SubmitError, TimeWindow, Witnesses,
};
use store::{
    CommittedHead, FailingStore, GuardKey, HeadSignature, LogReader, Memory, NewEntry, SignatureKind,
    SignatureStore,
};
use tempfile::TempDir;
use tokio::sync::watch;

pub const ORIGIN: &str = "log.example";
pub const KID: &[u8] = b"key";
pub const START: u64 = 1_800_000_000;

/// All that outlives a process.
pub struct Log {
    pub memory: Memory,
    pub directory: TempDir,
    pub witnesses: Arc<dyn Witnesses>,
    pub clock: Arc<TestClock>,
    pub signer: Arc<TestSigner>,
    pub redecide: Arc<dyn Redecide>,
    pub limits: Limits,
    pub counts: Arc<Counts>,
    answered: Mutex<Vec<(EntryDigest, Placement)>>,
}

/// One process: a sequencer over a database that can be made to fail.
pub struct Process {
    pub handle: Handle,
    pub store: FailingStore,
}

impl Log {
    /// A database without entries.
    pub fn empty() -> Self {
        Self {
            memory: Memory::new(),
            directory: tempfile::tempdir_in(fast_directory()).unwrap(),
            witnesses: Arc::new(()),
            clock: Arc::new(TestClock::at(START)),
            signer: Arc::default(),
            redecide: Arc::new(AdmitAgain),
            limits: Limits { linger: Duration::ZERO, ..Limits::default() },
            counts: Arc::default(),
            answered: Mutex::default(),
        }
    }

    /// A log with entry 0, the policy, and so many more; nobody leads it now.
    pub async fn with(entries: u64) -> Self {
        let log = Self::empty();
        let process = log.start().await;
        log.submit(&process, policy(0)).await.unwrap();
        log.submit_all(&process, (1..=entries).map(statement)).await;
        process.handle.stop().await;
        log
    }

    pub async fn start(&self) -> Process {
        self.start_at(self.pin()).await
    }

    pub async fn start_at(&self, pin: PinFile) -> Process {
        let store = FailingStore::new(self.memory.clone());
        self.start_over(store, pin).await.unwrap()
    }

    pub async fn start_over(
        &self,
        store: FailingStore,
        pin: PinFile,
    ) -> Result<Process, sequencer::StartError> {
        let parts = SequencerParts {
            origin: ORIGIN.into(),
            holder: "a test".into(),
            store: Arc::new(store.clone()),
            signer: self.signer.clone(),
            pin: Arc::new(pin),
            witnesses: self.witnesses.clone(),
            clock: self.clock.clone(),
            redecide: self.redecide.clone(),
            observer: self.counts.clone(),
            limits: self.limits.clone(),
        };
        Ok(Process { handle: Sequencer::start(parts).await?, store })
    }

    pub fn pin(&self) -> PinFile {
        PinFile::in_directory(self.directory.path())
    }

    pub fn other_pin(&self) -> PinFile {
        PinFile::in_directory(self.directory.path().join("elsewhere"))
    }

    /// Makes every read and write of the pin fail, until [`unblock_pin`](Self::unblock_pin).
    pub fn block_pin(&self) {
        std::fs::create_dir(self.directory.path().join("pin.0")).expect("our own folder");
    }

    pub fn unblock_pin(&self) {
        std::fs::remove_dir(self.directory.path().join("pin.0")).expect("our own folder");
    }

    /// Submits one statement and remembers a placement.
    pub async fn submit(&self, process: &Process, what: Submission) -> Result<Placement, SubmitError> {
        let digest = what.entry.digest;
        let outcome = process.handle.submit(what).await;
        if let Ok(placement) = &outcome {
            self.answered.lock().unwrap().push((digest, placement.clone()));
        }
        outcome
    }

    /// Submits them at the same time.
    pub async fn submit_all(
        &self,
        process: &Process,
        what: impl IntoIterator<Item = Submission>,
    ) -> Vec<Result<Placement, SubmitError>> {
        let mut tasks = Vec::new();
        for submission in what {
            let handle = process.handle.clone();
            let digest = submission.entry.digest;
            tasks.push((digest, tokio::spawn(async move { handle.submit(submission).await })));
        }
        let mut outcomes = Vec::new();
        for (digest, task) in tasks {
            let outcome = task.await.unwrap();
            if let Ok(placement) = &outcome {
                self.answered.lock().unwrap().push((digest, placement.clone()));
            }
            outcomes.push(outcome);
        }
        outcomes
    }

    /// Submits again and again, as clients do, until it has its place.
    pub async fn insist(&self, process: &Process, what: Submission) -> Placement {
        for _ in 0..1000 {
            match self.submit(process, what.clone()).await {
                Ok(placement) => return placement,
                Err(
                    SubmitError::Store(_)
                    | SubmitError::QueueFull { .. }
                    | SubmitError::Accepted
                    | SubmitError::PolicyMoved { .. },
                ) => tokio::time::sleep(Duration::from_millis(50)).await,
                Err(other) => panic!("{other}"),
            }
        }
        panic!("no place after a thousand attempts");
    }

    pub fn answered(&self) -> Vec<(EntryDigest, Placement)> {
        self.answered.lock().unwrap().clone()
    }

    /// I1 to I8, from what left the building and what the database holds.
    pub async fn check(&self) {
        let history = self.memory.heads(0, usize::MAX).await.unwrap();
        let entries = self.memory.entries(LeafIndex::new(0), usize::MAX).await.unwrap();
        let roots = check_history(&history, &entries);
        for (size, root) in self.signer.signed() {
            assert_eq!(roots.get(&size), Some(&root), "a root was signed that is not in the history");
        }
        let mut digests = HashSet::new();
        assert!(entries.iter().all(|entry| digests.insert(entry.digest)), "a statement has two leaves");
        for (digest, placement) in self.answered() {
            let index = placement.index;
            assert_eq!(entries[index.get() as usize].digest, digest, "another statement is at {index}");
            check_placement(&digest, &placement);
        }
    }

    /// Sizes of committed heads of which no signature is kept.
    pub async fn unsigned(&self) -> Vec<TreeSize> {
        let signatures = self.memory.signatures(None, usize::MAX).await.unwrap();
        let signed: HashSet<TreeSize> = signatures.iter().map(|signature| signature.size).collect();
        let history = self.memory.heads(0, usize::MAX).await.unwrap();
        history.iter().map(|head| head.size).filter(|size| !signed.contains(size)).collect()
    }

    pub async fn size(&self) -> u64 {
        self.memory.head().await.unwrap().size().get()
    }

    pub async fn digests(&self) -> Vec<EntryDigest> {
        let entries = self.memory.entries(LeafIndex::new(0), usize::MAX).await.unwrap();
        entries.into_iter().map(|entry| entry.digest).collect()
    }
}

/// The whole tree again, from the stored bytes.
fn check_history(history: &[CommittedHead], entries: &[store::Entry]) -> BTreeMap<TreeSize, RootHash> {
    let mut range = CompactRange::empty();
    let mut roots = BTreeMap::new();
    let mut last: Option<CommittedHead> = None;
    for head in history {
        if let Some(last) = last {
            assert!(head.epoch >= last.epoch && head.at >= last.at && head.batch == last.batch + 1);
        }
        last = Some(*head);
        while range.size() < head.size {
            let entry = &entries[range.size().get() as usize];
            let digest = EntryDigest::of(entry.statement.as_ref().unwrap());
            assert_eq!((entry.index, entry.digest), (range.size().next_leaf(), digest));
            range.append(digest.leaf_hash());
        }
        assert_eq!((range.size(), range.root()), (head.size, head.root));
        roots.insert(head.size, head.root);
    }
    assert_eq!(range.size().get() as usize, entries.len(), "an entry is under no head");
    roots
}

fn check_placement(digest: &EntryDigest, placement: &Placement) {
    let head = placement.head.as_ref().expect("a placement has a signed head");
    assert!(head.head.size.holds(placement.index));
    assert!(head.signature(SignatureKind::Receipt).is_some());
    if let Some(path) = &placement.path {
        let (size, root) = (head.head.size, head.head.root);
        verify::inclusion(digest.leaf_hash(), placement.index, size, path, root).unwrap();
    }
}

impl Process {
    pub fn role(&self) -> Role {
        self.handle.status().borrow().role.clone()
    }

    /// Why it registers nothing: it is halted, or may not lead.
    pub fn halt(&self) -> Option<Halt> {
        let status = self.handle.status().borrow().clone();
        match status.role {
            Role::Halted(halt) => Some(halt),
            Role::Following => status.ineligible,
            _ => None,
        }
    }

    pub async fn until(&self, role: impl Fn(&Role) -> bool) {
        let mut status = self.handle.status();
        tokio::time::timeout(Duration::from_secs(600), status.wait_for(|status| role(&status.role)))
            .await
            .expect("the role does not come")
            .unwrap();
    }

    pub async fn until_leading(&self) {
        self.until(|role| matches!(role, Role::Leading { .. })).await;
    }

    /// Waits until it registers nothing, and says why.
    pub async fn until_halted(&self) -> Halt {
        let mut status = self.handle.status();
        let stopped = status.wait_for(|it| matches!(it.role, Role::Halted(_)) || it.ineligible.is_some());
        tokio::time::timeout(Duration::from_secs(600), stopped).await.expect("it goes on").unwrap();
        self.halt().unwrap()
    }
}

fn fast_directory() -> &'static str {
    if std::path::Path::new("/dev/shm").is_dir() { "/dev/shm" } else { "/tmp" }
}

/// A registration policy, decided under the one at `under`.
pub fn policy(under: u64) -> Submission {
    let mut policy = named(&format!("policy after {under}"));
    policy.is_policy = true;
    policy.under(under)
}

/// The n-th statement, decided under entry 0.
pub fn statement(n: u64) -> Submission {
    named(&format!("statement {n}"))
}

pub fn named(name: &str) -> Submission {
    let statement = Bytes::from(name.to_owned());
    Submission {
        entry: NewEntry {
            digest: EntryDigest::of(&statement),
            twin: None,
            statement,
            policy: LeafIndex::new(0),
            rule: "a rule".into(),
            facts: "{}".into(),
            guards: Vec::new(),
            collateral: Vec::new(),
        },
        valid: TimeWindow::ALWAYS,
        largest_tree: None,
        decided_under: LeafIndex::new(0),
        relied_absent: Vec::new(),
        relied_free: Vec::new(),
        side_data: Vec::new(),
        is_policy: false,
        corrects: None,
        effect: None,
    }
}

/// What a test changes about a submission.
pub trait But {
    fn under(self, policy: u64) -> Self;
    fn guarding(self, key: &str) -> Self;
    fn relying_on_absence_of(self, other: &Submission) -> Self;
    fn relying_on_nobody_guarding(self, key: &str) -> Self;
    fn with_twin(self, other: &Submission) -> Self;
    fn valid(self, from: u64, until: u64) -> Self;
    fn up_to(self, largest: u64) -> Self;
}

impl But for Submission {
    fn up_to(mut self, largest: u64) -> Self {
        self.largest_tree = Some(TreeSize::new(largest));
        self
    }

    fn under(mut self, policy: u64) -> Self {
        self.decided_under = LeafIndex::new(policy);
        self.entry.policy = self.decided_under;
        self
    }

    fn guarding(mut self, key: &str) -> Self {
        self.entry.guards.push(GuardKey(key.into()));
        self
    }

    fn relying_on_absence_of(mut self, other: &Submission) -> Self {
        self.relied_absent.push(other.entry.digest);
        self
    }

    fn relying_on_nobody_guarding(mut self, key: &str) -> Self {
        self.relied_free.push(GuardKey(key.into()));
        self
    }

    fn with_twin(mut self, other: &Submission) -> Self {
        self.entry.twin = Some(other.entry.digest);
        self
    }

    fn valid(mut self, from: u64, until: u64) -> Self {
        self.valid = TimeWindow { from, until };
        self
    }
}

/// A clock that stands still until it is told otherwise.
pub struct TestClock {
    wall: AtomicU64,
    steady: AtomicU64,
}

impl TestClock {
    pub fn at(wall: u64) -> Self {
        Self { wall: AtomicU64::new(wall), steady: AtomicU64::new(1000) }
    }

    /// Time goes by.
    pub fn pass(&self, seconds: u64) {
        self.wall.fetch_add(seconds, Ordering::SeqCst);
        self.steady.fetch_add(seconds, Ordering::SeqCst);
    }

    /// Somebody sets the clock.
    pub fn step(&self, seconds: i64) {
        self.wall.fetch_add(seconds as u64, Ordering::SeqCst);
    }
}

impl Clock for TestClock {
    fn now(&self) -> Now {
        let read = |clock: &AtomicU64| Duration::from_secs(clock.load(Ordering::SeqCst));
        Now { wall: read(&self.wall), steady: read(&self.steady) }
    }
}

/// Signs, and remembers all that it ever signed.
#[derive(Default)]
pub struct TestSigner {
    signed: Mutex<Vec<CommittedHead>>,
    failures: AtomicU64,
    /// The database in which a new key is announced.
    announced: watch::Sender<Option<Memory>>,
    /// The signatures that were kept when the key was taken up.
    kept_at_change: Mutex<Option<usize>>,
}

impl TestSigner {
    pub fn signed(&self) -> Vec<(TreeSize, RootHash)> {
        self.heads().iter().map(|head| (head.size, head.root)).collect()
    }

    pub fn heads(&self) -> Vec<CommittedHead> {
        self.signed.lock().unwrap().clone()
    }

    /// Announces a new key, and waits until it is taken up; answers how many signatures were kept then.
    pub async fn change_key(&self, memory: &Memory) -> usize {
        self.announced.send_replace(Some(memory.clone()));
        let mut announced = self.announced.subscribe();
        announced.wait_for(Option::is_none).await.unwrap();
        self.kept_at_change.lock().unwrap().take().unwrap()
    }

    pub fn fail(&self, times: u64) {
        self.failures.store(times, Ordering::SeqCst);
    }
}

#[async_trait]
impl HeadSigner for TestSigner {
    async fn key_waits(&self) {
        let _ = self.announced.subscribe().wait_for(Option::is_some).await;
    }

    async fn take_up(&self, _epoch: u64) -> Result<(), SignFailed> {
        let announced = self.announced.borrow().clone();
        if let Some(memory) = announced {
            let kept = memory.signatures(None, 1000).await.unwrap().len();
            *self.kept_at_change.lock().unwrap() = Some(kept);
            self.announced.send_replace(None);
        }
        Ok(())
    }

    fn makes(&self, _size: TreeSize) -> Vec<(SignatureKind, Vec<u8>)> {
        vec![(SignatureKind::Receipt, KID.into()), (SignatureKind::Checkpoint, KID.into())]
    }

    fn sign(&self, head: &CommittedHead) -> Result<Vec<HeadSignature>, SignFailed> {
        let left = self.failures.load(Ordering::SeqCst);
        if left > 0 {
            self.failures.store(left - 1, Ordering::SeqCst);
            return Err(SignFailed("the key is locked".into()));
        }
        self.signed.lock().unwrap().push(*head);
        let bytes = Bytes::from(format!("{} {} {}", head.size, head.root, head.at));
        let sign = |(kind, kid)| HeadSignature { size: head.size, kind, kid, bytes: bytes.clone() };
        Ok(self.makes(head.size).into_iter().map(sign).collect())
    }
}

/// Admits everything again, under the newest policy entry that its name says.
pub struct AdmitAgain;

#[async_trait]
impl Redecide for AdmitAgain {
    async fn redecide(&self, submission: Submission) -> Redecision {
        Redecision::Admit(Box::new(submission))
    }
}

/// Counts what the observer is told.
#[derive(Default)]
pub struct Counts {
    pub batches: AtomicU64,
    pub entries: AtomicU64,
    pub signatures: AtomicU64,
    pub heads: AtomicU64,
    pub unknown: AtomicU64,
    pub not_kept: AtomicU64,
}

impl Observer for Counts {
    fn batch_committed(&self, entries: usize, _bytes: usize, _took: Duration) {
        self.batches.fetch_add(1, Ordering::SeqCst);
        self.entries.fetch_add(entries as u64, Ordering::SeqCst);
    }

    fn head_published(&self, _size: TreeSize, _took: Duration) {
        self.heads.fetch_add(1, Ordering::SeqCst);
    }

    fn signatures_made(&self, count: usize, _took: Duration) {
        self.signatures.fetch_add(count as u64, Ordering::SeqCst);
    }

    fn commit_unknown(&self) {
        self.unknown.fetch_add(1, Ordering::SeqCst);
    }

    fn signature_not_kept(&self) {
        self.not_kept.fetch_add(1, Ordering::SeqCst);
    }
}
