//! The lookup index of a running log: read from its entries, a little behind them, and never in their way.
//!
//! Every process that leads reads what was committed and writes what it says; one that follows does so only when the
//! index stands still. Two that read the same write it once: the store moves the index by compare-and-swap. A dropped
//! index is read again from entry 0 while searches go on; they say up to which size it was read.
//!
//! Not here: what an entry says (`registration::Record`), rows and queries (`store`), the words of HTTP (`routes`).

mod read;
mod tally;

use std::sync::Arc;

use axum::extract::State;
use axum::response::{IntoResponse, Response};
use axum::routing::post;
use axum::{Json, Router};
use http::StatusCode;
use merkle::TreeSize;
use registration::LookupKind;
use sequencer::{Role, Status};
use serde_json::json;
use store::{Entry, Indexed, LogStore, Lookup, Order, Page, Query, StoreError, Term};
use tokio::sync::{Notify, watch};
use tokio::time::{Instant, sleep, timeout};

use crate::limits::{
    INDEX_BYTES, INDEX_ENTRIES, INDEX_FIRST, INDEX_LOOK, INDEX_PATIENCE, INDEX_PAUSE, INDEX_POLL,
    INDEX_RETRY, INDEX_ROWS, INDEX_WAIT,
};
use crate::log::Log;
pub use tally::{Group, Tally};

/// The form of the rows. Raised when an entry is read for other values than before: the index is then made anew.
pub const FORM: u32 = 5;

/// The index of a log, and what was counted with it.
pub struct Index {
    log: Arc<Log>,
    /// How far this process moved it.
    moved: watch::Sender<u64>,
    /// Somebody waits for it.
    asked: Notify,
    tallies: tally::Tallies,
}

impl Index {
    /// Of this log; [`follow`](Self::follow) reads.
    pub fn new(log: Arc<Log>) -> Arc<Self> {
        Arc::new(Self {
            log,
            moved: watch::Sender::new(0),
            asked: Notify::new(),
            tallies: tally::Tallies::default(),
        })
    }

    /// Reads what is committed, for ever.
    pub async fn follow(self: Arc<Self>) {
        let mut reader = Reader { chunk: INDEX_FIRST, seen: Indexed::default(), since: Instant::now() };
        let mut status = self.log.sequencer.status();
        loop {
            match self.step(&mut reader).await {
                Ok(true) => {}
                Ok(false) => self.rest(&mut status).await,
                Err(error) => {
                    tracing::warn!(%error, "the lookup index is not read on");
                    sleep(INDEX_RETRY).await;
                }
            }
        }
    }

    /// Until there is something to read, or was dropped, which nobody tells of. What is committed in one go costs least, so
    /// the reading goes on after a while, or once somebody waits for it.
    async fn rest(&self, status: &mut watch::Receiver<Status>) {
        tokio::select! {
            _ = timeout(INDEX_POLL, status.changed()) => {}
            () = self.asked.notified() => return,
        }
        tokio::select! {
            () = sleep(INDEX_PAUSE) => {}
            () = self.asked.notified() => {}
        }
    }

    /// Reads the next few entries; `false` when there is nothing more to do now.
    async fn step(&self, reader: &mut Reader) -> Result<bool, StoreError> {
        let store = &self.log.store;
        let indexed = store.indexed().await?;
        let committed = self.log.committed_size();
        self.show(indexed, committed);
        if indexed.form > FORM {
            // A newer program reads for values that this one does not know.
            return Ok(false);
        }
        if indexed.form < FORM {
            tracing::info!(from = indexed.form, to = FORM, "the lookup index is made anew");
            store.drop_index(FORM).await?;
            return Ok(true);
        }
        if indexed.to >= committed || !reader.has_the_turn(indexed, self.leads()) {
            return Ok(false);
        }
        let entries = reader.read(&self.log, indexed.to, committed).await?;
        // Reading a long record takes a while, and others have work to do on this thread.
        let read = tokio::task::spawn_blocking(move || said(entries, indexed.to)).await;
        let Ok((rows, to)) = read else { return Ok(false) };
        if store.index(indexed, to, &rows).await? {
            self.show(Indexed { to, ..indexed }, committed);
        }
        Ok(to < committed)
    }

    fn leads(&self) -> bool {
        matches!(self.log.sequencer.status().borrow().role, Role::Leading { .. })
    }

    fn show(&self, indexed: Indexed, committed: TreeSize) {
        self.moved.send_replace(indexed.to.get());
        let behind = committed.get().saturating_sub(indexed.to.get());
        self.log.metrics.index_lag.set(i64::try_from(behind).unwrap_or(i64::MAX));
    }

    /// Starts again at nothing; whoever follows reads on from there.
    pub async fn make_anew(&self) -> Result<(), StoreError> {
        tracing::info!("the lookup index is dropped, and read again");
        self.log.store.drop_index(FORM).await
    }

    /// Waits, not for long, until the index holds all that is committed now: whoever registered before he asks finds it.
    pub async fn caught_up(&self) -> Result<Reached, StoreError> {
        let committed = self.log.committed_size();
        let until = Instant::now() + INDEX_WAIT;
        let mut moved = self.moved.subscribe();
        loop {
            let indexed = self.log.store.indexed().await?;
            if indexed.to >= committed || Instant::now() >= until {
                return Ok(Reached { indexed, committed });
            }
            self.asked.notify_one();
            let _ = timeout(INDEX_LOOK, moved.changed()).await;
        }
    }

    /// Entries of which all of these are true, from the first on.
    pub async fn search(
        &self,
        terms: Vec<Term>,
        within: std::ops::Range<u64>,
        limit: usize,
    ) -> Result<Page, StoreError> {
        self.log.store.search(&Query { terms, within, order: Order::OldestFirst, limit }).await
    }

    /// Lists up to `limit` values of a kind that begin with `prefix`, in byte order: those greater than `after` if it is
    /// given. After a drop the list may hold values that are not indexed again yet.
    pub async fn values(
        &self,
        kind: LookupKind,
        prefix: &str,
        after: Option<&str>,
        limit: usize,
    ) -> Result<Vec<String>, StoreError> {
        self.log.store.values(kind.number(), prefix, after, limit).await
    }

    /// All that is counted of the entries under one value, up to a size.
    pub async fn tally(&self, kind: LookupKind, value: &str) -> Result<Arc<Tally>, StoreError> {
        self.tallies.of(&*self.log.store, kind, value).await
    }
}

/// How far an index had come when a request began to search.
#[derive(Clone, Copy, Debug)]
pub struct Reached {
    /// The index.
    pub indexed: Indexed,
    /// The log.
    pub committed: TreeSize,
}

impl Reached {
    /// Whether entries may be missing from what is found.
    pub fn is_behind(&self) -> bool {
        self.indexed.to < self.committed
    }
}

/// Who reads, and how much at a time.
struct Reader {
    chunk: usize,
    seen: Indexed,
    since: Instant,
}

impl Reader {
    /// A leader reads at once; the others once the index stood still for a while.
    fn has_the_turn(&mut self, indexed: Indexed, leads: bool) -> bool {
        if indexed != self.seen {
            (self.seen, self.since) = (indexed, Instant::now());
        }
        leads || self.since.elapsed() > INDEX_PATIENCE
    }

    /// The next entries with their detached payloads; few where they are large.
    async fn read(
        &mut self,
        log: &Log,
        from: TreeSize,
        committed: TreeSize,
    ) -> Result<Vec<read::Whole>, StoreError> {
        let left = usize::try_from(committed.get() - from.get()).unwrap_or(usize::MAX);
        let entries = read::entries(&*log.store, from, self.chunk.min(left)).await?;
        let bytes: usize = entries.iter().map(read::Whole::bytes).sum();
        self.chunk = (INDEX_BYTES * entries.len().max(1) / bytes.max(1)).clamp(1, INDEX_ENTRIES);
        Ok(entries)
    }
}

/// What entries say, up to so many rows; and the size up to which that goes.
fn said(entries: Vec<read::Whole>, from: TreeSize) -> (Vec<Lookup>, TreeSize) {
    let (mut rows, mut to) = (Vec::new(), from);
    for entry in entries {
        if rows.len() >= INDEX_ROWS {
            break;
        }
        rows.extend(entry.lookups());
        to = TreeSize::new(entry.index.get() + 1);
    }
    (rows, to)
}

/// The rows that the index must have of an entry.
pub async fn rows_of(store: &dyn LogStore, entry: Entry) -> Result<Vec<Lookup>, StoreError> {
    Ok(read::whole(store, entry).await?.lookups())
}

/// A term for one value, in the form in which it is kept.
pub fn term(kind: LookupKind, value: &str) -> Term {
    Term::exactly(kind.number(), registration::Lookup::new(kind, value).value)
}

/// The admin listener's word for it: drop the index, and read it again.
pub fn routes(index: Arc<Index>) -> Router {
    Router::new().route("/reindex", post(reindex)).with_state(index)
}

async fn reindex(State(index): State<Arc<Index>>) -> Response {
    match index.make_anew().await {
        Ok(()) => (StatusCode::ACCEPTED, Json(json!({ "indexed_to": 0 }))).into_response(),
        Err(error) => (StatusCode::SERVICE_UNAVAILABLE, format!("{error}\n")).into_response(),
    }
}
