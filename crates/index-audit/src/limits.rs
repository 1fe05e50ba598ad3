//! Bounds of this crate, in one place.

/// Maximum size in bytes of the file with the state: erased entries, runs and heads.
pub const MAX_STATE_BYTES: u64 = 64 << 20;
/// Maximum size in bytes of the file with the leaves of a piece: 64 hashes of the tree before it, and 4,096 leaves.
pub const MAX_LEAVES_BYTES: u64 = 32 * (64 + 4096) + 16;
/// Maximum number of remembered heads of one series. A second head of a size and horizon is compared with these.
pub const MAX_HEADS: usize = 64;
/// Maximum number of series whose heads are remembered.
pub const MAX_SERIES: usize = 64;
/// Number of postings that a merge takes from one of its inputs at once.
pub const MERGE_CHUNK: usize = 256;
/// Maximum number of postings of a differing part that a comparison with a proof returns.
pub const MAX_CANDIDATES: usize = 16;
