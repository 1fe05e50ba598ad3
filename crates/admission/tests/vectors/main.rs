//! `vectors/admission`: messages and what is made of them, one case in each file, for any implementation of VAP.
//!
//! `message` reads a slot, `arguments` compares what was declared with what was called, `pattern` matches a tool's name, `chain`
//! amends a commitment, `rule` asks an operator's rule about arguments, `signature` proves a message, `verdict` signs an answer. A case is accepted, with a result, or refused
//! for a reason; negative cases are named for what an attacker would do.
//!
//! The files are the contract. `vectors/sources/admission` describes how they are made; after a change there, write them again
//! with `WRITE_VECTORS=1 cargo test -p admission --test vectors`.

#![allow(clippy::unwrap_used)]

mod outcome;

use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::path::{Path, PathBuf};

use serde_json::{Value, json};

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
fn the_files_are_those_the_sources_describe() {
    testkit::vectors::assert_inputs_match_sources("admission", outcome::of);
}

#[test]
fn every_reading_of_a_single_message_has_a_vector() {
    let files = files();
    let shown: BTreeSet<&str> =
        files.values().flat_map(|vector| vector["reading"].as_str().unwrap().split(", ")).collect();
    for reading in [
        "V-4", "V-6", "V-7", "V-8", "V-9", "V-10", "V-13", "V-15", "V-16", "V-17", "V-19", "V-20", "V-21",
        "V-22", "V-23", "V-25", "X-2", "X-5", "C4",
    ] {
        assert!(shown.contains(reading), "{reading} has none");
    }
}
