//! The tables of a log as maps, and the effect of a commit on them.

use std::collections::{BTreeMap, HashMap, HashSet};

use bytes::Bytes;
use merkle::{CompactRange, EntryDigest, LeafIndex, TreeSize};

use super::lookup::IndexTables;
use crate::{
    Arrival, Batch, Collateral, CommitError, CommittedHead, Cosignature, Effect, Enqueued, Entry, Found,
    GuardKey, Head, HeadSignature, Hold, InboxItem, InboxUse, KeptReport, KeyAnnouncement, LogKey, NewEntry,
    PendingKey, Progress, SeenKey, SignatureKind, State, StoreError, TileAddress, TileWrite, seen_key,
};

#[derive(Clone, Debug, Default)]
pub(super) struct Tables {
    pub(super) origin: Option<String>,
    pub(super) state: State,
    pub(super) head: Option<Head>,
    pub(super) batches: Vec<CommittedHead>,
    pub(super) entries: Vec<Entry>,
    pub(super) collateral: HashMap<u64, Vec<Collateral>>,
    /// Index of the entry, by the first 128 bits of its digest or of its twin's.
    pub(super) seen: HashMap<SeenKey, u64>,
    pub(super) guards: HashMap<GuardKey, u64>,
    pub(super) tiles: HashMap<TileAddress, Bytes>,
    pub(super) signatures: BTreeMap<(TreeSize, SignatureKind, Vec<u8>), Bytes>,
    pub(super) cosignatures: BTreeMap<(TreeSize, Vec<u8>), Cosignature>,
    /// Pending items by number.
    pub(super) inbox: BTreeMap<u64, PendingItem>,
    /// Numbers of the pending items by digest.
    pub(super) pending: HashMap<EntryDigest, u64>,
    /// Number of items that ever arrived.
    pub(super) arrived: u64,
    pub(super) outcomes: HashMap<EntryDigest, Progress>,
    /// Finished attempts that `trim_inbox` has not removed yet.
    pub(super) finished: Vec<EntryDigest>,
    /// Statements whose newest outcome is a failure, the oldest first.
    failures: Vec<EntryDigest>,
    pub(super) keys: Vec<LogKey>,
    pub(super) announced: Vec<KeyAnnouncement>,
    pub(super) holds: Vec<Hold>,
    pub(super) reports: Vec<KeptReport>,
    pub(super) index: IndexTables,
}

#[derive(Clone, Debug)]
pub(super) struct PendingItem {
    pub(super) item: InboxItem,
    issuer: String,
    issuer_key: [u8; 16],
    at: u64,
}

impl PendingItem {
    fn bytes(&self) -> u64 {
        self.item.submission.len() as u64
    }

    pub(super) fn key(&self, number: u64) -> PendingKey {
        let (digest, issuer) = (self.item.digest, self.issuer.clone());
        PendingKey { number, digest, issuer, bytes: self.bytes(), at: self.at }
    }
}

impl Tables {
    pub(super) fn open(&mut self, origin: &str) -> Result<Head, StoreError> {
        let known = self.origin.get_or_insert_with(|| origin.to_owned());
        if known != origin {
            return Err(StoreError::Refused(format!("the database holds the log {known}, not {origin}")));
        }
        Ok(self.head.get_or_insert_with(no_entries).clone())
    }

    pub(super) fn head(&self) -> Result<&Head, StoreError> {
        self.head.as_ref().ok_or_else(not_open)
    }

    pub(super) fn commit(&mut self, batch: &Batch) -> Result<(), CommitError> {
        batch.check().and_then(|()| self.must_grow()).map_err(CommitError::NotCommitted)?;
        let head = self.head().map_err(CommitError::NotCommitted)?;
        if head.epoch != batch.from.epoch || head.edge != batch.from.edge {
            return Err(CommitError::Fenced);
        }
        self.check_unique(&batch.entries)?;
        self.check_growth(&batch.tiles)?;
        self.check_signable(&batch.signatures).map_err(CommitError::NotCommitted)?;
        self.apply(batch);
        Ok(())
    }

    /// Refuses signatures over heads that were never committed.
    pub(super) fn check_signable(&self, signatures: &[HeadSignature]) -> Result<(), StoreError> {
        match signatures.iter().find(|signature| self.head_of_size(signature.size).is_none()) {
            None => Ok(()),
            Some(lost) => Err(StoreError::Refused(format!("no head of size {} was committed", lost.size))),
        }
    }

    /// Adds signatures; the first of each kind, key and head stays.
    pub(super) fn sign(&mut self, signatures: &[HeadSignature]) {
        for signature in signatures {
            let key = (signature.size, signature.kind, signature.kid.clone());
            self.signatures.entry(key).or_insert_with(|| signature.bytes.clone());
        }
    }

    pub(super) fn check_unique(&self, entries: &[NewEntry]) -> Result<(), CommitError> {
        let mut seen = HashSet::new();
        let mut guards = HashSet::new();
        for entry in entries {
            let mut keys = std::iter::once(&entry.digest).chain(&entry.twin).map(seen_key);
            if keys.any(|key| self.seen.contains_key(&key) || !seen.insert(key)) {
                return Err(CommitError::AlreadySeen);
            }
        }
        for key in entries.iter().flat_map(|entry| &entry.guards) {
            if self.guards.contains_key(key) || !guards.insert(key) {
                return Err(CommitError::GuardTaken);
            }
        }
        Ok(())
    }

    pub(super) fn check_growth(&self, tiles: &[TileWrite]) -> Result<(), CommitError> {
        let shrinks = |tile: &&TileWrite| {
            self.tiles
                .get(&tile.address)
                .is_some_and(|old| !tile.data.starts_with(old) || tile.data.len() == old.len())
        };
        match tiles.iter().find(shrinks) {
            None => Ok(()),
            Some(tile) => Err(CommitError::NotCommitted(StoreError::Refused(format!(
                "tile {}/{} would change instead of growing",
                tile.address.level, tile.address.number
            )))),
        }
    }

    fn apply(&mut self, batch: &Batch) {
        self.append(batch);
        self.sign(&batch.signatures);
        batch.effects.iter().for_each(|effect| self.take_effect(effect, batch.to.at));
        for (digest, index) in &batch.settled {
            self.finish(digest, Progress::Registered(*index));
        }
        if !batch.entries.is_empty() {
            let Head { epoch, batch: number, at, .. } = batch.to;
            let (size, root) = (batch.to.size(), batch.to.root());
            self.batches.push(CommittedHead { batch: number, epoch, size, root, at });
        }
    }

    fn take_effect(&mut self, effect: &Effect, at: u64) {
        match effect {
            Effect::Freeze => {
                self.state = State::Frozen { at };
                self.head.iter_mut().for_each(|head| head.epoch += 1);
            }
            Effect::Hold { entry, case } => self.hold(*entry, case, at),
            Effect::Release { entry, case } => drop(self.release(*entry, case, at)),
        }
    }

    /// Appends the batch's entries and tiles, and moves the head.
    pub(super) fn append(&mut self, batch: &Batch) {
        for (entry, index) in batch.entries.iter().zip(batch.from.size().get()..) {
            self.seen.extend(
                std::iter::once(&entry.digest).chain(&entry.twin).map(|digest| (seen_key(digest), index)),
            );
            self.guards.extend(entry.guards.iter().map(|key| (key.clone(), index)));
            let mut collateral = entry.collateral.clone();
            collateral.sort_by_key(|item| item.kind);
            self.collateral.insert(index, collateral);
            self.entries.push(stored(entry, LeafIndex::new(index)));
        }
        self.tiles.extend(batch.tiles.iter().map(|tile| (tile.address, tile.data.clone())));
        self.head = Some(batch.to.clone());
    }

    pub(super) fn find(&self, digest: &EntryDigest) -> Option<Found> {
        let index = *self.seen.get(&seen_key(digest))?;
        let entry = self.entries.get(index as usize)?;
        Some(Found { index: entry.index, digest: entry.digest })
    }

    pub(super) fn head_of_size(&self, size: TreeSize) -> Option<CommittedHead> {
        self.batches.binary_search_by_key(&size, |head| head.size).ok().map(|at| self.batches[at])
    }

    pub(super) fn head_covering(&self, leaf: LeafIndex) -> Option<CommittedHead> {
        let at = self.batches.partition_point(|head| !head.size.holds(leaf));
        self.batches.get(at).copied()
    }

    pub(super) fn enqueue(&mut self, item: &InboxItem, arrival: &Arrival<'_>) -> Enqueued {
        if !matches!(self.progress(&item.digest), None | Some(Progress::Failed(_))) {
            return Enqueued::Kept;
        }
        let new = PendingItem {
            item: item.clone(),
            issuer: arrival.issuer_name(),
            issuer_key: arrival.issuer_key(),
            at: arrival.at,
        };
        let bounds = &arrival.bounds;
        let theirs = self.inbox.values().filter(|known| known.issuer_key == new.issuer_key);
        if !has_room(theirs, &new, bounds.issuer_rows, bounds.issuer_bytes) {
            return Enqueued::IssuerFull;
        }
        if !has_room(self.inbox.values(), &new, bounds.rows, bounds.bytes) {
            return Enqueued::Full;
        }
        self.arrived += 1;
        self.pending.insert(item.digest, self.arrived);
        self.inbox.insert(self.arrived, new);
        Enqueued::Kept
    }

    pub(super) fn pending_keys(&self, after: Option<u64>, limit: usize) -> Vec<PendingKey> {
        let from = after.map_or(0, |after| after + 1);
        self.inbox.range(from..).take(limit).map(|(number, pending)| pending.key(*number)).collect()
    }

    pub(super) fn inbox_use(&self) -> InboxUse {
        let known = self.inbox.values().map(|pending| pending.at).filter(|at| *at > 0);
        InboxUse {
            rows: self.inbox.len() as u64,
            bytes: self.inbox.values().map(PendingItem::bytes).sum(),
            oldest: known.min(),
        }
    }

    pub(super) fn progress(&self, digest: &EntryDigest) -> Option<Progress> {
        if self.pending.contains_key(digest) {
            return Some(Progress::Pending);
        }
        self.outcomes.get(digest).cloned()
    }

    pub(super) fn finish(&mut self, digest: &EntryDigest, outcome: Progress) {
        if let Some(number) = self.pending.remove(digest) {
            self.inbox.remove(&number);
            self.failures.retain(|failed| failed != digest);
            if let Progress::Failed(_) = outcome {
                self.failures.push(*digest);
            }
            self.outcomes.insert(*digest, outcome);
            self.finished.push(*digest);
        }
    }

    pub(super) fn trim(&mut self, limit: usize) -> u64 {
        let count = limit.min(self.finished.len());
        for digest in self.finished.drain(..count) {
            if matches!(self.outcomes.get(&digest), Some(Progress::Registered(_))) {
                self.outcomes.remove(&digest);
            }
        }
        count as u64
    }

    /// Forgets the oldest failures of trimmed attempts, except the newest `keep`.
    pub(super) fn forget_failures(&mut self, keep: u64, limit: usize) -> u64 {
        let old = self.failures.len().saturating_sub(usize::try_from(keep).unwrap_or(usize::MAX));
        let trimmed = self.failures[..old].iter().filter(|failed| !self.finished.contains(failed));
        let forgotten: Vec<EntryDigest> = trimmed.take(limit).copied().collect();
        self.failures.retain(|failed| !forgotten.contains(failed));
        for digest in &forgotten {
            self.outcomes.remove(digest);
        }
        forgotten.len() as u64
    }
}

/// Returns whether there is room for one more item within so many rows and bytes.
fn has_room<'a>(
    kept: impl Iterator<Item = &'a PendingItem> + Clone,
    new: &PendingItem,
    rows: u64,
    bytes: u64,
) -> bool {
    let held: u64 = kept.clone().map(PendingItem::bytes).sum();
    (kept.count() as u64) < rows && held.saturating_add(new.bytes()) <= bytes
}

fn stored(entry: &NewEntry, index: LeafIndex) -> Entry {
    Entry {
        index,
        digest: entry.digest,
        statement: Some(entry.statement.clone()),
        policy: entry.policy,
        rule: entry.rule.clone(),
        facts: entry.facts.clone(),
    }
}

pub(super) fn head_signature(
    ((size, kind, kid), bytes): (&(TreeSize, SignatureKind, Vec<u8>), &Bytes),
) -> HeadSignature {
    HeadSignature { size: *size, kind: *kind, kid: kid.clone(), bytes: bytes.clone() }
}

pub(super) fn not_open() -> StoreError {
    StoreError::NoLog("the log was not opened".into())
}

/// Head of a log without entries.
pub(super) fn no_entries() -> Head {
    Head { epoch: 0, batch: 0, edge: CompactRange::empty(), at: 0, policy: LeafIndex::new(0) }
}
