//! Enforce (section 7.4): from a verified chain to the decision about one call.
//!
//! Budgets are not here: they are the gateway's ledgers, one for each [`ChainLedger`](crate::verify::ChainLedger). Nor
//! is the memory of earlier presenters, which must be durable.

use crate::capability::Capability;
use crate::denial::{Denial, DenialReason, Dimension};
use crate::envelope::{ApprovalState, AuthStrength};
use crate::registry::{Presenter, Registry};
use crate::text::Text;
use crate::verify::VerifiedChain;

/// A call, as a gateway has it before the decision.
#[derive(Clone, Copy, Debug)]
pub struct RequestedCall<'a> {
    /// The requested tool.
    pub capability: &'a Capability,
    /// Whether the tool is in the manifest that was pinned when the envelope was first used.
    pub is_pinned: bool,
    /// The identity of the caller, if the transport proves one.
    pub presenter: Option<&'a Presenter>,
    /// The operator's classes of the tool.
    pub tool: &'a ToolClasses,
}

/// The operator's classes of a tool, which the scope is compared with.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct ToolClasses {
    /// The price class.
    pub price_class: Option<u32>,
    /// The class of service level that the tool provides.
    pub slo_class: Option<u32>,
    /// The classifications of the data that the tool accesses. One that the registry does not order is above every ceiling.
    pub classifications: Vec<String>,
}

/// Decides about a call under a verified chain. The first failure is the denial.
///
/// # Errors
/// [`Denial`] if the call is not permitted.
pub fn enforce(chain: &VerifiedChain, call: RequestedCall<'_>, registry: &Registry) -> Result<(), Denial> {
    authorize(chain, call.capability, call.is_pinned, registry)?;
    check_presenter(chain, call.presenter, registry)?;
    check_classes(chain, call.tool, registry)
}

/// Decides whether a chain authorizes its holder to call a tool: the part of [`enforce`] that needs no call.
///
/// # Errors
/// [`Denial`] if the tool is not in scope, the policy is not in force, or the approval is missing.
pub fn authorize(
    chain: &VerifiedChain,
    capability: &Capability,
    is_pinned: bool,
    registry: &Registry,
) -> Result<(), Denial> {
    check_capability(chain, capability, is_pinned)?;
    check_policy(chain, registry)?;
    check_approval(chain, registry)
}

fn check_capability(chain: &VerifiedChain, capability: &Capability, is_pinned: bool) -> Result<(), Denial> {
    // A receipt of a permit can name the tool only if it is a name.
    let has_name = capability.tool().parse::<Text>().is_ok();
    // A hop may name any tool of the wildcard that it was given, also one that the pinned manifest lacks.
    let mut scopes = chain.scopes().iter();
    match has_name && scopes.all(|scope| scope.capabilities.admit(capability, is_pinned)) {
        true => Ok(()),
        false => {
            let detail = format!("{capability} is not in the scope of {}", chain.holder());
            Err(Denial::new(DenialReason::CapabilityNotInScope, "capability", detail)
                .on(Dimension::Capabilities))
        }
    }
}

/// Checks that all hops have the policy of the root, and that it is in force (section 4.2; R-20).
fn check_policy(chain: &VerifiedChain, registry: &Registry) -> Result<(), Denial> {
    if let Some(hop) = chain.other_policy_at() {
        let detail = "the policy digest is not that of the root";
        return Err(Denial::new(DenialReason::PolicyDigestMismatch, "chain", detail).at_hop(hop));
    }
    let policy = &chain.root().policy;
    match registry.accepts_policy(&policy.policy_id, policy.policy_digest) {
        true => Ok(()),
        false => {
            let detail =
                format!("{} is not the digest in force of {}", policy.policy_digest, policy.policy_id);
            Err(Denial::new(DenialReason::PolicyDigestMismatch, "not_in_force", detail).at_hop(0))
        }
    }
}

/// Checks approval and strength of authentication.
fn check_approval(chain: &VerifiedChain, registry: &Registry) -> Result<(), Denial> {
    let required = &chain.root().authorization;
    let unapproved =
        |detail: &str| Err(Denial::new(DenialReason::ApprovalRequired, "approval", detail).at_hop(0));
    let weak =
        |code, detail: &str| Err(Denial::new(DenialReason::AuthStrengthInsufficient, code, detail).at_hop(0));
    let has_artifact = required.approval_artifact_ref.is_some();
    match required.approval_state {
        ApprovalState::Pending => return unapproved("the approval is pending"),
        ApprovalState::Granted if !has_artifact => {
            return unapproved("granted without a reference to the approval");
        }
        ApprovalState::NotRequired if required.auth_strength != AuthStrength::SessionOnly => {
            return unapproved("this strength of authentication needs a granted approval");
        }
        ApprovalState::Granted | ApprovalState::NotRequired => {}
    }
    match required.auth_strength {
        AuthStrength::SessionOnly => Ok(()),
        AuthStrength::DualControl if chain.authorizers() < 2 => {
            weak("dual_control", "dual control needs the signatures of two authorizers")
        }
        AuthStrength::DualControl => Ok(()),
        AuthStrength::DeviceBound | AuthStrength::DeviceBoundWithAttestation => {
            let session = &chain.root().session;
            let reference = session.device_attestation_ref.as_ref();
            match reference.is_some_and(|text| registry.has_device_attestation(&session.agent_id, text)) {
                true => Ok(()),
                false => weak("device_attestation", "no device attestation that the registry has verified"),
            }
        }
    }
}

/// Checks that the caller is the holder of the chain.
fn check_presenter(
    chain: &VerifiedChain,
    presenter: Option<&Presenter>,
    registry: &Registry,
) -> Result<(), Denial> {
    let deny = |code, detail: String| Err(Denial::new(DenialReason::AuthStrengthInsufficient, code, detail));
    match presenter {
        None => deny("presenter_missing", "the presenter of the chain is not proven".into()),
        Some(presenter) if registry.is_presenter(presenter, chain.holder()) => Ok(()),
        Some(_) => deny("presenter_mismatch", format!("the caller is not {}", chain.holder())),
    }
}

fn check_classes(chain: &VerifiedChain, tool: &ToolClasses, registry: &Registry) -> Result<(), Denial> {
    let scope = chain.scope();
    if let (Some(ceiling), Some(price)) = (scope.price_class, tool.price_class)
        && price > ceiling
    {
        let detail = format!("the tool has price class {price}, above {ceiling}");
        return Err(Denial::new(DenialReason::BudgetExpansionDenied, "price", detail).on(Dimension::Price));
    }
    if let (Some(floor), Some(slo)) = (scope.slo_class, tool.slo_class)
        && slo < floor
    {
        let detail = format!("the tool has SLO class {slo}, below {floor}");
        return Err(Denial::new(DenialReason::SloRelaxationDenied, "slo", detail).on(Dimension::Slo));
    }
    let Some(ceiling) = &scope.classification else { return Ok(()) };
    let rank = |label: &str| registry.classifications().rank(label);
    let is_within = |label: &str| rank(label).is_some_and(|label| Some(label) <= rank(ceiling.as_str()));
    match tool.classifications.iter().find(|label| !is_within(label)) {
        None => Ok(()),
        Some(label) => {
            let detail = format!("the tool accesses data classified {label}, above {ceiling}");
            Err(Denial::new(DenialReason::ScopeExpansionViolation, "classification", detail)
                .on(Dimension::Classification))
        }
    }
}
