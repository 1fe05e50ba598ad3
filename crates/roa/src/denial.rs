//! Denials of AgentROA: one reason of the draft's list, with the hop, the dimension and a code of our own beside it
//! (section 6.1; ).

use std::fmt;

/// A reason for a denial (section 6.1).
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum DenialReason {
    /// A signature does not verify, or its key has another role.
    InvalidSignature,
    /// The root envelope has ended.
    EnvelopeExpired,
    /// The envelope, an attestation or a signing key is revoked.
    EnvelopeRevoked,
    /// Another presenter has presented the envelope before.
    ReplayDetected,
    /// The chain is malformed or its parts do not belong together.
    ChainIntegrityViolation,
    /// A hop declares more than it was given.
    ScopeExpansionViolation,
    /// A hop declares a larger budget than it was given, or the budget is spent.
    BudgetExpansionDenied,
    /// A hop declares a lower service level than it was given.
    SloRelaxationDenied,
    /// The requested capability is not in the scope.
    CapabilityNotInScope,
    /// The policy of the chain is not the one in force.
    PolicyDigestMismatch,
    /// The required approval is missing.
    ApprovalRequired,
    /// The caller's authentication is weaker than required.
    AuthStrengthInsufficient,
}

impl DenialReason {
    /// All reasons in the order of the draft.
    pub const ALL: [DenialReason; 12] = [
        DenialReason::InvalidSignature,
        DenialReason::EnvelopeExpired,
        DenialReason::EnvelopeRevoked,
        DenialReason::ReplayDetected,
        DenialReason::ChainIntegrityViolation,
        DenialReason::ScopeExpansionViolation,
        DenialReason::BudgetExpansionDenied,
        DenialReason::SloRelaxationDenied,
        DenialReason::CapabilityNotInScope,
        DenialReason::PolicyDigestMismatch,
        DenialReason::ApprovalRequired,
        DenialReason::AuthStrengthInsufficient,
    ];

    /// Returns the value of `denial_reason` in a receipt.
    pub const fn as_str(self) -> &'static str {
        match self {
            DenialReason::InvalidSignature => "invalid_signature",
            DenialReason::EnvelopeExpired => "envelope_expired",
            DenialReason::EnvelopeRevoked => "envelope_revoked",
            DenialReason::ReplayDetected => "replay_detected",
            DenialReason::ChainIntegrityViolation => "chain_integrity_violation",
            DenialReason::ScopeExpansionViolation => "scope_expansion_violation",
            DenialReason::BudgetExpansionDenied => "budget_expansion_denied",
            DenialReason::SloRelaxationDenied => "slo_relaxation_denied",
            DenialReason::CapabilityNotInScope => "capability_not_in_scope",
            DenialReason::PolicyDigestMismatch => "policy_digest_mismatch",
            DenialReason::ApprovalRequired => "approval_required",
            DenialReason::AuthStrengthInsufficient => "auth_strength_insufficient",
        }
    }
}

/// A dimension of a scope.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Dimension {
    /// The capabilities.
    Capabilities,
    /// The budget and its unit.
    Budget,
    /// The price class.
    Price,
    /// The class of service level.
    Slo,
    /// The classification of data.
    Classification,
    /// The number of further delegations.
    Depth,
    /// The organisation of the agents.
    Organization,
}

impl Dimension {
    /// Returns the value of `dimension` in the detail of a denial.
    pub const fn as_str(self) -> &'static str {
        match self {
            Dimension::Capabilities => "capabilities",
            Dimension::Budget => "budget",
            Dimension::Price => "price",
            Dimension::Slo => "slo",
            Dimension::Classification => "classification",
            Dimension::Depth => "depth",
            Dimension::Organization => "organization",
        }
    }
}

/// The position of a revocation in the registry's sequence (section 8.4.1).
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct RevocationPosition {
    /// The epoch of the sequence.
    pub epoch: u64,
    /// The number within the epoch.
    pub sequence: u64,
}

/// The code of a denial of a call without an envelope.
pub const NO_ENVELOPE: &str = "no_envelope";
/// The code of a denial of a call whose chain cannot be read.
pub const MALFORMED: &str = "malformed";
/// The code of a denial of a call that costs more than a budget has left.
pub const SPENT: &str = "spent";

/// The denial of a call.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Denial {
    /// The reason.
    pub reason: DenialReason,
    /// Our code, which is more precise than the reason.
    pub code: &'static str,
    /// The hop at fault: 0 for the root envelope, `n` for the n-th attestation.
    pub hop: Option<usize>,
    /// The dimension at fault.
    pub dimension: Option<Dimension>,
    /// The revocation, if the reason is [`DenialReason::EnvelopeRevoked`].
    pub revocation: Option<RevocationPosition>,
    /// A sentence for people, which may quote the chain.
    pub detail: String,
}

impl Denial {
    /// Creates a denial that is not the fault of one hop.
    pub fn new(reason: DenialReason, code: &'static str, detail: impl Into<String>) -> Denial {
        Denial { reason, code, hop: None, dimension: None, revocation: None, detail: detail.into() }
    }

    /// Creates the denial of a call without an envelope.
    pub fn no_envelope() -> Denial {
        let detail = "the call has no envelope";
        Denial::new(DenialReason::ChainIntegrityViolation, NO_ENVELOPE, detail)
    }

    /// Creates the denial of a call whose chain cannot be read.
    pub fn malformed(detail: impl Into<String>) -> Denial {
        Denial::new(DenialReason::ChainIntegrityViolation, MALFORMED, detail)
    }

    /// Creates the denial of a call under something that is revoked.
    pub fn revoked(position: RevocationPosition, subject: &str) -> Denial {
        let detail = format!("{subject} was revoked at {}.{}", position.epoch, position.sequence);
        let denial = Denial::new(DenialReason::EnvelopeRevoked, "revoked", detail);
        Denial { revocation: Some(position), ..denial }
    }

    /// Names the hop at fault.
    pub fn at_hop(self, hop: usize) -> Denial {
        Denial { hop: Some(hop), ..self }
    }

    /// Names the dimension at fault.
    pub fn on(self, dimension: Dimension) -> Denial {
        Denial { dimension: Some(dimension), ..self }
    }
}

impl fmt::Display for Denial {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} ({})", self.reason.as_str(), self.code)?;
        if let Some(hop) = self.hop {
            write!(f, " at hop {hop}")?;
        }
        if let Some(dimension) = self.dimension {
            write!(f, ", {}", dimension.as_str())?;
        }
        write!(f, ": {}", self.detail)
    }
}
