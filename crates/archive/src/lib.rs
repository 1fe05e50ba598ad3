//! Archives: a whole log in one file, exported from a database, verified, and imported into another database.
//!
//! The file begins with a line that names the format, continues with framed records in a fixed order (`record`), and
//! ends with a record of the contents' totals and the SHA-256 of all bytes before. It contains all data that a database
//! cannot derive: entries with their collateral, every committed head with its signatures and cosignatures, keys,
//! holds, reports, index rows that lead to entries, and the inbox. Not included: tiles (derived from the entries), the
//! look-up index (rebuilt by the service), and the used quotas of issuers.
//!
//! A reader trusts nothing in the file ([`Checker`]): digests are computed from the statements, and the root at every
//! committed head from the digests; signatures are checked by the caller's [`StatementInspector`]. Writing applies the
//! same checks, so that an existing archive verifies. Memory use does not grow with the log, except for 40 bytes for
//! each erased entry and 32 bytes for each 4,096 entries; the root of all entries is also computed by `rs_merkle`, which
//! shares no code with our tree.
//!
//! The checksum is not a signature. The log's identity is proven by the signatures over its heads: compare the keys in
//! the [`ArchiveSummary`] with the known keys.
//!
//! Not here: the interpretation of statements and signatures, the choice of trusted keys, and the pin (the caller);
//! whether each guard is the one that its statement claims (`store::fsck`, after filling).

mod check;
mod create;
mod end_record;
mod fill;
mod frame;
pub mod limits;
mod partial_file;
mod record;
mod summary;

use std::io::Read;

use merkle::TreeSize;

pub use check::{Checker, EntryEffects, StatementInspector};
pub use create::{ArchiveWriteError, write};
pub use end_record::RecordCounts;
pub use fill::{FillError, FillResult, fill, finish};
pub use frame::{ArchiveError, ArchiveReader};
pub use partial_file::PartialFile;
pub use record::{ArchiveHeader, ArchivePurpose, ArchiveRecord};
pub use summary::ArchiveSummary;

/// Verifies a complete archive and returns a summary of its contents.
///
/// # Errors
/// [`ArchiveError`] if the file cannot be read, is damaged, or holds an inconsistent log.
pub fn verify(
    source: impl Read,
    inspector: &dyn StatementInspector,
    progress: &dyn Fn(u64),
) -> Result<ArchiveSummary, ArchiveError> {
    verify_wanting(source, inspector, None, progress)
}

/// Like [`verify`], and also returns the root of the committed head of one size in [`ArchiveSummary::wanted_root`].
///
/// # Errors
/// As [`verify`].
pub fn verify_wanting(
    source: impl Read,
    inspector: &dyn StatementInspector,
    size: Option<TreeSize>,
    progress: &dyn Fn(u64),
) -> Result<ArchiveSummary, ArchiveError> {
    let mut reader = ArchiveReader::new(source)?;
    let mut checker = Checker::new(inspector).wanting(size);
    while let Some(record) = reader.read()? {
        checker.accept(&record).map_err(|what| reader.contradicts(what))?;
        if let ArchiveRecord::Head(_) = record {
            progress(checker.counts().entries);
        }
    }
    checker.finish(reader.checksum()).map_err(|what| reader.contradicts(what))
}

/// The origin of the log in an archive, from its first record; nothing else is verified.
///
/// # Errors
/// [`ArchiveError`] if the file is not an archive, or its first record is damaged.
pub fn origin_of(source: impl Read) -> Result<String, ArchiveError> {
    let mut reader = ArchiveReader::new(source)?;
    match reader.read()? {
        Some(ArchiveRecord::Header(header)) => Ok(header.origin),
        _ => Err(reader.contradicts("its first record does not have the log's origin".into())),
    }
}
