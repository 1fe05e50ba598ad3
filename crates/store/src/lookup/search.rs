//! Search by several terms, built on [`Postings`], which answers for one term at a time.
//!
//! The search follows the rarest term and asks the other terms about its entries, chunk by chunk. The work of one
//! search is bounded: it stops after `CHUNKS` chunks and returns the entry from which it can continue.

use std::collections::BTreeSet;
use std::ops::Range;

use lookup_tree::TermKey;
use merkle::LeafIndex;

use super::postings::Postings;
use super::query::{Indexed, Order, Page, Query, TERMS, Term, VALUES_PER_TERM};
use crate::StoreError;

/// Number of candidates that are checked together.
const CHUNK: usize = 512;
/// Maximum number of chunks in one search.
const CHUNKS: usize = 16;
/// Limit up to which the entries of a term are counted; more frequent terms rank equal.
const FREQUENT: usize = 2000;

/// Runs a query over an index that is complete up to `indexed`.
pub(super) async fn search(
    postings: &Postings<'_>,
    indexed: Indexed,
    query: &Query,
) -> Result<Page, StoreError> {
    check(query)?;
    let within = query.within.start..query.within.end.min(indexed.to.get());
    let mut terms = rarest_first(postings, &query.terms).await?.into_iter();
    let mut search = SearchPlan {
        order: query.order,
        wanted: query.limit.saturating_add(1),
        found: Vec::new(),
        stopped: None,
    };
    match terms.next() {
        None => search.every(within),
        Some(rarest) => search.run(postings, &rarest, terms.as_slice(), within).await?,
    }
    Ok(search.page(query.limit, indexed))
}

fn check(query: &Query) -> Result<(), StoreError> {
    let too_many =
        query.terms.len() > TERMS || query.terms.iter().any(|term| term.values.len() > VALUES_PER_TERM);
    if too_many {
        return Err(StoreError::Refused(format!(
            "a search has at most {TERMS} terms of {VALUES_PER_TERM} values"
        )));
    }
    Ok(())
}

/// The keys of each term, those of the rarest one first.
async fn rarest_first(postings: &Postings<'_>, terms: &[Term]) -> Result<Vec<Vec<TermKey>>, StoreError> {
    let mut counted = Vec::with_capacity(terms.len());
    for term in terms {
        let keys = term.keys();
        let count = if terms.len() == 1 { 0 } else { postings.count(&keys, FREQUENT).await? };
        counted.push((count, keys));
    }
    counted.sort_by_key(|(count, _)| *count);
    Ok(counted.into_iter().map(|(_, keys)| keys).collect())
}

struct SearchPlan {
    order: Order,
    /// Limit of the query plus one, to know whether there are more entries.
    wanted: usize,
    found: Vec<LeafIndex>,
    /// Last candidate that was checked before the search stopped at its bound.
    stopped: Option<LeafIndex>,
}

impl SearchPlan {
    fn every(&mut self, within: Range<u64>) {
        let all = |entries: &mut dyn Iterator<Item = u64>| {
            entries.take(self.wanted).map(LeafIndex::new).collect::<Vec<_>>()
        };
        self.found = match self.order {
            Order::OldestFirst => all(&mut { within }),
            Order::NewestFirst => all(&mut within.rev()),
        };
    }

    async fn run(
        &mut self,
        postings: &Postings<'_>,
        rarest: &[TermKey],
        others: &[Vec<TermKey>],
        mut within: Range<u64>,
    ) -> Result<(), StoreError> {
        let chunk = if others.is_empty() { self.wanted.min(CHUNK * CHUNKS) } else { CHUNK };
        let mut stopped = None;
        for _ in 0..CHUNKS {
            let candidates = postings.follow(rarest, within.clone(), self.order, chunk).await?;
            let exhausted = candidates.len() < chunk;
            stopped = candidates.last().copied().filter(|_| !exhausted);
            self.found.extend(agreed(postings, others, candidates).await?);
            let Some(last) = stopped else { return Ok(()) };
            if self.found.len() >= self.wanted {
                return Ok(());
            }
            within = match self.order {
                Order::OldestFirst => last.get() + 1..within.end,
                Order::NewestFirst => within.start..last.get(),
            };
        }
        self.stopped = stopped;
        Ok(())
    }

    fn page(mut self, limit: usize, indexed: Indexed) -> Page {
        let full = self.found.len() > limit;
        self.found.truncate(limit);
        let more_after = if full { self.found.last().copied() } else { self.stopped };
        Page { entries: self.found, more_after, indexed }
    }
}

/// Returns the candidates that match all terms.
async fn agreed(
    postings: &Postings<'_>,
    terms: &[Vec<TermKey>],
    mut candidates: Vec<LeafIndex>,
) -> Result<Vec<LeafIndex>, StoreError> {
    for keys in terms {
        if candidates.is_empty() {
            break;
        }
        let agreeing: BTreeSet<LeafIndex> = postings.among(keys, &candidates).await?.into_iter().collect();
        candidates.retain(|entry| agreeing.contains(entry));
    }
    Ok(candidates)
}
