//! Wire Verdicts without a signature.

use registration::vap::{VAP_VERDICT, VerdictRule as R};
use serde_json::{Value, json};
use testkit::{SESSION, verdict_json};

use super::{breaks, canonical, keeps, statement, text_with, with, without};
use crate::Case;

fn sign(payload: impl Into<Vec<u8>>) -> Vec<u8> {
    statement(VAP_VERDICT, SESSION, payload)
}

fn set(pointer: &str, value: Value) -> Vec<u8> {
    sign(canonical(&with(verdict_json(), pointer, value)))
}

fn clarify() -> Value {
    let asked = with(verdict_json(), "/verdict", json!("clarify"));
    with(
        asked,
        "/clarification",
        json!({ "question": "Which account?", "schema": { "type": "object", "x": 1 } }),
    )
}

pub fn cases() -> Vec<Case> {
    [json_cases(), member_cases(), word_cases(), part_cases()].concat()
}

fn json_cases() -> Vec<Case> {
    let verdict = verdict_json();
    vec![
        keeps(
            R::Json,
            "not-canonical",
            "A verifier may write its JSON as it likes.",
            sign(text_with(&verdict, "{", "{ ")),
        ),
        breaks(
            R::Json,
            "trailing",
            "A second value after the first.",
            sign([canonical(&verdict), b"{}".to_vec()].concat()),
        ),
        breaks(R::Json, "array", "A Verdict is an object.", sign(b"[]".to_vec())),
        breaks(R::Json, "not-utf-8", "Bytes that are no text.", sign(b"{\"a\":\"\xff\"}".to_vec())),
        breaks(
            R::Json,
            "deep",
            "A hundred arrays in each other.",
            sign(text_with(&verdict, "\"served\"", &format!("{}{}", "[".repeat(100), "]".repeat(100)))),
        ),
        keeps(R::DuplicateMember, "each-once", "Every member once.", sign(canonical(&verdict))),
        breaks(
            R::DuplicateMember,
            "denied-then-served",
            "One reader sees denied, another served.",
            sign(text_with(&verdict, "\"verdict\":", "\"verdict\":\"denied\",\"verdict\":")),
        ),
        breaks(
            R::DuplicateMember,
            "escaped",
            "The same name, once with an escape in it.",
            sign(text_with(&verdict, "\"verdict\":", "\"verd\\u0069ct\":\"denied\",\"verdict\":")),
        ),
        keeps(
            R::LoneSurrogate,
            "pair",
            "A whole pair is one character.",
            sign(text_with(&verdict, "scope_ok", "\\ud83d\\ude00")),
        ),
        breaks(
            R::LoneSurrogate,
            "half",
            "Half a pair is no character.",
            sign(text_with(&verdict, "scope_ok", "\\ud83d")),
        ),
    ]
}

fn member_cases() -> Vec<Case> {
    let mut cases = vec![
        keeps(
            R::Member,
            "least",
            "What the schema requires, and nothing else.",
            sign(canonical(&without(verdict_json(), "/in_response_to"))),
        ),
        keeps(
            R::Member,
            "unknown",
            "A member the schema does not list is kept and ignored.",
            set("/x_vendor", json!({ "a": 1 })),
        ),
        keeps(
            R::Member,
            "result",
            "A result may hold anything.",
            set("/result", json!({ "content": [null, { "x": 1.5 }] })),
        ),
    ];
    for name in ["session_id", "verification", "verdict", "vap", "type"] {
        let statement = sign(canonical(&without(verdict_json(), &format!("/{name}"))));
        cases.push(breaks(R::Member, &format!("no-{name}"), "The schema requires this member.", statement));
    }
    for (name, pointer, value) in [
        ("session-id-number", "/session_id", json!(1)),
        ("verification-list", "/verification", json!([])),
        ("checks-missing", "/verification", json!({ "method": "static" })),
        ("checks-text", "/verification/checks", json!("scope_ok")),
        ("check-number", "/verification/checks/1", json!(1)),
        ("semantic-invoked-text", "/verification/semantic_invoked", json!("yes")),
        ("risk-score-text", "/verification/risk_score", json!("0.5")),
        ("reason-null", "/verification/reason", json!(null)),
        ("result-text", "/result", json!("done")),
        ("clarification-text", "/clarification", json!("which?")),
        ("question-missing", "/clarification", json!({})),
        ("schema-list", "/clarification", json!({ "question": "?", "schema": [] })),
        ("downgrade-list", "/downgrade", json!([])),
        ("applied-scope-text", "/downgrade", json!({ "applied_scope": "less" })),
        ("note-number", "/downgrade", json!({ "note": 1 })),
        ("audit-ref-object", "/audit_ref", json!({})),
        ("signature-object", "/signature", json!({})),
        ("expires-at-number", "/expires_at", json!(1_767_225_600)),
    ] {
        let statement = match pointer {
            "/verification/checks/1" => sign(text_with(&verdict_json(), "\"budget_ok\"", "1")),
            _ => set(pointer, value),
        };
        cases.push(breaks(R::Member, name, "A member of another type than the schema's.", statement));
    }
    cases
}

fn word_cases() -> Vec<Case> {
    let mut cases = Vec::new();
    for (rule, pointer, good, bad) in [
        (R::Version, "/vap", vec!["0.1"], vec!["0.2", "1", ""]),
        (R::Type, "/type", vec!["verdict"], vec!["intent_call", "Verdict"]),
        (
            R::InResponseTo,
            "/in_response_to",
            vec!["scope_commitment", "intent_call", "scope_amendment"],
            vec!["verdict", "tools/call"],
        ),
        (R::Verdict, "/verdict", vec!["served", "downgraded", "denied"], vec!["allowed", "Served", ""]),
        (
            R::Method,
            "/verification/method",
            vec!["static", "static+policy", "static+semantic", "static+policy+semantic"],
            vec!["semantic", "policy+static"],
        ),
        (
            R::SemanticTrigger,
            "/verification/semantic_trigger",
            vec![
                "session_start",
                "amendment",
                "sensitivity",
                "burn_rate_anomaly",
                "looping",
                "novelty",
                "threshold_proximity",
                "random_sample",
                "scope_boundary",
            ],
            vec!["mood"],
        ),
        (
            R::Digest,
            "/accepted_commitment_digest",
            vec!["sha256:AB12", "blake2b512:00"],
            vec!["sha256:", ":00", "SHA256:00", "sha256:xyz", "sha256", "sha-256:00", "sha256:00:00"],
        ),
        (
            R::ExpiresAt,
            "/expires_at",
            vec![
                "2026-01-01T00:00:00Z",
                "2026-01-01T00:00:00.25+02:00",
                "2026-01-01t00:00:00z",
                "2026-01-01T00:00:00.123456789012Z",
            ],
            vec!["2026-01-01", "2026-01-01T00:00:00", "2026-02-30T00:00:00Z", "tomorrow"],
        ),
    ] {
        for (i, word) in good.into_iter().enumerate() {
            cases.push(keeps(
                rule,
                &format!("known-{i}"),
                "A value of the schema.",
                set(pointer, json!(word)),
            ));
        }
        for (i, word) in bad.into_iter().enumerate() {
            let why = "A value that the schema does not know.";
            cases.push(breaks(rule, &format!("unknown-{i}"), why, set(pointer, json!(word))));
        }
    }
    cases
}

fn part_cases() -> Vec<Case> {
    let long = |n: usize| json!("é".repeat(n));
    vec![
        keeps(R::Length, "session-256", "256 characters, however many bytes.", set("/session_id", long(256))),
        breaks(R::Length, "session-257", "One character too many.", set("/session_id", long(257))),
        breaks(R::Length, "session-empty", "A session has a name.", set("/session_id", json!(""))),
        keeps(R::Length, "reason-2000", "2000 characters.", set("/verification/reason", long(2000))),
        breaks(R::Length, "reason-2001", "One character too many.", set("/verification/reason", long(2001))),
        breaks(
            R::Length,
            "question-empty",
            "A question asks something.",
            set("/clarification", json!({ "question": "" })),
        ),
        keeps(R::Score, "bounds", "0 and 1 are scores.", {
            let scored = with(verdict_json(), "/verification/risk_score", json!(0));
            sign(canonical(&with(scored, "/verification/confidence", json!(1))))
        }),
        breaks(R::Score, "above", "More than 1.", set("/verification/risk_score", json!(1.01))),
        breaks(R::Score, "below", "Less than 0.", set("/verification/confidence", json!(-0.5))),
        keeps(R::Clarification, "asked", "It says what has to be clarified.", sign(canonical(&clarify()))),
        breaks(
            R::Clarification,
            "not-asked",
            "To clarify, but what?",
            sign(canonical(&without(clarify(), "/clarification"))),
        ),
    ]
}
