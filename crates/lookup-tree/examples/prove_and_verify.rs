//! Proves which entries of a log an agent has, and verifies the answer as its reader does.
//!
//! `cargo run -p tabellion-lookup-tree --example prove_and_verify`

use std::collections::BTreeMap;

use lookup_tree::{
    HeadRun, IndexHead, IndexQuestion, LeafRange, Posting, RunProof, RunSummary, TermKey, schedule,
};
use merkle::{Hash, LeafIndex, RootHash, TreeSize};

/// The kind of search value that names an agent.
const AGENT: u8 = 4;
/// The number of entries in the log: a run of 4,096 and a tail.
const SIZE: u64 = 5_000;

fn main() -> Result<(), Box<dyn std::error::Error>> {
    // The log: each entry names one of seven agents.
    let mut runs = Vec::new();
    for run in schedule(TreeSize::new(SIZE)) {
        let leaves = run.leaves.start.get()..run.leaves.end.get();
        let mut postings: Vec<_> =
            leaves.map(|leaf| Posting { key: agent(leaf % 7), leaf: LeafIndex::new(leaf) }).collect();
        postings.sort_unstable();
        runs.push((run, RunSummary::of(&postings)?, postings));
    }
    let head = IndexHead {
        series: Hash::from_bytes([0; 32]),
        size: TreeSize::new(SIZE),
        log_root: RootHash::from_bytes([0; 32]),
        horizon: LeafIndex::new(0),
        runs: runs.iter().map(|(run, summary, _)| HeadRun { id: run.id, summary: *summary }).collect(),
    };
    println!("the log commits to its index: {} bytes, SHA-256 {}", head.encode().len(), head.digest());

    // The service: proves the answer for each run that the question meets.
    let question = IndexQuestion::new([agent(3)], LeafRange::new(4_000, 4_200))?;
    let mut answer = BTreeMap::new();
    for (run, summary, postings) in &runs {
        if let Some(question) = question.for_run(run, summary) {
            answer.insert(run.id, RunProof::prove(&postings[..], &question)?.encode());
        }
    }

    // The reader: knows the head and the question, and trusts nothing else.
    let mut proofs = BTreeMap::new();
    for (run, bytes) in &answer {
        println!("proof of run {run}: {} bytes", bytes.len());
        proofs.insert(*run, RunProof::decode(bytes)?);
    }
    let proven = head.verify(question, &proofs)?;
    let leaves = proven.leaves_of(agent(3)).ok_or("the question has this key")?;
    println!("agent-3 has {} entries in leaves {}, and no others", leaves.len(), proven.question().leaves());
    Ok(())
}

fn agent(number: u64) -> TermKey {
    TermKey::of(AGENT, format!("agent-{number}").as_bytes())
}
