//! Tier 3.

use checks::{CheckRequest, JobEnd};
use sandbox::{Call, Ending};
use serde_json::{Value, json};

use crate::fake::{Fake, ended, request, run_checks, wrote};

const SCRIPT: &str = "; a claim\n(declare-const x Int)\n(assert (< x |x y)|))\n(check-sat)\n";

fn obligation(script: &str) -> Value {
    json!({
        "tier": 3,
        "artifact": { "content": "x > 1" },
        "obligation": { "logic": "QF_LIA", "smtlib": script },
    })
}

fn verdict(z3: JobEnd, cvc5: JobEnd) -> (String, usize) {
    let runner = Fake::new(|call| match call {
        Call::Program { command, .. } if command[0] == "z3" => z3.clone(),
        _ => cvc5.clone(),
    });
    let report = run_checks(&request(&obligation(SCRIPT)), &runner).unwrap();
    (report.verdict().as_str().to_owned(), report.hashes.len())
}

#[test]
fn both_solvers_must_agree() {
    assert_eq!(verdict(wrote("unsat\n"), wrote("unsat\n")), ("pass".into(), 0));
    assert_eq!(verdict(wrote("sat\n(x 1)\n"), wrote("sat\n(x 2)\n")), ("fail".into(), 2));
    for (z3, cvc5) in [
        (wrote("sat\n"), wrote("unsat\n")),
        (wrote("unknown\n"), wrote("unsat\n")),
        (wrote("unsat\n"), wrote("(error \"line 1\")\nunsat\n")),
        (wrote(""), wrote("")),
        (ended(Ending::OutOfTime), wrote("unsat\n")),
        (ended(Ending::Exited(1)), wrote("sat\n")),
    ] {
        assert_eq!(verdict(z3.clone(), cvc5.clone()), ("error".into(), 0), "{z3:?} {cvc5:?}");
    }
}

#[test]
fn the_logic_comes_first_and_the_resources_are_counted() {
    let runner = Fake::new(|_| wrote("unsat\n"));
    let mut value = obligation(SCRIPT);
    value["limits"] = json!({ "fuel": 1234 });
    run_checks(&request(&value), &runner).unwrap();
    let batches = runner.batches.lock().unwrap();
    let script = std::str::from_utf8(&batches[0].files["obligation.smt2"]).unwrap();
    assert_eq!(script, format!("(set-logic QF_LIA)\n{SCRIPT}"));
    let commands = format!("{:?}", batches[0].calls);
    assert!(commands.contains("\"rlimit=1234\"") && commands.contains("\"--rlimit=1234\""), "{commands}");
}

#[test]
fn a_script_with_another_command_is_refused_with_its_line() {
    for (script, why) in [
        ("(assert true)\n(get-model)\n(check-sat)", "line 2: the command \"get-model\" is not allowed"),
        ("(set-option :regular-output-channel \"x\")(check-sat)", "set-option"),
        ("(include \"x\")(check-sat)", "include"),
        ("(check-sat)\n(check-sat)", "one (check-sat)"),
        ("(check-sat-assuming (x))", "must end with (check-sat)"),
        ("(assert true)", "must end with (check-sat)"),
        ("(set-logic QF_BV)(check-sat)", "must name QF_LIA"),
        ("(assert true)(set-logic QF_LIA)(check-sat)", "first command"),
        ("(check-sat", "ends within a command"),
        ("check-sat", "in brackets"),
        ("(assert \"a)(check-sat)", "quote is not closed"),
        ("; (check-sat)", "no command"),
        (")", "in brackets"),
        ("(|check-sat|)", "must end with (check-sat)"),
        ("(assert a\\b)(check-sat)", "not allowed"),
    ] {
        let error = CheckRequest::parse(obligation(script).to_string().as_bytes()).unwrap_err();
        assert_eq!(error.pointer, "/obligation/smtlib");
        assert!(error.message.contains(why), "{script}: {}", error.message);
    }
    let ok = "(set-logic QF_LIA)(set-info :source |a ) b|)(assert (= \"a \"\" ) \" \"\"))(check-sat) ; end";
    request(&obligation(ok));
    let mut value = obligation(SCRIPT);
    value["obligation"]["logic"] = json!("HORN");
    assert_eq!(CheckRequest::parse(value.to_string().as_bytes()).unwrap_err().pointer, "/obligation/logic");
}
