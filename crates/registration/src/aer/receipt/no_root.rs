//! Receipts of calls without a usable root envelope.
//!
//! In the draft every member is required, but it does not cover requests without an envelope, or with an unreadable
//! one. Such a request is denied, and its receipt has placeholders for the missing values. Either all placeholders are
//! present or none, so that a placeholder cannot conceal a real session, agent or policy.

use super::{ChainSummary, Denial, Outcome, Receipt};
use crate::aer::rule::AerRule;
use crate::violation::Violation;

/// The placeholder for the session.
pub const NO_SESSION: &str = "none";
/// The placeholder for the agent.
pub const UNKNOWN_AGENT: &str = "aha:unknown/unknown/unknown";
/// The placeholder for the policy's name.
pub const NO_POLICY: &str = "none";
/// The placeholder for the policy's digest.
pub const NO_POLICY_DIGEST: &str = "sha256:0000000000000000000000000000000000000000000000000000000000000000";
/// The placeholder for the root envelope.
pub const NO_ROOT: &str = "env:0000000000000000";
/// The digest of the empty chain, `[]`.
pub const EMPTY_CHAIN: &str = "sha256:4f53cda18c2baa0c0354bb5f9a3ecbe5ed12ab4d8e11ba873c2f11161202b945";

/// The draft's reason for denying such a call.
const REASON: &str = "chain_integrity_violation";
/// Our codes for denying such a call; the first alone implies that there is no root.
const CODES: [&str; 2] = ["no_envelope", "malformed"];

/// Removes the chain from a receipt whose root is the placeholder. Rejects a receipt with only some of the
/// placeholders.
pub(super) fn settle(mut receipt: Receipt) -> Result<Receipt, Violation> {
    let Some(chain) = &receipt.chain else { return Ok(receipt) };
    if chain.root == NO_ROOT {
        complete(&receipt, chain)?;
        receipt.chain = None;
    } else {
        absent(&receipt, chain)?;
    }
    Ok(receipt)
}

/// Checks that a receipt without a root has all placeholders.
fn complete(receipt: &Receipt, chain: &ChainSummary) -> Result<(), Violation> {
    let denial = receipt.outcome.denial();
    let code = denial.and_then(|denial| denial.detail.as_ref()).map(|detail| detail.code.as_str());
    let keeps = [
        (denial.is_some(), "/enforcement_outcome", "deny"),
        (denial.is_some_and(is_integrity), "/denial_reason", REASON),
        (code.is_some_and(|code| CODES.contains(&code)), "/denial_detail/code", "no_envelope or malformed"),
        (receipt.session.id == NO_SESSION, "/session/session_id", NO_SESSION),
        (receipt.session.agent == UNKNOWN_AGENT, "/session/agent_id", UNKNOWN_AGENT),
        (receipt.policy.id == NO_POLICY, "/policy/policy_id", NO_POLICY),
        (receipt.policy.digest == NO_POLICY_DIGEST, "/policy/policy_digest", "zeros"),
        (chain.depth == 0, "/chain_summary/chain_depth", "0"),
        (chain.digest == EMPTY_CHAIN, "/chain_summary/chain_digest", "the digest of []"),
    ];
    match keeps.into_iter().find(|(keeps, ..)| !keeps) {
        None => Ok(()),
        Some((_, place, needed)) => {
            Err(AerRule::NoRoot.in_payload(place, format!("without a root, this is {needed}")))
        }
    }
}

fn is_integrity(denial: &Denial) -> bool {
    denial.reason == REASON
}

/// Checks that a receipt with a root has no placeholders.
fn absent(receipt: &Receipt, chain: &ChainSummary) -> Result<(), Violation> {
    let code = match &receipt.outcome {
        Outcome::Deny(Denial { detail: Some(detail), .. }) => detail.code.as_str(),
        _ => "",
    };
    let stated = [
        (code == CODES[0], "/denial_detail/code"),
        (receipt.session.id == NO_SESSION, "/session/session_id"),
        (receipt.session.agent == UNKNOWN_AGENT, "/session/agent_id"),
        (receipt.policy.id == NO_POLICY, "/policy/policy_id"),
        (receipt.policy.digest == NO_POLICY_DIGEST, "/policy/policy_digest"),
        (chain.digest == EMPTY_CHAIN, "/chain_summary/chain_digest"),
    ];
    match stated.into_iter().find(|(stated, _)| *stated) {
        None => Ok(()),
        Some((_, place)) => {
            let detail = format!("a placeholder, which stands only where root_envelope_id is {NO_ROOT}");
            Err(AerRule::NoRoot.in_payload(place, detail))
        }
    }
}
