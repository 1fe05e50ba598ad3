//! A run in memory, with the nodes that make its proofs cheap.

use std::collections::BTreeMap;
use std::convert::Infallible;

use crate::build::{RunBuilder, RunSummary};
use crate::node::InnerNode;
use crate::posting::{OutOfOrder, Posting};
use crate::prefix::PostingPrefix;
use crate::proof::RunSource;

/// All postings of a run and the upper nodes of its tree.
#[derive(Clone, Debug)]
pub struct RunTree {
    postings: Vec<Posting>,
    nodes: BTreeMap<PostingPrefix, InnerNode>,
    summary: RunSummary,
}

impl RunTree {
    /// Builds the tree of a run from all its postings, in order.
    ///
    /// # Errors
    /// Returns [`OutOfOrder`] if a posting does not come after the one before it.
    pub fn new(postings: Vec<Posting>) -> Result<Self, OutOfOrder> {
        let mut builder = RunBuilder::new();
        postings.iter().try_for_each(|posting| builder.push(*posting))?;
        let (summary, nodes) = builder.finish();
        Ok(Self { postings, nodes: nodes.into_iter().map(|node| (node.prefix, node)).collect(), summary })
    }

    /// Size and root of the run.
    pub fn summary(&self) -> RunSummary {
        self.summary
    }

    /// The postings, in order.
    pub fn postings(&self) -> &[Posting] {
        &self.postings
    }
}

impl RunSource for RunTree {
    type Error = Infallible;

    fn node_at(&self, place: &PostingPrefix) -> Result<Option<InnerNode>, Infallible> {
        let next = self.nodes.range(place..).next().map(|(_, node)| *node);
        Ok(next.filter(|node| node.prefix.is_within(place)))
    }

    fn postings_at(&self, place: &PostingPrefix) -> Result<Vec<Posting>, Infallible> {
        self.postings[..].postings_at(place)
    }
}
