//! Verdicts on statements whose payloads keep the rules of their type, or break one.
#![allow(clippy::unwrap_used)]

use content_rules::check_statement;
use registration::vrf::VrfStatement;
use scitt::{PublicKey, SignedStatement, Signer};
use serde_json::json;
use testkit::{aer, gateway, opaque, receipt, receipt_json, verifier, vrf};
use verifier::{
    Check, CheckName, CheckState, Code, StatementEvidence, StatementVerdict, TrustStore, VerificationOutcome,
    verify,
};

fn verdict(statement: &SignedStatement, payload: Option<&[u8]>, keys: &[PublicKey]) -> StatementVerdict {
    let evidence =
        StatementEvidence { statement: statement.bytes(), payload, ..StatementEvidence::default() };
    let mut verdict = verify(&evidence, &TrustStore::default(), 1_800_000_000);
    check_statement(&mut verdict, &evidence, keys);
    verdict
}

fn only(verdict: &StatementVerdict, name: CheckName) -> Option<(CheckState, Option<Code>)> {
    let mut checks = verdict.checks_named(name);
    let state = |check: &Check| (check.state, check.code);
    let found = checks.next().map(state);
    assert!(checks.next().is_none(), "{verdict:?}");
    found
}

#[test]
fn a_payload_that_keeps_the_rules_passes_and_a_type_without_rules_has_no_check() {
    assert_eq!(only(&verdict(&vrf(1), None, &[]), CheckName::ContentRules), Some((CheckState::Ok, None)));
    assert_eq!(only(&verdict(&opaque("s", &json!({})), None, &[]), CheckName::ContentRules), None);
}

#[test]
fn a_broken_rule_fails_the_verdict_and_is_named() {
    let mut broken = receipt_json(1);
    broken["tier"] = 7.into();
    let statement = VrfStatement::new(broken, testkit::AGENT).builder(&verifier()).sign(&verifier()).unwrap();
    let verdict = verdict(&statement, None, &[]);
    assert_eq!(
        (verdict.outcome, verdict.reason),
        (VerificationOutcome::Failed, Some(Code::ContentRuleBroken))
    );
    let check = verdict.checks_named(CheckName::ContentRules).next().unwrap();
    assert!(check.detail.starts_with("vrf-tier"), "{check:?}");
}

#[test]
fn content_that_was_not_shown_is_listed_and_changes_no_verdict() {
    let statement = receipt(1).redacted();
    let signed = statement.sign(&verifier()).unwrap();
    let unseen = verdict(&signed, None, &[]);
    let expected = Some((CheckState::NotDone, Some(Code::ContentMissing)));
    assert_eq!(only(&unseen, CheckName::ContentRules), expected);
    assert_eq!(unseen.outcome, VerificationOutcome::NotVerified);
    let seen = verdict(&signed, Some(&statement.byte_string()), &[]);
    assert_eq!(only(&seen, CheckName::ContentRules), Some((CheckState::Ok, None)));
}

#[test]
fn the_signatures_within_an_execution_receipt_are_those_of_the_gateways_keys() {
    let state = |keys: &[PublicKey]| only(&verdict(&aer(1), None, keys), CheckName::InnerSignatures);
    assert_eq!(state(&[]), Some((CheckState::NotDone, Some(Code::NoGatewayKey))));
    assert_eq!(state(&[gateway().public_key().clone()]), Some((CheckState::Ok, None)));
    let invalid = Some((CheckState::Failed, Some(Code::InnerSignatureInvalid)));
    assert_eq!(state(&[verifier().public_key().clone()]), invalid);
    assert_eq!(only(&verdict(&vrf(1), None, &[]), CheckName::InnerSignatures), None);
}
