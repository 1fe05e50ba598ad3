//! Which run is written next: a full one of the tail, one that holds an erased entry, or a merge. What no longer belongs
//! to the index is deleted after that.
//!
//! Not here: how a run is written (`job`), and when (the service).

use std::collections::BTreeSet;

use lookup_tree::{BlindCode, Posting, RunId};
use merkle::{LeafIndex, TreeSize};

use super::LookupIndex;
use super::catalog::{RunCatalog, StoredRun, leaves_of};
use super::index::SearchIndex;
use super::job::{RunJob, RunSources};
use crate::StoreError;

/// Number of blocks deleted in one transaction.
const SWEPT_BLOCKS: usize = 256;

/// Writes the runs of an index, a part at each step. One process at a time should; of several, each run is completed
/// by one.
#[derive(Default)]
pub struct RunWriter {
    job: Option<RunJob>,
    /// Nothing is left to be deleted, as far as this process knows.
    is_swept: bool,
}

impl RunWriter {
    /// Creates a writer that begins with what a crash left.
    pub fn new() -> Self {
        Self::default()
    }

    /// Does the next part of the work; returns whether there may be more. The runs of the newest head, which has the size
    /// `head`, stay, so that answers under it can be proven.
    pub async fn step(
        &mut self,
        store: &dyn LookupIndex,
        index: &SearchIndex,
        catalog: &RunCatalog,
        head: Option<TreeSize>,
    ) -> Result<bool, StoreError> {
        if index.write_full_run(store, catalog).await? {
            return Ok(true);
        }
        if let Some(job) = self.job.take() {
            self.go_on(job, store, catalog).await?;
            return Ok(true);
        }
        if let Some((id, runs)) = next_run(catalog) {
            self.job = Some(RunJob::begin(store, id, sources(catalog, id, runs)).await?);
            return Ok(true);
        }
        if let Some(run) = catalog.superseded(head) {
            self.is_swept = false;
            store.retire_run(run.build).await?;
            return Ok(true);
        }
        if !self.is_swept {
            self.is_swept = !store.sweep(catalog.next, SWEPT_BLOCKS).await?;
        }
        Ok(!self.is_swept)
    }

    /// Writes a part of the run in progress. If that fails, or the run was outdated meanwhile, it is begun again.
    async fn go_on(
        &mut self,
        mut job: RunJob,
        store: &dyn LookupIndex,
        catalog: &RunCatalog,
    ) -> Result<(), StoreError> {
        self.is_swept = false;
        if job.dropped() != catalog.dropped {
            return Ok(());
        }
        let Some(summary) = job.advance(store).await? else {
            self.job = Some(job);
            return Ok(());
        };
        // A run that was replaced meanwhile may have lost values before they were read.
        if store.catalog().await?.has_all(&job.sources()) {
            store.finish_run(&job.finish(summary)).await?;
        }
        Ok(())
    }
}

/// The run that is to be written from complete ones, with those.
fn next_run(catalog: &RunCatalog) -> Option<(RunId, Vec<StoredRun>)> {
    if let Some(run) = catalog.outdated() {
        return Some((run.id, vec![run]));
    }
    let id = catalog.due()?;
    let parts = id.merged_from()?;
    Some((id, parts.iter().filter_map(|part| catalog.run(*part).copied()).collect()))
}

fn sources(catalog: &RunCatalog, id: RunId, runs: Vec<StoredRun>) -> RunSources {
    let without: BTreeSet<LeafIndex> = catalog.erased_in(leaves_of(id)).map(|(leaf, _)| leaf).collect();
    let ready = without.iter().map(|leaf| Posting::blind(BlindCode::Erased, *leaf)).collect();
    RunSources { dropped: catalog.dropped, runs, ready, without, listed: Vec::new() }
}
