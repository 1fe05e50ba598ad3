//! Keys that speak for agents.

use std::path::PathBuf;

use jiff::Timestamp;
use jose::jwk::PublicJwk;

/// Keys that may sign for one agent (V-20), or approve its amendments (V-19).
#[derive(Clone, Debug, PartialEq)]
pub struct AgentKeys {
    /// The agent, exactly; of an approver a pattern of agents.
    pub agent_id: String,
    /// Public keys; a key without `kid` is called by its RFC 7638 thumbprint.
    pub keys: Vec<PublicJwk>,
    /// Their file.
    pub file: PathBuf,
    /// Signatures count from here.
    pub not_before: Option<Timestamp>,
    /// And up to here.
    pub not_after: Option<Timestamp>,
}
