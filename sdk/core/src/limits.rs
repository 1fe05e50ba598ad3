//! Limits of requests.

/// Maximum size of a request in bytes: an evidence bundle of the maximum size in base64url, with room for the rest.
pub const MAX_REQUEST_BYTES: usize = browser_verifier::MAX_REQUEST_BYTES;
/// Maximum nesting of a request. VAP messages are texts in it, so their own nesting does not count.
pub const REQUEST_DEPTH: usize = 5;
