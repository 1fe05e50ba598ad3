//! Key sets.

use registration::jwk_set::{JWK_SET, JwkSetRule as R};
use scitt::Signer;
use serde_json::{Value, json};
use testkit::{GATEWAY, ed25519, es256, es384, jwk_set_json};

use super::{breaks, canonical, keeps, statement, text_with, with, without};
use crate::Case;

fn sign(payload: impl Into<Vec<u8>>) -> Vec<u8> {
    statement(JWK_SET, GATEWAY, payload)
}

fn key(key: &dyn Signer, kid: &str) -> Value {
    with(key.public_key().to_jwk().to_value(), "/kid", json!(kid))
}

fn set(keys: Vec<Value>) -> Vec<u8> {
    sign(canonical(&json!({ "keys": keys })))
}

fn first_with(name: &str, value: Value) -> Vec<u8> {
    sign(canonical(&with(jwk_set_json(), &format!("/keys/0/{name}"), value)))
}

pub fn cases() -> Vec<Case> {
    let good = jwk_set_json();
    let many = |n: u8| set((0..n).map(|i| key(&ed25519([i + 1; 32]), &format!("k{i}"))).collect());
    let first = || good["keys"][0].clone();
    let mut cases = vec![
        keeps(R::Json, "set", "A set as a gateway publishes it.", sign(canonical(&good))),
        keeps(
            R::Json,
            "unknown-member",
            "Members of a set that nobody knows are kept.",
            sign(canonical(&with(good.clone(), "/x", json!(1)))),
        ),
        breaks(R::Json, "array", "A set is an object.", sign(b"[]".to_vec())),
        breaks(
            R::Json,
            "duplicate",
            "One reader sees one set, another the other.",
            sign(text_with(&good, "{\"keys\"", "{\"keys\":[],\"keys\"")),
        ),
        breaks(
            R::Json,
            "trailing",
            "Something after the set.",
            sign([canonical(&good), b",".to_vec()].concat()),
        ),
        keeps(R::Keys, "hundred", "As many keys as there may be.", many(100)),
        breaks(R::Keys, "hundred-and-one", "One too many.", many(101)),
        breaks(R::Keys, "none", "A set without a key.", set(Vec::new())),
        breaks(R::Keys, "missing", "An object that is no set.", sign(b"{}".to_vec())),
        breaks(R::Keys, "text", "A key is an object.", set(vec![json!("key")])),
        keeps(R::Private, "public", "Public keys only.", sign(canonical(&good))),
        breaks(
            R::Private,
            "symmetric",
            "A symmetric key is nobody's to publish.",
            set(vec![json!({ "kty": "oct", "k": "AAAA", "kid": "s" })]),
        ),
        keeps(
            R::Key,
            "curves",
            "Keys of every curve.",
            set(vec![first(), key(&es256(), "b"), key(&es384(), "c")]),
        ),
        keeps(R::Key, "use", "What a key is for is kept.", first_with("use", json!("sig"))),
        breaks(
            R::Key,
            "rsa",
            "No signature of ours is RSA.",
            set(vec![json!({ "kty": "RSA", "n": "AQAB", "e": "AQAB", "kid": "r" })]),
        ),
        breaks(R::Key, "short", "Not the length of its curve.", first_with("x", json!("AAAA"))),
        breaks(
            R::Key,
            "off-curve",
            "A point that is not on its curve.",
            set(vec![with(key(&es256(), "b"), "/y", json!("AAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAA"))]),
        ),
        breaks(
            R::Key,
            "small-order",
            "A key under which any signature verifies.",
            first_with("x", json!("AQAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAA")),
        ),
        keeps(R::Kid, "distinct", "Two keys, two names.", set(vec![first(), key(&es256(), "b")])),
        breaks(R::Kid, "twice", "Two keys of one name.", set(vec![first(), key(&es256(), testkit::KID)])),
        breaks(
            R::Kid,
            "missing",
            "A key without a name.",
            sign(canonical(&without(good.clone(), "/keys/0/kid"))),
        ),
        breaks(R::Kid, "empty", "An empty name.", first_with("kid", json!(""))),
    ];
    for name in ["d", "p", "q", "dp", "dq", "qi", "oth", "k"] {
        let why = "Private key material, whatever the key's type.";
        cases.push(breaks(R::Private, &format!("with-{name}"), why, first_with(name, json!("AAAA"))));
    }
    cases
}
