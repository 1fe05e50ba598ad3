//! Limits of search terms. All of them are part of the format: a reader with other values finds other terms.

/// Maximum number of search values of one entry.
pub const MAX_LOOKUPS: usize = lookup_tree::limits::MAX_TERMS;
/// Maximum length in bytes of a search value. A longer one is replaced by its beginning and its hash.
pub const MAX_LOOKUP_VALUE: usize = 512;
/// Maximum number of arrays, maps and tags that are open at once in a payload.
pub(crate) const PAYLOAD_DEPTH: usize = jose::json::MAX_DEPTH;
/// Maximum number of data items in a CBOR payload, keys included.
pub(crate) const CBOR_ITEMS: usize = 1 << 20;
/// The largest integer that every reader of JSON represents exactly (RFC 8259, section 6). A value with a number beyond
/// it has no digest.
pub(crate) const MAX_INTEGER: u64 = (1 << 53) - 1;
