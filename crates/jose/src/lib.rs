//! Unambiguous JSON, its canonical form, and public keys and signatures in it.
//!
//! * [`json`]: a strict parser on top of `serde_json`, which by itself accepts duplicate member names and keeps the
//!   last;
//! * [`jcs`]: the JSON Canonicalization Scheme, RFC 8785;
//! * [`number`]: detection of numbers that the canonical form would change, and equality of numbers;
//! * [`jwk`]: public keys as JSON Web Keys, RFC 7517, 7518 and 8037;
//! * [`jws`]: compact signatures in one strict profile, without the cryptographic verification.
//!
//! Not here: restrictions on numbers (each profile has its own rule and checks the parsed value), and cryptography.

pub mod jcs;
pub mod json;
pub mod jwk;
pub mod jws;
pub mod number;
