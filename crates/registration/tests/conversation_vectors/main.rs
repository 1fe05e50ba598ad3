//! `vectors/conversation`: for every rule a record that keeps it and records that break it and nothing else, in JSON and CBOR.
//!
//! The files are the contract, readable by any implementation; `cases` says how they were made. After a change there, write
//! them again with `WRITE_VECTORS=1 cargo test -p registration --test conversation_vectors`.

#![allow(clippy::unwrap_used)]

mod cases;
mod draft;

use std::collections::{BTreeMap, BTreeSet};
use std::path::{Path, PathBuf};

use data_encoding::HEXLOWER;
use merkle::LeafIndex;
use registration::conversation::ConversationRule;
use registration::{Answers, Beside, NotPermitted, Permit, Policy, PolicyInForce, Record, Violation};
use scitt::SignedStatement;
use serde_json::{Value, json};

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
        folder().join(self.rule.name()).join(format!("{}.json", self.name))
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

fn folder() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../../vectors/conversation")
}

/// Every file, by its path.
fn files() -> BTreeMap<PathBuf, Value> {
    let folders = std::fs::read_dir(folder()).unwrap().map(|entry| entry.unwrap().path());
    let files = folders.filter(|path| path.is_dir()).flat_map(|rule| std::fs::read_dir(rule).unwrap());
    let read = |path: PathBuf| {
        let text = std::fs::read(&path).unwrap();
        let vector = serde_json::from_slice(&text).unwrap_or_else(|error| panic!("{path:?}: {error}"));
        (path, vector)
    };
    files.map(|file| read(file.unwrap().path())).collect()
}

fn register(vector: &Value) -> Result<Permit, Violation> {
    let in_force = PolicyInForce::new(policy(&vector["options"]), LeafIndex::new(0));
    let bytes = HEXLOWER.decode(vector["statement"].as_str().unwrap().as_bytes()).unwrap();
    let statement = SignedStatement::parse(bytes).unwrap();
    let authenticated =
        in_force.authenticate(&statement, Beside::default()).map_err(|error| error.violation())?;
    let record = Record::read(&authenticated)?;
    match in_force.decide(&authenticated, &record, &Answers::none()).into_permit() {
        Ok(permit) => Ok(permit),
        Err(NotPermitted::Refused(refusal)) => Err(refusal.violation),
        Err(NotPermitted::Undecided(undecided)) => panic!("{undecided}"),
    }
}

/// The tests' policy with these options for conversation records, and no type for plain JSON.
fn policy(options: &Value) -> Policy {
    let mut document: toml::Table = toml::from_str(&testkit::policy_toml()).unwrap();
    let types = document["type"].as_array_mut().unwrap();
    types.retain(|rule| rule["content_type"].as_str() != Some("application/json"));
    for rule in types {
        let rule = rule.as_table_mut().unwrap();
        if rule["content_type"].as_str().unwrap().contains("conversation") {
            rule.insert("conversation".to_owned(), toml::Value::try_from(options).unwrap());
        }
    }
    Policy::from_toml(&document.to_string()).unwrap()
}

#[test]
fn every_vector_is_admitted_or_refused_by_the_rule_it_names() {
    for (path, vector) in files() {
        let told = register(&vector);
        match vector["expected"].as_str().unwrap() {
            "admit" => assert!(told.is_ok(), "{path:?}: {told:?}"),
            "refuse" => {
                let violation = told.map(|_| ()).expect_err(&format!("{path:?} was admitted"));
                assert_eq!(
                    violation.rule.as_str(),
                    vector["rule"].as_str().unwrap(),
                    "{path:?}: {violation}"
                );
                assert!(!vector["why"].as_str().unwrap().is_empty(), "{path:?} does not say why");
            }
            other => panic!("{path:?}: {other}"),
        }
    }
}

#[test]
fn every_rule_has_a_vector_that_keeps_it_and_one_that_breaks_it() {
    let text = |vector: &Value, member: &str| vector[member].as_str().unwrap().to_owned();
    let found: BTreeSet<(String, String)> =
        files().values().map(|vector| (text(vector, "rule"), text(vector, "expected"))).collect();
    for rule in ConversationRule::ALL {
        // A record of a million values is too large for a file: `tests/conversation_hostile.rs` makes one.
        let too_large = *rule == ConversationRule::Items;
        for expected in if too_large { &["admit"][..] } else { &["admit", "refuse"] } {
            assert!(
                found.contains(&(rule.name().to_owned(), expected.to_string())),
                "{} has none to {expected}",
                rule.name()
            );
        }
    }
}

#[test]
fn the_files_are_those_the_cases_make() {
    let cases = cases::all();
    if std::env::var_os("WRITE_VECTORS").is_some() {
        cases.iter().for_each(write);
    }
    let made: BTreeMap<PathBuf, Value> = cases.iter().map(|case| (case.path(), case.to_json())).collect();
    assert_eq!(made.len(), cases.len(), "two cases of one name");
    let files = files();
    assert_eq!(files.keys().collect::<Vec<_>>(), made.keys().collect::<Vec<_>>());
    for (path, vector) in &made {
        assert_eq!(&files[path], vector, "{path:?} drifted");
    }
}

fn write(case: &Case) {
    let path = case.path();
    std::fs::create_dir_all(path.parent().unwrap()).unwrap();
    let text = serde_json::to_string_pretty(&case.to_json()).unwrap();
    std::fs::write(path, text + "\n").unwrap();
}
