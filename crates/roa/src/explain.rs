//! Explanations of execution receipts: the decision made again from the chain and the registry, hop by hop, and compared
//! with what the receipt says.
//!
//! Some of a gateway's inputs are in none of these documents: who presented the chain, what was spent before, the
//! operator's classes of a tool, the manifest that was pinned. A decision for such a reason cannot be repeated, which is
//! not a contradiction.

use crate::aer::{ExecutionReceipt, Outcome, ReceiptSubject, RecordedDenial};
use crate::capability::Capability;
use crate::chain::Chain;
use crate::denial::{Denial, DenialReason, SPENT};
use crate::enforce::{RequestedCall, ToolClasses, enforce};
use crate::registry::{Presenter, Registry};
use crate::scope::Scope;
use crate::text::AgentId;
use crate::verify::{TimeBounds, is_ahead, verify_chain};

/// A decision that was made again.
#[derive(Clone, Debug, PartialEq)]
pub struct DecisionExplanation {
    /// The hops whose signatures, times and narrowing are in order, from the root. A hop at fault and those after it are
    /// not in the list.
    pub hops: Vec<ExplainedHop>,
    /// The decision.
    pub decided: Result<(), Denial>,
    /// Whether the receipt states another decision, on grounds that these documents can neither confirm nor refute.
    pub is_beyond_documents: bool,
    /// The statements of the receipt that the documents refute.
    pub contradictions: Vec<Contradiction>,
}

/// A hop that is in order.
#[derive(Clone, Debug, PartialEq)]
pub struct ExplainedHop {
    /// The agent that holds the scope.
    pub holder: AgentId,
    /// The signers, whose signatures verify with keys that the registry lists.
    pub signers: Vec<String>,
    /// The scope in effect.
    pub scope: Scope,
}

/// A statement of a receipt that the documents refute.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Contradiction {
    /// The JSON pointer of the member.
    pub member: &'static str,
    /// The receipt's value.
    pub stated: String,
    /// The value that follows from the documents.
    pub found: String,
}

/// Decides about the call of a receipt again, at the time of the receipt.
pub fn explain(
    receipt: &ExecutionReceipt,
    chain: &Chain,
    registry: &Registry,
    bounds: TimeBounds,
) -> DecisionExplanation {
    let is_listed = |capability: &Capability| is_in_known_manifest(registry, capability);
    let decided = decide(receipt, chain, registry, bounds, is_listed);
    let contradiction = other_outcome(&receipt.outcome, &decided);
    let is_beyond_documents = contradiction.is_some()
        && match receipt.outcome.denial() {
            Some(denial) => {
                let is_found_first = precedes_verification(denial.reason);
                let is_valid = || verify_chain(chain, registry, bounds, receipt.produced_at).is_ok();
                !is_decidable(denial) && (is_found_first || is_valid())
            }
            // The manifest that was pinned at the first use of the envelope may have had the tool.
            None => decide(receipt, chain, registry, bounds, |_| true).is_ok(),
        };
    let mut contradictions = other_subject(receipt, chain);
    contradictions.extend(other_version(receipt, registry, bounds));
    contradictions.extend(contradiction.filter(|_| !is_beyond_documents));
    let hops = hops_in_order(receipt, chain, registry, bounds, &decided);
    DecisionExplanation { hops, decided, is_beyond_documents, contradictions }
}

fn decide(
    receipt: &ExecutionReceipt,
    chain: &Chain,
    registry: &Registry,
    bounds: TimeBounds,
    is_pinned: impl Fn(&Capability) -> bool,
) -> Result<(), Denial> {
    let verified = verify_chain(chain, registry, bounds, receipt.produced_at)?;
    let not_a_tool = |_| {
        let detail = "the call names no tool";
        Denial::new(DenialReason::CapabilityNotInScope, "capability", detail)
    };
    let capability: Capability = receipt.action.capability().parse().map_err(not_a_tool)?;
    let call = RequestedCall {
        capability: &capability,
        is_pinned: is_pinned(&capability),
        presenter: Some(&Presenter::Proof(receipt.session.agent.clone())),
        tool: &ToolClasses::default(),
    };
    enforce(&verified, call, registry)
}

/// Returns whether a tool is in the manifest of its server. If the registry does not list the server, the gateway's own
/// manifest decided, which is not among the documents.
fn is_in_known_manifest(registry: &Registry, capability: &Capability) -> bool {
    let mut servers = registry.document().servers.iter();
    let is_listed = servers.any(|server| server.server_id.as_str() == capability.server());
    !is_listed || registry.is_in_manifest(capability)
}

/// Returns whether a gateway finds a fault before it verifies the chain: a registry that it cannot reach, and chains or
/// proofs that differ.
fn precedes_verification(reason: DenialReason) -> bool {
    matches!(reason, DenialReason::InvalidSignature | DenialReason::ChainIntegrityViolation)
}

/// Returns whether a denial has a reason that follows from chain, registry and time alone.
fn is_decidable(denial: &RecordedDenial) -> bool {
    let at_hop = denial.detail.as_ref().is_some_and(|detail| detail.hop.is_some());
    match denial.reason {
        DenialReason::ReplayDetected => false,
        // A wildcard is compared with the manifest that was pinned at the first use of the envelope.
        DenialReason::CapabilityNotInScope => false,
        DenialReason::BudgetExpansionDenied => at_hop && denial.code() != Some(SPENT),
        // Without a hop: a class of the tool, the presenter and its proof, two chains in one request, or a registry that could
        // not be reached.
        DenialReason::SloRelaxationDenied
        | DenialReason::ScopeExpansionViolation
        | DenialReason::InvalidSignature
        | DenialReason::AuthStrengthInsufficient
        | DenialReason::EnvelopeRevoked
        | DenialReason::ChainIntegrityViolation => at_hop,
        DenialReason::EnvelopeExpired
        | DenialReason::PolicyDigestMismatch
        | DenialReason::ApprovalRequired => true,
    }
}

/// Compares the chain with the one that the receipt names.
fn other_subject(receipt: &ExecutionReceipt, chain: &Chain) -> Vec<Contradiction> {
    let ReceiptSubject { session, policy, chain: found } = chain.into();
    let Some(stated) = &receipt.chain else {
        let member = "/chain_summary/root_envelope_id";
        let stated = "no usable root envelope".to_owned();
        return vec![Contradiction { member, stated, found: found.root.to_string() }];
    };
    let pairs = [
        ("/chain_summary/root_envelope_id", stated.root.to_string(), found.root.to_string()),
        ("/chain_summary/chain_depth", stated.depth.to_string(), found.depth.to_string()),
        ("/chain_summary/chain_digest", stated.digest.to_string(), found.digest.to_string()),
        ("/session/session_id", receipt.session.id.to_string(), session.id.to_string()),
        ("/session/agent_id", receipt.session.agent.to_string(), session.agent.to_string()),
        ("/policy/policy_id", receipt.policy.id.to_string(), policy.id.to_string()),
        ("/policy/policy_digest", receipt.policy.digest.to_string(), policy.digest.to_string()),
    ];
    let differ = pairs.into_iter().filter(|(_, stated, found)| stated != found);
    differ.map(|(member, stated, found)| Contradiction { member, stated, found }).collect()
}

/// Refutes a receipt with a version of the registry that did not exist yet. The clocks of gateway and operator may differ
/// by as much as those of gateway and authorizer.
fn other_version(
    receipt: &ExecutionReceipt,
    registry: &Registry,
    bounds: TimeBounds,
) -> Option<Contradiction> {
    let issued_at = registry.document().issued_at;
    is_ahead(issued_at, receipt.produced_at, bounds.clock_skew_seconds).then(|| Contradiction {
        member: "/produced_at",
        stated: receipt.produced_at.into(),
        found: format!("a registry of {}, after the decision", String::from(issued_at)),
    })
}

fn other_outcome(stated: &Outcome, decided: &Result<(), Denial>) -> Option<Contradiction> {
    let found = match decided {
        Ok(()) => "permit".to_owned(),
        Err(denial) => denial.to_string(),
    };
    let member = match (stated, decided) {
        (Outcome::Permit, Ok(())) => return None,
        (Outcome::Deny(stated), Err(denial)) => first_difference(stated, denial)?,
        _ => "/enforcement_outcome",
    };
    let stated = match stated {
        Outcome::Permit => "permit".to_owned(),
        Outcome::Deny(denial) => denial.to_string(),
    };
    Some(Contradiction { member, stated, found })
}

/// Returns the member of a recorded denial that differs. A code or a dimension of another gateway may be named otherwise.
fn first_difference(stated: &RecordedDenial, denial: &Denial) -> Option<&'static str> {
    let found = RecordedDenial::from(denial);
    let hop = |denial: &RecordedDenial| denial.detail.as_ref().and_then(|detail| detail.hop);
    let differ = [
        (stated.reason != found.reason, "/denial_reason"),
        (hop(stated).is_some() && hop(stated) != hop(&found), "/denial_detail/hop"),
        (stated.revocation.is_some() && stated.revocation != found.revocation, "/revocation"),
    ];
    differ.into_iter().find(|(differs, _)| *differs).map(|(_, member)| member)
}

/// Returns the hops before the one at fault.
fn hops_in_order(
    receipt: &ExecutionReceipt,
    chain: &Chain,
    registry: &Registry,
    bounds: TimeBounds,
    decided: &Result<(), Denial>,
) -> Vec<ExplainedHop> {
    let all = verify_chain(chain, registry, bounds, receipt.produced_at);
    let verified = match (all, decided) {
        (Ok(verified), _) => Some(verified),
        (Err(_), Err(Denial { hop: Some(hop), .. })) if *hop > 0 => {
            let before = Chain::new(chain.root().clone(), chain.hops()[..hop - 1].to_vec());
            verify_chain(&before, registry, bounds, receipt.produced_at).ok()
        }
        (Err(_), _) => None,
    };
    let scopes = verified.iter().flat_map(|verified| verified.scopes().to_vec());
    scopes.enumerate().map(|(hop, scope)| explained(chain, hop, scope)).collect()
}

fn explained(chain: &Chain, hop: usize, scope: Scope) -> ExplainedHop {
    let (holder, signatures) = match hop.checked_sub(1) {
        None => (chain.root().document().holder(), &chain.root().document().signatures),
        Some(before) => {
            let attestation = chain.hops()[before].document();
            (attestation.holder(), &attestation.signatures)
        }
    };
    ExplainedHop { holder: holder.clone(), signers: signatures.signers(), scope }
}
