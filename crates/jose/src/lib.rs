//! Unambiguous JSON, its canonical form, and public keys and signatures in it.
//!
//! * [`json`]: a strict parser on top of `serde_json`, which by itself accepts duplicate member names and keeps the
//!   last;
//! * [`members`]: a reader for the members of an object under the rules of a format, which [`rules!`] declares;
//! * [`code`]: texts that are codes of a record;
//! * [`jcs`]: the JSON Canonicalization Scheme, RFC 8785;
//! * [`number`]: detection of numbers that the canonical form would change, and equality of numbers;
//! * [`jwk`]: public keys as JSON Web Keys, RFC 7517, 7518 and 8037;
//! * [`jws`]: compact signatures in one strict profile, without the cryptographic verification.
//!
//! Not here: restrictions on numbers (each profile has its own rule and checks the parsed value), and cryptography.
//!
//! ```rust
//! # fn main() -> Result<(), Box<dyn std::error::Error>> {
//! use jose::{jcs, json};
//!
//! let twice = json::parse_strict(br#"{"a": 1, "a": 2}"#, json::Limits::default());
//! assert!(twice.is_err());
//! let value = json::parse_strict(br#"{ "b": 2, "a": 1 }"#, json::Limits::default())?;
//! assert_eq!(jcs::canonical(&value), br#"{"a":1,"b":2}"#);
//! # Ok(())
//! # }
//! ```

mod broken_rule;
pub mod code;
pub mod jcs;
pub mod json;
pub mod jwk;
pub mod jws;
pub mod members;
pub mod number;
mod rule;

pub use broken_rule::BrokenRule;
