//! `vectors/policy`: what operators type, what runs, and every mistake told at once.
//!
//! `sound/*.json` give a policy's TOML, its canonical JSON and digest; `mistaken/*.json` give a TOML and everything wrong with it.
//! `vectors/sources/policy` describes them; after a change there, write them again with `WRITE_VECTORS=1 cargo test -p registration --test policies`.

#![allow(clippy::unwrap_used)]

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

use data_encoding::BASE64URL_NOPAD;
use registration::policy::{Identity, Mistake, Trusted, for_dev, for_init};
use registration::{Policy, PolicyDigest};
use scitt::Signer;
use serde_json::{Value, json};
use testkit::vectors::assert_kind_matches_source;
use testkit::{GATEWAY, ISSUER, KID, LOG_ISS, ORIGIN, es256, gateway, operator, policy_toml, verifier};

fn folder(kind: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../../vectors/policy").join(kind)
}

fn identity<'k>(operator: &'k scitt::PublicKey, index: &'k scitt::PublicKey) -> Identity<'k> {
    Identity { iss: LOG_ISS, origin: ORIGIN, operator, index }
}

/// Returns the policies of a kind of vectors by name.
fn policies(kind: &str) -> BTreeMap<String, String> {
    let files = std::fs::read_dir(folder(kind)).unwrap().map(|entry| entry.unwrap().path());
    let name = |path: &Path| path.file_stem().unwrap().to_str().unwrap().to_owned();
    let text = |path: &Path| -> String {
        let vector: Value = serde_json::from_slice(&std::fs::read(path).unwrap()).unwrap();
        vector["toml"].as_str().unwrap().to_owned()
    };
    files.map(|path| (name(&path), text(&path))).collect()
}

#[test]
fn a_sound_policy_has_the_payload_and_digest_it_always_had() {
    assert_kind_matches_source("policy", "sound", |_, mut vector| {
        let policy = Policy::from_toml(vector["toml"].as_str().unwrap())
            .unwrap_or_else(|mistakes| panic!("{vector:#}: {mistakes}"));
        vector["payload"] = String::from_utf8(policy.payload().to_vec()).unwrap().into();
        vector["digest"] = policy.digest().to_string().into();
        vector
    });
}

#[test]
fn the_policies_that_programs_write_are_sound() {
    let (operator, index, issuer, gateway) = (operator(), verifier(), es256(), gateway());
    let log = identity(operator.public_key(), index.public_key());
    let dev = for_dev(
        log,
        Trusted { iss: ISSUER, key: issuer.public_key() },
        Trusted { iss: GATEWAY, key: gateway.public_key() },
    );
    let sound = policies("sound");
    assert_eq!(sound["init"], for_init(log));
    assert_eq!(sound["dev"], dev);
    assert_eq!(sound["tests"], policy_toml());
}

#[test]
fn every_mistake_is_told_with_the_path_of_its_key() {
    assert_kind_matches_source("policy", "mistaken", |_, mut vector| {
        let mistakes = Policy::from_toml(vector["toml"].as_str().unwrap()).map(|_| ()).unwrap_err();
        let mistake = |mistake: &Mistake| json!({ "key": mistake.key, "problem": mistake.problem });
        vector["mistakes"] = mistakes.0.iter().map(mistake).collect();
        vector
    });
}

#[test]
fn a_policy_comes_back_out_of_its_payload() {
    for (name, toml) in policies("sound") {
        let typed = Policy::from_toml(&toml).unwrap();
        let read =
            Policy::from_payload(typed.payload()).unwrap_or_else(|mistakes| panic!("{name}: {mistakes}"));
        assert_eq!(read.contents(), typed.contents(), "{name}");
        assert_eq!((read.digest(), read.payload()), (typed.digest(), typed.payload()), "{name}");
    }
}

#[test]
fn a_key_whose_own_kid_is_empty_is_a_mistake_unless_it_is_given_a_name() {
    let did = es256().public_key().did_key();
    let key = BASE64URL_NOPAD.encode(&es256().public_key().to_cose_key(Some(b""), None));
    let named = policy_toml().replace(&did, &key);
    assert_eq!(Policy::from_toml(&named).unwrap(), Policy::from_toml(&policy_toml()).unwrap());
    let table = format!("{{ key = \"{key}\", kid = \"{KID}\" }}");
    for unnamed in [format!("\"{key}\""), format!("{{ key = \"{key}\" }}")] {
        let mistakes = Policy::from_toml(&named.replace(&table, &unnamed)).unwrap_err().to_string();
        assert!(mistakes.starts_with("issuer[0].keys[0]"), "{mistakes}");
        assert!(mistakes.ends_with("name the key with `kid` or `kid_hex`"), "{mistakes}");
    }
}

#[test]
fn comments_order_and_defaults_do_not_change_the_digest() {
    let digest = |toml: &str| -> PolicyDigest { Policy::from_toml(toml).unwrap().digest() };
    let plain = policy_toml();
    let written_out = plain.replace(
        "content_type = \"text/plain\"",
        "# text\nprofile = \"opaque\"\ndetached = false\ncontent_type = \"text/plain\"",
    );
    assert_eq!(digest(&plain), digest(&written_out));
    assert_ne!(digest(&plain), digest(&plain.replace("4096", "4097")));
}

#[test]
fn a_payload_that_is_not_canonical_is_refused() {
    let policy = Policy::from_toml(&policy_toml()).unwrap();
    let text = std::str::from_utf8(policy.payload()).unwrap();
    for changed in [
        format!("{text}\n"),
        text.replacen(':', ": ", 1),
        format!("\u{feff}{text}"),
        String::new(),
        "[]".to_owned(),
    ] {
        assert!(Policy::from_payload(changed.as_bytes()).is_err());
    }
}

#[test]
fn the_largest_statement_is_that_of_the_most_generous_type() {
    let generous = policy_toml().replace("4096", "4194304");
    assert_eq!(Policy::from_toml(&generous).unwrap().largest_statement(), 4_194_304);
}
