//! Shared fixtures of the unit tests.

use tlog::key::VerifierKey;
use url::Url;

use crate::config::Target;

/// A log with only the required configuration.
pub fn target() -> Target {
    let secret = ed25519_dalek::SigningKey::from_bytes(&[1; 32]);
    let vkey = VerifierKey::ed25519("log.example".parse().unwrap(), secret.verifying_key()).unwrap();
    Target::new("log", Url::parse("https://log.example/").unwrap(), vkey)
}

/// The log of [`target`] with a witness.
pub fn target_with_witness() -> Target {
    let secret = ed25519_dalek::SigningKey::from_bytes(&[2; 32]);
    let witness = VerifierKey::cosigner("w.example".parse().unwrap(), secret.verifying_key()).unwrap();
    Target { witnesses: vec![witness], ..target() }
}
