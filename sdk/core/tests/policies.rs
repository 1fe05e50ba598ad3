//! Policies as requests: their mistakes, and decisions of a log in memory.
#![allow(clippy::unwrap_used)]

use std::fs;
use std::path::{Path, PathBuf};

use data_encoding::{BASE64URL_NOPAD, HEXLOWER};
use sdk_core::answer;
use serde_json::{Value, json};

fn vector(path: &str) -> Value {
    let file = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../vectors").join(path);
    serde_json::from_slice(&fs::read(&file).unwrap_or_else(|error| panic!("{file:?}: {error}"))).unwrap()
}

fn names(folder: &str) -> Vec<PathBuf> {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../vectors").join(folder);
    fs::read_dir(folder).unwrap().map(|file| file.unwrap().path()).collect()
}

fn answered(request: &Value) -> Value {
    serde_json::from_slice(&answer(request.to_string().as_bytes())).unwrap()
}

fn bytes(hex: &Value) -> Value {
    BASE64URL_NOPAD.encode(&HEXLOWER.decode(hex.as_str().unwrap().as_bytes()).unwrap()).into()
}

/// Decides about a statement under the policy of the Rust tests, in a log with these entries.
fn tried(statement: &Value, entries: &[Value], now: Option<u64>) -> Value {
    let policy = vector("policy/sound/tests.json")["toml"].clone();
    answered(&json!({
        "operation": "try-policy", "policy": policy, "statement": statement, "entries": entries, "now": now,
    }))
}

#[test]
fn a_policy_has_the_digest_and_payload_it_always_had_or_all_its_mistakes() {
    for file in names("policy/sound") {
        let case: Value = serde_json::from_slice(&fs::read(&file).unwrap()).unwrap();
        let expected = json!({ "mistakes": [], "digest": case["digest"], "payload": case["payload"] });
        for form in ["toml", "payload"] {
            let answer = answered(&json!({ "operation": "check-policy", "policy": case[form] }));
            assert_eq!(answer["result"], expected, "{}", file.display());
        }
    }
    for file in names("policy/mistaken") {
        let case: Value = serde_json::from_slice(&fs::read(&file).unwrap()).unwrap();
        let answer = answered(&json!({ "operation": "check-policy", "policy": case["toml"] }));
        assert_eq!(answer["result"], json!({ "mistakes": case["mistakes"] }), "{}", file.display());
    }
}

#[test]
fn a_statement_is_decided_with_the_entries_of_the_log() {
    let taken = vector("vap/vap-audit-sequence-unique/second.json");
    let [statement, entry] = [&taken["statement"], &taken["log"][0]].map(bytes);
    let at = taken["at"].as_u64();
    let alone = tried(&statement, &[], at);
    assert_eq!(
        (&alone["result"]["outcome"], &alone["result"]["asks_the_log"]),
        (&json!("admitted"), &json!(false))
    );
    let second = tried(&statement, &[entry], at);
    assert_eq!(second["result"]["rule"], "vap-audit-sequence-unique", "{second}");
}

#[test]
fn a_policy_or_an_entry_that_cannot_be_leads_to_no_decision() {
    let statement = bytes(&vector("vrf/golden.json")["statement"]);
    let request = json!({ "operation": "try-policy", "policy": "iss = 1", "statement": statement });
    assert_eq!(answered(&request)["error"]["code"], "policy");
    let broken = bytes(&vector("vrf/vrf-tier-structural/tier-4.json")["statement"]);
    let answer = tried(&statement, &[broken], None);
    assert_eq!(answer["error"]["code"], "entry-refused", "{answer}");
}
