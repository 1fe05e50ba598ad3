//! Whole answers under a head of a run and the tail.

use data_encoding::HEXLOWER;
use lookup_tree::{AnswerRefused, IndexQuestion, ProvenAnswer, RunId, RunProof, RunProofs};
use merkle::LeafIndex;
use serde::{Deserialize, Serialize};
use serde_json::{Value, json};
use testkit::vectors::DocumentEdit;

use super::heads::HeadDocument;
use super::{edited, range, read, unhex};
use crate::support::agent;
use crate::world::World;

/// An index, a question about an agent, and how the answer differs from an honest one.
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
pub struct AnswerCase {
    index: IndexSource,
    agent: u64,
    leaves: (u64, u64),
    other: Option<OtherAnswer>,
    /// Edits of the answer.
    #[serde(default)]
    answer: Vec<DocumentEdit>,
}

/// An index of random entries.
#[derive(Clone, Copy, Deserialize)]
#[serde(deny_unknown_fields)]
struct IndexSource {
    seed: u64,
    size: u64,
}

/// Another question about the agent, whose proofs edits can take.
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct OtherAnswer {
    index: Option<IndexSource>,
    leaves: (u64, u64),
}

/// A head, the proofs under it, and those of the other question.
#[derive(Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
struct AnswerDocument {
    head: HeadDocument,
    proofs: Vec<RunProofDocument>,
    other: Vec<RunProofDocument>,
}

#[derive(Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
struct RunProofDocument {
    level: u8,
    number: u64,
    proof: String,
}

/// Returns a question and an answer with the decision about it.
pub fn answer(case: &AnswerCase) -> Value {
    let AnswerDocument { head, proofs, .. } = case.document();
    let head = head.head();
    let question = question(case.agent, case.leaves);
    let run_proofs: RunProofs = proofs.iter().map(RunProofDocument::run_proof).collect();
    let verified = head.verify(question, &run_proofs);
    json!({
        "head": HEXLOWER.encode(&head.encode()),
        "key": agent(case.agent).to_string(),
        "leaves": case.leaves,
        "proofs": proofs,
        "expected": verified.as_ref().map_or_else(name, |_| "accept"),
        "found": verified.ok().map(|proven| found(&proven)),
    })
}

fn found(proven: &ProvenAnswer) -> Value {
    let key = proven.question().keys()[0];
    let leaves: Vec<_> = proven.leaves_of(key).unwrap().into_iter().map(LeafIndex::get).collect();
    let blind: Vec<_> = proven.blind().map(|(leaf, code)| json!([leaf.get(), code as u8])).collect();
    json!({ "leaves": leaves, "blind": blind })
}

fn question(number: u64, leaves: (u64, u64)) -> IndexQuestion {
    IndexQuestion::new([agent(number)], range(leaves)).unwrap()
}

impl AnswerCase {
    /// Returns the honest answer after its edits.
    fn document(&self) -> AnswerDocument {
        let world = self.index.world();
        let other = self.other.as_ref().map(|other| {
            let world = other.index.unwrap_or(self.index).world();
            self.proofs(&world, other.leaves)
        });
        let honest = AnswerDocument {
            head: HeadDocument::of(&world.head),
            proofs: self.proofs(&world, self.leaves),
            other: other.unwrap_or_default(),
        };
        read(&edited(json!(honest), &self.answer))
    }

    fn proofs(&self, world: &World, leaves: (u64, u64)) -> Vec<RunProofDocument> {
        let proofs = world.prove(&question(self.agent, leaves));
        proofs.iter().map(|(run, proof)| RunProofDocument::of(*run, proof)).collect()
    }
}

impl IndexSource {
    fn world(self) -> World {
        World::new(self.seed, self.size)
    }
}

impl RunProofDocument {
    fn of(run: RunId, proof: &RunProof) -> Self {
        Self { level: run.level, number: run.number, proof: HEXLOWER.encode(&proof.encode()) }
    }

    fn run_proof(&self) -> (RunId, RunProof) {
        let run = RunId { level: self.level, number: self.number };
        (run, RunProof::decode(&unhex(&self.proof)).unwrap())
    }
}

fn name(refused: &AnswerRefused) -> &'static str {
    match refused {
        AnswerRefused::BeyondHead { .. } => "beyond-head",
        AnswerRefused::WrongRuns(_) => "wrong-runs",
        AnswerRefused::MissingRun(_) => "missing-run",
        AnswerRefused::UnneededRun(_) => "unneeded-run",
        AnswerRefused::Proof { .. } => "proof",
    }
}
