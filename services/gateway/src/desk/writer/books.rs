//! The working copies of one batch: loaded streams, their changes, and the resulting commit.

use std::collections::{HashMap, HashSet};
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use bytes::Bytes;
use evidence::{Change, Claim, EvidenceStore, Kept, Record, RecordKind, StoreError};
use merkle::EntryDigest;

use crate::desk::error::DeskError;
use crate::desk::house::House;
use crate::desk::notary::Signed;
use crate::desk::shelf::Shelf;
use crate::desk::states::{State, is_changed_by_commands};

/// A stream as last committed.
#[derive(Clone, Debug)]
pub struct Held {
    /// The version; `None` if there is no such stream.
    pub version: Option<u64>,
    /// The state; `None` if it is empty.
    pub state: Option<State>,
    /// `true` if the stream is closed.
    pub closed: bool,
    /// Unix time when the stream is due or, if it is closed, until when its name is taken.
    pub keep_until: u64,
    /// The sequence number of the next record.
    pub next_seq: u64,
}

/// The working copy of a stream, with its changes.
#[derive(Clone, Debug)]
pub struct Sheet {
    held: Held,
    version: Option<u64>,
    changed: bool,
    agreed_changed: bool,
    records: Vec<Record>,
    claims: Vec<Claim>,
    opened: Vec<EntryDigest>,
    settled: Vec<EntryDigest>,
    bytes: Arc<AtomicUsize>,
}

/// The parts of a new record.
pub struct NewRecord {
    /// The kind of the record.
    pub kind: RecordKind,
    /// The signed statement.
    pub signed: Signed,
    /// The signed Verdict, for a decision.
    pub verdict: Option<Bytes>,
    /// The annex, which is stored and never sent to the log.
    pub annex: Bytes,
}

/// The changes to commit, and the streams to cache by name after the commit.
pub type Closed = (Vec<Change>, Vec<(String, Held)>);

/// All working copies of a batch.
pub struct Books<'a> {
    /// The context that all decisions share.
    pub house: &'a House,
    /// Time of the batch, in milliseconds since the Unix epoch.
    pub now: u64,
    sheets: HashMap<String, Sheet>,
    used: HashSet<Claim>,
    missing: Vec<String>,
    /// Streams that cannot be read, with the reason.
    damaged: HashMap<String, String>,
    /// Total size of the batch's new records, in bytes.
    bytes: Arc<AtomicUsize>,
}

impl Held {
    /// A stream that does not exist yet.
    pub const fn nothing() -> Self {
        Self { version: None, state: None, closed: false, keep_until: 0, next_seq: 0 }
    }

    /// Parses a stream as stored.
    pub fn read(name: &str, kept: Option<&Kept>) -> Result<Self, StoreError> {
        let Some(kept) = kept else { return Ok(Self::nothing()) };
        let damaged = |error| StoreError::Damaged(format!("the state of stream {name}: {error}"));
        Ok(Self {
            version: Some(kept.version),
            state: State::read(name, kept.agreed.as_ref(), &kept.running).map_err(damaged)?,
            closed: kept.closed,
            keep_until: kept.keep_until,
            next_seq: kept.next_seq,
        })
    }
}

impl Sheet {
    fn of(held: &Held, bytes: Arc<AtomicUsize>) -> Self {
        Self {
            bytes,
            version: held.version,
            held: held.clone(),
            changed: false,
            agreed_changed: false,
            records: Vec::new(),
            claims: Vec::new(),
            opened: Vec::new(),
            settled: Vec::new(),
        }
    }

    pub fn is_closed(&self) -> bool {
        self.held.closed
    }

    /// Returns when the stream is due, in Unix seconds.
    pub fn keep_until(&self) -> u64 {
        self.held.keep_until
    }

    /// Returns the sequence number of the next record.
    pub fn next_seq(&self) -> u64 {
        self.held.next_seq
    }

    pub fn state(&self) -> Option<&State> {
        self.held.state.as_ref()
    }

    /// Replaces the state. `agreed` is set if the seldom changing part ([`State::agreed`]) changes too.
    pub fn put(&mut self, state: State, agreed: bool) {
        self.changed = true;
        self.agreed_changed |= agreed;
        self.held.state = Some(state);
    }

    /// Sets when the stream is due, in Unix seconds.
    pub fn keep(&mut self, until: u64) {
        self.changed = true;
        self.held.keep_until = until;
    }

    /// Closes the stream. Its name stays taken until `until`, in Unix seconds.
    pub fn close(&mut self, until: u64) {
        self.keep(until);
        self.held.closed = true;
    }

    /// Reopens a stream that was closed without a closing record, such as the account of a principal that returns.
    pub fn reopen(&mut self, until: u64) {
        self.keep(until);
        self.held.closed = false;
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

    /// Appends the stream's next record.
    pub fn record(&mut self, name: &str, now: u64, new: NewRecord) {
        self.changed = true;
        let bytes = new.signed.statement.len() + new.annex.len() + new.verdict.as_ref().map_or(0, Bytes::len);
        self.bytes.fetch_add(bytes, Ordering::Relaxed);
        self.records.push(Record {
            id: new.signed.id,
            stream: name.to_owned(),
            seq: self.held.next_seq,
            kind: new.kind,
            at: now / 1000,
            statement: new.signed.statement,
            verdict: new.verdict,
            annex: new.annex,
        });
        self.held.next_seq += 1;
    }

    fn into_change(self, stream: String, now: u64) -> Result<(Change, Held), DeskError> {
        let state = self.held.state.as_ref();
        let running = state.map(State::running).transpose()?.unwrap_or_default();
        let agreed = self.agreed_changed.then(|| state.map(State::agreed).transpose()).transpose()?.flatten();
        let change = Change {
            stream,
            from: self.version,
            first: now.max(1),
            agreed,
            running,
            closed: self.held.closed,
            keep_until: self.held.keep_until,
            records: self.records,
            claims: self.claims,
            opened: self.opened,
            settled: self.settled,
        };
        let held = Held { version: Some(change.to()), ..self.held };
        Ok((change, held))
    }
}

impl<'a> Books<'a> {
    /// A batch at the current time, without loaded streams.
    pub fn new(house: &'a House) -> Self {
        let (now, bytes) = (house.clock.milliseconds(), Arc::default());
        let (sheets, damaged) = (HashMap::new(), HashMap::new());
        Self { house, now, sheets, used: HashSet::new(), missing: Vec::new(), damaged, bytes }
    }

    /// Loads these streams, from the cache or else from the database. A stream that cannot be read is noted as damaged,
    /// and does not affect the others.
    pub async fn open(
        &mut self,
        store: &dyn EvidenceStore,
        shelf: &mut Shelf<Held>,
        names: impl IntoIterator<Item = String>,
    ) -> Result<(), StoreError> {
        let mut unknown = Vec::new();
        for name in names.into_iter().collect::<HashSet<_>>() {
            if self.sheets.contains_key(&name) || self.damaged.contains_key(&name) {
                continue;
            }
            match shelf.get(&name).filter(|_| !is_changed_by_commands(&name)) {
                Some(held) => {
                    let sheet = Sheet::of(held, self.bytes.clone());
                    self.sheets.insert(name, sheet);
                }
                None => unknown.push(name),
            }
        }
        for (name, held) in load(store, unknown).await? {
            match held {
                Ok(held) => {
                    self.sheets.insert(name.clone(), Sheet::of(&held, self.bytes.clone()));
                    // A name without a stream is not cached: callers can make up names, and would evict the cache.
                    if held.version.is_some() {
                        shelf.put(name, held);
                    }
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
    pub fn damage(&self, names: &[String]) -> Option<DeskError> {
        let why = names.iter().find_map(|name| self.damaged.get(name))?;
        Some(DeskError::Unavailable(why.clone()))
    }

    /// Returns the total size of the records written so far, in bytes.
    pub fn bytes(&self) -> usize {
        self.bytes.load(Ordering::Relaxed)
    }

    /// Adds claims that were used before this batch.
    pub fn used(&mut self, claims: impl IntoIterator<Item = Claim>) {
        self.used.extend(claims);
    }

    /// Returns whether a claim was used before, in this batch or an earlier one.
    pub fn is_used(&self, claim: &Claim) -> bool {
        self.used.contains(claim)
            || self.sheets.get(&claim.stream).is_some_and(|sheet| sheet.claims.contains(claim))
    }

    /// Returns the working copy of a stream, or `None` if it is not loaded yet; then the job returns
    /// [`Step::Needs`](super::work::Step::Needs) with [`missing`](Self::missing).
    pub fn sheet(&mut self, stream: &str) -> Option<&mut Sheet> {
        if !self.sheets.contains_key(stream) {
            self.missing.push(stream.to_owned());
        }
        self.sheets.get_mut(stream)
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
        if let Some(sheet) = self.sheets.get_mut(stream)
            && let Some(State::Unbound(unbound)) = &mut sheet.held.state
        {
            unbound.open = change(unbound.open);
            sheet.changed = true;
        }
    }

    /// Takes the names of the streams that were requested and are not loaded.
    pub fn missing(&mut self) -> Vec<String> {
        std::mem::take(&mut self.missing)
    }

    /// Returns the changes, and the streams to cache once they are committed.
    pub fn close(self) -> Result<Closed, DeskError> {
        let (mut changes, mut held) = (Vec::new(), Vec::new());
        for (name, sheet) in self.sheets {
            if sheet.changed {
                let (change, after) = sheet.into_change(name.clone(), self.now)?;
                changes.push(change);
                held.push((name, after));
            }
        }
        Ok((changes, held))
    }
}

/// Reads these streams from the database; each yields its state, or the reason why it cannot be read.
async fn load(
    store: &dyn EvidenceStore,
    names: Vec<String>,
) -> Result<Vec<(String, Result<Held, String>)>, StoreError> {
    if names.is_empty() {
        return Ok(Vec::new());
    }
    let all: Vec<&str> = names.iter().map(String::as_str).collect();
    let kept = match store.streams(&all).await {
        Ok(kept) => kept.into_iter().map(Ok).collect(),
        Err(StoreError::Damaged(_)) => one_by_one(store, &all).await?,
        Err(error) => return Err(error),
    };
    let read = |(name, kept): (String, Result<Option<Kept>, StoreError>)| {
        let held = kept.and_then(|kept| Held::read(&name, kept.as_ref())).map_err(|error| error.to_string());
        (name, held)
    };
    Ok(names.into_iter().zip(kept).map(read).collect())
}

/// Reads the streams one at a time, after reading all at once failed for a damaged one.
async fn one_by_one(
    store: &dyn EvidenceStore,
    names: &[&str],
) -> Result<Vec<Result<Option<Kept>, StoreError>>, StoreError> {
    let mut all = Vec::with_capacity(names.len());
    for name in names {
        all.push(match store.streams(&[name]).await {
            Ok(kept) => Ok(kept.into_iter().next().flatten()),
            Err(StoreError::Damaged(why)) => Err(StoreError::Damaged(why)),
            Err(error) => return Err(error),
        });
    }
    Ok(all)
}
