//! Serialization of policies to canonical JSON, with all settings.
//!
//! The document has the same structure as the operator's TOML, so that one parser reads both. Defaults are written out,
//! so that a later release with other defaults interprets an old policy unchanged.

use data_encoding::BASE64;
use scitt::header::{ContentType, Label};
use serde_json::{Map, Value, json};

use super::log_end::LogEnd;
use super::model::{Anchor, Contents, Issuer, SelfCertified, TypeRule};
use super::required::Required;
use super::{LEAF_RULE, condition, index};
use crate::bound_key::key_document;
use crate::pattern::patterns;
use crate::section::list;
use crate::time_window::rfc3339;

/// Serializes a policy as canonical JSON (RFC 8785).
pub(super) fn payload(contents: &Contents) -> Vec<u8> {
    jose::jcs::canonical(&document(contents))
}

fn document(contents: &Contents) -> Value {
    let mut document = json!({
        "iss": contents.iss,
        "origin": contents.origin,
        "revision": contents.revision,
        "leaf": LEAF_RULE,
        "operator": list(&contents.operators, key_document),
        "issuer": list(&contents.issuers, issuer),
        "did": { "key": self_certified(&contents.did_key), "jwk": self_certified(&contents.did_jwk) },
        "anchor": list(&contents.anchors, anchor),
        "type": list(&contents.types, type_rule),
    });
    // A policy that requires one operator is serialized as in older versions, which had no such setting.
    if contents.required != Required::ONE {
        let named = contents.required.named().into_iter();
        document["operator_actions"] = named.map(|(name, number)| (name.to_owned(), json!(number))).collect();
    }
    if contents.log_end != LogEnd::NEVER {
        document["log"] = log_end(&contents.log_end);
    }
    if let Some(rules) = &contents.index {
        document["index"] = index::document(rules);
    }
    document
}

fn log_end(end: &LogEnd) -> Value {
    let mut document = Map::new();
    if let Some(entries) = end.max_entries {
        document.insert("max_entries".to_owned(), json!(entries));
    }
    if let Some(ends) = end.ends {
        document.insert("ends".to_owned(), json!(rfc3339(ends)));
    }
    Value::Object(document)
}

fn issuer(issuer: &Issuer) -> Value {
    json!({ "iss": issuer.iss, "keys": list(&issuer.keys, key_document) })
}

fn self_certified(rule: &SelfCertified) -> Value {
    match rule {
        SelfCertified::Open => json!("open"),
        SelfCertified::Listed(names) => json!(names),
    }
}

fn anchor(anchor: &Anchor) -> Value {
    let mut document = Map::from_iter([
        ("name".to_owned(), json!(anchor.name)),
        ("roots".to_owned(), list(&anchor.roots, |root| json!(BASE64.encode(root.der())))),
        ("san".to_owned(), json!(anchor.san)),
        ("issuers".to_owned(), patterns(&anchor.issuers)),
    ]);
    if let Some(eku) = &anchor.eku {
        document.insert("eku".to_owned(), json!(eku));
    }
    Value::Object(document)
}

fn type_rule(rule: &TypeRule) -> Value {
    let mut document = Map::from_iter([
        ("name".to_owned(), json!(rule.name)),
        ("content_type".to_owned(), content_type(&rule.content_type)),
        ("issuers".to_owned(), patterns(&rule.issuers)),
        ("algorithms".to_owned(), list(&rule.algorithms, |algorithm| json!(algorithm.name()))),
        ("max_size".to_owned(), json!(rule.max_size)),
        ("detached".to_owned(), json!(rule.detached)),
        ("hash_envelope".to_owned(), json!(rule.hash_envelope)),
        ("claims".to_owned(), list(&rule.claims, |claim| json!(claim.name()))),
        ("headers".to_owned(), list(&rule.headers, label)),
        ("rule".to_owned(), list(&rule.conditions, condition::document)),
        ("keep_payload".to_owned(), json!(rule.keep_payload)),
    ]);
    if let Some(options) = rule.profile.as_dyn().options() {
        document.insert(rule.profile.name().to_owned(), options);
    }
    document.insert("profile".to_owned(), json!(rule.profile.name()));
    if let Some(seconds) = rule.retention {
        document.insert("retention".to_owned(), json!(format!("{seconds}s")));
    }
    Value::Object(document)
}

fn label(label: &Label) -> Value {
    match label {
        Label::Int(number) => json!(number),
        Label::Text(text) => json!(text),
    }
}

fn content_type(name: &ContentType) -> Value {
    match name {
        ContentType::Text(text) => json!(text),
        ContentType::Id(id) => json!(id),
    }
}
