//! Shared fixtures of the unit tests.

use tlog::key::VerifierKey;
use url::Url;

use crate::config::WatchedLog;

/// A log with only the required configuration.
pub fn target() -> WatchedLog {
    let secret = ed25519_dalek::SigningKey::from_bytes(&[1; 32]);
    let vkey = VerifierKey::ed25519("log.example".parse().unwrap(), secret.verifying_key()).unwrap();
    WatchedLog::new("log", Url::parse("https://log.example/").unwrap(), vkey)
}

/// The log of [`target`] with a witness.
pub fn target_with_witness() -> WatchedLog {
    let secret = ed25519_dalek::SigningKey::from_bytes(&[2; 32]);
    let witness = VerifierKey::cosigner("w.example".parse().unwrap(), secret.verifying_key()).unwrap();
    WatchedLog { witnesses: vec![witness], ..target() }
}
