//! Reading of a stored run for one proof, level by level.
//!
//! A database answers all places of a level in one query, so a proof waits as often as the stored part of the tree has
//! levels, and once for the lists of postings below it.

use std::collections::BTreeMap;

use super::prove::RunSource;
use crate::node::InnerNode;
use crate::posting::Posting;
use crate::prefix::PostingPrefix;
use crate::question::RunQuestion;

/// Plan of the reads for the proof of a question. The nodes come first, until [`places`](Self::places) is empty.
#[derive(Clone, Debug)]
pub struct RunReader {
    question: RunQuestion,
    places: Vec<PostingPrefix>,
    nodes: BTreeMap<PostingPrefix, InnerNode>,
    lists: Vec<PostingPrefix>,
}

/// The part of a stored run that the proof of one question needs.
#[derive(Clone, Debug)]
pub struct PartialRun {
    nodes: BTreeMap<PostingPrefix, InnerNode>,
    lists: BTreeMap<PostingPrefix, Vec<Posting>>,
}

/// Error: a proof needs the postings of a place that were not read.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("the postings of {} bits from key {} were not read", .0.depth(), .0.first().key)]
pub struct NotRead(pub PostingPrefix);

impl RunReader {
    /// Begins at the root of a run.
    pub fn new(question: RunQuestion) -> Self {
        Self { question, places: vec![PostingPrefix::ROOT], nodes: BTreeMap::new(), lists: Vec::new() }
    }

    /// The places of which the stored nodes are needed next: for each the one with the shortest prefix within it.
    pub fn places(&self) -> &[PostingPrefix] {
        &self.places
    }

    /// Takes the nodes of [`places`](Self::places), in their order; `None` where no node is stored.
    pub fn supply(&mut self, nodes: impl IntoIterator<Item = Option<InnerNode>>) {
        for (place, node) in std::mem::take(&mut self.places).into_iter().zip(nodes) {
            match node.filter(|node| node.prefix.is_within(&place)) {
                Some(node) => self.go_below(place, node),
                None => self.lists.push(place),
            }
        }
    }

    fn go_below(&mut self, place: PostingPrefix, node: InnerNode) {
        self.nodes.insert(place, node);
        if self.question.covers(&node.prefix) {
            return self.lists.push(node.prefix);
        }
        let children = node.prefix.children().map(|(left, right)| [left, right]);
        let met = children.into_iter().flatten().filter(|child| self.question.meets(child));
        self.places.extend(met);
    }

    /// The places of which all postings are needed.
    pub fn lists(&self) -> &[PostingPrefix] {
        &self.lists
    }

    /// Takes the postings of [`lists`](Self::lists), in their order.
    pub fn finish(self, lists: impl IntoIterator<Item = Vec<Posting>>) -> PartialRun {
        PartialRun { nodes: self.nodes, lists: self.lists.into_iter().zip(lists).collect() }
    }
}

impl RunSource for PartialRun {
    type Error = NotRead;

    fn node_at(&self, place: &PostingPrefix) -> Result<Option<InnerNode>, NotRead> {
        Ok(self.nodes.get(place).copied())
    }

    fn postings_at(&self, place: &PostingPrefix) -> Result<Vec<Posting>, NotRead> {
        self.lists.get(place).cloned().ok_or(NotRead(*place))
    }
}
