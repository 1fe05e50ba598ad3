//! Erasure statements, which list the entries that were erased.

use merkle::EntryDigest;
use registration::Record;

/// Returns the entries that an admitted erasure statement lists; empty for other records.
pub(crate) fn listed(record: &Record) -> Vec<EntryDigest> {
    match record {
        Record::Erasure(erasure) => erasure.entries.clone(),
        _ => Vec::new(),
    }
}
