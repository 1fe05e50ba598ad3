//! Bounds on what one report holds.

/// Maximum number of groups in one breakdown of [`AgentStatistics`](crate::AgentStatistics).
pub const GROUPS: usize = 10_000;
/// Maximum number of unverified entries that [`AgentStatistics`](crate::AgentStatistics) names; all are counted.
pub const NAMED_UNVERIFIED: usize = 1_000;
/// Maximum number of verifiers in a [`VerifierQuorum`](crate::VerifierQuorum).
pub const QUORUM_VERIFIERS: usize = 64;
