//! Slots: what is read, what is not, and how what is not is answered.

use serde_json::{Value, json};

use super::sample::{amendment, commitment, intent, with};
use crate::Case;

fn case(
    name: &'static str,
    reading: &'static str,
    why: &'static str,
    (method, text): (&str, String),
    expected: &'static str,
) -> Case {
    Case { folder: "message", name, reading, why, input: json!({ "method": method, "text": text }), expected }
}

fn on_initialize(changes: &[(&str, Value)]) -> (&'static str, String) {
    ("initialize", with(commitment(), changes).to_string())
}

fn on_call(text: &str, replacement: &str) -> (&'static str, String) {
    ("tools/call", intent().to_string().replace(text, replacement))
}

pub fn cases() -> Vec<Case> {
    [accepted(), misplaced(), malformed(), bounded(), both_keys()].into_iter().flatten().collect()
}

fn accepted() -> Vec<Case> {
    vec![
        case("commitment", "V-4", "Everything that the schema knows.", on_initialize(&[]), "accept"),
        case("envelope", "V-4", "Everything that the schema knows.", on_call("", ""), "accept"),
        case(
            "amendment",
            "V-6",
            "The method that carries nothing else.",
            ("vap/amend", amendment("sha256:00").to_string()),
            "accept",
        ),
        case(
            "commitment-on-tools-list",
            "V-6",
            "A carrier of both eras.",
            ("tools/list", commitment().to_string()),
            "accept",
        ),
        case(
            "nested-commitment",
            "V-4",
            "The reference's shape.",
            ("initialize", json!({ "scope_commitment": commitment() }).to_string()),
            "accept",
        ),
        case(
            "nested-envelope",
            "V-4",
            "The reference's shape.",
            ("tools/call", json!({ "intent": intent() }).to_string()),
            "accept",
        ),
        case(
            "number-beyond-double",
            "V-22",
            "Served without a signature; its digest is over the bytes as they came.",
            on_call("9931}", "9007199254740993}"),
            "accept",
        ),
        case(
            "spelt-otherwise",
            "V-22",
            "Another text with the same canonical form: the digest of \"envelope\".",
            on_call("\"ticket\":9931", " \"\\u0074icket\" : 9.931e3 "),
            "accept",
        ),
    ]
}

fn misplaced() -> Vec<Case> {
    vec![
        case(
            "envelope-on-initialize",
            "V-6",
            "An envelope rides on tools/call.",
            ("initialize", intent().to_string()),
            "wrong_carrier (session s-1, scope_commitment, flat)",
        ),
        case(
            "amendment-hidden-in-a-call",
            "V-6",
            "One message per slot, and none that widens the scope on a call.",
            ("tools/call", amendment("sha256:00").to_string()),
            "wrong_carrier (session s-1, intent_call, flat)",
        ),
        case(
            "two-messages",
            "V-4",
            "Which of them would be meant?",
            ("tools/call", json!({ "intent": intent(), "amendment": amendment("sha256:00") }).to_string()),
            "two_messages (session s-1, intent_call, nested)",
        ),
        case(
            "name-of-another-type",
            "V-4",
            "The name says envelope, the message says amendment.",
            ("tools/call", json!({ "intent": amendment("sha256:00") }).to_string()),
            "malformed (session s-1, intent_call, nested)",
        ),
    ]
}

fn malformed() -> Vec<Case> {
    vec![
        case(
            "no-object",
            "X-2",
            "Answered as what the carrier implies.",
            ("tools/call", "true".to_owned()),
            "malformed (session none, intent_call, flat)",
        ),
        case(
            "second-goal",
            "V-22",
            "Two readers would read two messages.",
            ("initialize", commitment().to_string().replacen('{', "{\"goal\":\"harmless\",", 1)),
            "malformed (session none, scope_commitment, flat)",
        ),
        case(
            "lone-surrogate",
            "V-22",
            "It has no canonical form.",
            on_call("The ticket", "\\ud800"),
            "malformed (session none, intent_call, flat)",
        ),
        case(
            "unknown-member",
            "X-2",
            "It would be signed but not understood.",
            on_initialize(&[("/budget/max_cals", json!(1))]),
            "malformed (session s-1, scope_commitment, flat)",
        ),
        case(
            "list-for-scope",
            "X-2",
            "A list is no object, even if its items would fit.",
            on_initialize(&[("/scope", json!([["*"], []]))]),
            "malformed (session s-1, scope_commitment, flat)",
        ),
        case(
            "reserved-session",
            "X-5",
            "It would write into the stream of what belongs to no session.",
            on_initialize(&[("/session_id", json!("unbound:gw-1"))]),
            "reserved_session_id (session none, scope_commitment, flat)",
        ),
        case(
            "unparsable-deadline",
            "V-15",
            "A deadline that is ignored is no deadline.",
            on_initialize(&[("/budget/deadline", json!("tomorrow"))]),
            "malformed_deadline (session s-1, scope_commitment, flat)",
        ),
        case(
            "deadline-without-offset",
            "V-15",
            "Whose midnight?",
            on_initialize(&[("/budget/deadline", json!("2026-12-01T00:00:00"))]),
            "malformed_deadline (session s-1, scope_commitment, flat)",
        ),
    ]
}

fn bounded() -> Vec<Case> {
    vec![
        case(
            "empty-budget",
            "V-10",
            "It bounds nothing.",
            on_initialize(&[("/budget", json!({}))]),
            "no_budget (session s-1, scope_commitment, flat)",
        ),
        case(
            "empty-limits",
            "V-10",
            "They bound nothing.",
            on_initialize(&[("/budget/limits", json!({}))]),
            "no_budget (session s-1, scope_commitment, flat)",
        ),
        case(
            "negative-limit",
            "V-13",
            "A ceiling is more than zero.",
            on_initialize(&[("/budget/limits/tokens", json!(-1))]),
            "malformed (session s-1, scope_commitment, flat)",
        ),
        case(
            "limit-beyond-decimals",
            "V-13",
            "More than 30 digits before the point are not kept.",
            on_initialize(&[("/budget/limits/tokens", json!(1e308))]),
            "out_of_range (session s-1, scope_commitment, flat)",
        ),
        case(
            "many-patterns",
            "V-8",
            "At most 256 patterns.",
            on_initialize(&[("/scope/tools_allow", json!(vec!["*"; 257]))]),
            "out_of_range (session s-1, scope_commitment, flat)",
        ),
    ]
}

fn both_keys() -> Vec<Case> {
    let case = |name, why, own: String, expected| Case {
        folder: "message",
        name,
        reading: "V-4",
        why,
        input: json!({ "method": "tools/call", "text": intent().to_string(), "own": own }),
        expected,
    };
    let other = intent().to_string().replace("9931}", "9932}");
    vec![
        case(
            "both-keys",
            "One message under two keys.",
            serde_json::to_string_pretty(&intent()).unwrap(),
            "accept",
        ),
        case(
            "different-under-both-keys",
            "The one that is checked must be the one that is meant.",
            other,
            "two_messages (session s-1, intent_call, flat)",
        ),
    ]
}
