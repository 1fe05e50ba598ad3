//! Checks of the lookup index: each entry has its postings in the run of its leaf, and each run has the root of its
//! postings.

use lookup_tree::{BlindCode, Posting, RunBuilder};

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
        for entry in sound.iter().chain(erased) {
            match damage(self.is_indexed(entry, &catalog).await)? {
                Ok(true) => {}
                Ok(false) if self.is_still_wrong(entry).await? => {
                    report.add(Defect::LookupWrong { index: entry.index });
                }
                Ok(false) => {}
                Err(why) => return Ok(Err(why)),
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

    /// Returns whether the runs have all postings of an entry. An erased entry may still have those of its statement.
    async fn is_indexed(&self, entry: &Entry, catalog: &RunCatalog) -> Result<bool, StoreError> {
        let terms = match &entry.statement {
            Some(_) => self.facts.terms(self.store, entry).await?,
            None => Some(EntryTerms::blind(BlindCode::Erased)),
        };
        let Some(terms) = terms.filter(|_| !catalog.erased.contains_key(&entry.index)) else {
            return Ok(true);
        };
        let mut expected: Vec<Posting> =
            terms.keys.iter().map(|key| Posting { key: *key, leaf: entry.index }).collect();
        expected.sort_unstable();
        expected.dedup();
        for run in catalog.runs.iter().filter(|run| run.leaves().contains(&entry.index.get())) {
            if present(self.store, run, &expected).await? != expected {
                return Ok(false);
            }
        }
        Ok(true)
    }

    /// Reads entry and index again: the entry may have been erased, or a run replaced, between the reads.
    async fn is_still_wrong(&self, entry: &Entry) -> Result<bool, StoreError> {
        let catalog = self.store.catalog().await?;
        let now = damage(self.store.entry(entry.index).await)?.ok().flatten();
        let Some(now) = now.filter(|_| self.facts.lookup_form() == Some(catalog.form)) else {
            return Ok(false);
        };
        Ok(damage(self.is_indexed(&now, &catalog).await)? == Ok(false))
    }

    /// Computes the root of a run again; [`StoreError::Damaged`] if it is another one.
    async fn check_root(&self, run: &StoredRun) -> Result<(), StoreError> {
        let wrong = |why: String| StoreError::Damaged(why);
        let mut tree = RunBuilder::new();
        let (mut from, last) = (Posting::FIRST, Posting::LAST);
        loop {
            let blocks = self.store.blocks(run.build, from, last, Order::OldestFirst, BLOCKS).await?;
            for block in &blocks {
                for posting in postings_from(run, block, from)? {
                    tree.push(posting).map_err(|why| wrong(why.to_string()))?;
                    tree.take_nodes();
                    from = posting.successor();
                }
            }
            if blocks.len() < BLOCKS {
                break;
            }
        }
        match tree.finish().0 {
            summary if summary == run.summary => Ok(()),
            _ => Err(wrong("its postings are not those that it was written with".into())),
        }
    }
}
