//! Limits on the objects of AgentROA.

use jose::json::Limits;

/// Limits on one object: an envelope or an attestation.
pub const OBJECT: Limits = Limits { bytes: 64 << 10, depth: 8 };
/// Limits on a chain as its caller presents it.
pub const CHAIN: Limits = Limits { bytes: 512 << 10, depth: 9 };
/// Limits on a registry.
pub const REGISTRY: Limits = Limits { bytes: 8 << 20, depth: 8 };
/// Maximum number of attestations in a chain.
pub const MAX_HOPS: usize = 32;
/// Maximum number of capabilities in a scope.
pub const MAX_CAPABILITIES: usize = 1024;
/// Maximum number of signatures of an object.
pub const MAX_SIGNATURES: usize = 16;
/// Maximum number of entries in each list of a registry.
pub const MAX_ENTRIES: usize = 65_536;
/// Maximum length in characters of names and references.
pub const MAX_NAME: usize = 512;
/// Maximum length in characters of the description of a task.
pub const MAX_TASK: usize = 4096;
/// Maximum number of models in the provenance of an envelope.
pub const MAX_MODELS: usize = 64;
