//! Explanations: a receipt's decision is made again from the chain and the registry of its time.

use roa::aer::ExecutionReceipt;
use roa::chain::Chain;
use roa::denial::{Denial, DenialReason, RevocationPosition};
use roa::explain::{DecisionExplanation, explain};
use roa::registry::Registry;
use scitt::Signer;
use serde_json::json;

use crate::world::*;

fn permit(chain: &Chain) -> ExecutionReceipt {
    ExecutionReceipt::permit(decided_call("read"), &verify(chain).unwrap())
}

fn explained(receipt: &ExecutionReceipt, chain: &Chain, registry: &Registry) -> DecisionExplanation {
    explain(receipt, chain, registry, BOUNDS)
}

fn members(explanation: &DecisionExplanation) -> Vec<&'static str> {
    explanation.contradictions.iter().map(|contradiction| contradiction.member).collect()
}

/// A chain whose third object has a wider scope than the second.
fn wide() -> Chain {
    let narrow =
        delegate(&chain_of(0), |hop| hop["delegated_scope"]["capabilities"] = json!(["mcp:github.read"]));
    delegate(&narrow, |hop| hop["delegated_scope"]["capabilities"] = json!(["mcp:github.*"]))
}

#[test]
fn a_permit_is_explained_hop_by_hop() {
    let chain = chain_of(2);
    let explanation = explained(&permit(&chain), &chain, &registry());
    assert_eq!((members(&explanation), &explanation.decided), (vec![], &Ok(())));
    let holders: Vec<&str> = explanation.hops.iter().map(|hop| hop.holder.as_str()).collect();
    assert_eq!(holders, AGENTS[..3]);
    assert_eq!(explanation.hops[1].signers, [AGENTS[0]]);
    assert_eq!(explanation.hops.iter().map(|hop| hop.scope.depth).collect::<Vec<_>>(), [4, 3, 2]);
}

#[test]
fn a_denial_is_explained_up_to_the_hop_at_fault() {
    let chain = wide();
    let denial = verify(&chain).unwrap_err();
    let receipt = ExecutionReceipt::denial(decided_call("read"), &chain, &denial);
    let explanation = explained(&receipt, &chain, &registry());
    assert_eq!((members(&explanation), explanation.decided), (vec![], Err(denial)));
    assert_eq!(explanation.hops.len(), 2);
}

#[test]
fn a_permit_that_had_to_be_denied_is_a_contradiction() {
    let chain = chain_of(1);
    let receipt = permit(&chain);
    let revoked = registry_with(|registry| {
        registry["revocations"] = json!([{
            "sequence": 2, "revoked_at": "2026-04-08T14:04:00Z", "subject": { "envelope": "env:4a7c9f2b1e8d3a6f" },
        }]);
    });
    assert_eq!(members(&explained(&receipt, &chain, &revoked)), ["/enforcement_outcome"]);
}

#[test]
fn a_registry_issued_after_the_decision_is_a_contradiction_unless_clocks_may_differ_by_that() {
    let chain = chain_of(1);
    let issued_at = |time: &'static str| registry_with(|registry| registry["issued_at"] = time.into());
    let members_under = |time: &'static str| members(&explained(&permit(&chain), &chain, &issued_at(time)));
    assert_eq!(members_under("2026-04-08T14:06:00Z"), Vec::<&str>::new(), "{BOUNDS:?}");
    assert_eq!(members_under("2026-04-08T14:06:01Z"), ["/produced_at"], "{BOUNDS:?}");
}

#[test]
fn a_denial_for_another_reason_or_hop_is_a_contradiction() {
    let chain = wide();
    let other = Denial::new(DenialReason::EnvelopeExpired, "expired", "ended").at_hop(0);
    let receipt = ExecutionReceipt::denial(decided_call("read"), &chain, &other);
    assert_eq!(members(&explained(&receipt, &chain, &registry())), ["/denial_reason"]);
    let replayed = Denial::new(DenialReason::ReplayDetected, "replay", "not here");
    let receipt = ExecutionReceipt::denial(decided_call("read"), &chain, &replayed);
    let words = "a chain is verified before its use is looked up";
    assert_eq!(members(&explained(&receipt, &chain, &registry())), ["/denial_reason"], "{words}");
    let other_hop = Denial { hop: Some(1), ..verify(&chain).unwrap_err() };
    let receipt = ExecutionReceipt::denial(decided_call("read"), &chain, &other_hop);
    assert_eq!(members(&explained(&receipt, &chain, &registry())), ["/denial_detail/hop"]);
    let fine = chain_of(1);
    let receipt = ExecutionReceipt::denial(decided_call("read"), &fine, &other);
    assert_eq!(members(&explained(&receipt, &fine, &registry())), ["/enforcement_outcome"]);
}

#[test]
fn a_denial_that_rests_on_more_than_these_documents_is_not_refuted() {
    let chain = chain_of(1);
    for (reason, code) in [
        (DenialReason::ReplayDetected, "replay"),
        (DenialReason::BudgetExpansionDenied, "spent"),
        (DenialReason::AuthStrengthInsufficient, "presenter_mismatch"),
        (DenialReason::InvalidSignature, "registry_unavailable"),
    ] {
        let receipt =
            ExecutionReceipt::denial(decided_call("read"), &chain, &Denial::new(reason, code, "not here"));
        let explanation = explained(&receipt, &chain, &registry());
        assert_eq!((members(&explanation), explanation.is_beyond_documents), (vec![], true), "{code}");
    }
}

/// Asserts that a receipt rests on more than chain and registry, and is not refuted by them.
fn assert_beyond_documents(receipt: &ExecutionReceipt, chain: &Chain, registry: &Registry) {
    let explanation = explained(receipt, chain, registry);
    assert_eq!((members(&explanation), explanation.is_beyond_documents), (vec![], true), "{explanation:?}");
}

/// The receipt of a denial of a call of the tool `read`.
fn denied_by(chain: &Chain, denial: &Denial) -> ExecutionReceipt {
    ExecutionReceipt::denial(decided_call("read"), chain, denial)
}

#[test]
fn a_denial_for_a_revoked_key_of_a_proof_is_not_refuted_by_a_chain_without_it() {
    let chain = chain_of(1);
    let revoked = registry_with(|registry| {
        registry["revocations"] = json!([{
            "sequence": 2, "revoked_at": "2026-04-08T14:04:00Z",
            "subject": { "key": key(AGENTS[1]).public_key().jwk_thumbprint() },
        }]);
    });
    let denial = Denial::revoked(RevocationPosition { epoch: 1, sequence: 2 }, "the agent's key");
    assert_beyond_documents(&denied_by(&chain, &denial), &chain, &revoked);
    let at_hop = denied_by(&chain, &denial.at_hop(1));
    assert_eq!(members(&explained(&at_hop, &chain, &revoked)), ["/enforcement_outcome"]);
}

#[test]
fn a_denial_for_two_different_proofs_is_not_refuted_by_the_chain() {
    let chain = chain_of(1);
    let denial = Denial::malformed("the message and the header AgentROA-Proof have different proofs");
    assert_beyond_documents(&denied_by(&chain, &denial), &chain, &registry());
}

#[test]
fn a_permit_of_a_pinned_tool_is_not_refuted_by_a_manifest_that_lacks_it_now() {
    let chain = chain_of(1);
    let shorter = registry_with(|registry| registry["servers"][0]["tools"] = json!(["write"]));
    assert_beyond_documents(&permit(&chain), &chain, &shorter);
    let other =
        delegate(&chain_of(0), |hop| hop["delegated_scope"]["capabilities"] = json!(["mcp:files.read"]));
    assert_eq!(members(&explained(&permit(&other), &other, &shorter)), ["/enforcement_outcome"]);
}

#[test]
fn a_denial_without_a_current_registry_is_not_refuted_by_a_call_out_of_scope() {
    let chain =
        delegate(&chain_of(0), |hop| hop["delegated_scope"]["capabilities"] = json!(["mcp:files.read"]));
    let denial = Denial::new(DenialReason::InvalidSignature, "registry_unavailable", "no current registry");
    assert_beyond_documents(&denied_by(&chain, &denial), &chain, &registry());
}

#[test]
fn a_denial_for_a_spent_budget_is_not_refuted_though_it_names_the_hop() {
    let chain = chain_of(1);
    let denial = Denial::new(DenialReason::BudgetExpansionDenied, "spent", "spent").at_hop(0);
    assert_beyond_documents(&denied_by(&chain, &denial), &chain, &registry());
}

#[test]
fn a_receipt_of_another_chain_is_told_by_its_members() {
    let explanation = explained(&permit(&chain_of(1)), &chain_of(2), &registry());
    assert_eq!(
        members(&explanation),
        [
            "/chain_summary/chain_depth",
            "/chain_summary/chain_digest",
            "/session/agent_id",
            "/enforcement_outcome"
        ]
    );
    let rootless = ExecutionReceipt::denial_without_root(decided_call("read"), &Denial::no_envelope());
    assert_eq!(
        members(&explained(&rootless, &chain_of(0), &registry()))[0],
        "/chain_summary/root_envelope_id"
    );
}
