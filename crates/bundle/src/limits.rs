//! Bounds on a bundle from an untrusted source.

/// Maximum size of a bundle in bytes.
pub const MAX_BUNDLE_BYTES: usize = 64 << 20;
/// Maximum number of entries, without policies.
pub const MAX_ENTRIES: usize = 10_000;
/// Maximum number of policies.
pub const MAX_POLICIES: usize = 1_000;
/// Maximum number of selections.
pub const MAX_SELECTIONS: usize = 64;
/// Maximum number of hashes in an inclusion proof, that of a tree of 2^64 leaves.
pub const MAX_PATH: usize = 64;
/// Maximum nesting of the document.
pub(crate) const DEPTH: usize = 8;
