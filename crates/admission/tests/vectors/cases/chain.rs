//! Commitments in force and their amendments, `@` being the digest that the agent was told last.

use admission::digest::Digest;
use serde_json::{Value, json};

use super::sample::{amendment, commitment, with};
use crate::Case;

struct Steps {
    commitment: Value,
    amendments: Vec<Value>,
    ceiling: Value,
}

fn steps(commitment: Value, amendments: Vec<Value>) -> Steps {
    Steps { commitment, amendments, ceiling: Value::Null }
}

fn case(
    name: &'static str,
    reading: &'static str,
    why: &'static str,
    steps: Steps,
    expected: &'static str,
) -> Case {
    let Steps { commitment, amendments, ceiling } = steps;
    let amendments: Vec<_> = amendments.iter().map(Value::to_string).collect();
    let input = json!({ "commitment": commitment.to_string(), "amendments": amendments, "ceiling": ceiling });
    Case { folder: "chain", name, reading, why, input, expected }
}

fn amended(changes: &[(&str, Value)]) -> Vec<Value> {
    vec![with(amendment("@"), changes)]
}

fn without(pointer: &str) -> Value {
    with(commitment(), &[(pointer, Value::Null)])
}

pub fn cases() -> Vec<Case> {
    [merged(), capped(), broken(), refused()].into_iter().flatten().collect()
}

fn merged() -> Vec<Case> {
    let signed = with(commitment(), &[("/signature", json!("e30..AA"))]);
    let twice = vec![
        amendment("@"),
        with(amendment("@"), &[("/increase_budget/extend_deadline", json!("2026-12-03T00:00:00Z"))]),
    ];
    let tenths = with(commitment(), &[("/budget/limits/usd_opcost", json!(0.2))]);
    vec![
        case(
            "without-signature",
            "V-17",
            "The signature is no part of what is agreed.",
            steps(signed, vec![]),
            "accept",
        ),
        case(
            "amended",
            "V-17",
            "Lists, calls, deadline, limits and plan.",
            steps(commitment(), amended(&[])),
            "accept",
        ),
        case(
            "amended-twice",
            "V-17",
            "Each names the one before; duplicates are dropped.",
            steps(commitment(), twice),
            "accept",
        ),
        case("tenths", "V-13, V-17", "0.2 + 0.1 is 0.3.", steps(tenths, amended(&[])), "accept"),
        case(
            "empty-deny",
            "V-17",
            "An empty list is not an absent one.",
            steps(with(commitment(), &[("/scope/tools_deny", json!([]))]), vec![]),
            "accept",
        ),
    ]
}

fn capped() -> Vec<Case> {
    let ceiling = json!({ "max_calls": 10, "deadline": "2026-11-30T00:00:00Z", "limits": { "tokens": 500, "bytes": 7 } });
    let steps = |amendments| Steps { commitment: commitment(), amendments, ceiling: ceiling.clone() };
    vec![
        case("capped", "V-23", "Reduced, and bounded where the agent did not.", steps(vec![]), "accept"),
        case(
            "amended-beyond-the-ceiling",
            "V-17, V-23",
            "The ceiling comes last.",
            steps(amended(&[])),
            "accept",
        ),
    ]
}

fn broken() -> Vec<Case> {
    let prev = |text: &str| vec![amendment(text)];
    let plan = commitment()["plan_digest"].as_str().unwrap().to_owned();
    let zeros = format!("sha256:{}", "0".repeat(64));
    let e0 = Digest::of(&jose::jcs::canonical(&commitment()));
    vec![
        case(
            "made-up-digest",
            "V-17",
            "The amendment follows nothing.",
            steps(commitment(), prev(&zeros)),
            "chain_broken",
        ),
        case(
            "plan-digest-for-commitment-digest",
            "V-17",
            "The agent's plan is not what is in force.",
            steps(commitment(), prev(&plan)),
            "chain_broken",
        ),
        case(
            "replayed-amendment",
            "V-17",
            "It followed E0, and E1 is in force.",
            steps(commitment(), vec![amendment("@"), amendment(e0.as_str())]),
            "chain_broken",
        ),
    ]
}

fn refused() -> Vec<Case> {
    let only = |member: &str, value: Value| {
        amended(&[("/add_scope", Value::Null), ("/increase_budget", json!({ member: value }))])
    };
    let nothing = amended(&[("/add_scope", json!({})), ("/increase_budget", Value::Null)]);
    vec![
        case(
            "new-meter",
            "V-16",
            "An addition never makes a bound.",
            steps(commitment(), only("add_limits", json!({ "eur": 5 }))),
            "no_such_limit",
        ),
        case(
            "calls-without-a-bound",
            "V-16",
            "An addition never makes a bound.",
            steps(without("/budget/max_calls"), only("add_calls", json!(5))),
            "no_such_limit",
        ),
        case(
            "deadline-without-a-bound",
            "V-17",
            "An addition never makes a bound.",
            steps(without("/budget/deadline"), only("extend_deadline", json!("2027-01-01T00:00:00Z"))),
            "no_such_limit",
        ),
        case(
            "same-deadline-elsewhere",
            "V-15",
            "The same time at another offset is not later.",
            steps(commitment(), only("extend_deadline", json!("2026-12-01T01:00:00+01:00"))),
            "deadline_not_later",
        ),
        case(
            "nothing-to-add",
            "V-16",
            "It passes the schema.",
            steps(commitment(), nothing),
            "nothing_to_add",
        ),
        case(
            "negative-addition",
            "V-16",
            "An amendment only widens.",
            steps(commitment(), only("add_limits", json!({ "tokens": -5 }))),
            "malformed",
        ),
    ]
}
