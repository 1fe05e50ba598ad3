//! What holds, and what is merely not known.

use super::*;
use scitt::HashEnvelope;
use scitt::key::KeyEnd;
use sha2::{Digest, Sha256};

#[test]
fn a_transparent_statement_of_known_issuer_and_log_is_verified() {
    for algorithm in Algorithm::ALL {
        let world = World::with(algorithm, |builder| builder);
        let verdict = world.verify();
        assert_verified(&verdict);
        assert_eq!(verdict.statement.as_ref().unwrap().iss.as_deref(), Some(ISS));
        let receipt = &verdict.receipts[0];
        assert_eq!(receipt.position.unwrap().to_string(), "leaf 4 of 9");
        assert_eq!((receipt.log.as_deref(), receipt.iat), (Some(ORIGIN), Some(1_794_999_940)));
    }
}

#[test]
fn receipts_of_every_algorithm_are_verified() {
    for algorithm in Algorithm::ALL {
        let mut world = World::new();
        world.log.key = key(algorithm);
        world.trust.logs = vec![world.log.trusted()];
        world.receipt = world.log.receipt(&world.statement);
        assert_verified(&world.verify());
    }
}

#[test]
fn a_receipt_beside_the_statement_is_as_good_as_one_attached_and_counts_once() {
    let world = World::new();
    let receipts = [world.receipt.as_slice()];
    assert_verified(&world.verify_bytes(world.statement.bytes(), &receipts));
    let both = world.verify_bytes(&world.transparent(), &receipts);
    assert_verified(&both);
    assert_eq!(both.receipts.len(), 1);
}

#[test]
fn checks_that_were_not_done_are_listed() {
    let verdict = World::new().verify();
    assert_eq!(state(&verdict, CheckName::Witnesses), Some(CheckState::NotDone));
    let verdict = World::new().verify_bytes(b"", &[]);
    assert_failed(&verdict, Code::MalformedStatement);
    for name in [CheckName::IssuerSignature, CheckName::Inclusion, CheckName::ReceiptSignature] {
        assert_eq!(state(&verdict, name), Some(CheckState::NotDone));
    }
}

#[test]
fn without_a_receipt_nothing_is_verified() {
    let world = World::new();
    let verdict = world.verify_bytes(world.statement.bytes(), &[]);
    assert_not_verified(&verdict, Code::NoReceipt);
    assert_eq!(state(&verdict, CheckName::IssuerSignature), Some(CheckState::Ok));
}

#[test]
fn without_trust_anchors_nothing_is_verified() {
    let mut world = World::new();
    world.trust = TrustStore::default();
    assert_not_verified(&world.verify(), Code::NoTrustAnchors);
}

#[test]
fn a_receipt_of_an_unknown_log_proves_nothing() {
    let mut world = World::new();
    world.trust.logs[0].iss = Some("https://another.example".into());
    assert_not_verified(&world.verify(), Code::UnknownLog);
    world.trust.logs.clear();
    assert_not_verified(&world.verify(), Code::UnknownLog);
}

#[test]
fn a_receipt_of_an_unknown_log_beside_a_good_one_does_no_harm() {
    let world = World::new();
    let other = Log { iss: "https://other.example", ..Log::new() };
    let receipts = [other.receipt(&world.statement)];
    let verdict = world.verify_bytes(&world.transparent(), &[&receipts[0]]);
    assert_verified(&verdict);
    assert_eq!(verdict.receipts.iter().map(|facts| facts.verified).collect::<Vec<_>>(), [true, false]);
}

#[test]
fn a_receipt_under_an_unknown_key_of_a_known_log_is_not_called_forged() {
    let mut world = World::new();
    world.log.key = key(Algorithm::Es256);
    world.receipt = world.log.receipt(&world.statement);
    assert_not_verified(&world.verify(), Code::UnknownLogKey);
}

#[test]
fn a_key_counts_for_trees_below_its_end_and_for_none_from_there_on() {
    let mut world = World::new();
    for (retired, compromised, expected) in [
        (Some(10), None, None),
        (Some(9), None, Some(Code::LogKeyRetired)),
        (Some(10), Some(9), Some(Code::LogKeyCompromised)),
        (Some(8), Some(10), Some(Code::LogKeyRetired)),
        (Some(11), Some(10), None),
    ] {
        world.trust.logs[0].keys[0].end =
            KeyEnd { retired_at: Some(1), retired_size: retired, compromised_size: compromised };
        match expected {
            Some(code) => assert_failed(&world.verify(), code),
            None => assert_verified(&world.verify()),
        }
    }
}

#[test]
fn a_statement_of_an_unknown_issuer_is_verified_only_where_that_is_left_to_the_log() {
    let mut world = World::new();
    world.trust.issuers.clear();
    assert_not_verified(&world.verify(), Code::UnknownIssuer);
    world.trust.issuer_signature = IssuerSignature::LeftToLog;
    assert_verified(&world.verify());
    let verdict = world.verify_payload(Some(PAYLOAD));
    assert_verified(&verdict);
    assert_failed(&world.verify_payload(Some(b"other")), Code::PayloadDigestMismatch);
}

#[test]
fn a_known_issuer_must_sign_even_where_that_is_left_to_the_log() {
    let mut world = World::new();
    world.trust.issuer_signature = IssuerSignature::LeftToLog;
    world.trust.issuers = vec![TrustedIssuer::new(ISS, vec![listed(&key(Algorithm::EdDsa))])];
    assert_not_verified(&world.verify(), Code::UnknownIssuerKey);
}

#[test]
fn an_attached_payload_may_be_compared_with_a_file() {
    let world = World::new();
    assert_eq!(state(&world.verify(), CheckName::Payload), None);
    assert_verified(&world.verify_payload(Some(PAYLOAD)));
    assert_failed(&world.verify_payload(Some(b"changed")), Code::PayloadDigestMismatch);
}

#[test]
fn a_detached_payload_is_needed_and_must_be_the_one_signed() {
    let world = World::with(Algorithm::Es256, StatementBuilder::detached);
    assert_not_verified(&world.verify(), Code::PayloadMissing);
    assert_verified(&world.verify_payload(Some(PAYLOAD)));
    assert_failed(&world.verify_payload(Some(b"changed")), Code::IssuerSignatureInvalid);
}

fn hashed(detached: bool) -> World {
    let mut world = World::with(Algorithm::Es256, |_| {
        let envelope = HashEnvelope {
            algorithm: -16,
            preimage_content_type: Some("application/json".into()),
            location: None,
        };
        let builder = StatementBuilder::new(Sha256::digest(PAYLOAD).to_vec()).iss(ISS).sub("s").kid(*b"any");
        let builder = builder.hash_envelope(&envelope);
        if detached { builder.detached() } else { builder }
    });
    world.trust.issuers[0].keys[0].kid = Some(b"any".to_vec());
    world
}

#[test]
fn the_preimage_of_a_hash_envelope_is_hashed_and_compared() {
    let world = hashed(false);
    let verdict = world.verify();
    assert_verified(&verdict);
    assert_eq!(state(&verdict, CheckName::Payload), Some(CheckState::NotDone));
    assert_eq!(verdict.statement.unwrap().content_type.as_deref(), Some("application/json"));
    let verdict = world.verify_payload(Some(PAYLOAD));
    assert_verified(&verdict);
    assert_eq!(state(&verdict, CheckName::Payload), Some(CheckState::Ok));
    assert_failed(&world.verify_payload(Some(b"changed")), Code::PayloadDigestMismatch);
}

#[test]
fn the_digest_of_a_detached_hash_envelope_is_made_from_its_preimage() {
    let world = hashed(true);
    assert_not_verified(&world.verify(), Code::PayloadMissing);
    assert_verified(&world.verify_payload(Some(PAYLOAD)));
    assert_failed(&world.verify_payload(Some(b"changed")), Code::IssuerSignatureInvalid);
}

#[test]
fn a_did_key_issuer_is_its_own_key_if_it_is_trusted() {
    for did in [PublicKey::did_key, PublicKey::did_jwk] {
        let issuer = key(Algorithm::EdDsa);
        let did = did(issuer.public_key());
        let statement = builder(&issuer).iss(&did).sign(&issuer).unwrap();
        let mut world = World::new();
        world.receipt = world.log.receipt(&statement);
        world.statement = statement;
        assert_not_verified(&world.verify(), Code::UnknownIssuer);
        world.trust.self_certified = true;
        assert_verified(&world.verify());
        world.trust.self_certified = false;
        world.trust.issuers.push(TrustedIssuer::new(did, Vec::new()));
        assert_verified(&world.verify());
    }
}

#[test]
fn a_key_without_a_configured_kid_answers_to_any_kid() {
    let world = World::with(Algorithm::Es256, |builder| builder.kid(*b"key-1"));
    assert_verified(&world.verify());
}

#[test]
fn a_key_with_a_configured_kid_answers_to_it_alone() {
    let mut world = World::with(Algorithm::Es256, |builder| builder.kid(*b"key-1"));
    world.trust.issuers[0].keys[0].kid = Some(b"key-1".to_vec());
    assert_verified(&world.verify());
    world.trust.issuers[0].keys[0].kid = Some(b"key-2".to_vec());
    assert_not_verified(&world.verify(), Code::UnknownIssuerKey);
}

#[test]
fn one_receipt_verifies_without_asking_for_the_issuer() {
    let mut world = World::new();
    world.trust.issuers.clear();
    let verdict = verify_receipt(&world.statement, &world.receipt, &world.trust, NOW);
    assert_verified(&verdict);
    assert_eq!(state(&verdict, CheckName::IssuerSignature), Some(CheckState::NotDone));
    let other = builder(&world.issuer).sub("other").sign(&world.issuer).unwrap();
    let verdict = verify_receipt(&other, &world.receipt, &world.trust, NOW);
    assert_failed(&verdict, Code::ReceiptRootMismatch);
}

#[test]
fn a_verdict_is_json_with_stable_words() {
    let world = World::new();
    let json = serde_json::to_value(world.verify()).unwrap();
    assert_eq!(json["outcome"], "verified");
    assert_eq!(json["statement"]["entry"], world.statement.digest().to_string());
    assert_eq!(json["receipts"][0]["position"]["leaf_index"], 4);
    let names: Vec<_> =
        json["checks"].as_array().unwrap().iter().map(|check| check["name"].clone()).collect();
    assert_eq!(
        names,
        [
            "statement",
            "headers",
            "issuer-signature",
            "statement-dates",
            "receipt",
            "inclusion",
            "receipt-signature",
            "receipt-dates",
            "witnesses"
        ]
    );
    let json = serde_json::to_value(world.verify_bytes(world.statement.bytes(), &[])).unwrap();
    assert_eq!(
        (json["outcome"].clone(), json["reason"].clone()),
        ("not-verified".into(), "no-receipt".into())
    );
}

#[test]
fn every_code_and_check_has_its_own_word() {
    let mut words: Vec<&str> = Code::ALL.iter().map(|code| code.as_str()).collect();
    words.sort_unstable();
    words.dedup();
    assert_eq!(words.len(), Code::ALL.len());
    let kebab = |word: &&str| word.bytes().all(|byte| byte.is_ascii_lowercase() || byte == b'-');
    assert!(words.iter().all(kebab));
    assert!(CheckName::ALL.iter().all(|name| kebab(&name.as_str())));
}
