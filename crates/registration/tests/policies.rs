//! `vectors/policy`: what operators type, what runs, and every mistake told at once.
//!
//! `sound/*.json` give a policy's TOML, its canonical JSON and digest; `mistaken/*.json` give a TOML and everything wrong with it.
//! After a change here, write them again with `WRITE_VECTORS=1 cargo test -p registration --test policies`.

#![allow(clippy::unwrap_used)]

use std::path::{Path, PathBuf};

use registration::policy::{Identity, Trusted, for_dev, for_init};
use registration::{Policy, PolicyDigest};
use scitt::Signer;
use serde_json::{Value, json};
use testkit::{GATEWAY, ISSUER, LOG_ISS, ORIGIN, es256, gateway, operator, policy_toml, verifier};

fn folder(kind: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../../vectors/policy").join(kind)
}

fn identity(key: &scitt::PublicKey) -> Identity<'_> {
    Identity { iss: LOG_ISS, origin: ORIGIN, operator: key }
}

/// Name, why, TOML.
fn sound() -> Vec<(&'static str, &'static str, String)> {
    let (operator, issuer) = (operator(), es256());
    let minimal = format!(
        "iss = \"{LOG_ISS}\"\norigin = \"{ORIGIN}\"\noperator = [\"{}\"]\n",
        operator.public_key().did_key()
    );
    let pem = format!(
        "{minimal}\n[[issuer]]\niss = \"{ISSUER}\"\nkeys = ['''{}''']\n",
        issuer.public_key().to_spki_pem()
    );
    let own = issuer.public_key().to_cose_key(Some(b"key-1"), None);
    let own = data_encoding::BASE64URL_NOPAD.encode(&own);
    let cose_key = format!(
        "{minimal}\n[[issuer]]\niss = \"{ISSUER}\"\nkeys = [\"{own}\", {{ key = \"{own}\", kid = \"other\" }}]\n"
    );
    let rooted = format!(
        "{minimal}\n[[anchor]]\nname = \"ca\"\nroots = ['''{ROOT}''']\nissuers = [\"https://*.example\"]\neku = \"1.3.6.1.5.5.7.3.3\"\n"
    );
    vec![
        ("minimal", "everything that may be left out is; nothing but policies is admitted", minimal.clone()),
        (
            "init",
            "what `tabellion init` writes: no issuer is trusted yet",
            for_init(identity(operator.public_key())),
        ),
        (
            "dev",
            "what `serve --dev` starts with",
            for_dev(
                identity(operator.public_key()),
                Trusted { iss: ISSUER, key: issuer.public_key() },
                Trusted { iss: GATEWAY, key: gateway().public_key() },
            ),
        ),
        ("tests", "the policy most tests use: bound issuers, open DIDs, four content types", policy_toml()),
        ("pem-key", "a key in PEM; its kid is its thumbprint", pem),
        (
            "cose-key",
            "a key as a COSE_Key: statements call it by its own kid, unless the policy says another",
            cose_key,
        ),
        ("anchor", "issuers by certificate", rooted),
        (
            "conditions",
            "required headers, conditions in order, retention in fixed units, and payloads that are not kept",
            format!("{minimal}{CONDITIONS}"),
        ),
        (
            "operator-actions",
            "two operators must agree to what cannot be undone, one to erasures",
            format!(
                "iss = \"{LOG_ISS}\"\norigin = \"{ORIGIN}\"\noperator = [\"{}\", \"{}\"]\n{}",
                operator.public_key().did_key(),
                verifier().public_key().did_key(),
                "[operator_actions]\nrequired = 2\nerasure = 1\n"
            ),
        ),
        (
            "log-end",
            "a log that takes no entry beyond a number or from a time on; the time is kept in UTC",
            format!("{minimal}[log]\nmax_entries = 1000000\nends = \"2027-01-01T01:00:00+01:00\"\n"),
        ),
    ]
}

fn mistaken() -> Vec<(&'static str, &'static str, String)> {
    let did = operator().public_key().did_key();
    let base = format!("iss = \"{LOG_ISS}\"\norigin = \"{ORIGIN}\"\noperator = [\"{did}\"]\n");
    let aer = "[[type]]\ncontent_type = \"application/aer+json\"\n";
    let vrf = "[[type]]\ncontent_type = \"application/vrf+cbor\"\n";
    vec![
        ("empty", "what is required is asked for, all of it", String::new()),
        ("operator-actions", "as many operators as are required must be there, and none lowers it alone", format!("{base}[operator_actions]\nrequired = 1\nfreeze = 2\nrelease = 0\nhold = 2\n")),
        ("operator-twice", "one key is one operator, whatever it is called", format!("iss = \"{LOG_ISS}\"\norigin = \"{ORIGIN}\"\noperator = [\"{did}\", {{ key = \"{did}\", kid = \"a\" }}]\n[operator_actions]\nrequired = 2\n[[type]]\ncontent_type = \"text/plain\"\nretention = \"1 day\"\n")),
        ("not-toml", "a file that is not TOML", "iss = ".to_owned()),
        ("unknown-keys", "a misspelled key is an error with a suggestion, never ignored", format!("{base}revison = 1\n[did]\nkeys = \"open\"\n{vrf}max_sise = 5\n[type.vrf]\nmin_teir = 1\n")),
        ("several-at-once", "mistakes in different places are told together", "iss = 5\norigin = \"https://log.example\"\nrevision = -1\noperator = [\"nonsense\"]\n[[type]]\ncontent_type = \"json\"\nalgorithms = [\"RS256\"]\nmax_size = 0\n".to_owned()),
        ("no-operator", "without an operator no later policy could follow", format!("iss = \"{LOG_ISS}\"\norigin = \"{ORIGIN}\"\n")),
        ("issuer-without-key", "an issuer needs a key", format!("{base}[[issuer]]\niss = \"{ISSUER}\"\n")),
        ("did-as-issuer", "a did:key is its own key", format!("{base}[[issuer]]\niss = \"{}\"\nkeys = [\"{}\"]\n", verifier().public_key().did_key(), es256().public_key().did_key())),
        ("operator-as-issuer", "one key, one purpose (RFC 9943)", format!("{base}[[issuer]]\niss = \"{ISSUER}\"\nkeys = [\"{did}\"]\n")),
        ("twice", "names are unique", format!("{base}[[issuer]]\niss = \"{ISSUER}\"\nkeys = [{{ key = \"{k}\", kid = \"a\" }}, {{ key = \"{k}\", kid = \"a\" }}]\n[[issuer]]\niss = \"{ISSUER}\"\nkeys = [\"{k}\"]\n[[type]]\ncontent_type = \"text/plain\"\n[[type]]\ncontent_type = \"Text/Plain\"\n", k = es256().public_key().did_key())),
        ("both-kids", "one kid, spelled once", format!("iss = \"{LOG_ISS}\"\norigin = \"{ORIGIN}\"\noperator = [{{ key = \"{did}\", kid = \"a\", kid_hex = \"61\" }}]\n")),
        ("policy-as-type", "no type admits policies: only the operator's keys do", format!("{base}[[type]]\ncontent_type = \"application/vnd.tabellion.policy+json\"\n")),
        ("vrf-as-bytes", "VRF receipts are never admitted unread", format!("{base}{vrf}profile = \"opaque\"\n[[type]]\ncontent_type = \"text/plain\"\nprofile = \"vrf\"\n[[type]]\ncontent_type = \"text/html\"\nprofile = \"html\"\n")),
        ("vrf-options-elsewhere", "VRF options belong to VRF types", format!("{base}[[type]]\ncontent_type = \"text/plain\"\nvrf = {{ min_tier = 1 }}\n")),
        ("vrf-by-hash", "redacted receipts are not understood yet", format!("{base}{vrf}hash_envelope = true\nvrf = {{ min_tier = 4 }}\n")),
        ("gateways", "an instance of a gateway stands once in a policy, and so does each of its Ed25519 keys under one name", format!("{base}{aer}[[type.aer.gateway]]\niss = \"{GATEWAY}\"\nid = \"a\"\nkeys = [\"{g}\", {{ key = \"{g}\" }}]\n[[type.aer.gateway]]\niss = \"https://other.example\"\nid = \"a\"\nkeys = [\"{}\"]\n[[type.aer.gateway]]\niss = \"{GATEWAY}\"\nid = \"a\"\nkeys = [\"{g}\"]\n[[type.aer.gateway]]\niss = \"{GATEWAY}\"\nname = \"c\"\n[[type.aer.gateway]]\nid = \"d\"\nkeys = [{{ signer = \"d\" }}, 5, \"{g}\"]\n", es256().public_key().did_key(), g = gateway().public_key().did_key())),
        ("aer-options-elsewhere", "the options of execution receipts belong to their type", format!("{base}[[type]]\ncontent_type = \"text/plain\"\naer = {{ allow_degraded = true }}\n{aer}aer = {{ allow_degarded = true, did_key_gateways = \"open\", gateway = {{}} }}\n")),
        ("anchor", "an anchor needs a root, a real OID, and somebody to speak for", format!("{base}[[anchor]]\nname = \"ca\"\nsan = false\neku = \"code signing\"\nroots = []\n[[anchor]]\nroots = [\"AAAA\"]\n")),
        ("usage-beyond-every-registry", "an OID that no certificate could hold would refuse them all", format!("{base}[[anchor]]\nname = \"ca\"\nroots = ['''{ROOT}''']\neku = \"1.3.99999999999999999999\"\n")),
        ("origin-too-long", "an origin that no checkpoint key could carry", format!("iss = \"{LOG_ISS}\"\norigin = \"{}\"\noperator = [\"{did}\"]\n", "x".repeat(256))),
        ("origin-with-a-blank", "an origin with a blank, though not an ASCII one", format!("iss = \"{LOG_ISS}\"\norigin = \"log\u{2003}example\"\noperator = [\"{did}\"]\n")),
        (
            "log-end",
            "a log that may have no entry, and an end that is no time",
            format!("{base}[log]\nmax_entries = 0\nends = \"2027-01-01\"\nbegins = 1\n"),
        ),
        ("log-end-fraction", "the time of entries is in whole seconds", format!("{base}[log]\nmax_entries = -1\nends = \"2027-01-01T00:00:00.5Z\"\n")),
        ("log-end-unquoted", "a time is a text", format!("{base}[log]\nends = 2027-01-01T00:00:00Z\n")),
        ("log-end-before-1970", "no entry has a time before 1970", format!("{base}[log]\nends = \"1969-12-31T23:59:59Z\"\n")),
        (
            "conditions",
            "wrong conditions are told together, each with the line and column of what is wrong",
            format!("{base}{WRONG_CONDITIONS}"),
        ),
        ("too-many-conditions", "a type has a bounded number of conditions", format!("{base}{}", seventeen_conditions())),
        (
            "retention",
            "a length of time has fixed units: how long a month is depends on the month",
            format!("{base}{}", wrong_retentions()),
        ),
        ("leaf-rule", "this log has one leaf rule", format!("leaf = \"statement\"\n{base}")),
        ("secret-as-key", "a private key where a public one belongs", format!("{base}[[issuer]]\niss = \"{ISSUER}\"\nkeys = ['''{}''']\n", es256().to_pkcs8_pem().unwrap().as_str())),
    ]
}

const CONDITIONS: &str = r#"
[[type]]
content_type = "text/plain"
headers = [16, "x-build", -70001]
retention = "52 weeks 1 day 12h"
keep_payload = false
[[type.rule]]
name = "small"
when = "input.size < 100"
then = "admit"
[[type.rule]]
name = "rest"
when = "true"
then = "refuse"
"#;

const WRONG_CONDITIONS: &str = r#"
[[type]]
content_type = "text/plain"
headers = [1.5, ""]
[[type.rule]]
name = "Clock"
when = """
input.size > 3
time.now_ns() > 0"""
then = "refuse"
[[type.rule]]
name = "escape"
when = "true } x if { true"
then = "allow"
[[type.rule]]
name = "cut-short"
when = "input.size >"
then = "admit"
[[type.rule]]
name = "elsewhere"
when = "data.x"
[[type.rule]]
name = "twice"
when = "true"
then = "admit"
[[type.rule]]
name = "twice"
when = "true"
then = "admit"
else = 1
"#;

fn seventeen_conditions() -> String {
    let condition = |n| format!("[[type.rule]]\nname = \"r{n}\"\nwhen = \"true\"\nthen = \"admit\"\n");
    "[[type]]\ncontent_type = \"text/plain\"\n".to_owned() + &(0..17).map(condition).collect::<String>()
}

fn wrong_retentions() -> String {
    let spans = ["1 month", "1 year", "0s", "-3 days", "soon", "10000000000 weeks"];
    let of = |(n, span)| format!("[[type]]\ncontent_type = \"text/{n}\"\nretention = \"{span}\"\n");
    spans.iter().enumerate().map(of).collect()
}

/// A self-signed root made for this test.
const ROOT: &str = include_str!("root.pem");

fn check(kind: &str, name: &str, made: &Value) {
    let path = folder(kind).join(format!("{name}.json"));
    if std::env::var_os("WRITE_VECTORS").is_some() {
        std::fs::create_dir_all(folder(kind)).unwrap();
        std::fs::write(&path, serde_json::to_string_pretty(made).unwrap() + "\n").unwrap();
    }
    let kept: Value =
        serde_json::from_slice(&std::fs::read(&path).unwrap_or_else(|error| panic!("{path:?}: {error}")))
            .unwrap();
    assert_eq!(&kept, made, "{path:?} drifted");
}

fn count(kind: &str) -> usize {
    std::fs::read_dir(folder(kind)).unwrap().count()
}

#[test]
fn a_sound_policy_has_the_payload_and_digest_it_always_had() {
    for (name, why, toml) in sound() {
        let policy = Policy::from_toml(&toml).unwrap_or_else(|mistakes| panic!("{name}: {mistakes}"));
        let payload = String::from_utf8(policy.payload().to_vec()).unwrap();
        check(
            "sound",
            name,
            &json!({ "why": why, "toml": toml, "payload": payload, "digest": policy.digest().to_string() }),
        );
    }
    assert_eq!(count("sound"), sound().len());
}

#[test]
fn every_mistake_is_told_with_the_path_of_its_key() {
    for (name, why, toml) in mistaken() {
        let mistakes = Policy::from_toml(&toml).map(|_| ()).expect_err(name);
        let told: Vec<Value> = mistakes
            .0
            .iter()
            .map(|mistake| json!({ "key": mistake.key, "problem": mistake.problem }))
            .collect();
        check("mistaken", name, &json!({ "why": why, "toml": toml, "mistakes": told }));
    }
    assert_eq!(count("mistaken"), mistaken().len());
}

#[test]
fn a_policy_comes_back_out_of_its_payload() {
    for (name, _, toml) in sound() {
        let typed = Policy::from_toml(&toml).unwrap();
        let read =
            Policy::from_payload(typed.payload()).unwrap_or_else(|mistakes| panic!("{name}: {mistakes}"));
        assert_eq!(read.contents(), typed.contents(), "{name}");
        assert_eq!((read.digest(), read.payload()), (typed.digest(), typed.payload()), "{name}");
    }
}

#[test]
fn comments_order_and_defaults_do_not_change_the_digest() {
    let digest = |toml: &str| -> PolicyDigest { Policy::from_toml(toml).unwrap().digest() };
    let plain = policy_toml();
    let written_out = plain.replace(
        "content_type = \"text/plain\"",
        "# text\nprofile = \"opaque\"\ndetached = false\ncontent_type = \"text/plain\"",
    );
    assert_eq!(digest(&plain), digest(&written_out));
    assert_ne!(digest(&plain), digest(&plain.replace("4096", "4097")));
}

#[test]
fn a_payload_that_is_not_canonical_is_refused() {
    let policy = Policy::from_toml(&policy_toml()).unwrap();
    let text = std::str::from_utf8(policy.payload()).unwrap();
    for changed in [
        format!("{text}\n"),
        text.replacen(':', ": ", 1),
        format!("\u{feff}{text}"),
        String::new(),
        "[]".to_owned(),
    ] {
        assert!(Policy::from_payload(changed.as_bytes()).is_err());
    }
}

#[test]
fn the_largest_statement_is_that_of_the_most_generous_type() {
    let generous = policy_toml().replace("4096", "4194304");
    assert_eq!(Policy::from_toml(&generous).unwrap().largest_statement(), 4_194_304);
}
