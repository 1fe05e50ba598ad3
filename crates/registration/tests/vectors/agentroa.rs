//! `vectors/agentroa-registry`, `vectors/agentroa-policy` and `vectors/agentroa-chain`.

use registration::aer::AER_JSON;
use registration::agentroa::{
    AGENTROA_CHAIN, AGENTROA_POLICY, AGENTROA_REGISTRY, ChainRule, PolicyDocumentRule, RegistryRule,
};
use registration::{Permit, Policy, Violation};
use serde_json::Value;

use crate::decided::Log;

const FAMILIES: &[&str] = &["agentroa-registry", "agentroa-policy", "agentroa-chain"];

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

tests_of_vectors!(FAMILIES, rules_of!(RegistryRule, PolicyDocumentRule, ChainRule), register);
