//! Statements: what is kept, what is refused and where, and what a signature covers.

use coset::TaggedCborSerializable;
use merkle::EntryDigest;
use scitt::cbor::{ErrorKind, Value};
use scitt::{
    Algorithm, ContentType, Curve, Label, Malformed, MalformedKind, SignatureError, SignedStatement, Signer,
};

use crate::support::{
    builder, ed25519, frame, hex, key, message, refused, replaced, statement, to_hex, with_protected,
};

// --- what a statement says ----------------------------------------------------

#[test]
fn a_built_statement_says_what_it_was_told_to() {
    let statement = statement();
    let header = statement.header();
    assert_eq!(header.algorithm(), Some(Algorithm::EdDsa));
    assert_eq!(header.content_type(), Some(&ContentType::from("application/json")));
    assert_eq!(header.kid().unwrap().as_ref(), b"issuer-1");
    let identity = header.require_scitt().unwrap();
    assert_eq!((identity.iss, identity.sub), ("https://issuer.example", "urn:example:artifact"));
    assert_eq!(header.claims().unwrap().iat(), Some(1_700_000_000));
    assert_eq!(statement.payload(), Some(b"{\"hello\":\"world\"}".as_slice()));
    statement.verify_with(ed25519().public_key(), None).unwrap();
}

#[test]
fn any_label_can_be_asked_for() {
    let statement =
        builder().label("app", Value::array([1_i64.into(), "x".into()])).claim(-65_537, true.into());
    let statement = statement.sign(&ed25519()).unwrap();
    let value = statement.header().get(&"app".into()).unwrap();
    assert_eq!(to_hex(&value.encode()), "82016178");
    assert_eq!(statement.header().get(&Label::Int(999)), None);
    assert_eq!(statement.header().claims().unwrap().get(&Label::Int(-65_537)), Some(Value::Bool(true)));
}

#[test]
fn what_stood_unprotected_can_be_read_and_is_no_part_of_the_statement() {
    let trace = Value::map([("session".into(), "s".into())]);
    let sent = builder().unprotected(100, trace.clone()).unprotected("app", 7_i64.into());
    let statement = SignedStatement::parse(sent.encode(&ed25519()).unwrap()).unwrap();
    assert_eq!(statement.unprotected(100), Some(&trace.encode()[..]));
    assert_eq!(statement.unprotected("app"), Some(&[7][..]));
    assert_eq!(statement.unprotected(101), None);
    let kept = SignedStatement::parse(statement.bytes().clone()).unwrap();
    assert_eq!((kept.digest(), kept.unprotected(100)), (statement.digest(), None));
}

#[test]
fn every_algorithm_signs_statements_that_verify_only_under_its_key() {
    for algorithm in Algorithm::ALL {
        let signer = key(algorithm);
        let statement = builder().sign(&signer).unwrap();
        statement.verify_with(signer.public_key(), None).unwrap();
        assert!(statement.verify_with(key(algorithm).public_key(), None).is_err(), "{algorithm}");
    }
}

#[test]
fn coset_reads_the_statements_we_write_and_signs_over_the_same_bytes() {
    let statement = builder().label("app", 7_i64.into()).sign(&ed25519()).unwrap();
    let theirs = coset::CoseSign1::from_tagged_slice(statement.bytes()).unwrap();
    assert_eq!(theirs.protected.header.key_id, b"issuer-1");
    assert_eq!(theirs.signature, statement.signature());
    assert_eq!(theirs.tbs_data(&[]), statement.sig_structure(None).unwrap());
    assert_eq!(theirs.to_tagged_vec().unwrap(), statement.bytes().as_ref());
}

#[test]
fn we_read_the_statements_coset_writes() {
    let header = coset::HeaderBuilder::new()
        .algorithm(coset::iana::Algorithm::EdDSA)
        .key_id(b"k".to_vec())
        .text_value("z".into(), ciborium::Value::Bool(true))
        .build();
    let theirs = coset::CoseSign1Builder::new()
        .protected(header)
        .payload(b"payload".to_vec())
        .create_signature(&[], |signed| ed25519().sign(signed).unwrap())
        .build();
    let statement = SignedStatement::parse(theirs.to_tagged_vec().unwrap()).unwrap();
    statement.verify_with(ed25519().public_key(), None).unwrap();
}

// --- S ------------------------------------------------------------------------

#[test]
fn s_is_the_message_with_its_unprotected_header_emptied_and_nothing_else_changed() {
    let s = statement().bytes().to_vec();
    for other in ["a1186301", "bf186301ff", "b80118630 1", "bfff", "b800", "a21863010a81f6"] {
        let bytes = replaced(&s, &[0xa0, 0x51], &[hex(other), vec![0x51]].concat());
        let statement = SignedStatement::parse(bytes).unwrap();
        assert_eq!(to_hex(statement.bytes()), to_hex(&s), "{other}");
        assert_eq!(statement.digest(), EntryDigest::of(&s));
        assert_eq!(statement.payload(), Some(b"{\"hello\":\"world\"}".as_slice()));
        statement.verify_with(ed25519().public_key(), None).unwrap();
    }
}

#[test]
fn an_unsorted_long_headed_indefinite_protected_header_is_kept_and_signed_as_it_came() {
    let odd = hex("bf 04 5f41614162ff 1801 3807 6178 9ff4ff 0f a2 02 6173 1801 6169 ff");
    let bytes = message(&ed25519(), &odd, &[0xa0], Some(b"payload"));
    let statement = SignedStatement::parse(bytes.clone()).unwrap();
    assert_eq!(statement.bytes().as_ref(), bytes);
    assert_eq!(statement.header().bytes().as_ref(), odd);
    assert_eq!(statement.header().kid().unwrap().as_ref(), b"ab");
    assert_eq!(statement.header().require_scitt().unwrap().iss, "i");
    statement.verify_with(ed25519().public_key(), None).unwrap();
}

#[test]
fn an_empty_protected_header_is_signed_as_the_empty_string_however_it_is_written() {
    // cose-wg sign-pass-01 sends 41A0 and signs over 40.
    for empty in ["", "a0", "b800", "bfff"] {
        let statement =
            SignedStatement::parse(frame(&hex(empty), &hex("a1 0126"), Some(b"x"), &[0; 64])).unwrap();
        let signed = statement.sig_structure(None).unwrap();
        assert_eq!(to_hex(&signed), "846a5369676e61747572653140404178");
        assert_eq!(statement.header().bytes().as_ref(), hex(empty));
        assert_eq!(
            statement.verify_with(ed25519().public_key(), None),
            Err(SignatureError::NoAlgorithm),
            "alg counts only when it is signed"
        );
    }
}

#[test]
fn the_signed_bytes_are_those_of_rfc_9052() {
    let statement = SignedStatement::parse(with_protected("a1 0127")).unwrap();
    let expected = "84 6a 5369676e617475726531 43a10127 40 47 7061796c6f6164";
    assert_eq!(statement.sig_structure(None).unwrap(), hex(expected));
}

// --- detached payloads --------------------------------------------------------

#[test]
fn a_detached_payload_is_signed_but_not_carried() {
    let statement = builder().detached().sign(&ed25519()).unwrap();
    let payload = b"{\"hello\":\"world\"}".as_slice();
    assert!(statement.is_detached());
    assert_eq!(statement.payload(), None);
    statement.verify_with(ed25519().public_key(), Some(payload)).unwrap();
    assert_eq!(statement.sig_structure(None), Err(SignatureError::PayloadMissing));
    assert_eq!(
        statement.verify_with(ed25519().public_key(), Some(b"another payload")),
        Err(SignatureError::Invalid)
    );
}

#[test]
fn a_payload_beside_an_attached_one_is_refused() {
    assert_eq!(statement().sig_structure(Some(b"x")), Err(SignatureError::PayloadTwice));
}

#[test]
fn attached_and_detached_forms_of_one_signature_are_two_statements() {
    let attached = builder().sign(&ed25519()).unwrap();
    let detached = builder().detached().sign(&ed25519()).unwrap();
    assert_eq!(attached.signature(), detached.signature());
    assert_ne!(attached.digest(), detached.digest());
}

// --- twins --------------------------------------------------------------------

#[test]
fn the_twin_of_an_ecdsa_statement_verifies_and_names_the_first_as_its_twin() {
    for algorithm in Algorithm::ALL.into_iter().filter(|algorithm| algorithm.curve() != Curve::Ed25519) {
        let signer = key(algorithm);
        let statement = builder().sign(&signer).unwrap();
        let forged = with_other_s(&statement, algorithm);
        assert_eq!(statement.twin(), Some(forged.digest()), "{algorithm}");
        assert_eq!(forged.twin(), Some(statement.digest()), "{algorithm}");
        forged.verify_with(signer.public_key(), None).unwrap();
    }
}

/// The same statement with (r, n - s), by the curve crates' own arithmetic.
fn with_other_s(statement: &SignedStatement, algorithm: Algorithm) -> SignedStatement {
    let signature = statement.signature();
    let (r, s) = signature.split_at(signature.len() / 2);
    let negated = match algorithm {
        Algorithm::Es256 | Algorithm::Esp256 => negate_p256(s),
        Algorithm::Es384 | Algorithm::Esp384 => negate_p384(s),
        _ => negate_p521(s),
    };
    SignedStatement::parse(replaced(statement.bytes(), signature, &[r, &negated].concat())).unwrap()
}

fn negate_p256(s: &[u8]) -> Vec<u8> {
    let s = p256::NonZeroScalar::try_from(s).unwrap();
    (-*s).to_bytes().to_vec()
}

fn negate_p384(s: &[u8]) -> Vec<u8> {
    let s = p384::NonZeroScalar::try_from(s).unwrap();
    (-*s).to_bytes().to_vec()
}

fn negate_p521(s: &[u8]) -> Vec<u8> {
    let s = p521::NonZeroScalar::try_from(s).unwrap();
    (-*s).to_bytes().to_vec()
}

#[test]
fn there_is_no_twin_where_nobody_can_make_one() {
    assert_eq!(statement().twin(), None, "Ed25519 is verified strictly");
    let es256 = |signature: &[u8]| {
        SignedStatement::parse(frame(&hex("a10126"), &[0xa0], Some(b"x"), signature)).unwrap().twin()
    };
    assert_eq!(es256(&[0; 64]), None, "s = 0");
    assert_eq!(es256(&[0xff; 64]), None, "s >= n");
    assert_eq!(es256(&[1; 63]), None, "wrong length");
    let n = "ffffffff00000000ffffffffffffffffbce6faada7179e84f3b9cac2fc632551";
    assert_eq!(es256(&hex(&format!("{}{n}", "11".repeat(32)))), None, "s = n");
    assert!(es256(&[1; 64]).is_some());
}

// --- outer framing ------------------------------------------------------------

#[test]
fn the_outer_framing_has_one_form() {
    let good = "d284 43a10127 a0 4178 41ff";
    assert!(SignedStatement::parse(hex(good)).is_ok());
    let string = |what: &'static str| MalformedKind::Type { what, expected: "a byte string" };
    for (why, text, offset, kind) in [
        ("nothing", "", 0, MalformedKind::Cbor(ErrorKind::UnexpectedEnd)),
        ("untagged", "84 43a10127 a0 4178 41ff", 0, MalformedKind::NotTag18),
        ("COSE_Mac0", "d184 43a10127 a0 4178 41ff", 0, MalformedKind::NotTag18),
        ("COSE_Sign", "d86284 43a10127 a0 4178 41ff", 0, MalformedKind::NotTag18),
        ("long tag", "d81284 43a10127 a0 4178 41ff", 0, MalformedKind::NotShortest),
        ("tag twice", "d2d284 43a10127 a0 4178 41ff", 1, MalformedKind::NotArrayOf4),
        ("self-described", "d9d9f7d284 43a10127 a0 4178 41ff", 0, MalformedKind::NotTag18),
        ("array of 3", "d283 43a10127 a0 4178", 1, MalformedKind::NotArrayOf4),
        ("array of 5", "d285 43a10127 a0 4178 41ff 00", 1, MalformedKind::NotArrayOf4),
        ("long array head", "d29804 43a10127 a0 4178 41ff", 1, MalformedKind::NotShortest),
        ("indefinite array", "d29f 43a10127 a0 4178 41ff ff", 1, MalformedKind::Indefinite),
        ("protected map bare", "d284 a10127 a0 4178 41ff", 2, string("the protected header")),
        ("long protected head", "d284 5803a10127 a0 4178 41ff", 2, MalformedKind::NotShortest),
        ("chunked protected", "d284 5f43a10127ff a0 4178 41ff", 2, MalformedKind::Indefinite),
        ("long payload head", "d284 43a10127 a0 580178 41ff", 7, MalformedKind::NotShortest),
        ("chunked payload", "d284 43a10127 a0 5f4178ff 41ff", 7, MalformedKind::Indefinite),
        ("chunked signature", "d284 43a10127 a0 4178 5f41ffff", 9, MalformedKind::Indefinite),
        ("text signature", "d284 43a10127 a0 4178 6161", 9, string("the signature")),
        ("trailing byte", "d284 43a10127 a0 4178 41ff 00", 11, MalformedKind::Cbor(ErrorKind::TrailingBytes)),
        ("cut short", "d284 43a10127 a0 4178 41", 9, MalformedKind::Cbor(ErrorKind::LengthBeyondInput)),
        (
            "2^36 bytes",
            "d284 43a10127 a0 5b0000001000000000",
            7,
            MalformedKind::Cbor(ErrorKind::LengthBeyondInput),
        ),
    ] {
        assert_eq!(refused(&hex(text)), Malformed { offset, kind }, "{why}");
    }
    for (why, payload) in [("undefined", "f7"), ("false", "f4"), ("text", "6178"), ("an empty array", "80")] {
        let kind = MalformedKind::Type { what: "the payload", expected: "a byte string or nil" };
        let error = refused(&hex(&format!("d284 43a10127 a0 {payload} 41ff")));
        assert_eq!(error, Malformed { offset: 7, kind }, "{why}");
    }
}

#[test]
fn a_statement_beyond_the_hard_limit_is_refused_unread() {
    let bytes = vec![0; scitt::limits::TRANSPARENT_BYTES + 1];
    assert!(matches!(refused(&bytes).kind, MalformedKind::TooLarge { .. }));
}
