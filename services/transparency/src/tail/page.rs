//! Pages of entries, made into events. Readers at the end of the log want the same page at the same moment: it is read
//! once and shared. Those who are further back read on their own, a few at a time.

use std::sync::Arc;

use merkle::LeafIndex;
use store::Term;
use tokio::sync::{Mutex, Semaphore};
use tokio::time::Instant;

use super::event;
use crate::app::App;
use crate::limits::{TAIL_FOUND, TAIL_PAGE, TAIL_READS, TAIL_SHARED_FOR};
use crate::problem::Problem;
use crate::routes::listing;
use crate::routes::search::views;

/// What a reader wants to be told of.
#[derive(Clone, Debug, Default)]
pub struct Wanted {
    /// All of these are true of an entry; without any, every entry is told.
    pub terms: Vec<Term>,
}

/// Entries of consecutive leaves, or those of them that were wanted.
pub struct Page {
    /// The first leaf that was looked at.
    pub from: u64,
    /// The leaf behind the last that was looked at; `from` when there is nothing to look at yet.
    pub next: u64,
    /// Their events.
    pub events: Vec<(u64, String)>,
}

/// What readers share.
pub struct Shared {
    newest: Mutex<Option<(Instant, Arc<Page>)>>,
    reads: Semaphore,
}

impl Default for Shared {
    fn default() -> Self {
        Self { newest: Mutex::default(), reads: Semaphore::new(TAIL_READS) }
    }
}

/// What the log promised to hold could not be read.
#[derive(Debug)]
pub struct Unreadable;

impl Shared {
    /// The page from this leaf on, of the tree of `signed` leaves.
    pub async fn page(
        &self,
        app: &App,
        wanted: &Wanted,
        from: u64,
        signed: u64,
    ) -> Result<Arc<Page>, Unreadable> {
        if !wanted.terms.is_empty() {
            let _turn = self.reads.acquire().await;
            return found(app, wanted, from, signed).await.map(Arc::new);
        }
        if signed - from > TAIL_PAGE as u64 {
            let _turn = self.reads.acquire().await;
            return every(app, from, signed).await.map(Arc::new);
        }
        let mut newest = self.newest.lock().await;
        match &*newest {
            Some((read, page)) if page.serves(from) && read.elapsed() < TAIL_SHARED_FOR => Ok(page.clone()),
            _ => {
                let page = Arc::new(every(app, from, signed).await?);
                *newest = Some((Instant::now(), page.clone()));
                Ok(page)
            }
        }
    }
}

impl Page {
    fn serves(&self, from: u64) -> bool {
        self.from <= from && from < self.next
    }
}

async fn every(app: &App, from: u64, signed: u64) -> Result<Page, Unreadable> {
    let (read, _) = listing::read(app, from..signed, TAIL_PAGE).await.map_err(unreadable)?;
    let next = from + read.len() as u64;
    let in_order = (from..).zip(&read).all(|(leaf, view)| view.index() == leaf);
    if next == from || !in_order {
        tracing::error!(from, signed, "entries that are signed cannot be read");
        return Err(Unreadable);
    }
    let events = read.iter().map(|view| (view.index(), event::entry(view))).collect();
    Ok(Page { from, next, events })
}

/// What the lookup index finds. It may be behind the signed head: then no further than it is.
async fn found(app: &App, wanted: &Wanted, from: u64, signed: u64) -> Result<Page, Unreadable> {
    let failed = |error: store::StoreError| unreadable(error.into());
    let reached = app.index.caught_up().await.map_err(failed)?;
    let end = signed.min(reached.indexed.to.get());
    if end <= from {
        return Ok(Page { from, next: from, events: Vec::new() });
    }
    let page = app.index.search(wanted.terms.clone(), from..end, TAIL_FOUND).await.map_err(failed)?;
    // An index that was dropped meanwhile offers what it has.
    let next = page.more_after.map_or(end.min(page.indexed.to.get()), |last: LeafIndex| last.get() + 1);
    let found = views(app, &page.entries).await.map_err(failed)?;
    let events = found.iter().map(|view| (view.index(), event::entry(view))).collect();
    Ok(Page { from, next: next.max(from), events })
}

fn unreadable(problem: Problem) -> Unreadable {
    tracing::warn!(?problem, "a stream of entries cannot go on");
    Unreadable
}
