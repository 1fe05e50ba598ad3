//! `tabellion execution`: a gateway's receipt becomes a statement, a log admits it, and a changed one is told by its rule.

use black_box::cli::{Dev, Folder};
use serde_json::Value;

/// A folder with a gateway's key, and the gateway's name: its did:key.
fn gateway() -> (Folder, String) {
    let folder = Folder::new();
    let made = folder.run(&["issuer", "new", "-o", "gateway.pem", "--alg", "EdDSA", "--json"]);
    let did = made.must_end_with(0).json()["did_key"].as_str().expect("a DID").to_owned();
    (folder, did)
}

/// A permit of this gateway, not signed yet.
fn write_receipt(folder: &Folder, file: &str, gateway: &str) -> Value {
    let mut receipt = testkit::aer_json(1);
    receipt["border_gateway"]["gateway_id"] = gateway.into();
    folder.write(file, serde_json::to_vec_pretty(&receipt).expect("JSON"));
    receipt
}

#[test]
fn a_receipt_is_signed_and_registered_as_dev_mode_admits_it() {
    let dev = Dev::start();
    let made = dev.folder.run(&["issuer", "new", "-o", "gateway.pem", "--alg", "EdDSA", "--json"]);
    write_receipt(&dev.folder, "aer.json", made.json()["did_key"].as_str().expect("a DID"));
    let signed = dev.folder.run(&["execution", "sign", "--key", "gateway.pem", "aer.json", "--json"]).json();
    assert_eq!((&signed["decision"], &signed["mode"]), (&"permit".into(), &"normal".into()));
    dev.folder.run(&["register", "--dev", "aer.json.cose"]).must_end_with(0);
    dev.folder.run(&["verify", "aer.json.cose.transparent.cose"]).must_end_with(0);
    let entry = dev.folder.run(&["entry", "get", "aer.json.cose", "--json"]).json();
    assert_eq!(entry["facts"]["tool"], "get_pull_request");
    assert!(entry["facts"]["produced_at"].is_u64(), "{entry}");
    let entry = dev.folder.run(&["entry", "get", "aer.json.cose"]);
    let shown = entry.text();
    let time = shown.lines().find(|line| line.trim_start().starts_with("produced_at"));
    assert!(time.is_some_and(|line| line.ends_with('Z')), "a person is shown a date: {entry}");
    dev.folder.run(&[
        "execution",
        "sign",
        "--key",
        "gateway.pem",
        "aer.json",
        "--about-session",
        "-o",
        "again.cose",
    ]);
    let again = dev.folder.run(&["register", "--dev", "again.cose"]);
    assert!(again.must_end_with(6).stderr.contains("aer-id-unique"), "{again}");
}

#[test]
fn a_receipt_that_breaks_a_rule_is_not_signed() {
    let (folder, did) = gateway();
    let mut receipt = write_receipt(&folder, "aer.json", &did);
    receipt["enforcement_outcome"] = "deny".into();
    folder.write("aer.json", receipt.to_string());
    let refused = folder.run(&["execution", "sign", "--key", "gateway.pem", "aer.json"]);
    assert!(refused.must_end_with(1).stderr.contains("aer-denial"), "{refused}");
    assert!(!folder.has("aer.json.cose"));
    folder.run(&["issuer", "new", "-o", "p256.pem"]).must_end_with(0);
    write_receipt(&folder, "aer.json", &did);
    let refused = folder.run(&["execution", "sign", "--key", "p256.pem", "aer.json"]);
    assert!(refused.must_end_with(1).stderr.contains("Ed25519"), "{refused}");
}

#[test]
fn another_gateways_signature_is_no_signature() {
    let (folder, did) = gateway();
    write_receipt(&folder, "aer.json", &did);
    folder.run(&["issuer", "new", "-o", "other.pem", "--alg", "EdDSA"]).must_end_with(0);
    let sign = ["execution", "sign", "--key", "gateway.pem", "aer.json", "--iss", "https://gateway.example"];
    folder.run(&sign).must_end_with(0);
    folder.run(&["execution", "verify", "aer.json.cose", "--gateway-key", "gateway.pem"]).must_end_with(0);
    folder.run(&["execution", "verify", "aer.json.cose", "--gateway-key", &did]).must_end_with(0);
    let refused = folder.run(&["execution", "verify", "aer.json.cose", "--gateway-key", "other.pem"]);
    assert!(refused.must_end_with(3).stderr.contains("aer-signature"), "{refused}");
    let unknown = folder.run(&["execution", "verify", "aer.json.cose"]);
    assert!(unknown.must_end_with(4).stderr.contains("no-gateway-key"), "{unknown}");
}

#[test]
fn a_redacted_receipt_is_believed_when_it_is_disclosed() {
    let (folder, did) = gateway();
    write_receipt(&folder, "aer.json", &did);
    folder.run(&["execution", "sign", "--key", "gateway.pem", "aer.json", "--redacted"]).must_end_with(0);
    let hidden = folder.run(&["statement", "inspect", "aer.json.cose"]).text();
    assert!(!hidden.contains("get_pull_request"), "{hidden}");
    let verify = ["execution", "verify", "aer.json.cose", "--disclosed", "aer.json.disclosure", "--json"];
    let shown = folder.run(&verify).json();
    assert_eq!(
        (&shown["capability"], &shown["redacted"]),
        (&"mcp:github.get_pull_request".into(), &true.into())
    );
    let missing = folder.run(&["execution", "verify", "aer.json.cose"]);
    assert!(missing.must_end_with(3).stderr.contains("payload-missing"), "{missing}");
    let changed =
        String::from_utf8(folder.read("aer.json.disclosure")).expect("JSON").replace("permit", "denied");
    folder.write("changed.json", changed);
    let changed = folder.run(&["execution", "verify", "aer.json.cose", "--disclosed", "changed.json"]);
    changed.must_end_with(3);
}
