//! An honest index of random entries, and its answers.

use std::collections::BTreeSet;

use fastrand::Rng;
use lookup_tree::{
    BlindCode, HeadRun, IndexHead, IndexQuestion, LeafRange, Posting, RunId, RunProof, RunProofs,
};
use lookup_tree::{RunSummary, ScheduledRun, TermKey, schedule};
use merkle::{Hash, LeafIndex, RootHash, TreeSize};

use crate::support::{agent, posting};

/// Keys that many entries have, those that some have, and the others: those of one entry each.
const COMMON: u64 = 3;
const RARE: u64 = 60;

/// The postings of an index, cut into runs.
pub struct World {
    pub head: IndexHead,
    runs: Vec<(ScheduledRun, RunSummary, Vec<Posting>)>,
}

impl World {
    /// Creates the index of the first leaves of a log. The same seed gives the same entries, whatever the size.
    pub fn new(seed: u64, size: u64) -> Self {
        let mut rng = Rng::with_seed(seed);
        let entries: Vec<Vec<Posting>> = (0..size).map(|leaf| entry(&mut rng, leaf)).collect();
        let runs = schedule(TreeSize::new(size)).into_iter().map(|run| {
            let leaves = run.leaves.start.get() as usize..run.leaves.end.get() as usize;
            let mut postings = entries[leaves].concat();
            postings.sort_unstable();
            (run, RunSummary::of(&postings).unwrap(), postings)
        });
        let runs: Vec<_> = runs.collect();
        let in_head = runs.iter().map(|(run, summary, _)| HeadRun { id: run.id, summary: *summary });
        let head = IndexHead {
            series: Hash::from_bytes([seed as u8; 32]),
            size: TreeSize::new(size),
            log_root: RootHash::from_bytes([size as u8; 32]),
            horizon: LeafIndex::new(0),
            runs: in_head.collect(),
        };
        Self { head, runs }
    }

    /// A question about up to three keys in random leaves; entries have most of the keys.
    pub fn question(&self, rng: &mut Rng) -> IndexQuestion {
        let keys: Vec<TermKey> = (0..rng.usize(1..4)).map(|_| any_key(rng, self.head.size.get())).collect();
        let (one, other) = (rng.u64(0..=self.head.size.get()), rng.u64(0..=self.head.size.get()));
        IndexQuestion::new(keys, LeafRange::new(one.min(other), one.max(other))).unwrap()
    }

    /// The postings that an honest answer has.
    pub fn truth(&self, question: &IndexQuestion) -> BTreeSet<Posting> {
        let all = self.runs.iter().flat_map(|(.., postings)| postings).copied();
        let in_question = |posting: &Posting| {
            let named = question.keys().contains(&posting.key) || posting.blind_code().is_some();
            named && question.leaves().contains(posting.leaf)
        };
        all.filter(in_question).collect()
    }

    pub fn prove(&self, question: &IndexQuestion) -> RunProofs {
        self.prove_with(question, |summary| *summary)
    }

    /// The proofs of a log that takes no account of its blind postings.
    pub fn prove_without_blind(&self, question: &IndexQuestion) -> RunProofs {
        self.prove_with(question, |summary| RunSummary { blind: 0, ..*summary })
    }

    fn prove_with(
        &self,
        question: &IndexQuestion,
        summary_of: impl Fn(&RunSummary) -> RunSummary,
    ) -> RunProofs {
        let proven = |(run, summary, postings): &(ScheduledRun, RunSummary, Vec<Posting>)| -> Option<(RunId, RunProof)> {
            let question = question.for_run(run, &summary_of(summary))?;
            let Ok(proof) = RunProof::prove(&postings[..], &question);
            Some((run.id, proof))
        };
        self.runs.iter().filter_map(proven).collect()
    }
}

fn entry(rng: &mut Rng, leaf: u64) -> Vec<Posting> {
    let at = LeafIndex::new(leaf);
    if rng.u8(0..50) == 0 {
        return vec![Posting::blind(BlindCode::Erased, at)];
    }
    let common = rng.u64(0..COMMON);
    let mut postings = vec![posting(agent(common), leaf), posting(agent(1_000 + leaf), leaf)];
    if rng.bool() {
        postings.push(posting(agent(100 + rng.u64(0..RARE)), leaf));
    }
    if rng.u8(0..100) == 0 {
        postings.push(Posting::blind(BlindCode::Unreadable, at));
    }
    postings
}

pub fn any_key(rng: &mut Rng, size: u64) -> TermKey {
    match rng.u8(0..4) {
        0 => agent(rng.u64(0..COMMON)),
        1 => agent(100 + rng.u64(0..RARE + 10)),
        _ => agent(1_000 + rng.u64(0..size + 5)),
    }
}
