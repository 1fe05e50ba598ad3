//! JWK Sets (`application/jwk-set+json`, RFC 7517, section 5) of public signature keys.
//!
//! A gateway registers its verdict keys in this form, so that its signatures can be verified after the keys are no
//! longer published. Parsing is strict: every key is a supported public key with a unique `kid`.
//!
//! Not here: the purpose and validity of keys (`use`, `key_ops` and validity are kept and not checked).

mod profile;

use std::collections::HashSet;

use jose::json::{self, JsonErrorKind};
use jose::jwk::{JwkError, PublicJwk};
use jose::members::quote;
use scitt::PublicKey;
use serde_json::Value;

pub(crate) use profile::JwkSetProfile;

use crate::limits::{JSON_DEPTH, MAX_JWK_SET_KEYS};
use crate::rule::rules;
use crate::violation::Violation;

/// The content type of a JWK Set.
pub const JWK_SET: &str = "application/jwk-set+json";

/// Members of a private or symmetric key of any type (RFC 7518, section 6; RFC 8037).
const PRIVATE: [&str; 8] = ["d", "p", "q", "dp", "dq", "qi", "oth", "k"];

rules! {
    /// Rules of a JWK Set.
    JwkSetRule {
        /// The payload is strict JSON: one object, no member twice, nothing after it.
        Json = "jwk-set-json", reading "-", section "5";
        /// `keys` is a list of 1 to 100 objects.
        Keys = "jwk-set-keys", reading "-", section "5.1";
        /// No key holds private or symmetric material.
        Private = "jwk-set-private", reading "-", section "9.2";
        /// Every key is a supported public signature key: Ed25519, P-256, P-384 or P-521, a point on its curve.
        Key = "jwk-set-key", reading "-", section "4";
        /// Every key has a `kid`, and all are different.
        Kid = "jwk-set-kid", reading "-", section "4.5";
    }
}

/// A JWK Set that keeps every [`JwkSetRule`].
#[derive(Clone, Debug, PartialEq)]
pub struct JwkSetRecord {
    keys: Vec<PublicKey>,
    kids: Vec<String>,
    document: Value,
}

impl JwkSetRecord {
    /// Parses a payload.
    pub fn read(payload: &[u8]) -> Result<JwkSetRecord, Violation> {
        let limits = json::Limits { depth: JSON_DEPTH, ..json::Limits::default() };
        let document = json::parse_strict(payload, limits).map_err(|error| {
            let offset = error.offset;
            let kind = match &error.kind {
                JsonErrorKind::Duplicate(name) => format!("a second member named {}", quote(name)),
                kind => kind.to_string(),
            };
            JwkSetRule::Json.in_payload(error.pointer.clone(), format!("{kind} at byte {offset} of the JSON"))
        })?;
        let items = items(&document)?;
        let mut keys = Vec::with_capacity(items.len());
        let mut kids = Vec::with_capacity(items.len());
        let mut seen = HashSet::new();
        for (i, item) in items.iter().enumerate() {
            let (key, kid) = key(item, i)?;
            if !seen.insert(kid.clone()) {
                let detail = format!("a second key named {}", quote(&kid));
                return Err(JwkSetRule::Kid.in_payload(format!("/keys/{i}/kid"), detail));
            }
            keys.push(key);
            kids.push(kid);
        }
        Ok(JwkSetRecord { keys, kids, document })
    }

    /// The public keys, in the order of the set.
    pub fn keys(&self) -> &[PublicKey] {
        &self.keys
    }

    /// The `kid` values, in the order of the keys.
    pub fn kids(&self) -> &[String] {
        &self.kids
    }
}

fn items(document: &Value) -> Result<&[Value], Violation> {
    let Some(members) = document.as_object() else {
        return Err(JwkSetRule::Json.in_payload("", "the payload is not an object"));
    };
    match members.get("keys").and_then(Value::as_array) {
        Some(items) if (1..=MAX_JWK_SET_KEYS).contains(&items.len()) => Ok(items),
        _ => {
            let detail = format!("a list of 1 to {MAX_JWK_SET_KEYS} keys is needed here");
            Err(JwkSetRule::Keys.in_payload("/keys", detail))
        }
    }
}

fn key(item: &Value, i: usize) -> Result<(PublicKey, String), Violation> {
    let at = |name: &str| format!("/keys/{i}{name}");
    let Some(members) = item.as_object() else {
        return Err(JwkSetRule::Keys.in_payload(at(""), "a key is an object"));
    };
    if let Some(name) = PRIVATE.into_iter().find(|name| members.contains_key(*name)) {
        let detail = "private key material: treat it as compromised";
        return Err(JwkSetRule::Private.in_payload(at(&format!("/{name}")), detail));
    }
    let jwk = PublicJwk::from_value(item).map_err(|error| {
        let rule = if error == JwkError::Private { JwkSetRule::Private } else { JwkSetRule::Key };
        rule.in_payload(at(""), error.to_string())
    })?;
    let key =
        PublicKey::from_jwk(&jwk).map_err(|error| JwkSetRule::Key.in_payload(at(""), error.to_string()))?;
    match jwk.kid().filter(|kid| !kid.is_empty()) {
        Some(kid) => Ok((key, kid.to_owned())),
        None => Err(JwkSetRule::Kid.in_payload(at("/kid"), "every key of a published set has a name")),
    }
}
