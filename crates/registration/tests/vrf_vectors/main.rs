//! `vectors/vrf`: for every rule a statement that keeps it and statements that break it and nothing else.
//!
//! The files are the contract, readable by any implementation. `vectors/sources` describes how they are made; after a change
//! there, write them again with `WRITE_VECTORS=1 cargo test -p registration --test vrf_vectors`.

#![allow(clippy::unwrap_used)]

#[path = "../vectors/mod.rs"]
mod vectors;

use registration::vrf::{VrfRedacted, VrfRule};
use registration::{Permit, Violation};
use serde_json::Value;
use vectors::Log;

const PROFILES: &[&str] = &["vrf"];

/// Registers as a log would, whose time and contents the vector gives; then checks what is disclosed.
fn register(vector: &Value) -> Result<Permit, Violation> {
    let policy = vectors::policy(|content_type, rule| {
        if content_type.contains("vrf") {
            rule.insert("vrf".to_owned(), toml::Value::try_from(&vector["options"]).unwrap());
            rule.insert("issuers".to_owned(), vec!["did:key:*", "did:jwk:*"].into());
        }
    });
    let permit = Log::of(vector, policy).decide(vector)?;
    if let Some(disclosed) = vector.get("disclosed") {
        let redacted = VrfRedacted::verify(&vectors::statement(&vector["statement"]), None)?;
        redacted.disclose(&vectors::bytes(disclosed))?;
    }
    Ok(permit)
}

#[test]
fn every_vector_is_admitted_or_refused_by_the_rule_it_names() {
    vectors::must_fare_as_they_say(&vectors::files(PROFILES), register);
}

#[test]
fn every_rule_has_a_vector_that_keeps_it_and_one_that_breaks_it() {
    let rules = VrfRule::ALL.iter().map(|rule| (rule.name(), vectors::BOTH));
    vectors::must_show_every_rule(&vectors::files(PROFILES), rules);
}

#[test]
fn the_files_are_those_the_sources_describe() {
    testkit::vectors::assert_match_sources("vrf", |name| {
        let rule = VrfRule::ALL.iter().find(|rule| rule.name() == name)?;
        Some((rule.reading(), rule.section()))
    });
}
