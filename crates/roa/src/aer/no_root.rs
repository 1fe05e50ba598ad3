//! Receipts of calls without a usable root envelope.
//!
//! In the draft every member is required, but it does not cover requests without an envelope, or with an unreadable
//! one. Such a request is denied, and its receipt has placeholders for the missing values. Either all placeholders are
//! present or none, so that a placeholder cannot conceal a real session, agent or policy.

use jose::BrokenRule;
use jose::members::Rule;

use super::receipt::{ChainSummary, ExecutionReceipt};
use super::rule::AerRule;
use crate::denial::{DenialReason, MALFORMED, NO_ENVELOPE};
use crate::placeholder::{EMPTY_CHAIN, NO_POLICY, NO_POLICY_DIGEST, NO_ROOT, NO_SESSION, UNKNOWN_AGENT};

/// Our codes for denying such a call; the first alone implies that there is no root.
const CODES: [&str; 2] = [NO_ENVELOPE, MALFORMED];

/// Removes the chain from a receipt whose root is the placeholder.
///
/// # Errors
/// [`AerRule::NoRoot`] if a receipt has only some of the placeholders.
pub(super) fn settle(mut receipt: ExecutionReceipt) -> Result<ExecutionReceipt, BrokenRule> {
    let Some(chain) = &receipt.chain else { return Ok(receipt) };
    if chain.root.as_str() == NO_ROOT {
        complete(&receipt, chain)?;
        receipt.chain = None;
    } else {
        absent(&receipt, chain)?;
    }
    Ok(receipt)
}

/// Checks that a receipt without a root has all placeholders.
fn complete(receipt: &ExecutionReceipt, chain: &ChainSummary) -> Result<(), BrokenRule> {
    let denial = receipt.outcome.denial();
    let integrity = DenialReason::ChainIntegrityViolation;
    let code = denial.and_then(|denial| denial.code());
    let keeps = [
        (denial.is_some(), "/enforcement_outcome", "deny"),
        (denial.is_some_and(|denial| denial.reason == integrity), "/denial_reason", integrity.as_str()),
        (code.is_some_and(|code| CODES.contains(&code)), "/denial_detail/code", "no_envelope or malformed"),
        (receipt.session.id.as_str() == NO_SESSION, "/session/session_id", NO_SESSION),
        (receipt.session.agent.as_str() == UNKNOWN_AGENT, "/session/agent_id", UNKNOWN_AGENT),
        (receipt.policy.id.as_str() == NO_POLICY, "/policy/policy_id", NO_POLICY),
        (receipt.policy.digest == NO_POLICY_DIGEST, "/policy/policy_digest", "zeros"),
        (chain.depth == 0, "/chain_summary/chain_depth", "0"),
        (chain.digest == EMPTY_CHAIN, "/chain_summary/chain_digest", "the digest of []"),
    ];
    match keeps.into_iter().find(|(keeps, ..)| !keeps) {
        None => Ok(()),
        Some((_, place, needed)) => {
            Err(AerRule::NoRoot.broken(place.to_owned(), format!("without a root, this is {needed}")))
        }
    }
}

/// Checks that a receipt with a root has no placeholders.
fn absent(receipt: &ExecutionReceipt, chain: &ChainSummary) -> Result<(), BrokenRule> {
    let code = receipt.outcome.denial().and_then(|denial| denial.code());
    let stated = [
        (code == Some(NO_ENVELOPE), "/denial_detail/code"),
        (receipt.session.id.as_str() == NO_SESSION, "/session/session_id"),
        (receipt.session.agent.as_str() == UNKNOWN_AGENT, "/session/agent_id"),
        (receipt.policy.id.as_str() == NO_POLICY, "/policy/policy_id"),
        (receipt.policy.digest == NO_POLICY_DIGEST, "/policy/policy_digest"),
        (chain.digest == EMPTY_CHAIN, "/chain_summary/chain_digest"),
    ];
    match stated.into_iter().find(|(stated, _)| *stated) {
        None => Ok(()),
        Some((_, place)) => {
            let detail = format!("a placeholder, which stands only where root_envelope_id is {NO_ROOT}");
            Err(AerRule::NoRoot.broken(place.to_owned(), detail))
        }
    }
}
