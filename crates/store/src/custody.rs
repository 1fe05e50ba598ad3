//! What may be taken out of an entry, and what forbids it.
//!
//! An entry keeps its place, its digest and its guards for ever, so every proof and receipt stands.
//! Its bytes can go: the statement, what came beside it, what was read from it. A hold is why they
//! must stay for now.
//!
//! Not here: the signed erasure statement that has to be on the log first, who may ask, and for
//! how long which content type is kept (`registration`, the service).

use async_trait::async_trait;
use merkle::LeafIndex;

use crate::StoreError;

/// How many entries one [`Custody::erase`] takes.
pub const ERASED_AT_ONCE: usize = 4096;
/// How many bytes the name of a case may have.
pub const CASE_BYTES: usize = 256;

/// Erasing what entries say, and holding them against it.
#[async_trait]
pub trait Custody: Send + Sync + 'static {
    /// Takes the bytes out of these entries in one transaction: their statement becomes `None`,
    /// their facts `{}`, their collateral, their rows of the lookup index, their finished inbox
    /// attempts and the statements of reports about them go.
    ///
    /// Entries on hold are left as they are, and the answer names them. Erasing again changes
    /// nothing. An index at or beyond the committed size, and more than [`ERASED_AT_ONCE`] of them,
    /// are [`StoreError::Refused`].
    async fn erase(&self, entries: &[LeafIndex]) -> Result<Erased, StoreError>;

    /// Holds an entry for a case: it cannot be erased until every hold on it is released.
    ///
    /// Nothing happens while the case holds it already. An entry that was erased, one that is not
    /// in the log and a case without a name (or of more than [`CASE_BYTES`]) are
    /// [`StoreError::Refused`].
    async fn hold(&self, entry: LeafIndex, case: &str, at: u64) -> Result<(), StoreError>;

    /// Ends the hold of a case on an entry; answers whether there was one.
    async fn release(&self, entry: LeafIndex, case: &str, at: u64) -> Result<bool, StoreError>;

    /// Up to `limit` holds on entries after `after`, ended ones included, by entry and then in the
    /// order in which they began. The holds of one entry are never split, so the answer may be a
    /// little longer than `limit`.
    async fn holds(&self, after: Option<LeafIndex>, limit: usize) -> Result<Vec<Hold>, StoreError>;

    /// Which of these entries are on hold now.
    async fn held(&self, entries: &[LeafIndex]) -> Result<Vec<LeafIndex>, StoreError>;

    /// Those of these entries that are in the log, in order and each once, without what they say.
    async fn standing(&self, entries: &[LeafIndex]) -> Result<Vec<Standing>, StoreError>;
}

/// What is known of an entry without reading what it says.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Standing {
    /// The entry.
    pub entry: LeafIndex,
    /// The rule by which it was admitted.
    pub rule: String,
    /// Whether its statement is there: it was not erased.
    pub has_statement: bool,
}

/// What became of the entries that were to be erased.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Erased {
    /// Those without bytes now, also those that had none before; in order.
    pub erased: Vec<LeafIndex>,
    /// Those that a hold kept; in order.
    pub held: Vec<LeafIndex>,
}

/// A hold on an entry.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Hold {
    /// The entry.
    pub entry: LeafIndex,
    /// The case it is held for.
    pub case: String,
    /// Unix seconds of its beginning.
    pub at: u64,
    /// Unix seconds of its end.
    pub released: Option<u64>,
}

/// Refuses a list that no store takes; answers it in order, each entry once.
pub fn to_erase(entries: &[LeafIndex]) -> Result<Vec<LeafIndex>, StoreError> {
    if entries.len() > ERASED_AT_ONCE {
        return Err(StoreError::Refused(format!("more than {ERASED_AT_ONCE} entries to erase at once")));
    }
    let mut entries = entries.to_vec();
    entries.sort_unstable();
    entries.dedup();
    Ok(entries)
}

/// Refuses the name of a case that no store keeps.
pub fn check_case(case: &str) -> Result<(), StoreError> {
    if case.is_empty() || case.len() > CASE_BYTES || case.contains('\0') {
        return Err(StoreError::Refused(format!("a case has a name of 1 to {CASE_BYTES} bytes without NUL")));
    }
    Ok(())
}
