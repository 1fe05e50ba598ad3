//! What must never verify, and under which word it is refused.

use super::*;
use scitt::cbor::{self, Value};

fn other_statement(world: &World) -> SignedStatement {
    builder(&world.issuer).sub("another").sign(&world.issuer).unwrap()
}

#[test]
fn a_receipt_for_another_statement_is_refused() {
    let mut world = World::new();
    world.statement = other_statement(&world);
    assert_failed(&world.verify(), Code::ReceiptRootMismatch);
}

#[test]
fn a_changed_payload_breaks_both_signature_and_inclusion() {
    let world = World::new();
    let mut bytes = world.transparent();
    let place = bytes.windows(5).position(|window| window == b"allow").unwrap();
    bytes[place..place + 5].copy_from_slice(b"deny ");
    let verdict = world.verify_bytes(&bytes, &[]);
    assert_failed(&verdict, Code::IssuerSignatureInvalid);
    assert_eq!(state(&verdict, CheckName::Inclusion), Some(CheckState::Failed));
}

#[test]
fn a_changed_issuer_signature_is_refused_even_where_a_log_took_it() {
    let mut world = World::new();
    let mut bytes = world.statement.bytes().to_vec();
    *bytes.last_mut().unwrap() ^= 1;
    world.statement = SignedStatement::parse(bytes).unwrap();
    world.receipt = world.log.receipt(&world.statement);
    let verdict = world.verify();
    assert_failed(&verdict, Code::IssuerSignatureInvalid);
    assert_eq!(state(&verdict, CheckName::Inclusion), Some(CheckState::Ok));
}

#[test]
fn a_statement_signed_by_another_under_the_issuer_s_name_is_refused() {
    let mut world = World::new();
    let forger = key(Algorithm::EdDsa);
    world.statement = builder(&world.issuer).sign(&forger).unwrap();
    world.receipt = world.log.receipt(&world.statement);
    assert_failed(&world.verify(), Code::IssuerSignatureInvalid);
    world.statement = builder(&forger).sign(&forger).unwrap();
    world.receipt = world.log.receipt(&world.statement);
    assert_not_verified(&world.verify(), Code::UnknownIssuerKey);
}

#[test]
fn a_forgery_under_a_did_that_is_its_key_is_a_forgery_whatever_the_kid_says() {
    let mut world = World::new();
    world.trust.self_certified = true;
    let did = world.issuer.public_key().did_key();
    for kid in [did.as_bytes(), b"any", &world.issuer.public_key().thumbprint()] {
        let forger = key(Algorithm::EdDsa);
        world.statement = builder(&forger).iss(&did).kid(kid).sign(&forger).unwrap();
        world.receipt = world.log.receipt(&world.statement);
        assert_failed(&world.verify(), Code::IssuerSignatureInvalid);
    }
}

#[test]
fn the_twin_of_a_registered_signature_is_another_statement() {
    let world = World::with(Algorithm::Es256, |builder| builder);
    let twin = {
        let signature = p256::ecdsa::Signature::from_slice(world.statement.signature()).unwrap();
        let (r, s) = signature.split_scalars();
        p256::ecdsa::Signature::from_scalars(r, -s).unwrap().to_bytes()
    };
    let mut bytes = world.statement.bytes().to_vec();
    let start = bytes.len() - twin.len();
    bytes[start..].copy_from_slice(&twin);
    let verdict = world.verify_bytes(&bytes, &[&world.receipt]);
    assert_eq!(state(&verdict, CheckName::IssuerSignature), Some(CheckState::Ok));
    assert_failed(&verdict, Code::ReceiptRootMismatch);
}

#[test]
fn a_tampered_path_is_refused() {
    let mut world = World::new();
    let (signed, index, mut path) = world.log.signed(&world.statement);
    let mut first = *path[0].as_bytes();
    first[0] ^= 1;
    path[0] = Hash::from_bytes(first);
    world.receipt = signed.inclusion_receipt(index, &path);
    assert_failed(&world.verify(), Code::ReceiptRootMismatch);
}

#[test]
fn a_path_too_long_or_too_short_is_refused_whatever_it_is_for() {
    let mut world = World::new();
    let (signed, index, path) = world.log.signed(&world.statement);
    world.receipt = signed.inclusion_receipt(index, &path[1..]);
    assert_failed(&world.verify(), Code::ReceiptProofInvalid);
    world.receipt = signed.inclusion_receipt(index, &[&path[..], &path[..1]].concat());
    assert_failed(&world.verify(), Code::ReceiptProofInvalid);
}

#[test]
fn a_tampered_receipt_signature_is_refused() {
    let mut world = World::new();
    *world.receipt.last_mut().unwrap() ^= 1;
    assert_failed(&world.verify(), Code::ReceiptRootMismatch);
}

#[test]
fn a_der_signature_in_a_receipt_is_refused_as_a_signature() {
    let mut world = World::new();
    // 5840 <64 bytes> becomes 583f <63 bytes>
    let head = world.receipt.len() - 66;
    assert_eq!(world.receipt[head..head + 2], [0x58, 0x40]);
    world.receipt[head + 1] = 0x3f;
    world.receipt.pop();
    assert_failed(&world.verify(), Code::ReceiptSignatureInvalid);
}

#[test]
fn a_receipt_for_another_log_of_the_same_operator_is_refused() {
    let mut world = World::new();
    world.log.origin = "other.log.example";
    world.receipt = world.log.receipt(&world.statement);
    assert_failed(&world.verify(), Code::ReceiptSubjectMismatch);
}

#[test]
fn with_the_root_attached_the_part_at_fault_is_known() {
    let world = World::new();
    let other = other_statement(&world);
    for (statement, tamper, code) in [
        (&world.statement, false, None),
        (&world.statement, true, Some(Code::ReceiptSignatureInvalid)),
        (&other, false, Some(Code::ReceiptRootMismatch)),
    ] {
        let root = world.log.grow(&world.statement).0;
        let mut receipt = with_payload(&world.receipt, root.as_bytes());
        if tamper {
            *receipt.last_mut().unwrap() ^= 1;
        }
        let verdict = world.verify_bytes(statement.bytes(), &[&receipt]);
        match code {
            None => assert_verified(&verdict),
            Some(code) => assert_failed(&verdict, code),
        }
    }
}

/// The receipt with its payload in place of nil.
fn with_payload(receipt: &[u8], payload: &[u8]) -> Vec<u8> {
    edited(receipt, |parts| parts[2] = payload.to_vec().into())
}

fn edited(message: &[u8], edit: impl FnOnce(&mut Vec<Value<'static>>)) -> Vec<u8> {
    let limits = cbor::Limits { depth: 16, items: 1000 };
    let Value::Tag(18, content) = cbor::parse(message, limits).unwrap().value.into_owned() else {
        unreachable!()
    };
    let Value::Array(parts) = content.value else { unreachable!() };
    let mut parts: Vec<Value<'static>> = parts.into_iter().map(|part| part.value).collect();
    edit(&mut parts);
    Value::tagged(18, Value::array(parts)).encode()
}

#[test]
fn a_key_offered_by_the_message_is_never_used() {
    let mut world = World::new();
    let forger = Log::new();
    let cose_key = forger.key.public_key().to_cose_key(None, None);
    let receipt = forger.receipt(&world.statement);
    // The forger's key travels in the unprotected header, under the label COSE_Key has in other protocols.
    world.receipt = edited(&receipt, |parts| {
        let Value::Map(entries) = &mut parts[1] else { unreachable!() };
        entries.push((Value::from(-65_537_i64).into(), Value::from(cose_key).into()));
    });
    assert_not_verified(&world.verify(), Code::UnknownLogKey);
}

#[test]
fn a_failed_receipt_is_not_outvoted_by_a_good_one() {
    let world = World::new();
    let mut tampered = world.receipt.clone();
    *tampered.last_mut().unwrap() ^= 1;
    assert_failed(&world.verify_bytes(&world.transparent(), &[&tampered]), Code::ReceiptRootMismatch);
    assert_failed(&world.verify_bytes(&world.transparent(), &[b"junk"]), Code::MalformedReceipt);
}

#[test]
fn a_receipt_from_the_future_or_past_its_end_is_refused() {
    let world = World::new();
    let statement = world.transparent();
    let at = |now| {
        verify(
            &StatementEvidence { statement: &statement, ..StatementEvidence::default() },
            &world.trust,
            now,
        )
    };
    assert_verified(&at(NOW - 60));
    assert_verified(&at(NOW - 60 - CLOCK_SKEW as u64));
    assert_failed(&at(NOW - 61 - CLOCK_SKEW as u64), Code::ReceiptNotYetValid);
    assert_verified(&at(u64::MAX));
}

#[test]
fn a_statement_is_dated_by_the_log_that_registered_it() {
    use scitt::header::labels::{EXP, NBF};
    let receipt = NOW as i64 - 60;
    for (label, value) in [(EXP, receipt + 1), (NBF, receipt), (NBF, receipt + CLOCK_SKEW)] {
        assert_verified(
            &World::with(Algorithm::EdDsa, |builder| builder.claim(label, value.into())).verify(),
        );
    }
    let too_early = receipt + CLOCK_SKEW + 1;
    let world = World::with(Algorithm::EdDsa, |builder| builder.claim(NBF, too_early.into()));
    assert_failed(&world.verify(), Code::StatementNotYetValid);
}

#[test]
fn a_statement_that_ended_before_its_receipt_may_have_been_registered_in_time() {
    use scitt::header::labels::EXP;
    let receipt = NOW as i64 - 60;
    let mut world = World::with(Algorithm::EdDsa, |builder| builder.claim(EXP, receipt.into()));
    let fresh = world.receipt.clone();
    let verdict = world.verify();
    assert_not_verified(&verdict, Code::RegistrationTimeUnknown);
    assert_eq!(state(&verdict, CheckName::StatementDates), Some(CheckState::NotDone));
    // An issuer that is left to the log changes nothing.
    world.trust.issuers.clear();
    world.trust.issuer_signature = IssuerSignature::LeftToLog;
    assert_not_verified(&world.verify(), Code::RegistrationTimeUnknown);
    // The receipt of the registration has an earlier time, alone or with the later one.
    world.log.iat -= 1;
    world.receipt = world.log.receipt(&world.statement);
    assert_verified(&world.verify());
    assert_verified(&world.verify_bytes(&world.transparent(), &[&fresh]));
    // Without a registration, it has expired.
    assert_failed(&world.verify_bytes(world.statement.bytes(), &[]), Code::StatementExpired);
    world.trust.logs[0].keys = vec![listed(&key(Algorithm::Es256))];
    assert_failed(&world.verify(), Code::StatementExpired);
}

#[test]
fn a_statement_without_the_headers_of_rfc_9943_is_refused() {
    let issuer = key(Algorithm::EdDsa);
    let mut world = World::new();
    world.trust.issuers = vec![TrustedIssuer::new(ISS, vec![listed(&issuer)])];
    world.statement = StatementBuilder::new(PAYLOAD).iss(ISS).sub("s").sign(&issuer).unwrap();
    world.receipt = world.log.receipt(&world.statement);
    assert_failed(&world.verify(), Code::MissingHeader);
    world.trust.issuers[0].profile = HeaderProfile::Rfc9942;
    assert_verified(&world.verify());
}

#[test]
fn a_receipt_of_a_statement_without_its_inclusion_proof_is_refused() {
    let mut world = World::new();
    let (signed, _, path) = world.log.signed(&world.statement);
    world.receipt = signed.consistency_receipt(TreeSize::new(4), &path);
    assert_failed(&world.verify(), Code::ReceiptProofInvalid);
}

#[test]
fn more_receipts_than_are_read_is_a_failure_not_a_silence() {
    let world = World::new();
    let receipts: Vec<Vec<u8>> = (0..=MAX_RECEIPTS).map(|_| world.log.receipt(&world.statement)).collect();
    let receipts: Vec<&[u8]> = receipts.iter().map(Vec::as_slice).collect();
    assert_failed(&world.verify_bytes(world.statement.bytes(), &receipts), Code::MalformedReceipt);
}
