//! Erasure of the bytes of entries, and the holds that prevent it.
//!
//! An entry keeps its position, its digest and its guards for ever, so every proof and receipt stays valid. Its
//! bytes can be erased: the statement, its collateral and the facts derived from it. A hold prevents that until it
//! is released.
//!
//! Not here: the signed erasure statement that must be in the log first, who may ask for an erasure, and the
//! retention period of each content type (`registration`, the service).

use async_trait::async_trait;
use merkle::LeafIndex;

use crate::StoreError;

/// Maximum number of entries in one [`Custody::erase`].
pub const ERASED_AT_ONCE: usize = 4096;
/// Maximum length of a case name, in bytes.
pub const CASE_BYTES: usize = 256;

/// Erasing entries, and holding them for a case.
#[async_trait]
pub trait Custody: Send + Sync + 'static {
    /// Erases the bytes of these entries in one transaction: the statement becomes `None` and the facts `{}`;
    /// collateral, finished inbox attempts and the statements of [`Report`](crate::Report)s about the entries are
    /// removed. Searches do not find the entries any more; their keys leave the runs of the
    /// [`LookupIndex`](crate::LookupIndex) when those are written anew.
    ///
    /// Entries on hold are left unchanged and listed in [`Erased::held`]. Erasing again changes nothing. An index
    /// at or beyond the committed size, and a list of more than [`ERASED_AT_ONCE`] entries, are
    /// [`StoreError::Refused`].
    async fn erase(&self, entries: &[LeafIndex]) -> Result<Erased, StoreError>;

    /// Holds an entry for a case: the entry cannot be erased until every hold on it is released.
    ///
    /// Nothing happens if the case holds the entry already. An erased entry, an entry that is not in the log and a
    /// case without a name (or with one of more than [`CASE_BYTES`]) are [`StoreError::Refused`].
    async fn hold(&self, entry: LeafIndex, case: &str, at: u64) -> Result<(), StoreError>;

    /// Ends the hold of a case on an entry; returns whether there was one.
    async fn release(&self, entry: LeafIndex, case: &str, at: u64) -> Result<bool, StoreError>;

    /// Returns up to `limit` holds on entries after `after`, ended ones included, by entry and then in order of
    /// their beginning. The holds of one entry are never split, so the result may be a little longer than `limit`.
    async fn holds(&self, after: Option<LeafIndex>, limit: usize) -> Result<Vec<Hold>, StoreError>;

    /// Returns those of these entries that are on hold now.
    async fn held(&self, entries: &[LeafIndex]) -> Result<Vec<LeafIndex>, StoreError>;

    /// Returns the [`EntryStatus`] of those of these entries that are in the log, in order and each once, without
    /// reading their bytes.
    async fn statuses(&self, entries: &[LeafIndex]) -> Result<Vec<EntryStatus>, StoreError>;
}

/// Facts about an entry that can be read without its bytes.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct EntryStatus {
    /// Index of the entry.
    pub entry: LeafIndex,
    /// Name of the policy rule that admitted the entry.
    pub rule: String,
    /// `false` once the statement was erased.
    pub has_statement: bool,
}

/// Outcome of [`Custody::erase`].
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Erased {
    /// Entries that have no bytes now, including those erased before; in order.
    pub erased: Vec<LeafIndex>,
    /// Entries that were not erased because of a hold; in order.
    pub held: Vec<LeafIndex>,
}

/// A hold on an entry.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Hold {
    /// Index of the entry.
    pub entry: LeafIndex,
    /// Case for which the entry is held.
    pub case: String,
    /// Beginning of the hold, in Unix seconds.
    pub at: u64,
    /// End of the hold, in Unix seconds; `None` while it lasts.
    pub released: Option<u64>,
}

/// Checks the length of a list for [`Custody::erase`]; returns the list sorted and without duplicates.
pub fn to_erase(entries: &[LeafIndex]) -> Result<Vec<LeafIndex>, StoreError> {
    if entries.len() > ERASED_AT_ONCE {
        return Err(StoreError::Refused(format!("more than {ERASED_AT_ONCE} entries to erase at once")));
    }
    let mut entries = entries.to_vec();
    entries.sort_unstable();
    entries.dedup();
    Ok(entries)
}

/// Checks the name of a case: 1 to [`CASE_BYTES`] bytes without NUL.
pub fn check_case(case: &str) -> Result<(), StoreError> {
    if case.is_empty() || case.len() > CASE_BYTES || case.contains('\0') {
        return Err(StoreError::Refused(format!("a case has a name of 1 to {CASE_BYTES} bytes without NUL")));
    }
    Ok(())
}
