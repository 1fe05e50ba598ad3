//! The time of a request, by a clock of the test.

use std::cell::Cell;
use std::time::Duration;

use checks::jobs::NoEngines;
use checks::limits::COMPARISON_TIME;
use checks::{JobEnd, RunJobs, run_checks};
use sandbox::Ending;
use serde_json::{Value, json};

use crate::fake::{Fake, ended, function, request, returned};

/// Runs a request with a clock that advances one second at each look.
fn run(value: &Value, runner: &dyn RunJobs) -> checks::Report {
    let looks = Cell::new(0);
    let elapsed = || Duration::from_secs(looks.replace(looks.get() + 1));
    run_checks(&request(value), runner, &elapsed).unwrap()
}

fn statuses(report: &checks::Report) -> Vec<&str> {
    report.details.iter().map(|detail| detail.status.as_str()).collect()
}

#[test]
fn constraints_after_the_time_of_the_request_are_errors() {
    let constraint = |name: &str| json!({ "name": name, "pattern": "a" });
    let value = json!({
        "tier": 1, "artifact": { "content": "a" }, "limits": { "total_ms": 2_000 },
        "constraints": [constraint("1"), constraint("2"), constraint("3"), constraint("4")],
    });
    let report = run(&value, &NoEngines::default());
    assert_eq!(statuses(&report), ["pass", "pass", "error", "error"]);
    assert!(report.details[3].message.as_ref().unwrap().contains("limits.total_ms"));
}

#[test]
fn no_batch_is_handed_out_after_the_time_of_the_request() {
    let value = json!({
        "tier": 2, "artifact": { "language": "javascript", "content": "…" }, "limits": { "total_ms": 10_000 },
        "properties": [{ "name": "p", "arguments": [{ "type": "integer" }], "property": "true", "cases": 1_000 }],
    });
    let runner = Fake::new(|_| returned("1"));
    assert_eq!(statuses(&run(&value, &runner)), ["error"]);
    let batches = runner.batches.lock().unwrap();
    assert_eq!(batches.len(), 1);
    assert_eq!(batches[0].total_time, Duration::from_secs(10));
}

fn tests_of(arguments: &[u64]) -> Value {
    let test = |n: &u64| json!({ "name": n.to_string(), "arguments": [n], "expected": 0 });
    json!({
        "tier": 0, "artifact": { "language": "javascript", "content": "…" }, "limits": { "total_ms": 10_000 },
        "tests": arguments.iter().map(test).collect::<Vec<_>>(),
    })
}

#[test]
fn a_wrong_value_fails_its_test_even_if_another_run_used_up_the_time_of_the_request() {
    let clock = Cell::new(Duration::ZERO);
    let runner = Fake::new(|call| match function(call).1[0] == 2 {
        true => {
            clock.set(Duration::from_secs(11));
            ended(Ending::OutOfTime)
        }
        false => returned("1"),
    });
    let report = run_checks(&request(&tests_of(&[1, 2])), &runner, &|| clock.get()).unwrap();
    assert_eq!(statuses(&report), ["fail", "error"]);
    assert_eq!(report.verdict().as_str(), "fail");
}

#[test]
fn a_case_that_came_back_is_judged_after_the_time_of_the_request() {
    let value = json!({
        "tier": 2, "artifact": { "language": "javascript", "content": "…" }, "limits": { "total_ms": 10_000 },
        "properties": [{ "name": "p", "arguments": [{ "type": "integer" }], "property": "input.output == 0" }],
    });
    let clock = Cell::new(Duration::ZERO);
    let runner = Fake::new(|_| {
        clock.set(Duration::from_secs(11));
        returned("1")
    });
    let report = run_checks(&request(&value), &runner, &|| clock.get()).unwrap();
    assert_eq!(statuses(&report), ["fail"]);
    let message = report.details[0].message.as_ref().unwrap();
    assert!(message.contains("not made smaller"), "{message}");
}

#[test]
fn cases_that_were_not_started_are_not_counted_as_run() {
    let value = json!({
        "tier": 2, "artifact": { "language": "javascript", "content": "…" },
        "properties": [{ "name": "p", "arguments": [{ "type": "integer" }], "property": "true", "cases": 25 }],
    });
    let calls = Cell::new(0);
    let runner = Fake::new(|_| match calls.replace(calls.get() + 1) {
        0..22 => returned("1"),
        _ => JobEnd::NotStarted,
    });
    let report = run_checks(&request(&value), &runner, &|| Duration::ZERO).unwrap();
    assert_eq!((statuses(&report), report.cases), (vec!["error"], Some(22)));
    let message = report.details[0].message.as_ref().unwrap();
    assert!(message.starts_with("case 23: "), "{message}");
}

#[test]
fn comparisons_that_take_too_long_are_errors() {
    let clock = Cell::new(Duration::ZERO);
    let slow = || {
        let now = clock.get();
        clock.set(now + COMPARISON_TIME * 2 / 3);
        now
    };
    let report = run_checks(&request(&tests_of(&[1, 2, 3])), &Fake::new(|_| returned("0")), &slow).unwrap();
    assert_eq!(statuses(&report), ["pass", "error", "error"]);
}

#[test]
fn a_work_that_is_too_long_for_a_pattern_is_an_error() {
    let value = json!({
        "tier": 1, "artifact": { "content": "a".repeat(checks::limits::MATCHED_BYTES + 1) },
        "constraints": [{ "name": "1", "pattern": "a" }],
    });
    let report = run(&value, &NoEngines::default());
    assert_eq!(statuses(&report), ["error"]);
    assert!(report.details[0].message.as_ref().unwrap().contains("65537 bytes"));
}
