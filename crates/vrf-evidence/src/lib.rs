//! Verification receipts (VRF) as evidence for a relying party.
//!
//! [`VrfVerifier`] verifies a statement offline: every rule of the format, the verifier's signature and the receipt of
//! a trusted log. On the results work [`VerifierQuorum`] (N of M independent verifiers, section 8.1),
//! [`AgentStatistics`] (portable reputation, section 6.3) and [`VrfReference`] (receipts in other protocols,
//! section 6.4).
//!
//! Pure: no I/O, no clock. Not here: fetching statements, registration (`registration::vrf`), the order of chains.

mod evidence;
pub mod limits;
mod quorum;
mod reference;
mod statistics;

pub use evidence::{EvidenceFault, VrfEvidence, VrfVerifier};
pub use quorum::{
    QuorumReport, QuorumSyntaxError, SharedWork, UnlistedEvidence, VerifierQuorum, VerifierStanding,
};
pub use reference::{ReferenceForm, VrfReference};
pub use statistics::{AgentStatistics, SelfIssued, UnverifiedEntry, VerdictCounts};
