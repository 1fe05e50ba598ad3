//! Bounds of the database.

/// Size in bytes to which the write-ahead log is cut after a checkpoint.
pub const WAL_BYTES: u64 = 16 << 20;
/// Number of pages in the write-ahead log from which on a commit copies them into the database file.
pub const CHECKPOINT_PAGES: &str = "1000";
/// Maximum number of jobs with statements, and of failed jobs, that one transaction of `prune` removes.
pub const PRUNED_AT_ONCE: i64 = 1_000;
