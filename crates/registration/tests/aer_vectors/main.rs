//! `vectors/aer`: for every rule a statement that keeps it and statements that break it and nothing else.
//!
//! The files are the contract, readable by any implementation; `cases` says how they were made. After a change there, write
//! them again with `WRITE_VECTORS=1 cargo test -p registration --test aer_vectors`.

#![allow(clippy::unwrap_used)]

mod cases;
mod draft;
#[path = "../vectors/mod.rs"]
mod vectors;

use std::path::PathBuf;

use data_encoding::HEXLOWER;
use registration::aer::AerRule;
use registration::{Permit, Violation};
use serde_json::{Value, json};
use vectors::Log;

const PROFILES: &[&str] = &["aer"];

/// One file.
#[derive(Clone)]
pub struct Case {
    rule: AerRule,
    /// The file's name.
    name: &'static str,
    why: &'static str,
    /// Whether the statement keeps the rule.
    keeps: bool,
    statement: Vec<u8>,
    /// The policy's table `[type.aer]`.
    options: Value,
    /// What the log holds already.
    log: Vec<Vec<u8>>,
    /// The log's time.
    at: u64,
}

impl Case {
    fn path(&self) -> PathBuf {
        vectors::path("aer", self.rule.name(), self.name)
    }

    fn to_json(&self) -> Value {
        json!({
            "rule": self.rule.name(),
            "reading": self.rule.reading(),
            "section": self.rule.section(),
            "why": self.why,
            "expected": if self.keeps { "admit" } else { "refuse" },
            "options": self.options,
            "at": self.at,
            "log": self.log.iter().map(|statement| HEXLOWER.encode(statement)).collect::<Vec<_>>(),
            "statement": HEXLOWER.encode(&self.statement),
        })
    }
}

/// Registers as a log would, whose time and contents the vector gives.
fn register(vector: &Value) -> Result<Permit, Violation> {
    let policy = vectors::policy(|content_type, rule| {
        if content_type.contains("aer") {
            rule.insert("aer".to_owned(), toml::Value::try_from(&vector["options"]).unwrap());
        }
    });
    Log::of(vector, policy).decide(vector)
}

#[test]
fn every_vector_is_admitted_or_refused_by_the_rule_it_names() {
    vectors::must_fare_as_they_say(&vectors::files(PROFILES), register);
}

#[test]
fn every_rule_has_a_vector_that_keeps_it_and_one_that_breaks_it() {
    let rules = AerRule::ALL.iter().map(|rule| (rule.name(), vectors::BOTH));
    vectors::must_show_every_rule(&vectors::files(PROFILES), rules);
}

#[test]
fn the_files_are_those_the_cases_make() {
    let cases = cases::all().iter().map(|case| (case.path(), case.to_json())).collect();
    vectors::must_be_what_the_cases_make(PROFILES, cases);
}
