//! `vectors/vap`, `vectors/jwk-set`, `vectors/erasure`, `vectors/operator` and `vectors/index-head`: for every rule a statement that keeps it and
//! statements that break it and nothing else.
//!
//! The files are the contract, readable by any implementation. `vectors/sources` describes how they are made; after a change
//! there, write them again with `WRITE_VECTORS=1 cargo test -p registration --test vap_vectors`.

#![allow(clippy::unwrap_used)]

#[path = "../vectors/mod.rs"]
mod vectors;

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
use vectors::Log;

const PROFILES: &[&str] = &["vap", "jwk-set", "erasure", "operator", "index-head"];

/// Name, reading and section of every rule.
fn rules() -> Vec<(&'static str, &'static str, &'static str)> {
    let mut all = Vec::new();
    all.extend(VerdictRule::ALL.iter().map(|rule| (rule.name(), rule.reading(), rule.section())));
    all.extend(AuditRule::ALL.iter().map(|rule| (rule.name(), rule.reading(), rule.section())));
    all.extend(JwkSetRule::ALL.iter().map(|rule| (rule.name(), rule.reading(), rule.section())));
    all.extend(ErasureRule::ALL.iter().map(|rule| (rule.name(), rule.reading(), rule.section())));
    all.extend(IndexHeadRule::ALL.iter().map(|rule| (rule.name(), rule.reading(), rule.section())));
    all.extend(OperatorRule::ALL.iter().map(|rule| (rule.name(), rule.reading(), rule.section())));
    all
}

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
    let policy = vectors::policy(|content_type, rule| {
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

#[test]
fn every_vector_is_admitted_or_refused_by_the_rule_it_names() {
    vectors::must_fare_as_they_say(&vectors::files(PROFILES), register);
}

#[test]
fn every_rule_has_a_vector_that_keeps_it_and_one_that_breaks_it() {
    let rules = rules().into_iter().map(|(name, ..)| (name, vectors::BOTH));
    vectors::must_show_every_rule(&vectors::files(PROFILES), rules);
}

#[test]
fn the_files_are_those_the_sources_describe() {
    let rules = rules();
    for family in PROFILES {
        testkit::vectors::assert_match_sources(family, |wanted| {
            let (_, reading, section) = rules.iter().find(|(name, ..)| *name == wanted)?;
            Some((reading, section))
        });
    }
}
