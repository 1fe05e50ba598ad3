//! The golden vectors of keys, DIDs and certificate chains: `vectors/scitt/{keys,did,x509}`.

#![allow(clippy::unwrap_used, reason = "a test")]

use std::fs;
use std::path::{Path, PathBuf};

use scitt::x509::{RootCertificate, verify_chain};
use scitt::{Algorithm, CoseKey, PublicKey};
use serde::Deserialize;
use serde::de::DeserializeOwned;

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct AcceptedKey {
    why: String,
    /// The COSE_Key as it is read: in any well-formed encoding.
    input: String,
    curve: String,
    kid: Option<String>,
    alg: Option<i64>,
    /// The COSE_Key as it is written: deterministic.
    cose_key: String,
    thumbprint: String,
    spki_pem: String,
    did_key: String,
    did_jwk: String,
}

#[test]
fn every_spelling_of_an_accepted_key_is_as_in_its_vector() {
    each("keys/accepted", |name, case: AcceptedKey| {
        let read = CoseKey::parse(&hex(&case.input)).unwrap_or_else(|why| panic!("{name}: {why}"));
        let key = &read.key;
        assert_eq!(key.curve().name(), case.curve, "{name}: {}", case.why);
        assert_eq!(read.kid, case.kid.as_deref().map(hex), "{name}");
        assert_eq!(read.algorithm.map(Algorithm::to_cose), case.alg, "{name}");
        assert_eq!(to_hex(&read.encode()), case.cose_key, "{name}");
        assert_eq!(to_hex(&key.thumbprint()), case.thumbprint, "{name}");
        assert_eq!(key.to_spki_pem(), case.spki_pem, "{name}");
        assert_eq!((key.did_key(), key.did_jwk()), (case.did_key.clone(), case.did_jwk.clone()), "{name}");
        for again in [
            PublicKey::from_spki_pem(&case.spki_pem).unwrap(),
            PublicKey::from_did(&case.did_key).unwrap(),
            PublicKey::from_did(&case.did_jwk).unwrap(),
        ] {
            assert_eq!(again, *key, "{name}");
        }
    });
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct RefusedKey {
    why: String,
    input: String,
    error: String,
}

#[test]
fn every_refused_key_is_refused_for_its_reason() {
    each("keys/refused", |name, case: RefusedKey| {
        let why = CoseKey::parse(&hex(&case.input)).expect_err(name);
        assert_eq!(why.to_string(), case.error, "{name}: {}", case.why);
    });
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct SignatureCase {
    why: String,
    key: String,
    alg: i64,
    message: String,
    signature: String,
    valid: bool,
}

#[test]
fn every_signature_is_judged_as_in_its_vector() {
    each("keys/signatures", |name, case: SignatureCase| {
        let key = PublicKey::from_cose_key(&hex(&case.key)).unwrap();
        let algorithm = Algorithm::from_cose(case.alg).unwrap();
        let judged = key.verify(algorithm, &hex(&case.message), &hex(&case.signature));
        assert_eq!(judged.is_ok(), case.valid, "{name}: {}: {judged:?}", case.why);
    });
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct DidCase {
    why: String,
    did: String,
    /// The key, if the DID is accepted.
    cose_key: Option<String>,
}

#[test]
fn every_did_means_the_key_of_its_vector_or_none() {
    each("did", |name, case: DidCase| {
        let key = PublicKey::from_did(&case.did).ok();
        let found = key.map(|key| to_hex(&key.to_cose_key(None, None)));
        assert_eq!(found, case.cose_key, "{name}: {}", case.why);
    });
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct ChainCase {
    why: String,
    chain: Vec<String>,
    roots: Vec<String>,
    at: u64,
    eku: Option<String>,
    error: Option<String>,
    key: Option<String>,
    uris: Option<Vec<String>>,
    not_before: Option<u64>,
    not_after: Option<u64>,
    /// Names under which the end entity may sign, and others.
    #[serde(default)]
    speaks_for: Vec<String>,
    #[serde(default)]
    not_for: Vec<String>,
}

#[test]
fn every_chain_leads_to_a_root_or_fails_for_its_reason() {
    each("x509", |name, case: ChainCase| {
        let chain: Vec<Vec<u8>> = case.chain.iter().map(|der| hex(der)).collect();
        let chain: Vec<&[u8]> = chain.iter().map(Vec::as_slice).collect();
        let roots: Vec<RootCertificate> =
            case.roots.iter().map(|der| RootCertificate::from_der(&hex(der)).unwrap()).collect();
        match verify_chain(&chain, &roots, case.at, case.eku.as_deref()) {
            Err(why) => {
                let expected = case.error.unwrap_or_else(|| panic!("{name}: {}: {why}", case.why));
                assert!(why.to_string().starts_with(&expected), "{name}: {why}");
            }
            Ok(path) => {
                assert_eq!(case.error, None, "{name}: {}", case.why);
                assert_eq!(Some(to_hex(&path.key().to_cose_key(None, None))), case.key, "{name}");
                assert_eq!(Some(path.names().uris().to_vec()), case.uris, "{name}");
                let validity = path.validity();
                let found = (Some(validity.not_before), Some(validity.not_after));
                assert_eq!(found, (case.not_before, case.not_after), "{name}");
                case.speaks_for.iter().for_each(|iss| assert!(path.speaks_for(iss), "{name}: {iss}"));
                case.not_for.iter().for_each(|iss| assert!(!path.speaks_for(iss), "{name}: {iss}"));
            }
        }
    });
}

/// Reads every case of a folder, so that a misspelled or empty one fails.
fn each<C: DeserializeOwned>(folder: &str, check: impl Fn(&str, C)) {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../vectors/scitt").join(folder);
    let mut files: Vec<PathBuf> = fs::read_dir(&folder).unwrap().map(|entry| entry.unwrap().path()).collect();
    files.sort();
    assert!(!files.is_empty(), "no vectors in {}", folder.display());
    for file in files {
        let name = file.file_stem().unwrap().to_string_lossy().into_owned();
        let case = serde_json::from_slice(&fs::read(&file).unwrap());
        check(&name, case.unwrap_or_else(|error| panic!("{name}: {error}")));
    }
}

fn hex(text: &str) -> Vec<u8> {
    data_encoding::HEXLOWER.decode(text.as_bytes()).unwrap()
}

fn to_hex(bytes: &[u8]) -> String {
    data_encoding::HEXLOWER.encode(bytes)
}
