//! Media types that this crate reads and writes.

/// Any COSE message: SCRAPI's type for both statements and receipts.
pub const COSE: &str = "application/cose";
/// A Signed Statement (RFC 9943).
pub const STATEMENT: &str = "application/scitt-statement+cose";
/// A Receipt (RFC 9943).
pub const RECEIPT: &str = "application/scitt-receipt+cose";
/// Concise problem details (RFC 9290).
pub const PROBLEM: &str = "application/concise-problem-details+cbor";
/// Any CBOR; used for key sets.
pub const CBOR: &str = "application/cbor";
