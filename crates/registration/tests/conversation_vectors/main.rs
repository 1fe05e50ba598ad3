//! `vectors/conversation`: for every rule a record that keeps it and records that break it and nothing else, in JSON and CBOR.
//!
//! The files are the contract, readable by any implementation. `vectors/sources` describes how they are made; after a change
//! there, write them again with `WRITE_VECTORS=1 cargo test -p registration --test conversation_vectors`.

#![allow(clippy::unwrap_used)]

#[path = "../vectors/mod.rs"]
mod vectors;

use registration::conversation::ConversationRule;
use registration::{Permit, Violation};
use serde_json::Value;
use vectors::Log;

const PROFILES: &[&str] = &["conversation"];

/// Registers under a policy with the vector's options, in which no type is for plain JSON when records come so.
fn register(vector: &Value) -> Result<Permit, Violation> {
    let policy = vectors::policy_of(
        |content_type| content_type != "application/json",
        |content_type, rule| {
            if content_type.contains("conversation") {
                rule.insert("conversation".to_owned(), toml::Value::try_from(&vector["options"]).unwrap());
            }
        },
    );
    Log::of(vector, policy).decide(vector)
}

#[test]
fn every_vector_is_admitted_or_refused_by_the_rule_it_names() {
    vectors::must_fare_as_they_say(&vectors::files(PROFILES), register);
}

#[test]
fn every_rule_has_a_vector_that_keeps_it_and_one_that_breaks_it() {
    // A record of a million values is too large for a file: `tests/conversation_hostile.rs` makes one.
    let wanted = |rule: ConversationRule| match rule {
        ConversationRule::Items => &["admit"][..],
        _ => vectors::BOTH,
    };
    let rules = ConversationRule::ALL.iter().map(|rule| (rule.name(), wanted(*rule)));
    vectors::must_show_every_rule(&vectors::files(PROFILES), rules);
}

#[test]
fn the_files_are_those_the_sources_describe() {
    testkit::vectors::assert_match_sources("conversation", |name| {
        let rule = ConversationRule::ALL.iter().find(|rule| rule.name() == name)?;
        Some((rule.reading(), rule.section()))
    });
}
