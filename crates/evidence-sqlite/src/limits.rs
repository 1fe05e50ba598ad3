//! Every bound of this crate.

/// Default number of connections that read.
pub const READERS: u32 = 2;

/// Size in bytes above which the write-ahead log is copied into the database file.
pub const CHECKPOINT_BYTES: u64 = 16 << 20;

/// Size in bytes of the write-ahead log above which a commit waits for the checkpoint: the log shrinks only while
/// no commit writes.
pub const WAL_BYTES: u64 = 64 << 20;
