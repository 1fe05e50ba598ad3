//! `vectors/agentroa-registry` and `vectors/agentroa-policy`: for every rule a statement that keeps it and statements that
//! break it and nothing else.
//!
//! The files are the contract, readable by any implementation. `vectors/sources` describes how they are made; after a
//! change there, write them again with `WRITE_VECTORS=1 cargo test -p registration --test agentroa_vectors`.

#![allow(clippy::unwrap_used)]

#[path = "../vectors/mod.rs"]
mod vectors;

use registration::agentroa::{AGENTROA_POLICY, AGENTROA_REGISTRY, PolicyDocumentRule, RegistryRule};
use registration::{Permit, Policy, Violation};
use serde_json::Value;
use vectors::Log;

const PROFILES: &[&str] = &["agentroa-registry", "agentroa-policy"];

/// Name, reading and section of every rule.
fn rules() -> Vec<(&'static str, &'static str, &'static str)> {
    let registry = RegistryRule::ALL.iter().map(|rule| (rule.name(), rule.reading(), rule.section()));
    let policy = PolicyDocumentRule::ALL.iter().map(|rule| (rule.name(), rule.reading(), rule.section()));
    registry.chain(policy).collect()
}

/// The tests' policy with the types of AgentROA, and the options of a vector.
fn policy(options: &Value) -> Policy {
    let mut document: toml::Table = toml::from_str(&testkit::policy_toml()).unwrap();
    let types = document["type"].as_array_mut().unwrap();
    for content_type in [AGENTROA_REGISTRY, AGENTROA_POLICY] {
        let mut rule = toml::Table::new();
        rule.insert("content_type".into(), content_type.into());
        if content_type == AGENTROA_REGISTRY {
            rule.insert("agentroa_registry".into(), toml::Value::try_from(options).unwrap());
        }
        types.push(rule.into());
    }
    Policy::from_toml(&document.to_string()).unwrap()
}

/// Registers as a log would, whose time and contents the vector gives.
fn register(vector: &Value) -> Result<Permit, Violation> {
    Log::of(vector, policy(&vector["options"])).decide(vector)
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
