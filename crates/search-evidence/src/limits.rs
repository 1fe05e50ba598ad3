//! Bounds on files from an untrusted source.

/// Maximum size in bytes of a file with an answer.
pub const MAX_ANSWER_BYTES: usize = 64 << 20;
/// Maximum nesting of the file.
pub(crate) const MAX_DEPTH: usize = 5;
/// Maximum number of CBOR items in the file, with those of the paths of erased entries.
pub(crate) const MAX_ITEMS: usize = 1 << 20;
