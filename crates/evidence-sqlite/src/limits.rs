//! Every bound of this crate, in one place.

use std::time::Duration;

/// How many connections read, unless the settings say otherwise.
pub const READERS: u32 = 2;

/// How long a statement waits for another connection's lock, or for a free connection.
pub const BUSY_TIMEOUT: Duration = Duration::from_secs(10);

/// The write-ahead log is copied into the database file once it is larger than this.
pub const CHECKPOINT_BYTES: u64 = 16 << 20;

/// And this large it may become before a commit waits for that: it shrinks only while nobody writes.
pub const WAL_BYTES: u64 = 64 << 20;

/// Rows that one statement inserts or changes, at most. A power of two.
pub(crate) const ROWS: usize = 64;

/// Keys that one statement looks up.
pub(crate) const KEYS: usize = 256;

/// Statements that a connection remembers: those of each table in each power of two of rows.
pub(crate) const STATEMENTS: usize = 200;
