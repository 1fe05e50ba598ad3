//! `vectors/vap`, `vectors/jwk-set`, `vectors/erasure` and `vectors/operator`: for every rule a statement that keeps it and statements that break it and nothing
//! else.
//!
//! The files are the contract, readable by any implementation; `cases` says how they were made. After a change there, write
//! them again with `WRITE_VECTORS=1 cargo test -p registration --test vap_vectors`.

#![allow(clippy::unwrap_used)]

mod cases;
#[path = "../vectors/mod.rs"]
mod vectors;

use std::path::PathBuf;

use data_encoding::HEXLOWER;
use registration::erasure::ErasureRule;
use registration::jwk_set::JwkSetRule;
use registration::operator::OperatorRule;
use registration::vap::{AuditRule, VerdictRule};
use registration::{Permit, Violation};
use serde_json::{Value, json};
use vectors::Log;

const PROFILES: &[&str] = &["vap", "jwk-set", "erasure", "operator"];

/// One file.
#[derive(Clone)]
pub struct Case {
    rule: Rule,
    /// The file's name.
    name: String,
    why: String,
    /// Whether the statement keeps the rule.
    keeps: bool,
    statement: Vec<u8>,
    /// What came beside it, if it is detached.
    payload: Option<Vec<u8>>,
    /// Options of the type's rule that are not those of the tests' policy.
    options: Value,
    /// What the log holds already.
    log: Vec<Vec<u8>>,
    /// The log's time.
    at: u64,
}

/// A rule of one of the profiles.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub struct Rule {
    folder: &'static str,
    name: &'static str,
    reading: &'static str,
    section: &'static str,
}

macro_rules! rule_of {
    ($($rules:ident in $folder:literal),+) => {
        $(impl From<$rules> for Rule {
            fn from(rule: $rules) -> Rule {
                Rule { folder: $folder, name: rule.name(), reading: rule.reading(), section: rule.section() }
            }
        })+

        impl Rule {
            fn all() -> Vec<Rule> {
                let mut all = Vec::new();
                $(all.extend($rules::ALL.iter().map(|rule| Rule::from(*rule)));)+
                all
            }
        }
    };
}

rule_of!(VerdictRule in "vap", AuditRule in "vap", JwkSetRule in "jwk-set", ErasureRule in "erasure", OperatorRule in "operator");

impl Case {
    fn path(&self) -> PathBuf {
        vectors::path(self.rule.folder, self.rule.name, &self.name)
    }

    fn to_json(&self) -> Value {
        let mut vector = json!({
            "rule": self.rule.name,
            "reading": self.rule.reading,
            "section": self.rule.section,
            "why": self.why,
            "expected": if self.keeps { "admit" } else { "refuse" },
            "options": self.options,
            "at": self.at,
            "log": self.log.iter().map(|statement| HEXLOWER.encode(statement)).collect::<Vec<_>>(),
            "statement": HEXLOWER.encode(&self.statement),
        });
        if let Some(payload) = &self.payload {
            vector["payload"] = HEXLOWER.encode(payload).into();
        }
        vector
    }
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
    let policy = match vector["options"].get("operator_actions") {
        Some(required) => cases::of_two_operators(required),
        None => policy,
    };
    Log::of(vector, policy).decide(vector)
}

#[test]
fn every_vector_is_admitted_or_refused_by_the_rule_it_names() {
    vectors::must_fare_as_they_say(&vectors::files(PROFILES), register);
}

#[test]
fn every_rule_has_a_vector_that_keeps_it_and_one_that_breaks_it() {
    let rules = Rule::all().into_iter().map(|rule| (rule.name, vectors::BOTH));
    vectors::must_show_every_rule(&vectors::files(PROFILES), rules);
}

#[test]
fn the_files_are_those_the_cases_make() {
    let cases = cases::all().iter().map(|case| (case.path(), case.to_json())).collect();
    vectors::must_be_what_the_cases_make(PROFILES, cases);
}
