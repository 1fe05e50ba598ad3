//! Verifiers that are not did:key, with the command line: from signing through a log to the relying party.

use std::fs;

use black_box::{Log, Ran, Service};
use rcgen::{
    BasicConstraints, CertificateParams, CertifiedIssuer, IsCa, KeyPair, KeyUsagePurpose, PKCS_ED25519,
    SanType,
};
use serde_json::{Value, json};
use testkit::{AGENT, receipt_json};

/// A verifier whose key the policy lists.
const LISTED: &str = "https://verifier.example";
/// A verifier that a certificate names.
const CERTIFIED: &str = "https://certified.example";

/// Writes `certified.pem`, the key of [`CERTIFIED`], and `chain.pem`, its certificate; returns the root in PEM.
fn certify(log: &Log) -> String {
    let mut params = CertificateParams::default();
    params.is_ca = IsCa::Ca(BasicConstraints::Unconstrained);
    params.key_usages = vec![KeyUsagePurpose::KeyCertSign];
    let root = CertifiedIssuer::self_signed(params, KeyPair::generate().unwrap()).unwrap();
    let key = KeyPair::generate_for(&PKCS_ED25519).unwrap();
    let mut params = CertificateParams::default();
    params.subject_alt_names = vec![SanType::URI(CERTIFIED.try_into().unwrap())];
    params.key_usages = vec![KeyUsagePurpose::DigitalSignature];
    let certificate = params.signed_by(&key, &root).unwrap();
    log.write_private("certified.pem", &key.serialize_pem());
    fs::write(log.path("chain.pem"), certificate.pem()).unwrap();
    root.pem()
}

/// The table of an issuer by its key, in policies and in trust files.
fn listed(did: &str) -> String {
    format!("[[issuer]]\niss = \"{LISTED}\"\nkeys = [\"{did}\"]\n")
}

/// Signs receipt `n` with more flags, and returns the file.
fn sign(log: &Log, n: u64, flags: &[&str]) -> String {
    let file = format!("{n}.json");
    fs::write(log.path(&file), receipt_json(n).to_string()).unwrap();
    log.tabellion(&[&["vrf", "sign", "--sub", AGENT, &file], flags].concat()).must_succeed();
    format!("{file}.cose")
}

/// A log that takes receipts of both verifiers: two in the chain of [`LISTED`], and one of [`CERTIFIED`]. `trust.toml`
/// trusts the log and both, `log-only.toml` the log.
fn with_receipts(log: &Log) -> Service {
    log.tabellion(&["issuer", "new", "-o", "listed.pem", "--alg", "EdDSA"]).must_succeed();
    let did = log
        .tabellion(&["issuer", "export", "listed.pem", "--format", "did-key"])
        .must_succeed()
        .stdout
        .clone();
    let (did, root) = (did.trim(), certify(log));
    let types = "issuers = [\"did:key:*\"]";
    let admitted = format!(
        "issuers = [\"did:key:*\", \"{LISTED}\", \"{CERTIFIED}\"]\n[type.vrf]\nallow_other_issuers = true"
    );
    let anchors = format!("{}[[anchor]]\nname = \"ca\"\nroots = ['''{root}''']\n", listed(did));
    let policy = testkit::policy_toml().replacen(types, &admitted, 1);
    log.set_policy(&policy.replacen("[did]", &format!("{anchors}\n[did]"), 1));
    let service = log.serve();

    let kid = log.tabellion(&["key", "show", "--json"]).json()["receipt"]["kid"].as_str().unwrap().to_owned();
    let trust = ["trust", "add", "log", "--trust", "log-only.toml", "--kid", &kid, "--url", service.url()];
    log.tabellion(&trust).must_succeed();
    let trusted = fs::read_to_string(log.path("log-only.toml")).unwrap();
    let certified = format!("[[issuer]]\niss = \"{CERTIFIED}\"\nroots = ['''{root}''']\n");
    fs::write(log.path("trust.toml"), format!("{trusted}\n{}{certified}", listed(did))).unwrap();

    let first = sign(log, 1, &["--key", "listed.pem", "--iss", LISTED]);
    let second = sign(log, 2, &["--key", "listed.pem", "--iss", LISTED, "--previous", &first]);
    let certificates = ["--key", "certified.pem", "--iss", CERTIFIED, "--certificates", "chain.pem"];
    let third = sign(log, 3, &certificates);
    for file in [&first, &second, &third] {
        log.tabellion(&["register", file, "--url", service.url(), "--trust", "log-only.toml"]).must_succeed();
    }
    service
}

/// Runs a command with the service's URL and a trust file, and returns its result.
#[track_caller]
fn ask(log: &Log, service: &Service, trust: &str, arguments: &[&str], code: i32) -> Value {
    ended(log.tabellion(&[arguments, &["--url", service.url(), "--trust", trust, "--json"]].concat()), code)
}

#[track_caller]
fn ended(ran: Ran, code: i32) -> Value {
    assert_eq!(ran.code, Some(code), "{ran}");
    serde_json::from_str(&ran.stdout).unwrap_or_else(|why| panic!("{why}: {ran}"))
}

#[test]
fn a_verifier_with_a_listed_key_or_a_certificate_is_followed_to_its_receipts() {
    let log = Log::sqlite();
    let service = with_receipts(&log);
    for (issuer, receipts) in [(LISTED, 2), (CERTIFIED, 1)] {
        let walked = ask(&log, &service, "trust.toml", &["vrf", "chain", issuer, "--sub", AGENT], 0);
        let chain = &walked["chains"][0];
        assert_eq!((&chain["whole"], chain["receipts"].as_array().unwrap().len()), (&json!(true), receipts));
        assert!(
            chain["receipts"].as_array().unwrap().iter().all(|receipt| receipt["verified"] == true),
            "{chain}"
        );
    }
    for (issuer, n) in [(LISTED, 2), (CERTIFIED, 3)] {
        let id = receipt_json(n)["receipt_id"].as_str().unwrap().to_owned();
        let fetched = ask(&log, &service, "trust.toml", &["vrf", "fetch", &id, "--issuer", issuer], 0);
        assert_eq!((&fetched["verified"], &fetched["issuer"]), (&json!(true), &json!(issuer)));
        // Whom nothing names as a verifier proves nothing, whoever has registered it.
        ask(&log, &service, "log-only.toml", &["vrf", "chain", issuer, "--sub", AGENT], 4);
    }
}

#[test]
fn such_verifiers_count_for_a_quorum_as_long_as_their_work_is_not_too_old() {
    let log = Log::sqlite();
    let service = with_receipts(&log);
    let id = |n| receipt_json(n)["receipt_id"].as_str().unwrap().to_owned();
    for (issuer, n) in [(LISTED, 1), (CERTIFIED, 3)] {
        ask(&log, &service, "trust.toml", &["vrf", "fetch", &id(n), "--issuer", issuer, "--output", "."], 0);
    }
    service.stop();
    let listed = format!("{LISTED},{CERTIFIED}");
    let files = [1, 3].map(|n| format!("{}.transparent.cose", id(n)));
    let require = |age: &str, code: i32| {
        let command =
            ["verify", "--json", "--trust", "trust.toml", "--require", "2-of", &listed, "--max-age", age];
        ended(log.tabellion(&[&command[..], &[&files[0], &files[1]]].concat()), code)
    };
    let report = require("36500d", 0);
    assert_eq!((&report["met"], &report["counted"]), (&json!(true), &json!(2)), "{report}");
    let report = require("1s", 4);
    assert_eq!((&report["met"], &report["counted"]), (&json!(false), &json!(0)), "{report}");
    for dropped in [["--attested-by", "monitor"], ["--attestation", "head.attestation"]] {
        let command =
            [&["verify", "--require", "2-of", &listed], &dropped[..], &[&files[0], &files[1]]].concat();
        let ran = log.tabellion(&command);
        assert_eq!(ran.code, Some(2), "{ran}");
        assert!(ran.stderr.contains(dropped[0]), "{ran}");
    }
}
