//! The working copies of one batch: loaded streams, their changes, and the resulting commit.

use std::collections::{HashMap, HashSet};

use bytes::Bytes;
use evidence::{Change, Claim, EvidenceStore, Record, RecordKind, StoreError, StoredStream, StreamVersion};
use merkle::EntryDigest;

use super::early_read::EarlyRead;
use crate::decision_writer::committed_stream::CommittedStream;
use crate::decision_writer::context::WriterContext;
use crate::decision_writer::error::WriterError;
use crate::decision_writer::record_signer::SignedRecord;
use crate::decision_writer::session_cache::SessionCache;
use crate::decision_writer::states::StreamState;

/// The working copy of a stream, with its changes.
#[derive(Clone, Debug)]
pub struct StreamChanges {
    working: CommittedStream,
    version: Option<u64>,
    /// Whether the stream was closed, and when it was due.
    end_before: (bool, u64),
    changed: bool,
    agreed_changed: bool,
    records: Vec<Record>,
    claims: Vec<Claim>,
    opened: Vec<EntryDigest>,
    settled: Vec<EntryDigest>,
}

/// A signed statement that is to be appended to a stream.
pub struct NewRecord {
    /// The name of the stream.
    pub stream: String,
    /// The kind of the record.
    pub kind: RecordKind,
    /// The signed statement.
    pub signed: SignedRecord,
    /// The signed Verdict, for a decision.
    pub verdict: Option<Bytes>,
    /// The annex, which is stored and never sent to the log.
    pub annex: Bytes,
}

/// The changes to commit, and the streams to cache by name after the commit.
pub type BatchChanges = (Vec<Change>, Vec<(String, CommittedStream)>);

/// All working copies of a batch.
pub struct Batch<'a> {
    /// The context that all decisions share.
    pub context: &'a WriterContext,
    /// Time of the batch, in milliseconds since the Unix epoch.
    pub now: u64,
    streams: HashMap<String, StreamChanges>,
    used: HashSet<Claim>,
    /// Claims about which the database was asked.
    looked_up: HashSet<Claim>,
    missing: Vec<String>,
    /// Streams that cannot be read, with the reason.
    damaged: HashMap<String, String>,
    /// Total size of the batch's new records, in bytes.
    bytes: usize,
}

impl StreamChanges {
    fn of(committed: CommittedStream) -> Self {
        Self {
            version: committed.version,
            end_before: (committed.closed, committed.keep_until),
            working: committed,
            changed: false,
            agreed_changed: false,
            records: Vec::new(),
            claims: Vec::new(),
            opened: Vec::new(),
            settled: Vec::new(),
        }
    }

    pub fn is_closed(&self) -> bool {
        self.working.closed
    }

    /// Returns when the stream is due, in Unix seconds.
    pub fn keep_until(&self) -> u64 {
        self.working.keep_until
    }

    /// Returns the sequence number of the next record.
    pub fn next_seq(&self) -> u64 {
        self.working.next_seq
    }

    pub fn state(&self) -> Option<&StreamState> {
        self.working.state.as_ref()
    }

    /// Replaces the state. `agreed` is set if the seldom changing part ([`StreamState::agreed`]) changes too.
    pub fn put(&mut self, state: StreamState, agreed: bool) {
        self.changed = true;
        self.agreed_changed |= agreed;
        self.working.state = Some(state);
    }

    /// Sets when the stream is due, in Unix seconds.
    pub fn keep(&mut self, until: u64) {
        self.changed = true;
        self.working.keep_until = until;
    }

    /// Closes the stream. Its name stays taken until `until`, in Unix seconds.
    pub fn close(&mut self, until: u64) {
        self.keep(until);
        self.working.closed = true;
    }

    /// Reopens a stream that was closed without a closing record, such as the account of a principal that returns.
    pub fn reopen(&mut self, until: u64) {
        self.keep(until);
        self.working.closed = false;
    }

    /// Adds a claim, which can be used only once.
    pub fn claim(&mut self, claim: Claim) {
        self.changed = true;
        self.claims.push(claim);
    }

    /// Marks a decision as about to be forwarded, without an outcome.
    pub fn open(&mut self, decision: EntryDigest) {
        self.changed = true;
        self.opened.push(decision);
    }

    /// Marks a decision as settled by an outcome.
    pub fn settle(&mut self, decision: EntryDigest) {
        self.changed = true;
        self.settled.push(decision);
    }

    /// Adds the stream's next record, at a time in milliseconds since the Unix epoch.
    fn append(&mut self, new: NewRecord, now: u64) {
        self.changed = true;
        self.records.push(Record {
            id: new.signed.id,
            stream: new.stream,
            seq: self.working.next_seq,
            kind: new.kind,
            at: now / 1000,
            statement: new.signed.statement,
            verdict: new.verdict,
            annex: new.annex,
        });
        self.working.next_seq += 1;
    }

    fn into_change(self, stream: String, now: u64) -> Result<(Change, CommittedStream), WriterError> {
        let state = self.working.state.as_ref();
        let running = state.map(StreamState::running).transpose()?.unwrap_or_default();
        let agreed =
            self.agreed_changed.then(|| state.map(StreamState::agreed).transpose()).transpose()?.flatten();
        let end = (self.working.closed, self.working.keep_until);
        let is_other_end = self.version.is_none() || self.working.closed || end != self.end_before;
        let change = Change {
            stream,
            from: self.version,
            first: now.max(1),
            agreed,
            running,
            closed: self.working.closed,
            keep_until: is_other_end.then_some(self.working.keep_until),
            records: self.records,
            claims: self.claims,
            opened: self.opened,
            settled: self.settled,
            relies_on: Vec::new(),
        };
        let committed = CommittedStream { version: Some(change.to()), ..self.working };
        Ok((change, committed))
    }
}

impl<'a> Batch<'a> {
    /// A batch at the current time, without loaded streams.
    pub fn new(context: &'a WriterContext) -> Self {
        let now = context.clock.milliseconds();
        let (streams, damaged) = (HashMap::new(), HashMap::new());
        let (used, looked_up) = (HashSet::new(), HashSet::new());
        Self { context, now, streams, used, looked_up, missing: Vec::new(), damaged, bytes: 0 }
    }

    /// Loads these streams, as the writer knows them or else from the database. A stream that cannot be read is noted as
    /// damaged, and does not affect the others.
    pub async fn open(
        &mut self,
        store: &dyn EvidenceStore,
        cache: &mut SessionCache<CommittedStream>,
        names: impl IntoIterator<Item = String>,
    ) -> Result<(), StoreError> {
        let mut unknown = Vec::new();
        for name in names.into_iter().collect::<HashSet<_>>() {
            if self.streams.contains_key(&name) || self.damaged.contains_key(&name) {
                continue;
            }
            match self.context.known(cache, &name) {
                Some(committed) => _ = self.streams.insert(name, StreamChanges::of(committed)),
                None => unknown.push(name),
            }
        }
        for (name, committed) in load(store, unknown).await? {
            match committed {
                Ok(committed) => {
                    self.streams.insert(name.clone(), StreamChanges::of(committed.clone()));
                    self.context.remember(cache, name, committed);
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

    /// Returns an error if one of these streams cannot be read.
    pub fn damage(&self, names: &[String]) -> Option<WriterError> {
        let why = names.iter().find_map(|name| self.damaged.get(name))?;
        Some(WriterError::Unavailable(why.clone()))
    }

    /// Returns whether this gateway's own stream ends in the batch: later records need another one.
    pub fn ends_own_stream(&self) -> bool {
        let ends = |copy: &StreamChanges| copy.is_closed() && !copy.end_before.0;
        self.streams.get(&self.context.own_stream()).is_some_and(ends)
    }

    /// Returns the total size of the records written so far, in bytes.
    pub fn bytes(&self) -> usize {
        self.bytes
    }

    /// Takes streams as read before the batch, the newest of each, and claims that were used or looked up by then.
    pub fn take_early(&mut self, early: &EarlyRead) {
        self.used.extend(early.used.iter().cloned());
        self.looked_up.extend(early.looked_up.iter().cloned());
        for (name, committed) in &early.streams {
            if self.streams.get(name).is_none_or(|copy| copy.version < committed.version) {
                self.streams.insert(name.clone(), StreamChanges::of(committed.clone()));
            }
        }
    }

    /// Returns whether a claim was used before, in this batch or an earlier one.
    pub fn is_used(&self, claim: &Claim) -> bool {
        self.used.contains(claim)
            || self.streams.get(&claim.stream).is_some_and(|copy| copy.claims.contains(claim))
    }

    /// Returns whether the database was asked about all of these claims, so that [`is_used`](Self::is_used) is certain.
    pub fn has_looked_up(&self, claims: &[Claim]) -> bool {
        claims.iter().all(|claim| self.is_used(claim) || self.looked_up.contains(claim))
    }

    /// Returns the working copy of a stream, or `None` if it is not loaded yet; then the job returns
    /// [`JobStep::Needs`](super::work::JobStep::Needs) with [`missing`](Self::missing).
    pub fn stream(&mut self, stream: &str) -> Option<&mut StreamChanges> {
        if !self.streams.contains_key(stream) {
            self.missing.push(stream.to_owned());
        }
        self.streams.get_mut(stream)
    }

    /// Returns the working copy of a stream that a job has loaded before.
    ///
    /// # Errors
    /// [`WriterError::Unrecordable`] if it is not loaded.
    pub fn loaded(&mut self, stream: &str) -> Result<&mut StreamChanges, WriterError> {
        self.stream(stream)
            .ok_or_else(|| WriterError::Unrecordable(format!("the stream {stream} is not open")))
    }

    /// Appends a record to its stream. Every statement of the gateway goes through here.
    ///
    /// # Errors
    /// [`WriterError::Unrecordable`] if the stream is not loaded.
    pub fn append(&mut self, new: NewRecord) -> Result<(), WriterError> {
        let bytes = new.signed.statement.len() + new.annex.len() + new.verdict.as_ref().map_or(0, Bytes::len);
        let now = self.now;
        self.loaded(&new.stream)?.append(new, now);
        self.bytes += bytes;
        Ok(())
    }

    /// Counts a call without a session that is about to be forwarded.
    pub fn count_open(&mut self, stream: &str) {
        self.count(stream, |open| open.saturating_add(1));
    }

    /// Counts the outcome of a call without a session.
    pub fn count_settled(&mut self, stream: &str) {
        self.count(stream, |open| open.saturating_sub(1));
    }

    fn count(&mut self, stream: &str, change: impl Fn(u64) -> u64) {
        if let Some(copy) = self.streams.get_mut(stream)
            && let Some(StreamState::Unbound(unbound)) = &mut copy.working.state
        {
            unbound.open = change(unbound.open);
            copy.changed = true;
        }
    }

    /// Takes the names of the streams that were requested and are not loaded.
    pub fn missing(&mut self) -> Vec<String> {
        std::mem::take(&mut self.missing)
    }

    /// Returns the changes, and the streams to cache once they are committed.
    pub fn close(self) -> Result<BatchChanges, WriterError> {
        let (mut changes, mut committed, mut read) = (Vec::new(), Vec::new(), Vec::new());
        for (name, stream) in self.streams {
            if stream.changed {
                let (change, after) = stream.into_change(name.clone(), self.now)?;
                changes.push(change);
                committed.push((name, after));
            } else if self.context.is_relied_on(&name, stream.version) {
                read.push(StreamVersion { stream: name, version: stream.version });
            }
        }
        // The changes are committed together, so one of them can state what all rely on.
        if let Some(first) = changes.first_mut() {
            first.relies_on = read;
        }
        Ok((changes, committed))
    }
}

/// Reads these streams from the database; each yields its state, or the reason why it cannot be read.
async fn load(
    store: &dyn EvidenceStore,
    names: Vec<String>,
) -> Result<Vec<(String, Result<CommittedStream, String>)>, StoreError> {
    if names.is_empty() {
        return Ok(Vec::new());
    }
    let all: Vec<&str> = names.iter().map(String::as_str).collect();
    let stored = match store.streams(&all).await {
        Ok(stored) => stored.into_iter().map(Ok).collect(),
        Err(StoreError::Damaged(_)) => one_by_one(store, &all).await?,
        Err(error) => return Err(error),
    };
    let read = |(name, stored): (String, Result<Option<StoredStream>, StoreError>)| {
        let committed = stored
            .and_then(|stored| CommittedStream::read(&name, stored.as_ref()))
            .map_err(|error| error.to_string());
        (name, committed)
    };
    Ok(names.into_iter().zip(stored).map(read).collect())
}

/// Reads the streams one at a time, after reading all at once failed for a damaged one.
async fn one_by_one(
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
