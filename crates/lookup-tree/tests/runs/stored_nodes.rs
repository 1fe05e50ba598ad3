//! Proofs from stored nodes are those from all postings.

use std::cell::Cell;
use std::collections::BTreeMap;
use std::convert::Infallible;

use lookup_tree::{
    IndexQuestion, InnerNode, LeafRange, Posting, PostingPrefix, RunProof, RunQuestion, RunSource,
};
use lookup_tree::{RunBuilder, RunReader, RunSummary, RunTree, schedule};
use merkle::TreeSize;

use crate::support::{agent, agents_in_turn};

/// A run with its stored nodes by first posting and depth, as a store has them.
struct StoredRun {
    postings: Vec<Posting>,
    nodes: BTreeMap<PostingPrefix, InnerNode>,
    /// The number of postings that were read.
    read: Cell<usize>,
}

impl StoredRun {
    fn new(postings: Vec<Posting>) -> (Self, RunSummary) {
        let mut builder = RunBuilder::new();
        let mut nodes = Vec::new();
        for posting in &postings {
            builder.push(*posting).unwrap();
            nodes.append(&mut builder.take_nodes());
        }
        let (summary, last) = builder.finish();
        nodes.extend(last);
        let nodes = nodes.into_iter().map(|node| (node.prefix, node)).collect();
        (Self { postings, nodes, read: Cell::new(0) }, summary)
    }
}

impl RunSource for StoredRun {
    type Error = Infallible;

    fn node_at(&self, place: &PostingPrefix) -> Result<Option<InnerNode>, Infallible> {
        let next = self.nodes.range(place..).next().map(|(_, node)| *node);
        Ok(next.filter(|node| node.prefix.is_within(place)))
    }

    fn postings_at(&self, place: &PostingPrefix) -> Result<Vec<Posting>, Infallible> {
        let postings = self.postings[..].postings_at(place)?;
        self.read.set(self.read.get() + postings.len());
        Ok(postings)
    }
}

#[test]
fn a_proof_from_stored_nodes_is_the_same_and_reads_few_postings() {
    let mut postings = agents_in_turn(0, 4_096, 3);
    postings.extend(agents_in_turn(0, 4_096, 4_096));
    postings.sort_unstable();
    postings.dedup();
    let tree = RunTree::new(postings.clone()).unwrap();
    let (stored, summary) = StoredRun::new(postings);
    assert_eq!(tree.summary(), summary);
    assert!(stored.nodes.len() > 8 && stored.nodes.values().all(|node| node.postings > 512));
    let run = schedule(TreeSize::new(4_096))[0];
    for (keys, leaves) in [
        (vec![agent(1)], LeafRange::new(0, 4_096)),
        (vec![agent(1)], LeafRange::new(100, 1_000)),
        (vec![agent(4_000)], LeafRange::new(0, 4_096)),
        (vec![agent(9_999)], LeafRange::new(0, 4_096)),
        ((0..20).map(agent).collect(), LeafRange::new(17, 18)),
    ] {
        let question = IndexQuestion::new(keys, leaves).unwrap().for_run(&run, &summary).unwrap();
        stored.read.set(0);
        let proof = RunProof::prove(&stored, &question).unwrap();
        assert_eq!(proof, RunProof::prove(&stored.postings[..], &question).unwrap());
        assert_eq!(proof, RunProof::prove(&tree, &question).unwrap());
        let found = proof.verify(&question, summary.root).unwrap();
        let expected = stored.postings.iter().filter(|posting| question.contains(**posting));
        assert!(found.iter().eq(expected));
        let read = 512 * 2 * question.intervals().len() + found.len();
        assert!(stored.read.get() <= read, "{} postings were read", stored.read.get());
        stored.read.set(0);
        assert_eq!(proof, prove_level_by_level(&stored, &question));
        assert!(stored.read.get() <= read, "{} postings were read", stored.read.get());
    }
}

/// Proves as an asynchronous store does: it reads what the plan names, and then nothing more.
fn prove_level_by_level(stored: &StoredRun, question: &RunQuestion) -> RunProof {
    let mut reader = RunReader::new(question.clone());
    let mut levels = 0;
    while !reader.places().is_empty() {
        let nodes: Vec<_> = reader.places().iter().map(|place| stored.node_at(place).unwrap()).collect();
        reader.supply(nodes);
        levels += 1;
    }
    assert!(levels <= 16, "{levels} levels of nodes were read");
    let lists: Vec<_> = reader.lists().iter().map(|place| stored.postings_at(place).unwrap()).collect();
    RunProof::prove(&reader.finish(lists), question).unwrap()
}

#[test]
fn a_stored_node_is_read_as_it_was_written() {
    let (stored, _) = StoredRun::new(agents_in_turn(0, 4_096, 4_096));
    for node in stored.nodes.values() {
        let prefix = PostingPrefix::from_bytes(&node.prefix.to_bytes()).unwrap();
        assert_eq!(InnerNode::from_bytes(prefix, &node.to_bytes()), *node);
    }
}
