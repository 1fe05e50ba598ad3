//! Every bound the parsers of this crate enforce, in one place.
//!
//! They hold before a signature is checked, so they are what an unauthenticated sender can cost us.

/// A statement larger than this is refused whatever the service is configured to take.
pub const STATEMENT_BYTES: usize = 8 << 20;

/// Arrays, maps and tags nested in a header, the header's own map included.
pub const HEADER_DEPTH: usize = 16;

/// Data items in one header. Each costs some 60 bytes once parsed.
pub const HEADER_ITEMS: usize = 1024;

/// Length of `iss` in characters (RFC 9943, section 6).
pub const ISS_CHARACTERS: usize = 8192;

/// Certificates in one x5chain.
pub const CERTIFICATES: usize = 16;

/// Receipts attached to one statement.
pub const RECEIPTS: usize = 64;

/// A receipt: generous, as other services put certificates into theirs.
pub const RECEIPT_BYTES: usize = 256 << 10;

/// Proofs in one receipt.
pub const PROOFS: usize = 16;

/// Hashes in one proof: no tree of fewer than 2^64 leaves needs more.
pub const PATH: usize = 64;

/// The evidence in a leaf of a CCF ledger, in bytes (its profile says so).
pub const EVIDENCE_BYTES: usize = 1024;

/// A concise problem details body.
pub const PROBLEM_BYTES: usize = 64 << 10;

/// Arrays, maps and tags nested in one.
pub const PROBLEM_DEPTH: usize = 16;

/// Data items in one.
pub const PROBLEM_ITEMS: usize = 1024;

/// One certificate of an x5chain, in bytes.
pub const CERTIFICATE_BYTES: usize = 16 << 10;

/// Times at which a certificate path is tried when none is given.
pub const PATH_ATTEMPTS: usize = 4;

/// Predicates in one did:x509.
pub const DID_X509_PREDICATES: usize = 16;

/// A COSE_Key or a whole COSE_KeySet, in bytes.
pub const KEY_SET_BYTES: usize = 256 << 10;

/// Keys in one COSE_KeySet.
pub const KEY_SET_MEMBERS: usize = 1024;

/// Data items in one: some 13 a key.
pub const KEY_SET_ITEMS: usize = 16 * KEY_SET_MEMBERS;

/// Length of a DID that contains its key (the longest JWK we know has some 260 characters).
pub const DID_BYTES: usize = 1024;
