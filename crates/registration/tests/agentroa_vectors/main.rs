//! `vectors/agentroa-registry`, `vectors/agentroa-policy` and `vectors/agentroa-chain`: for every rule a statement that keeps it and statements that
//! break it and nothing else.
//!
//! The files are the contract, readable by any implementation. `vectors/sources` describes how they are made; after a
//! change there, write them again with `WRITE_VECTORS=1 cargo test -p registration --test agentroa_vectors`.

#![allow(clippy::unwrap_used)]

#[path = "../vectors/mod.rs"]
mod vectors;

use registration::aer::AER_JSON;
use registration::agentroa::{
    AGENTROA_CHAIN, AGENTROA_POLICY, AGENTROA_REGISTRY, ChainRule, PolicyDocumentRule, RegistryRule,
};
use registration::{Permit, Policy, Violation};
use serde_json::Value;
use vectors::Log;

const PROFILES: &[&str] = &["agentroa-registry", "agentroa-policy", "agentroa-chain"];

/// Name, reading and section of every rule.
fn rules() -> Vec<(&'static str, &'static str, &'static str)> {
    let registry = RegistryRule::ALL.iter().map(|rule| (rule.name(), rule.reading(), rule.section()));
    let policy = PolicyDocumentRule::ALL.iter().map(|rule| (rule.name(), rule.reading(), rule.section()));
    let chain = ChainRule::ALL.iter().map(|rule| (rule.name(), rule.reading(), rule.section()));
    registry.chain(policy).chain(chain).collect()
}

/// The tests' policy with the types of AgentROA, and the options of a vector for the type whose options decide: those of chains
/// are the options of execution receipts.
fn policy(vector: &Value) -> Policy {
    let is_of_chains = vector["rule"].as_str().unwrap().starts_with("agentroa-chain");
    let decisive = if is_of_chains { AER_JSON } else { AGENTROA_REGISTRY };
    let mut document: toml::Table = toml::from_str(&testkit::policy_toml()).unwrap();
    let types = document["type"].as_array_mut().unwrap();
    let ours = [AER_JSON, AGENTROA_CHAIN, AGENTROA_REGISTRY, AGENTROA_POLICY];
    types.retain(|rule| !ours.contains(&rule["content_type"].as_str().unwrap()));
    for content_type in ours {
        let mut rule = toml::Table::new();
        rule.insert("content_type".into(), content_type.into());
        if content_type == decisive {
            let table = if is_of_chains { "aer" } else { "agentroa_registry" };
            rule.insert(table.into(), toml::Value::try_from(&vector["options"]).unwrap());
        }
        types.push(rule.into());
    }
    Policy::from_toml(&document.to_string()).unwrap()
}

/// Registers as a log would, whose time and contents the vector gives.
fn register(vector: &Value) -> Result<Permit, Violation> {
    Log::of(vector, policy(vector)).decide(vector)
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
