//! The index check: computes the log's search index again, and compares every head with it.
//!
//! The audit's entries are read a second time, for their search terms (`index_audit`). A head that is right is attested by
//! a signed note, once the entries are proven; one that is wrong is an accusation. Its evidence stands alone if the head
//! breaks a rule of its form, or if the log proves under a head that a posting is missing or does not belong there.
//! Otherwise it says what to compute again.
//!
//! Findings are saved with the state, and are reported in each round until the sink has saved them.

mod accuse;
mod attestation;
mod head_entry;
mod indexed_log;
mod narrow;
mod results;
mod terms;

use std::collections::HashSet;

use audit::{AuditSource, EntryEvidence, SourceError};
use client::Client;
use index_audit::{IndexRecomputation, IndexedEntry, RecomputationError};
use lookup_tree::IndexHead;
use merkle::tile::FULL_WIDTH;
use merkle::{EntryDigest, LeafHash, LeafIndex};
use verifier::TrustStore;

pub use attestation::Attestor;
pub use results::IndexResults;

use crate::config::WatchedLog;
use crate::signed_checkpoint::{SignedCheckpoint, TreeHead};
use crate::state::{LogFolder, MonitorStateError};
use accuse::{Accuser, run_name};
use head_entry::HeadEntry;
use indexed_log::{IndexedLog, payload};

/// Folder of the recomputed index in the log's folder.
const FOLDER: &str = "index";

/// The index check during one audit.
pub struct IndexCheck<'a> {
    target: &'a WatchedLog,
    folder: &'a LogFolder,
    attestor: Option<&'a Attestor>,
    trust: Option<&'a TrustStore>,
    log: IndexedLog<'a>,
    recomputation: IndexRecomputation,
    results: IndexResults,
    /// Heads that are right, and not attested yet.
    right: Vec<IndexHead>,
    now: u64,
}

/// Errors of the index check.
#[derive(Debug, thiserror::Error)]
pub enum IndexCheckError {
    /// The kept postings cannot be used.
    #[error("search index: {0}; without this folder, it is computed anew from leaf 0")]
    Kept(#[from] RecomputationError),
    /// The results cannot be stored.
    #[error(transparent)]
    State(#[from] MonitorStateError),
    /// The log does not answer.
    #[error("search index: {0}")]
    Source(#[from] SourceError),
}

impl<'a> IndexCheck<'a> {
    /// Loads the state of the check of a log.
    ///
    /// # Errors
    /// Returns an [`IndexCheckError`] if the state cannot be read.
    pub fn open(
        (target, folder): (&'a WatchedLog, &'a LogFolder),
        (trust, attestor): (Option<&'a TrustStore>, Option<&'a Attestor>),
        client: &'a Client,
        seen: &SignedCheckpoint,
        now: u64,
    ) -> Result<Self, IndexCheckError> {
        Ok(Self {
            target,
            folder,
            attestor,
            trust,
            log: IndexedLog::new(client, &target.origin, seen),
            recomputation: IndexRecomputation::open(&folder.file(FOLDER))?,
            results: IndexResults::load(folder)?,
            right: Vec::new(),
            now,
        })
    }

    /// The next leaf to read.
    pub fn next(&self) -> u64 {
        self.recomputation.next().get()
    }

    /// The tree of the leaves that were read.
    pub fn tree(&self) -> TreeHead {
        let tree = self.recomputation.tree();
        TreeHead { size: tree.size(), root: tree.root() }
    }

    /// Reads the audited entries up to before leaf `to`, and checks the heads among them. `agreed` are the leaves that the
    /// audit decided again without a difference.
    ///
    /// # Errors
    /// Returns an [`IndexCheckError`] if the log does not answer, or a file cannot be used.
    pub async fn read(
        &mut self,
        source: &dyn AuditSource,
        rows: Vec<EntryEvidence>,
        to: u64,
        agreed: &HashSet<LeafIndex>,
    ) -> Result<(), IndexCheckError> {
        let mut entries = Vec::new();
        let mut heads = Vec::new();
        let mut next = self.next();
        for row in rows.into_iter().filter(|row| (self.next()..to).contains(&row.index.get())) {
            for leaf in next..row.index.get() {
                entries.push(unserved(source, leaf).await?);
            }
            next = row.index.get() + 1;
            entries.push(indexed(source, &row).await?);
            heads.extend(HeadEntry::read(&row).filter(|head| agreed.contains(&head.leaf)));
        }
        for leaf in next..to {
            entries.push(unserved(source, leaf).await?);
        }
        self.recomputation.read_on(entries)?;
        for head in heads {
            self.check(&head).await?;
        }
        Ok(())
    }

    /// Compares a head with the index.
    async fn check(&mut self, entry: &HeadEntry) -> Result<(), IndexCheckError> {
        let policy = self.log.policy(entry.policy).await?;
        let Some(policy) = policy.filter(|policy| policy.index.trusted.series == entry.head.series) else {
            return Ok(());
        };
        if !policy.index.has_known_table() {
            self.results.heads.other_table += 1;
            return Ok(());
        }
        let faults = self.recomputation.check_form(&entry.head, entry.leaf, &entry.statement.digest())?;
        let runs = entry.head.scheduled_runs().unwrap_or_default();
        let is_read = entry.head.size.get() <= self.next();
        let comparison = match is_read {
            true => self.recomputation.compare_runs(&runs, entry.head.horizon)?,
            false => index_audit::RunComparison::default(),
        };
        if faults.is_empty() && comparison.wrong.is_empty() {
            self.results.heads.newest = entry.head.size.get();
            return match comparison.uncompared.first() {
                None => {
                    self.accept(&entry.head);
                    Ok(())
                }
                Some(run) => {
                    self.results.heads.uncompared += 1;
                    self.results.heads.why_uncompared = Some(run.to_string());
                    Ok(())
                }
            };
        }
        self.results.heads.wrong += 1;
        let accuser = Accuser {
            name: &self.target.name,
            log: &self.log,
            recomputation: &self.recomputation,
            trust: self.trust,
            policy: &policy,
            entry,
            now: self.now,
        };
        for fault in &faults {
            let alarm = accuser.form(fault).await;
            self.results.add(alarm);
        }
        for wrong in &comparison.wrong {
            if self.results.wants(&run_name(&wrong.run)) {
                let alarm = accuser.run(wrong).await;
                self.results.add(alarm);
            }
        }
        Ok(())
    }

    /// Counts a right head, and forgets the postings of entries that are erased for it.
    fn accept(&mut self, head: &IndexHead) {
        self.results.heads.right += 1;
        self.recomputation.settle(head.horizon);
        if self.attestor.is_some() {
            self.right.push(head.clone());
        }
    }

    /// Signs which heads are right, and saves findings and state. Once `Ok`, they survive power loss. The leaves that were
    /// read must be proven to be those of the log.
    ///
    /// # Errors
    /// Returns an [`IndexCheckError`] if a file cannot be written.
    pub fn keep(&mut self) -> Result<(), IndexCheckError> {
        if let Some(attestor) = self.attestor {
            for head in &self.right {
                attestor.attest(self.folder, &self.target.origin, head)?;
            }
            self.right.clear();
        }
        // Findings first: a head that is not yet counted as read is compared again.
        self.results.save(self.folder)?;
        Ok(self.recomputation.save()?)
    }

    /// The results so far.
    pub fn into_results(self) -> IndexResults {
        self.results
    }
}

/// Reads an entry for the index. A statement that is not the entry's is not counted as served: the audit accuses the log.
async fn indexed(source: &dyn AuditSource, row: &EntryEvidence) -> Result<IndexedEntry, SourceError> {
    let statement = row.statement.as_ref().filter(|bytes| EntryDigest::of(bytes) == row.digest);
    let payload = match statement {
        Some(_) => payload(source, row.index).await?,
        None => None,
    };
    Ok(IndexedEntry::read(row.digest, statement.map(|bytes| &bytes[..]), payload.as_deref()))
}

/// An entry whose row the log does not serve: only its leaf hash is known.
async fn unserved(source: &dyn AuditSource, leaf: u64) -> Result<IndexedEntry, SourceError> {
    let width = u64::from(FULL_WIDTH);
    let tile: Vec<LeafHash> = source.leaves(leaf / width).await?;
    let hash = tile.get((leaf % width) as usize).copied();
    hash.map(IndexedEntry::gone)
        .ok_or_else(|| SourceError::Damaged(format!("the tile of leaf {leaf} is too short")))
}
