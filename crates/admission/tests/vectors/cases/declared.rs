//! What was declared beside what would be forwarded: arguments and names.

use serde_json::{Value, json};

use crate::Case;

pub fn arguments() -> Vec<Case> {
    let case = |name, why, declared: &str, called: &str, expected| Case {
        folder: "arguments",
        name,
        reading: "V-7",
        why,
        input: json!({ "declared": declared, "called": called }),
        expected,
    };
    let (same, other) = ("accept", "call_mismatch");
    vec![
        case(
            "order-and-blanks",
            "They say nothing.",
            r#"{"a":1,"b":[2]}"#,
            "{ \"b\" : [ 2 ] , \"a\" : 1 }",
            same,
        ),
        case("escapes", "Texts are compared unescaped.", r#"{"a":"\u00e9\/"}"#, r#"{"a":"é/"}"#, same),
        case("spelling-of-a-number", "Numbers are decimals.", r#"{"a":1e2}"#, r#"{"a":100.0}"#, same),
        case(
            "account-number-off-by-one",
            "One double, two accounts: the canonical forms are equal.",
            r#"{"to":9007199254740993}"#,
            r#"{"to":9007199254740992}"#,
            other,
        ),
        case("digits-lost-behind-the-point", "One double.", "[0.1]", "[0.1000000000000000055]", other),
        case("too-small-for-a-double", "Not zero.", "[1e-400]", "[0]", other),
        case("member-added", "Null is not absent.", r#"{"a":1}"#, r#"{"a":1,"force":null}"#, other),
        case("text-for-number", "A text is no number.", r#"{"a":1}"#, r#"{"a":"1"}"#, other),
        case("other-composition", "One look, two names.", "[\"caf\u{e9}\"]", "[\"cafe\u{301}\"]", other),
        case(
            "duplicate-member",
            "What is read twice equals nothing.",
            r#"{"a":1}"#,
            r#"{"a":2,"a":1}"#,
            other,
        ),
        case("order-of-a-list", "It matters.", "[1,2]", "[2,1]", other),
    ]
}

pub fn rules() -> Vec<Case> {
    let at = |path: &str, name, why, arguments: &str, expected| Case {
        folder: "rule",
        name,
        reading: "C4",
        why,
        input: json!({ "path": path, "most": 1000, "arguments": arguments }),
        expected,
    };
    let case = |name, why, arguments: &str, expected| at("amount", name, why, arguments, expected);
    let (denied, unreadable) = ("policy:large", "policy_failed");
    let raw_value = r#"{"options":{"$serde_json::private::RawValue":"{\"amount\":5}"}}"#;
    vec![
        case("small", "Not more than the rule allows.", r#"{"amount":1000}"#, "accept"),
        case("large", "More than the rule allows.", r#"{"amount":1000.5}"#, denied),
        case("left-out", "What is not there is not small.", "{}", denied),
        case("another-name", "A server that ignores case finds it.", r#"{"Amount":5000}"#, denied),
        case("null", "Nothing is not small.", r#"{"amount":null}"#, denied),
        case("written-twice", "Which of them runs?", r#"{"amount":1,"amount":5000}"#, unreadable),
        case(
            "written-twice-with-an-escape",
            "Which of them runs?",
            r#"{"amount":1,"\u0061mount":5000}"#,
            unreadable,
        ),
        case("written-twice-elsewhere", "At any depth.", r#"{"amount":1,"a":[{"b":1,"b":2}]}"#, unreadable),
        at(
            "options.amount",
            "raw-value",
            "A library reads this member name as the text of another value.",
            raw_value,
            unreadable,
        ),
        at(
            "options.amount",
            "raw-value-with-an-escape",
            "The same name in another spelling.",
            &raw_value.replace('$', r"\u0024"),
            unreadable,
        ),
        case(
            "number-of-a-library",
            "A library reads this member name as a number.",
            r#"{"amount":{"$serde_json::private::Number":"5"}}"#,
            unreadable,
        ),
        case(
            "account-beyond-2-53",
            "Readers that hold numbers as doubles see another account.",
            r#"{"amount":1,"to":9007199254740993}"#,
            unreadable,
        ),
        case(
            "digits-lost",
            "Readers that hold numbers as doubles see another amount.",
            r#"{"amount":1000.00000000000001}"#,
            unreadable,
        ),
        case(
            "largest-exact-integer",
            "All readers agree.",
            r#"{"amount":1,"to":-9007199254740991}"#,
            "accept",
        ),
    ]
}

pub fn patterns() -> Vec<Case> {
    let case = |name, reading, why, (allow, deny): (Value, Value), tool: &str, expected| Case {
        folder: "pattern",
        name,
        reading,
        why,
        input: json!({ "allow": allow, "deny": deny, "tool": tool }),
        expected,
    };
    let only = |pattern: &str| (json!([pattern]), json!([]));
    let (allowed, escape) = ("accept", "scope_escape");
    vec![
        case("star-over-dots", "V-8", "A run may hold dots.", only("crm.*"), "crm.tickets.read", allowed),
        case("star-of-nothing", "V-8", "A run may be empty.", only("crm.*"), "crm.", allowed),
        case("two-stars", "V-8", "Each is a run of its own.", only("*.read.*"), "crm.read.all", allowed),
        case(
            "anchored-at-the-end",
            "V-8",
            "More than the pattern says.",
            only("crm.read"),
            "crm.read_and_delete",
            escape,
        ),
        case(
            "anchored-at-the-beginning",
            "V-8",
            "More than the pattern says.",
            only("read"),
            "un_read",
            escape,
        ),
        case("overlapping-ends", "V-8", "One letter is not two.", only("a*a"), "a", escape),
        case("question-mark", "V-8", "It is itself.", only("crm?read"), "crm.read", escape),
        case("character-class", "V-8", "It is itself.", only("[a-z]*"), "read", escape),
        case("dot-of-a-regex", "V-8", "It is itself.", only("crm.read"), "crmxread", escape),
        case("other-case", "V-8", "Names are bytes.", only("crm.*"), "CRM.read", escape),
        case("denied-and-allowed", "V-9", "A deny wins.", (json!(["*", "rm"]), json!(["rm"])), "rm", escape),
        case(
            "nothing-allowed",
            "V-9",
            "What is not allowed is not allowed.",
            (json!([]), json!([])),
            "rm",
            escape,
        ),
    ]
}
