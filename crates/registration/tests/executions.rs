//! Execution receipts apart from their rules: how they are made, checked without a policy, and found again.

#![allow(clippy::unwrap_used)]

use registration::aer::{AerRecord, AerStatement, BuildAerError, VerifyingKeys, inner_signature};
use registration::{Answers, GuardKind, LookupKind, Permit, Record, SearchValues, SideData, entry_facts};
use roa::signed::SigningError;
use scitt::header::{ContentType, HashEnvelope};
use scitt::{PublicKey, SignedStatement, Signer, StatementBuilder};
use serde_json::{Value, json};
use sha2::{Digest, Sha256, Sha384, Sha512};
use testkit::{
    GATEWAY, KID, aer, aer_json, aer_statement, denied_aer_json, ed25519, es256, gateway, policy_in_force,
    rootless_aer_json,
};

fn admitted(statement: &SignedStatement) -> (Record, Permit) {
    let policy = policy_in_force();
    let authenticated = policy.authenticate(statement, SideData::default()).unwrap();
    let record = Record::read(&authenticated).unwrap();
    let permit = policy.decide(&authenticated, &record, &Answers::none()).into_permit().unwrap();
    (record, permit)
}

fn signed(receipt: Value) -> SignedStatement {
    aer_statement(receipt).sign(&gateway()).unwrap()
}

fn found_under(statement: &SignedStatement, kind: LookupKind) -> Vec<String> {
    let (record, _) = admitted(statement);
    let lookups = SearchValues::of_record(statement.header(), &record, statement.payload()).lookups;
    lookups.into_iter().filter(|lookup| lookup.kind == kind).map(|lookup| lookup.value).collect()
}

fn verify(
    statement: &SignedStatement,
    beside: Option<&[u8]>,
    gateway: &[PublicKey],
    issuer: &PublicKey,
) -> Result<AerRecord, String> {
    let keys = VerifyingKeys { gateway, issuer };
    AerRecord::verify(statement, beside, keys).map_err(|violation| violation.rule.as_str().to_owned())
}

#[test]
fn an_entry_is_found_by_receipt_session_agent_tool_decision_and_input() {
    let statement = aer(7);
    for (kind, value) in [
        (LookupKind::AerId, "aer:0000aaaa00000007"),
        (LookupKind::Session, "sess:8b3d0e7f2a1c9b4e"),
        (LookupKind::Agent, "aha:acme/engineering/coder-7"),
        (LookupKind::Tool, "get_pull_request"),
        (LookupKind::Verdict, "permit"),
        (LookupKind::Issuer, GATEWAY),
        (LookupKind::ContentType, "application/aer+json"),
    ] {
        assert_eq!(found_under(&statement, kind), [value], "{kind:?}");
    }
    let input = aer_json(7)["action"]["input_hash"].as_str().unwrap().to_owned();
    assert!(found_under(&statement, LookupKind::Digest).contains(&input));
}

#[test]
fn placeholders_are_nobody_s_session_and_agent() {
    let statement = signed(rootless_aer_json(1));
    assert!(found_under(&statement, LookupKind::Session).is_empty());
    assert!(found_under(&statement, LookupKind::Agent).is_empty());
    assert_eq!(found_under(&statement, LookupKind::Verdict), ["deny"]);
}

#[test]
fn an_entry_says_what_was_decided_and_whose_word_the_rest_is() {
    let mut receipt = denied_aer_json(1, "envelope_revoked");
    receipt["plan_hash"] = json!(format!("sha256:{}", "4b".repeat(32)));
    let statement = signed(receipt.clone());
    let (record, permit) = admitted(&statement);
    let facts: Value = entry_facts(&statement, permit.facts()).into();
    assert_eq!(
        (&facts["decision"], &facts["denial_reason"], &facts["capability"], &facts["enforcement_mode"]),
        (&json!("deny"), &json!("envelope_revoked"), &json!("mcp:github.get_pull_request"), &json!("normal"))
    );
    assert_eq!(facts["plan_hash_asserted"], receipt["plan_hash"], "nobody else can check it");
    assert_eq!(facts["plan_hash"], Value::Null);
    assert_eq!(record.document()["denial_reason"], receipt["denial_reason"], "expressions see the receipt");
}

#[test]
fn a_redacted_receipt_is_found_by_its_aer_id_or_its_session_and_says_nothing_else() {
    let statement = aer_statement(aer_json(1)).redacted().sign(&gateway()).unwrap();
    assert_eq!(found_under(&statement, LookupKind::AerId), ["aer:0000aaaa00000001"]);
    for kind in [LookupKind::Tool, LookupKind::Session] {
        assert!(found_under(&statement, kind).is_empty());
    }
    let facts: Value = entry_facts(&statement, admitted(&statement).1.facts()).into();
    assert_eq!((&facts["aer_id"], &facts["decision"]), (&json!("aer:0000aaaa00000001"), &Value::Null));
    let of_session = aer_statement(aer_json(1)).about_session().redacted().sign(&gateway()).unwrap();
    assert!(found_under(&of_session, LookupKind::AerId).is_empty());
    assert_eq!(found_under(&of_session, LookupKind::Session), ["sess:8b3d0e7f2a1c9b4e"]);
}

#[test]
fn an_aer_id_is_guarded_per_gateway() {
    let guards = |n: u64| admitted(&aer(n)).1.guards().to_vec();
    assert_eq!(guards(1)[0].kind(), GuardKind::AerId);
    assert_eq!(guards(1), guards(1));
    assert_ne!(guards(1), guards(2));
    let denied = admitted(&signed(denied_aer_json(1, "replay_detected"))).1;
    assert_eq!(denied.guards(), guards(1), "permit and deny of one aer_id cannot both stand");
}

#[test]
fn a_receipt_is_verified_without_a_policy_by_the_keys_that_are_given() {
    let key = gateway().public_key().clone();
    let stranger = ed25519([7; 32]).public_key().clone();
    let statement = aer(1);
    assert!(verify(&statement, None, std::slice::from_ref(&key), &key).is_ok());
    assert!(verify(&statement, None, &[stranger.clone(), key.clone()], &key).is_ok(), "any of them");
    assert_eq!(verify(&statement, None, std::slice::from_ref(&stranger), &key).unwrap_err(), "aer-signature");
    assert_eq!(verify(&statement, None, std::slice::from_ref(&key), &stranger).unwrap_err(), "signature");
    assert_eq!(verify(&statement, None, &[], &key).unwrap_err(), "aer-signer");
    let other = testkit::opaque("x", &json!({}));
    assert_eq!(verify(&other, None, std::slice::from_ref(&key), &key).unwrap_err(), "profile");
}

#[test]
fn a_redacted_receipt_is_verified_with_what_is_disclosed() {
    let key = gateway().public_key().clone();
    let check = |disclosed: Option<&[u8]>| {
        let statement = aer_statement(aer_json(1)).redacted().sign(&gateway()).unwrap();
        verify(&statement, disclosed, std::slice::from_ref(&key), &key)
    };
    let receipt = |n: u64| aer_statement(aer_json(n)).receipt(&gateway()).unwrap();
    assert_eq!(check(Some(&receipt(1))).unwrap().receipt().aer_id.as_str(), "aer:0000aaaa00000001");
    assert_eq!(check(Some(&receipt(2))).unwrap_err(), "payload-digest-mismatch");
    assert_eq!(check(None).unwrap_err(), "payload-missing");
}

#[test]
fn a_receipt_is_disclosed_under_every_hash_that_a_log_admits() {
    let key = gateway().public_key().clone();
    let receipt = aer_statement(aer_json(1)).receipt(&gateway()).unwrap();
    for (algorithm, digest) in [
        (-16, Sha256::digest(&receipt).to_vec()),
        (-43, Sha384::digest(&receipt).to_vec()),
        (-44, Sha512::digest(&receipt).to_vec()),
    ] {
        let statement = redacted(algorithm, &digest);
        assert!(verify(&statement, Some(&receipt), std::slice::from_ref(&key), &key).is_ok(), "{algorithm}");
        assert_eq!(verify(&statement, Some(b"{}"), &[], &key).unwrap_err(), "payload-digest-mismatch");
    }
    let weak = redacted(-14, &[0; 20]);
    assert_eq!(verify(&weak, Some(&receipt), &[], &key).unwrap_err(), "hash-envelope-algorithm");
}

fn redacted_builder(algorithm: i64, digest: &[u8]) -> StatementBuilder {
    let preimage_content_type = Some(ContentType::Text("application/aer+json".to_owned()));
    StatementBuilder::new(digest)
        .hash_envelope(&HashEnvelope { algorithm, preimage_content_type, location: None })
        .kid(KID)
        .iss(GATEWAY)
        .sub("aer:0000aaaa00000001")
}

fn redacted(algorithm: i64, digest: &[u8]) -> SignedStatement {
    redacted_builder(algorithm, digest).sign(&gateway()).unwrap()
}

#[test]
fn what_is_beside_a_statement_is_what_is_in_it() {
    let key = gateway().public_key().clone();
    let receipt = |n: u64| aer_statement(aer_json(n)).receipt(&gateway()).unwrap();
    let check = |statement: &SignedStatement, beside: &[u8]| {
        verify(statement, Some(beside), std::slice::from_ref(&key), &key)
    };
    assert!(check(&aer(1), &receipt(1)).is_ok());
    assert_eq!(check(&aer(1), &receipt(2)).unwrap_err(), "payload-digest-mismatch");
    let without_hash =
        redacted_builder(-16, &Sha256::digest(receipt(1))).detached().sign(&gateway()).unwrap();
    assert_eq!(check(&without_hash, &receipt(1)).unwrap_err(), "payload-missing");
}

#[test]
fn two_keys_sign_one_statement() {
    let statement = AerStatement::new(aer_json(1)).sign_with(&gateway(), &es256()).unwrap();
    let (inner, outer) = (gateway().public_key().clone(), es256().public_key().clone());
    assert_eq!(statement.header().claims().unwrap().iss(), Some(outer.did_key().as_str()));
    assert!(verify(&statement, None, &[inner], &outer).is_ok());
}

#[test]
fn signatures_that_a_receipt_came_with_are_left_alone() {
    let mut receipt = aer_json(1);
    let signature = inner_signature(&receipt, &ed25519([7; 32])).unwrap();
    receipt["signatures"] = json!([signature]);
    let canonical = aer_statement(receipt.clone()).receipt(&gateway()).unwrap();
    assert_eq!(canonical, jose::jcs::canonical(&receipt));
}

#[test]
fn a_gateway_with_several_keys_names_the_one_that_signs() {
    let receipt = aer_statement(aer_json(1)).signer("hsm-2").receipt(&gateway()).unwrap();
    let receipt: Value = serde_json::from_slice(&receipt).unwrap();
    assert_eq!(receipt["signatures"][0]["signer"], "hsm-2");
}

#[test]
fn nothing_is_signed_that_breaks_a_rule_or_by_a_key_of_another_kind() {
    let refused = |receipt: Value| aer_statement(receipt).sign(&gateway()).unwrap_err();
    let mut mistaken = aer_json(1);
    mistaken["action"]["mcp_tool_name"] = json!("delete_repository");
    assert!(
        matches!(refused(mistaken), BuildAerError::Violates(violation) if violation.rule.as_str() == "aer-capability-agrees")
    );
    assert!(matches!(refused(json!([])), BuildAerError::Violates(_)));
    assert!(matches!(
        aer_statement(aer_json(1)).sign(&es256()),
        Err(BuildAerError::Sign(SigningError::Curve(_)))
    ));
}
