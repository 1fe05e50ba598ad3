//! Statements: what is kept, what is refused and where, and what a signature covers.

use coset::TaggedCborSerializable;
use merkle::EntryDigest;
use scitt::cbor::{ErrorKind, Value};
use scitt::header::{CertHash, labels};
use scitt::{
    Algorithm, ContentType, HashEnvelope, Incomplete, Label, Malformed, MalformedKind, SignatureError,
    SignedStatement, Signer, StatementBuilder, X5Chain,
};

use crate::support::{builder, ed25519, frame, hex, key, message, replaced, statement, to_hex};

fn refused(input: &[u8]) -> Malformed {
    SignedStatement::parse(input.to_vec()).expect_err("this input is to be refused")
}

/// A message with this protected map and nothing else of interest.
fn with_protected(protected: &str) -> Vec<u8> {
    frame(&hex(protected), &[0xa0], Some(b"payload"), &[0; 64])
}

fn with_unprotected(unprotected: &str) -> Vec<u8> {
    frame(&hex("a1 0127"), &hex(unprotected), Some(b"payload"), &[0; 64])
}

fn protected(text: &str) -> MalformedKind {
    refused(&with_protected(text)).kind
}

fn unprotected(text: &str) -> MalformedKind {
    refused(&with_unprotected(text)).kind
}

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
    for algorithm in Algorithm::ALL.into_iter().filter(|algorithm| algorithm.is_ecdsa()) {
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
    let bytes = vec![0; scitt::limits::STATEMENT_BYTES + 1];
    assert!(matches!(refused(&bytes).kind, MalformedKind::TooLarge { .. }));
}

// --- headers ------------------------------------------------------------------

#[test]
fn a_protected_header_is_one_map_and_nothing_more() {
    for text in ["80", "00", "f6", "40"] {
        assert!(
            matches!(protected(text), MalformedKind::Type { what: "the protected header", .. }),
            "{text}"
        );
    }
    let trailing = refused(&with_protected("a1012700"));
    assert_eq!(trailing, Malformed { offset: 6, kind: MalformedKind::Cbor(ErrorKind::TrailingBytes) });
    assert!(matches!(unprotected("80"), MalformedKind::Type { what: "the unprotected header", .. }));
    assert!(matches!(unprotected("41a0"), MalformedKind::Type { what: "the unprotected header", .. }));
}

#[test]
fn duplicate_labels_are_refused_in_either_header_at_any_depth_and_in_any_spelling() {
    let duplicate = MalformedKind::Cbor(ErrorKind::DuplicateKey);
    for text in ["a2 0127 0126", "a2 0127 180127", "a2 0127 1863a2000000 00", "a2 0127 0fa2 016161 016162"] {
        assert_eq!(protected(text), duplicate, "{text}");
    }
    for text in ["a2 1863f5 190063f4", "a1 186381a2616100616101"] {
        assert_eq!(unprotected(text), duplicate, "{text}");
    }
    let error = refused(&with_protected("a2 0127 180127"));
    assert_eq!(error.offset, 6, "the offset is that of the second spelling, from the start of the message");
}

#[test]
fn a_label_in_both_headers_is_refused_and_named() {
    for (both, label) in [("0127", Label::Int(1)), ("180100", Label::Int(1))] {
        assert_eq!(unprotected(&format!("a1 {both}")), MalformedKind::LabelInBothHeaders(label));
    }
    let text = frame(&hex("a2 0127 6178 00"), &hex("a1 6178 00"), None, &[]);
    assert_eq!(refused(&text).kind, MalformedKind::LabelInBothHeaders("x".into()));
}

#[test]
fn a_label_is_a_number_or_text() {
    for text in ["a1 4100 00", "a1 f5 00", "a1 f93c00 00", "a1 80 00", "a1 1bffffffffffffffff 00"] {
        assert_eq!(protected(text), MalformedKind::LabelType, "{text}");
        assert_eq!(unprotected(text), MalformedKind::LabelType, "{text}");
    }
}

#[test]
fn known_labels_must_have_their_types() {
    for (text, what) in [
        ("a1 01 65 4564445341", "alg (1)"),
        ("a1 01 f5", "alg (1)"),
        ("a2 0127 03 41 00", "content type (3)"),
        ("a2 0127 03 20", "content type (3)"),
        ("a2 0127 04 6161", "kid (4)"),
        ("a2 0127 0f 80", "CWT claims (15)"),
        ("a2 0127 0f a1 01 4161", "iss"),
        ("a2 0127 0f a1 02 00", "sub"),
        ("a2 0127 0f a1 06 6131", "iat"),
        ("a2 0127 0f a1 04 fb7ff0000000000000", "exp"),
        ("a2 0127 0f a1 05 f97e00", "nbf"),
        ("a2 0127 10 f5", "typ (16)"),
        ("a2 0127 1821 6161", "a certificate in x5chain (33)"),
        ("a2 0127 1821 40", "a certificate in x5chain (33)"),
        ("a2 0127 1822 41 00", "x5t (34)"),
        ("a2 0127 1822 81 2f", "x5t (34)"),
        ("a2 0127 190102 6161", "payload-hash-alg (258)"),
        ("a3 0127 190102 2f 190104 41 61", "payload-location (260)"),
        ("a2 0127 02 01", "crit (2)"),
        ("a2 0127 02 80", "crit (2)"),
    ] {
        match protected(text) {
            MalformedKind::Type { what: found, .. } => assert_eq!(found, what, "{text}"),
            other => panic!("{text}: {other}"),
        }
    }
}

#[test]
fn nesting_in_headers_ends_at_sixteen() {
    let nested = |levels: usize| format!("a2 0127 1863 {}00", "81".repeat(levels - 1));
    assert!(SignedStatement::parse(with_protected(&nested(16))).is_ok());
    assert_eq!(protected(&nested(17)), MalformedKind::Cbor(ErrorKind::TooDeep));
    let unprotected_map = |levels: usize| format!("a1 1863 {}00", "81".repeat(levels - 1));
    assert!(SignedStatement::parse(with_unprotected(&unprotected_map(16))).is_ok());
    assert_eq!(unprotected(&unprotected_map(17)), MalformedKind::Cbor(ErrorKind::TooDeep));
}

#[test]
fn a_critical_label_is_understood_signed_and_there() {
    assert!(
        SignedStatement::parse(with_protected("a3 0127 0281190102 1901022f")).is_err(),
        "payload is no digest"
    );
    let digest = frame(&hex("a3 0127 0281190102 1901022f"), &[0xa0], Some(&[0; 32]), &[0; 64]);
    assert!(SignedStatement::parse(digest).is_ok());
    assert_eq!(protected("a3 0127 02811863 1863f5"), MalformedKind::CriticalUnknown(Label::Int(99)));
    assert_eq!(protected("a3 0127 02816178 6178f5"), MalformedKind::CriticalUnknown("x".into()));
    assert_eq!(protected("a3 0127 028119018b 19018b01"), MalformedKind::CriticalUnknown(Label::Int(395)));
    assert_eq!(protected("a2 0127 02811821"), MalformedKind::CriticalAbsent(Label::Int(33)));
    assert_eq!(unprotected("a1 028103"), MalformedKind::MustBeProtected(Label::Int(2)));
}

#[test]
fn iss_has_one_to_8192_characters() {
    let iss = |text: &str| builder().iss(text).sign(&ed25519());
    assert!(iss(&"ü".repeat(8192)).is_ok(), "characters, not bytes");
    assert!(iss("").is_err() && iss(&"u".repeat(8193)).is_err());
}

#[test]
fn dates_may_be_floats_or_wrongly_tagged_but_must_be_numbers() {
    for text in ["06 1a6553f100", "06 c11a6553f100", "06 fb41d954fc40000000", "06 fb41d954fc40200000"] {
        let statement = SignedStatement::parse(with_protected(&format!("a2 0127 0f a1 {text}"))).unwrap();
        assert_eq!(statement.header().claims().unwrap().iat(), Some(1_700_000_000), "{text}");
    }
}

// --- RFC 9943 -----------------------------------------------------------------

#[test]
fn a_statement_that_lacks_what_rfc_9943_requires_parses_and_names_the_missing_piece() {
    let named = |builder: StatementBuilder| {
        let statement = builder.sign(&ed25519()).unwrap();
        statement.header().require_scitt().expect_err("incomplete")
    };
    let bare = || StatementBuilder::new(b"x".as_slice());
    assert_eq!(named(bare().kid(b"k".as_slice())), Incomplete::Claims);
    assert_eq!(named(bare().kid(b"k".as_slice()).sub("s")), Incomplete::Iss);
    assert_eq!(named(bare().kid(b"k".as_slice()).iss("i")), Incomplete::Sub);
    assert_eq!(named(bare().iss("i").sub("s")), Incomplete::KeyName);
    let unprotected = Value::map([(1_i64.into(), "i".into()), (2_i64.into(), "s".into())]);
    let unsigned = bare().kid(b"k".as_slice()).unprotected(labels::CWT_CLAIMS, unprotected);
    assert_eq!(named(unsigned), Incomplete::Claims, "claims that nobody signed are none");
    let no_alg = SignedStatement::parse(with_protected("a0")).unwrap();
    assert_eq!(no_alg.header().require_scitt(), Err(Incomplete::Algorithm));
}

#[test]
fn a_certificate_names_the_key_as_well_as_a_kid_does() {
    let hash = CertHash { algorithm: Label::Int(-16), hash: vec![1; 32].into() };
    let chain = X5Chain::new(vec![vec![0x30].into()]).unwrap();
    let base = || StatementBuilder::new(b"x".as_slice()).iss("did:x509:0:sha256:abc").sub("s");
    for builder in [base().x5t(&hash), base().x5chain(&chain)] {
        assert!(builder.sign(&ed25519()).unwrap().header().require_scitt().is_ok());
    }
    let not_a_uri = base().iss("no scheme: here").x5t(&hash).sign(&ed25519()).unwrap();
    assert_eq!(not_a_uri.header().require_scitt(), Err(Incomplete::IssNotUri));
    assert!(base().iss("example.com").x5t(&hash).sign(&ed25519()).unwrap().header().require_scitt().is_ok());
}

// --- certificates -------------------------------------------------------------

#[test]
fn one_certificate_is_a_bare_string_and_more_are_an_array() {
    let chain = |count: usize| X5Chain::new((0..count).map(|n| vec![0x30, n as u8].into()).collect());
    let one = chain(1).unwrap();
    assert_eq!(to_hex(&one.encode()), "423000");
    assert_eq!(to_hex(&chain(2).unwrap().encode()), "82423000423001");
    for count in [1, 2, 16] {
        let chain = chain(count).unwrap();
        assert_eq!(X5Chain::decode(&chain.encode()).unwrap(), chain);
    }
    assert!(chain(0).is_none() && chain(17).is_none());
    for text in ["80", "81 423000"] {
        assert!(
            matches!(X5Chain::decode(&hex(text)).unwrap_err().kind, MalformedKind::Count { .. }),
            "{text}"
        );
    }
}

#[test]
fn an_unprotected_chain_is_kept_as_collateral_and_is_not_in_s() {
    let chain = X5Chain::new(vec![vec![0x30, 1].into(), vec![0x30, 2].into()]).unwrap();
    let bytes = builder().unprotected_x5chain(&chain).encode(&ed25519()).unwrap();
    let statement = SignedStatement::parse(bytes).unwrap();
    assert_eq!(statement.unprotected_x5chain(), Some(&chain));
    assert_eq!(statement.header().x5chain(), None);
    assert_eq!(statement.bytes(), self::statement().bytes());
}

// --- hash envelopes -----------------------------------------------------------

fn envelope() -> HashEnvelope {
    HashEnvelope {
        algorithm: -16,
        preimage_content_type: Some("application/json".into()),
        location: Some("https://example.com/it".into()),
    }
}

fn envelope_builder(payload: &[u8]) -> StatementBuilder {
    StatementBuilder::new(payload).kid(b"k".as_slice()).iss("i").sub("s").hash_envelope(&envelope())
}

#[test]
fn a_hash_envelope_says_what_its_digest_is_of() {
    let statement = envelope_builder(&[9; 32]).sign(&ed25519()).unwrap();
    assert_eq!(statement.header().hash_envelope(), Some(&envelope()));
    assert_eq!(statement.header().content_type(), None);
    statement.verify_with(ed25519().public_key(), None).unwrap();
}

#[test]
fn a_hash_envelope_has_no_content_type_in_either_header() {
    let both = [
        envelope_builder(&[9; 32]).content_type("application/json").encode(&ed25519()).unwrap(),
        envelope_builder(&[9; 32]).unprotected(3, "text/plain".into()).encode(&ed25519()).unwrap(),
    ];
    for bytes in both {
        assert_eq!(refused(&bytes).kind, MalformedKind::ContentTypeInHashEnvelope);
    }
}

#[test]
fn hash_envelope_labels_count_only_when_signed_and_together() {
    for label in [258, 259, 260] {
        let text = format!("a1 19{label:04x} 2f");
        assert_eq!(unprotected(&text), MalformedKind::MustBeProtected(Label::Int(label)));
    }
    for label in [259, 260] {
        let text = format!("a2 0127 19{label:04x} 6161");
        assert_eq!(protected(&text), MalformedKind::NoHashEnvelope(Label::Int(label)));
    }
}

#[test]
fn the_digest_of_a_hash_envelope_has_the_length_of_its_algorithm() {
    for (algorithm, expected) in [(-16_i64, 32), (-43, 48), (-44, 64), (-15, 8)] {
        let build = |length: usize| {
            let envelope = HashEnvelope { algorithm, preimage_content_type: None, location: None };
            StatementBuilder::new(vec![9; length]).hash_envelope(&envelope).encode(&ed25519()).unwrap()
        };
        assert!(SignedStatement::parse(build(expected)).is_ok());
        for found in [0, expected - 1, expected + 1] {
            let kind = MalformedKind::DigestLength { algorithm, expected, found };
            assert_eq!(refused(&build(found)).kind, kind);
        }
    }
    let unknown = HashEnvelope { algorithm: -9999, preimage_content_type: None, location: None };
    let any = StatementBuilder::new(b"?".as_slice()).hash_envelope(&unknown);
    assert!(any.sign(&ed25519()).is_ok(), "an algorithm we do not know may have any length");
}

#[test]
fn a_detached_digest_is_held_to_the_same_length() {
    let statement = envelope_builder(&[9; 32]).detached().sign(&ed25519()).unwrap();
    assert!(statement.check_detached(&[9; 32]).is_ok());
    assert!(statement.check_detached(&[9; 31]).is_err());
}
