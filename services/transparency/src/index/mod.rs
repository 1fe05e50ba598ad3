//! The lookup index of a running log: the terms of the newest entries in memory, and the runs in the database.
//!
//! Every process has the newest entries in memory. Of those that it registered, it knows the terms from the decision;
//! others are read from the store: after a start, from another process, from the inbox. Runs are written in the
//! background by the leading process; another one writes a full run if it is still missing after `INDEX_PATIENCE`. A
//! dropped index is rebuilt from entry 0 while searches continue; their responses state the size up to which it was built.
//!
//! The log commits to the index in heads (`heads`, made by `head_maker`), from which `proof` proves answers.
//!
//! Not here: the values of an entry (`log::terms`), runs and queries (`store`), HTTP requests and responses (`routes`).

pub mod head_maker;
mod heads;
pub mod proof;
mod read;
mod tallies;
mod tally;

use std::sync::Arc;

use axum::Json;
use axum::extract::State;
use axum::response::{IntoResponse, Response};
use http::StatusCode;
use merkle::{LeafIndex, TreeSize};
use registration::{Lookup, LookupKind, SearchValues};
use sequencer::{Halt, Role, Status};
use serde::Serialize;
use serving::problem::JsonProblem;
use store::lookup::{BlindLeaf, RunCatalog, RunWriter, SearchIndex};
use store::{Entry, Indexed, LogReader, Order, Page, Query, StoreError, Term};
use tokio::sync::{Notify, watch};
use tokio::time::{Instant, sleep, timeout};
use utoipa::ToSchema;
use utoipa_axum::router::OpenApiRouter;
use utoipa_axum::routes;

use crate::limits::{
    BLIND_LEAVES, INDEX_ENTRIES, INDEX_PATIENCE, INDEX_PAUSE, INDEX_POLL, INDEX_RETRY, INDEX_WAIT,
    SEARCH_POLL,
};
use crate::log::state::Log;
use crate::log::terms::entry_terms;
use heads::NewestHead;
pub use heads::RegisteredHead;
use read::ValueReader;
pub use read::detached_payload;
pub use tally::{ReceiptGroup, ReceiptTally};

/// The form of the terms. Raised when an entry is read for other values than before: the index is then made anew.
pub const FORM: u32 = 3;

/// The lookup index of a log, and the counts made with it.
pub struct Index {
    log: Arc<Log>,
    terms: SearchIndex,
    /// The size up to which the index is built.
    moved: watch::Sender<u64>,
    /// Notified when a search waits for the index.
    wakeup: Notify,
    tallies: tallies::Tallies,
    heads: NewestHead,
}

impl Index {
    /// Creates the index of a log; [`follow`](Self::follow) builds it.
    pub fn new(log: Arc<Log>) -> Arc<Self> {
        Arc::new(Self {
            log,
            terms: SearchIndex::new(FORM),
            moved: watch::Sender::new(0),
            wakeup: Notify::new(),
            tallies: tallies::Tallies::default(),
            heads: NewestHead::default(),
        })
    }

    /// Indexes committed entries for as long as the process runs.
    pub async fn follow(self: Arc<Self>) {
        let mut builder = IndexBuilder::new();
        let mut status = self.log.sequencer.status();
        loop {
            match self.step(&mut builder).await {
                Ok(true) => {}
                Ok(false) => self.rest(&mut status).await,
                Err(error) => {
                    tracing::warn!(%error, "the lookup index is not extended");
                    sleep(INDEX_RETRY).await;
                }
            }
        }
    }

    /// Waits for new entries, or for [`INDEX_POLL`], because an erasure or a drop sends no notification. Then waits for
    /// [`INDEX_PAUSE`], or until a search waits.
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

    /// Does the next part of the work; `false` if there is nothing to do now.
    async fn step(&self, builder: &mut IndexBuilder) -> Result<bool, StoreError> {
        let store = &*self.log.store;
        let catalog = store.catalog().await?;
        if catalog.form > FORM {
            // A newer version of the program reads values that this one does not know.
            return Ok(false);
        }
        if catalog.form < FORM {
            tracing::info!(from = catalog.form, to = FORM, "the lookup index is made anew");
            store.drop_index(FORM).await?;
            return Ok(true);
        }
        self.terms.align(&catalog);
        let was_read = self.read_on(builder).await?;
        let has_written = builder.write_on(self, &catalog).await?;
        Ok(was_read || has_written)
    }

    /// Adds the next few entries, as far as there are any and they find room; `false` if none.
    async fn read_on(&self, builder: &mut IndexBuilder) -> Result<bool, StoreError> {
        let (from, committed) = (self.terms.size(), self.log.committed_size());
        let left = committed.get().saturating_sub(from.get()).min(self.terms.room());
        let mut left = usize::try_from(left).unwrap_or(usize::MAX).min(INDEX_ENTRIES);
        let mut terms = self.log.decided.take(from.next_leaf(), left);
        if terms.is_empty() {
            // Only up to the first entry whose terms are known.
            if let Some(known) = self.log.decided.first() {
                left = left.min(known.get().saturating_sub(from.get()) as usize);
            }
            terms = builder.reader.read(&*self.log.store, from, left, entry_terms).await?;
        }
        let is_new = !terms.is_empty() && self.terms.append(from, terms);
        self.show(committed);
        Ok(is_new)
    }

    /// Returns `true` for the leading process, and for each process of a frozen log, which has no leader: entries are
    /// erased there too.
    fn may_write(&self) -> bool {
        matches!(self.log.sequencer.status().borrow().role, Role::Leading { .. } | Role::Halted(Halt::Frozen))
    }

    fn show(&self, committed: TreeSize) {
        let size = self.terms.size().get();
        self.moved.send_replace(size);
        let behind = committed.get().saturating_sub(size);
        self.log.metrics.index.lag.set(i64::try_from(behind).unwrap_or(i64::MAX));
    }

    /// Drops the index; [`follow`](Self::follow) rebuilds it from entry 0.
    pub async fn make_anew(&self) -> Result<(), StoreError> {
        tracing::info!("the lookup index is dropped, and read again");
        self.log.store.drop_index(FORM).await?;
        self.terms.align(&self.log.store.catalog().await?);
        self.wakeup.notify_one();
        Ok(())
    }

    /// How far the index goes.
    pub fn indexed(&self) -> Indexed {
        Indexed { form: FORM, to: self.terms.size() }
    }

    /// Waits at most [`INDEX_WAIT`] until the index covers all entries committed now, so that a client finds the
    /// entries that it registered before.
    pub async fn caught_up(&self) -> Result<IndexProgress, StoreError> {
        let committed = self.log.committed_size();
        let until = Instant::now() + INDEX_WAIT;
        let mut moved = self.moved.subscribe();
        loop {
            let indexed = self.indexed();
            if indexed.to >= committed || Instant::now() >= until {
                return Ok(IndexProgress { indexed, committed });
            }
            self.wakeup.notify_one();
            let _ = timeout(SEARCH_POLL, moved.changed()).await;
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
        self.terms.search(&*self.log.store, &Query { terms, within, order, limit }).await
    }

    /// Searches like [`search`](Self::search), and lists up to [`BLIND_LEAVES`] entries in the leaves of the page that may match:
    /// they were erased, or cannot be read.
    pub async fn search_and_list_blind(&self, query: &Query) -> Result<(Page, Vec<BlindLeaf>), StoreError> {
        self.terms.search_and_list_blind(&*self.log.store, query, BLIND_LEAVES).await
    }

    /// Lists up to `limit` values of a kind that begin with `prefix`, in byte order: those greater than `after` if it is
    /// given. Only values of a kind that [is listed](LookupKind::is_listed) are found.
    pub async fn values(
        &self,
        kind: LookupKind,
        prefix: &str,
        after: Option<&str>,
        limit: usize,
    ) -> Result<Vec<String>, StoreError> {
        self.terms.values(&*self.log.store, kind.number(), prefix, after, limit).await
    }

    /// Reads the search values of an entry; none if it was erased or cannot be read.
    pub async fn values_of(&self, entry: LeafIndex) -> Result<Vec<Lookup>, StoreError> {
        Ok(read::one(&*self.log.store, entry).await?.values().lookups)
    }

    /// Reads the search values of entries, in ascending order of their leaves. Neighbours are read at one time.
    pub async fn values_of_all(&self, entries: &[LeafIndex]) -> Result<Vec<Vec<Lookup>>, StoreError> {
        let mut reader = ValueReader::new();
        let mut values = Vec::with_capacity(entries.len());
        for run in entries.chunk_by(|one, next| one.get() + 1 == next.get()) {
            let leaves = run[0].get()..run[0].get() + run.len() as u64;
            values.extend(reader.read_all(&*self.log.store, leaves, |values| values.lookups).await?);
        }
        Ok(values)
    }

    /// The first indexed entry in this order with all of these values.
    pub async fn first(
        &self,
        values: &[(LookupKind, &str)],
        order: Order,
    ) -> Result<Option<LeafIndex>, StoreError> {
        let terms = values.iter().map(|(kind, value)| term(*kind, value)).collect();
        Ok(self.search(terms, 0..u64::MAX, order, 1).await?.entries.first().copied())
    }

    /// The counts over the indexed entries with all of these values, as far as they went.
    pub async fn tally(
        self: &Arc<Self>,
        values: &[(LookupKind, &str)],
    ) -> Result<Arc<ReceiptTally>, StoreError> {
        self.tallies.of(self, values).await
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

/// The task that builds the index.
struct IndexBuilder {
    reader: ValueReader,
    writer: RunWriter,
    /// The leaves that runs cover, and since when.
    covered: TreeSize,
    since: Instant,
}

impl IndexBuilder {
    fn new() -> Self {
        let (covered, since) = (TreeSize::new(0), Instant::now());
        Self { reader: ValueReader::new(), writer: RunWriter::new(), covered, since }
    }

    /// Writes the next part of a run if this process may; returns whether there may be more.
    async fn write_on(&mut self, index: &Index, catalog: &RunCatalog) -> Result<bool, StoreError> {
        let store = &*index.log.store;
        if catalog.covered() != self.covered || !index.terms.has_full_run(catalog) {
            (self.covered, self.since) = (catalog.covered(), Instant::now());
        }
        if index.may_write() {
            return self.writer.step(store, &index.terms, catalog, index.heads.size()).await;
        }
        // Another process writes, and may delete what this one has begun.
        self.writer = RunWriter::new();
        match self.since.elapsed() > INDEX_PATIENCE {
            true => index.terms.write_full_run(store, catalog).await,
            false => Ok(false),
        }
    }
}

/// The search values of a stored entry.
pub async fn values_of(store: &dyn LogReader, entry: Entry) -> Result<SearchValues, StoreError> {
    Ok(read::whole(store, entry).await?.values())
}

/// A term for one value, in the canonical form of the index.
pub fn term(kind: LookupKind, value: &str) -> Term {
    Term::exactly(kind.number(), Lookup::new(kind, value).value)
}

/// The route `POST /reindex` of the admin listener, with its description.
pub fn described() -> OpenApiRouter<Arc<Index>> {
    OpenApiRouter::new().routes(routes!(reindex))
}

/// The start of a new index.
#[derive(Debug, Serialize, ToSchema)]
struct NewIndex {
    /// Leaves that searches find already: none.
    indexed_to: u64,
}

/// Drop the search index, which is then rebuilt.
#[utoipa::path(
    post,
    path = "/reindex",
    tag = "Operator",
    responses(
        (status = 202, description = "The index is being rebuilt", body = NewIndex),
        (status = 503, description = "The index was not dropped, because the database does not answer (database-unavailable)")
    )
)]
async fn reindex(State(index): State<Arc<Index>>) -> Response {
    match index.make_anew().await {
        Ok(()) => (StatusCode::ACCEPTED, Json(NewIndex { indexed_to: 0 })).into_response(),
        Err(error) => {
            let detail = format!("the index was not dropped: {error}");
            JsonProblem::new(StatusCode::SERVICE_UNAVAILABLE, "database-unavailable", detail).into_response()
        }
    }
}
