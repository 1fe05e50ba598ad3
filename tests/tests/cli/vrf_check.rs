//! `tabellion vrf check` and `vrf recheck`, with real engines.

use black_box::cli::{Ended, Folder};
use serde_json::{Value, json};

const AGENT: &str = "did:web:agent.example";
const SORT: &str =
    "def main(items):\n    return sorted(items)\n\ndef unique(items):\n    return sorted(set(items))\n";

/// A folder with a request of Python work.
fn folder(request: &Value) -> Folder {
    let folder = Folder::new();
    folder.write("check.json", request.to_string());
    folder
}

fn check(folder: &Folder, more: &[&str]) -> Ended {
    folder.run(&[&["vrf", "check", "--json", "--request", "check.json"], more].concat())
}

fn recheck(folder: &Folder) -> Ended {
    folder.run(&["vrf", "recheck", "--json", "check.json.receipt.json", "--request", "check.json"])
}

fn python(work: &str, tests: &Value) -> Value {
    json!({ "tier": 0, "artifact": { "language": "python", "content": work }, "tests": tests })
}

fn receipt(folder: &Folder) -> Value {
    serde_json::from_slice(&folder.read("check.json.receipt.json")).unwrap()
}

#[test]
fn work_that_passes_its_tests_has_a_signed_receipt_that_can_be_checked_again() {
    let mut request =
        python(SORT, &json!([{ "name": "sorts", "arguments": [[3, 1, 2]], "expected": [1, 2, 3] }]));
    request["subject"] = AGENT.into();
    let folder = folder(&request);
    folder.run(&["issuer", "new", "-o", "verifier.pem", "--alg", "EdDSA"]).must_end_with(0);
    let result = check(&folder, &["--key", "verifier.pem"]).must_end_with(0).json();
    assert_eq!((&result["verdict"], &result["passed"]), (&json!("pass"), &json!(1)));
    let verified =
        folder.run(&["vrf", "verify", "--json", "check.json.receipt.json.cose"]).must_end_with(0).json();
    assert_eq!((&verified["verdict"], &verified["agent"]), (&json!("pass"), &json!(AGENT)));
    assert_eq!(receipt(&folder)["metadata"]["sandbox"], "subprocess");
    recheck(&folder).must_end_with(0);

    let other =
        folder.run(&["vrf", "recheck", "--json", "check.json.receipt.json.cose", "--request", "check.json"]);
    assert_eq!(other.must_end_with(0).json()["reproduced"], true);
}

#[test]
fn each_verdict_has_its_exit_code() {
    let one = json!({ "name": "right", "arguments": [[2, 1]], "expected": [1, 2] });
    let other = json!({ "name": "wrong", "arguments": [[2, 1]], "expected": [2, 1] });
    let slow = json!({ "name": "slow", "function": "forever", "expected": 1 });
    let work = format!("{SORT}\ndef forever():\n    import time\n    time.sleep(60)\n");
    for (tests, verdict, code) in
        [(json!([other]), "fail", 3), (json!([one, other]), "partial", 3), (json!([one, slow]), "error", 4)]
    {
        let mut request = python(&work, &tests);
        request["limits"] = json!({ "time_ms": 2000 });
        let folder = folder(&request);
        let result = check(&folder, &[]).must_end_with(code).json();
        assert_eq!(result["verdict"], verdict, "{result}");
    }
}

#[test]
fn a_receipt_about_other_work_is_not_reproduced() {
    let tests = json!([{ "name": "sorts", "arguments": [[2, 1]], "expected": [1, 2] }]);
    let folder = folder(&python(SORT, &tests));
    check(&folder, &[]).must_end_with(0);
    folder.write("check.json", python("def main(items):\n    return items\n", &tests).to_string());
    let result = recheck(&folder).must_end_with(3).json();
    let places: Vec<&str> = result["differences"]
        .as_array()
        .unwrap()
        .iter()
        .map(|place| place["pointer"].as_str().unwrap())
        .collect();
    assert!(places.contains(&"/hashes/output") && places.contains(&"/verdict"), "{places:?}");
}

#[test]
fn programs_read_and_write() {
    let work = "import sys\nprint(sys.stdin.read().upper(), end='')\nsys.exit(len(sys.argv) - 1)\n";
    let folder = folder(&python(
        work,
        &json!([
            { "name": "output", "stdin": "abc", "expected_stdout": "ABC" },
            { "name": "exit", "args": ["x", "y"], "expected_exit": 2 },
        ]),
    ));
    assert_eq!(check(&folder, &[]).must_end_with(0).json()["passed"], 2);
}

#[test]
fn a_counterexample_is_the_same_on_every_run() {
    let folder = folder(&json!({
        "tier": 2,
        "artifact": { "language": "python", "content": SORT },
        "properties": [{
            "name": "keeps its items",
            "function": "unique",
            "arguments": [{ "type": "array", "items": { "type": "integer", "minimum": 0, "maximum": 3 } }],
            "property": "count(input.output) == count(input.arguments[0])",
            "cases": 40,
        }],
    }));
    check(&folder, &[]).must_end_with(3);
    let detail = &receipt(&folder)["results"]["details"][0];
    assert_eq!(detail["actual"], r#"{"arguments":[[0,0]],"output":[0]}"#, "{detail}");
    recheck(&folder).must_end_with(0);
}

#[test]
fn two_solvers_prove_or_refute_a_claim() {
    let claim = |assertion: &str| {
        json!({
            "tier": 3,
            "artifact": { "content": "max(a, b) >= a" },
            "obligation": {
                "logic": "QF_LIA",
                "smtlib": format!(
                    "(declare-const a Int)(declare-const b Int)\n(define-fun max2 ((x Int) (y Int)) Int (ite (> x y) x y))\n\
                     (assert {assertion})\n(check-sat)"
                ),
            },
        })
    };
    for (assertion, fuel, verdict, code) in [
        ("(not (>= (max2 a b) a))", 1_000_000, "pass", 0),
        ("(not (> (max2 a b) a))", 1_000_000, "fail", 3),
        ("(not (> (max2 a b) a))", 1, "error", 4),
    ] {
        let mut request = claim(assertion);
        request["limits"] = json!({ "fuel": fuel });
        let folder = folder(&request);
        let result = check(&folder, &[]).must_end_with(code).json();
        assert_eq!(result["verdict"], verdict, "{result}");
        assert_eq!(receipt(&folder)["hashes"].get("model_z3").is_some(), verdict == "fail");
        recheck(&folder).must_end_with(0);
    }
}

#[test]
fn a_schema_and_the_files_of_the_command_line_make_a_request() {
    let folder = Folder::new();
    folder.write("work.json", r#"{"total": 3}"#);
    folder.write("schema.json", r#"{"required": ["total"]}"#);
    let arguments = ["vrf", "check", "--json", "--artifact", "work.json", "--schema", "schema.json"];
    assert_eq!(folder.run(&arguments).must_end_with(0).json()["verdict"], "pass");
    folder.write("schema.json", r#"{"required": ["other"]}"#);
    assert_eq!(folder.run(&arguments).must_end_with(3).json()["verdict"], "fail");
    folder.write("main.py", SORT);
    folder.write("tests.json", r#"[{"name": "sorts", "arguments": [[2, 1]], "expected": [1, 2]}]"#);
    let arguments =
        ["vrf", "check", "--json", "--artifact", "main.py", "--language", "python", "--tests", "tests.json"];
    assert_eq!(folder.run(&arguments).must_end_with(0).json()["verdict"], "pass");
}

#[test]
fn a_request_that_cannot_be_run_is_refused_with_its_place() {
    let folder = folder(&python(SORT, &json!([{ "name": "sorts", "argument": [], "expected": [] }])));
    assert_eq!(check(&folder, &[]).error(), "check-request");
    folder.write("check.json", python(SORT, &json!([{ "name": "sorts", "expected": [] }])).to_string());
    folder.run(&["issuer", "new", "-o", "verifier.pem", "--alg", "EdDSA"]).must_end_with(0);
    assert_eq!(check(&folder, &["--key", "verifier.pem"]).error(), "no-subject");
}
