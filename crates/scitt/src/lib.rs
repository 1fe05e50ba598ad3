//! Signed Statements, Receipts and their keys: parsing and encoding.
//!
//! A [`SignedStatement`] keeps the bytes that were signed (RFC 9943, section 6); a [`Receipt`] proves that a statement
//! is in a log (RFC 9942); a [`Problem`] explains a refused request (RFC 9290). Start reading at `statement.rs`.
//!
//! Not here: which keys to trust (`registration`, `verifier`), how a log orders its entries (`sequencer`), and HTTP.
//!
//! ```rust
//! # fn main() -> Result<(), Box<dyn std::error::Error>> {
//! use scitt::{Algorithm, SignedStatement, Signer, SigningKey, StatementBuilder};
//!
//! let key = SigningKey::generate(Algorithm::EdDsa)?;
//! let builder = StatementBuilder::new("the payload").content_type("text/plain").kid("key-1");
//! let signed = builder.iss("https://issuer.example").sub("a subject").sign(&key)?;
//!
//! let received = SignedStatement::parse(signed.bytes().clone())?;
//! received.verify_with(key.public_key(), None)?;
//! assert_eq!(received.payload(), Some(&b"the payload"[..]));
//! # Ok(())
//! # }
//! ```

pub mod alg;
mod builder;
pub mod cbor;
mod frame;
pub mod header;
pub mod key;
pub mod key_set;
mod label;
pub mod limits;
mod malformed;
pub mod media;
pub mod problem;
pub mod receipt;
pub mod signer;
pub mod statement;
pub mod transparent;
pub mod x509;

pub use alg::{Algorithm, Curve};
pub use builder::{BuildError, StatementBuilder};
pub use header::{ContentType, HashEnvelope, Header, Incomplete, IssuerAndSubject, X5Chain};
pub use key::{CoseKey, KeyError, PublicKey, SignatureError};
pub use key_set::{KeySet, SkippedKey};
pub use label::Label;
pub use malformed::{Malformed, MalformedKind};
pub use problem::Problem;
pub use receipt::{Receipt, ReceiptError, ReceiptHeader, ReceiptRefused, SignedRoot, Structure};
pub use signer::{SignError, Signer, SigningKey};
pub use statement::SignedStatement;
