//! Signed Statements, Receipts and their keys: bytes to types and back.
//!
//! A [`SignedStatement`] keeps the bytes that were signed (RFC 9943, section 6); a [`Receipt`] proves that one is
//! in a log (RFC 9942); a [`Problem`] says why it is not (RFC 9290). Start reading at `statement.rs`.
//!
//! Not here: whose keys to trust (`registration`, `verifier`), how a log orders its entries
//! (`sequencer`), or HTTP.

pub mod alg;
pub mod cbor;
pub mod did;
pub mod key;
pub mod key_set;
pub mod limits;
pub mod signer;
pub mod x509;

pub use alg::{Algorithm, Curve};
pub use key::{CoseKey, KeyError, PublicKey, SignatureError};
pub use key_set::KeySet;
pub use signer::{SignError, Signer, SigningKey};
