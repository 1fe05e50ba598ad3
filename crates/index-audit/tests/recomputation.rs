//! The index of a small log, computed from its entries and compared with heads.
#![allow(clippy::unwrap_used)]

use std::collections::{BTreeMap, BTreeSet};
use std::path::Path;

use index_audit::{FormFault, IndexRecomputation, IndexedEntry, NotComparable, RunComparison};
use lookup_tree::{
    BlindCode, HeadRun, IndexHead, Posting, PostingPrefix, RunSummary, ScheduledRun, TermKey, schedule,
};
use merkle::{CompactRange, EntryDigest, Hash, LeafIndex, TreeSize};

/// An entry of the log: its keys, and the leaves that it erases.
#[derive(Clone, Default)]
struct Line {
    keys: BTreeSet<TermKey>,
    erases: Vec<u64>,
}

/// A log, and the index that it should have.
#[derive(Default)]
struct Log {
    lines: Vec<Line>,
}

impl Log {
    /// A log of entries with a frequent key, a rare one, and one of their own.
    fn of(size: u64) -> Self {
        let mut log = Self::default();
        (0..size).for_each(|_| log.push(Vec::new()));
        log
    }

    /// Adds an entry that erases these leaves.
    fn push(&mut self, erases: Vec<u64>) {
        let leaf = self.lines.len() as u64;
        let names = [format!("agent-{}", leaf % 3), format!("rare-{}", leaf % 977), format!("own-{leaf}")];
        let keys = names.iter().map(|name| TermKey::of(4, name.as_bytes())).collect();
        self.lines.push(Line { keys, erases });
    }

    fn digest(leaf: u64) -> EntryDigest {
        EntryDigest::of(&leaf.to_be_bytes())
    }

    /// The entry at a leaf, as a reader sees it that comes after the statements of `gone` were deleted.
    fn entry(&self, leaf: u64, gone: &BTreeSet<u64>) -> IndexedEntry {
        let line = &self.lines[leaf as usize];
        IndexedEntry {
            leaf: Self::digest(leaf).leaf_hash(),
            keys: Some(line.keys.clone()).filter(|_| !gone.contains(&leaf)),
            erases: line.erases.iter().map(|leaf| Self::digest(*leaf)).collect(),
        }
    }

    fn read(&self, index: &mut IndexRecomputation, to: u64, gone: &BTreeSet<u64>) {
        let from = index.next().get();
        let leaves: Vec<u64> = (from..to).collect();
        for page in leaves.chunks(64) {
            index.read_on(page.iter().map(|leaf| self.entry(*leaf, gone)).collect()).unwrap();
        }
    }

    fn erased_for(&self, horizon: u64) -> BTreeSet<u64> {
        self.lines.iter().take(horizon as usize).flat_map(|line| line.erases.clone()).collect()
    }

    fn postings(&self, run: &ScheduledRun, horizon: u64) -> Vec<Posting> {
        let erased = self.erased_for(horizon);
        let of_leaf = |leaf: u64| match erased.contains(&leaf) {
            true => vec![Posting::blind(BlindCode::Erased, LeafIndex::new(leaf))],
            false => {
                let keys = self.lines[leaf as usize].keys.iter();
                keys.map(|key| Posting { key: *key, leaf: LeafIndex::new(leaf) }).collect()
            }
        };
        let mut postings: Vec<_> = (run.leaves.start.get()..run.leaves.end.get()).flat_map(of_leaf).collect();
        postings.sort();
        postings
    }

    /// The right head.
    fn head(&self, size: u64, horizon: u64) -> IndexHead {
        let mut tree = CompactRange::empty();
        (0..size).for_each(|leaf| tree.append(Self::digest(leaf).leaf_hash()));
        let run = |run: ScheduledRun| HeadRun {
            id: run.id,
            summary: RunSummary::of(&self.postings(&run, horizon)).unwrap(),
        };
        IndexHead {
            series: Hash::from_bytes([7; 32]),
            size: TreeSize::new(size),
            log_root: tree.root(),
            horizon: LeafIndex::new(horizon),
            runs: schedule(TreeSize::new(size)).into_iter().map(run).collect(),
        }
    }
}

fn compare(index: &mut IndexRecomputation, head: &IndexHead) -> RunComparison {
    index.compare_runs(&head.scheduled_runs().unwrap(), head.horizon).unwrap()
}

fn faults(index: &mut IndexRecomputation, head: &IndexHead, leaf: u64) -> Vec<FormFault> {
    index.check_form(head, LeafIndex::new(leaf), &Log::digest(leaf)).unwrap()
}

fn open(folder: &Path) -> IndexRecomputation {
    IndexRecomputation::open(folder).unwrap()
}

#[test]
fn the_right_heads_of_any_size_have_no_fault_also_after_a_restart_and_long_afterwards() {
    let folder = tempfile::tempdir().unwrap();
    let log = Log::of(41_000);
    let none = BTreeSet::new();
    let mut index = open(folder.path());
    for size in [0, 1, 4_095, 4_096, 9_000, 36_863, 36_864, 40_000] {
        log.read(&mut index, size + 10, &none);
        let head = log.head(size, size);
        assert_eq!(faults(&mut index, &head, size + 5), []);
        assert!(compare(&mut index, &head).is_right(), "{size}");
        index.save().unwrap();
        index = open(folder.path());
    }
    for size in [500, 4_096, 8_191, 36_863] {
        assert!(compare(&mut index, &log.head(size, size)).is_right(), "{size}, an old one");
    }
}

#[test]
fn a_wrong_run_is_named_and_the_others_are_right() {
    let folder = tempfile::tempdir().unwrap();
    let log = Log::of(37_500);
    let mut index = open(folder.path());
    log.read(&mut index, 37_500, &BTreeSet::new());
    let right = log.head(37_000, 37_000);
    for wrong in 0..right.runs.len() {
        let mut head = right.clone();
        head.runs[wrong].summary.root = Hash::from_bytes([1; 32]);
        let comparison = compare(&mut index, &head);
        let named: Vec<_> = comparison.wrong.iter().map(|wrong| wrong.run.id).collect();
        assert_eq!(named, [head.runs[wrong].id]);
        assert_eq!(comparison.wrong[0].computed, right.runs[wrong].summary);
        assert!(comparison.wrong[0].to_string().contains(&format!("run {}", head.runs[wrong].id)));
    }
}

#[test]
fn an_erased_entry_is_blind_in_heads_whose_horizon_is_after_the_erasure() {
    let folder = tempfile::tempdir().unwrap();
    let (log, before, after) = log_with_erasure();
    let mut index = open(folder.path());
    log.read(&mut index, 5_101, &BTreeSet::new());
    assert_ne!(before.runs[0], after.runs[0]);
    assert!(compare(&mut index, &before).is_right());
    assert!(compare(&mut index, &after).is_right());
    index.settle(after.horizon);
    index.save().unwrap();
    let mut index = open(folder.path());
    assert!(compare(&mut index, &after).is_right(), "the pieces have only the blind posting");
    let why = compare(&mut index, &before).uncompared[0].why;
    assert_eq!(why, NotComparable::EarlierHorizon(LeafIndex::new(5_050)));
    let kept = index.postings(&after.scheduled_runs().unwrap()[0].0, after.horizon);
    let kept: Vec<Posting> = kept.map(Result::unwrap).filter(|posting| posting.leaf.get() == 3).collect();
    assert_eq!(kept, [Posting::blind(BlindCode::Erased, LeafIndex::new(3))]);
}

#[test]
fn a_run_with_an_entry_that_was_gone_before_it_was_read_is_compared_once_its_erasure_counts() {
    let folder = tempfile::tempdir().unwrap();
    let mut log = Log::of(200);
    log.push(vec![30]);
    log.push(Vec::new());
    let mut index = open(folder.path());
    log.read(&mut index, 202, &BTreeSet::from([30]));
    let why = compare(&mut index, &log.head(200, 200)).uncompared[0].why;
    assert_eq!(why, NotComparable::Gone(LeafIndex::new(30)));
    let head = log.head(201, 201);
    assert!(compare(&mut index, &head).is_right());
    index.settle(head.horizon);
    assert!(compare(&mut index, &head).is_right());
}

#[test]
fn each_fault_of_the_form_is_found() {
    let folder = tempfile::tempdir().unwrap();
    let log = Log::of(300);
    let mut index = open(folder.path());
    log.read(&mut index, 300, &BTreeSet::new());
    let sound = log.head(200, 200);
    assert_eq!(faults(&mut index, &sound, 210), []);
    assert_eq!(faults(&mut index, &sound, 210), [], "the same head again");
    let root = IndexHead { log_root: log.head(199, 199).log_root, ..sound.clone() };
    let found = faults(&mut index, &root, 211);
    assert!(matches!(found[..], [FormFault::OtherLogRoot { .. }, FormFault::TwoHeads { .. }]), "{found:?}");
    let found = faults(&mut index, &log.head(220, 199), 221);
    assert!(matches!(&found[..], [FormFault::HorizonBack { earlier, .. }] if earlier.leaf.get() == 210));
    let no_runs = IndexHead { runs: Vec::new(), ..log.head(230, 230) };
    assert!(matches!(faults(&mut index, &no_runs, 231)[..], [FormFault::WrongRuns(_)]));
    assert!(matches!(faults(&mut index, &log.head(260, 260), 250)[..], [FormFault::BeyondLeaf { .. }]));
}

#[test]
fn after_a_crash_the_recomputation_goes_on_from_what_was_saved() {
    let folder = tempfile::tempdir().unwrap();
    let log = Log::of(9_000);
    let none = BTreeSet::new();
    let mut index = open(folder.path());
    log.read(&mut index, 3_000, &none);
    index.save().unwrap();
    // The first piece is written when it is full, and the state is not.
    log.read(&mut index, 5_000, &none);
    drop(index);
    let mut index = open(folder.path());
    assert_eq!(index.next().get(), 3_000);
    log.read(&mut index, 9_000, &none);
    assert!(compare(&mut index, &log.head(8_500, 8_500)).is_right());
}

/// A log with two heads, one before and one after the erasure of entries in the first piece and in the open one.
fn log_with_erasure() -> (Log, IndexHead, IndexHead) {
    let mut log = Log::of(5_000);
    log.push(vec![3, 4_999]);
    (0..100).for_each(|_| log.push(Vec::new()));
    let (before, after) = (log.head(5_000, 5_000), log.head(5_050, 5_050));
    (log, before, after)
}

#[test]
fn after_a_crash_before_the_state_is_saved_an_earlier_head_is_still_right() {
    let folder = tempfile::tempdir().unwrap();
    let (log, before, after) = log_with_erasure();
    let none = BTreeSet::new();
    let mut index = open(folder.path());
    log.read(&mut index, 4_500, &none);
    index.save().unwrap();
    let state = folder.path().join("state.json");
    let saved = std::fs::read(&state).unwrap();
    log.read(&mut index, 5_101, &none);
    assert!(compare(&mut index, &after).is_right());
    index.settle(after.horizon);
    drop(index);
    assert_eq!(std::fs::read(&state).unwrap(), saved, "only a save writes the state");
    let mut index = open(folder.path());
    log.read(&mut index, 5_101, &none);
    assert!(compare(&mut index, &before).is_right());
    assert!(compare(&mut index, &after).is_right());
}

#[test]
fn after_a_crash_while_postings_are_removed_no_head_is_wrong_and_the_next_save_removes_the_rest() {
    let folder = tempfile::tempdir().unwrap();
    let (log, before, after) = log_with_erasure();
    let mut index = open(folder.path());
    log.read(&mut index, 5_101, &BTreeSet::new());
    assert!(compare(&mut index, &after).is_right());
    index.settle(after.horizon);
    let [postings, aside, state] =
        ["0000000000000000.postings", "aside", "state.json"].map(|name| folder.path().join(name));
    std::fs::rename(&postings, &aside).unwrap();
    index.save().unwrap_err();
    std::fs::rename(&aside, &postings).unwrap();
    let (between, kept) = (std::fs::read(&state).unwrap(), std::fs::read(&postings).unwrap());
    let check = || {
        let mut index = open(folder.path());
        let comparison = compare(&mut index, &before);
        assert_eq!(comparison.wrong, []);
        assert_eq!(comparison.uncompared[0].why, NotComparable::EarlierHorizon(after.horizon));
        assert!(compare(&mut index, &after).is_right());
        assert!(compare(&mut index, &log.head(5_090, 5_090)).is_right());
    };
    check();
    open(folder.path()).save().unwrap();
    assert_ne!(std::fs::read(&postings).unwrap(), kept);
    check();
    std::fs::write(&state, between).unwrap();
    check();
}

#[test]
fn a_damaged_file_is_named() {
    let folder = tempfile::tempdir().unwrap();
    let log = Log::of(5_000);
    let mut index = open(folder.path());
    log.read(&mut index, 5_000, &BTreeSet::new());
    index.save().unwrap();
    let postings = folder.path().join("0000000000000000.postings");
    let bytes = std::fs::read(&postings).unwrap();
    for damaged in [bytes[..bytes.len() - 1].to_vec(), [vec![0; 4], bytes].concat()] {
        std::fs::write(&postings, damaged).unwrap();
        let head = log.head(5_000, 5_000);
        let error = open(folder.path()).compare_runs(&head.scheduled_runs().unwrap(), head.horizon);
        assert!(error.unwrap_err().to_string().contains("0000000000000000.postings"));
    }
    std::fs::write(folder.path().join("state.json"), "{}").unwrap();
    assert!(IndexRecomputation::open(folder.path()).unwrap_err().to_string().contains("state.json"));
}

#[test]
fn the_hash_of_a_place_is_that_of_the_subtree() {
    let folder = tempfile::tempdir().unwrap();
    let log = Log::of(600);
    let mut index = open(folder.path());
    log.read(&mut index, 600, &BTreeSet::new());
    let head = log.head(600, 600);
    let (run, summary) = head.scheduled_runs().unwrap()[0];
    let stream = || index.postings(&run, head.horizon);
    assert_eq!(stream().summarize(&PostingPrefix::ROOT).unwrap(), summary);
    let (left, right) = PostingPrefix::ROOT.children().unwrap();
    let halves = [left, right].map(|half| stream().summarize(&half).unwrap().postings);
    assert_eq!(halves.iter().sum::<u64>(), summary.postings);
    let by_leaf: BTreeMap<u64, usize> = stream().fold(BTreeMap::new(), |mut counts, posting| {
        *counts.entry(posting.unwrap().leaf.get()).or_default() += 1;
        counts
    });
    assert!(by_leaf.len() == 600 && by_leaf.values().all(|count| *count == 3));
}
