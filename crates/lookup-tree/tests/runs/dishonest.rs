//! Answers of a log that lies: each is refused, or says the truth nevertheless.
//!
//! `TABELLION_TEST_DISHONEST_ANSWERS` says how many answers are tried; the published claim is a million.

use std::collections::{BTreeMap, BTreeSet};

use fastrand::Rng;
use lookup_tree::{IndexQuestion, LeafRange, Posting, PostingPrefix, ProofPart, RunProof, RunProofs};
use merkle::LeafIndex;

use crate::support::hash_of_part;
use crate::world::{World, any_key};

const DEFAULT_ANSWERS: usize = 20_000;
/// Lies about one question.
const LIES: usize = 100;

/// Sizes of the honest indexes: one bucket, a few nodes, several runs.
const SIZES: &[u64] = &[3, 17, 40, 300, 1_500, 4_096, 4_700];

#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
enum Lie {
    Drop,
    Hide,
    Move,
    Add,
    Shorten,
    Exchange,
    OlderHead,
    ForgedPrefix,
    HiddenBlind,
    ChangedByte,
}

const ALL: [Lie; 10] = [
    Lie::Drop,
    Lie::Hide,
    Lie::Move,
    Lie::Add,
    Lie::Shorten,
    Lie::Exchange,
    Lie::OlderHead,
    Lie::ForgedPrefix,
    Lie::HiddenBlind,
    Lie::ChangedByte,
];

#[test]
fn dishonest_answers_are_refused_or_true() {
    let answers = std::env::var("TABELLION_TEST_DISHONEST_ANSWERS").map(|number| number.parse().unwrap());
    let worlds: Vec<(World, World)> =
        SIZES.iter().map(|size| (World::new(*size, *size), World::new(*size, size * 9 / 10))).collect();
    let mut rng = Rng::with_seed(17);
    let mut refused: BTreeMap<Lie, usize> = BTreeMap::new();
    let mut tried = 0;
    while tried < answers.clone().unwrap_or(DEFAULT_ANSWERS) {
        let (world, older) = &worlds[rng.usize(0..worlds.len())];
        let liar = Liar::new(world, older, &mut rng);
        for _ in 0..LIES {
            let lie = ALL[rng.usize(0..ALL.len())];
            let Some(proofs) = liar.lie(lie, &mut rng) else { continue };
            tried += 1;
            match liar.verify(world, &proofs) {
                Some(found) => assert_eq!(found, liar.truth, "{lie:?} {:?} {proofs:?}", liar.question),
                None => *refused.entry(lie).or_default() += 1,
            }
        }
    }
    assert_eq!(refused.keys().copied().collect::<Vec<_>>(), ALL, "each lie was refused at least once");
    let refused: usize = refused.values().sum();
    assert!(refused > tried * 9 / 10, "{refused} of {tried} were refused");
}

/// Encoded proofs, as an answer contains them.
type Answer = BTreeMap<lookup_tree::RunId, Vec<u8>>;

/// A log that knows the true answer to a question and gives others.
struct Liar {
    question: IndexQuestion,
    truth: BTreeSet<Posting>,
    honest: RunProofs,
    shorter: RunProofs,
    other: RunProofs,
    older: RunProofs,
    without_blind: RunProofs,
    /// Number of leaves.
    size: u64,
}

impl Liar {
    fn new(world: &World, older: &World, rng: &mut Rng) -> Self {
        let question = world.question(rng);
        let LeafRange { start, end } = question.leaves();
        let cut = |limit: LeafIndex| LeafRange { start, end: end.min(limit) };
        let middle = LeafIndex::new(start.get() + (end.get() - start.get()) / 2);
        let older_end = LeafIndex::new(older.head.size.get());
        let liar = Self {
            truth: world.truth(&question),
            honest: world.prove(&question),
            shorter: world.prove(&question.clone().with_leaves(cut(middle))),
            other: world.prove(&world.question(rng)),
            older: older.prove(&question.clone().with_leaves(cut(older_end))),
            without_blind: world.prove_without_blind(&question),
            size: world.head.size.get(),
            question,
        };
        let encoded = liar.honest.iter().map(|(run, proof)| (*run, proof.encode())).collect();
        assert_eq!(liar.verify(world, &encoded).as_ref(), Some(&liar.truth), "the honest answer");
        liar
    }

    /// The postings of an answer that is accepted.
    fn verify(&self, world: &World, answer: &Answer) -> Option<BTreeSet<Posting>> {
        let decoded = answer.iter().map(|(run, bytes)| Some((*run, RunProof::decode(bytes).ok()?)));
        let proofs: RunProofs = decoded.collect::<Option<_>>()?;
        let proven = world.head.verify(self.question.clone(), &proofs).ok()?;
        let keys = self.question.keys().iter();
        let named = keys.flat_map(|key| {
            proven
                .leaves_of(*key)
                .unwrap()
                .into_iter()
                .map(|leaf| Posting { key: *key, leaf })
                .collect::<Vec<_>>()
        });
        Some(named.chain(proven.blind().map(|(leaf, code)| Posting::blind(code, leaf))).collect())
    }

    /// Another answer; `None` if this lie cannot be made of this answer.
    fn lie(&self, lie: Lie, rng: &mut Rng) -> Option<Answer> {
        let mut proofs = self.honest.clone();
        match lie {
            Lie::Shorten => proofs = self.shorter.clone(),
            Lie::OlderHead => proofs = self.older.clone(),
            Lie::HiddenBlind => proofs = self.without_blind.clone(),
            Lie::Exchange => exchange(&mut proofs, &self.other, rng)?,
            Lie::ChangedByte => {}
            _ => {
                let proof = any_of(proofs.values_mut(), rng)?;
                self.change(any_part(&mut proof.tree, rng), lie, rng)?;
            }
        }
        if proofs == self.honest && lie != Lie::ChangedByte {
            return None;
        }
        let mut answer: Answer = proofs.iter().map(|(run, proof)| (*run, proof.encode())).collect();
        if lie == Lie::ChangedByte {
            let bytes = any_of(answer.values_mut(), rng)?;
            let at = rng.usize(0..bytes.len());
            bytes[at] ^= rng.u8(1..);
        }
        Some(answer)
    }

    fn change(&self, part: &mut ProofPart, lie: Lie, rng: &mut Rng) -> Option<()> {
        match (lie, part) {
            (Lie::Hide, part) => *part = ProofPart::Hidden(hash_of_part(part)),
            (Lie::Drop, ProofPart::Bucket(postings) | ProofPart::Whole(postings)) if !postings.is_empty() => {
                postings.remove(rng.usize(0..postings.len()));
            }
            (Lie::Drop, part @ ProofPart::Inner { .. }) => {
                let ProofPart::Inner { left, right, .. } = part.clone() else { return None };
                *part = if rng.bool() { *left } else { *right };
            }
            (Lie::Add, ProofPart::Bucket(postings) | ProofPart::Whole(postings)) => {
                let key = any_key(rng, self.size);
                postings.push(Posting { key, leaf: LeafIndex::new(rng.u64(0..self.size)) });
                if rng.u8(0..4) > 0 {
                    postings.sort_unstable();
                }
            }
            (Lie::Move, ProofPart::Bucket(postings) | ProofPart::Whole(postings)) if !postings.is_empty() => {
                let at = rng.usize(0..postings.len());
                postings[at].leaf = LeafIndex::new(rng.u64(0..self.size));
                if rng.bool() {
                    postings.sort_unstable();
                }
            }
            (Lie::Move, ProofPart::Inner { left, right, .. }) => std::mem::swap(left, right),
            (Lie::ForgedPrefix, ProofPart::Inner { prefix, .. }) => {
                let key = any_of(self.question.keys().iter(), rng).copied()?;
                *prefix = match rng.u8(0..3) {
                    0 => PostingPrefix::of(prefix.last(), prefix.depth() + rng.u8(0..2)),
                    1 => PostingPrefix::of(prefix.first(), rng.u8(0..=192)),
                    _ => PostingPrefix::of(Posting { key, leaf: LeafIndex::new(0) }, prefix.depth()),
                };
            }
            _ => return None,
        }
        Some(())
    }
}

/// Replaces a proof by that of another question, or two runs' proofs by each other's.
fn exchange(proofs: &mut RunProofs, other: &RunProofs, rng: &mut Rng) -> Option<()> {
    let run = *any_of(proofs.keys(), rng)?;
    let given = match rng.bool() {
        true => any_of(other.values(), rng)?.clone(),
        false => any_of(proofs.values(), rng)?.clone(),
    };
    proofs.insert(run, given);
    Some(())
}

fn any_part<'p>(part: &'p mut ProofPart, rng: &mut Rng) -> &'p mut ProofPart {
    if rng.u8(0..6) == 0 || !matches!(part, ProofPart::Inner { .. }) {
        return part;
    }
    match part {
        ProofPart::Inner { left, right, .. } => any_part(if rng.bool() { left } else { right }, rng),
        leaf => leaf,
    }
}

fn any_of<T>(among: impl Iterator<Item = T>, rng: &mut Rng) -> Option<T> {
    let mut all: Vec<T> = among.collect();
    match all.is_empty() {
        true => None,
        false => Some(all.swap_remove(rng.usize(0..all.len()))),
    }
}
