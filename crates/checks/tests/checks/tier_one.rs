//! Tier 1.

use checks::CheckRequest;
use checks::jobs::NoEngines;
use serde_json::{Value, json};

use crate::fake::{request, run_checks, statuses};

fn checked(content: &Value, criteria: &Value) -> checks::Report {
    let mut value = json!({ "tier": 1, "artifact": { "content": content } });
    value.as_object_mut().unwrap().extend(criteria.as_object().unwrap().clone());
    run_checks(&request(&value), &NoEngines::default()).unwrap()
}

#[test]
fn a_schema_decides_about_json() {
    let schema = json!({ "schema": { "type": "object", "required": ["total"] } });
    assert_eq!(checked(&json!({ "total": 1 }), &schema).verdict().as_str(), "pass");
    let report = checked(&json!({}), &schema);
    assert_eq!(report.verdict().as_str(), "fail");
    assert!(report.details[0].message.as_ref().unwrap().contains("required"));
    assert_eq!(checked(&json!("{\"total\": 2}"), &schema).verdict().as_str(), "pass");
    assert_eq!(checked(&json!("{\"total\": 2"), &schema).verdict().as_str(), "fail");
}

#[test]
fn constraints_see_the_value_the_text_and_the_files() {
    let criteria = json!({ "constraints": [
        { "name": "sum", "expression": "sum(input.value.parts) == input.value.total" },
        { "name": "text", "expression": "contains(input.text, \"total\")" },
        { "name": "file", "expression": "count(input.files) == 1" },
        { "name": "pattern", "pattern": "\"total\":[0-9]+" },
        { "name": "absent", "expression": "input.value.other == 1" },
        { "name": "type", "expression": "count(input.value.total) == 1" },
    ]});
    let report = checked(&json!({ "parts": [1, 2], "total": 3 }), &criteria);
    let expected = [
        ("absent", "fail"),
        ("file", "pass"),
        ("pattern", "pass"),
        ("sum", "pass"),
        ("text", "pass"),
        ("type", "fail"),
    ];
    assert_eq!(statuses(&report), expected.into());
    assert!(report.details[4].message.as_ref().unwrap().contains("absent or null"));
    assert_eq!(report.engine.sandbox, "none");
}

#[test]
fn a_schema_or_an_expression_that_reaches_out_is_refused() {
    for criteria in [
        json!({ "schema": { "$ref": "https://example.com/schema" } }),
        json!({ "constraints": [{ "name": "a", "expression": "time.now_ns() > 0" }] }),
        json!({ "constraints": [{ "name": "a", "pattern": "(" }] }),
        json!({ "constraints": [{ "name": "a", "pattern": "a", "expression": "true" }] }),
    ] {
        let mut value = json!({ "tier": 1, "artifact": { "content": 1 } });
        value.as_object_mut().unwrap().extend(criteria.as_object().unwrap().clone());
        assert!(CheckRequest::parse(value.to_string().as_bytes()).is_err(), "{criteria}");
    }
}
