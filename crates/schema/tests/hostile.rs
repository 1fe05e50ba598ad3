//! Schemas and arguments of somebody who wants the check to take for ever, ask around, or end the process.
#![allow(clippy::unwrap_used)]

use schema::{Misfit, Schema, Unusable};
use serde_json::{Value, json};

fn compiled(schema: &Value) -> Schema {
    Schema::compile(&schema.to_string()).unwrap()
}

fn refused(schema: &Value) -> Unusable {
    Schema::compile(&schema.to_string()).unwrap_err()
}

fn checked(schema: &Value, arguments: &Value) -> Result<(), Misfit> {
    compiled(schema).check(&arguments.to_string())
}

fn misfit(place: &str, keyword: &str) -> Result<(), Misfit> {
    Err(Misfit::At { place: place.to_owned(), keyword: keyword.to_owned() })
}

/// `levels` of definitions, each of which refers to the next one twice.
fn doubling(levels: usize, keyword: &str) -> Value {
    let mut definitions = serde_json::Map::new();
    for level in 0..levels {
        let next = json!({ "$ref": format!("#/$defs/d{}", level + 1) });
        definitions.insert(format!("d{level}"), json!({ keyword: [next.clone(), next] }));
    }
    definitions.insert(format!("d{levels}"), json!({ "minProperties": 1 }));
    json!({ "type": "object", "$ref": "#/$defs/d0", "$defs": definitions })
}

#[test]
fn what_does_not_fit_is_named_by_its_place_and_never_by_its_value() {
    let schema = json!({
        "type": "object",
        "properties": {
            "amount": { "type": "integer", "maximum": 10 },
            "to": { "type": "array", "items": { "type": "string", "pattern": "^[a-z]+$" } },
        },
        "required": ["amount"],
        "additionalProperties": false,
    });
    assert_eq!(checked(&schema, &json!({ "amount": 3, "to": ["a"] })), Ok(()));
    assert_eq!(checked(&schema, &json!({})), misfit("", "required"));
    assert_eq!(checked(&schema, &json!({ "amount": 11 })), misfit("/amount", "maximum"));
    assert_eq!(checked(&schema, &json!({ "amount": "secret" })), misfit("/amount", "type"));
    assert_eq!(checked(&schema, &json!({ "amount": 1, "to": ["a", "B"] })), misfit("/to/1", "pattern"));
    assert_eq!(checked(&schema, &json!({ "amount": 1, "Amount": 1 })), misfit("", "additionalProperties"));
}

#[test]
fn a_check_is_quick_if_it_takes_few_steps_and_matches_nothing() {
    let quick = |schema: &Value, arguments: &Value| compiled(schema).check_if_quick(&arguments.to_string());
    let amounts = json!({ "items": { "type": "integer", "maximum": 10 } });
    assert_eq!(quick(&amounts, &json!([1, 2])), Some(Ok(())));
    assert_eq!(quick(&amounts, &json!([1, 11])), Some(misfit("/1", "maximum")));
    assert!(matches!(compiled(&amounts).check_if_quick("[1,"), Some(Err(Misfit::Unreadable(_)))));
    assert_eq!(quick(&amounts, &json!(vec![1; 1_500])), None, "too many steps");
    assert_eq!(quick(&json!({}), &json!("a".repeat(5_000))), None, "too long");
    assert_eq!(quick(&json!({ "pattern": "a" }), &json!("a")), None, "a regular expression");
    assert_eq!(quick(&doubling(20, "allOf"), &json!({})), None, "references that double");
}

#[test]
fn a_draft_is_known_by_its_name_and_no_name_is_the_newest() {
    let tuple = |dialect: Option<&str>, keyword: &str| {
        let mut schema = json!({ "properties": { "a": { keyword: [{ "type": "string" }] } } });
        if let Some(dialect) = dialect {
            schema["$schema"] = dialect.into();
        }
        checked(&schema, &json!({ "a": [1] }))
    };
    assert_eq!(tuple(None, "prefixItems"), misfit("/a/0", "type"));
    assert_eq!(
        tuple(Some("https://json-schema.org/draft/2020-12/schema"), "prefixItems"),
        misfit("/a/0", "type")
    );
    assert_eq!(tuple(Some("http://json-schema.org/draft-07/schema#"), "items"), misfit("/a/0", "type"));
    assert_eq!(tuple(Some("http://json-schema.org/draft-07/schema#"), "prefixItems"), Ok(()));
    assert_eq!(refused(&json!({ "$schema": "https://schema.example/own" })), Unusable::Dialect);
}

#[test]
fn nothing_outside_is_asked_for() {
    for reference in
        ["https://schema.example/a", "file:///etc/passwd", "other.json", "#name", "#/absent", "//x#/a"]
    {
        let schema = json!({ "properties": { "a": { "$ref": reference } } });
        assert!(matches!(refused(&schema), Unusable::Reference(_)), "{reference}");
    }
    for schema in [
        json!({ "properties": { "a": { "$id": "https://schema.example/b" } } }),
        json!({ "$dynamicRef": "#x", "$dynamicAnchor": "x" }),
        json!({ "$recursiveRef": "#" }),
    ] {
        assert!(matches!(refused(&schema), Unusable::Reference(_)), "{schema}");
    }
}

#[test]
fn members_that_are_called_like_keywords_are_members() {
    let schema = json!({ "properties": { "$ref": { "type": "string" }, "$id": { "type": "integer" } } });
    assert_eq!(checked(&schema, &json!({ "$ref": "x", "$id": 1 })), Ok(()));
    assert_eq!(checked(&schema, &json!({ "$ref": 1 })), misfit("/$ref", "type"));
}

#[test]
fn references_that_double_at_each_level_are_not_followed_for_ever() {
    for keyword in ["allOf", "anyOf", "oneOf"] {
        assert_eq!(checked(&doubling(60, keyword), &json!({ "a": 1 })), Err(Misfit::TooCostly), "{keyword}");
        assert_eq!(checked(&doubling(3, "allOf"), &json!({ "a": 1 })), Ok(()));
    }
}

#[test]
fn a_schema_that_doubles_with_each_level_of_the_arguments_is_too_costly() {
    let inner = json!({ "properties": { "a": { "$ref": "#" } } });
    let schema = json!({ "allOf": [inner.clone(), inner] });
    let mut arguments = json!({});
    for _ in 0..40 {
        arguments = json!({ "a": arguments });
    }
    assert_eq!(checked(&schema, &arguments), Err(Misfit::TooCostly));
}

#[test]
fn a_schema_that_refers_to_itself_at_one_value_ends() {
    for schema in [
        json!({ "$ref": "#" }),
        json!({ "allOf": [{ "$ref": "#" }] }),
        json!({ "$ref": "#/$defs/a", "$defs": { "a": { "$ref": "#/$defs/b" }, "b": { "$ref": "#/$defs/a" } } }),
        json!({ "not": { "$ref": "#" } }),
    ] {
        let checked = Schema::compile(&schema.to_string()).map(|schema| schema.check("{}"));
        assert!(matches!(checked, Ok(Err(Misfit::TooCostly)) | Err(_)), "{schema}: {checked:?}");
    }
}

#[test]
fn a_tree_may_refer_to_itself() {
    let schema =
        json!({ "properties": { "l": { "$ref": "#" }, "r": { "$ref": "#" }, "n": { "type": "integer" } } });
    let leaf = json!({ "n": 1 });
    assert_eq!(checked(&schema, &json!({ "l": { "l": leaf, "r": leaf }, "r": leaf })), Ok(()));
    assert_eq!(checked(&schema, &json!({ "l": { "r": { "n": "x" } } })), misfit("/l/r/n", "type"));
}

#[test]
fn as_deep_as_may_be_is_checked_on_a_small_stack() {
    let schema = json!({ "properties": { "a": { "$ref": "#" } }, "additionalProperties": false });
    let nested = |levels: usize| "{\"a\":".repeat(levels) + "{}" + &"}".repeat(levels);
    let check = move || {
        let schema = compiled(&schema);
        (schema.check(&nested(60)), schema.check(&nested(63)), schema.check(&nested(200)))
    };
    let thread = std::thread::Builder::new().stack_size(1 << 20).spawn(check).unwrap();
    let (deep, deepest, too_deep) = thread.join().unwrap();
    assert_eq!((deep, deepest), (Ok(()), Ok(())));
    assert!(matches!(too_deep, Err(Misfit::Unreadable(_))), "{too_deep:?}");
}

#[test]
fn a_regular_expression_does_not_backtrack() {
    let schema = json!({ "properties": { "a": { "pattern": "^(a+)+$" } } });
    let text = "a".repeat(60_000) + "b";
    assert_eq!(checked(&schema, &json!({ "a": text })), misfit("/a", "pattern"));
    for pattern in ["(?=a)b", r"(a)\1", "(a{1000}){1000}", "("] {
        let schema = json!({ "properties": { "a": { "pattern": pattern } } });
        assert!(matches!(refused(&schema), Unusable::Invalid(_)), "{pattern}");
    }
    let long = json!({ "pattern": "a".repeat(5_000) });
    assert_eq!(refused(&long), Unusable::Patterns);
    let many: serde_json::Map<String, Value> = (0..300).map(|n| (format!("^{n}"), json!(true))).collect();
    assert_eq!(refused(&json!({ "patternProperties": many })), Unusable::Patterns);
}

#[test]
fn many_expressions_over_a_long_text_are_too_costly() {
    let all: Vec<Value> = (0..100).map(|n| json!({ "pattern": format!("x{n}") })).collect();
    let schema = json!({ "properties": { "a": { "anyOf": all } } });
    assert_eq!(checked(&schema, &json!({ "a": "y".repeat(60_000) })), Err(Misfit::TooCostly));
    assert_eq!(checked(&schema, &json!({ "a": "x99" })), Ok(()));
}

#[test]
fn what_is_no_schema_is_refused() {
    for text in [
        "",
        "[]",
        "true",
        "{",
        r#"{"type":1}"#,
        r#"{"type":"object","type":"array"}"#,
        r#"{"properties":[]}"#,
    ] {
        assert!(Schema::compile(text).is_err(), "{text}");
    }
    let deep = "{\"not\":".repeat(100) + "{}" + &"}".repeat(100);
    assert!(matches!(Schema::compile(&deep), Err(Unusable::Unreadable(_))));
    let long = format!(r#"{{"description":"{}"}}"#, "x".repeat(70_000));
    assert!(matches!(Schema::compile(&long), Err(Unusable::Unreadable(_))));
}

#[test]
fn arguments_in_which_two_readers_see_different_things_do_not_fit() {
    let schema = compiled(&json!({}));
    for text in [r#"{"a":1,"a":2}"#, r#"{"$serde_json::private::RawValue":"1"}"#, "{\"a\":\"\\ud800\"}"] {
        assert!(matches!(schema.check(text), Err(Misfit::Unreadable(_))), "{text}");
    }
}
