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
    let (rarest, others) = rarest_first(postings, &query.terms).await?;
    let mut search = SearchPlan {
        order: query.order,
        wanted: query.limit.saturating_add(1),
        found: Vec::new(),
        stopped: None,
    };
    match rarest {
        None => search.every(within),
        Some(rarest) => search.run(postings, &rarest, &others, within).await?,
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

/// A term, and its entries if they are few.
struct CountedTerm {
    keys: Vec<TermKey>,
    /// All its entries, ascending, if counting it has read them.
    entries: Option<Vec<LeafIndex>>,
}

/// Returns the rarest term, and the keys of the others. A single term is not counted.
async fn rarest_first(
    postings: &Postings<'_>,
    terms: &[Term],
) -> Result<(Option<CountedTerm>, Vec<Vec<TermKey>>), StoreError> {
    let mut rarest: Option<CountedTerm> = None;
    let mut others = Vec::new();
    for term in terms {
        let mut term = CountedTerm { keys: term.keys(), entries: None };
        if terms.len() > 1 {
            // Of a term that has more entries than the rarest one, nobody needs to know how many.
            let most = rarest.as_ref().and_then(|rarest| rarest.entries.as_ref()).map_or(FREQUENT, Vec::len);
            let entries = postings.follow(&term.keys, 0..u64::MAX, Order::OldestFirst, most).await?;
            term.entries = Some(entries).filter(|entries| entries.len() < most);
        }
        match &mut rarest {
            Some(rarest) if term.entries.is_none() => others.push(term.keys),
            Some(rarest) => others.push(std::mem::replace(rarest, term).keys),
            None => rarest = Some(term),
        }
    }
    Ok((rarest, others))
}

impl CountedTerm {
    /// Returns the first `limit` entries of a range.
    async fn entries(
        &self,
        postings: &Postings<'_>,
        within: Range<u64>,
        order: Order,
        limit: usize,
    ) -> Result<Vec<LeafIndex>, StoreError> {
        let Some(entries) = &self.entries else {
            return postings.follow(&self.keys, within, order, limit).await;
        };
        let here = entries.iter().copied().filter(|entry| within.contains(&entry.get()));
        Ok(match order {
            Order::OldestFirst => here.take(limit).collect(),
            Order::NewestFirst => here.rev().take(limit).collect(),
        })
    }
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
        rarest: &CountedTerm,
        others: &[Vec<TermKey>],
        mut within: Range<u64>,
    ) -> Result<(), StoreError> {
        let chunk = if others.is_empty() { self.wanted.min(CHUNK * CHUNKS) } else { CHUNK };
        let mut stopped = None;
        for _ in 0..CHUNKS {
            let candidates = rarest.entries(postings, within.clone(), self.order, chunk).await?;
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
