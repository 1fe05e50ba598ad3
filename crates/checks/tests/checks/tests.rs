//! Tier 0.

use checks::JobEnd;
use sandbox::{Call, Ending, Outcome};
use serde_json::{Value, json};

use crate::fake::{Fake, ended, function, outcome, request, returned, run_checks, statuses, wrote};

fn functions(tests: &Value) -> Value {
    json!({ "tier": 0, "artifact": { "language": "python", "content": "…" }, "tests": tests })
}

#[test]
fn each_test_is_a_call_and_is_compared_by_value() {
    let tests = json!([
        { "name": "equal", "function": "f", "arguments": [1, "a"], "expected": { "b": 1, "a": [2.5] } },
        { "name": "other", "function": "g", "expected": [1, 2, 3] },
        { "name": "throws", "function": "h", "expect_throw": "no such" },
    ]);
    let runner = Fake::new(|call| match function(call).0 {
        "f" => returned(r#"{"a":[25e-1],"b":1.0}"#),
        "g" => returned("[1,2,4]"),
        _ => ended(Ending::Threw("ValueError: no such thing".into())),
    });
    let report = run_checks(&request(&functions(&tests)), &runner).unwrap();
    assert_eq!(statuses(&report), [("equal", "pass"), ("other", "fail"), ("throws", "pass")].into());
    assert_eq!(report.details[1].message.as_deref(), Some("at /2: found 4, expected 3"));
    assert_eq!(report.verdict().as_str(), "partial");
    assert_eq!((report.fuel_used, report.execution_ms), (Some(30), 6));
}

#[test]
fn a_program_may_say_that_memory_is_exhausted_if_its_exit_code_is_expected() {
    let tests = json!([{ "name": "a", "expected_exit": 1, "expected_stdout": "Cannot allocate memory\n" }]);
    let printed =
        |ending| JobEnd::Ran(Outcome { stdout: "Cannot allocate memory\n".into(), ..outcome(ending) });
    let runner = Fake::new(|_| printed(Ending::Exited(1)));
    let report = run_checks(&request(&functions(&tests)), &runner).unwrap();
    assert_eq!(statuses(&report), [("a", "pass")].into(), "{:?}", report.details);
}

#[test]
fn a_crash_has_the_last_line_of_standard_error() {
    let tests = json!([{ "name": "a", "expected_stdout": "" }]);
    let stderr = "terminate called after throwing an instance of 'std::bad_alloc'\n".into();
    let crashed = JobEnd::Ran(Outcome { stderr, ..outcome(Ending::Crashed("SIGABRT".into())) });
    let report = run_checks(&request(&functions(&tests)), &Fake::new(|_| crashed.clone())).unwrap();
    let message = report.details[0].message.as_ref().unwrap();
    assert!(message.starts_with("it crashed: SIGABRT; ") && message.contains("std::bad_alloc"), "{message}");
}

#[test]
fn no_expected_value_is_part_of_a_batch() {
    let tests = json!([
        { "name": "a", "arguments": [1], "expected": "SECRET" },
        { "name": "b", "expect_throw": "SECRET" },
        { "name": "c", "stdin": "x", "expected_stdout": "SECRET" },
        { "name": "d", "stdin": "x", "expected_json": ["SECRET"], "expected_exit": 77 },
    ]);
    let runner = Fake::new(|_| returned("null"));
    run_checks(&request(&functions(&tests)), &runner).unwrap();
    let seen = format!("{:?}", runner.batches.lock().unwrap());
    assert_eq!(runner.calls().len(), 4);
    assert!(!seen.contains("SECRET") && !seen.contains("77"), "{seen}");
}

#[test]
fn work_that_breaks_a_counted_bound_fails_and_a_slow_machine_is_an_error() {
    let endings = [
        (Ending::OutOfFuel, "fail"),
        (Ending::OutOfMemory, "fail"),
        (Ending::TooMuchOutput, "fail"),
        (Ending::Crashed("SIGSEGV".into()), "fail"),
        (Ending::Threw("x".into()), "fail"),
        (Ending::Finished, "fail"),
        (Ending::OutOfTime, "error"),
        (Ending::Crashed("SIGKILL".into()), "error"),
    ];
    for (ending, status) in endings {
        let runner = Fake::new(|_| ended(ending.clone()));
        let tests = json!([{ "name": "a", "expected": null }]);
        let report = run_checks(&request(&functions(&tests)), &runner).unwrap();
        assert_eq!(report.details[0].status.as_str(), status, "{ending:?}");
        assert_eq!(report.verdict().as_str(), status, "{ending:?}");
    }
    for end in [JobEnd::NotStarted, JobEnd::Failed("no memory".into())] {
        let runner = Fake::new(|_| end.clone());
        let report = run_checks(&request(&functions(&json!([{ "name": "a", "expected": 1 }]))), &runner);
        assert_eq!(report.unwrap().verdict().as_str(), "error");
    }
}

#[test]
fn work_that_cannot_be_loaded_or_returns_no_json_fails_even_if_it_is_to_throw() {
    let tests = json!([
        { "name": "value", "expected": null },
        { "name": "throws", "expect_throw": true },
        { "name": "throws that", "expect_throw": "Error" },
    ]);
    for ending in [Ending::NotLoaded("SyntaxError".into()), Ending::NotJson("TypeError".into())] {
        let runner = Fake::new(|_| ended(ending.clone()));
        let report = run_checks(&request(&functions(&tests)), &runner).unwrap();
        assert!(report.details.iter().all(|detail| detail.status.as_str() == "fail"), "{report:?}");
    }
}

#[test]
fn a_failed_check_decides_even_if_another_could_not_be_run() {
    let tests = json!([
        { "name": "slow", "function": "slow", "expected": 1 },
        { "name": "wrong", "function": "wrong", "expected": 1 },
    ]);
    let runner = Fake::new(|call| match function(call).0 {
        "slow" => ended(Ending::OutOfTime),
        _ => returned("2"),
    });
    assert_eq!(run_checks(&request(&functions(&tests)), &runner).unwrap().verdict().as_str(), "fail");
}

#[test]
fn a_value_with_a_number_that_parsers_read_differently_equals_nothing() {
    let runner = Fake::new(|_| returned("9007199254740993"));
    let tests = json!([{ "name": "a", "expected": 9007199254740992.0_f64 / 2.0 }]);
    let report = run_checks(&request(&functions(&tests)), &runner).unwrap();
    assert!(report.details[0].message.as_ref().unwrap().contains("2^53"));
}

#[test]
fn a_program_is_compared_by_its_output_and_exit_code() {
    let value = json!({
        "tier": 0,
        "artifact": { "files": { "bin/tool": { "base64": "AAEC" } } },
        "tests": [
            { "name": "text", "args": ["text"], "stdin": "in", "expected_stdout": "out\n" },
            { "name": "json", "args": ["json"], "expected_json": { "n": 1 } },
            { "name": "exit", "args": ["exit"], "expected_exit": 3 },
            { "name": "wrong", "args": ["exit"], "expected_exit": 4 },
        ],
    });
    let runner = Fake::new(|call| match call {
        Call::Program { command, .. } => match &command[..] {
            [program, word] if program == "./bin/tool" => match word.as_str() {
                "text" => wrote("out\n"),
                "json" => wrote("{ \"n\": 1.0 }\n"),
                _ => JobEnd::Ran(Outcome { stderr: b"a\nusage\n".into(), ..outcome(Ending::Exited(3)) }),
            },
            other => panic!("{other:?}"),
        },
        Call::Function { .. } => panic!("no function"),
    });
    let report = run_checks(&request(&value), &runner).unwrap();
    let expected = [("exit", "pass"), ("json", "pass"), ("text", "pass"), ("wrong", "fail")];
    assert_eq!(statuses(&report), expected.into());
    let message = report.details[3].message.as_ref().unwrap();
    assert_eq!(message, "the exit code is 3, expected 4; standard error ends with: usage");
}

#[test]
fn without_an_engine_nothing_is_said_about_the_work() {
    let tests = functions(&json!([{ "name": "a", "expected": 1 }]));
    let error = run_checks(&request(&tests), &checks::jobs::NoEngines::default()).unwrap_err();
    assert_eq!(error.to_string(), "Python functions cannot be run here");
}
