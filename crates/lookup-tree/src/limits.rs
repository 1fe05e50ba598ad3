//! Limits of the index. Those of the tree and of the schedule are part of the format: a reader with other values computes
//! other roots.

/// Maximum number of postings in a bucket. A subtree with more of them is an inner node.
pub const MAX_BUCKET_POSTINGS: usize = 16;
/// Length in leaves of a run of level 0.
pub const LEVEL_0_LEAVES: u64 = 4096;
/// Number of adjacent runs of one level that merge into a run of the next level.
pub const MERGED_RUNS: u64 = 8;
/// Highest level of a run: a longer run would not fit into 64 bits.
pub const MAX_LEVEL: u8 = 17;
/// Level that a head gives for the tail.
pub const TAIL_LEVEL: u8 = 255;
/// Maximum number of keys of one entry. An entry with more of them gets [`BlindCode::TooManyTerms`](crate::BlindCode).
pub const MAX_TERMS: usize = 4096;

/// Maximum length in bytes of a stored block. Four of them fit into a page of PostgreSQL with its row headers.
pub const MAX_BLOCK_BYTES: usize = 7_600;
/// Minimum number of postings below an inner node for which [`RunBuilder`](crate::RunBuilder) returns the node for
/// storage. Smaller subtrees are hashed anew from a block or two.
pub const MIN_STORED_NODE_POSTINGS: u64 = 513;

/// Maximum number of runs in a head; the schedule gives at most nine of each level.
pub const MAX_HEAD_RUNS: usize = 192;
/// Maximum length in bytes of an encoded head.
pub const MAX_HEAD_BYTES: usize = 16 << 10;

/// Maximum number of intervals in one question, with those of the blind codes.
pub const MAX_INTERVALS: usize = 1_024;
/// Maximum length in bytes of an encoded run proof. A posting in it can be a single byte, and has 24 once it is read.
pub const MAX_RUN_PROOF_BYTES: usize = 2 << 20;
/// Maximum nesting of a run proof: an inner node for each bit of a posting, and a bucket.
pub const MAX_RUN_PROOF_DEPTH: usize = 193;
/// Maximum number of CBOR items in a run proof.
pub const MAX_RUN_PROOF_ITEMS: usize = 1 << 20;
