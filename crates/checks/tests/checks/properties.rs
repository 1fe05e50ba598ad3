//! Tier 2.

use checks::limits::BATCH_INPUT;
use checks::{CheckRequest, Detail, JobEnd};
use sandbox::{Call, Ending};
use serde_json::{Value, json};

use crate::fake::{Fake, ended, function, request, returned, run_checks, statuses};

fn properties(properties: &Value) -> Value {
    json!({ "tier": 2, "artifact": { "language": "javascript", "content": "…" }, "properties": properties })
}

/// Sorts, and drops the second of two equal numbers.
fn wrong_sort(arguments: &[Value]) -> String {
    let mut numbers: Vec<i64> = serde_json::from_value(arguments[0].clone()).unwrap();
    numbers.sort_unstable();
    numbers.dedup();
    serde_json::to_string(&numbers).unwrap()
}

#[test]
fn the_smallest_counterexample_is_found_and_is_the_same_every_time() {
    let value = properties(&json!([{
        "name": "keeps its items",
        "function": "sort",
        "arguments": [{ "type": "array", "items": { "type": "integer", "minimum": 0, "maximum": 20 } }],
        "property": "count(input.output) == count(input.arguments[0])",
        "cases": 200,
    }]));
    let run =
        || run_checks(&request(&value), &Fake::new(|call| returned(&wrong_sort(&function(call).1)))).unwrap();
    let report = run();
    let detail = &report.details[0];
    assert_eq!(detail.status.as_str(), "fail");
    assert!(detail.message.as_ref().unwrap().ends_with("has the arguments [[0,0]]"), "{detail:?}");
    assert_eq!(detail.actual.as_deref(), Some(r#"{"arguments":[[0,0]],"output":[0]}"#));
    assert_eq!(report.seed.as_ref().unwrap().len(), 64);
    assert_eq!(run(), report);
}

/// A property that fails for large numbers; `end` says how the function ends for a number.
fn ended_with(end: impl Fn(i64) -> JobEnd) -> Detail {
    let value = properties(&json!([{
        "name": "small",
        "arguments": [{ "type": "integer", "minimum": 0, "maximum": 1_000 }],
        "property": "input.output < 500",
        "cases": 100,
    }]));
    let runner = Fake::new(|call| end(function(call).1[0].as_i64().unwrap()));
    run_checks(&request(&value), &runner).unwrap().details.remove(0)
}

#[test]
fn a_case_that_fails_counts_more_than_one_that_could_not_be_decided_before() {
    let slow_if_small = |number| match number {
        0..100 => ended(Ending::OutOfTime),
        _ => returned(&number.to_string()),
    };
    assert_eq!(ended_with(slow_if_small).status.as_str(), "fail");
    let undecided = ended_with(|_| ended(Ending::OutOfTime));
    assert_eq!(undecided.status.as_str(), "error");
    assert!(undecided.message.unwrap().starts_with("case 1: "));
}

#[test]
fn a_counterexample_stays_as_it_is_if_a_smaller_one_could_not_be_decided() {
    // The first smaller number is always 0.
    let slow_at_zero = |number| match number {
        0 => ended(Ending::OutOfTime),
        _ => returned(&number.to_string()),
    };
    let detail = ended_with(slow_at_zero);
    let message = detail.message.unwrap();
    assert!(message.contains("not made smaller, because a smaller one could not be decided"), "{message}");
    assert!(!message.ends_with("[500]"), "{message}");
    let quick = ended_with(|number| returned(&number.to_string()));
    assert!(quick.message.unwrap().contains("the smallest counterexample after"));
}

#[test]
fn a_property_over_two_calls_sees_both_outputs() {
    let value = properties(&json!([{
        "name": "sorting twice changes nothing",
        "function": "sort",
        "arguments": [{ "type": "array", "items": { "type": "integer" } }],
        "again": "sort",
        "property": "input.again == input.output",
        "cases": 40,
    }]));
    let runner = Fake::new(|call| returned(&wrong_sort(&function(call).1)));
    let report = run_checks(&request(&value), &runner).unwrap();
    assert_eq!(statuses(&report), [("sorting twice changes nothing", "pass")].into());
    assert_eq!((report.cases, runner.calls().len()), (Some(40), 80));
}

#[test]
fn outputs_that_grow_in_their_canonical_form_are_passed_on_in_several_batches() {
    let mut value = properties(&json!([{
        "name": "p", "function": "long", "arguments": [], "again": "short", "property": "input.again == 1", "cases": 3,
    }]));
    value["limits"] = json!({ "output_bytes": 1 << 20 });
    let long = format!("[{}1]", "1e20,".repeat(200_000));
    let runner = Fake::new(|call| match call {
        Call::Function { function, .. } if function == "long" => returned(&long),
        _ => returned("1"),
    });
    let report = run_checks(&request(&value), &runner).unwrap();
    assert_eq!(statuses(&report), [("p", "pass")].into(), "{:?}", report.details);
    let batches = runner.batches.lock().unwrap();
    let bytes = |call: &Call| match call {
        Call::Function { arguments, .. } => arguments.len(),
        Call::Program { .. } => 0,
    };
    let sums: Vec<usize> = batches.iter().map(|batch| batch.calls.iter().map(bytes).sum()).collect();
    assert!(sums.iter().all(|sum| *sum <= BATCH_INPUT), "{sums:?}");
    assert_eq!(batches.iter().map(|batch| batch.calls.len()).collect::<Vec<_>>(), [3, 2, 1]);
}

#[test]
fn inputs_fit_their_generators() {
    let value = properties(&json!([{
        "name": "p",
        "arguments": [
            { "type": "integer", "minimum": -3, "maximum": 5 },
            { "type": "string", "alphabet": "ab", "min_length": 2, "max_length": 4 },
            { "type": "object", "members": { "k": { "type": "boolean" } } },
            { "type": "one_of", "of": [{ "type": "choice", "values": [null] }, { "type": "integer", "minimum": 7, "maximum": 7 }] },
        ],
        "property": "true",
        "cases": 300,
    }]));
    let runner = Fake::new(|_| returned("1"));
    run_checks(&request(&value), &runner).unwrap();
    let mut integers = std::collections::BTreeSet::new();
    for call in runner.calls() {
        let (name, arguments) = function(&call);
        assert_eq!(name, "main");
        integers.insert(arguments[0].as_i64().unwrap());
        let text = arguments[1].as_str().unwrap();
        assert!((2..=4).contains(&text.len()) && text.chars().all(|c| "ab".contains(c)), "{text}");
        assert!(arguments[2]["k"].is_boolean());
        assert!(arguments[3].is_null() || arguments[3] == 7);
    }
    assert_eq!(integers, (-3..=5).collect());
}

#[test]
fn a_change_of_the_work_changes_the_inputs() {
    let inputs = |content: &str| {
        let mut value = properties(&json!([{
            "name": "p", "arguments": [{ "type": "integer" }], "property": "true",
        }]));
        value["artifact"]["content"] = content.into();
        let runner = Fake::new(|_| returned("1"));
        run_checks(&request(&value), &runner).unwrap();
        runner.calls()
    };
    assert_eq!(inputs("a"), inputs("a"));
    assert_ne!(inputs("a"), inputs("b"));
}

#[test]
fn a_generator_of_too_much_is_refused() {
    let array =
        |items: Value| json!({ "type": "array", "min_items": 1024, "max_items": 1024, "items": items });
    let value = properties(&json!([{
        "name": "p", "arguments": [array(array(array(json!({ "type": "boolean" }))))], "property": "true",
    }]));
    let error = CheckRequest::parse(value.to_string().as_bytes()).unwrap_err();
    assert_eq!(error.pointer, "/properties/0/arguments");
    // Names and the bytes of choices count too: 1024 values of 3000 bytes each.
    let choice = json!({ "type": "choice", "values": [{ "n".repeat(3_000): 1 }] });
    let named = json!({ "type": "object", "members": { "n".repeat(3_000): { "type": "boolean" } } });
    for items in [choice, named] {
        let value = properties(&json!([{ "name": "p", "arguments": [array(items)], "property": "true" }]));
        let error = CheckRequest::parse(value.to_string().as_bytes()).unwrap_err();
        assert!(error.message.contains("more than 40000 values and bytes"), "{error}");
    }
    let value = properties(&json!([{
        "name": "p", "arguments": [], "property": "input.again == 1",
    }]));
    assert_eq!(CheckRequest::parse(value.to_string().as_bytes()).unwrap_err().pointer, "/properties/0/again");
}
