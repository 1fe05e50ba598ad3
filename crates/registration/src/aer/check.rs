//! Decision about execution receipts under a policy.

use std::borrow::Cow;

use jose::members::quote;
use roa::aer::{ExecutionReceipt, Mode};
use scitt::{Curve, PublicKey};

use super::options::{AerOptions, GatewayKey};
use super::redacted::AerRedacted;
use super::{AerRecord, AerRule, in_header, in_payload};
use crate::agentroa::unknown_gateway;
use crate::authenticated::Authenticated;
use crate::demands::PermitDemands;
use crate::guard::{Guard, GuardKind};
use crate::limits::CLOCK_SKEW;
use crate::time_window::{Bound, TimeWindow};
use crate::violation::{Place, RuleName, Violation};

/// Checks an execution receipt against the policy's options, and returns its demands.
pub(super) fn check(
    options: &AerOptions,
    statement: &Authenticated<'_>,
    record: &AerRecord,
) -> Result<PermitDemands, Violation> {
    let receipt = record.receipt();
    let keys = keys_of(options, statement.iss(), receipt.gateway.id.as_str())?;
    let named = |signer: &str| {
        keys.iter().filter(|key| key.signer == signer).map(|key| &key.key).collect::<Vec<&PublicKey>>()
    };
    record.signed().verify(named)?;
    check_mode(options, receipt)?;
    // A receipt's time is not before 1970.
    let produced_at = u64::try_from(receipt.produced_at.unix_seconds()).unwrap_or_default();
    let not_ahead = Bound {
        rule: RuleName::fixed(AerRule::ProducedAtFuture.name()),
        place: Place::payload("/produced_at"),
        window: TimeWindow::from(produced_at.saturating_sub(CLOCK_SKEW)),
    };
    let guards = vec![id_guard(statement.iss(), receipt.aer_id.as_str())];
    Ok(PermitDemands { bounds: vec![not_ahead], guards, ..PermitDemands::default() })
}

/// Checks the policy's options for decisions in degraded operation.
fn check_mode(options: &AerOptions, receipt: &ExecutionReceipt) -> Result<(), Violation> {
    let permits = receipt.outcome.denial().is_none();
    if permits && receipt.mode != Mode::Normal && !options.allow_degraded {
        let detail = "the policy takes permits given in normal operation only";
        return Err(in_payload(AerRule::Degraded, "/enforcement_mode", detail));
    }
    if receipt.mode.lacks_reason() && options.require_degraded_reason {
        let detail = "the policy takes degraded decisions only with their reason";
        return Err(in_payload(AerRule::DegradedReason, "/degraded_reason", detail));
    }
    Ok(())
}

/// Checks a receipt registered by its hash: its gateway can be checked, its contents cannot.
pub(super) fn check_redacted(
    options: &AerOptions,
    statement: &Authenticated<'_>,
    redacted: &AerRedacted,
) -> Result<PermitDemands, Violation> {
    let iss = statement.iss();
    if !is_gateway(options, iss) {
        return Err(unknown(iss));
    }
    let guard = |aer_id: &String| id_guard(iss, aer_id).at_place(Place::protected("15/2"));
    Ok(PermitDemands::guards(redacted.aer_id.as_ref().map(guard)))
}

/// Checks a delegation chain that receipts name: a gateway registers it, and nothing in it depends on the policy.
pub(super) fn check_chain(
    options: &AerOptions,
    statement: &Authenticated<'_>,
) -> Result<PermitDemands, Violation> {
    match is_gateway(options, statement.iss()) {
        true => Ok(PermitDemands::default()),
        false => Err(unknown_gateway(statement.iss())),
    }
}

/// Returns whether an issuer is a gateway, under any identifier.
fn is_gateway(options: &AerOptions, iss: &str) -> bool {
    let is_listed = options.gateways.iter().any(|gateway| gateway.iss == iss);
    is_listed || (options.did_key_gateways && did_key(iss).is_some())
}

/// The guard of an `aer_id`, which a gateway uses once.
fn id_guard(iss: &str, aer_id: &str) -> Guard {
    Guard::new(GuardKind::AerId, &[iss.as_bytes(), aer_id.as_bytes()])
}

/// Returns the keys of the instance `id` of the gateway `iss`.
fn keys_of<'o>(options: &'o AerOptions, iss: &str, id: &str) -> Result<Cow<'o, [GatewayKey]>, Violation> {
    let mut listed = options.gateways.iter().filter(|gateway| gateway.iss == iss).peekable();
    let own = did_key(iss).filter(|_| options.did_key_gateways);
    if listed.peek().is_none() && own.is_none() {
        return Err(unknown(iss));
    }
    if let Some(gateway) = listed.find(|gateway| gateway.id == id) {
        return Ok(Cow::Borrowed(&gateway.keys));
    }
    match own {
        Some(key) if id == iss => Ok(Cow::Owned(vec![GatewayKey { signer: iss.to_owned(), key }])),
        _ => {
            let detail = format!("the policy lists no instance {} of the gateway {}", quote(id), quote(iss));
            Err(in_payload(AerRule::GatewayAgrees, "/border_gateway/gateway_id", detail))
        }
    }
}

fn did_key(iss: &str) -> Option<PublicKey> {
    PublicKey::from_did_key(iss).ok().filter(|key| key.curve() == Curve::Ed25519)
}

fn unknown(iss: &str) -> Violation {
    in_header(AerRule::Gateway, "15/1", format!("the policy lists no gateway {}", quote(iss)))
}
