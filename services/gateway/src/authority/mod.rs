//! AgentROA at the gateway: whether a delegation chain authorizes a call (sections 5.3, 7.4 and 8.4; ).
//!
//! A chain is verified when its request is read, in that request's own task ([`PresentedChain`]). The decision
//! ([`AgentRoa::decide`]) runs in the transaction that decides the call, with the registry then in force and the
//! envelope's use so far, so that a revocation reaches calls that waited, and replicas share budgets. Its receipt
//! (AER) is committed with the decision.
//!
//! | module | content |
//! |---|---|
//! | `registry` | the registry: loaded, refreshed, and replaced by later versions only |
//! | `presented` | chain and proof of a request, verified under the registry at its arrival |
//! | `decision` | the decision about a call, and what it changes |
//! | `envelope_state` | the state of an envelope: its use, and the costs of tools |
//! | `receipt` | the signed execution receipt, and the chain that is registered with it |
//! | `steady_clock` | the clock, which does not run back |
//!
//! Not here: VerifyChain and Enforce (`roa`), and storage (`decision_writer`).

mod decision;
mod envelope_state;
mod presented;
mod receipt;
mod registry;
mod steady_clock;

use std::sync::Arc;

use roa::text::Text;
use roa::verify::TimeBounds;

pub use decision::{AuthorityCase, AuthorityDecision, ReservedUse, capability_of};
pub use envelope_state::{EnvelopeState, UsedEnvelope};
pub use presented::{ChainMaterial, PresentedChain, PresentedFor};
pub use receipt::{CallReceipt, ChainToRegister, ReceiptReference, ReceiptSigner};
pub use registry::{
    CurrentRegistry, PositionError, RegistryPositions, RegistryReadError, RegistryState, TimeSource,
};

pub use steady_clock::SteadyClock;

use presented::VerifiedChains;

/// The enforcement of AgentROA: the registry, the cache of verified chains, and the signer of receipts.
pub struct AgentRoa {
    registry: Arc<RegistryState>,
    verified: VerifiedChains,
    receipts: ReceiptSigner,
    bounds: TimeBounds,
    /// The gateway's name, for which proofs are made.
    audience: String,
}

impl AgentRoa {
    /// Creates the enforcement with a registry and a signer of receipts; `audience` is the gateway's name.
    #[must_use]
    pub fn new(registry: Arc<RegistryState>, receipts: ReceiptSigner, audience: &str) -> Self {
        Self {
            registry,
            verified: VerifiedChains::default(),
            receipts,
            bounds: TimeBounds::default(),
            audience: audience.to_owned(),
        }
    }

    /// Returns the registry.
    #[must_use]
    pub fn registry(&self) -> &Arc<RegistryState> {
        &self.registry
    }

    /// Returns the time of AgentROA's decisions.
    #[must_use]
    pub fn now(&self) -> jiff::Timestamp {
        self.registry.now()
    }

    /// Returns the name of the gateway's key in the registry.
    #[must_use]
    pub fn signer(&self) -> &Text {
        self.receipts.signer()
    }
}

impl std::fmt::Debug for AgentRoa {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("AgentRoa").field("audience", &self.audience).finish_non_exhaustive()
    }
}
