//! `vectors/aer`: for every rule a statement that keeps it and statements that break it and nothing else.
//!
//! The files are the contract, readable by any implementation; `cases` says how they were made. After a change there, write
//! them again with `WRITE_VECTORS=1 cargo test -p registration --test aer_vectors`.

#![allow(clippy::unwrap_used)]

mod cases;
mod draft;

use std::collections::{BTreeMap, BTreeSet};
use std::path::{Path, PathBuf};

use data_encoding::HEXLOWER;
use merkle::LeafIndex;
use registration::aer::AerRule;
use registration::{Answers, Beside, NotPermitted, Permit, Policy, PolicyInForce, Record, Violation};
use scitt::SignedStatement;
use serde_json::{Value, json};

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
            "at": self.at,
            "log": self.log.iter().map(|statement| HEXLOWER.encode(statement)).collect::<Vec<_>>(),
            "statement": HEXLOWER.encode(&self.statement),
        })
    }
}

fn folder() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../../vectors/aer")
}

/// Every file, by its path.
fn files() -> BTreeMap<PathBuf, Value> {
    let mut files = BTreeMap::new();
    let rules = std::fs::read_dir(folder()).unwrap().map(|entry| entry.unwrap().path());
    for rule in rules.filter(|path| path.is_dir()) {
        for file in std::fs::read_dir(rule).unwrap().map(|entry| entry.unwrap().path()) {
            let text = std::fs::read(&file).unwrap();
            let vector =
                serde_json::from_slice(&text).unwrap_or_else(|error| panic!("{}: {error}", file.display()));
            files.insert(file, vector);
        }
    }
    files
}

/// Registers as a log would, whose time and contents the vector gives.
fn register(vector: &Value) -> Result<Permit, Violation> {
    let in_force = PolicyInForce::new(policy(&vector["options"]), LeafIndex::new(0));
    let decide = |hex: &Value| {
        let bytes = HEXLOWER.decode(hex.as_str().unwrap().as_bytes()).unwrap();
        let statement = SignedStatement::parse(bytes).unwrap();
        let authenticated =
            in_force.authenticate(&statement, Beside::default()).map_err(|error| error.violation())?;
        let record = Record::read(&authenticated)?;
        match in_force.decide(&authenticated, &record, &Answers::none()).into_permit() {
            Ok(permit) => Ok(permit),
            Err(NotPermitted::Refused(refusal)) => Err(refusal.violation),
            Err(NotPermitted::Undecided(undecided)) => panic!("{undecided}"),
        }
    };
    let log: Vec<Permit> = vector["log"].as_array().unwrap().iter().map(|hex| decide(hex).unwrap()).collect();
    let permit = decide(&vector["statement"])?;
    if let Some(refusal) = permit.refusal_at(vector["at"].as_u64().unwrap()) {
        return Err(refusal.violation);
    }
    for (leaf, earlier) in log.iter().enumerate() {
        if let Some(guard) = permit.guards().iter().find(|guard| earlier.guards().contains(guard)) {
            return Err(permit
                .refusal_for_guard(guard.as_bytes(), LeafIndex::new(1 + leaf as u64))
                .violation);
        }
    }
    Ok(permit)
}

/// The tests' policy, with this table `[type.aer]`.
fn policy(options: &Value) -> Policy {
    let mut document: toml::Table = toml::from_str(&testkit::policy_toml()).unwrap();
    for rule in document["type"].as_array_mut().unwrap() {
        let rule = rule.as_table_mut().unwrap();
        if rule["content_type"].as_str().unwrap().contains("aer") {
            rule.insert("aer".to_owned(), toml::Value::try_from(options).unwrap());
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
                let rule = vector["rule"].as_str().unwrap();
                assert_eq!(violation.rule.as_str(), rule, "{path:?}: {violation}");
                assert!(!vector["why"].as_str().unwrap().is_empty(), "{path:?} does not say why");
            }
            other => panic!("{path:?}: {other}"),
        }
    }
}

#[test]
fn every_rule_has_a_vector_that_keeps_it_and_one_that_breaks_it() {
    let found: BTreeSet<(String, String)> = files()
        .values()
        .map(|vector| {
            (vector["rule"].as_str().unwrap().to_owned(), vector["expected"].as_str().unwrap().to_owned())
        })
        .collect();
    for rule in AerRule::ALL {
        for expected in ["admit", "refuse"] {
            let wanted = (rule.name().to_owned(), expected.to_owned());
            assert!(found.contains(&wanted), "{} has none to {expected}", rule.name());
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
