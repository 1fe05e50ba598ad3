//! Keys that speak for agents.

use std::path::PathBuf;

use admission::signature::Holder;
use jiff::Timestamp;
use jose::jwk::PublicJwk;

/// Keys that may sign for one agent (V-20), or approve amendments (V-19).
#[derive(Clone, Debug, PartialEq)]
pub struct AgentKeys {
    /// Whose they are.
    pub holder: Holder,
    /// Public keys; a key without `kid` is called by its RFC 7638 thumbprint.
    pub keys: Vec<PublicJwk>,
    /// Their file.
    pub file: PathBuf,
    /// Signatures count from here.
    pub not_before: Option<Timestamp>,
    /// And before this.
    pub not_after: Option<Timestamp>,
}
