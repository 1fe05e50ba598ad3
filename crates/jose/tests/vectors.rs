//! The files in `vectors/jose`.

use std::{collections::BTreeMap, fs, path::Path};

use data_encoding::HEXLOWER;
use jose::{
    jcs,
    json::{Limits, parse_strict},
    jwk::PublicJwk,
};
use serde::{Deserialize, de::DeserializeOwned};

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct JsonCase {
    why: String,
    valid: bool,
    text: Option<String>,
    hex: Option<String>,
    offset: Option<usize>,
    pointer: Option<String>,
}

impl JsonCase {
    fn bytes(&self) -> Vec<u8> {
        match (&self.text, &self.hex) {
            (Some(text), None) => text.clone().into_bytes(),
            (None, Some(hex)) => HEXLOWER.decode(hex.as_bytes()).expect("hex"),
            _ => panic!("a case has either text or hex: {}", self.why),
        }
    }
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct JcsCase {
    why: String,
    text: String,
    canonical: String,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct JwkCase {
    why: String,
    valid: bool,
    text: String,
    thumbprint: Option<String>,
}

fn read<T: DeserializeOwned>(kind: &str) -> BTreeMap<String, T> {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../vectors/jose").join(kind);
    let files = fs::read_dir(&folder).expect("a folder of vectors");
    let cases = files.map(|file| {
        let path = file.expect("a file").path();
        let text = fs::read(&path).expect("a vector");
        let case = serde_json::from_slice(&text);
        (path.display().to_string(), case.unwrap_or_else(|e| panic!("{}: {e}", path.display())))
    });
    cases.collect()
}

#[test]
fn every_json_vector_gets_its_verdict_and_every_refusal_says_where() {
    for (name, case) in read::<JsonCase>("json") {
        let bytes = case.bytes();
        match parse_strict(&bytes, Limits::default()) {
            Ok(_) => assert!(case.valid, "{name}: {}", case.why),
            Err(error) => {
                assert!(!case.valid, "{name}: {}: {error}", case.why);
                assert_eq!(Some(error.offset), case.offset, "{name}: {error}");
                assert_eq!(Some(&error.pointer), case.pointer.as_ref(), "{name}: {error}");
            }
        }
    }
}

#[test]
fn serde_json_accepts_whatever_the_strict_reader_accepts() {
    for (name, case) in read::<JsonCase>("json") {
        let theirs = serde_json::from_slice::<serde_json::Value>(&case.bytes());
        assert!(!case.valid || theirs.is_ok(), "{name}: {theirs:?}");
    }
}

#[test]
fn every_jcs_vector_is_canonicalised_and_is_its_own_canonical_form() {
    for (name, case) in read::<JcsCase>("jcs") {
        let value = parse_strict(case.text.as_bytes(), Limits::default()).expect("strict JSON");
        let canonical = jcs::canonical(&value);
        let canonical = std::str::from_utf8(&canonical).expect("UTF-8");
        assert_eq!(canonical, case.canonical, "{name}: {}", case.why);
        assert!(jcs::is_canonical(canonical.as_bytes()), "{name}");
        assert_eq!(jcs::is_canonical(case.text.as_bytes()), case.text == case.canonical, "{name}");
        let oracle = serde_jcs::to_vec(&value).expect("serde_jcs does it too");
        assert_eq!(oracle, canonical.as_bytes(), "{name}");
    }
}

#[test]
fn every_jwk_vector_gets_its_verdict() {
    for (name, case) in read::<JwkCase>("jwk") {
        match PublicJwk::parse(case.text.as_bytes()) {
            Ok(key) => {
                assert!(case.valid, "{name}: {}", case.why);
                let thumbprint = HEXLOWER.encode(&key.thumbprint());
                assert_eq!(Some(thumbprint), case.thumbprint, "{name}");
                assert_eq!(PublicJwk::from_value(&key.to_value()), Ok(key), "{name}");
            }
            Err(error) => assert!(!case.valid, "{name}: {}: {error}", case.why),
        }
    }
}
