//! Headers: what must be where, what is refused, and what RFC 9943, 9360 and 9995 add.

use scitt::cbor::{ErrorKind, Value};
use scitt::header::{CertHash, labels};
use scitt::{
    HashEnvelope, Incomplete, Label, Malformed, MalformedKind, SignedStatement, Signer, StatementBuilder,
    X5Chain,
};

use crate::support::{builder, ed25519, frame, hex, refused, to_hex, with_protected};

fn with_unprotected(unprotected: &str) -> Vec<u8> {
    frame(&hex("a1 0127"), &hex(unprotected), Some(b"payload"), &[0; 64])
}

fn protected(text: &str) -> MalformedKind {
    refused(&with_protected(text)).kind
}

fn unprotected(text: &str) -> MalformedKind {
    refused(&with_unprotected(text)).kind
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
        "payload is not a digest"
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

#[test]
fn a_date_beyond_the_range_is_its_end() {
    for (text, end) in [
        ("06 1bffffffffffffffff", i64::MAX),
        ("06 1b8000000000000000", i64::MAX),
        ("06 fb7e37e43c8800759c", i64::MAX),
        ("06 3b7fffffffffffffff", i64::MIN),
        ("06 3bffffffffffffffff", i64::MIN),
        ("06 fbfe37e43c8800759c", i64::MIN),
    ] {
        let statement = SignedStatement::parse(with_protected(&format!("a2 0127 0f a1 {text}"))).unwrap();
        assert_eq!(statement.header().claims().unwrap().iat(), Some(end), "{text}");
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
    let plain = builder().sign(&ed25519()).unwrap();
    let statement = SignedStatement::parse(bytes).unwrap();
    assert_eq!(statement.unprotected_x5chain(), Some(&chain));
    assert_eq!(statement.header().x5chain(), None);
    assert_eq!(statement.bytes(), plain.bytes());
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

#[test]
fn an_error_repeats_only_the_beginning_of_what_a_stranger_sent() {
    let long = format!("\u{202e}\n{}", "ü".repeat(1000));
    let bytes = builder().label(long.as_str(), 1_i64.into()).unprotected(long.as_str(), 1_i64.into());
    let said = refused(&bytes.encode(&ed25519()).unwrap()).to_string();
    assert!(said.len() < 120 && !said.contains(['\n', '\u{202e}']), "{said}");
}
