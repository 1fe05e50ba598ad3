//! Every bound of this crate.

/// Default number of connections that read.
pub const READERS: u32 = 2;

/// Size in bytes above which the write-ahead log is copied into the database file.
pub const CHECKPOINT_BYTES: u64 = 16 << 20;

/// Size in bytes of the write-ahead log above which a commit waits for the checkpoint: the log shrinks only while
/// no commit writes.
pub const WAL_BYTES: u64 = 64 << 20;

/// Maximum number of rows that one statement inserts or changes. A power of two.
pub(crate) const ROWS: usize = 64;

/// Number of keys that one statement looks up.
pub(crate) const KEYS: usize = 256;

/// Number of prepared statements that a connection caches: those of each table in each power of two of rows.
pub(crate) const STATEMENTS: usize = 200;
