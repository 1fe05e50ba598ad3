//! `vectors/vap`, `vectors/jwk-set`, `vectors/erasure`, `vectors/operator` and `vectors/index-head`.

use registration::erasure::ErasureRule;
use registration::index_head::IndexHeadRule;
use registration::jwk_set::JwkSetRule;
use registration::operator::OperatorRule;
use registration::{Permit, Policy, Violation};
use scitt::Signer;
use serde_json::Value;
use testkit::verifier;
use vap::audit::AuditRule;
use vap::verdict::VerdictRule;

use crate::decided::{self, Log};

const FAMILIES: &[&str] = &["vap", "jwk-set", "erasure", "operator", "index-head"];

/// The tests' policy with a second operator, and so many required.
fn of_two_operators(required: &Value) -> Policy {
    let mut document: toml::Table = toml::from_str(&testkit::policy_toml()).unwrap();
    let mut second = toml::Table::new();
    second.insert("key".into(), verifier().public_key().did_key().into());
    document["operator"].as_array_mut().unwrap().push(second.into());
    document.insert("operator_actions".into(), toml::Value::try_from(required).unwrap());
    Policy::from_toml(&document.to_string()).unwrap()
}

/// The tests' policy with these rules for the search index.
fn with_index(rules: &Value) -> Policy {
    let mut document: toml::Table = toml::from_str(&testkit::policy_toml()).unwrap();
    document.insert("index".into(), toml::Value::try_from(rules).unwrap());
    Policy::from_toml(&document.to_string()).unwrap()
}

/// Registers as a log would, whose time and contents the vector gives.
fn register(vector: &Value) -> Result<Permit, Violation> {
    let policy = decided::policy(|content_type, rule| {
        let table = match content_type {
            "application/vap-verdict+json" => "vap_verdict",
            "application/vap-audit+json" => "vap_audit",
            _ => return,
        };
        let Some(options) = vector["options"].get(table) else { return };
        let entry = rule.entry(table).or_insert_with(|| toml::Value::Table(toml::Table::new()));
        for (name, value) in options.as_object().unwrap() {
            let value = toml::Value::try_from(value).unwrap();
            entry.as_table_mut().unwrap().insert(name.clone(), value);
        }
    });
    let options = &vector["options"];
    let policy = match (options.get("operator_actions"), options.get("index")) {
        (Some(required), _) => of_two_operators(required),
        (None, Some(rules)) => with_index(rules),
        (None, None) => policy,
    };
    Log::of(vector, policy).decide(vector)
}

tests_of_vectors!(
    FAMILIES,
    rules_of!(VerdictRule, AuditRule, JwkSetRule, ErasureRule, IndexHeadRule, OperatorRule),
    register
);
