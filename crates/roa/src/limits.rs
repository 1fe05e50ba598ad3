//! Limits on the objects of AgentROA.

use jose::json::Limits;

/// Limits on one object: an envelope or an attestation.
pub const OBJECT: Limits = Limits { bytes: 64 << 10, depth: 8 };
/// Limits on a chain as its caller presents it.
pub const CHAIN: Limits = Limits { bytes: 512 << 10, depth: 9 };
/// Limits on the payload of a proof of possession.
pub const PROOF: Limits = Limits { bytes: 64 << 10, depth: 2 };
/// Maximum length in bytes of a proof of possession.
pub const MAX_PROOF_BYTES: usize = 96 << 10;
/// Limits on an execution receipt: none of its members is unbounded, and a well-formed one is nested 3 deep.
pub const AER: Limits = Limits { bytes: 64 << 10, depth: 8 };
/// Limits on a registry.
pub const REGISTRY: Limits = Limits { bytes: 8 << 20, depth: 8 };
/// Limits on a list of revocation deltas.
pub const DELTAS: Limits = Limits { bytes: 8 << 20, depth: 9 };
/// Maximum number of deltas in a list. A gateway that is further behind reads the whole registry.
pub const MAX_DELTAS: usize = 256;
/// Maximum number of attestations in a chain.
pub const MAX_HOPS: usize = 32;
/// Maximum number of capabilities in a scope.
pub const MAX_CAPABILITIES: usize = 1024;
/// Maximum number of signatures of an object.
pub const MAX_SIGNATURES: usize = 16;
/// Maximum number of entries in each list of a registry.
pub const MAX_ENTRIES: usize = 65_536;
/// Maximum number of ledgers whose spent amounts are kept for one root envelope: one for each object under it that declares
/// a budget and was called under.
pub const MAX_LEDGERS: usize = 4096;
/// Maximum length in characters of names.
pub const MAX_NAME: usize = 256;
/// Maximum length in characters of references, such as an address, or a device attestation.
pub const MAX_REFERENCE: usize = 8192;
/// Maximum length in characters of the description of a task.
pub const MAX_TASK: usize = 4096;
/// Maximum number of models in the provenance of an envelope.
pub const MAX_MODELS: usize = 64;
/// Maximum number of signatures of an execution receipt.
pub const MAX_AER_SIGNATURES: usize = 8;
/// Maximum length in characters of a denied tool's name in a receipt that we write. Readers have no limit.
pub const MAX_RECORDED_TOOL: usize = 1024;
/// The largest integer that JSON implementations represent exactly (RFC 8259, section 6).
pub const MAX_INTEGER: u64 = (1 << 53) - 1;
