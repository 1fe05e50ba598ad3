//! Doing what the log's erasure statements say: the statement first, the bytes after it.
//!
//! An erasure is in force from the moment it is an entry. The process that leads walks them by number and takes the bytes
//! out; taking out what is gone changes nothing, so whatever a crash left undone is done by the next start. An entry
//! on hold keeps its bytes, and its erasure stays open until the hold ends.
//!
//! Not here: who may erase and what (`registration::erasure`), the deleting itself (`store::Custody`).

pub mod retention;

use std::collections::BTreeMap;
use std::ops::Range;
use std::sync::Arc;

use merkle::{EntryDigest, LeafIndex, TreeSize};
use registration::erasure::{Erasure, sequence_guard};
use registration::{Answers, ERASURE_CONTENT_TYPE};
use scitt::SignedStatement;
use sequencer::Role;
use store::{Entry, GuardKey, LogStore, StoreError};
use tokio::sync::Notify;

use crate::limits::{ERASURE_LOOK, ERASURE_RETRY};
use crate::log::Log;

/// How many erasures are looked for at a time.
const AHEAD: u64 = 16;

/// An erasure statement of the log.
#[derive(Clone, Debug)]
pub struct Registered {
    /// What it says.
    pub erasure: Erasure,
    /// Where it stands.
    pub index: LeafIndex,
    /// Its entry ID.
    pub entry: EntryDigest,
}

/// The erasures of these numbers, as far as the log has them.
pub async fn registered(store: &dyn LogStore, numbers: Range<u64>) -> Result<Vec<Registered>, StoreError> {
    let mut found = Vec::new();
    for index in leaves(store, numbers).await? {
        let entry = store.entry(index).await?.ok_or_else(|| damaged(index, "it is missing"))?;
        found.push(read(&entry.verified()?)?);
    }
    Ok(found)
}

/// How many erasures the log has: they are numbered without gaps.
pub async fn count(store: &dyn LogStore) -> Result<u64, StoreError> {
    let there = async |number: u64| Ok::<_, StoreError>(!leaves(store, number..number + 1).await?.is_empty());
    let mut beyond = 1;
    while there(beyond - 1).await? {
        beyond *= 2;
    }
    let mut known = beyond / 2;
    while known + 1 < beyond {
        let middle = known + (beyond - known) / 2;
        if there(middle - 1).await? { known = middle } else { beyond = middle }
    }
    Ok(known)
}

async fn leaves(store: &dyn LogStore, numbers: Range<u64>) -> Result<Vec<LeafIndex>, StoreError> {
    let keys: Vec<GuardKey> =
        numbers.map(|number| GuardKey(sequence_guard(number).as_bytes().to_vec())).collect();
    Ok(store.guards(&keys).await?.into_iter().map_while(|leaf| leaf).collect())
}

/// An entry that must be an erasure: a guard says so.
fn read(entry: &Entry) -> Result<Registered, StoreError> {
    let index = entry.index;
    let bytes = entry.statement.clone().ok_or_else(|| damaged(index, "it is erased"))?;
    let statement = SignedStatement::parse(bytes).map_err(|why| damaged(index, &why.to_string()))?;
    let named = statement.header().content_type().and_then(|name| name.as_text());
    if !named.is_some_and(|name| is_type(name, ERASURE_CONTENT_TYPE)) {
        return Err(damaged(index, "it is no erasure"));
    }
    let erasure = Erasure::from_payload(statement.payload().unwrap_or_default())
        .map_err(|violation| damaged(index, &violation.to_string()))?;
    Ok(Registered { erasure, index, entry: entry.digest })
}

/// Whether a media type is this one, parameters aside.
fn is_type(name: &str, wanted: &str) -> bool {
    name.split(';').next().is_some_and(|own| own.trim().eq_ignore_ascii_case(wanted))
}

fn damaged(index: LeafIndex, why: &str) -> StoreError {
    StoreError::Damaged(format!("entry {index} should hold an erasure: {why}"))
}

/// Where the entries stand that an erasure names.
pub async fn erased_leaves(store: &dyn LogStore, erasure: &Erasure) -> Result<Vec<LeafIndex>, StoreError> {
    let found = store.find(&erasure.entries).await?.into_iter().zip(&erasure.entries);
    Ok(found
        .filter_map(|(found, asked)| found.filter(|found| found.digest == *asked))
        .map(|found| found.index)
        .collect())
}

/// Those that have their bytes: a start walks all erasures, and most are done.
async fn still_there(store: &dyn LogStore, leaves: Vec<LeafIndex>) -> Result<Vec<LeafIndex>, StoreError> {
    let mut there = Vec::new();
    for leaf in leaves {
        if store.entry(leaf).await?.is_some_and(|entry| entry.statement.is_some()) {
            there.push(leaf);
        }
    }
    Ok(there)
}

/// A hold that stands against an erasure.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct OnHold {
    /// The entry that is held.
    pub entry: EntryDigest,
    /// The case it is held for.
    pub case: String,
}

/// The first hold on one of the entries that an erasure names.
pub async fn on_hold(
    store: &dyn LogStore,
    erasure: &Erasure,
    log: &Answers,
) -> Result<Option<OnHold>, StoreError> {
    let named: Vec<(LeafIndex, EntryDigest)> =
        erasure.entries.iter().filter_map(|entry| Some((log.entry(entry)?, *entry))).collect();
    let leaves: Vec<LeafIndex> = named.iter().map(|(leaf, _)| *leaf).collect();
    let Some(held) = store.held(&leaves).await?.into_iter().next() else { return Ok(None) };
    let before = held.get().checked_sub(1).map(LeafIndex::new);
    let holds = store.holds(before, 1).await?;
    let hold = holds.into_iter().find(|hold| hold.entry == held && hold.released.is_none());
    let entry = named.into_iter().find(|(leaf, _)| *leaf == held).map(|(_, entry)| entry);
    Ok(hold.zip(entry).map(|(hold, entry)| OnHold { entry, case: hold.case }))
}

/// Wakes the task that erases: an erasure was registered, or a hold has ended.
#[derive(Debug, Default)]
pub struct Erasing(Notify);

impl Erasing {
    /// Looks now, not at the next turn.
    pub fn look(&self) {
        self.0.notify_one();
    }
}

/// Erases what is to be erased, for as long as this process runs.
pub async fn keep_erasing(log: Arc<Log>) {
    let mut eraser = Eraser::default();
    loop {
        let wait = match eraser.round(&log).await {
            Ok(()) => ERASURE_LOOK,
            Err(error) => {
                tracing::error!(%error, "bytes that are to be erased are still there");
                ERASURE_RETRY
            }
        };
        // Woken or not: an erasure may come by the inbox, and a hold may be ended by another process.
        let _ = tokio::time::timeout(wait, log.erasing.0.notified()).await;
    }
}

/// What was done so far.
#[derive(Default)]
struct Eraser {
    /// Every erasure below this number was looked at.
    next: u64,
    /// How large the log was when nothing more was found.
    looked_at: TreeSize,
    /// Entries that a hold keeps, by the number of their erasure.
    held: BTreeMap<u64, Vec<LeafIndex>>,
}

impl Eraser {
    async fn round(&mut self, log: &Log) -> Result<(), StoreError> {
        if !matches!(log.sequencer.status().borrow().role, Role::Leading { .. }) {
            return Ok(());
        }
        self.again(&*log.store).await?;
        let size = log.committed_size();
        if size != self.looked_at || self.next == 0 {
            self.newer(&*log.store).await?;
            self.looked_at = size;
        }
        Ok(())
    }

    /// Erasures that a hold stood against.
    async fn again(&mut self, store: &dyn LogStore) -> Result<(), StoreError> {
        for (number, leaves) in std::mem::take(&mut self.held) {
            let held = store.held(&leaves).await?;
            if held.len() == leaves.len() {
                self.held.insert(number, leaves);
            } else {
                self.erase(store, number, &leaves).await?;
            }
        }
        Ok(())
    }

    async fn newer(&mut self, store: &dyn LogStore) -> Result<(), StoreError> {
        loop {
            let found = registered(store, self.next..self.next + AHEAD).await?;
            let last = found.len() < AHEAD as usize;
            for Registered { erasure, .. } in found {
                let leaves = still_there(store, erased_leaves(store, &erasure).await?).await?;
                if !leaves.is_empty() {
                    self.erase(store, erasure.sequence, &leaves).await?;
                }
                self.next = erasure.sequence + 1;
            }
            if last {
                return Ok(());
            }
        }
    }

    async fn erase(
        &mut self,
        store: &dyn LogStore,
        number: u64,
        leaves: &[LeafIndex],
    ) -> Result<(), StoreError> {
        let done = store.erase(leaves).await?;
        tracing::info!(erasure = number, erased = done.erased.len(), held = done.held.len(), "erased");
        if !done.held.is_empty() {
            self.held.insert(number, done.held);
        }
        Ok(())
    }
}
