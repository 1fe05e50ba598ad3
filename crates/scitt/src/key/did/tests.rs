//! DIDs from their methods' documents, and DIDs that only look like them.

use proptest::prelude::*;

use super::*;
use crate::alg::Algorithm;
use crate::signer::{Signer, SigningKey};

const ED25519: &str = "did:key:z6MkhaXgBZDvotDkL5257faiztiGiC2QtKLGpbnnEGta2doK";

#[test]
fn the_did_keys_of_the_method_s_document_are_read() {
    for (did, curve) in [
        (ED25519, Curve::Ed25519),
        ("did:key:zDnaerDaTF5BXEavCrfRZEk316dpbLsfPDZ3WJ5hRTPFU2169", Curve::P256),
        ("did:key:zDnaerx9CtbPJ1q36T5Ln5wYt3MQYeGRG5ehnPAmxcf5mDZpv", Curve::P256),
        ("did:key:z82Lm1MpAkeJcix9K8TMiLd5NMAhnwkjjCBeWHXyu3U4oT2MVJJKXkcVBgjGhnLBn2Kaau9", Curve::P384),
        (
            "did:key:z2J9gaYxrKVpdoG9A4gRnmpnRCcxU6agDtFVVBVdn1JedouoZN7SzcyREXXzWgt3gGiwpoHq7K68X4m32D8HgzG8wv3sY5j7",
            Curve::P521,
        ),
    ] {
        let key = PublicKey::from_did(did).unwrap();
        assert_eq!(key.curve(), curve, "{did}");
        assert_eq!(key.did_key(), did);
    }
}

#[test]
fn the_did_jwk_of_the_method_s_document_is_read() {
    let did = "did:jwk:eyJjcnYiOiJQLTI1NiIsImt0eSI6IkVDIiwieCI6ImFjYklRaXVNczNpOF91c3pFakoydHBUdFJNNEVVM3l6OTFQSDZDZEgyVjAiLCJ5IjoiX0tjeUxqOXZXTXB0bm1LdG00NkdxRHo4d2Y3NEk1TEtncmwyR3pIM25TRSJ9";
    let key = PublicKey::from_did(did).unwrap();
    assert_eq!(key.curve(), Curve::P256);
    assert_eq!(key.did_jwk(), did);
}

#[test]
fn a_key_survives_both_methods() {
    for algorithm in Algorithm::ALL {
        let key = SigningKey::generate(algorithm).unwrap().public_key().clone();
        assert_eq!(PublicKey::from_did(&key.did_key()), Ok(key.clone()));
        assert_eq!(PublicKey::from_did(&key.did_jwk()), Ok(key));
    }
}

#[test]
fn what_is_not_a_canonical_did_of_our_curves_is_refused() {
    let key = PublicKey::from_did(ED25519).unwrap();
    let uncompressed = {
        let key = SigningKey::generate(Algorithm::Es256).unwrap().public_key().clone();
        format!("did:key:z{}", bs58::encode([&[0x80, 0x24], key.as_bytes()].concat()).into_string())
    };
    for did in [
        String::new(),
        "did:key:".into(),
        "did:key:z".into(),
        "did:web:example.com".into(),
        ED25519.replace("did:key:z", "did:key:m"),
        ED25519.replace("did:key:z", "did:key:z1"),
        format!("{ED25519}1"),
        format!(" {ED25519}"),
        format!("{}=", key.did_jwk()),
        "did:jwk:e30".into(),
        "did:key:z6LSeu9HkTHSfLLeUs2nnzUSNedgDUevfNQgQjQC23ZCit6F".into(), // X25519
        uncompressed,
        format!("did:key:z{}", "1".repeat(5000)),
    ] {
        assert!(PublicKey::from_did(&did).is_err(), "{did:.80}");
    }
}

proptest! {
    #[test]
    fn reading_a_mutated_did_never_panics(place in 0usize..60, byte in 32u8..127, tail in ".{0,40}") {
        let mut did = ED25519.as_bytes().to_vec();
        let length = did.len();
        did[place % length] = byte;
        let did = String::from_utf8_lossy(&did).into_owned() + &tail;
        let _ = PublicKey::from_did(&did);
        let _ = PublicKey::from_did(&format!("did:jwk:{tail}"));
        let _ = PublicKey::from_did(&format!("did:key:{tail}"));
    }
}
