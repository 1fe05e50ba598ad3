//! `vectors/admission`: messages and what is made of them, one case in each file, for any implementation of VAP.
//!
//! `message` reads a slot, `arguments` compares what was declared with what was called, `pattern` matches a tool's name, `chain`
//! amends a commitment, `rule` asks an operator's rule about arguments, `signature` proves a message, `verdict` signs an answer. A case is accepted, with a result, or refused
//! for a reason; negative cases are named for what an attacker would do.
//!
//! The files are the contract. After a change in `cases`, write them again with
//! `WRITE_VECTORS=1 cargo test -p admission --test vectors`.

#![allow(clippy::unwrap_used)]

mod cases;
mod outcome;

use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::path::{Path, PathBuf};

use serde_json::{Value, json};

/// One file.
pub struct Case {
    folder: &'static str,
    name: &'static str,
    reading: &'static str,
    why: &'static str,
    input: Value,
    /// `accept`, or the reason.
    expected: &'static str,
}

impl Case {
    fn path(&self) -> PathBuf {
        root().join(self.folder).join(format!("{}.json", self.name))
    }

    fn to_json(&self) -> Value {
        let outcome = outcome::of(self.folder, &self.input);
        let told = outcome.as_ref().map_or_else(String::as_str, |_| "accept");
        assert_eq!(told, self.expected, "{}/{}", self.folder, self.name);
        let mut vector = self.input.clone();
        vector["reading"] = self.reading.into();
        vector["why"] = self.why.into();
        vector["expected"] = expected(&outcome);
        vector
    }
}

fn expected(outcome: &Result<Value, String>) -> Value {
    match outcome {
        Ok(result) => json!({ "accept": result }),
        Err(reason) => json!({ "refuse": reason }),
    }
}

fn root() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../../vectors/admission")
}

fn files() -> BTreeMap<PathBuf, Value> {
    let inside = |path: PathBuf| fs::read_dir(path).unwrap().map(|entry| entry.unwrap().path());
    let read = |path: PathBuf| {
        let vector = serde_json::from_slice(&fs::read(&path).unwrap()).unwrap();
        (path, vector)
    };
    inside(root()).flat_map(inside).map(read).collect()
}

#[test]
fn every_vector_fares_as_it_says() {
    for (path, vector) in files() {
        let folder = path.parent().unwrap().file_name().unwrap().to_str().unwrap();
        assert_eq!(expected(&outcome::of(folder, &vector)), vector["expected"], "{path:?}");
        assert!(!vector["why"].as_str().unwrap().is_empty(), "{path:?} does not say why");
    }
}

#[test]
fn the_files_are_those_the_cases_make() {
    let made: BTreeMap<PathBuf, Value> =
        cases::all().iter().map(|case| (case.path(), case.to_json())).collect();
    assert_eq!(made.len(), cases::all().len(), "two cases of one name");
    if std::env::var_os("WRITE_VECTORS").is_some() {
        for (path, vector) in &made {
            fs::create_dir_all(path.parent().unwrap()).unwrap();
            fs::write(path, serde_json::to_string_pretty(vector).unwrap() + "\n").unwrap();
        }
    }
    let files = files();
    assert_eq!(files.keys().collect::<Vec<_>>(), made.keys().collect::<Vec<_>>());
    for (path, vector) in &made {
        assert_eq!(&files[path], vector, "{path:?} drifted");
    }
}

#[test]
fn every_reading_of_a_single_message_has_a_vector() {
    let cases = cases::all();
    let told: BTreeSet<_> = cases.iter().flat_map(|case| case.reading.split(", ")).collect();
    for reading in [
        "V-4", "V-6", "V-7", "V-8", "V-9", "V-10", "V-13", "V-15", "V-16", "V-17", "V-19", "V-20", "V-21",
        "V-22", "V-23", "V-25", "X-2", "X-5", "C4",
    ] {
        assert!(told.contains(reading), "{reading} has none");
    }
}
