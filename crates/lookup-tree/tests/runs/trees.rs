//! Roots of random runs, however they are made.

use lookup_tree::{MergeStep, OutOfOrder, Posting, RunBuilder, RunMerger, RunSummary};
use proptest::prelude::*;

use crate::support::{agent, agents_in_turn, posting, root_by_definition};

/// Postings of few and many keys, with leaves close together and far apart.
pub fn any_run() -> impl Strategy<Value = Vec<Posting>> {
    let leaf = prop_oneof![0..64u64, any::<u64>()];
    let postings = prop::collection::btree_set((0..40u64, leaf), 0..200);
    postings.prop_map(|set| {
        let mut postings: Vec<_> = set.into_iter().map(|(key, leaf)| posting(agent(key), leaf)).collect();
        postings.sort_unstable();
        postings
    })
}

proptest! {
    #[test]
    fn a_root_is_a_function_of_the_postings(run in any_run()) {
        let summary = RunSummary::of(&run).unwrap();
        prop_assert_eq!(*summary.root.as_bytes(), root_by_definition(&run));
        prop_assert_eq!(summary.postings, run.len() as u64);
    }

    #[test]
    fn eight_runs_merge_into_the_run_of_all_their_postings(run in any_run(), parts in prop::collection::vec(0..8usize, 200)) {
        let part = |number| run.iter().zip(&parts).filter(move |(_, part)| **part == number).map(|(posting, _)| *posting);
        let mut inputs: Vec<_> = (0..8).map(|number| part(number).collect::<Vec<_>>().into_iter()).collect();
        let mut merger = RunMerger::new(8);
        let mut merged = Vec::new();
        loop {
            match merger.step() {
                MergeStep::Posting(posting) => merged.push(posting),
                MergeStep::Needs(input) => match inputs[input].by_ref().take(3).collect::<Vec<_>>() {
                    block if block.is_empty() => merger.end(input),
                    block => merger.supply(input, block),
                },
                MergeStep::End => break,
            }
        }
        prop_assert_eq!(merged, run);
    }
}

#[test]
fn a_posting_that_is_out_of_order_is_refused_and_changes_nothing() {
    let run = agents_in_turn(0, 40, 5);
    let mut builder = RunBuilder::new();
    for at in 0..run.len() {
        builder.push(run[at]).unwrap();
        let again = OutOfOrder { before: run[at], after: run[at] };
        assert_eq!(builder.push(run[at]), Err(again));
        assert!(at == 0 || builder.push(run[at - 1]).is_err());
    }
    assert_eq!(builder.finish().0, RunSummary::of(&run).unwrap());
}
