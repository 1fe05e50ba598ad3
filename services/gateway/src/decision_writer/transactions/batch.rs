//! [`Batch`]: the working copies of the streams that the items of one transaction read and change.
//!
//! An item asks for a stream by name ([`Batch::stream`]). If it is not loaded, the item is left undecided, and the writer
//! task loads the stream and decides the item again.

use std::cell::Cell;
use std::collections::{HashMap, HashSet};

use evidence::{Change, Claim, EvidenceStore, StoreError, StoredStream, StreamVersion};

use super::early_read::EarlyRead;
use super::working_copy::{NewRecord, WorkingCopy};
use crate::decision_writer::committed_stream::CommittedStream;
use crate::decision_writer::context::WriterContext;
use crate::decision_writer::error::WriterError;
use crate::decision_writer::session_cache::SessionCache;
use crate::limits::COMMIT_BYTES;

/// All working copies of a batch.
pub struct Batch<'a> {
    /// The context that all decisions share.
    pub context: &'a WriterContext,
    /// Time of the batch, in milliseconds since the Unix epoch.
    pub now: u64,
    copies: HashMap<String, WorkingCopy>,
    /// Claims that were used before the batch.
    used_claims: HashSet<Claim>,
    /// Claims about which the database was asked.
    looked_up_claims: HashSet<Claim>,
    /// Whether the current item has read a stream or a claim as an earlier item of the batch has changed it.
    has_read_changes: Cell<bool>,
    /// Streams that cannot be read, with the reason.
    damaged: HashMap<String, String>,
    /// Total size of the batch's new records, in bytes.
    bytes: usize,
}

/// The stream with this name, which an item asked for, is not loaded.
#[derive(Debug, PartialEq, Eq)]
pub struct StreamNotLoaded(pub String);

/// The result of a batch.
pub struct BatchChanges {
    /// The changes to commit.
    pub changes: Vec<Change>,
    /// The changed streams by name, as they are after the commit.
    pub committed: Vec<(String, CommittedStream)>,
}

impl<'a> Batch<'a> {
    /// A batch at the current time, without loaded streams.
    pub fn new(context: &'a WriterContext) -> Self {
        Self {
            context,
            now: context.clock.milliseconds(),
            copies: HashMap::new(),
            used_claims: HashSet::new(),
            looked_up_claims: HashSet::new(),
            has_read_changes: Cell::new(false),
            damaged: HashMap::new(),
            bytes: 0,
        }
    }

    /// Loads these streams from the caches, or else from the database. A stream that cannot be read is noted as damaged,
    /// and does not affect the others.
    pub async fn load(
        &mut self,
        store: &dyn EvidenceStore,
        cache: &mut SessionCache<CommittedStream>,
        names: impl IntoIterator<Item = String>,
    ) -> Result<(), StoreError> {
        let mut unknown = Vec::new();
        for name in names.into_iter().collect::<HashSet<_>>() {
            if self.copies.contains_key(&name) || self.damaged.contains_key(&name) {
                continue;
            }
            match self.context.cached(cache, &name) {
                Some(committed) => _ = self.copies.insert(name, WorkingCopy::of(committed)),
                None => unknown.push(name),
            }
        }
        for ReadStream { name, committed } in read_streams(store, unknown).await? {
            match committed {
                Ok(committed) => {
                    self.copies.insert(name.clone(), WorkingCopy::of(committed.clone()));
                    self.context.add_to_cache(cache, name, committed);
                }
                Err(why) => {
                    tracing::error!(
                        stream = name,
                        why,
                        "ALARM: a stream cannot be read; its calls are denied"
                    );
                    self.damaged.insert(name, why);
                }
            }
        }
        Ok(())
    }

    /// Adds streams as read before the batch, the newest version of each, and claims that were used or looked up by then.
    pub fn add_early_read(&mut self, early: &EarlyRead) {
        self.used_claims.extend(early.used.iter().cloned());
        self.looked_up_claims.extend(early.looked_up.iter().cloned());
        for (name, committed) in &early.streams {
            if self.copies.get(name).is_none_or(|copy| copy.version() < committed.version) {
                self.copies.insert(name.clone(), WorkingCopy::of(committed.clone()));
            }
        }
    }

    /// Begins an item, which has read nothing yet.
    pub fn begin_item(&mut self) {
        self.has_read_changes.set(false);
    }

    /// Returns whether the current item has read what an earlier item of the batch has changed. It is not durable before the
    /// batch is, so neither is what an answer says of it.
    pub fn has_read_changes(&self) -> bool {
        self.has_read_changes.get()
    }

    /// Returns the working copy of a stream.
    ///
    /// # Errors
    /// [`StreamNotLoaded`]. An item that has changed nothing yet passes the error on.
    pub fn stream(&mut self, name: &str) -> Result<&mut WorkingCopy, StreamNotLoaded> {
        let copy = self.copies.get_mut(name).ok_or_else(|| StreamNotLoaded(name.to_owned()))?;
        if copy.is_changed() {
            self.has_read_changes.set(true);
        }
        Ok(copy)
    }

    /// Returns the working copy of a stream that the item has read before. An item that has changed something uses this.
    ///
    /// # Errors
    /// [`WriterError::Unrecordable`] if it is not loaded.
    pub fn loaded(&mut self, name: &str) -> Result<&mut WorkingCopy, WriterError> {
        self.stream(name).map_err(|_| WriterError::Unrecordable(format!("the stream {name} is not open")))
    }

    /// Returns an error if this stream cannot be read.
    pub fn damage(&self, name: &str) -> Option<WriterError> {
        self.damaged.get(name).map(|why| WriterError::Unavailable(why.clone()))
    }

    /// Returns whether a claim was used before, in this batch or an earlier one.
    pub fn is_used(&self, claim: &Claim) -> bool {
        if self.used_claims.contains(claim) {
            return true;
        }
        let is_used_here = self.copies.get(&claim.stream).is_some_and(|copy| copy.uses_claim(claim));
        if is_used_here {
            self.has_read_changes.set(true);
        }
        is_used_here
    }

    /// Returns whether the database was asked about all of these claims, so that [`is_used`](Self::is_used) is certain.
    pub fn has_looked_up(&self, claims: &[Claim]) -> bool {
        claims.iter().all(|claim| self.is_used(claim) || self.looked_up_claims.contains(claim))
    }

    /// Appends a record to its stream. Every statement of the gateway goes through here.
    ///
    /// # Errors
    /// [`WriterError::Unrecordable`] if the stream is not loaded.
    pub fn append(&mut self, new: NewRecord) -> Result<(), WriterError> {
        let (now, bytes) = (self.now, new.bytes());
        self.loaded(&new.stream)?.append(new, now);
        self.bytes += bytes;
        Ok(())
    }

    /// Counts a call without a session that is about to be forwarded.
    pub fn count_open(&mut self, stream: &str) {
        self.change_open_calls(stream, |open| open.saturating_add(1));
    }

    /// Counts the outcome of a call without a session.
    pub fn count_settled(&mut self, stream: &str) {
        self.change_open_calls(stream, |open| open.saturating_sub(1));
    }

    fn change_open_calls(&mut self, stream: &str, change: impl Fn(u64) -> u64) {
        if let Some(copy) = self.copies.get_mut(stream) {
            copy.change_open_calls(change);
        }
    }

    /// Returns whether no more items are to be decided in this batch: it has [`COMMIT_BYTES`], or it closes this gateway's
    /// own stream, so that later records need another one.
    pub fn is_complete(&self) -> bool {
        let own = self.copies.get(&self.context.own_stream());
        self.bytes >= COMMIT_BYTES || own.is_some_and(WorkingCopy::is_newly_closed)
    }

    /// Returns the changes of the batch.
    ///
    /// # Errors
    /// [`WriterError::Unrecordable`] if a state cannot be serialized, which does not happen.
    pub fn into_changes(self) -> Result<BatchChanges, WriterError> {
        let (mut changes, mut committed, mut read) = (Vec::new(), Vec::new(), Vec::new());
        for (name, copy) in self.copies {
            if copy.is_changed() {
                let (change, after) = copy.into_change(name.clone(), self.now)?;
                changes.push(change);
                committed.push((name, after));
            } else if self.context.must_be_unchanged(&name, copy.version()) {
                read.push(StreamVersion { stream: name, version: copy.version() });
            }
        }
        // The changes are committed together, so one of them can state what all rely on.
        if let Some(first) = changes.first_mut() {
            first.relies_on = read;
        }
        Ok(BatchChanges { changes, committed })
    }
}

/// A stream that was read from the database.
struct ReadStream {
    name: String,
    /// The stream, or the reason why it cannot be read.
    committed: Result<CommittedStream, String>,
}

/// Reads these streams from the database.
async fn read_streams(store: &dyn EvidenceStore, names: Vec<String>) -> Result<Vec<ReadStream>, StoreError> {
    if names.is_empty() {
        return Ok(Vec::new());
    }
    let all: Vec<&str> = names.iter().map(String::as_str).collect();
    let stored = match store.streams(&all).await {
        Ok(stored) => stored.into_iter().map(Ok).collect(),
        Err(StoreError::Damaged(_)) => read_each(store, &all).await?,
        Err(error) => return Err(error),
    };
    let read = |(name, stored): (String, Result<Option<StoredStream>, StoreError>)| {
        let committed = stored
            .and_then(|stored| CommittedStream::read(&name, stored.as_ref()))
            .map_err(|error| error.to_string());
        ReadStream { name, committed }
    };
    Ok(names.into_iter().zip(stored).map(read).collect())
}

/// Reads the streams one at a time, after reading all at once failed for a damaged one.
async fn read_each(
    store: &dyn EvidenceStore,
    names: &[&str],
) -> Result<Vec<Result<Option<StoredStream>, StoreError>>, StoreError> {
    let mut all = Vec::with_capacity(names.len());
    for name in names {
        all.push(match store.streams(&[name]).await {
            Ok(stored) => Ok(stored.into_iter().next().flatten()),
            Err(StoreError::Damaged(why)) => Err(StoreError::Damaged(why)),
            Err(error) => return Err(error),
        });
    }
    Ok(all)
}
