//! The log's erasure statements. A statement is registered first, and the bytes are deleted after it.
//!
//! This module finds and reads the statements. In `background`, `eraser` deletes the bytes, `permanent` names the entries
//! that stay, and `retention` registers erasures automatically.
//!
//! Not here: the permission to erase (`registration::erasure`), and the deletion itself (`store::Custody`).

use std::ops::Range;
use std::sync::{Mutex, PoisonError};

use crate::log::content_type::is_type;
use merkle::{EntryDigest, LeafIndex};
use registration::erasure::{Erasure, sequence_guard};
use registration::{Answers, ERASURE_CONTENT_TYPE};
use scitt::SignedStatement;
use store::{Custody, Entry, GuardKey, LogReader, StoreError};
use tokio::sync::Notify;

/// A registered erasure statement with its position in the log.
#[derive(Clone, Debug)]
pub struct RegisteredErasure {
    /// The parsed statement.
    pub erasure: Erasure,
    /// The leaf of the statement.
    pub index: LeafIndex,
    /// The entry ID of the statement.
    pub entry: EntryDigest,
}

/// Returns the erasures of these numbers, up to the first that the log does not have.
pub async fn registered(
    store: &dyn LogReader,
    numbers: Range<u64>,
) -> Result<Vec<RegisteredErasure>, StoreError> {
    let mut found = Vec::new();
    for index in leaves(store, numbers).await? {
        found.push(at(store, index).await?);
    }
    Ok(found)
}

/// The erasure at this leaf.
pub async fn at(store: &dyn LogReader, index: LeafIndex) -> Result<RegisteredErasure, StoreError> {
    let entry = store.entry(index).await?.ok_or_else(|| damaged(index, "it is missing"))?;
    read(&entry.verified()?)
}

/// The number of erasures in the log, by binary search: they are numbered without gaps.
pub async fn count(store: &dyn LogReader) -> Result<u64, StoreError> {
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

/// The leaves of the erasures with these numbers, up to the first that the log does not have.
pub async fn leaves(store: &dyn LogReader, numbers: Range<u64>) -> Result<Vec<LeafIndex>, StoreError> {
    let keys: Vec<GuardKey> =
        numbers.map(|number| GuardKey(sequence_guard(number).as_bytes().to_vec())).collect();
    Ok(store.guards(&keys).await?.into_iter().map_while(|leaf| leaf).collect())
}

/// Parses an entry that a guard marks as an erasure; [`StoreError::Damaged`] if it is not one.
fn read(entry: &Entry) -> Result<RegisteredErasure, StoreError> {
    let index = entry.index;
    let bytes = entry.statement.clone().ok_or_else(|| damaged(index, "it is erased"))?;
    let statement = SignedStatement::parse(bytes).map_err(|why| damaged(index, &why.to_string()))?;
    let named = statement.header().content_type().and_then(|name| name.as_text());
    if !named.is_some_and(|name| is_type(name, ERASURE_CONTENT_TYPE)) {
        return Err(damaged(index, "it is not an erasure"));
    }
    let erasure = Erasure::from_payload(statement.payload().unwrap_or_default())
        .map_err(|violation| damaged(index, &violation.to_string()))?;
    Ok(RegisteredErasure { erasure, index, entry: entry.digest })
}

fn damaged(index: LeafIndex, why: &str) -> StoreError {
    StoreError::Damaged(format!("entry {index} should hold an erasure: {why}"))
}

/// The leaves of the entries that an erasure names, without those that the log does not have.
pub async fn erased_leaves(store: &dyn LogReader, erasure: &Erasure) -> Result<Vec<LeafIndex>, StoreError> {
    let found = store.find(&erasure.entries).await?.into_iter().zip(&erasure.entries);
    Ok(found
        .filter_map(|(found, asked)| found.filter(|found| found.digest == *asked))
        .map(|found| found.index)
        .collect())
}

/// A legal hold that prevents an erasure.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ErasureHold {
    /// The entry on hold.
    pub entry: EntryDigest,
    /// The case of the hold.
    pub case: String,
}

/// The first hold on one of the entries that an erasure names; `None` if there is none.
pub async fn on_hold(
    store: &dyn Custody,
    erasure: &Erasure,
    log: &Answers,
) -> Result<Option<ErasureHold>, StoreError> {
    let named: Vec<(LeafIndex, EntryDigest)> =
        erasure.entries.iter().filter_map(|entry| Some((log.entry(entry)?, *entry))).collect();
    let leaves: Vec<LeafIndex> = named.iter().map(|(leaf, _)| *leaf).collect();
    let Some(held) = store.held(&leaves).await?.into_iter().next() else { return Ok(None) };
    let before = held.get().checked_sub(1).map(LeafIndex::new);
    let holds = store.holds(before, 1).await?;
    let hold = holds.into_iter().find(|hold| hold.entry == held && hold.released.is_none());
    let entry = named.into_iter().find(|(leaf, _)| *leaf == held).map(|(_, entry)| entry);
    Ok(hold.zip(entry).map(|(hold, entry)| ErasureHold { entry, case: hold.case }))
}

/// The progress of this process's eraser, which a head of the index waits for.
#[derive(Debug, Default)]
pub struct CarriedOut(Mutex<Option<u64>>);

impl CarriedOut {
    /// A number n: the bytes that the erasures 0 to n - 1 name are deleted. `None` while this process does not know of
    /// all of them, and while one waits for the end of a hold or cannot be read.
    pub fn count(&self) -> Option<u64> {
        *self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Sets the number.
    pub fn set(&self, count: Option<u64>) {
        *self.0.lock().unwrap_or_else(PoisonError::into_inner) = count;
    }
}

/// The number of erasures whose statements are before a leaf.
pub async fn count_before(store: &dyn LogReader, leaf: LeafIndex) -> Result<u64, StoreError> {
    let mut number = count(store).await?;
    while number > 0 && leaves(store, number - 1..number).await?.iter().any(|at| *at >= leaf) {
        number -= 1;
    }
    Ok(number)
}

/// Wakes the eraser: an erasure was registered, or a hold has ended.
#[derive(Debug, Default)]
pub struct EraserWakeup(pub Notify);

impl EraserWakeup {
    /// Starts the next round now instead of after `ERASURE_POLL`.
    pub fn look(&self) {
        self.0.notify_one();
    }
}
