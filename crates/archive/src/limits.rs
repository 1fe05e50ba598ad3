//! All bounds of this crate, in one place.

/// Maximum size of a record: a statement and its collateral of maximum size, with a margin.
pub const RECORD_BYTES: usize = 64 << 20;
/// Maximum total size of the statements of one batch. The sequencer's batches are far smaller.
pub const BATCH_BYTES: usize = 256 << 20;
/// Maximum number of entries of one batch.
pub const BATCH_ENTRIES: usize = 1 << 20;
/// Maximum size of a text in a record: a rule, an origin, a case.
pub const TEXT_BYTES: usize = 1 << 20;
/// Maximum number of collateral items of one entry; see [`ArchiveRecord::Entry`](crate::ArchiveRecord::Entry).
pub const ITEMS: usize = 1 << 16;
/// Maximum number of keys of a log.
pub const KEYS: usize = 4096;
/// Maximum number of index rows in one [`ArchiveRecord::Seen`](crate::ArchiveRecord::Seen) or
/// [`ArchiveRecord::Guards`](crate::ArchiveRecord::Guards).
pub const ROWS: usize = 4096;
/// Number of entries read from a database in one query.
pub const PAGE_ENTRIES: usize = 16;
/// Number of heads, signatures and the like read from a database in one query.
pub const PAGE_ROWS: usize = 256;
/// Total size of statements after which [`fill`](fn@crate::fill) inserts batches into a database.
pub const FILL_BYTES: usize = 4 << 20;
/// Number of entries after which [`fill`](fn@crate::fill) inserts batches into a database.
pub const FILL_ENTRIES: usize = 4096;
/// Number of heads after which [`fill`](fn@crate::fill) inserts batches into a database.
pub const FILL_HEADS: usize = 1024;
/// Maximum number of extensions of an archive to a newer signed head because of concurrent erasures.
pub const ROUNDS: usize = 64;
