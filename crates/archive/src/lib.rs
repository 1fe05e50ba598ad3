//! A whole log in one file: written from its database, checked by itself, filled into another one.
//!
//! The file begins with a line that names the format, goes on with framed records in one fixed
//! order (`record`), and ends with a record that says what is in it and the SHA-256 of all that
//! stands before. Everything a database cannot derive is there: entries with what came beside them,
//! every committed head with its signatures and cosignatures, keys, holds, reports, what leads to
//! an entry, and what waits in the inbox. Tiles are not: they follow from the entries. Nor is the
//! look-up index, which the service reads again, or what issuers have used of their quotas.
//!
//! Whoever reads it believes nothing ([`Checker`]): digests are computed from the statements, and
//! the root at every committed head from the digests; signatures are checked by the caller's
//! [`Meaning`]. Writing goes through the same checks, so a file that is there is one that verifies.
//! Memory does not grow with the log, but for 40 bytes for each erased entry.
//!
//! The checksum is no signature. Who made the log is said by the signatures over its heads: compare
//! the keys in the [`Summary`] with those you know.
//!
//! Not here: what statements and signatures mean, which keys are right, and the pin (the caller);
//! whether each guard is the one that its statement claims (`store::fsck`, once it is filled).

mod check;
mod create;
mod file;
mod fill;
mod frame;
pub mod limits;
mod record;
mod summary;

use std::io::Read;

use merkle::TreeSize;

pub use check::{Checker, Meaning, Says};
pub use create::{WriteError, write};
pub use file::Aside;
pub use fill::{FillError, Filled, fill, finish};
pub use frame::{Reader, Unreadable};
pub use record::{Purpose, Record};
pub use summary::{Counts, Summary};

/// Checks a whole file, and answers what is in it.
///
/// # Errors
/// If it cannot be read, is damaged, or holds a log that contradicts itself.
pub fn verify(
    source: impl Read,
    meaning: &dyn Meaning,
    progress: &dyn Fn(u64),
) -> Result<Summary, Unreadable> {
    verify_wanting(source, meaning, None, progress)
}

/// The same, and answers the root of the committed head of one size besides.
///
/// # Errors
/// As [`verify`].
pub fn verify_wanting(
    source: impl Read,
    meaning: &dyn Meaning,
    size: Option<TreeSize>,
    progress: &dyn Fn(u64),
) -> Result<Summary, Unreadable> {
    let mut reader = Reader::new(source)?;
    let mut checker = Checker::new(meaning).wanting(size);
    while let Some(record) = reader.read()? {
        checker.accept(&record).map_err(|what| reader.contradicts(what))?;
        if let Record::Head(_) = record {
            progress(checker.counts().entries);
        }
    }
    checker.finish(reader.checksum()).map_err(|what| reader.contradicts(what))
}

/// Which log a file says it holds, from its first record.
///
/// # Errors
/// If it is not an archive, or its first record is damaged.
pub fn origin_of(source: impl Read) -> Result<String, Unreadable> {
    let mut reader = Reader::new(source)?;
    match reader.read()? {
        Some(Record::Opening { origin, .. }) => Ok(origin),
        _ => Err(reader.contradicts("it does not begin with its log's name".into())),
    }
}
