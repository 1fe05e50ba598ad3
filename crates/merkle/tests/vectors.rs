//! The files in `vectors/merkle`: read, and compared with what this crate says about them.
//!
//! `cargo run -p tabellion-merkle --example write-vectors` writes them.

mod cases;
mod common;

use std::{
    collections::BTreeMap,
    fs,
    path::{Path, PathBuf},
};

use cases::{Cases, ConsistencyCase, InclusionCase, RootCase};
use merkle::{CompactRange, Hash, LeafIndex, ProofError, TreeSize, hash_leaf, verify};
use serde::de::DeserializeOwned;

fn folder() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../../vectors/merkle")
}

/// Every file below `vectors/merkle/<kind>`.
fn read<T: DeserializeOwned>(kind: &str) -> BTreeMap<String, T> {
    let mut cases = BTreeMap::new();
    let mut folders = vec![folder().join(kind)];
    while let Some(next) = folders.pop() {
        for entry in fs::read_dir(&next).expect("a folder of vectors") {
            let path = entry.expect("an entry").path();
            if path.is_dir() {
                folders.push(path);
                continue;
            }
            let text = fs::read(&path).expect("a vector");
            let case = serde_json::from_slice(&text);
            let name = path.strip_prefix(folder()).expect("below").display().to_string();
            cases.insert(name, case.unwrap_or_else(|e| panic!("{}: {e}", path.display())));
        }
    }
    cases
}

fn path(texts: &[String]) -> Vec<Hash> {
    texts.iter().map(|text| text.parse().expect("a hash")).collect()
}

fn inclusion(case: &InclusionCase) -> Result<(), ProofError> {
    verify::inclusion(
        case.leaf_hash.parse().expect("a hash"),
        LeafIndex::new(case.leaf_index),
        TreeSize::new(case.tree_size),
        &path(&case.path),
        case.root.parse().expect("a hash"),
    )
}

fn consistency(case: &ConsistencyCase) -> Result<(), ProofError> {
    verify::consistency(
        TreeSize::new(case.older_size),
        TreeSize::new(case.newer_size),
        case.older_root.parse().expect("a hash"),
        case.newer_root.parse().expect("a hash"),
        &path(&case.path),
    )
}

#[test]
fn every_inclusion_vector_gets_its_verdict() {
    let cases = read::<InclusionCase>("inclusion");
    assert!(cases.values().filter(|case| !case.valid).count() > 90);
    for (name, case) in cases {
        let verdict = inclusion(&case);
        assert_eq!(verdict.is_ok(), case.valid, "{name}: {} {verdict:?}", case.why);
    }
}

#[test]
fn every_consistency_vector_gets_its_verdict() {
    let cases = read::<ConsistencyCase>("consistency");
    assert!(cases.values().filter(|case| !case.valid).count() > 90);
    for (name, case) in cases {
        let verdict = consistency(&case);
        assert_eq!(verdict.is_ok(), case.valid, "{name}: {} {verdict:?}", case.why);
    }
}

#[test]
fn every_root_vector_is_the_root_of_its_entries() {
    for (name, case) in read::<RootCase>("roots") {
        let decode = |text: &String| data_encoding::HEXLOWER.decode(text.as_bytes());
        let entries = case.entries.iter().map(|text| decode(text).expect("hex"));
        let leaves: Vec<_> = entries.map(|entry| hash_leaf(&entry)).collect();
        let root = CompactRange::empty().grow(&leaves).root();
        assert_eq!(root.to_string(), case.root, "{name}: {}", case.why);
    }
}

#[test]
fn the_files_are_those_that_the_program_writes() {
    let cases = Cases::all();
    assert_eq!(read::<InclusionCase>("inclusion"), cases.inclusion);
    assert_eq!(read::<ConsistencyCase>("consistency"), cases.consistency);
    assert_eq!(read::<RootCase>("roots"), cases.roots);
}
