//! Configured keys that may sign for agents.

use std::path::PathBuf;

use admission::signature::Holder;
use jiff::Timestamp;
use jose::jwk::PublicJwk;

/// Public keys that may sign for one agent (V-20), or approve amendments (V-19).
#[derive(Clone, Debug, PartialEq)]
pub struct AgentKeys {
    /// The agent or approver that holds the keys.
    pub holder: Holder,
    /// The public keys; a key without `kid` is named by its RFC 7638 thumbprint.
    pub keys: Vec<PublicJwk>,
    /// The file of the keys.
    pub file: PathBuf,
    /// Start of the period in which signatures are accepted.
    pub not_before: Option<Timestamp>,
    /// End of that period, exclusive.
    pub not_after: Option<Timestamp>,
}
