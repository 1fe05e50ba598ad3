//! The time of a request, by a clock of the test.

use std::cell::Cell;
use std::time::Duration;

use checks::jobs::NoEngines;
use checks::{RunJobs, run_checks};
use serde_json::{Value, json};

use crate::fake::{Fake, request, returned};

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
