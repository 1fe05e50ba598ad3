//! The lookup index of a running log, built from its entries in the background, so it lags a little behind the log.
//!
//! The leading process reads committed entries and writes their rows; a follower does so only when the index has not
//! moved for `INDEX_PATIENCE`. Two processes that read the same entries write them once, because the store advances the
//! index by compare-and-swap. A dropped index is rebuilt from entry 0 while searches continue; their responses state
//! the size up to which it was built.
//!
//! Not here: the values of an entry (`registration::Record`), rows and queries (`store`), HTTP requests and responses
//! (`routes`).

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
use store::{Entry, Indexed, LogReader, Lookup, Order, Page, Query, StoreError, Term};
use tokio::sync::{Notify, watch};
use tokio::time::{Instant, sleep, timeout};

use crate::limits::{
    INDEX_BYTES, INDEX_ENTRIES, INDEX_FIRST, INDEX_LOOK, INDEX_PATIENCE, INDEX_PAUSE, INDEX_POLL,
    INDEX_RETRY, INDEX_ROWS, INDEX_WAIT,
};
use crate::log::state::Log;
pub use tally::{ReceiptGroup, ReceiptTally};

/// The form of the rows. Raised when an entry is read for other values than before: the index is then made anew.
pub const FORM: u32 = 1;

/// The lookup index of a log, and the counts made with it.
pub struct Index {
    log: Arc<Log>,
    /// The size up to which the index is built, as far as this process knows.
    moved: watch::Sender<u64>,
    /// Notified when a search waits for the index.
    wakeup: Notify,
    tallies: tally::Tallies,
}

impl Index {
    /// Creates the index of a log; [`follow`](Self::follow) builds it.
    pub fn new(log: Arc<Log>) -> Arc<Self> {
        Arc::new(Self {
            log,
            moved: watch::Sender::new(0),
            wakeup: Notify::new(),
            tallies: tally::Tallies::default(),
        })
    }

    /// Indexes committed entries for as long as the process runs.
    pub async fn follow(self: Arc<Self>) {
        let mut reader = IndexReader { chunk: INDEX_FIRST, seen: Indexed::default(), since: Instant::now() };
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

    /// Waits for new entries, or for [`INDEX_POLL`], because a dropped index sends no notification. Then waits for
    /// [`INDEX_PAUSE`], or until a search waits: entries indexed in one commit cost least.
    async fn rest(&self, status: &mut watch::Receiver<Status>) {
        tokio::select! {
            _ = timeout(INDEX_POLL, status.changed()) => {}
            () = self.wakeup.notified() => return,
        }
        tokio::select! {
            () = sleep(INDEX_PAUSE) => {}
            () = self.wakeup.notified() => {}
        }
    }

    /// Indexes the next few entries; `false` if there is nothing to do now.
    async fn step(&self, reader: &mut IndexReader) -> Result<bool, StoreError> {
        let store = &self.log.store;
        let indexed = store.indexed().await?;
        let committed = self.log.committed_size();
        self.show(indexed, committed);
        if indexed.form > FORM {
            // A newer version of the program reads values that this one does not know.
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
        // Parsing a long record takes a while, and would block other tasks of this thread.
        let read = tokio::task::spawn_blocking(move || logged(entries, indexed.to)).await;
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

    /// Drops the index; [`follow`](Self::follow) rebuilds it from entry 0.
    pub async fn make_anew(&self) -> Result<(), StoreError> {
        tracing::info!("the lookup index is dropped, and read again");
        self.log.store.drop_index(FORM).await
    }

    /// Waits at most [`INDEX_WAIT`] until the index covers all entries committed now, so that a client finds the
    /// entries that it registered before.
    pub async fn caught_up(&self) -> Result<IndexProgress, StoreError> {
        let committed = self.log.committed_size();
        let until = Instant::now() + INDEX_WAIT;
        let mut moved = self.moved.subscribe();
        loop {
            let indexed = self.log.store.indexed().await?;
            if indexed.to >= committed || Instant::now() >= until {
                return Ok(IndexProgress { indexed, committed });
            }
            self.wakeup.notify_one();
            let _ = timeout(INDEX_LOOK, moved.changed()).await;
        }
    }

    /// The first entries within the range, in this order, that match all terms.
    pub async fn search(
        &self,
        terms: Vec<Term>,
        within: std::ops::Range<u64>,
        order: Order,
        limit: usize,
    ) -> Result<Page, StoreError> {
        self.log.store.search(&Query { terms, within, order, limit }).await
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

    /// The counts over the indexed entries with all of these values.
    pub async fn tally(&self, values: &[(LookupKind, &str)]) -> Result<Arc<ReceiptTally>, StoreError> {
        self.tallies.of(&*self.log.store, values).await
    }
}

/// The size of the index when a search began.
#[derive(Clone, Copy, Debug)]
pub struct IndexProgress {
    /// The size up to which the index was built.
    pub indexed: Indexed,
    /// The size of the log.
    pub committed: TreeSize,
}

impl IndexProgress {
    /// Returns `true` if a search may miss entries.
    pub fn is_behind(&self) -> bool {
        self.indexed.to < self.committed
    }
}

/// The reader of entries for the index, with its chunk size.
struct IndexReader {
    chunk: usize,
    seen: Indexed,
    since: Instant,
}

impl IndexReader {
    /// Returns `true` if this process may index now: a leader always, a follower once the index has not moved for
    /// [`INDEX_PATIENCE`].
    fn has_the_turn(&mut self, indexed: Indexed, leads: bool) -> bool {
        if indexed != self.seen {
            (self.seen, self.since) = (indexed, Instant::now());
        }
        leads || self.since.elapsed() > INDEX_PATIENCE
    }

    /// Reads the next entries with their detached payloads; fewer if they are large.
    async fn read(
        &mut self,
        log: &Log,
        from: TreeSize,
        committed: TreeSize,
    ) -> Result<Vec<read::EntryWithPayload>, StoreError> {
        let left = usize::try_from(committed.get() - from.get()).unwrap_or(usize::MAX);
        let entries = read::entries(&*log.store, from, self.chunk.min(left)).await?;
        let bytes: usize = entries.iter().map(read::EntryWithPayload::bytes).sum();
        self.chunk = (INDEX_BYTES * entries.len().max(1) / bytes.max(1)).clamp(1, INDEX_ENTRIES);
        Ok(entries)
    }
}

/// The rows of these entries, up to [`INDEX_ROWS`], and the size up to which they reach.
fn logged(entries: Vec<read::EntryWithPayload>, from: TreeSize) -> (Vec<Lookup>, TreeSize) {
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

/// The rows that the index must have for an entry.
pub async fn rows_of(store: &dyn LogReader, entry: Entry) -> Result<Vec<Lookup>, StoreError> {
    Ok(read::whole(store, entry).await?.lookups())
}

/// A term for one value, in the canonical form of the index.
pub fn term(kind: LookupKind, value: &str) -> Term {
    Term::exactly(kind.number(), registration::Lookup::new(kind, value).value)
}

/// The route `POST /reindex` of the admin listener: drops the index, which is then rebuilt.
pub fn routes(index: Arc<Index>) -> Router {
    Router::new().route("/reindex", post(reindex)).with_state(index)
}

async fn reindex(State(index): State<Arc<Index>>) -> Response {
    match index.make_anew().await {
        Ok(()) => (StatusCode::ACCEPTED, Json(json!({ "indexed_to": 0 }))).into_response(),
        Err(error) => (StatusCode::SERVICE_UNAVAILABLE, format!("{error}\n")).into_response(),
    }
}
