//! Checks of the lookup index: each entry has its postings in the run of its leaf, and each run has the root and the tree
//! nodes that its postings give.

use std::collections::BTreeSet;

use lookup_tree::{BlindCode, InnerNode, Posting, PostingPrefix, RunBuilder};
use merkle::LeafIndex;

use super::{Defect, Fsck, FsckReport, damage};
use crate::lookup::{EntryTerms, RunCatalog, StoredRun, postings_from, present};
use crate::{Entry, Order, StoreError};

/// Number of blocks read at once.
const BLOCKS: usize = 16;

impl Fsck<'_> {
    /// Checks the postings of these entries, the next ones from leaf `from` on, and the runs that end among them, in the
    /// form that [`FsckFacts`](super::FsckFacts) knows. `sound` are those whose statement is present and right.
    pub(super) async fn check_index(
        &self,
        from: u64,
        entries: &[&Entry],
        sound: &[&Entry],
        report: &mut FsckReport,
    ) -> Result<Result<(), String>, StoreError> {
        let catalog = self.store.catalog().await?;
        if self.facts.lookup_form() != Some(catalog.form) {
            return Ok(Ok(()));
        }
        let erased = entries.iter().filter(|entry| entry.statement.is_none());
        let indexed: Vec<&Entry> = sound.iter().chain(erased).copied().collect();
        let incomplete = match damage(self.incomplete(&indexed, &catalog).await)? {
            Ok(incomplete) => incomplete,
            Err(why) => return Ok(Err(why)),
        };
        for entry in indexed.into_iter().filter(|entry| incomplete.contains(&entry.index)) {
            if self.is_still_wrong(entry).await? {
                report.add(Defect::LookupWrong { index: entry.index });
            }
        }
        let end = entries.last().map_or(from, |entry| entry.index.get() + 1);
        for run in catalog.runs.iter().filter(|run| (from + 1..=end).contains(&run.leaves().end)) {
            if let Err(why) = damage(self.check_root(run).await)?
                && self.store.catalog().await?.runs.contains(run)
            {
                report.add(Defect::RunWrong { run: run.id, why });
            }
        }
        Ok(Ok(()))
    }

    /// Returns the entries of which a run lacks postings.
    async fn incomplete(
        &self,
        entries: &[&Entry],
        catalog: &RunCatalog,
    ) -> Result<BTreeSet<LeafIndex>, StoreError> {
        let mut expected = BTreeSet::new();
        for entry in entries {
            expected.extend(self.postings(entry, catalog).await?);
        }
        let mut incomplete = BTreeSet::new();
        for run in &catalog.runs {
            let leaves = run.leaves();
            let of_run = expected.iter().copied().filter(|posting| leaves.contains(&posting.leaf.get()));
            let of_run: Vec<Posting> = of_run.collect();
            let found: BTreeSet<Posting> = present(self.store, run, &of_run).await?.into_iter().collect();
            let lacking = of_run.into_iter().filter(|posting| !found.contains(posting));
            incomplete.extend(lacking.map(|posting| posting.leaf));
        }
        Ok(incomplete)
    }

    /// The postings that each run of an entry's leaf must have. None are known of an entry that was just erased: runs may still
    /// have those of its statement.
    async fn postings(&self, entry: &Entry, catalog: &RunCatalog) -> Result<Vec<Posting>, StoreError> {
        let terms = match &entry.statement {
            Some(_) => self.facts.terms(self.store, entry).await?,
            None => Some(EntryTerms::blind(BlindCode::Erased)),
        };
        let known = terms.filter(|_| !catalog.erased.contains_key(&entry.index));
        let keys = known.into_iter().flat_map(|terms| terms.keys);
        Ok(keys.map(|key| Posting { key, leaf: entry.index }).collect())
    }

    /// Reads entry and index again: the entry may have been erased, or a run replaced, between the reads.
    async fn is_still_wrong(&self, entry: &Entry) -> Result<bool, StoreError> {
        let catalog = self.store.catalog().await?;
        let now = damage(self.store.entry(entry.index).await)?.ok().flatten();
        let Some(now) = now.filter(|_| self.facts.lookup_form() == Some(catalog.form)) else {
            return Ok(false);
        };
        let incomplete = damage(self.incomplete(&[&now], &catalog).await)?;
        Ok(incomplete.is_ok_and(|incomplete| !incomplete.is_empty()))
    }

    /// Computes root and nodes of a run again; [`StoreError::Damaged`] if they differ.
    async fn check_root(&self, run: &StoredRun) -> Result<(), StoreError> {
        let wrong = |why: String| StoreError::Damaged(why);
        let mut tree = RunBuilder::new();
        let (mut from, last) = (Posting::FIRST, Posting::LAST);
        loop {
            let blocks = self.store.blocks(run.build, from, last, Order::OldestFirst, BLOCKS).await?;
            for block in &blocks {
                for posting in postings_from(run, block, from)? {
                    tree.push(posting).map_err(|why| wrong(why.to_string()))?;
                    from = posting.successor();
                }
            }
            self.check_nodes(run, &tree.take_nodes()).await?;
            if blocks.len() < BLOCKS {
                break;
            }
        }
        let (summary, nodes) = tree.finish();
        self.check_nodes(run, &nodes).await?;
        match summary == run.summary {
            true => Ok(()),
            false => Err(wrong("its postings differ from those with which it was written".into())),
        }
    }

    /// Checks that the run has these nodes.
    async fn check_nodes(&self, run: &StoredRun, nodes: &[InnerNode]) -> Result<(), StoreError> {
        let prefixes: Vec<PostingPrefix> = nodes.iter().map(|node| node.prefix).collect();
        let stored = self.store.nodes(run.build, &prefixes).await?;
        match stored.into_iter().eq(nodes.iter().copied().map(Some)) {
            true => Ok(()),
            false => Err(StoreError::Damaged(
                "the nodes of its tree differ from those that its postings give".into(),
            )),
        }
    }
}
