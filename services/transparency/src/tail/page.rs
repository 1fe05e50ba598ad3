//! Pages of entries, serialized as events. Readers at the end of the log need the same page at the same moment, so it
//! is read once and shared. Readers further back read their own pages, a few at a time.

use std::sync::Arc;

use merkle::LeafIndex;
use store::{Order, Term};
use tokio::sync::{Mutex, Semaphore};
use tokio::time::Instant;

use super::EntryTails;
use super::event;
use crate::edge::problem::Problem;
use crate::limits::{TAIL_FOUND, TAIL_PAGE, TAIL_READS, TAIL_SHARED_FOR};
use crate::view::pages;

/// The filter of a reader.
#[derive(Clone, Debug, Default)]
pub struct EntryFilter {
    /// Terms that an entry must all match; without any, every entry matches.
    pub terms: Vec<Term>,
}

/// The matching entries of a range of leaves.
pub struct EventPage {
    /// The first leaf of the range.
    pub from: u64,
    /// The end of the range (exclusive); equal to `from` while there is nothing to read.
    pub next: u64,
    /// Leaves with their events.
    pub events: Vec<(u64, String)>,
}

/// The newest page, and the limit on concurrent reads, shared by all readers.
pub struct SharedPages {
    newest: Mutex<Option<(Instant, Arc<EventPage>)>>,
    reads: Semaphore,
}

impl Default for SharedPages {
    fn default() -> Self {
        Self { newest: Mutex::default(), reads: Semaphore::new(TAIL_READS) }
    }
}

/// Entries that a signed head covers could not be read.
#[derive(Debug)]
pub struct EntriesUnreadable;

impl SharedPages {
    /// The page from this leaf on, in the tree of `signed` leaves.
    pub async fn page(
        &self,
        tail: &EntryTails,
        filter: &EntryFilter,
        from: u64,
        signed: u64,
    ) -> Result<Arc<EventPage>, EntriesUnreadable> {
        if !filter.terms.is_empty() {
            let _turn = self.reads.acquire().await;
            return found(tail, filter, from, signed).await.map(Arc::new);
        }
        if signed - from > TAIL_PAGE as u64 {
            let _turn = self.reads.acquire().await;
            return every(tail, from, signed).await.map(Arc::new);
        }
        let mut newest = self.newest.lock().await;
        match &*newest {
            Some((read, page)) if page.serves(from) && read.elapsed() < TAIL_SHARED_FOR => Ok(page.clone()),
            _ => {
                let page = Arc::new(every(tail, from, signed).await?);
                *newest = Some((Instant::now(), page.clone()));
                Ok(page)
            }
        }
    }
}

impl EventPage {
    fn serves(&self, from: u64) -> bool {
        self.from <= from && from < self.next
    }
}

async fn every(tail: &EntryTails, from: u64, signed: u64) -> Result<EventPage, EntriesUnreadable> {
    let (read, _) = pages::read(&tail.log, from..signed, Order::OldestFirst, TAIL_PAGE)
        .await
        .map_err(|error| unreadable(error.into()))?;
    let next = from + read.len() as u64;
    let in_order = (from..).zip(&read).all(|(leaf, view)| view.index == leaf);
    if next == from || !in_order {
        tracing::error!(from, signed, "entries that are signed cannot be read");
        return Err(EntriesUnreadable);
    }
    let events = read.iter().map(|view| (view.index, event::entry(view))).collect();
    Ok(EventPage { from, next, events })
}

/// Reads a page through the lookup index. If the index lags behind the signed head, the page ends where the index does.
async fn found(
    tail: &EntryTails,
    filter: &EntryFilter,
    from: u64,
    signed: u64,
) -> Result<EventPage, EntriesUnreadable> {
    let failed = |error: store::StoreError| unreadable(error.into());
    let reached = tail.index.caught_up().await.map_err(failed)?;
    let end = signed.min(reached.indexed.to.get());
    if end <= from {
        return Ok(EventPage { from, next: from, events: Vec::new() });
    }
    let page = tail
        .index
        .search(filter.terms.clone(), from..end, Order::OldestFirst, TAIL_FOUND)
        .await
        .map_err(failed)?;
    // If the index was dropped meanwhile, it ends earlier.
    let next = page.more_after.map_or(end.min(page.indexed.to.get()), |last: LeafIndex| last.get() + 1);
    let found = pages::views(&tail.log, &page.entries).await.map_err(failed)?;
    let events = found.iter().map(|view| (view.index, event::entry(view))).collect();
    Ok(EventPage { from, next: next.max(from), events })
}

fn unreadable(problem: Problem) -> EntriesUnreadable {
    tracing::warn!(?problem, "a stream of entries cannot continue");
    EntriesUnreadable
}
