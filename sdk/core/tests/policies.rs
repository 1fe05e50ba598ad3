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

/// A log that everybody may write JSON to, until it has three entries with its policy.
const SMALL_LOG: &str = r#"
iss = "https://log.example"
origin = "log.example/test"
revision = 0

[log]
max_entries = 3

[[operator]]
key = "did:key:z6Mku7FYz1HuZo4Xu65omn1vL9EfyDqr7LD2d4oQ4hyHmGaP"

[did]
key = "open"

[[type]]
content_type = "application/json"
issuers = ["did:key:*"]
detached = true
"#;

/// Signs a statement about a payload, which may be left out.
fn signed(payload: &[u8], detached: bool) -> Value {
    let key = answered(&json!({ "operation": "generate-key", "algorithm": "EdDSA" }));
    let answer = answered(&json!({
        "operation": "sign-statement", "private_key": key["result"]["private_key"], "payload": BASE64URL_NOPAD.encode(payload),
        "content_type": "application/json", "sub": "s", "detached": detached,
    }));
    answer["result"]["statement"].clone()
}

/// Decides about a statement in the small log with these entries.
fn tried_in_small_log(statement: &Value, entries: &Value) -> Value {
    answered(
        &json!({ "operation": "try-policy", "policy": SMALL_LOG, "statement": statement, "entries": entries }),
    )
}

#[test]
fn an_admitted_statement_has_the_number_of_entries_that_the_policy_allows() {
    let answer = tried_in_small_log(&signed(b"{}", false), &json!([]));
    assert_eq!(
        (&answer["result"]["outcome"], &answer["result"]["max_entries"]),
        (&json!("admitted"), &json!(3))
    );
    let others: Vec<Value> = (0..2).map(|_| signed(b"{}", false)).collect();
    let full = tried_in_small_log(&signed(b"{}", false), &others.into());
    assert_eq!(full["result"]["rule"], "log-full", "{full}");
}

#[test]
fn an_entry_that_is_given_twice_is_one_entry() {
    let [entry, statement] = [signed(b"{}", false), signed(b"{}", false)];
    let answer = tried_in_small_log(&statement, &json!([entry, entry, entry]));
    assert_eq!(answer["result"]["outcome"], "admitted", "{answer}");
}

#[test]
fn a_statement_that_the_log_has_is_registered_and_nothing_else_is_decided() {
    let [other, statement] = [signed(b"{}", false), signed(b"{}", false)];
    let answer = tried_in_small_log(&statement, &json!([other, statement]));
    assert_eq!(answer["result"], json!({ "outcome": "registered", "leaf": 2, "asks_the_log": true }));
    let taken = vector("vap/vap-audit-sequence-unique/second.json");
    let entry = bytes(&taken["log"][0]);
    let again = tried(&entry, std::slice::from_ref(&entry), taken["at"].as_u64());
    assert_eq!(again["result"]["outcome"], "registered", "{again}");
}

#[test]
fn an_entry_may_bring_its_detached_payload() {
    let [entry, statement] = [signed(b"[]", true), signed(b"{}", false)];
    let with = |payload: &str| {
        let payload = BASE64URL_NOPAD.encode(payload.as_bytes());
        tried_in_small_log(&statement, &json!([{ "statement": entry, "payload": payload }]))
    };
    assert_eq!(with("[]")["result"]["outcome"], "admitted");
    assert_eq!(with("{}")["error"]["code"], "entry-refused");
    let without = tried_in_small_log(&statement, &json!([entry]));
    assert_eq!(without["error"]["code"], "entry-refused", "{without}");
}

#[test]
fn an_argument_that_cannot_be_read_is_named() {
    let statement = signed(b"{}", false);
    let what = |answer: Value| {
        assert_eq!(answer["error"]["code"], "malformed-request", "{answer}");
        answer["error"]["what"].as_str().unwrap().to_owned()
    };
    let begins = |answer: Value, place: &str| {
        let what = what(answer);
        assert!(what.starts_with(&format!("the request cannot be read: {place}")), "{what}");
    };
    begins(tried_in_small_log(&json!("!"), &json!([])), "/statement: no unpadded base64url");
    begins(tried_in_small_log(&statement, &json!(7)), "/entries: invalid type");
    for at in 0..3 {
        let mut entries = vec![statement.clone(); 3];
        entries[at] = json!("!");
        begins(
            tried_in_small_log(&statement, &entries.into()),
            &format!("/entries/{at}: no unpadded base64url"),
        );
    }
    let strange = json!([statement, { "statement": statement, "payload": "!" }]);
    begins(tried_in_small_log(&statement, &strange), "/entries/1: no unpadded base64url");
    let mut broken = json!({ "operation": "try-policy", "policy": SMALL_LOG, "statement": statement });
    broken["now"] = "later".into();
    begins(answered(&broken), "/now: invalid type");
    let missing = json!({ "operation": "try-policy", "policy": SMALL_LOG });
    begins(answered(&missing), "missing field `statement`");
    let cut = tried_in_small_log(&statement, &json!([statement, "0oRA"]));
    assert_eq!(cut["error"]["code"], "malformed-statement", "{cut}");
    assert!(cut["error"]["what"].as_str().unwrap().starts_with("entry 2: "), "{cut}");
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
