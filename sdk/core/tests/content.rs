//! The vectors of content types, as requests: each is refused by its rule, or is left to the log.
#![allow(clippy::unwrap_used)]

use std::fs;
use std::path::{Path, PathBuf};

use data_encoding::{BASE64URL_NOPAD, HEXLOWER};
use sdk_core::answer;
use serde_json::{Value, json};

/// Number of cases of each family, and of those that keep the rules of their content type and that the log refuses by its
/// policy, its clock or its entries.
const FAMILIES: &[(&str, usize, usize)] = &[
    ("aer", 211, 20),
    ("agentroa-chain", 20, 2),
    ("agentroa-policy", 6, 0),
    ("agentroa-registry", 29, 8),
    ("conversation", 184, 22),
    ("erasure", 44, 6),
    ("index-head", 19, 6),
    ("jwk-set", 30, 0),
    ("operator", 60, 14),
    ("vap", 307, 16),
    ("vrf", 209, 25),
];

fn cases(family: &str) -> impl Iterator<Item = (PathBuf, Value)> {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../vectors").join(family);
    let rules = fs::read_dir(folder).unwrap().map(|rule| rule.unwrap().path()).filter(|path| path.is_dir());
    let files = rules.flat_map(|rule| fs::read_dir(rule).unwrap()).map(|file| file.unwrap().path());
    files.map(|file| (file.clone(), serde_json::from_slice(&fs::read(file).unwrap()).unwrap()))
}

fn bytes(hex: &Value) -> String {
    BASE64URL_NOPAD.encode(&HEXLOWER.decode(hex.as_str().unwrap().as_bytes()).unwrap())
}

/// Returns the rule that a statement breaks.
fn broken_rule(case: &Value) -> Option<String> {
    let mut request = json!({ "operation": "check-content", "statement": bytes(&case["statement"]) });
    if case["disclosed"].is_string() {
        request["content"] = bytes(&case["disclosed"]).into();
    }
    let answer: Value = serde_json::from_slice(&answer(request.to_string().as_bytes())).unwrap();
    answer["error"]["code"].as_str().map(str::to_owned)
}

#[test]
fn every_vector_of_a_content_type_is_refused_by_its_rule_or_left_to_the_log() {
    for (family, cases_of_family, left_to_log) in FAMILIES {
        let (mut count, mut left) = (0, 0);
        for (path, case) in cases(family) {
            count += 1;
            match broken_rule(&case) {
                None => left += usize::from(case["expected"] == "refuse"),
                Some(rule) => {
                    let expected = (case["expected"].as_str().unwrap(), case["rule"].as_str().unwrap());
                    assert_eq!(("refuse", rule.as_str()), expected, "{}", path.display());
                }
            }
        }
        assert_eq!((count, left), (*cases_of_family, *left_to_log), "{family}");
    }
}

#[test]
fn content_that_is_not_shown_is_not_checked_and_this_is_said() {
    let checked = |content_type: &str, detached: bool| {
        let key: Value = serde_json::from_slice(&answer(br#"{"operation":"generate-key"}"#)).unwrap();
        let request = json!({
            "operation": "sign-statement", "private_key": key["result"]["private_key"], "payload": "e30",
            "content_type": content_type, "sub": "s", "detached": detached,
        });
        let signed: Value = serde_json::from_slice(&answer(request.to_string().as_bytes())).unwrap();
        let request = json!({ "operation": "check-content", "statement": signed["result"]["statement"] });
        let answer: Value = serde_json::from_slice(&answer(request.to_string().as_bytes())).unwrap();
        answer["result"]["checked"].clone()
    };
    assert_eq!(checked("application/json", false), "no-rules");
    assert_eq!(checked("application/json", true), "payload-missing");
}

#[test]
fn content_of_another_hash_is_refused() {
    let checked = |vector: &str| {
        let file = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../vectors/verifier").join(vector);
        let case: Value = serde_json::from_slice(&fs::read(file).unwrap()).unwrap();
        let (statement, content) = (bytes(&case["statement"]), bytes(&case["payload"]));
        let request = json!({ "operation": "check-content", "statement": statement, "content": content });
        serde_json::from_slice::<Value>(&answer(request.to_string().as_bytes())).unwrap()
    };
    assert_eq!(checked("verified/hash-envelope.json")["result"]["checked"], "no-rules");
    for other in ["failed/hash-envelope-changed-file.json", "failed/payload-changed-file.json"] {
        assert_eq!(checked(other)["error"]["code"], "payload-digest-mismatch", "{other}");
    }
}
