//! Explanations: a receipt's decision is made again from the chain and the registry of its time.

use roa::aer::ExecutionReceipt;
use roa::chain::Chain;
use roa::denial::{Denial, DenialReason};
use roa::explain::{DecisionExplanation, explain};
use roa::registry::Registry;
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
    let later = registry_with(|registry| registry["issued_at"] = "2026-04-08T14:06:00Z".into());
    assert_eq!(members(&explained(&receipt, &chain, &later)), ["/produced_at"]);
}

#[test]
fn a_denial_for_another_reason_or_hop_is_a_contradiction() {
    let chain = wide();
    let other = Denial::new(DenialReason::EnvelopeExpired, "expired", "ended").at_hop(0);
    let receipt = ExecutionReceipt::denial(decided_call("read"), &chain, &other);
    assert_eq!(members(&explained(&receipt, &chain, &registry())), ["/denial_reason"]);
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
