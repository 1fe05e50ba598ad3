//! Searching by several terms at once, over what each database answers about one.
//!
//! The rarest term is followed and the others are asked about what it offers, chunk by chunk. The
//! work of one search is bounded: it stops after so many candidates and says where to go on.

use std::collections::BTreeSet;
use std::ops::Range;

use async_trait::async_trait;
use merkle::LeafIndex;

use super::{Indexed, Order, Page, Query, TERMS, Term, VALUES_PER_TERM, stored_value};
use crate::StoreError;

/// Candidates that are looked at together.
const CHUNK: usize = 512;
/// Chunks that one search looks at.
const CHUNKS: usize = 16;
/// From here on one term is as frequent as another.
const FREQUENT: usize = 2000;

/// What a database answers about one term. Values come in their stored form.
#[async_trait]
pub trait Rows: Sync {
    /// The first `limit` entries of a range, in order, that have a row of the term; each once.
    async fn follow(
        &self,
        term: &Term,
        within: Range<u64>,
        order: Order,
        limit: usize,
    ) -> Result<Vec<LeafIndex>, StoreError>;

    /// Which of these entries have a row of the term, in any order.
    async fn among(&self, term: &Term, entries: &[LeafIndex]) -> Result<Vec<LeafIndex>, StoreError>;

    /// How many rows of the term there are, counted up to `most`.
    async fn count(&self, term: &Term, most: usize) -> Result<usize, StoreError>;
}

/// Answers a query over an index that was read as far as `indexed`.
pub async fn search(rows: &impl Rows, indexed: Indexed, query: &Query) -> Result<Page, StoreError> {
    check(query)?;
    let within = query.within.start..query.within.end.min(indexed.to.get());
    let mut terms = rarest_first(rows, &query.terms).await?.into_iter();
    let mut search = Search {
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

struct Search {
    order: Order,
    /// One more than is answered, to know whether there is more.
    wanted: usize,
    found: Vec<LeafIndex>,
    /// The last candidate that was looked at when the search gave up.
    stopped: Option<LeafIndex>,
}

impl Search {
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

/// The candidates about which all terms agree.
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
