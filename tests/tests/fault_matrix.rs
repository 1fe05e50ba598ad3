//! The fault matrix: every fault that must be tried on every change has a test that carries its number.
#![allow(clippy::unwrap_used)]

use std::collections::BTreeMap;
use std::fs;
use std::path::{Path, PathBuf};

/// This file, which says the names of tests that are not there.
const THIS: &str = "fault_matrix.rs";
/// Number and fault. More are tried here and there; these may not go missing.
const MUST_BE_TRIED: &[(u32, &str)] = &[
    (1, "kill -9 at each of the named points"),
    (2, "kill -9 at random times, under load"),
    (3, "kill -9 during recovery itself, again and again"),
    (4, "the n-th storage call fails, before its effect"),
    (5, "the n-th storage call fails, after its effect"),
    (6, "two different calls fail in one round, and the reload as well"),
    (7, "one flush fails"),
    (11, "the disk is full, and has space again"),
    (12, "the disk of the pin is full or fails"),
    (13, "the storage is read-only, and is writable again"),
    (17, "PostgreSQL stops at once and starts, under load"),
    (20, "the connection is cut after COMMIT was sent"),
    (21, "a fail-over to a replica that misses commits"),
    (22, "a fail-over with nothing lost: another host leads"),
    (24, "synchronous_commit or fsync is off"),
    (25, "connections are exhausted, and the head row is locked"),
    (28, "another database behind a running server"),
    (30, "two processes on one database"),
    (31, "the leader is paused and wakes after a take-over"),
    (34, "the log is cut off from its witnesses"),
    (36, "the clock is set back, ahead, or stands still"),
    (37, "a clock is wrong by a day"),
    (38, "one bit is flipped"),
    (42, "an old backup is restored"),
    (43, "an old backup, and the pin is lost"),
    (44, "a backup is taken under load, and restored elsewhere"),
    (45, "a backup is damaged, or not of this log"),
    (51, "the log moves to the other database"),
    (52, "keys are rotated, and the process dies on the way"),
    (54, "many times more than can be taken"),
    (56, "SIGTERM and SIGINT, twice, under load, during the start"),
    (57, "the inbox is full"),
    (58, "a task panics"),
    (61, "sizes around the powers of two, restart at each"),
    (63, "a monitor loses its state, or has another's"),
    (64, "a log truncates, forks, freezes, is stale, drops a tile, answers 500"),
    (65, "a file system whose locks cannot be trusted"),
    (66, "the database file is moved, replaced or truncated"),
];

#[test]
fn every_fault_of_the_matrix_has_a_test_that_carries_its_number() {
    let mut tried: BTreeMap<u32, usize> = BTreeMap::new();
    for number in sources().iter().flat_map(|file| numbers_in(&fs::read_to_string(file).unwrap())) {
        *tried.entry(number).or_default() += 1;
    }
    let missing: Vec<_> = MUST_BE_TRIED.iter().filter(|(number, _)| !tried.contains_key(number)).collect();
    assert!(missing.is_empty(), "no test is called after {missing:?}");
}

/// `fn r4_r5_any_call_may_fail` carries 4 and 5.
fn numbers_in(source: &str) -> Vec<u32> {
    let names = source.lines().filter_map(|line| line.split_once("fn r")).map(|(_, name)| name);
    names.flat_map(|name| name.split("_r").map_while(leading_number)).collect()
}

fn leading_number(name: &str) -> Option<u32> {
    let (digits, rest) = name.split_at(name.find(|c: char| !c.is_ascii_digit()).unwrap_or(name.len()));
    (rest.is_empty() || rest.starts_with('_')).then(|| digits.parse().ok())?
}

#[test]
fn numbers_are_read_from_names() {
    assert_eq!(numbers_in("async fn r4_r5_any_call_may_fail() {"), [4, 5]);
    assert_eq!(numbers_in("fn r02_a_killed_process() {"), [2]);
    assert_eq!(numbers_in("fn reads() {\nfn r2d2() {"), []);
}

fn sources() -> Vec<PathBuf> {
    let top = Path::new(env!("CARGO_MANIFEST_DIR")).parent().unwrap();
    let mut found = Vec::new();
    for folder in ["crates", "services", "tests"] {
        collect(&top.join(folder), &mut found);
    }
    found
}

fn collect(folder: &Path, found: &mut Vec<PathBuf>) {
    for entry in fs::read_dir(folder).unwrap() {
        let path = entry.unwrap().path();
        if path.is_dir() {
            collect(&path, found);
        } else if path.extension().is_some_and(|extension| extension == "rs") && !path.ends_with(THIS) {
            found.push(path);
        }
    }
}
