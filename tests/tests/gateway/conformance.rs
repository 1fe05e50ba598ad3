//! Not one scenario worse than direct: the official conformance suite through the gateway, check by check, beside the same
//! suite against the server itself, in every revision.

use std::collections::BTreeMap;
use std::fs;
use std::path::Path;
use std::process::Stdio;

use black_box::{Gateway, Other, node};
use serde_json::Value;

/// The suite's program, among the packages of `tests/node`.
const SUITE: &str = "node_modules/@modelcontextprotocol/conformance/dist/index.js";
/// What selects the scenarios of a revision.
const REVISIONS: [&[&str]; 3] =
    [&["--spec-version", "2025-06-18"], &["--spec-version", "2025-11-25"], &["--requirements", "2026-07-28"]];
/// How a check may end well.
const SUCCESS: &str = "SUCCESS";
/// How long the time is that ends the name of a folder of results.
const TIME_OF_RUN: usize = "-2026-01-01T00-00-00-000Z".len();
/// A suite that ran at all has at least so many checks that end well.
const FEWEST: usize = 50;

#[test]
fn every_conformance_check_ends_through_the_gateway_as_without_it() {
    let fixture = Other::fixture();
    let gateway = Gateway::before(&fixture.url).route("without_vap = \"advisory\"");
    let running = gateway.start();
    for selection in REVISIONS {
        let (direct, through) = (suite(&fixture.url, selection), suite(running.url(), selection));
        let succeeded = direct.values().filter(|statuses| statuses.contains(&SUCCESS.to_owned())).count();
        assert!(succeeded >= FEWEST, "{selection:?}: only {succeeded} succeed: {direct:#?}");
        for (check, expected) in &direct {
            assert_eq!(through.get(check), Some(expected), "{selection:?}: {check}");
        }
        assert_eq!(through.len(), direct.len(), "{selection:?}");
    }
    running.stop();
}

/// The goal of an operator's commitment under which everything is allowed.
const COMMITMENT: &str =
    "without_vap = \"commitment\"\n[route.commitment]\ngoal = \"conformance\"\nmax_calls = 100000";
/// What a gateway that keeps tasks apart by their callers answers itself: this server has no tasks. Its checks may end better.
const OF_TASKS: &str = "tasks-";

#[test]
fn every_conformance_check_ends_as_well_under_an_operators_commitment() {
    let fixture = Other::fixture();
    let gateway = Gateway::before(&fixture.url).route(COMMITMENT);
    let running = gateway.start();
    for selection in REVISIONS {
        let (direct, through) = (suite(&fixture.url, selection), suite(running.url(), selection));
        for (check, expected) in &direct {
            let ended = through.get(check).unwrap_or_else(|| panic!("{selection:?}: {check} is missing"));
            let is_right = match check.starts_with(OF_TASKS) {
                true => is_no_worse(expected, ended),
                false => ended == expected,
            };
            assert!(is_right, "{selection:?}: {check}: {ended:?}, not {expected:?}");
        }
    }
    running.stop();
}

/// Whether each run that succeeded directly succeeds here, too.
fn is_no_worse(direct: &[String], through: &[String]) -> bool {
    direct.len() == through.len()
        && direct.iter().zip(through).all(|(before, after)| before != SUCCESS || after == SUCCESS)
}

/// What a server over its standard streams leaves to whoever has the HTTP side: the gateway. Its scenarios may end better.
const OF_THE_TRANSPORT: [&str; 1] = ["dns-rebinding-protection"];

#[test]
fn every_conformance_check_ends_as_without_the_gateway_at_a_started_server() {
    let direct = Other::fixture();
    let gateway =
        Gateway::before_command(&black_box::fixture_over_stdio()).route("without_vap = \"advisory\"");
    let running = gateway.start();
    // In the newer era one child serves all; in the older each scenario would start one, and the clients' tests do that.
    let selection = REVISIONS[2];
    let (direct, through) = (suite(&direct.url, selection), suite(running.url(), selection));
    for (check, expected) in &direct {
        let ours = OF_THE_TRANSPORT.iter().any(|name| check.starts_with(name));
        assert!(
            ours || through.get(check) == Some(expected),
            "{check}: {:?}, not {expected:?}",
            through.get(check)
        );
    }
    running.stop();
}

/// Runs the suite, and gives how each check of each scenario ended, in the order of its runs.
fn suite(url: &str, selection: &[&str]) -> BTreeMap<String, Vec<String>> {
    let results = tempfile::tempdir().unwrap();
    let mut command = node();
    command.args([SUITE, "server", "--url", url]).args(selection).arg("--output-dir").arg(results.path());
    // It fails when a check fails: what counts is which.
    let output = command.stdin(Stdio::null()).output().unwrap();
    let ended = ended(results.path());
    assert!(!ended.is_empty(), "{}", String::from_utf8_lossy(&output.stderr));
    ended
}

fn ended(results: &Path) -> BTreeMap<String, Vec<String>> {
    let mut ended: BTreeMap<String, Vec<String>> = BTreeMap::new();
    for scenario in fs::read_dir(results).unwrap().map(|entry| entry.unwrap().path()) {
        let name = scenario.file_name().unwrap().to_str().unwrap();
        let name = name[..name.len() - TIME_OF_RUN].strip_prefix("server-").unwrap().to_owned();
        let checks: Value = serde_json::from_slice(&fs::read(scenario.join("checks.json")).unwrap()).unwrap();
        for check in checks.as_array().unwrap() {
            let key = format!("{name}: {}", check["id"].as_str().unwrap());
            ended.entry(key).or_default().push(check["status"].as_str().unwrap().to_owned());
        }
    }
    ended
}
