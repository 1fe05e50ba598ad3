//! `trust.toml`, read and written.

use super::*;
use crate::trust::{KeyTextError, read_key};
use scitt::KeyError;
use scitt::key::KeyEnd;

#[test]
fn a_store_survives_its_file() {
    let world = World::new();
    let mut store = world.trust.clone();
    store.self_certified = true;
    store.issuer_signature = IssuerSignature::LeftToLog;
    store.logs[0].keys[0].kid = Some(vec![0, 255, 7]);
    store.logs[0].keys[0].algorithm = Some(Algorithm::Esp256);
    store.logs[0].checkpoint_keys =
        vec!["example.com/foo+530d903a+AekyeRrm56hApGFkyQR4ZCbV54Id2LKaANYcrnKv3U2k".into()];
    store.logs[0].keys[0].end =
        KeyEnd { retired_at: Some(1_700_000_000), retired_size: Some(9), compromised_size: Some(7) };
    let end = KeyEnd { compromised_size: Some(3), ..KeyEnd::default() };
    let key = store.logs[0].checkpoint_keys[0].clone();
    store.logs[0].retired_checkpoint_keys = vec![RetiredCheckpointKey { key, end }];
    store.logs.push(TrustedLog {
        iss: None,
        origin: None,
        leaf_rule: LeafRule::Statement,
        profile: HeaderProfile::Rfc9942,
        ..world.log.trusted()
    });
    store.issuers.push(TrustedIssuer { profile: HeaderProfile::Rfc9942, ..store.issuers[0].clone() });
    store.issuers.push(TrustedIssuer::new(world.issuer.public_key().did_key(), Vec::new()));
    let text = store.to_toml();
    assert_eq!(TrustStore::from_toml(&text), Ok(store), "{text}");
    assert_eq!(TrustStore::from_toml(&TrustStore::default().to_toml()), Ok(TrustStore::default()));
}

#[test]
fn what_is_written_can_be_read_by_a_person() {
    let world = World::new();
    let text = world.trust.to_toml();
    for line in
        ["[[log]]", "iss = \"https://log.example\"", "leaf_rule = \"sha256-of-statement\"", "[[issuer]]"]
    {
        assert!(text.lines().any(|written| written == line), "{line} in:\n{text}");
    }
    assert!(text.contains("-----BEGIN PUBLIC KEY-----\n"), "{text}");
}

#[test]
fn a_key_may_be_pasted_in_any_of_its_texts() {
    let signer = key(Algorithm::Es384);
    let key = signer.public_key();
    let cose = key.to_cose_key(Some(b"kid"), None);
    let named = CoseKey { kid: Some(b"kid".to_vec()), ..bare(key) };
    let jwk = {
        let did = key.did_jwk();
        let encoded = did.strip_prefix("did:jwk:").unwrap().to_owned();
        String::from_utf8(data_encoding::BASE64URL_NOPAD.decode(encoded.as_bytes()).unwrap()).unwrap()
    };
    for (text, expected) in [
        (key.to_spki_pem(), bare(key)),
        (format!("\n  {}  ", key.to_spki_pem().trim()), bare(key)),
        (key.did_key(), bare(key)),
        (jwk, bare(key)),
        (data_encoding::HEXLOWER.encode(&cose), named.clone()),
        (data_encoding::HEXUPPER.encode(&cose), named.clone()),
        (data_encoding::BASE64URL_NOPAD.encode(&cose), named.clone()),
        (data_encoding::BASE64URL.encode(&cose), named),
    ] {
        assert_eq!(read_key(&text), Ok(expected), "{text}");
    }
    for text in ["", "key", "a4", "-----BEGIN PUBLIC KEY-----", "did:web:example.com", "{}"] {
        assert!(read_key(text).is_err(), "{text}");
    }
    let secret = signer.to_pkcs8_pem().unwrap();
    assert_eq!(read_key(&secret), Err(KeyTextError::Key(KeyError::Secret)));
}

#[test]
fn all_mistakes_are_reported_together() {
    let text = r#"
        [[log]]
        origin = "log.example"

        [[issuer]]
        iss = "https://issuer.example"
        keys = ["nonsense", { key = "did:key:z6MkhaXgBZDvotDkL5257faiztiGiC2QtKLGpbnnEGta2doK", kid = "!", alg = "ES256" }]
        roots = ["-----BEGIN CERTIFICATE-----"]

        [[issuer]]
        iss = "https://nobody.example"
        eku = "code signing"

        [[root]]
        certificate = "x"
    "#;
    let Err(TrustError::Mistakes(mistakes)) = TrustStore::from_toml(text) else { panic!("accepted") };
    let places: Vec<&str> = mistakes.iter().map(|mistake| mistake.location.as_str()).collect();
    assert_eq!(
        places,
        [
            "log[0]",
            "log[0]",
            "issuer[0].roots[0]",
            "issuer[0].keys[0]",
            "issuer[0].keys[1].kid (unpadded base64url)",
            "issuer[1]",
            "issuer[1].eku",
            "root[0].certificate"
        ]
    );
}

#[test]
fn an_end_of_an_issuer_s_key_is_refused_not_ignored() {
    let mut store = World::new().trust;
    let sized = Some(9);
    for end in [
        KeyEnd { retired_at: Some(1_700_000_000), ..KeyEnd::default() },
        KeyEnd { retired_size: sized, ..KeyEnd::default() },
        KeyEnd { compromised_size: sized, ..KeyEnd::default() },
    ] {
        store.issuers[0].keys[0].end = end;
        let TrustError::Mistakes(mistakes) = TrustStore::from_toml(&store.to_toml()).unwrap_err() else {
            panic!("{end:?}: not a mistake");
        };
        assert_eq!((mistakes.len(), &*mistakes[0].location), (1, "issuer[0].keys[0]"), "{end:?}");
    }
}

#[test]
fn a_misspelled_field_is_refused_not_ignored() {
    for text in [
        "issuer_signatures = \"left-to-log\"",
        "[[log]]\niss = \"x\"\nkey = []",
        "[[log]]\niss = \"x\"\nleaf_rule = \"either\"",
        "[[issuer]]\nkeys = []",
    ] {
        assert!(matches!(TrustStore::from_toml(text), Err(TrustError::Syntax(_))), "{text}");
    }
}

#[test]
fn a_store_is_edited_by_name() {
    let world = World::new();
    let mut store = TrustStore::default();
    assert!(store.is_empty());
    assert!(store.add_issuer_key(ISS, listed(&world.issuer)));
    assert!(!store.add_issuer_key(ISS, listed(&world.issuer)));
    assert!(store.add_issuer_key(ISS, listed(&world.log.key)));
    assert_eq!(store.issuers.len(), 1);
    store.put_log(world.log.trusted());
    store.put_log(world.log.trusted());
    assert_eq!(store.logs.len(), 1);
    assert!(store.remove_log(ORIGIN) && !store.remove_log(LOG_ISS));
    assert!(store.remove_issuer(ISS) && !store.remove_issuer(ISS));
    assert!(store.is_empty());
}

#[test]
fn a_checkpoint_key_that_is_none_is_a_mistake() {
    let mut store = TrustStore { logs: vec![Log::new().trusted()], ..TrustStore::default() };
    let of_a_witness = "w1+7051cf13+BGGoetNo9POSJHa0fB9sFVpaRhLt4S1pC3lgW95fSjcD";
    for wrong in ["log.example+0a0b0c0d+AQ==", "nonsense", of_a_witness] {
        store.logs[0].checkpoint_keys = vec![wrong.into()];
        let TrustError::Mistakes(mistakes) = TrustStore::from_toml(&store.to_toml()).unwrap_err() else {
            panic!("{wrong}: not a mistake");
        };
        assert_eq!(mistakes[0].location, "log[0].checkpoint_keys[0]", "{wrong}");
    }
}
