//! `vectors/conversation`: for every rule a record that keeps it and records that break it and nothing else, in JSON and CBOR.
//!
//! The files are the contract, readable by any implementation; `cases` says how they were made. After a change there, write
//! them again with `WRITE_VECTORS=1 cargo test -p registration --test conversation_vectors`.

#![allow(clippy::unwrap_used)]

mod cases;
mod draft;
#[path = "../vectors/mod.rs"]
mod vectors;

use std::path::PathBuf;

use data_encoding::HEXLOWER;
use registration::conversation::ConversationRule;
use registration::{Permit, Violation};
use serde_json::{Value, json};
use vectors::Log;

const PROFILES: &[&str] = &["conversation"];

/// One file.
#[derive(Clone)]
pub struct Case {
    rule: ConversationRule,
    /// The file's name.
    name: &'static str,
    why: &'static str,
    /// Whether the statement keeps the rule.
    keeps: bool,
    /// With its unprotected header.
    statement: Vec<u8>,
    /// Conversation options of the policy that are not the default.
    options: Value,
}

impl Case {
    fn path(&self) -> PathBuf {
        vectors::path("conversation", self.rule.name(), self.name)
    }

    fn to_json(&self) -> Value {
        json!({
            "rule": self.rule.name(),
            "reading": self.rule.reading(),
            "section": self.rule.section(),
            "why": self.why,
            "expected": if self.keeps { "admit" } else { "refuse" },
            "options": self.options,
            "statement": HEXLOWER.encode(&self.statement),
        })
    }
}

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
fn the_files_are_those_the_cases_make() {
    let cases = cases::all().iter().map(|case| (case.path(), case.to_json())).collect();
    vectors::must_be_what_the_cases_make(PROFILES, cases);
}
