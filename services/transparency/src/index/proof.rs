//! Answers of a search with the proof that they are complete, under the newest head of the index.
//!
//! A page has a range of leaves, and the lists of all terms in that range are proven. The range is cut so that no list is
//! longer than [`PROVEN_POSTINGS`]. Leaves from the size of the head on are in no page.
//!
//! An erasure changes the runs that it takes postings from. Until the next head commits to them, answers about them cannot be
//! proven.
//!
//! Not here: the file of a proof and its verification (`verifier::index`), and the HTTP response (`routes::proven_search`).

use std::collections::{BTreeMap, BTreeSet};
use std::ops::Range;
use std::sync::Arc;

use lookup_tree::{BlindCode, IndexQuestion, LeafRange, RunId, RunProofs, TermKey};
use merkle::LeafIndex;
use registration::policy::IndexRules;
use store::lookup::{BlindLeaf, HeadRuns, ProveError, RunCatalog};
use store::{Order, StoreError};

use super::{Index, RegisteredHead};
use crate::limits::PROVEN_POSTINGS;
use crate::run_blocking::run_blocking;
use crate::time::now;

/// Reason why an answer cannot be proven.
#[derive(Debug, thiserror::Error)]
pub enum ProofUnavailable {
    /// The policy in force has no index.
    #[error("the policy in force has no [index]")]
    NoIndex,
    /// The log has no head of its index yet.
    #[error("the log has no head of its index yet")]
    NoHead {
        /// Seconds after which there may be one.
        retry_after: u64,
    },
    /// Entries were erased after the newest head was made.
    #[error("entries were erased since the newest head of the index")]
    Outdated {
        /// Seconds after which there may be a newer head.
        retry_after: u64,
    },
    /// The store failed, or is damaged.
    #[error(transparent)]
    Store(#[from] StoreError),
}

/// A page of an answer, before it is proven.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct FoundPage {
    /// The leaves of the page. The next one starts where it ends, in the order of the search.
    pub leaves: LeafRange,
    /// The entries that have all terms, in the order of the search.
    pub entries: Vec<LeafIndex>,
    /// The entries that may have any term, in the order of the search.
    pub blind: Vec<BlindLeaf>,
}

/// A prover of answers under one head.
pub struct AnswerProver {
    index: Arc<Index>,
    /// The head.
    pub head: Arc<RegisteredHead>,
    catalog: RunCatalog,
    /// Seconds until the next head is due.
    retry_after: u64,
}

impl Index {
    /// Returns a prover under the newest head of the indexed entries.
    pub async fn prover(self: &Arc<Self>) -> Result<AnswerProver, ProofUnavailable> {
        let policy = self.log.policies.current();
        let rules = policy.as_ref().and_then(|policy| policy.in_force.policy().contents().index.as_ref());
        let rules: &IndexRules = rules.ok_or(ProofUnavailable::NoIndex)?;
        let head = self.newest_head(rules).await?;
        let head = head.ok_or(ProofUnavailable::NoHead { retry_after: rules.every })?;
        let due = head.issued_at.saturating_add(rules.every);
        let catalog = self.log.store.catalog().await?;
        let retry_after = due.saturating_sub(now()).max(1);
        let prover = AnswerProver { index: self.clone(), head, catalog, retry_after };
        prover.tail_must_be_as_it_was().await?;
        Ok(prover)
    }
}

impl AnswerProver {
    /// Finds a page of up to `limit` entries that have all of these keys.
    pub async fn find(
        &self,
        keys: &[TermKey],
        within: Range<u64>,
        order: Order,
        limit: usize,
    ) -> Result<FoundPage, ProofUnavailable> {
        let size = self.head.head.size.get();
        let mut leaves = LeafRange::new(within.start.min(size), within.end.min(size));
        leaves.end = leaves.end.max(leaves.start);
        let mut lists = Vec::with_capacity(keys.len());
        for key in keys {
            lists.push(self.list(*key, &mut leaves, order).await?);
        }
        let mut blind: Vec<BlindLeaf> = Vec::new();
        for code in BlindCode::ALL {
            let list = self.list(code.key(), &mut leaves, order).await?;
            blind.extend(list.into_iter().map(|leaf| (leaf, code)));
        }
        let lists = lists.into_iter().map(|list| list.into_iter().collect::<BTreeSet<_>>());
        let entries = lists.reduce(|one, other| &one & &other).unwrap_or_default();
        let entries: Vec<LeafIndex> = entries.into_iter().filter(|leaf| leaves.contains(*leaf)).collect();
        Ok(FoundPage::new(leaves, entries, blind, order).cut_after(limit, order))
    }

    /// The leaves of a range that have a key, in order. The range is cut after [`PROVEN_POSTINGS`] of them.
    async fn list(
        &self,
        key: TermKey,
        leaves: &mut LeafRange,
        order: Order,
    ) -> Result<Vec<LeafIndex>, ProofUnavailable> {
        if leaves.is_empty() {
            return Ok(Vec::new());
        }
        let runs = self.runs().await?;
        let store = &*self.index.log.store;
        let list = runs.leaves(store, &self.catalog, key, *leaves, order, PROVEN_POSTINGS + 1).await;
        let mut list = list.map_err(|why| self.refused(why))?;
        if let Some(next) = list.get(PROVEN_POSTINGS) {
            *leaves = part_before(*leaves, *next, order);
            list.truncate(PROVEN_POSTINGS);
        }
        Ok(list)
    }

    /// Proves the lists of these keys in the leaves of a page, and returns the encoded proofs of runs.
    pub async fn prove(
        &self,
        keys: &[TermKey],
        page: &FoundPage,
    ) -> Result<BTreeMap<RunId, Vec<u8>>, ProofUnavailable> {
        match self.try_to_prove(keys, page).await {
            // A run that was replaced meanwhile loses its blocks.
            Err(ProofUnavailable::Store(StoreError::Damaged(_))) if self.has_changed().await? => {
                Err(self.outdated())
            }
            proofs => proofs,
        }
    }

    async fn try_to_prove(
        &self,
        keys: &[TermKey],
        page: &FoundPage,
    ) -> Result<BTreeMap<RunId, Vec<u8>>, ProofUnavailable> {
        let store = &*self.index.log.store;
        let damaged = |why: String| StoreError::Damaged(format!("the lookup index cannot prove: {why}"));
        let question = IndexQuestion::new(keys.iter().copied(), page.leaves);
        let question = question.map_err(|why| StoreError::Refused(why.to_string()))?;
        let parts = self.runs().await?.read(store, &self.catalog, &question).await;
        let parts = parts.map_err(|why| self.refused(why))?;
        let head = &self.head.head;
        let proven = run_blocking(usize::MAX, || {
            let proofs: RunProofs = parts.iter().map(|part| part.prove()).collect::<Result<_, _>>()?;
            let answer = head.verify(question, &proofs).map_err(|why| damaged(why.to_string()))?;
            let each: Vec<Vec<TermKey>> = keys.iter().map(|key| vec![*key]).collect();
            let found: BTreeSet<LeafIndex> = page.entries.iter().copied().collect();
            match answer.candidates(&each) == Some(found) {
                true => Ok(proofs.iter().map(|(run, proof)| (*run, proof.encode())).collect()),
                false => Err(damaged("it proves other entries than it found".into())),
            }
        });
        self.tail_must_be_as_it_was().await?;
        proven.map_err(ProofUnavailable::from)
    }

    async fn runs(&self) -> Result<&HeadRuns, ProofUnavailable> {
        self.head.runs(&*self.index.log.store).await?.ok_or_else(|| self.outdated())
    }

    /// Refuses if an entry of the tail was erased since: the tail in memory still has its postings.
    async fn tail_must_be_as_it_was(&self) -> Result<(), ProofUnavailable> {
        let Some(tail) = self.runs().await?.tail_leaves() else { return Ok(()) };
        let erased = self.head.erased_since(&*self.index.log.store).await?;
        match erased.iter().any(|leaf| tail.contains(*leaf)) {
            true => Err(self.outdated()),
            false => Ok(()),
        }
    }

    async fn has_changed(&self) -> Result<bool, StoreError> {
        Ok(self.index.log.store.catalog().await?.runs != self.catalog.runs)
    }

    fn refused(&self, why: ProveError) -> ProofUnavailable {
        match why {
            ProveError::RunChanged(_) => self.outdated(),
            ProveError::Store(error) => error.into(),
        }
    }

    fn outdated(&self) -> ProofUnavailable {
        ProofUnavailable::Outdated { retry_after: self.retry_after }
    }
}

impl FoundPage {
    fn new(leaves: LeafRange, entries: Vec<LeafIndex>, blind: Vec<BlindLeaf>, order: Order) -> Self {
        let mut page = Self { leaves, entries, blind };
        page.blind.retain(|(leaf, _)| leaves.contains(*leaf));
        page.blind.sort_unstable();
        if order == Order::NewestFirst {
            page.entries.reverse();
            page.blind.reverse();
        }
        page
    }

    /// Ends the page after this many entries.
    pub fn cut_after(mut self, entries: usize, order: Order) -> Self {
        if let Some(next) = self.entries.get(entries) {
            self.leaves = part_before(self.leaves, *next, order);
            self.entries.truncate(entries);
            self.blind.retain(|(leaf, _)| self.leaves.contains(*leaf));
        }
        self
    }
}

/// The part of a range that comes before a leaf, in this order.
fn part_before(leaves: LeafRange, next: LeafIndex, order: Order) -> LeafRange {
    match order {
        Order::OldestFirst => LeafRange { end: next, ..leaves },
        Order::NewestFirst => LeafRange { start: LeafIndex::new(next.get() + 1), ..leaves },
    }
}
