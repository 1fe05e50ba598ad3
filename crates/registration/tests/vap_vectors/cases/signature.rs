//! Wire Verdicts with a signature in them.

use data_encoding::BASE64URL_NOPAD;
use registration::vap::{VAP_VERDICT, VerdictRule as R};
use scitt::{Signer, SigningKey};
use serde_json::{Value, json};
use testkit::{KID, SESSION, ed25519, gateway, signed_verdict_json, verdict_json};

use super::{breaks, canonical, changed, keeps, statement, text_with, with};
use crate::Case;

fn sign(payload: impl Into<Vec<u8>>) -> Vec<u8> {
    statement(VAP_VERDICT, SESSION, payload)
}

/// The Verdict with any header, payload part and key.
fn signed(header: &str, attached: bool, key: &SigningKey) -> Vec<u8> {
    let payload = canonical(&verdict_json());
    let [header, encoded] = [header.as_bytes(), &payload].map(|part| BASE64URL_NOPAD.encode(part));
    let signature = key.sign(format!("{header}.{encoded}").as_bytes()).unwrap();
    let between = if attached { encoded } else { String::new() };
    put(&format!("{header}.{between}.{}", BASE64URL_NOPAD.encode(&signature)))
}

fn put(signature: &str) -> Vec<u8> {
    sign(canonical(&with(verdict_json(), "/signature", json!(signature))))
}

fn header(more: &Value) -> String {
    let mut header = json!({ "alg": "EdDSA", "kid": KID });
    for (name, value) in more.as_object().unwrap() {
        header[name] = value.clone();
    }
    header.to_string()
}

fn good() -> Value {
    signed_verdict_json(&verdict_json())
}

pub fn cases() -> Vec<Case> {
    [form_cases(), header_cases(), payload_cases(), key_cases()].concat()
}

fn form_cases() -> Vec<Case> {
    let text = good()["signature"].as_str().unwrap().to_owned();
    let standard = text.replace("..", "+..");
    let mut cases = vec![keeps(R::SignatureForm, "detached", "header..signature", sign(canonical(&good())))];
    for (name, why, signature) in [
        ("empty", "No signature at all.", String::new()),
        ("two-parts", "One dot is missing.", text.replace("..", ".")),
        ("four-parts", "One part too many.", format!("{text}.e30")),
        ("padded", "base64url has no padding here.", format!("{text}=")),
        ("standard-alphabet", "A character of the other base64.", standard),
        ("json-serialisation", "The JSON serialisation is not admitted.", r#"{"signatures":[]}"#.to_owned()),
    ] {
        cases.push(breaks(R::SignatureForm, name, why, put(&signature)));
    }
    cases
}

fn header_cases() -> Vec<Case> {
    let key = gateway();
    let mut cases = vec![
        keeps(
            R::SignatureHeader,
            "all-known",
            "Everything that may stand in a Verdict's header.",
            signed(
                &header(&json!({
                    "typ": "vap+jws", "iat": 1_767_225_600, "jti": "1", "aud": "https://client.example",
                    "req": "sha256:ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad"
                })),
                false,
                &key,
            ),
        ),
        keeps(
            R::SignatureHeader,
            "iat-fraction",
            "A NumericDate may have a fraction.",
            signed(&header(&json!({ "iat": 1_767_225_600.25 })), false, &key),
        ),
        breaks(
            R::SignatureHeader,
            "iat-negative",
            "Nobody signed before 1970.",
            signed(&header(&json!({ "iat": -0.5 })), false, &key),
        ),
        breaks(R::SignatureHeader, "no-kid", "Whose key is it?", signed(r#"{"alg":"EdDSA"}"#, false, &key)),
        breaks(
            R::SignatureHeader,
            "no-alg",
            "An algorithm is named, not guessed.",
            signed(r#"{"kid":"key-1"}"#, false, &key),
        ),
        breaks(
            R::SignatureHeader,
            "duplicate-alg",
            "One reader sees none, another EdDSA.",
            signed(r#"{"alg":"none","alg":"EdDSA","kid":"key-1"}"#, false, &key),
        ),
        breaks(R::SignatureHeader, "not-json", "The header is no JSON.", signed("alg=EdDSA", false, &key)),
        breaks(R::SignatureHeader, "array", "The header is an object.", signed("[]", false, &key)),
    ];
    for (name, value) in [
        ("jwk", json!({ "kty": "OKP", "crv": "Ed25519", "x": BASE64URL_NOPAD.encode(key.public_key().x()) })),
        ("jku", json!("https://attacker.example/jwks.json")),
        ("x5u", json!("https://attacker.example/cert.pem")),
        ("x5c", json!(["MII="])),
        ("crit", json!(["exp"])),
        ("b64", json!(false)),
        ("zip", json!("DEF")),
        ("cty", json!("json")),
    ] {
        let statement = signed(&header(&json!({ name: value })), false, &key);
        let why = "It chooses a key, changes what is verified, or is not known here.";
        cases.push(breaks(R::SignatureHeader, &format!("with-{name}"), why, statement));
    }
    for (name, value) in [("iat", json!("now")), ("jti", json!(7)), ("aud", json!(["a"])), ("req", json!(1))]
    {
        let statement = signed(&header(&json!({ name: value })), false, &key);
        cases.push(breaks(
            R::SignatureHeader,
            &format!("{name}-type"),
            "A known member of another type.",
            statement,
        ));
    }
    cases.push(keeps(
        R::SignatureAlgorithm,
        "fully-specified",
        "Ed25519 is RFC 9864's name for the same.",
        signed(&header(&json!({ "alg": "Ed25519" })), false, &key),
    ));
    for alg in ["none", "HS256", "RS256", "ES384", "eddsa"] {
        let statement = signed(&header(&json!({ "alg": alg })), false, &key);
        let name = format!("alg-{}", alg.to_lowercase());
        cases.push(breaks(R::SignatureAlgorithm, &name, "An algorithm outside the profile.", statement));
    }
    cases
}

fn payload_cases() -> Vec<Case> {
    let key = gateway();
    let other = {
        let payload = canonical(&with(verdict_json(), "/verdict", json!("denied")));
        let [header, payload] =
            [header(&json!({})).into_bytes(), payload].map(|part| BASE64URL_NOPAD.encode(&part));
        let signature = key.sign(format!("{header}.{payload}").as_bytes()).unwrap();
        format!("{header}.{payload}.{}", BASE64URL_NOPAD.encode(&signature))
    };
    let large = |number: &str| {
        let verdict = with(verdict_json(), "/result", json!({ "n": 0 }));
        let text =
            String::from_utf8(text_with(&signed_verdict_json(&verdict), "\"n\":0", "\"n\":0")).unwrap();
        sign(text.replacen("\"n\":0", &format!("\"n\":{number}"), 1))
    };
    vec![
        keeps(
            R::SignaturePayload,
            "attached",
            "The same bytes, attached.",
            signed(&header(&json!({})), true, &key),
        ),
        breaks(R::SignaturePayload, "another", "A good signature over another Verdict.", put(&other)),
        keeps(R::NotCanonical, "zero", "0 is 0 in canonical JSON.", large("0")),
        breaks(
            R::NotCanonical,
            "beyond-double",
            "Canonical JSON would sign …992 as well.",
            large("9007199254740993"),
        ),
        breaks(R::NotCanonical, "minus-zero", "Canonical JSON has no -0.", large("-0")),
        keeps(
            R::NotCanonical,
            "unsigned",
            "Nobody signed it, so nobody is misquoted.",
            sign(text_with(
                &with(verdict_json(), "/result", json!({ "n": 0 })),
                "\"n\":0",
                "\"n\":9007199254740993",
            )),
        ),
    ]
}

fn key_cases() -> Vec<Case> {
    let key = gateway();
    let thumbprint = key.public_key().jwk_thumbprint();
    let required = json!({ "vap_verdict": { "require_signature": true } });
    let tampered = changed(good(), |verdict| verdict["verdict"] = json!("denied"));
    vec![
        keeps(R::SignatureKey, "by-kid", "The kid that the policy lists.", sign(canonical(&good()))),
        keeps(
            R::SignatureKey,
            "by-thumbprint",
            "A key is also called by its RFC 7638 thumbprint.",
            signed(&header(&json!({ "kid": thumbprint })), false, &key),
        ),
        breaks(
            R::SignatureKey,
            "unlisted",
            "A good signature of a key that the policy does not list.",
            signed(&header(&json!({ "kid": "key-2" })), false, &ed25519([7; 32])),
        ),
        breaks(
            R::SignatureKey,
            "nobody-listed",
            "The policy lists no verifier at all.",
            sign(canonical(&good())),
        )
        .options(json!({ "vap_verdict": { "verifier": [] } })),
        keeps(R::Signature, "es256", "A verifier with a P-256 key.", es256_signed())
            .options(json!({ "vap_verdict": { "verifier": [es256_verifier()] } })),
        breaks(
            R::Signature,
            "another-key",
            "The listed kid, signed with somebody else's key.",
            signed(&header(&json!({})), false, &ed25519([7; 32])),
        ),
        breaks(
            R::Signature,
            "tampered",
            "Served became denied after it was signed.",
            sign(canonical(&tampered)),
        ),
        breaks(
            R::Signature,
            "key-of-another-algorithm",
            "ES256 does not go with an Ed25519 key.",
            signed(&header(&json!({ "alg": "ES256" })), false, &key),
        ),
        keeps(R::SignatureRequired, "signed", "It is signed.", sign(canonical(&good())))
            .options(required.clone()),
        breaks(R::SignatureRequired, "unsigned", "It is not signed.", sign(canonical(&verdict_json())))
            .options(required),
        keeps(
            R::SignatureRequired,
            "not-asked-for",
            "The policy does not ask.",
            sign(canonical(&verdict_json())),
        ),
    ]
}

fn es256_verifier() -> Value {
    json!({ "id": "other", "keys": [{ "key": testkit::es256().public_key().did_key(), "kid": "p256" }] })
}

/// ES256 signatures differ from run to run: this one was made once.
fn es256_signed() -> Vec<u8> {
    put(include_str!("es256.jws").trim_end())
}
