//! Entries as JSON: a single one, or consecutive ones.

use std::ops::Range;

use axum::Json;
use axum::extract::State;
use axum::response::{IntoResponse, Response};
use http::header::CACHE_CONTROL;
use merkle::LeafIndex;
use serde::Serialize;
use store::{CommittedHead, Entry, LogStore, StoreError};
use utoipa::ToSchema;

use super::EntryId;
use crate::app::App;
use crate::limits::HEADS_CHUNK;
use crate::problem::Problem;

/// Default number of entries on a page.
pub const DEFAULT_PAGE: usize = 100;
/// Bytes of statements read from the database at one time; bounds the memory of a page.
const CHUNK_BYTES: usize = 8 << 20;
/// Bytes of statements read for a page, after which it ends early.
pub const PAGE_BYTES: usize = 32 << 20;
/// Entries read at one time before their size is known.
const FIRST_CHUNK: usize = 8;
/// Largest number of entries read at one time.
const LARGEST_CHUNK: usize = 256;

/// An entry of the log.
#[derive(Debug, Serialize, ToSchema)]
pub struct EntryView {
    /// SHA-256 of the statement, hex.
    entry_id: String,
    /// The leaf.
    index: u64,
    /// Who says it.
    #[serde(skip_serializing_if = "Option::is_none")]
    iss: Option<String>,
    /// What it is about.
    #[serde(skip_serializing_if = "Option::is_none")]
    sub: Option<String>,
    /// Of the payload.
    #[serde(skip_serializing_if = "Option::is_none")]
    content_type: Option<String>,
    /// Everything that was read from the statement when it was admitted.
    #[schema(value_type = Object)]
    facts: serde_json::Value,
    /// The policy entry that admitted it.
    policy: u64,
    /// The rule of that policy.
    rule: String,
    /// Bytes of the statement; absent once erased.
    #[serde(skip_serializing_if = "Option::is_none")]
    size: Option<usize>,
    /// Whether the statement was erased.
    erased: bool,
    /// When it was committed: what the receipt's iat said then. RFC 3339.
    #[serde(skip_serializing_if = "Option::is_none")]
    at: Option<String>,
}

impl EntryView {
    /// The entry's leaf.
    pub fn index(&self) -> u64 {
        self.index
    }

    /// Returns the issuer.
    pub fn iss(&self) -> Option<&str> {
        self.iss.as_deref()
    }

    /// Returns the subject.
    pub fn sub(&self) -> Option<&str> {
        self.sub.as_deref()
    }

    /// Returns the content type of the payload.
    pub fn content_type(&self) -> Option<&str> {
        self.content_type.as_deref()
    }

    /// Sets the commit time, in Unix seconds.
    pub fn committed_at(&mut self, at: Option<u64>) {
        self.at = at.and_then(rfc3339);
    }

    /// Creates the view of an entry; `at` is its commit time in Unix seconds, if known.
    pub fn of(entry: &Entry, at: Option<u64>) -> Self {
        let facts: serde_json::Value = serde_json::from_str(&entry.facts).unwrap_or_default();
        let text = |name: &str| facts.get(name).and_then(|value| value.as_str()).map(str::to_owned);
        Self {
            entry_id: entry.digest.to_string(),
            index: entry.index.get(),
            iss: text("iss"),
            sub: text("sub"),
            content_type: text("content_type"),
            policy: entry.policy.get(),
            rule: entry.rule.clone(),
            size: entry.statement.as_ref().map(bytes::Bytes::len),
            erased: entry.statement.is_none(),
            at: at.and_then(rfc3339),
            facts,
        }
    }
}

/// A time as RFC 3339; `None` if it is out of range.
pub fn rfc3339(seconds: u64) -> Option<String> {
    Some(jiff::Timestamp::from_second(i64::try_from(seconds).ok()?).ok()?.to_string())
}

/// One entry as JSON.
#[utoipa::path(
    get,
    path = "/v1/entries/{entry_id}",
    tag = "Log",
    params(("entry_id" = String, Path, description = "64 lowercase hex digits")),
    responses(
        (status = 200, description = "The entry and its facts", body = EntryView),
        (status = 400, description = "Invalid locator"),
        (status = 404, description = "Not Found")
    )
)]
pub async fn entry(State(app): State<App>, EntryId(digest): EntryId) -> Result<Response, Problem> {
    let entry = super::statements::stored_entry(&app, digest).await?;
    let head = first_head_with(&*app.log.store, entry.index).await?;
    let view = EntryView::of(&entry, head.map(|head| head.at));
    Ok(([(CACHE_CONTROL, "public, max-age=60")], Json(view)).into_response())
}

/// The first committed head that covers a leaf: the one of its batch. Takes logarithmically many reads.
pub async fn first_head_with(
    store: &dyn LogStore,
    leaf: LeafIndex,
) -> Result<Option<CommittedHead>, StoreError> {
    let (mut low, mut high) = (1, store.head().await?.batch);
    let mut found = None;
    while low <= high {
        let middle = low + (high - low) / 2;
        let Some(head) = store.heads(middle, 1).await?.first().copied() else { break };
        if head.size.holds(leaf) {
            found = Some(head);
            high = middle - 1;
        } else {
            low = middle + 1;
        }
    }
    Ok(found)
}

/// A reader of the heads that first covered leaves, for leaves in ascending order.
pub struct Heads<'a> {
    store: &'a dyn LogStore,
    /// Consecutive heads, from the one that first covered the last leaf on.
    read: Vec<CommittedHead>,
}

impl<'a> Heads<'a> {
    /// Creates a reader of a store's heads.
    pub fn of(store: &'a dyn LogStore) -> Self {
        Self { store, read: Vec::new() }
    }

    /// Finds the first committed head that covers a leaf. No call may name a lower leaf than the one before.
    pub async fn first_with(&mut self, leaf: LeafIndex) -> Result<Option<CommittedHead>, StoreError> {
        if self.found(leaf).is_none() {
            self.read = match self.read.last() {
                Some(last) => self.store.heads(last.batch + 1, HEADS_CHUNK).await?,
                None => Vec::new(),
            };
        }
        if self.found(leaf).is_none() {
            self.read = first_head_with(self.store, leaf).await?.into_iter().collect();
        }
        Ok(self.found(leaf))
    }

    fn found(&self, leaf: LeafIndex) -> Option<CommittedHead> {
        self.read.iter().find(|head| head.size.holds(leaf)).copied()
    }
}

/// Reads a page in chunks, so that few large statements are in memory together. Returns `true` if there is more after
/// it.
pub async fn read(app: &App, within: Range<u64>, limit: usize) -> Result<(Vec<EntryView>, bool), Problem> {
    let size = app.log.readable_size().await?.get().min(within.end);
    let mut views = Vec::with_capacity(limit.min(LARGEST_CHUNK));
    let (mut next, mut chunk, mut bytes) = (within.start, FIRST_CHUNK, 0);
    while views.len() < limit && next < size && bytes < PAGE_BYTES {
        let left = usize::try_from(size - next).unwrap_or(usize::MAX);
        let asked = chunk.min(limit - views.len()).min(left);
        let entries = app.log.store.entries(LeafIndex::new(next), asked).await?;
        let taken: usize =
            entries.iter().filter_map(|entry| entry.statement.as_ref()).map(bytes::Bytes::len).sum();
        views.extend(entries.iter().map(|entry| EntryView::of(entry, None)));
        if entries.len() < asked {
            return Ok((views, false));
        }
        next += entries.len() as u64;
        bytes += taken;
        chunk = (CHUNK_BYTES * entries.len() / taken.max(1)).clamp(1, LARGEST_CHUNK);
    }
    Ok((views, next < size))
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use store::Memory;
    use store::contract::Appender;

    use super::*;

    #[tokio::test]
    async fn the_head_that_brought_a_leaf_is_found_near_the_last_one_and_far_from_it() {
        let store: Arc<dyn LogStore> = Arc::new(Memory::new());
        let mut log = Appender::new(store.clone()).await;
        for _ in 0..3 * HEADS_CHUNK {
            log.append(2).await;
        }
        let mut heads = Heads::of(&*store);
        let far = 4 * HEADS_CHUNK as u64;
        for leaf in [1, 2, 2, 3, 100, far, far + 1, far + 100] {
            let head = heads.first_with(LeafIndex::new(leaf)).await.unwrap().unwrap();
            assert_eq!((head.batch, head.size.get()), (leaf / 2 + 1, leaf / 2 * 2 + 2), "of leaf {leaf}");
        }
        assert!(heads.first_with(LeafIndex::new(u64::MAX)).await.unwrap().is_none());
    }
}
