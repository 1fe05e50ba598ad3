//! `vectors/vap`, `vectors/jwk-set` and `vectors/erasure`: for every rule a statement that keeps it and statements that break it and nothing
//! else.
//!
//! The files are the contract, readable by any implementation; `cases` says how they were made. After a change there, write
//! them again with `WRITE_VECTORS=1 cargo test -p registration --test vap_vectors`.

#![allow(clippy::unwrap_used)]

mod cases;
mod register;

use std::collections::{BTreeMap, BTreeSet};
use std::path::{Path, PathBuf};

use data_encoding::HEXLOWER;
use registration::erasure::ErasureRule;
use registration::jwk_set::JwkSetRule;
use registration::vap::{AuditRule, VerdictRule};
use serde_json::{Value, json};

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

rule_of!(VerdictRule in "vap", AuditRule in "vap", JwkSetRule in "jwk-set", ErasureRule in "erasure");

impl Case {
    fn path(&self) -> PathBuf {
        folder(self.rule.folder).join(self.rule.name).join(format!("{}.json", self.name))
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

fn folder(name: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../../vectors").join(name)
}

/// Every file, by its path.
fn files() -> BTreeMap<PathBuf, Value> {
    let mut files = BTreeMap::new();
    let inside = |path: PathBuf| std::fs::read_dir(path).unwrap().map(|entry| entry.unwrap().path());
    for rule in
        ["vap", "jwk-set", "erasure"].map(folder).into_iter().flat_map(inside).filter(|path| path.is_dir())
    {
        for file in inside(rule) {
            let text = std::fs::read(&file).unwrap();
            let vector =
                serde_json::from_slice(&text).unwrap_or_else(|error| panic!("{}: {error}", file.display()));
            files.insert(file, vector);
        }
    }
    files
}

#[test]
fn every_vector_is_admitted_or_refused_by_the_rule_it_names() {
    for (path, vector) in files() {
        let told = register::register(&vector);
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
    let told = |vector: &Value, name: &str| vector[name].as_str().unwrap().to_owned();
    let found: BTreeSet<(String, String)> =
        files().values().map(|vector| (told(vector, "rule"), told(vector, "expected"))).collect();
    for rule in Rule::all() {
        for expected in ["admit", "refuse"] {
            let has = found.contains(&(rule.name.to_owned(), expected.to_owned()));
            assert!(has, "{} has none to {expected}", rule.name);
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
