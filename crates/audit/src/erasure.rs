//! Statements that say which entries were erased.

use merkle::EntryDigest;
use registration::Record;

/// The entries that an admitted statement says are erased.
pub(crate) fn listed(record: &Record) -> Vec<EntryDigest> {
    match record {
        Record::Erasure(erasure) => erasure.entries.clone(),
        _ => Vec::new(),
    }
}
