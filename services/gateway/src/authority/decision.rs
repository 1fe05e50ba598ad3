//! The decision about a call under its chain, in the transaction that decides the call.

use std::sync::Arc;

use admission::decide::Authority;
use admission::rules::{AuthorityDemand, Rules};
use admission::session::ShortHash;
use jiff::Timestamp;
use roa::aer::{Mode, ReceiptSubject};
use roa::capability::Capability;
use roa::denial::{Denial, DenialReason};
use roa::enforce::{RequestedCall, ToolClasses, enforce};
use roa::registry::Registry;
use roa::text::UtcTime;
use roa::usage::Spending;
use roa::verify::VerifiedChain;
use vap::reason::{Reason, RuleName};

use super::envelope_state::{CallToReserve, EnvelopeState, NotReserved, cost_unknown, tool_key};
use super::presented::{no_capability, not_ended, registry_unavailable};
use super::{AgentRoa, CurrentRegistry, PresentedChain};

/// The reason for degraded operation: the registry in force is older than its `ttl_seconds`.
const REGISTRY_STALE: &str = "registry_stale";

/// The inputs of a decision.
#[derive(Clone, Copy, Debug)]
pub struct AuthorityCase<'a> {
    /// The rules of the route.
    pub rules: &'a Rules,
    /// The registry; `None` without a current one.
    pub registry: Option<&'a CurrentRegistry>,
    /// The chain of the call.
    pub presented: &'a PresentedChain,
    /// The name of the tool, as the client sees it.
    pub tool: &'a str,
    /// The stored state of the root envelope; `None` at its first use.
    pub envelope: Option<&'a EnvelopeState>,
    /// `true` if the proof's `jti` was used before.
    pub is_proof_used: bool,
    /// `true` if the call repeats one that was counted, with the answer to a question of the upstream (V-38).
    pub is_counted: bool,
    /// The time since which the uses of envelopes are stored.
    pub stored_since: Timestamp,
    /// The time of the decision.
    pub now: Timestamp,
}

/// A decision of AgentROA.
#[derive(Clone, Debug)]
pub struct AuthorityDecision {
    /// The decision, as VAP's stages take it.
    pub authority: Authority,
    /// The denial; `None` for a permit.
    pub denial: Option<Denial>,
    /// The mode of operation.
    pub mode: Mode,
    /// The chain's part of the receipt; `None` without a readable root.
    pub subject: Option<ReceiptSubject>,
    /// The time of the decision.
    pub decided_at: Timestamp,
    /// The use of the envelope by the call; `None` for a denial.
    pub used: Option<ReservedUse>,
    /// `true` if there is no decision yet: another call of the tool under the envelope must be settled first.
    pub waits: bool,
}

/// The use of an envelope by a call that is not forwarded yet.
#[derive(Clone, Debug)]
pub struct ReservedUse {
    /// The state of the envelope after the reservation.
    pub envelope: EnvelopeState,
    /// The end of the state, in Unix seconds. It is later than that of the envelope, whose end another gateway's clock
    /// may not have reached.
    pub kept_until: i64,
    /// The reserved amounts.
    pub spending: Spending,
    /// The tool in the state of the envelope.
    pub tool: ShortHash,
}

impl AgentRoa {
    /// Decides about a call. The first failure is the denial.
    #[must_use]
    pub fn decide(&self, case: AuthorityCase<'_>) -> AuthorityDecision {
        let mode = mode(case);
        let permitted = self.permit(case, &mode);
        let subject = case.presented.chain.as_deref().ok().map(ReceiptSubject::from);
        let waits = matches!(permitted, Err(NotReserved::Waits))
            && case.rules.authority.demand == AuthorityDemand::Required;
        let (denial, used) = match permitted {
            Ok(used) => (None, Some(used)),
            Err(NotReserved::Denied(denial)) => (Some(denial), None),
            // Of an advisory route, which never lets a call wait.
            Err(NotReserved::Waits) => {
                (Some(cost_unknown("a call of the tool, whose cost is not known, is under way")), None)
            }
        };
        let authority = match (&denial, case.rules.authority.demand) {
            (_, AuthorityDemand::Off | AuthorityDemand::Advisory) => Authority::NotRequired,
            (None, AuthorityDemand::Required) => Authority::Permitted,
            (Some(denial), AuthorityDemand::Required) => Authority::Denied(reason(denial)),
        };
        AuthorityDecision { authority, denial, mode, subject, decided_at: case.now, used, waits }
    }

    fn permit(&self, case: AuthorityCase<'_>, mode: &Mode) -> Result<ReservedUse, NotReserved> {
        let AuthorityCase { rules, presented, tool, .. } = case;
        let chain = presented.chain.as_ref().map_err(Clone::clone)?;
        let current = case.registry.ok_or_else(registry_unavailable)?;
        let is_permitted_degraded =
            || current.is_usable(case.now) && rules.authority.permits_degraded(&rules.sensitivities, tool);
        if *mode != Mode::Normal && !is_permitted_degraded() {
            return Err(registry_unavailable().into());
        }
        let now = UtcTime(case.now);
        let verified = self.verified_now(presented, chain, &current.registry, now)?;
        let capability = capability_of(rules, tool).ok_or_else(no_capability)?;
        let presenter = presented.presenter.as_ref().map_err(Clone::clone)?.as_ref();
        if let Some(proof) = &presented.proof {
            proof.verify_again(&capability, &current.registry)?;
        }
        let mut envelope = match case.envelope {
            Some(envelope) => envelope.clone(),
            None => begin(&verified, &current.registry, case.stored_since)?,
        };
        envelope.used.check_envelope(&verified)?;
        let call = RequestedCall {
            capability: &capability,
            is_pinned: envelope.used.is_pinned(&capability),
            presenter,
            tool: &classes_of(rules, tool),
        };
        enforce(&verified, call, &current.registry)?;
        if case.is_proof_used {
            let detail = "the proof was presented before";
            return Err(Denial::new(DenialReason::ReplayDetected, "proof_used", detail).into());
        }
        if let Some(presenter) = presenter {
            envelope.used.bind(verified.holder(), presenter, &current.registry)?;
        }
        let (costs, tool) = (&rules.costs, tool_key(&capability));
        let call = CallToReserve { costs, name: case.tool, tool, is_counted: case.is_counted };
        let spending = envelope.reserve(&verified, call)?;
        let ends = envelope.used.expires_at().unix_seconds();
        let kept_until = ends.saturating_add(self.bounds.clock_skew_seconds);
        Ok(ReservedUse { envelope, kept_until, spending, tool })
    }

    /// Returns the chain as verified under the registry in force. Under another version than at its arrival, it is verified
    /// again, so that a revocation reaches a call that waited.
    fn verified_now(
        &self,
        presented: &PresentedChain,
        chain: &Arc<roa::chain::Chain>,
        registry: &Registry,
        now: UtcTime,
    ) -> Result<Arc<VerifiedChain>, Denial> {
        if presented.version != Some(registry.version()) {
            return self.verified(chain, registry, now);
        }
        let verified = presented.verified.clone()?;
        not_ended(&verified, now).map(|()| verified)
    }
}

fn mode(case: AuthorityCase<'_>) -> Mode {
    match case.registry {
        Some(registry) if !registry.is_current(case.now) => {
            Mode::Degraded { reason: REGISTRY_STALE.parse().ok() }
        }
        _ => Mode::Normal,
    }
}

/// Begins the use of an envelope. One that was issued before uses were stored may have been presented by others, so it
/// is denied.
fn begin(
    chain: &VerifiedChain,
    registry: &Registry,
    stored_since: Timestamp,
) -> Result<EnvelopeState, Denial> {
    match chain.root().issued_at.unix_seconds() >= stored_since.as_second() {
        true => Ok(EnvelopeState::begin(chain, registry)),
        false => {
            let detail = "the envelope was issued before this gateway stored the presenters of envelopes";
            Err(Denial::new(DenialReason::ReplayDetected, "no_replay_state", detail).at_hop(0))
        }
    }
}

/// Returns the capability of a tool, from the server's identifier and the server's own name of the tool.
#[must_use]
pub fn capability_of(rules: &Rules, tool: &str) -> Option<Capability> {
    let (server, tool) = rules.authority.servers.split(tool)?;
    Capability::new(server, tool).ok()
}

/// Returns the classes of a tool. Where several entries match it, the strictest class of each kind counts, as with costs.
fn classes_of(rules: &Rules, tool: &str) -> ToolClasses {
    let classes = || rules.authority.classes_of(tool);
    ToolClasses {
        price_class: classes().filter_map(|class| class.price).max(),
        slo_class: classes().filter_map(|class| class.slo).min(),
        classifications: classes().filter_map(|class| class.classification.clone()).collect(),
    }
}

fn reason(denial: &Denial) -> Reason {
    RuleName::new(denial.reason.as_str()).map_or(Reason::RoaNotEnforced, Reason::Roa)
}
