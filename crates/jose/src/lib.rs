//! JSON that two readers cannot read differently, its canonical form, and public keys in it.
//!
//! * [`json`]: a strict reader in front of `serde_json`, which by itself lets the last of two
//!   members with one name win;
//! * [`jcs`]: the JSON Canonicalization Scheme, RFC 8785;
//! * [`number`]: numbers that the canonical form would change, and which are the same;
//! * [`jwk`]: public keys as JSON Web Keys, RFC 7517, 7518 and 8037;
//! * [`jws`]: compact signatures in one strict profile, up to the key.
//!
//! Not here: what a number may be (each profile has its own rule and checks the value it gets),
//! and cryptography.

pub mod jcs;
pub mod json;
pub mod jwk;
pub mod jws;
pub mod number;
