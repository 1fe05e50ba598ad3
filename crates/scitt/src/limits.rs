//! Limits that the parsers of this crate enforce, in one place.
//!
//! They apply before a signature is verified, and so bound the cost that an unauthenticated sender can cause.

/// Maximum size of S, a statement without its unprotected header, in bytes. A service cannot raise this limit by configuration.
pub const STATEMENT_BYTES: usize = 8 << 20;

/// Room for receipts beside a statement of the largest size, in bytes: one receipt of the largest size, or hundreds of others.
pub const RECEIPTS_ROOM: usize = 2 * RECEIPT_BYTES;

/// Maximum size of a statement with its unprotected header, in bytes.
pub const TRANSPARENT_BYTES: usize = STATEMENT_BYTES + RECEIPTS_ROOM;

/// Maximum nesting of arrays, maps and tags in a header, the header's own map included.
pub const HEADER_DEPTH: usize = 16;

/// Maximum number of data items in a header. Each takes about 60 bytes once parsed.
pub const HEADER_ITEMS: usize = 1024;

/// Maximum length of `iss` in characters (RFC 9943, section 6).
pub const ISS_CHARACTERS: usize = 8192;

/// Maximum number of certificates in one `x5chain`.
pub const CERTIFICATES: usize = 16;

/// Maximum number of receipts attached to one statement.
pub const RECEIPTS: usize = 64;

/// Maximum size of a receipt in bytes. The limit is high, as other services put certificates into their receipts.
pub const RECEIPT_BYTES: usize = 256 << 10;

/// Maximum number of proofs of one type in a receipt.
pub const PROOFS: usize = 16;

/// Maximum number of hashes in a proof, enough for any tree of fewer than 2^64 leaves.
pub const PATH: usize = 64;

/// Maximum length of the evidence in a leaf of a CCF ledger, in bytes, as its profile defines it.
pub const EVIDENCE_BYTES: usize = 1024;

/// Maximum size of a concise problem details body in bytes.
pub const PROBLEM_BYTES: usize = 64 << 10;

/// Maximum nesting of arrays, maps and tags in problem details.
pub const PROBLEM_DEPTH: usize = 16;

/// Maximum number of data items in problem details.
pub const PROBLEM_ITEMS: usize = 1024;

/// Maximum size of one certificate of an `x5chain` in bytes.
pub const CERTIFICATE_BYTES: usize = 16 << 10;

/// Maximum number of points in time that [`verify_chain_at_any_time`](crate::x509::verify_chain_at_any_time) tries.
pub const PATH_ATTEMPTS: usize = 4;

/// Maximum number of predicates in one `did:x509`.
pub const DID_X509_PREDICATES: usize = 16;

/// Maximum size of a COSE_Key or a COSE_KeySet in bytes.
pub const KEY_SET_BYTES: usize = 256 << 10;

/// Maximum number of keys in one COSE_KeySet.
pub const KEY_SET_MEMBERS: usize = 1024;

/// Maximum number of data items in a COSE_KeySet; a key has about 13.
pub const KEY_SET_ITEMS: usize = 16 * KEY_SET_MEMBERS;

/// Maximum length of a DID that contains its key. The longest known `did:jwk` has about 260 characters.
pub const DID_BYTES: usize = 1024;
