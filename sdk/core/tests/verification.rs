//! The vectors of bundles and of the verifier, as requests. `sdk/python/tests/vectors.py` and `sdk/typescript/tests/vectors.mjs` run these
//! and all other vectors of the SDKs.
#![allow(clippy::unwrap_used)]

use std::fs;
use std::path::{Path, PathBuf};

use data_encoding::{BASE64URL_NOPAD, HEXLOWER};
use sdk_core::answer;
use serde_json::{Value, json};

/// A key of a gateway.
const KEY: &str = "did:key:z6MkhaXgBZDvotDkL5257faiztiGiC2QtKLGpbnnEGta2doK";

fn files(folder: &str) -> Vec<(PathBuf, Value)> {
    let mut found = Vec::new();
    let mut folders = vec![Path::new(env!("CARGO_MANIFEST_DIR")).join("../../vectors").join(folder)];
    while let Some(folder) = folders.pop() {
        for entry in fs::read_dir(folder).unwrap() {
            let path = entry.unwrap().path();
            match path.is_dir() {
                true => folders.push(path),
                false if path.extension().is_none_or(|extension| extension != "json") => {}
                false => {
                    found.push((path.clone(), serde_json::from_slice(&fs::read(&path).unwrap()).unwrap()))
                }
            }
        }
    }
    found
}

fn answered(request: &Value) -> Value {
    let mut request = request.clone();
    if let Value::Object(members) = &mut request {
        members.insert("operation".to_owned(), "verify".into());
    }
    serde_json::from_slice(&answer(request.to_string().as_bytes())).unwrap()
}

#[test]
fn every_vector_of_bundles_gets_its_answer() {
    let cases = files("bundle");
    assert!(cases.len() > 40, "only {} cases", cases.len());
    for (path, case) in cases {
        let answer = answered(&json!({
            "evidence": BASE64URL_NOPAD.encode(case["bundle"].as_str().unwrap().as_bytes()),
            "trust": case["trust"], "witness_policy": case["witness_policy"], "now": case["now"],
        }));
        let given = match answer["error"]["code"].as_str() {
            Some(_) => (&Value::from("malformed"), &Value::Null),
            None => (&answer["result"]["verdict"]["outcome"], &answer["result"]["verdict"]["reason"]),
        };
        assert_eq!(given, (&case["outcome"], &case["reason"]), "{}: {answer}", path.display());
    }
}

#[test]
fn every_vector_of_statements_and_receipts_gets_its_answer() {
    let cases = files("verifier");
    assert!(cases.len() >= 30, "only {} cases", cases.len());
    let bytes =
        |hex: &Value| BASE64URL_NOPAD.encode(&HEXLOWER.decode(hex.as_str().unwrap().as_bytes()).unwrap());
    for (path, case) in cases {
        let mut request =
            json!({ "evidence": bytes(&case["statement"]), "trust": case["trust"], "now": case["now"] });
        request["receipts"] = case["receipts"].as_array().unwrap().iter().map(bytes).collect();
        if case["payload"].is_string() {
            request["payload"] = bytes(&case["payload"]).into();
        }
        let answer = answered(&request);
        let (outcome, reason) = match answer["error"]["code"].as_str() {
            // The vectors have some messages that do not begin like a statement at all.
            Some("no-evidence") => (Value::from("failed"), Value::from("malformed-statement")),
            _ => (
                answer["result"]["verdict"]["outcome"].clone(),
                answer["result"]["verdict"]["reason"].clone(),
            ),
        };
        assert_eq!((&outcome, &reason), (&case["outcome"], &case["reason"]), "{}: {answer}", path.display());
    }
}

#[test]
fn a_checkpoint_is_verified_by_itself() {
    let (_, case) =
        files("bundle").into_iter().find(|(path, _)| path.ends_with("verified/session.json")).unwrap();
    let bundle: Value = serde_json::from_str(case["bundle"].as_str().unwrap()).unwrap();
    let checkpoint = bundle["checkpoint"].as_str().unwrap();
    let verify = |text: &str| {
        answered(&json!({
            "evidence": BASE64URL_NOPAD.encode(text.as_bytes()),
            "trust": case["trust"], "witness_policy": case["witness_policy"], "now": case["now"],
        }))
    };
    let answer = verify(checkpoint);
    assert_eq!(
        (&answer["result"]["kind"], &answer["result"]["verdict"]["outcome"]),
        (&"checkpoint".into(), &"verified".into())
    );
    let changed = verify(&checkpoint.replacen("\n5\n", "\n6\n", 1));
    assert_eq!(changed["result"]["verdict"]["reason"], "checkpoint-signature-invalid", "{changed}");
}

#[test]
fn a_request_that_leads_to_no_verdict_is_refused_with_a_code() {
    let refused = |request: Value| answered(&request)["error"]["code"].clone();
    let request = |evidence: &str, trust: &str| json!({ "evidence": evidence, "trust": trust, "now": 1 });
    assert_eq!(refused(json!([])), "malformed-request");
    assert_eq!(refused(request("====", "")), "malformed-request");
    assert_eq!(refused(request("AAAA", "nonsense")), "trust-unusable");
    assert_eq!(refused(request("AAAA", "")), "no-evidence");
    let mut policy = request("AAAA", "");
    policy["witness_policy"] = "nonsense".into();
    assert_eq!(refused(policy), "witness-policy-unusable");
    let mut keys = request("0oRA", "");
    keys["gateway_keys"] = json!(["nonsense"]);
    assert_eq!(refused(keys), "key-unusable");
    let checkpoint = BASE64URL_NOPAD.encode("log.example\n1\nAA==\n\n\u{2014} log.example AA==\n".as_bytes());
    let bundle = BASE64URL_NOPAD.encode(b"{\"bundle\":");
    for bundle_or_checkpoint in [&bundle, &checkpoint] {
        for (name, part) in
            [("payload", json!("AAAA")), ("receipts", json!(["AAAA"])), ("gateway_keys", json!([KEY]))]
        {
            let mut ignored = request(bundle_or_checkpoint, "");
            ignored[name] = part;
            assert_eq!(refused(ignored), "usage", "{name} of {bundle_or_checkpoint}");
        }
    }
}

#[test]
fn a_receipt_is_told_from_other_bytes() {
    let read = |receipt: &[u8]| -> Value {
        let request = json!({ "operation": "read-receipt", "receipt": BASE64URL_NOPAD.encode(receipt) });
        serde_json::from_slice(&answer(request.to_string().as_bytes())).unwrap()
    };
    let bytes = |hex: &Value| HEXLOWER.decode(hex.as_str().unwrap().as_bytes()).unwrap();
    let (_, case) = files("verifier/verified")
        .into_iter()
        .find(|(_, case)| case["receipts"].as_array().is_some_and(|receipts| !receipts.is_empty()))
        .unwrap();
    assert_eq!(read(&bytes(&case["receipts"][0]))["result"], json!({ "supported": true }));
    let page = b"<html>Please log in</html>";
    for other in [page.as_slice(), b"", bytes(&case["statement"]).as_slice()] {
        assert_eq!(read(other)["error"]["code"], "malformed-receipt");
    }
}

#[test]
fn a_broken_rule_of_the_content_type_fails_the_verdict() {
    let file =
        Path::new(env!("CARGO_MANIFEST_DIR")).join("../../vectors/vrf/vrf-tier-structural/tier-4.json");
    let case: Value = serde_json::from_slice(&fs::read(file).unwrap()).unwrap();
    let statement = HEXLOWER.decode(case["statement"].as_str().unwrap().as_bytes()).unwrap();
    let answer =
        answered(&json!({ "evidence": BASE64URL_NOPAD.encode(&statement), "trust": "", "now": case["at"] }));
    let verdict = &answer["result"]["verdict"];
    assert_eq!(
        (&verdict["outcome"], &verdict["reason"]),
        (&"failed".into(), &"content-rule-broken".into()),
        "{answer}"
    );
}
