//! `tabellion vrf`: a verifier's receipts from the command line, chained and redacted.

use black_box::cli::{Dev, Ended, Folder};
use scitt::Signer;
use serde_json::Value;

const AGENT: &str = "did:web:agent.example";

/// A folder with a verifier's key and receipts `1.json` to `4.json`.
fn verifier(folder: &Folder) {
    folder.run(&["issuer", "new", "-o", "verifier.pem", "--alg", "EdDSA"]).must_end_with(0);
    folder.run(&["issuer", "new", "-o", "other.pem", "--alg", "EdDSA"]).must_end_with(0);
    for n in 1..=4 {
        folder.write(&format!("{n}.json"), testkit::receipt_json(n).to_string());
    }
}

fn sign(folder: &Folder, file: &str, more: &[&str]) -> Ended {
    sign_as(folder, "verifier.pem", AGENT, file, more)
}

fn sign_as(folder: &Folder, key: &str, sub: &str, file: &str, more: &[&str]) -> Ended {
    let arguments = ["vrf", "sign", "--json", "--key", key, "--sub", sub, file];
    folder.run(&[&arguments, more].concat())
}

/// A policy that takes VRF receipts from this tier on.
fn policy(folder: &Folder, tier: u8) -> String {
    let issuers = "issuers = [\"did:key:*\"]";
    let options = format!("{issuers}\n[type.vrf]\nmin_tier = {tier}\n");
    folder.write("policy.toml", testkit::policy_toml().replace(issuers, &options));
    "policy.toml".to_owned()
}

fn verified(folder: &Folder, arguments: &[&str]) -> Value {
    folder.run(&[&["vrf", "verify", "--json"], arguments].concat()).must_end_with(0).json()
}

#[test]
fn a_policy_is_also_asked_about_the_header() {
    let folder = Folder::new();
    let key = testkit::verifier();
    let receipt = testkit::receipt(1).issued_by("https://verifier.example", None).sign(&key).unwrap();
    folder.write("1.cose", receipt.bytes());
    folder.write("verifier.jwk", key.public_key().to_jwk().to_value().to_string());
    let verify = ["vrf", "verify", "--json", "1.cose", "--key", "verifier.jwk"];
    folder.run(&verify).must_end_with(0);
    let refused = folder.run(&[&verify[..], &["--policy", &policy(&folder, 0)]].concat());
    assert_eq!(refused.must_end_with(3).error(), "vrf-issuer-did-key");
}

#[test]
fn a_receipt_takes_its_place_from_the_statement_before() {
    let folder = Folder::new();
    verifier(&folder);
    let first = sign(&folder, "1.json", &[]).must_end_with(0).json();
    assert_eq!(first["chain"], "first of its chain");
    let second = sign(&folder, "2.json", &["--previous", "1.json.cose"]).must_end_with(0).json();
    let entry = first["entry"].as_str().expect("an entry ID");
    assert_eq!(second["chain"], format!("number 1, after {entry} (not looked up)"));
    let third = sign(&folder, "3.json", &["--previous", "2.json.cose", "--redacted"]).must_end_with(0).json();
    assert!(third["chain"].as_str().expect("a place").starts_with("number 2, after"), "{third}");
    let fourth = sign(&folder, "4.json", &["--previous", "3.json.cose"]).must_end_with(0).json();
    assert!(fourth["chain"].as_str().expect("a place").starts_with("number 3, after"), "{fourth}");
}

#[test]
fn nothing_follows_a_statement_of_another_chain_or_of_none() {
    let folder = Folder::new();
    verifier(&folder);
    sign(&folder, "1.json", &[]).must_end_with(0);
    sign(&folder, "2.json", &["--unchained"]).must_end_with(0);
    let previous = ["--previous", "1.json.cose"];
    assert_eq!(sign_as(&folder, "other.pem", AGENT, "3.json", &previous).error(), "not-its-predecessor");
    assert_eq!(
        sign_as(&folder, "verifier.pem", "urn:x:y", "3.json", &previous).error(),
        "not-its-predecessor"
    );
    assert_eq!(sign(&folder, "3.json", &["--previous", "2.json.cose"]).error(), "not-its-predecessor");
    assert!(!folder.has("3.json.cose"));
    sign(&folder, "3.json", &["--previous", "1.json.cose", "--unchained"]).must_end_with(2);
}

#[test]
fn a_redacted_receipt_shows_nothing_until_it_is_disclosed() {
    let folder = Folder::new();
    verifier(&folder);
    let signed = sign(&folder, "1.json", &["--redacted"]).must_end_with(0).json();
    assert_eq!(signed["verdict"], "pass", "who signs it knows");
    let held = folder.read("1.json.cose");
    assert!(!held.windows(4).any(|word| word == b"pass"), "the statement holds no verdict");

    let hidden = verified(&folder, &["1.json.cose"]);
    assert_eq!((&hidden["verdict"], &hidden["receipt_id"]), (&Value::Null, &signed["receipt_id"]));
    let told = folder.run(&["vrf", "verify", "1.json.cose"]).must_end_with(0).text();
    assert!(told.contains("not disclosed: sha256:"), "{told}");

    let shown = verified(&folder, &["1.json.cose", "--disclosed", "1.json.disclosure"]);
    assert_eq!(shown["verdict"], "pass");
    let told = folder.run(&["vrf", "verify", "1.json.cose", "--disclosed", "1.json.disclosure"]).text();
    assert!(told.contains("ok    disclosed receipt"), "{told}");

    let strict = policy(&folder, 2);
    let arguments = ["vrf", "verify", "--json", "1.json.cose", "--policy", &strict];
    assert_eq!(folder.run(&arguments).must_end_with(2).error(), "not-disclosed");
    let disclosed = folder.run(&[&arguments[..], &["--disclosed", "1.json.disclosure"]].concat());
    assert_eq!(disclosed.must_end_with(3).error(), "vrf-minimum-tier", "the policy is asked once it can be");

    sign(&folder, "2.json", &["--redacted"]).must_end_with(0);
    let other = folder.run(&["vrf", "verify", "--json", "1.json.cose", "--disclosed", "2.json.disclosure"]);
    assert_eq!(other.must_end_with(3).error(), "vrf-disclosure");
    sign(&folder, "3.json", &[]).must_end_with(0);
    let open = folder.run(&["vrf", "verify", "--json", "3.json.cose", "--disclosed", "2.json.disclosure"]);
    assert_eq!(open.must_end_with(2).error(), "not-redacted");
}

#[test]
fn a_disclosure_is_never_lost_for_want_of_a_name() {
    let folder = Folder::new();
    verifier(&folder);
    let receipt = testkit::receipt_json(1).to_string();
    let arguments = ["vrf", "sign", "--json", "--key", "verifier.pem", "--sub", AGENT, "--redacted", "-"];
    let nameless = folder.run_with(&arguments, receipt.as_bytes());
    assert_eq!(nameless.must_end_with(2).error(), "no-place-for-the-disclosure");
    let named = folder.run_with(&[&arguments[..], &["-o", "1.cose"]].concat(), receipt.as_bytes());
    named.must_end_with(0);
    verified(&folder, &["1.cose", "--disclosed", "1.cose.disclosure"]);
}

#[test]
fn a_log_takes_one_successor_and_shows_the_other_as_a_report() {
    let dev = Dev::start();
    let folder = &dev.folder;
    verifier(folder);
    sign(folder, "1.json", &[]).must_end_with(0);
    for file in ["2.json", "3.json"] {
        sign(folder, file, &["--previous", "1.json.cose"]).must_end_with(0);
    }
    for (file, code) in [("1.json.cose", 0), ("2.json.cose", 0), ("3.json.cose", 6)] {
        let ended = folder.run(&["register", "--json", file]);
        ended.must_end_with(code);
        if code != 0 {
            assert_eq!(ended.error(), "chain_fork");
        }
    }
    let issuer =
        folder.run(&["issuer", "export", "verifier.pem", "--format", "did-key"]).must_end_with(0).text();
    let chain = |more: &[&str]| folder.run(&[&["vrf", "chain", issuer.trim()], more].concat());
    let walked = chain(&["--sub", AGENT, "--json"]).must_end_with(3).json()["chains"][0].clone();
    assert_eq!(walked["receipts"].as_array().map(Vec::len), Some(2), "{walked}");
    assert_eq!((&walked["whole"], &walked["forks"][0]["rule"]), (&false.into(), &"vrf-chain-fork".into()));
    assert!(
        walked["receipts"].as_array().unwrap().iter().all(|receipt| receipt["verified"] == true),
        "{walked}"
    );
    assert_eq!(chain(&["--json"]).must_end_with(3).json()["chains"][0], walked, "whoever it is about");
    sign(folder, "4.json", &["--after", &"ab".repeat(32), "--position", "7"]).must_end_with(0);
    folder.run(&["register", "4.json.cose"]).must_end_with(0);
    let told = chain(&[]).must_end_with(3).text();
    assert!(told.contains(&format!("     6  {} is missing", "ab".repeat(32))), "{told}");
    assert!(
        told.contains("not whole: 3 receipts (3 verified, 0 wrong), 1 missing, 0 misplaced, 1 fork, 2 ends"),
        "{told}"
    );
    chain(&["--sub", "did:web:nobody.example"]).must_end_with(5);
    whole_chains_end_with_what_could_be_verified(folder);
    let told = folder.run(&["help", "chain_fork"]).must_end_with(0).text();
    assert!(told.contains("/v1/equivocations"), "{told}");
}

/// A chain without gaps or forks: verified where its log is trusted, and not verified where no log is.
fn whole_chains_end_with_what_could_be_verified(folder: &Folder) {
    folder.write("5.json", testkit::receipt_json(5).to_string());
    sign_as(folder, "other.pem", AGENT, "5.json", &[]).must_end_with(0);
    folder.run(&["register", "5.json.cose"]).must_end_with(0);
    let other = folder.run(&["issuer", "export", "other.pem", "--format", "did-key"]).must_end_with(0).text();
    let chain = |more: &[&str]| folder.run(&[&["vrf", "chain", other.trim()], more].concat());
    let told = chain(&[]).must_end_with(0).text();
    assert!(told.contains("whole: 1 receipt (1 verified, 0 wrong)"), "{told}");
    folder.write("nobody.toml", "");
    let told = chain(&["--trust", "nobody.toml"]).must_end_with(4).text();
    assert!(told.contains("not verified: no-trust-anchors"), "{told}");
}
