//! Keys through every spelling, and signatures that must not verify.

use proptest::prelude::*;
use sha2::{Digest, Sha256};

use super::*;
use crate::key_set::KeySet;
use crate::signer::{Signer, SigningKey};

fn signer(algorithm: Algorithm) -> SigningKey {
    SigningKey::generate(algorithm).unwrap()
}

fn hex(text: &str) -> Vec<u8> {
    data_encoding::HEXLOWER.decode(text.as_bytes()).unwrap()
}

#[test]
fn what_a_signer_signs_its_public_key_verifies() {
    for algorithm in Algorithm::ALL {
        let signer = signer(algorithm);
        let signature = signer.sign(b"message").unwrap();
        assert_eq!(signature.len(), algorithm.curve().signature_len());
        let key = signer.public_key();
        assert_eq!(key.verify(algorithm, b"message", &signature), Ok(()));
        assert_eq!(key.verify(algorithm, b"massage", &signature), Err(SignatureError::Invalid));
        let other = self::signer(algorithm);
        assert_eq!(
            other.public_key().verify(algorithm, b"message", &signature),
            Err(SignatureError::Invalid)
        );
    }
}

#[test]
fn both_identifiers_of_an_algorithm_verify_the_same_signature() {
    for (old, new) in [
        (Algorithm::EdDsa, Algorithm::Ed25519),
        (Algorithm::Es256, Algorithm::Esp256),
        (Algorithm::Es384, Algorithm::Esp384),
        (Algorithm::Es512, Algorithm::Esp512),
    ] {
        let signer = signer(old);
        let signature = signer.sign(b"message").unwrap();
        assert_eq!(signer.public_key().verify(new, b"message", &signature), Ok(()));
    }
}

#[test]
fn an_algorithm_of_another_curve_is_refused_before_any_arithmetic() {
    for of_key in Algorithm::ALL {
        let signer = signer(of_key);
        let signature = signer.sign(b"message").unwrap();
        for algorithm in Algorithm::ALL.into_iter().filter(|other| other.curve() != of_key.curve()) {
            let curve = of_key.curve();
            assert_eq!(
                signer.public_key().verify(algorithm, b"message", &signature),
                Err(SignatureError::AlgorithmMismatch { algorithm, curve })
            );
        }
    }
}

#[test]
fn a_der_signature_is_refused_for_its_length() {
    let secret = p256::ecdsa::SigningKey::from_slice(&[7; 32]).unwrap();
    let key = PublicKey::from_sec1(Curve::P256, &secret.verifying_key().to_sec1_bytes()).unwrap();
    let signature: p256::ecdsa::Signature = p256::ecdsa::signature::Signer::sign(&secret, b"message");
    assert_eq!(key.verify(Algorithm::Es256, b"message", &signature.to_bytes()), Ok(()));
    let der = signature.to_der();
    assert_eq!(
        key.verify(Algorithm::Es256, b"message", der.as_bytes()),
        Err(SignatureError::Length { expected: 64, found: der.as_bytes().len() })
    );
}

#[test]
fn low_and_high_s_are_both_accepted() {
    for algorithm in [Algorithm::Es256, Algorithm::Es384, Algorithm::Es512] {
        let signer = signer(algorithm);
        let signature = signer.sign(b"message").unwrap();
        let twin = twin(algorithm.curve(), &signature);
        assert_ne!(twin, signature);
        for signature in [signature, twin] {
            assert_eq!(signer.public_key().verify(algorithm, b"message", &signature), Ok(()));
        }
    }
}

/// (r, n-s).
fn twin(curve: Curve, signature: &[u8]) -> Vec<u8> {
    macro_rules! negated {
        ($curve:ident) => {{
            let signature = $curve::ecdsa::Signature::from_slice(signature).unwrap();
            let (r, s) = signature.split_scalars();
            $curve::ecdsa::Signature::from_scalars(r, -s).unwrap().to_bytes().to_vec()
        }};
    }
    match curve {
        Curve::P256 => negated!(p256),
        Curve::P384 => negated!(p384),
        Curve::P521 => negated!(p521),
        Curve::Ed25519 => unreachable!(),
    }
}

#[test]
fn ring_and_rustcrypto_agree_on_every_signature() {
    use p256::ecdsa::signature::Verifier as _;
    for curve in [Curve::P256, Curve::P384] {
        let algorithm = Algorithm::default_for(curve);
        let signer = signer(algorithm);
        let key = signer.public_key();
        let rustcrypto = |message: &[u8], signature: &[u8]| match curve {
            Curve::P256 => {
                let key = p256::ecdsa::VerifyingKey::from_sec1_bytes(key.as_bytes()).unwrap();
                p256::ecdsa::Signature::from_slice(signature)
                    .is_ok_and(|signature| key.verify(message, &signature).is_ok())
            }
            _ => {
                let key = p384::ecdsa::VerifyingKey::from_sec1_bytes(key.as_bytes()).unwrap();
                p384::ecdsa::Signature::from_slice(signature)
                    .is_ok_and(|signature| key.verify(message, &signature).is_ok())
            }
        };
        let signature = signer.sign(b"message").unwrap();
        let half = curve.coordinate_len();
        let mut candidates = vec![signature.clone(), twin(curve, &signature)];
        candidates.push(vec![0; 2 * half]);
        candidates.push(vec![0xff; 2 * half]);
        candidates.push([&signature[..half], &vec![0; half][..]].concat());
        candidates.push([&vec![0; half][..], &signature[half..]].concat());
        candidates.push([&signature[half..], &signature[..half]].concat());
        for place in (0..2 * half).step_by(7) {
            let mut flipped = signature.clone();
            flipped[place] ^= 1 << (place % 8);
            candidates.push(flipped);
        }
        for (number, candidate) in candidates.iter().enumerate() {
            for message in [&b"message"[..], b"another"] {
                let ours = key.verify(algorithm, message, candidate).is_ok();
                assert_eq!(ours, rustcrypto(message, candidate), "{curve} candidate {number}");
            }
        }
    }
}

#[test]
fn an_ed25519_key_of_small_order_is_refused() {
    let neutral = {
        let mut bytes = [0; 32];
        bytes[0] = 1;
        bytes
    };
    assert_eq!(PublicKey::from_ed25519(&neutral), Err(KeyError::Weak));
    assert_eq!(PublicKey::from_ed25519(&[0; 32]), Err(KeyError::Weak));
}

#[test]
fn an_ed25519_key_in_a_second_spelling_is_refused() {
    // y = p + 3 is the point with y = 3 written with a number above the field's prime.
    let mut canonical = [0; 32];
    canonical[0] = 3;
    assert!(PublicKey::from_ed25519(&canonical).is_ok());
    let mut second = [0xff; 32];
    second[0] = 0xf0;
    second[31] = 0x7f;
    assert_eq!(PublicKey::from_ed25519(&second), Err(KeyError::Weak));
}

/// The point is encoded again: another way to find what is not canonical.
#[test]
fn an_ed25519_key_is_canonical_if_its_point_is_encoded_in_the_same_way() {
    let ending_with = |middle: u8, highest: u8| {
        (0..=0xff).map(move |lowest| {
            let mut bytes = [middle; 32];
            (bytes[0], bytes[31]) = (lowest, highest);
            bytes
        })
    };
    let near_the_prime = [0x7f, 0xff, 0x7e, 0].into_iter().flat_map(|highest| ending_with(0xff, highest));
    let small = [0, 0x80].into_iter().flat_map(|highest| ending_with(0, highest));
    let random = (0..1000_u32).map(|n| Sha256::digest(n.to_be_bytes()).into());
    let mut kinds = std::collections::BTreeMap::<_, u32>::new();
    for bytes in near_the_prime.chain(small).chain(random) {
        let point = EdKey::from_bytes(&bytes).ok();
        let expected = point.map(|key| !key.is_weak() && key.to_edwards().compress().as_bytes() == &bytes);
        let found = match PublicKey::from_ed25519(&bytes) {
            Ok(_) => Some(true),
            Err(KeyError::Weak) => Some(false),
            Err(_) => None,
        };
        assert_eq!(found, expected, "{bytes:02x?}");
        *kinds.entry(found).or_default() += 1;
    }
    assert!(kinds.len() == 3 && kinds.values().all(|count| *count > 10), "{kinds:?}");
}

#[test]
fn the_thumbprint_is_the_one_of_rfc_9679() {
    let x = hex("65eda5a12577c2bae829437fe338701a10aaa375e1bb5b5de108de439c08551d");
    let y = hex("1e52ed75701163f7f9e40ddf9f341b3dc9ba860af7e0ca7ca7e9eecd0084d19c");
    let key = PublicKey::from_coordinates(Curve::P256, &x, Some(&y)).unwrap();
    assert_eq!(
        key.thumbprint().to_vec(),
        hex("496bd8afadf307e5b08c64b0421bf9dc01528a344a43bda88fadd1669da253ec")
    );
    let cose = [hex("a401022001215820"), x, hex("225820"), y].concat();
    assert_eq!(key.to_cose_key(None, None), cose);
}

#[test]
fn a_key_survives_every_spelling() {
    for algorithm in Algorithm::ALL {
        let key = signer(algorithm).public_key().clone();
        assert_eq!(PublicKey::from_spki_pem(&key.to_spki_pem()), Ok(key.clone()));
        assert_eq!(PublicKey::from_spki_der(&key.to_spki_der()), Ok(key.clone()));
        let cose = key.to_cose_key(Some(b"kid"), Some(algorithm));
        let read = CoseKey::parse(&cose).unwrap();
        assert_eq!((read.kid.as_deref(), read.algorithm), (Some(&b"kid"[..]), Some(algorithm)));
        assert_eq!(read.key, key);
        assert_eq!(read.encode(), cose);
    }
}

#[test]
fn our_spki_is_the_one_rustcrypto_writes() {
    use p256::pkcs8::{EncodePublicKey, LineEnding};
    let key = p256::ecdsa::SigningKey::from_slice(&[7; 32]).unwrap();
    let ours = PublicKey::from_sec1(Curve::P256, &key.verifying_key().to_sec1_bytes()).unwrap();
    assert_eq!(ours.to_spki_pem(), key.verifying_key().to_public_key_pem(LineEnding::LF).unwrap());
    let key = p384::ecdsa::SigningKey::from_slice(&[7; 48]).unwrap();
    let ours = PublicKey::from_sec1(Curve::P384, &key.verifying_key().to_sec1_bytes()).unwrap();
    assert_eq!(ours.to_spki_pem(), key.verifying_key().to_public_key_pem(LineEnding::LF).unwrap());
    let key = p521::ecdsa::SigningKey::from_slice(&[1; 66]).unwrap();
    let ours = PublicKey::from_sec1(Curve::P521, &key.verifying_key().to_sec1_bytes()).unwrap();
    assert_eq!(ours.to_spki_pem(), key.verifying_key().to_public_key_pem(LineEnding::LF).unwrap());
    let key = ed25519_dalek::SigningKey::from_bytes(&[7; 32]);
    let ours = PublicKey::from_ed25519(key.verifying_key().as_bytes()).unwrap();
    assert_eq!(ours.to_spki_pem(), key.verifying_key().to_public_key_pem(LineEnding::LF).unwrap());
}

#[test]
fn a_compressed_y_is_decompressed() {
    for algorithm in [Algorithm::Es256, Algorithm::Es384, Algorithm::Es512] {
        let key = signer(algorithm).public_key().clone();
        let odd = key.y().unwrap().last().unwrap() & 1 == 1;
        let crv = match key.curve() {
            Curve::P256 => 1,
            Curve::P384 => 2,
            _ => 3,
        };
        use crate::cbor::Value;
        let cose = |odd: bool| {
            Value::map([
                (1i64.into(), 2i64.into()),
                ((-1i64).into(), i64::into(crv)),
                ((-2i64).into(), key.x().into()),
                ((-3i64).into(), odd.into()),
            ])
            .encode()
        };
        assert_eq!(PublicKey::from_cose_key(&cose(odd)), Ok(key.clone()));
        assert_ne!(PublicKey::from_cose_key(&cose(!odd)), Ok(key.clone()));
    }
}

#[test]
fn a_secret_key_given_as_a_public_key_is_called_out() {
    let signer = signer(Algorithm::Ed25519);
    let pem = signer.to_pkcs8_pem().unwrap();
    assert_eq!(PublicKey::from_spki_pem(&pem), Err(KeyError::Secret));
    let mut cose = signer.public_key().to_cose_key(None, None);
    cose[0] += 1;
    cose.extend([0x23, 0x41, 0x00]);
    assert_eq!(PublicKey::from_cose_key(&cose), Err(KeyError::Secret));
    let rsa = [0xa4, 0x01, 0x03, 0x20, 0x41, 0x00, 0x21, 0x41, 0x03, 0x22, 0x41, 0x00];
    let symmetric = [0xa2, 0x01, 0x04, 0x20, 0x41, 0x00];
    assert_eq!(PublicKey::from_cose_key(&rsa), Err(KeyError::Secret));
    assert_eq!(PublicKey::from_cose_key(&symmetric), Err(KeyError::Secret));
}

#[test]
fn a_secret_key_survives_pkcs8_and_prints_nothing_secret() {
    for algorithm in Algorithm::ALL {
        let signer = signer(algorithm);
        let pem = signer.to_pkcs8_pem().unwrap();
        let again = SigningKey::from_pkcs8_pem(&pem).unwrap().with_algorithm(algorithm).unwrap();
        assert_eq!(again.public_key(), signer.public_key());
        assert_eq!(again.algorithm(), algorithm);
        let printed = format!("{again:?}");
        assert_eq!(printed, format!("SigningKey({algorithm}, {:?})", signer.public_key()));
    }
}

#[test]
fn a_key_does_not_sign_under_an_algorithm_of_another_curve() {
    let refused = signer(Algorithm::Es256).with_algorithm(Algorithm::Es384);
    assert_eq!(refused.err(), Some(KeyError::AlgorithmMismatch { algorithm: -35, curve: Curve::P256 }));
}

#[test]
fn keys_of_openssl_are_read_and_written_as_it_writes_them() {
    // openssl genpkey -algorithm ed25519 (RFC 8410, section 10.3)
    let pem = "-----BEGIN PRIVATE KEY-----\n\
        MC4CAQAwBQYDK2VwBCIEINTuctv5E1hK1bbY8fdp+K06/nwoy/HU++CXqI9EdVhC\n\
        -----END PRIVATE KEY-----\n";
    let public = "-----BEGIN PUBLIC KEY-----\n\
        MCowBQYDK2VwAyEAGb9ECWmEzf6FQbrBZ9w7lshQhqowtrbLDFw4rXAxZuE=\n\
        -----END PUBLIC KEY-----\n";
    let key = SigningKey::from_pkcs8_pem(pem).unwrap();
    assert_eq!(key.public_key().to_spki_pem(), public);
    assert_eq!(*key.to_pkcs8_pem().unwrap(), pem);
}

#[test]
fn a_log_that_keeps_a_thousand_retired_keys_can_still_be_read() {
    let key = signer(Algorithm::Es512).public_key().clone();
    let member = |n: u32| CoseKey {
        kid: Some(Sha256::digest(n.to_be_bytes()).to_vec()),
        algorithm: Some(Algorithm::Es512),
        ..CoseKey::bare(key.clone())
    };
    let set = KeySet::new((0..1000).map(member).collect());
    assert_eq!(KeySet::parse(&set.encode()).unwrap(), set);
}

#[test]
fn a_bad_member_of_a_key_set_is_skipped() {
    let good = CoseKey {
        kid: Some(b"one".to_vec()),
        ..CoseKey::bare(signer(Algorithm::Es256).public_key().clone())
    };
    // 84: good, a text, a symmetric key {1: 4, -1: h'00'}, good again.
    let set = [&[0x84][..], &good.encode(), b"\x61x", &hex("a20104204100"), &good.encode()].concat();
    let set = KeySet::parse(&set).unwrap();
    assert_eq!(set.keys(), [good.clone(), good.clone()]);
    assert_eq!(set.skipped().iter().map(|skipped| skipped.position).collect::<Vec<_>>(), [1, 2]);
    assert_eq!(set.with_kid(b"one").count(), 2);
    assert_eq!(set.with_kid(b"two").count(), 0);
    let again = KeySet::parse(&set.encode()).unwrap();
    assert_eq!((again.keys(), again.skipped().len()), (set.keys(), 0));
}

#[test]
fn a_skipped_member_keeps_its_kid_and_whether_it_is_only_unsupported() {
    // An OKP key on Ed448 with a kid, one without, a secret key with a kid, and a kid that is text.
    let members = ["a3010102416b2007", "a201012007", "a30104024173204100", "a20101026174"];
    let set = [&[0x84][..], &members.map(hex).concat()].concat();
    let set = KeySet::parse(&set).unwrap();
    let skipped: Vec<_> = set.skipped().iter().map(|it| (it.kid.as_deref(), it.is_unsupported())).collect();
    assert_eq!(skipped, [(Some(&b"k"[..]), true), (None, true), (Some(b"s"), false), (None, true)]);
}

#[test]
fn a_member_that_is_well_formed_but_not_valid_cbor_is_skipped() {
    let good = CoseKey::bare(signer(Algorithm::Es256).public_key().clone());
    let invalid = [
        "a3010201022001", // kty twice
        "a1616b61ff",     // text that is not UTF-8
        "bf61ff01ff",     // such text as a label, in a map of indefinite length
        "5f41ff41ffff",   // a byte string in chunks
        "c11a5f5e1000",   // a tag
    ];
    for member in invalid {
        let set = [&[0x83][..], &good.encode(), &hex(member), &good.encode()].concat();
        let set = KeySet::parse(&set).unwrap();
        assert_eq!((set.keys().len(), set.skipped()[0].position), (2, 1), "{member}");
    }
    for malformed in ["82a0", "81a10102ff", "81ff", "9fa0", "81a101", "8100ff", "817f41ffff", "81f818"] {
        assert!(matches!(KeySet::parse(&hex(malformed)), Err(KeyError::Malformed(_))), "{malformed}");
    }
}

#[test]
fn a_kid_is_found_by_its_base64url_form_and_raw_only_if_that_is_safe() {
    let thumbprint = [0xfb; 32];
    assert!(kid_segment_matches(&thumbprint, &kid_segment(&thumbprint)));
    assert!(!kid_segment_matches(&thumbprint, &format!("{}=", kid_segment(&thumbprint))));
    assert!(kid_segment_matches(b"key-1", "key-1"));
    assert!(kid_segment_matches(b"key-1", "a2V5LTE"));
    assert!(!kid_segment_matches(b"key-1", "a2V5LTE="));
    for unsafe_raw in [".", "..", "", "a/b", "a b", "a%20b"] {
        let kid = unsafe_raw.as_bytes();
        assert_eq!(kid_segment_matches(kid, unsafe_raw), unsafe_raw.is_empty(), "{unsafe_raw:?}");
        assert!(kid_segment_matches(kid, &kid_segment(kid)));
    }
}

proptest! {
    #[test]
    fn reading_a_mutated_key_never_panics(place in 0usize..140, byte: u8, cut in 0usize..140, which in 0usize..8) {
        let key = fixed_key(which);
        for mut bytes in [key.to_cose_key(Some(b"kid"), None), key.to_spki_der(), key.as_bytes().to_vec()] {
            let length = bytes.len();
            bytes[place % length] = byte;
            bytes.truncate(length - cut % length);
            let _ = CoseKey::parse(&bytes);
            let _ = KeySet::parse(&bytes);
            let _ = PublicKey::from_spki_der(&bytes);
            let _ = SigningKey::from_pkcs8_der(&bytes);
            let _ = PublicKey::from_sec1(key.curve(), &bytes);
            let _ = PublicKey::from_ed25519(&bytes);
            let _ = key.verify(Algorithm::ALL[which], &bytes, &bytes);
        }
    }

    #[test]
    fn reading_arbitrary_bytes_never_panics(bytes in proptest::collection::vec(any::<u8>(), 0..200)) {
        let _ = CoseKey::parse(&bytes);
        let _ = KeySet::parse(&bytes);
        let _ = PublicKey::from_spki_der(&bytes);
        let text = String::from_utf8_lossy(&bytes);
        let _ = PublicKey::from_spki_pem(&text);
        let _ = SigningKey::from_pkcs8_pem(&text);
    }
}

fn fixed_key(which: usize) -> PublicKey {
    use std::sync::LazyLock;
    static KEYS: LazyLock<Vec<PublicKey>> =
        LazyLock::new(|| Algorithm::ALL.map(|algorithm| signer(algorithm).public_key().clone()).to_vec());
    KEYS[which].clone()
}
