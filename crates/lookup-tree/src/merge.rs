//! Merging of sorted runs into one, block by block.
//!
//! The merger holds one block of each input and says which input needs its next one, so that a database can load it.

use std::collections::VecDeque;

use crate::posting::Posting;

/// What [`RunMerger::step`] found.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum MergeStep {
    /// The next posting of the merged run.
    Posting(Posting),
    /// This input, counted from 0, needs [`RunMerger::supply`] or [`RunMerger::end`].
    Needs(usize),
    /// All inputs have ended.
    End,
}

/// Merges sorted inputs into one sorted sequence. Runs of different leaves share no posting; if inputs do, it occurs as
/// often in the output, and [`RunBuilder`](crate::RunBuilder) refuses it.
#[derive(Clone, Debug)]
pub struct RunMerger {
    inputs: Vec<MergeInput>,
}

#[derive(Clone, Debug, Default)]
struct MergeInput {
    postings: VecDeque<Posting>,
    ended: bool,
}

impl RunMerger {
    /// Creates a merger of this many inputs.
    pub fn new(inputs: usize) -> Self {
        Self { inputs: vec![MergeInput::default(); inputs] }
    }

    /// Adds the next postings of an input, in order.
    pub fn supply(&mut self, input: usize, postings: impl IntoIterator<Item = Posting>) {
        self.inputs[input].postings.extend(postings);
    }

    /// Ends an input: it has no further postings.
    pub fn end(&mut self, input: usize) {
        self.inputs[input].ended = true;
    }

    /// Takes the smallest posting of all inputs.
    pub fn step(&mut self) -> MergeStep {
        let empty = |input: &MergeInput| input.postings.is_empty() && !input.ended;
        if let Some(input) = self.inputs.iter().position(empty) {
            return MergeStep::Needs(input);
        }
        let smallest = self.inputs.iter_mut().filter(|input| !input.postings.is_empty());
        let smallest = smallest.min_by_key(|input| input.postings[0]);
        match smallest.and_then(|input| input.postings.pop_front()) {
            Some(posting) => MergeStep::Posting(posting),
            None => MergeStep::End,
        }
    }
}
