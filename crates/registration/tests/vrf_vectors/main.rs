//! `vectors/vrf`: for every rule a statement that keeps it and statements that break it and nothing else.
//!
//! The files are the contract, readable by any implementation; `cases` says how they were made. After a change there, write
//! them again with `WRITE_VECTORS=1 cargo test -p registration --test vrf_vectors`.

#![allow(clippy::unwrap_used)]

mod cases;
mod draft;

use std::collections::{BTreeMap, BTreeSet};
use std::path::{Path, PathBuf};

use data_encoding::HEXLOWER;
use merkle::LeafIndex;
use registration::vrf::{VrfRedacted, VrfRule};
use registration::{
    Answers, Beside, NotPermitted, Permit, Policy, PolicyInForce, Questions, Record, Violation,
};
use scitt::SignedStatement;
use serde_json::{Value, json};

/// One file.
#[derive(Clone)]
pub struct Case {
    rule: VrfRule,
    /// The file's name.
    name: &'static str,
    why: &'static str,
    /// Whether the statement keeps the rule.
    keeps: bool,
    statement: Vec<u8>,
    /// VRF options of the policy that are not the default.
    options: Value,
    /// What the log holds already.
    log: Vec<Vec<u8>>,
    /// The log's time.
    at: u64,
    /// What is shown of a redacted receipt.
    disclosed: Option<Vec<u8>>,
}

impl Case {
    fn path(&self) -> PathBuf {
        folder().join(self.rule.name()).join(format!("{}.json", self.name))
    }

    fn to_json(&self) -> Value {
        let mut vector = json!({
            "rule": self.rule.name(),
            "reading": self.rule.reading(),
            "section": self.rule.section(),
            "why": self.why,
            "expected": if self.keeps { "admit" } else { "refuse" },
            "options": self.options,
            "at": self.at,
            "log": self.log.iter().map(|statement| HEXLOWER.encode(statement)).collect::<Vec<_>>(),
            "statement": HEXLOWER.encode(&self.statement),
        });
        if let Some(disclosed) = &self.disclosed {
            vector["disclosed"] = json!(HEXLOWER.encode(disclosed));
        }
        vector
    }
}

fn folder() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../../vectors/vrf")
}

/// Every file, by its path.
fn files() -> BTreeMap<PathBuf, Value> {
    let mut files = BTreeMap::new();
    for rule in
        std::fs::read_dir(folder()).unwrap().map(|entry| entry.unwrap().path()).filter(|path| path.is_dir())
    {
        for file in std::fs::read_dir(rule).unwrap().map(|entry| entry.unwrap().path()) {
            let text = std::fs::read(&file).unwrap();
            files.insert(
                file.clone(),
                serde_json::from_slice(&text).unwrap_or_else(|error| panic!("{file:?}: {error}")),
            );
        }
    }
    files
}

/// A log of permits: leaf 0 is its policy.
struct Log {
    in_force: PolicyInForce,
    permits: Vec<Permit>,
}

impl Log {
    fn leaves(&self) -> impl Iterator<Item = (LeafIndex, &Permit)> {
        (1..).map(LeafIndex::new).zip(&self.permits)
    }

    fn answer(&self, asked: &Questions) -> Answers {
        let mut answers = Answers::none();
        for (leaf, permit) in self.leaves() {
            if asked.digests.contains(&permit.statement()) {
                answers.put_entry(permit.statement(), leaf);
            }
            for guard in asked.guards.iter().filter(|guard| permit.guards().contains(guard)) {
                answers.put_guard(guard.clone(), leaf);
            }
        }
        answers
    }

    /// Decides, and compares with what the log holds, as a sequencer would.
    fn register(&self, statement: &SignedStatement, at: u64) -> Result<Permit, Violation> {
        let authenticated =
            self.in_force.authenticate(statement, Beside::default()).map_err(|error| error.violation())?;
        let record = Record::read(&authenticated)?;
        let log = self.answer(&self.in_force.questions(&authenticated, &record));
        let permit = match self.in_force.decide(&authenticated, &record, &log).into_permit() {
            Ok(permit) => permit,
            Err(NotPermitted::Refused(refusal)) => return Err(refusal.violation),
            Err(NotPermitted::Undecided(undecided)) => panic!("{undecided}"),
        };
        if let Some(refusal) = permit.refusal_at(at) {
            return Err(refusal.violation);
        }
        for guard in permit.guards() {
            if let Some((leaf, _)) = self.leaves().find(|(_, earlier)| earlier.guards().contains(guard)) {
                return Err(permit.refusal_for_guard(guard.as_bytes(), leaf).violation);
            }
        }
        Ok(permit)
    }
}

fn statement(hex: &Value) -> SignedStatement {
    SignedStatement::parse(HEXLOWER.decode(hex.as_str().unwrap().as_bytes()).unwrap()).unwrap()
}

/// Registers as a log would, whose time and contents the vector gives; then checks what is disclosed.
fn register(vector: &Value) -> Result<Permit, Violation> {
    let in_force = PolicyInForce::new(policy(&vector["options"]), LeafIndex::new(0));
    let mut log = Log { in_force, permits: Vec::new() };
    let at = vector["at"].as_u64().unwrap();
    for earlier in vector["log"].as_array().unwrap() {
        let permit = log.register(&statement(earlier), at).expect("what the log holds was admitted");
        log.permits.push(permit);
    }
    let statement = statement(&vector["statement"]);
    let permit = log.register(&statement, at)?;
    if let Some(disclosed) = vector.get("disclosed") {
        let shown = HEXLOWER.decode(disclosed.as_str().unwrap().as_bytes()).unwrap();
        VrfRedacted::verify(&statement, None)?.disclose(&shown)?;
    }
    Ok(permit)
}

fn policy(options: &Value) -> Policy {
    let mut document: toml::Table = toml::from_str(&testkit::policy_toml()).unwrap();
    for rule in document["type"].as_array_mut().unwrap() {
        let rule = rule.as_table_mut().unwrap();
        if rule["content_type"].as_str().unwrap().contains("vrf") {
            rule.insert("vrf".to_owned(), toml::Value::try_from(options).unwrap());
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
    let found: BTreeSet<(String, String)> = files()
        .values()
        .map(|vector| {
            (vector["rule"].as_str().unwrap().to_owned(), vector["expected"].as_str().unwrap().to_owned())
        })
        .collect();
    for rule in VrfRule::ALL {
        for expected in ["admit", "refuse"] {
            assert!(
                found.contains(&(rule.name().to_owned(), expected.to_owned())),
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
