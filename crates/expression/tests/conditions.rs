//! What conditions answer, and what no condition may be.
#![allow(clippy::unwrap_used)]

use expression::limits::{MULTIPLICATIONS, STATEMENTS, TEXT_BYTES};
use expression::{Answer, CompileError, EvalError, Expression, Input};
use proptest::prelude::*;
use serde_json::{Value, json};

fn receipt() -> Value {
    json!({
        "iss": "https://verifier.example",
        "content_type": "application/vrf+json",
        "size": 1200,
        "record": {"verdict": "fail", "tier": 0, "hashes": {"output": "sha256:00"}, "runs": [1, 2, 3], "score": 0.5},
        "claims": {"iat": 1_790_000_000},
    })
}

fn holds(text: &str) -> bool {
    Expression::compile(text).unwrap().evaluate(&receipt()).unwrap()
}

fn refused(text: &str) -> CompileError {
    match Expression::compile(text) {
        Ok(_) => panic!("{text:?} was taken for a condition"),
        Err(why) => why,
    }
}

#[test]
fn a_condition_holds_when_all_of_its_statements_hold() {
    assert!(holds(r#"input.record.verdict != "pass"; input.record.tier < 1"#));
    assert!(holds("input.record.verdict == \"fail\"\ninput.record.tier < 1"));
    assert!(!holds(r#"input.record.verdict == "pass"; input.record.tier < 1"#));
    assert!(!holds(r#"input.record.verdict == "fail"; input.record.tier > 1"#));
}

#[test]
fn what_a_document_lacks_is_no_failure() {
    assert!(!holds("input.record.absent > 3"));
    assert!(!holds("input.arguments.amount > 1000"));
    assert!(holds("not input.arguments"));
}

#[test]
fn a_condition_may_look_at_every_item_of_a_list() {
    assert!(holds("some run in input.record.runs; run > 2"));
    assert!(!holds("some run in input.record.runs; run > 3"));
    assert!(holds("every run in input.record.runs { run > 0 }"));
    assert!(!holds("every run in input.record.runs { run > 1 }"));
    assert!(holds("count([run | some run in input.record.runs; run > 1]) == 2"));
    assert!(holds(r#"input.record.verdict in {"fail", "error"}"#));
    assert!(holds("sum(input.record.runs) == 6; max(input.record.runs) - 1 == 2"));
}

#[test]
fn texts_are_compared_by_functions_of_their_own() {
    assert!(holds(r#"startswith(input.iss, "https://"); endswith(input.iss, ".example")"#));
    assert!(holds(r#"regex.match(`^https://[a-z]+\.example$`, input.iss)"#));
    assert!(holds(r#"lower(upper(input.record.verdict)) == "fail"; contains(input.content_type, "vrf")"#));
    assert!(holds(r#"input["record"]["hashes"]["output"] == "sha256:00""#));
}

#[test]
fn numbers_are_compared_by_value() {
    assert!(holds("input.record.score == 0.5; input.record.score * 2 == 1"));
    assert!(holds("input.size > 1000; input.size <= 1200"));
    let large = Expression::compile("input.n == 18446744073709551615").unwrap();
    assert!(large.evaluate(&json!({"n": u64::MAX})).unwrap());
    assert!(!large.evaluate(&json!({"n": u64::MAX - 1})).unwrap());
}

#[test]
fn a_comment_ends_with_its_line_and_takes_nothing_along() {
    assert!(holds("input.size > 0 # and that is all }"));
}

#[test]
fn a_function_given_what_it_cannot_take_is_a_failure_and_not_false() {
    let condition = Expression::compile("startswith(input.size, \"1\")").unwrap();
    let Err(EvalError::Failed(why)) = condition.evaluate(&receipt()) else { panic!("it had an answer") };
    assert!(why.contains("startswith"), "{why}");
    let nothing = Expression::compile("1 / input.record.tier > 0").unwrap();
    assert!(matches!(nothing.evaluate(&receipt()), Err(EvalError::Failed(_))));
}

#[test]
fn the_reason_of_a_failure_is_short_and_one_line() {
    let condition = Expression::compile("count(input.n) > 1").unwrap();
    let Err(EvalError::Failed(why)) = condition.evaluate(&json!({"n": 5})) else {
        panic!("it had an answer")
    };
    assert!(!why.contains('\n'), "{why}");
    let condition = Expression::compile("max(input.text) > 1").unwrap();
    let Err(EvalError::Failed(why)) = condition.evaluate(&json!({"text": "x".repeat(100_000)})) else {
        panic!("it had an answer")
    };
    assert!(why.len() < 1_000, "{} bytes", why.len());
}

#[test]
fn a_text_cannot_leave_its_rule() {
    for text in [
        "true }\nholds if { true",
        "false }\nholds if { true }\nother if {",
        "false } else if { true",
        "false } else := true { true",
        "true }\ndefault holds := true\nother if { true",
        "true }\nimport data.secrets\nother if { true",
        "true }\npackage other\nholds if { true",
        "true } #",
        "input.size > 3, input.size > 9999",
        "input.size > 3,",
        "\"a\": false",
        "x | some x in input.record.runs",
        "x: 1 | some x in input.record.runs",
        "input.size, false",
        "true }",
        "{ true",
        "package other",
        "import rego.v1",
        "default holds := true",
        "f(x) := x",
        "x if { true }",
    ] {
        refused(text);
    }
}

#[test]
fn a_condition_sees_its_input_only() {
    for text in [
        "data.condition.holds",
        "data[\"condition\"]",
        "data",
        "count(data) > 0",
        "some x in data; x",
        "not data.x",
        "{x | some x in data}",
        "input[data.x]",
        "holds",
        "not holds",
        "undeclared > 3",
        "inptu.size > 3",
        "input := {}; not input.x",
        "some input in [1]; input == 1",
        "some input; input == 1",
        "every input in [1] { input == 1 }",
        "input.size > 3 with input as {}",
        "input.size > 3 with data.x as 3",
    ] {
        refused(text);
    }
}

#[test]
fn only_pure_and_cheap_functions_may_be_called() {
    for call in [
        "time.now_ns() > 0",
        "rand.intn(\"x\", 10) > 5",
        "uuid.rfc4122(\"x\") != \"\"",
        "opa.runtime().env.HOME != \"\"",
        "http.send({\"method\": \"get\", \"url\": \"http://example.com\"}).status_code == 200",
        "net.lookup_ip_addr(\"example.com\") != set()",
        "trace(\"x\")",
        "print(input)",
        "io.jwt.decode(input.x)",
        "crypto.sha256(input.x) == \"\"",
        "numbers.range(0, 1000000000)",
        "count(numbers.range(0, 1000000000)) > 0",
        "replace(input.x, \"\", input.x) == \"\"",
        "sprintf(\"%1000000000d\", [1]) == \"\"",
        "concat(input.x, input.y) == \"\"",
        "product(input.x) > 1",
        "bits.lsh(1, 1000000000) > 1",
        "walk(input, [p, v])",
        "json.unmarshal(input.x)",
        "some x in [y | y := time.now_ns()]; x > 0",
        "every x in input.record.runs { trace(\"x\") }",
        "input[time.now_ns()]",
        "input.size > 1; not trace(\"x\")",
        "{\"a\": time.now_ns()}.a > 1",
        "{time.now_ns(): 1}",
        "f(1)",
        "input.f(1)",
        "input.size.count(3)",
    ] {
        let why = refused(call);
        assert!(!why.why.is_empty());
    }
    assert!(refused("time.now_ns() > 0").why.contains("time.now_ns"));
}

#[test]
fn a_mistake_names_its_line_and_column() {
    let why = refused("input.size > 3\ninput.record.tier >");
    assert_eq!(why.line, 2, "{why}");
    let why = refused("input.size > 3\n  time.now_ns() > 0");
    assert_eq!((why.line, why.column), (2, 3), "{why}");
    let why = refused("input.size > 3 \u{1}");
    assert_eq!((why.line, why.column), (1, 16), "{why}");
    let why = refused("undeclared > 3");
    assert_eq!((why.line, why.column), (1, 1), "{why}");
}

#[test]
fn a_pattern_is_written_out_and_checked_when_the_condition_is_read() {
    assert!(refused("regex.match(input.pattern, input.iss)").why.contains("written out"));
    assert!(refused("regex.match(`[`, input.iss)").why.contains("regular expression"));
    assert!(
        refused("regex.match(`(?:[a-z]{1,1000}){1,1000}`, input.iss)").why.contains("regular expression")
    );
    let condition = Expression::compile("regex.match(`(?i)(a.*){9}z`, input)").unwrap();
    assert_eq!(condition.evaluate(&json!("a".repeat(65_536))), Ok(false));
    assert!(matches!(condition.evaluate(&json!("a".repeat(65_537))), Err(EvalError::Failed(_))));
}

#[test]
fn a_condition_has_a_size() {
    assert!(refused(&format!("input.x == \"{}\"", "x".repeat(TEXT_BYTES))).why.contains("bytes"));
    assert!(refused(&"input.size > 0\n".repeat(STATEMENTS + 1)).why.contains("statements"));
    assert!(holds(&"input.size > 0\n".repeat(STATEMENTS)));
    assert!(
        refused(&format!("input.size {} > 0", "* 2 ".repeat(MULTIPLICATIONS + 1))).why.contains("multipl")
    );
    assert!(refused(&format!("input.size > {}", "9".repeat(40))).why.contains("number"));
    for (open, close) in
        [("(", ")"), ("[", "]"), ("{", "}"), ("{1: ", "}"), ("count([", "])"), ("{1 | ", "}")]
    {
        let _ = Expression::compile(&format!("{}1{} == 1", open.repeat(8), close.repeat(8)));
        refused(&format!("{}1{} == 1", open.repeat(9), close.repeat(9)));
        refused(&format!("{}1{} == 1", open.repeat(400), close.repeat(400)));
        refused(&format!("{} == 1", open.repeat(400)));
    }
    assert!(refused(&"count([]) == 0\n".repeat(33)).why.contains("brackets"));
    assert!(holds(
        r#"input.iss != "((((((((([[[[[[[[[[{{{{{{{{"; not regex.match(`\[{9}`, input.iss) # (((((((("#
    ));
    refused(&format!("input.size > 0 {}", "+ 1 ".repeat(900)));
    refused("1e999999999 > input.size");
    for nothing in ["", "  \n\t ", "# nothing"] {
        refused(nothing);
    }
}

#[test]
fn a_document_has_a_size() {
    let condition = Expression::compile("input.size > 0").unwrap();
    let mut deep = json!(1);
    for _ in 0..200 {
        deep = json!([deep]);
    }
    assert!(matches!(condition.evaluate(&deep), Err(EvalError::Failed(_))));
    assert!(matches!(condition.evaluate(&json!(vec![0; 300_000])), Err(EvalError::Failed(_))));
    assert!(matches!(condition.evaluate(&json!("x".repeat(9 << 20))), Err(EvalError::Failed(_))));
}

#[test]
fn a_condition_without_end_stops_at_the_limit() {
    let list: Vec<_> = (0..10_000).collect();
    let document = json!({"list": list});
    for text in [
        "some a in input.list; some b in input.list; some c in input.list; a + b + c < 0",
        "count([1 | some a in input.list; some b in input.list; a + b > 0]) < 0",
        "every a in input.list { every b in input.list { a + b >= 0 } }",
        "some a, b in input.list; some c in [x | some x in input.list; x > a]; c < 0",
        "x := {a | some a in input.list}; some a in x; not a in {b | some b in input.list}",
    ] {
        let condition = Expression::compile(text).unwrap();
        assert_eq!(condition.evaluate(&document), Err(EvalError::TimedOut), "{text}");
    }
}

#[test]
fn numbers_cannot_grow_without_end() {
    let text = "a := input.n * input.n; b := a * a; c := b * b; d := c * c; e := d * d; f := e * e; g := f * f; h := g * g; h > 0";
    assert!(Expression::compile(text).unwrap().evaluate(&json!({"n": u64::MAX})).unwrap());
}

#[test]
fn the_deepest_condition_fits_a_small_stack() {
    let nested = (1..STATEMENTS).map(|at| format!("some a{at} in input.x; ")).collect::<String>() + "a1 > 0";
    let every = (0..8).fold("true".to_owned(), |inner, at| format!("every a{at} in input.x {{ {inner} }}"));
    let asked = std::thread::Builder::new().stack_size(1 << 20).spawn(move || {
        for text in [nested, every] {
            assert_eq!(Expression::compile(&text).unwrap().evaluate(&json!({"x": [1]})), Ok(true), "{text}");
        }
    });
    asked.unwrap().join().unwrap();
}

#[test]
fn one_condition_is_asked_by_many_threads() {
    let condition = Expression::compile("input.n > 10").unwrap();
    std::thread::scope(|scope| {
        for thread in 0..4 {
            let condition = &condition;
            scope.spawn(move || {
                for n in 0..50 {
                    assert_eq!(condition.evaluate(&json!({"n": n})), Ok(n > 10), "thread {thread}");
                }
            });
        }
    });
}

#[test]
fn many_conditions_are_asked_about_one_document() {
    let input = Input::new(&receipt()).unwrap();
    let asked: Vec<_> = ["input.size > 1", "input.size > 9999"]
        .map(|text| Expression::compile(text).unwrap().holds(&input).unwrap())
        .to_vec();
    assert_eq!(asked, [true, false]);
}

/// `vectors/expression/*.json`: a condition, a document, and whether it holds; or a text that is not a condition.
#[test]
fn every_vector_answers_as_it_says() {
    let folder = std::path::Path::new(env!("CARGO_MANIFEST_DIR")).join("../../vectors/expression");
    let mut seen = [0, 0];
    for file in std::fs::read_dir(folder).unwrap() {
        let file = file.unwrap().path();
        let case: Value = serde_json::from_slice(&std::fs::read(&file).unwrap()).unwrap();
        let condition = Expression::compile(case["text"].as_str().unwrap());
        match case["holds"].as_bool() {
            Some(holds) => assert_eq!(condition.unwrap().evaluate(&case["document"]), Ok(holds), "{file:?}"),
            None => assert!(condition.is_err(), "{file:?}"),
        }
        seen[usize::from(case["holds"].is_null())] += 1;
    }
    assert!(seen[0] > 10 && seen[1] > 15, "{seen:?}");
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 64, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn the_same_question_has_the_same_answer(
        verdict in "[a-z]{0,6}", tier in any::<i32>(), runs in proptest::collection::vec(any::<u16>(), 0..20),
    ) {
        let document = json!({"record": {"verdict": verdict, "tier": tier, "runs": runs}});
        for text in [
            "input.record.tier < 1; input.record.verdict != \"pass\"",
            "sum(input.record.runs) > 1000",
            "{rest | some r in input.record.runs; rest := r % 7} == {0, 1}",
            "some r in input.record.runs; some s in input.record.runs; r - s == 17",
        ] {
            let first = Expression::compile(text).unwrap();
            let again = Expression::compile(text).unwrap();
            let answer = first.evaluate(&document);
            prop_assert_eq!(&answer, &first.evaluate(&document));
            prop_assert_eq!(&answer, &again.evaluate(&document));
        }
    }

    #[test]
    fn no_text_brings_the_compiler_down(text in "[a-z .(){}\\[\\]:;=\"`|0-9#,\n]{0,120}") {
        if let Ok(condition) = Expression::compile(&text) {
            let _ = condition.evaluate(&receipt());
        }
    }

    #[test]
    fn a_comparison_of_numbers_agrees_with_rust(left in any::<i64>(), right in any::<i64>()) {
        let condition = Expression::compile("input.left < input.right").unwrap();
        prop_assert_eq!(condition.evaluate(&json!({"left": left, "right": right})), Ok(left < right));
    }
}

/// What a condition says of a document, as [`Expression::answer`] puts it.
fn answer(condition: &str, document: Value) -> Answer {
    let document = json!({ "arguments": document });
    Expression::compile(condition).unwrap().answer(&Input::new(&document).unwrap()).unwrap()
}

#[test]
fn a_member_that_is_left_out_renamed_or_null_does_not_pass_for_a_no() {
    for condition in [
        "input.arguments.amount > 1000",
        r#"input["arguments"]["amount"] > 1000"#,
        "amount := input.arguments.amount; amount > 1000",
        "not input.arguments.approved; input.arguments.amount > 1000",
        r#"input.arguments.tag == "x"; input.arguments.amount > 1000"#,
    ] {
        for hidden in [json!({ "Amount": 5000 }), json!({ "amount": null }), json!({})] {
            let mut document = hidden;
            document["tag"] = "x".into();
            assert_eq!(answer(condition, document.clone()), Answer::MissingMember, "{condition}: {document}");
        }
        let mut document = json!({ "tag": "x", "amount": 5 });
        assert_eq!(answer(condition, document.clone()), Answer::DoesNotHold, "{condition}");
        document["amount"] = 5000.into();
        assert_eq!(answer(condition, document), Answer::Holds, "{condition}");
    }
}

#[test]
fn a_member_that_is_left_out_of_one_item_of_many_is_missing() {
    for condition in [
        "input.arguments.items[_].amount > 1000",
        "some item in input.arguments.items; item.amount > 1000",
        "some i; input.arguments.items[i].amount > 1000",
        "count([a | a := input.arguments.items[_].amount; a > 1000]) > 0",
    ] {
        let items = |items| json!({ "items": items });
        assert_eq!(
            answer(condition, items(json!([{ "amount": 1 }, { "Amount": 5000 }]))),
            Answer::MissingMember,
            "{condition}"
        );
        assert_eq!(answer(condition, items(json!([{ "amount": 1 }]))), Answer::DoesNotHold, "{condition}");
        assert_eq!(answer(condition, items(json!([]))), Answer::DoesNotHold, "{condition}");
        assert_eq!(answer(condition, items(json!([{ "amount": 5000 }]))), Answer::Holds, "{condition}");
        assert_eq!(answer(condition, json!({})), Answer::MissingMember, "{condition}");
    }
}

#[test]
fn a_member_is_read_by_its_path_from_the_document() {
    for (condition, place) in [
        ("xs := [i | some i in input.a; i.kind == `pay`]; xs[_].size > 10", (1, 49)),
        ("some k in [`amount`, `total`]\ninput.record[k] > 1000", (2, 14)),
        ("k := `amount`; input.record[k] > 1000", (1, 29)),
        ("input.record[input.record.field] > 1000", (1, 14)),
        ("input[lower(`AMOUNT`)] > 1000", (1, 7)),
        ("[p, q] := input.record.pair; p.size > 10", (1, 1)),
        ("some [p, q] in input.record.pairs; p.size > 10", (1, 6)),
        ("some `amount`, value in input.record; value > 10", (1, 7)),
        ("input.record.o = x; x.size > 10", (1, 18)),
        ("some x; x = input.record.o; x.size > 10", (1, 9)),
        ("{`size`: size} = input.record.o; size > 10", (1, 10)),
        ("x := sort(input.record.a)[0]; x.size > 10", (1, 6)),
        ("x := [input.record.o]; x[0].size > 10", (1, 24)),
        ("some x in [input.record.o]; x.size > 10", (1, 29)),
        ("every x in [input.record.o] { x.size > 10 }", (1, 31)),
        ("x := object.get(input.record, `o`, {}); x.size > 10", (1, 41)),
        ("not max(input.record.a).size > 10", (1, 5)),
        ("`amount`, 1000 in input.record", (1, 2)),
        ("some name, value in input.record; name == `amount`; value > 10", (1, 35)),
        ("some name, value in input.record; name in {`amount`}; value > 10", (1, 35)),
        ("limits := {`amount`: 10}; some name, value in input.record; value > limits[name]", (1, 76)),
        ("limits := {`amount`: 10}; some name; input.record[name] > limits[name]", (1, 66)),
        ("some i; input.sizes[i] > 10; input.kinds[i] == `pay`", (1, 42)),
        ("some i; input.a[_].b[i].size > 10; input.a[_].b[i].kind == `pay`", (1, 49)),
        ("some x in input.a; count([x | some x in input.b; x.size > 10]) > 0", (1, 36)),
    ] {
        let why = refused(condition);
        assert_eq!((why.line, why.column), place, "{condition}: {why}");
    }
    assert!(refused("sort(input.a)[0].size > 10").why.contains("name the member of the document directly"));
}

#[test]
fn a_member_of_what_a_variable_stands_for_is_missing_where_it_is_left_out() {
    let items = |a: Value, b: Value| json!({ "a": a, "b": b });
    let (large, small, hidden) = (json!([{ "size": 99 }]), json!([{ "size": 1 }]), json!([{ "Size": 99 }]));
    let twice = "count([x | some x in input.arguments.a; x.size > 10]) > 0; \
                 count([x | some x in input.arguments.b; x.size > 10]) > 0";
    assert_eq!(answer(twice, items(large.clone(), large.clone())), Answer::Holds);
    assert_eq!(answer(twice, items(small.clone(), hidden.clone())), Answer::DoesNotHold);
    for condition in [
        twice,
        "some i; input.arguments.a[i].size > 10; input.arguments.b[0].size > 10",
        "some i, _ in input.arguments.a; input.arguments.a[i].size > 10; input.arguments.b[_].size > 10",
        "some size in [input.arguments.a[0].size, input.arguments.b[0].size]; size > 100",
        "not count([x | some x in input.arguments.a; x.size > 10]) == 0",
    ] {
        assert_eq!(
            answer(condition, items(hidden.clone(), large.clone())),
            Answer::MissingMember,
            "{condition}"
        );
        let nothing = answer(condition, items(small.clone(), small.clone()));
        assert_eq!(nothing, Answer::DoesNotHold, "{condition}");
    }
}

#[test]
fn an_item_that_a_condition_numbers_is_missing_where_there_is_none() {
    let condition = "input.arguments.items[0].amount > 1000";
    assert_eq!(answer(condition, json!({ "items": [{ "amount": 1 }, {}] })), Answer::DoesNotHold);
    for items in [json!([]), json!({}), json!({ "0": { "amount": 1 } }), json!([{}])] {
        assert_eq!(answer(condition, json!({ "items": items })), Answer::MissingMember, "{items}");
    }
}

#[test]
fn a_value_that_is_no_part_of_the_document_is_read_freely() {
    for condition in [
        "split(input.iss, `:`)[0] == `https`",
        "{`fail`: 5, `pass`: 9}[input.record.verdict] == 5",
        "limits := {`fail`: 5}; limits.fail == 5; limits[input.record.verdict] > 1",
        "some i; [1, 2][i] == 2",
        "[1, 2][_] == 2; {`a`: [count(input.record.runs)]}.a[0] == 3",
        "some name, value in input.record.hashes; startswith(name, `out`); name != `iat`; contains(value, `:`)",
        "n := max(input.record.runs); n * 2 == 6; n = 3",
    ] {
        assert!(holds(condition), "{condition}");
    }
}

#[test]
fn a_statement_that_is_false_by_itself_decides_whatever_else_is_missing() {
    let condition = r#"input.arguments.action == "transfer"; input.arguments.amount > 1000"#;
    assert_eq!(answer(condition, json!({ "action": "read" })), Answer::DoesNotHold);
    for first in [
        r#""transfer" == input.arguments.action"#,
        r#"(input.arguments.action) == "transfer""#,
        r#"not input.arguments.action == "read""#,
        "input.arguments.action in {`transfer`, \"pay\"}  # what moves money; or should\n",
    ] {
        for condition in [
            format!("{first}; input.arguments.amount > 1000"),
            format!("{first}\ninput.arguments.amount > 1000"),
            format!("input.arguments.amount > 1000; {first}"),
        ] {
            assert_eq!(answer(&condition, json!({ "action": "read" })), Answer::DoesNotHold, "{condition}");
            assert_eq!(
                answer(&condition, json!({ "action": "transfer" })),
                Answer::MissingMember,
                "{condition}"
            );
        }
    }
    assert_eq!(answer(condition, json!({ "action": "transfer" })), Answer::MissingMember);
    assert_eq!(answer(condition, json!({ "amount": 5 })), Answer::DoesNotHold);
}

#[test]
fn a_condition_can_say_what_an_absent_member_means() {
    for (condition, document) in [
        (r#"object.get(input.arguments, "force", false) == true"#, json!({})),
        ("not input.arguments.amount; false", json!({})),
        ("input.arguments.note != null", json!({ "note": null })),
        (r#"type_name(input.arguments.note) == "string""#, json!({ "note": null })),
    ] {
        assert_eq!(answer(condition, document), Answer::DoesNotHold, "{condition}");
    }
    assert_eq!(answer("not input.arguments.amount", json!({ "Amount": 1 })), Answer::Holds);
}

#[test]
fn the_members_that_a_condition_names_are_known() {
    let named = |condition: &str| {
        let condition = Expression::compile(condition).unwrap();
        let members = condition.members();
        members.into_iter().map(|path| path.join(".")).collect::<Vec<_>>()
    };
    assert_eq!(named("not input.a.b; input.c[_].d > 1; x := input.e; x.f == 2"), ["a.b", "c", "e", "e.f"]);
}
