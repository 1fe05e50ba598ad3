//! Whole answers under a head of a run and the tail.

use data_encoding::HEXLOWER;
use lookup_tree::{AnswerRefused, IndexQuestion, LeafRange, RunId, RunProof, RunProofs};
use merkle::{LeafIndex, TreeSize};
use serde_json::{Value, json};

use super::Cases;
use crate::support::agent;
use crate::world::World;

const SIZE: u64 = 4_396;
const FIRST: RunId = RunId { level: 0, number: 0 };

pub fn answers() -> Cases {
    let (world, older) = (World::new(6, SIZE), World::new(6, SIZE - 50));
    let rare = |start, end| IndexQuestion::new([agent(101)], LeafRange::new(start, end)).unwrap();
    let all = rare(0, SIZE);
    let proofs = world.prove(&all);
    let case = |expected, why, question: &IndexQuestion, proofs: &RunProofs| {
        case(&world, expected, why, question, proofs)
    };
    let with = |run, proof: &RunProof| {
        let mut changed = proofs.clone();
        changed.insert(run, proof.clone());
        changed
    };
    let without = |run| {
        let mut changed = proofs.clone();
        changed.remove(&run);
        changed
    };
    let newest = rare(4_200, SIZE);
    let absent = IndexQuestion::new([agent(9_999)], LeafRange::new(0, SIZE)).unwrap();
    let mut other_runs = World::new(6, SIZE);
    other_runs.head.size = TreeSize::new(SIZE + 4_096);
    Cases::from([
        ("all-leaves", case("accept", "a proof for each run", &all, &proofs)),
        (
            "newest-leaves",
            case(
                "accept",
                "runs that the question does not meet need no proof",
                &newest,
                &world.prove(&newest),
            ),
        ),
        ("absent", case("accept", "a term that no entry has", &absent, &world.prove(&absent))),
        ("no-leaves", case("accept", "a question about no leaves", &rare(7, 7), &RunProofs::new())),
        ("run-missing", case("missing-run", "the older entries are left out", &all, &without(FIRST))),
        ("tail-missing", case("missing-run", "the newest entries are left out", &all, &without(RunId::TAIL))),
        (
            "run-unneeded",
            case(
                "unneeded-run",
                "a proof for a run that the question does not meet",
                &newest,
                &with(RunId::TAIL, &world.prove(&newest)[&RunId::TAIL]),
            ),
        ),
        (
            "run-unknown",
            case(
                "unneeded-run",
                "a proof for a run that is not in the head",
                &all,
                &with(RunId { level: 1, number: 0 }, &proofs[&FIRST]),
            ),
        ),
        (
            "run-exchanged",
            case("proof", "the tail's proof for the run", &all, &with(FIRST, &proofs[&RunId::TAIL])),
        ),
        (
            "older-tail",
            case(
                "proof",
                "a proof under an older head",
                &all,
                &with(RunId::TAIL, &older.prove(&rare(0, SIZE - 50))[&RunId::TAIL]),
            ),
        ),
        (
            "beyond-head",
            case("beyond-head", "the head does not index these leaves", &rare(0, SIZE + 1), &proofs),
        ),
        (
            "wrong-runs",
            self::case(&other_runs, "wrong-runs", "a head without one of its runs", &all, &proofs),
        ),
    ])
}

fn case(world: &World, expected: &str, why: &str, question: &IndexQuestion, proofs: &RunProofs) -> Value {
    let verified = world.head.verify(question.clone(), proofs);
    assert_eq!(verified.as_ref().map_or_else(name, |_| "accept"), expected, "{why}");
    let [start, end] = [question.leaves().start, question.leaves().end].map(LeafIndex::get);
    let proof = |(run, proof): (&RunId, &RunProof)| json!({ "level": run.level, "number": run.number, "proof": HEXLOWER.encode(&proof.encode()) });
    let found = verified.ok().map(|proven| {
        let leaves: Vec<_> =
            proven.leaves_of(question.keys()[0]).unwrap().into_iter().map(LeafIndex::get).collect();
        let blind: Vec<_> = proven.blind().map(|(leaf, code)| json!([leaf.get(), code as u8])).collect();
        json!({ "leaves": leaves, "blind": blind })
    });
    json!({
        "why": why,
        "head": HEXLOWER.encode(&world.head.encode()),
        "key": question.keys()[0].to_string(),
        "leaves": [start, end],
        "proofs": proofs.iter().map(proof).collect::<Vec<_>>(),
        "expected": expected,
        "found": found,
    })
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
