//! Every bound of this crate, in one place.

/// Bytes of one record: a statement and its collateral at their largest, and room.
pub const RECORD_BYTES: usize = 64 << 20;
/// Statement bytes of one batch. The sequencer's batches are far smaller.
pub const BATCH_BYTES: usize = 256 << 20;
/// Entries of one batch.
pub const BATCH_ENTRIES: usize = 1 << 20;
/// Bytes of a text in a record: a rule, an origin, a case.
pub const TEXT_BYTES: usize = 1 << 20;
/// What is kept of one kind beside an entry or a head, at most.
pub const ITEMS: usize = 1 << 16;
/// Keys of a log.
pub const KEYS: usize = 4096;
/// Rows of one record that lead to entries.
pub const ROWS: usize = 4096;
/// Entries that are read from a database at once.
pub const PAGE_ENTRIES: usize = 16;
/// Heads, signatures and the like that are read from a database at once.
pub const PAGE_ROWS: usize = 256;
/// Statement bytes after which history is written to a database.
pub const FILL_BYTES: usize = 4 << 20;
/// Entries after which history is written to a database.
pub const FILL_ENTRIES: usize = 4096;
/// Heads after which history is written to a database.
pub const FILL_HEADS: usize = 1024;
/// How often a backup goes on to the newest signed head because an entry was erased meanwhile.
pub const ROUNDS: usize = 64;
