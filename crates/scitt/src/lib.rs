//! Signed Statements, Receipts and their keys: bytes to types and back.

pub mod alg;
pub mod key;
pub mod signer;

pub use alg::{Algorithm, Curve};
pub use key::{KeyError, PublicKey, SignatureError};
pub use signer::{SignError, Signer, SigningKey};
