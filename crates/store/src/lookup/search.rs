//! Search by several terms, built on [`Rows`], which answers for one term at a time.
//!
//! The search follows the rarest term and asks the other terms about its entries, chunk by chunk. The work of one
//! search is bounded: it stops after `CHUNKS` chunks and returns the entry from which it can continue.

use std::collections::BTreeSet;
use std::ops::Range;

use async_trait::async_trait;
use merkle::LeafIndex;

use super::{Indexed, Order, Page, Query, TERMS, Term, VALUES_PER_TERM, stored_value};
use crate::StoreError;

/// Number of candidates that are checked together.
const CHUNK: usize = 512;
/// Maximum number of chunks in one search.
const CHUNKS: usize = 16;
/// Limit up to which the rows of a term are counted; more frequent terms rank equal.
const FREQUENT: usize = 2000;

/// Index queries for one term, implemented by each database. Values come in their stored form.
#[async_trait]
pub trait Rows: Sync {
    /// Returns the first `limit` entries of a range, in order, that have a row of the term; each once.
    async fn follow(
        &self,
        term: &Term,
        within: Range<u64>,
        order: Order,
        limit: usize,
    ) -> Result<Vec<LeafIndex>, StoreError>;

    /// Returns those of these entries that have a row of the term, in any order.
    async fn among(&self, term: &Term, entries: &[LeafIndex]) -> Result<Vec<LeafIndex>, StoreError>;

    /// Counts the rows of the term, up to `most`.
    async fn count(&self, term: &Term, most: usize) -> Result<usize, StoreError>;
}

/// Runs a query over an index that is complete up to `indexed`.
pub async fn search(rows: &impl Rows, indexed: Indexed, query: &Query) -> Result<Page, StoreError> {
    check(query)?;
    let within = query.within.start..query.within.end.min(indexed.to.get());
    let mut terms = rarest_first(rows, &query.terms).await?.into_iter();
    let mut search = SearchPlan {
        order: query.order,
        wanted: query.limit.saturating_add(1),
        found: Vec::new(),
        stopped: None,
    };
    match terms.next() {
        None => search.every(within),
        Some(rarest) => search.run(rows, &rarest, terms.as_slice(), within).await?,
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

async fn rarest_first(rows: &impl Rows, terms: &[Term]) -> Result<Vec<Term>, StoreError> {
    let mut counted = Vec::with_capacity(terms.len());
    for term in terms {
        let values: BTreeSet<String> =
            term.values.iter().map(|value| stored_value(value).into_owned()).collect();
        let term = Term { kind: term.kind, values: values.into_iter().collect() };
        let count = if terms.len() == 1 { 0 } else { rows.count(&term, FREQUENT).await? };
        counted.push((count, term));
    }
    counted.sort_by_key(|(count, _)| *count);
    Ok(counted.into_iter().map(|(_, term)| term).collect())
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
        rows: &impl Rows,
        rarest: &Term,
        others: &[Term],
        mut within: Range<u64>,
    ) -> Result<(), StoreError> {
        let chunk = if others.is_empty() { self.wanted.min(CHUNK * CHUNKS) } else { CHUNK };
        let mut stopped = None;
        for _ in 0..CHUNKS {
            let candidates = rows.follow(rarest, within.clone(), self.order, chunk).await?;
            let exhausted = candidates.len() < chunk;
            stopped = candidates.last().copied().filter(|_| !exhausted);
            self.found.extend(agreed(rows, others, candidates).await?);
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
    rows: &impl Rows,
    terms: &[Term],
    mut candidates: Vec<LeafIndex>,
) -> Result<Vec<LeafIndex>, StoreError> {
    for term in terms {
        if candidates.is_empty() {
            break;
        }
        let agreeing: BTreeSet<LeafIndex> = rows.among(term, &candidates).await?.into_iter().collect();
        candidates.retain(|entry| agreeing.contains(entry));
    }
    Ok(candidates)
}
