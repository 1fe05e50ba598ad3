//! Receipts of other services.

use super::*;
use scitt::cbor::Value;
use scitt::header::labels::{ALG, VDP, VDS};

/// A receipt with nothing in it but what RFC 9942 demands.
fn bare_receipt(log: &Log, statement: &SignedStatement) -> Vec<u8> {
    let (root, index, size, path) = log.grow(statement);
    let protected =
        Value::map([(ALG.into(), log.key.algorithm().to_cose().into()), (VDS.into(), 1_i64.into())]).encode();
    let structure = Value::array([
        "Signature1".into(),
        protected.clone().into(),
        Vec::new().into(),
        root.as_bytes().to_vec().into(),
    ]);
    let signature = log.key.sign(&structure.encode()).unwrap();
    let path = Value::array(path.iter().map(|hash| hash.as_bytes().to_vec().into()));
    let proof = Value::array([size.get().into(), index.get().into(), path]).encode();
    let proofs = Value::map([((-1_i64).into(), Value::array([proof.into()]))]);
    let unprotected = Value::map([(VDP.into(), proofs)]);
    Value::tagged(18, Value::array([protected.into(), unprotected, Value::Null, signature.into()])).encode()
}

#[test]
fn both_leaf_rules_are_read_and_neither_is_guessed() {
    for rule in [LeafRule::Sha256OfStatement, LeafRule::Statement] {
        let mut world = World::new();
        world.log.rule = rule;
        world.receipt = world.log.receipt(&world.statement);
        world.trust.logs = vec![world.log.trusted()];
        assert_verified(&world.verify());
        world.trust.logs[0].leaf_rule = match rule {
            LeafRule::Statement => LeafRule::Sha256OfStatement,
            LeafRule::Sha256OfStatement => LeafRule::Statement,
        };
        assert_failed(&world.verify(), Code::ReceiptRootMismatch);
    }
}

#[test]
fn a_receipt_without_claims_is_read_only_where_the_trusted_log_says_so() {
    let mut world = World::new();
    world.receipt = bare_receipt(&world.log, &world.statement);
    assert_not_verified(&world.verify(), Code::UnknownLog);
    world.trust.logs[0].profile = HeaderProfile::Rfc9942;
    let verdict = world.verify();
    assert_verified(&verdict);
    let position = verdict.receipts[0].position.unwrap();
    assert_eq!(position.to_string(), "leaf 4 of 9 (position not signed)");
}

#[test]
fn of_several_logs_the_one_that_signed_is_found() {
    let mut world = World::new();
    world.receipt = bare_receipt(&world.log, &world.statement);
    let mut logs = vec![Log::new().trusted(), world.log.trusted(), Log::new().trusted()];
    for (number, log) in logs.iter_mut().enumerate() {
        log.profile = HeaderProfile::Rfc9942;
        log.origin = Some(format!("log-{number}"));
        log.iss = None;
    }
    world.trust.logs = logs;
    let verdict = world.verify();
    assert_verified(&verdict);
    assert_eq!(verdict.receipts[0].log.as_deref(), Some("log-1"));
    world.trust.logs.remove(1);
    assert_failed(&world.verify(), Code::ReceiptRootMismatch);
}

#[test]
fn any_subject_is_taken_from_a_log_without_an_origin() {
    let mut world = World::new();
    world.log.origin = "hello.json";
    world.receipt = world.log.receipt(&world.statement);
    assert_failed(&world.verify(), Code::ReceiptSubjectMismatch);
    world.trust.logs[0].origin = None;
    assert_verified(&world.verify());
}

#[test]
fn another_data_structure_is_not_verified_rather_than_wrong() {
    let mut world = World::new();
    let place = world.receipt.windows(4).position(|window| window == [0x19, 0x01, 0x8b, 0x01]).unwrap();
    world.receipt[place + 3] = 3;
    assert_not_verified(&world.verify(), Code::UnsupportedStructure);
}

#[test]
fn a_receipt_is_verified_with_the_hash_of_its_statement_alone_where_leaves_are_made_of_it() {
    let mut world = World::new();
    let entry = world.statement.digest();
    assert_verified(&verify_receipt_of(entry, &world.receipt, &world.trust, NOW));
    let other = EntryDigest::of(b"another statement");
    assert_failed(&verify_receipt_of(other, &world.receipt, &world.trust, NOW), Code::ReceiptRootMismatch);
    world.log.rule = LeafRule::Statement;
    world.receipt = world.log.receipt(&world.statement);
    world.trust.logs = vec![world.log.trusted()];
    assert_verified(&verify_receipt(&world.statement, &world.receipt, &world.trust, NOW));
    assert_not_verified(&verify_receipt_of(entry, &world.receipt, &world.trust, NOW), Code::NotReached);
}
