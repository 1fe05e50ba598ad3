//! The fault matrix (`tests/fault-matrix.toml`), held to the code: every fault has a test or says why it has none, every test
//! that it names is there and runs, and every scenario of a long run is one of `tests/long` that has been run.

use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::path::{Path, PathBuf};

use serde::Deserialize;

/// This file, which says names of tests that are not there.
const THIS: &str = "fault_matrix.rs";
/// Faults.
const FAULTS: u32 = 66;
/// Invariants.
const INVARIANTS: u32 = 16;
/// Words that a reason has at least.
const A_REASON: usize = 5;

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Matrix {
    fault: Vec<Fault>,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Fault {
    number: u32,
    fault: String,
    #[serde(default)]
    tests: BTreeSet<String>,
    #[serde(default)]
    invariants: BTreeSet<u32>,
    partly: Option<String>,
    not_run: Option<String>,
    long: Option<String>,
}

fn matrix() -> Vec<Fault> {
    let text = fs::read_to_string(top().join("tests/fault-matrix.toml")).unwrap();
    toml::from_str::<Matrix>(&text).unwrap().fault
}

#[test]
fn every_fault_has_a_test_and_a_verdict_or_says_why_not() {
    let faults = matrix();
    let numbers: Vec<u32> = faults.iter().map(|fault| fault.number).collect();
    assert_eq!(numbers, (1..=FAULTS).collect::<Vec<_>>());
    for Fault { number, fault, tests, invariants, partly, not_run, .. } in &faults {
        assert!(!fault.is_empty(), "R{number} is not described");
        assert_eq!(tests.is_empty(), not_run.is_some(), "R{number}: either tests, or why there are none");
        assert_eq!(tests.is_empty(), invariants.is_empty(), "R{number}: a test without a verdict");
        assert!(
            invariants.iter().all(|number| (1..=INVARIANTS).contains(number)),
            "R{number}: {invariants:?}"
        );
        for reason in partly.iter().chain(not_run) {
            assert!(reason.split_whitespace().count() >= A_REASON, "R{number}: {reason:?} is no reason");
        }
    }
    let judged: BTreeSet<u32> = faults.into_iter().flat_map(|fault| fault.invariants).collect();
    assert_eq!(judged, (1..=INVARIANTS).collect(), "an invariant that no test judges");
}

#[test]
fn every_test_of_the_matrix_is_there_and_runs() {
    let faults = matrix();
    for file in faults.iter().flat_map(|fault| &fault.tests) {
        let (file, test) = file.split_once(": ").unwrap_or_else(|| panic!("{file}: not FILE: TEST"));
        let source = fs::read_to_string(top().join(file)).unwrap_or_else(|why| panic!("{file}: {why}"));
        assert!(source.contains(&format!("fn {test}(")), "{file} has no {test}");
    }
    let skipped: Vec<_> = sources().into_iter().filter(|(_, source)| source.contains("#[ignore")).collect();
    assert!(
        skipped.is_empty(),
        "tests that do not run: {:?}",
        skipped.iter().map(|(file, _)| file).collect::<Vec<_>>()
    );
}

#[test]
fn every_test_that_carries_the_number_of_a_fault_is_listed_under_it() {
    let listed: BTreeMap<u32, BTreeSet<String>> =
        matrix().into_iter().map(|fault| (fault.number, fault.tests)).collect();
    for (file, source) in sources() {
        for (name, numbers) in numbered_in(&source) {
            let test = format!("{}: {name}", file.display());
            let missing =
                numbers.iter().find(|number| listed.get(number).is_none_or(|tests| !tests.contains(&test)));
            assert_eq!(missing, None, "{test} is not listed under this fault");
        }
    }
}

/// Or one that the newest report says was not run, and why. A scenario is known by what stands before the colon, several numbers apart by blanks.
#[test]
fn every_scenario_of_a_long_run_is_one_that_was_run() {
    let script = fs::read_to_string(top().join("tests/long")).unwrap();
    let known: BTreeSet<&str> =
        script.lines().filter_map(|line| line.strip_prefix("rounds \"")).flat_map(scenarios).collect();
    let mut reports: Vec<PathBuf> =
        fs::read_dir(top().join("tests/reports")).unwrap().map(|file| file.unwrap().path()).collect();
    reports.sort();
    let report = fs::read_to_string(reports.last().expect("a report")).unwrap();
    let told = |line: &&str| line.contains(" rounds, ") || line.contains(": not run, ");
    let run: BTreeSet<&str> = report.lines().filter(told).flat_map(scenarios).collect();
    for fault in matrix() {
        let Some(long) = fault.long.as_deref() else { continue };
        assert!(known.contains(long), "R{}: tests/long has no {long}", fault.number);
        assert!(run.contains(long), "R{}: the newest report says nothing of {long}", fault.number);
    }
}

fn scenarios(line: &str) -> impl Iterator<Item = &str> {
    line.split_once(':').map(|(names, _)| names.split(' ')).into_iter().flatten()
}

/// Functions that are called after faults: `r4_r5_any_call_may_fail` carries 4 and 5.
fn numbered_in(source: &str) -> Vec<(&str, Vec<u32>)> {
    let after = source.lines().filter_map(|line| line.split_once("fn ")).map(|(_, name)| name);
    let names = after.filter_map(|name| name.split_once('(').map(|(name, _)| name));
    let numbers = |name: &str| -> Vec<u32> {
        name.strip_prefix('r')
            .into_iter()
            .flat_map(|name| name.split("_r").map_while(leading_number))
            .collect()
    };
    names.map(|name| (name, numbers(name))).filter(|(_, numbers)| !numbers.is_empty()).collect()
}

fn leading_number(name: &str) -> Option<u32> {
    let (digits, rest) = name.split_at(name.find(|c: char| !c.is_ascii_digit()).unwrap_or(name.len()));
    (rest.is_empty() || rest.starts_with('_')).then(|| digits.parse().ok())?
}

#[test]
fn numbers_are_read_from_names() {
    let one = "async fn r4_r5_any_call_may_fail() {\n    fn r02_a_killed_process(log: Log) {";
    let found = [("r4_r5_any_call_may_fail", vec![4, 5]), ("r02_a_killed_process", vec![2])];
    assert_eq!(numbered_in(one), found);
    assert_eq!(numbered_in("fn reads() {\nfn r2d2() {"), []);
}

fn top() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).parent().unwrap().to_owned()
}

/// Every source, by its path from the top.
fn sources() -> Vec<(PathBuf, String)> {
    let mut found = Vec::new();
    for folder in ["crates", "services", "tests"] {
        collect(&top().join(folder), &mut found);
    }
    let read =
        |path: PathBuf| (path.strip_prefix(top()).unwrap().to_owned(), fs::read_to_string(&path).unwrap());
    found.into_iter().map(read).collect()
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
