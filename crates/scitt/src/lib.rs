//! Signed Statements, Receipts and their keys: bytes to types and back.
//!
//! A [`SignedStatement`] keeps the bytes that were signed (RFC 9943, section 6); a [`Receipt`] proves that one is
//! in a log (RFC 9942); a [`Problem`] says why it is not (RFC 9290). Start reading at `statement.rs`.
//!
//! Not here: whose keys to trust (`registration`, `verifier`), how a log orders its entries
//! (`sequencer`), or HTTP.

pub mod cbor;
pub mod limits;
