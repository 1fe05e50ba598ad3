//! The suite itself: its table, its samples, and its behaviour towards answers of any kind.

#![allow(clippy::unwrap_used)]

use std::collections::BTreeSet;
use std::path::Path;

use bytes::Bytes;
use conformance::{
    CheckConclusion, ConformanceCheck, ConformanceReport, HostileInput, Observations, PROBES, Probe,
    ProbeOutcome, ProbeResponse, Samples, checks, markdown_table, next_probe, next_request,
};
use http::{HeaderMap, StatusCode};
use scitt::cbor::{ItemReader, ItemWriter, Limits};
use scitt::{Algorithm, CoseKey, KeySet, SignedStatement, Signer};
use serde_json::json;

const NOW: u64 = 1_800_000_000;
const BASE: &str = "https://ts.example/";

/// The hostile inputs that the issuer signs.
const SIGNED: [HostileInput; 5] = [
    HostileInput::UnprotectedClaims,
    HostileInput::NoKid,
    HostileInput::UnknownCritical,
    HostileInput::ProtectedDuplicate,
    HostileInput::TypedHashEnvelope,
];

fn samples() -> Samples {
    unsigned_samples().signed_by(&testkit::es256()).unwrap()
}

/// The samples of a run with a statement whose issuer's key is not known.
fn unsigned_samples() -> Samples {
    Samples::of(testkit::opaque("thing", &json!({ "n": 1 })).bytes().clone()).unwrap()
}

fn response(status: u16, headers: &[(&'static str, &'static str)], body: &[u8]) -> ProbeOutcome {
    let headers: HeaderMap =
        headers.iter().map(|(name, value)| (name.parse().unwrap(), value.parse().unwrap())).collect();
    let (status, body) = (StatusCode::from_u16(status).unwrap(), Bytes::copy_from_slice(body));
    ProbeOutcome::Answered(ProbeResponse { status, headers, body })
}

fn all() -> Vec<&'static ConformanceCheck> {
    checks().collect()
}

/// The report about a service that gives this answer to every request.
fn report_on(outcome: &ProbeOutcome) -> ConformanceReport {
    let mut observations = Observations::new(samples().statement().clone(), NOW);
    PROBES.iter().for_each(|probe| observations.record(*probe, outcome.clone()));
    ConformanceReport::of(&all(), &observations, BASE, "2027-01-15T08:00:00Z")
}

fn observations() -> Observations {
    Observations::new(samples().statement().clone(), NOW)
}

/// The report of these checks alone.
fn report_of(names: &[&str], observations: &Observations) -> ConformanceReport {
    let selected: Vec<_> = checks().filter(|check| names.contains(&check.name)).collect();
    assert_eq!(selected.len(), names.len(), "{names:?}");
    ConformanceReport::of(&selected, observations, BASE, "now")
}

fn conclusion(report: &ConformanceReport, name: &str) -> CheckConclusion {
    report.checks.iter().find(|check| check.name == name).unwrap().conclusion
}

#[test]
fn the_table_in_the_documentation_is_that_of_the_code() {
    let page = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../docs/conformance.md");
    let text = std::fs::read_to_string(&page).unwrap();
    let (before, rest) = text.split_once("<!-- checks -->\n").unwrap();
    let (_, after) = rest.split_once("<!-- end of checks -->\n").unwrap();
    let expected = format!("{before}<!-- checks -->\n{}<!-- end of checks -->\n{after}", markdown_table());
    if std::env::var_os("UPDATE_CONFORMANCE").is_some() {
        std::fs::write(&page, &expected).unwrap();
        return;
    }
    assert_eq!(text, expected, "UPDATE_CONFORMANCE=1 writes the table anew");
}

#[test]
fn names_of_checks_are_unique() {
    let names: BTreeSet<_> = checks().map(|check| check.name).collect();
    assert_eq!(names.len(), checks().count());
}

#[test]
fn a_run_of_all_checks_sends_every_probe_in_the_order_of_the_suite() {
    let sent = probes_of(&all());
    let unsent = |probe: &&Probe| !sent.contains(probe);
    assert!(sent.is_sorted() && PROBES.is_sorted(), "{sent:?}");
    // These depend on what a service of this test does not have: keys, and a receipt.
    let dependent = [Probe::KeyByKid, Probe::KeyByRawKid, Probe::Transparent];
    assert_eq!(PROBES.iter().filter(unsent).copied().collect::<Vec<_>>(), dependent);
}

#[test]
fn a_run_of_one_check_sends_what_this_check_needs() {
    let registered = [Probe::Registration, Probe::Receipt];
    for (name, expected) in [
        ("keys-status", &[Probe::Keys][..]),
        ("resolve-status", &registered[..]),
        ("running-status", &registered[..]),
        ("receipt-structure", &registered[..]),
        ("resubmit-status", &[Probe::Registration, Probe::Resubmission][..]),
        ("entry-unknown", &[Probe::Registration, Probe::UnknownEntry][..]),
        ("hostile-text", &[Probe::Hostile(HostileInput::Text)][..]),
    ] {
        let only: Vec<_> = checks().filter(|check| check.name == name).collect();
        assert_eq!(probes_of(&only), expected, "{name}");
    }
    let last: Vec<_> = checks().filter(|check| check.name == "still-serving").collect();
    assert_eq!(probes_of(&last), probes_of(&all()), "it is about the time after all other requests");
}

/// The probes that are sent to a service that accepts every request, with an empty body.
fn probes_of(checks: &[&ConformanceCheck]) -> Vec<Probe> {
    let base = BASE.parse().unwrap();
    let mut observations = Observations::new(samples().statement().clone(), NOW);
    let mut sent = Vec::new();
    while let Some((probe, _)) = next_probe(checks, &base, &samples(), &observations) {
        observations.record(probe, response(202, &[("location", "https://ts.example/entries/abc")], b""));
        sent.push(probe);
    }
    sent
}

#[test]
fn our_own_parser_refuses_every_hostile_body_that_is_malformed() {
    let well_formed = [
        HostileInput::UnprotectedClaims,
        HostileInput::NoKid,
        HostileInput::WrongSignature,
        HostileInput::UnknownAlgorithm,
        HostileInput::NoPayload,
    ];
    for probe in PROBES {
        let Probe::Hostile(input) = probe else { continue };
        let parsed = SignedStatement::parse(samples().hostile(*input).unwrap());
        assert_eq!(parsed.is_ok(), well_formed.contains(input), "{input:?}");
    }
    let unknown = samples().hostile(HostileInput::UnknownAlgorithm).unwrap();
    let unknown = SignedStatement::parse(unknown).unwrap();
    assert_eq!((unknown.header().alg(), unknown.header().algorithm()), (Some(-999), None));
}

#[test]
fn a_hostile_input_that_breaks_a_rule_of_headers_has_a_valid_signature() {
    let unsigned =
        [HostileInput::DuplicateLabel, HostileInput::UnprotectedCritical, HostileInput::BothHeaders];
    for input in SIGNED.into_iter().chain(unsigned) {
        let [protected, payload, signature] = strings_of(&samples().hostile(input).unwrap());
        let mut signed = ItemWriter::new();
        signed.array(4).text("Signature1").bytes(&protected).bytes(&[]).bytes(&payload);
        let verified =
            testkit::es256().public_key().verify(Algorithm::Es256, &signed.into_bytes(), &signature);
        assert_eq!(verified, Ok(()), "{input:?}");
    }
}

/// The protected header, the payload and the signature of a COSE_Sign1.
fn strings_of(message: &[u8]) -> [Vec<u8>; 3] {
    let mut reader = ItemReader::new(message, Limits { depth: 16, items: 1000 });
    let _tag_and_array = (reader.head().unwrap(), reader.head().unwrap());
    let string = |reader: &mut ItemReader<'_>| reader.item().unwrap().value.as_bytes().unwrap().to_vec();
    let protected = string(&mut reader);
    reader.skip().unwrap();
    [protected, string(&mut reader), string(&mut reader)]
}

#[test]
fn a_signed_hostile_input_that_is_accepted_is_found_and_does_not_apply_without_the_key() {
    let base = BASE.parse().unwrap();
    let musts =
        ["hostile-unprotected", "hostile-no-kid", "hostile-unknown-critical", "hostile-protected-duplicate"];
    let names = [&musts[..], &["hostile-hash-envelope"]].concat();
    let (mut sent, unsent) = (observations(), observations());
    for input in SIGNED {
        let probe = Probe::Hostile(input);
        assert!(next_request(probe, &base, &samples(), &sent).is_some());
        assert_eq!(next_request(probe, &base, &unsigned_samples(), &unsent), None);
        sent.record(probe, response(201, &[], b""));
    }
    let (sent, unsent) = (report_of(&names, &sent), report_of(&names, &unsent));
    assert_eq!((sent.summary.failed, sent.summary.warning, sent.conforms), (4, 1, false));
    assert!(musts.iter().all(|name| conclusion(&sent, name) == CheckConclusion::Failed));
    assert_eq!((unsent.summary.not_applicable, unsent.conforms), (5, true));
    assert!(unsent.checks[0].finding.contains("the issuer's key"), "{unsent:#?}");
}

#[test]
fn an_unknown_entry_has_an_id_of_the_same_form() {
    for (id, unknown) in [
        ("0b0e7a44-9b2f-4c1e-8a53-3d0f6a1c22e7", "0b0e7a44-9b2f-4c1e-8a53-3d0f6a1c22a7"),
        ("0b0e7a44-9b2f-4c1e-8a53-3d0f6a1c2221", "0b0e7a44-9b2f-4c1e-8a53-3d0f6a1c2231"),
        ("7vnRE_-A", "7vnRA_-A"),
        ("2.17", "2.1700000000"),
    ] {
        let location = format!("https://ts.example/entries/{id}");
        let mut observations = observations();
        let headers = [("location", &*location.leak())];
        observations.record(Probe::Registration, response(202, &headers, b""));
        let request =
            next_request(Probe::UnknownEntry, &BASE.parse().unwrap(), &samples(), &observations).unwrap();
        assert_eq!(request.url.path(), format!("/entries/{unknown}"));
    }
}

#[test]
fn the_single_key_that_is_requested_is_that_of_the_receipt() {
    let base = BASE.parse().unwrap();
    let mut observations = observations();
    observations.record(Probe::Keys, response(200, &[], &key_set(&[b"retired", b"receipts:2026"])));
    let path = |probe: Probe, observations: &Observations| {
        next_request(probe, &base, &samples(), observations).unwrap().url.path().to_owned()
    };
    let keys = "/.well-known/scitt-keys";
    assert_eq!(path(Probe::KeyByRawKid, &observations), format!("{keys}/retired"));
    observations.record(Probe::Receipt, response(200, &[], &receipt(-7, b"receipts:2026")));
    assert_eq!(path(Probe::KeyByRawKid, &observations), format!("{keys}/receipts:2026"));
    assert_eq!(path(Probe::KeyByKid, &observations), format!("{keys}/cmVjZWlwdHM6MjAyNg"));
}

#[test]
fn a_run_of_one_check_of_a_single_key_gets_the_receipt_first() {
    let (base, location) = (BASE.parse().unwrap(), [("location", "https://ts.example/entries/abc")]);
    let only: Vec<_> = checks().filter(|check| check.name == "key-status").collect();
    let (mut observations, mut sent) = (observations(), Vec::new());
    while let Some((probe, request)) = next_probe(&only, &base, &samples(), &observations) {
        let answer = match probe {
            Probe::Keys => response(200, &[], &key_set(&[b"retired", b"current"])),
            Probe::Receipt => response(200, &[], &receipt(-7, b"current")),
            _ => response(202, &location, b""),
        };
        observations.record(probe, answer);
        sent.push((probe, request.url.path().to_owned()));
    }
    let probes: Vec<_> = sent.iter().map(|(probe, _)| *probe).collect();
    assert_eq!(probes, [Probe::Keys, Probe::Registration, Probe::Receipt, Probe::KeyByKid]);
    assert_eq!(sent[3].1, "/.well-known/scitt-keys/Y3VycmVudA");
}

/// A key set in which one key has these names.
fn key_set(kids: &[&[u8]]) -> Vec<u8> {
    let key = |kid: &&[u8]| CoseKey {
        kid: Some(kid.to_vec()),
        ..CoseKey::bare(testkit::es256().public_key().clone())
    };
    KeySet::new(kids.iter().map(key).collect()).encode()
}

/// A receipt in a tree of one leaf, with a signature that does not verify.
fn receipt(alg: i64, kid: &[u8]) -> Vec<u8> {
    let (mut protected, mut proof) = (ItemWriter::new(), ItemWriter::new());
    protected.map(4).int(1).int(alg).int(4).bytes(kid);
    protected.int(15).map(2).int(1).text("https://ts.example").int(2).text("thing").int(395).int(1);
    proof.array(3).unsigned(1).unsigned(0).array(0);
    let mut receipt = ItemWriter::new();
    receipt.tag(18).array(4).bytes(&protected.into_bytes()).map(1).int(396).map(1).int(-1);
    receipt.array(1).bytes(&proof.into_bytes()).null().bytes(&[0; 114]);
    receipt.into_bytes()
}

#[test]
fn keys_and_receipts_of_a_type_that_the_suite_does_not_know_are_unsupported() {
    let mut ed448 = ItemWriter::new();
    ed448.array(1).map(4).int(1).int(1).int(2).bytes(b"k").int(-1).int(7).int(-2).bytes(&[1; 57]);
    let mut observations = observations();
    let keys = ed448.into_bytes();
    observations.record(Probe::Keys, response(200, &[], &keys));
    observations.record(Probe::KeyByKid, response(200, &[("content-type", "application/cbor")], &keys[1..]));
    observations.record(Probe::Registration, response(201, &[], &receipt(-8, b"k")));
    observations.record(Probe::Receipt, response(200, &[], &receipt(-53, b"k")));
    let unsupported =
        ["keys-set", "keys-thumbprint", "key-body", "receipt-verifies", "receipt-on-registration"];
    let passed = ["keys-status", "keys-public", "keys-kid", "key-status", "key-content-type", "receipt-kid"];
    let report = report_of(&[&unsupported[..], &passed[..]].concat(), &observations);
    let with = |conclusion| report.checks.iter().filter(move |check| check.conclusion == conclusion);
    assert_eq!(with(CheckConclusion::Unsupported).map(|check| check.name).collect::<Vec<_>>(), unsupported);
    assert_eq!(with(CheckConclusion::Passed).map(|check| check.name).collect::<Vec<_>>(), passed);
    assert!(report.conforms);
}

#[test]
fn a_run_in_which_no_receipt_was_verified_does_not_show_that_the_service_conforms() {
    let elsewhere = [("location", "https://public.example/receipts/abc")];
    let mut observations = observations();
    observations.record(Probe::Keys, response(200, &[], &key_set(&[b"k"])));
    observations.record(Probe::Registration, response(202, &elsewhere, b""));
    let report = report_of(&["register-status", "resolve-status", "receipt-verifies"], &observations);
    assert_eq!(conclusion(&report, "resolve-status"), CheckConclusion::Unsupported);
    assert_eq!((report.summary.failed, report.conforms), (0, false));
    assert_eq!(report.undecided, Some("no receipt was verified"));
    assert!(report.to_html().contains("No MUST is violated, but no receipt was verified."));
    assert!(report_of(&["register-status"], &observations).conforms, "this check does not need a receipt");
}

#[test]
fn a_run_whose_time_was_over_does_not_show_that_the_service_conforms() {
    let mut observations = observations();
    observations.record(Probe::Keys, response(200, &[], &key_set(&[b"k"])));
    observations.end_early();
    let report = report_of(&["keys-status", "hostile-no-kid"], &observations);
    assert_eq!((report.summary.passed, report.summary.failed, report.conforms), (1, 0, false));
    assert!(report.undecided.unwrap().contains("time of the run"));
    assert!(report.checks[1].finding.contains("time of the run"), "{report:#?}");
}

#[test]
fn a_refusal_of_the_keys_or_of_the_receipt_is_a_violation() {
    let mut observations = observations();
    observations.record(Probe::Keys, response(403, &[], b""));
    observations.record(Probe::Receipt, response(403, &[], b""));
    let location = [("location", "https://ts.example/entries/abc")];
    observations.record(Probe::Registration, response(202, &location, b""));
    let report = report_of(&["keys-status", "resolve-status"], &observations);
    assert_eq!((report.summary.failed, report.conforms, report.undecided), (2, false, None));
}

#[test]
fn a_service_that_takes_any_type_is_warned_about() {
    let mut observations = observations();
    observations.record(Probe::WrongType, response(201, &[], b""));
    let report = report_of(&["type-wrong"], &observations);
    assert_eq!((conclusion(&report, "type-wrong"), report.conforms), (CheckConclusion::Warning, true));
}

#[test]
fn requests_stay_on_the_tested_service() {
    let base = BASE.parse().unwrap();
    let elsewhere = [("location", "http://169.254.169.254/entries/abc")];
    let mut observations = Observations::new(samples().statement().clone(), NOW);
    observations.record(Probe::Registration, response(202, &elsewhere, b""));
    for probe in PROBES {
        if let Some(request) = next_request(*probe, &base, &samples(), &observations) {
            assert_eq!(request.url.origin(), base.origin(), "{probe:?}");
        }
    }
    let receipt = next_request(Probe::Receipt, &base, &samples(), &observations).unwrap();
    assert_eq!(receipt.url.as_str(), "https://ts.example/entries/abc");
    observations
        .record(Probe::Registration, response(202, &[("location", "http://a.example/metadata")], b""));
    assert_eq!(next_request(Probe::Receipt, &base, &samples(), &observations), None);
}

#[test]
fn a_service_that_was_not_reached_fails_no_check_that_needs_an_answer_and_has_no_passed_one() {
    let report = report_on(&ProbeOutcome::Unanswered("connection refused".into()));
    assert_eq!((report.summary.passed, report.conforms), (0, false));
    let nothing = Observations::new(samples().statement().clone(), NOW);
    let report = ConformanceReport::of(&all(), &nothing, BASE, "now");
    assert_eq!((report.summary.passed, report.summary.failed), (0, 0));
}

#[test]
fn a_service_that_refuses_our_credentials_does_not_conform_and_passes_no_hostile_check() {
    let report = report_on(&response(401, &[], b""));
    assert!(!report.conforms);
    assert_eq!(conclusion(&report, "register-status"), CheckConclusion::Failed);
    assert_eq!(conclusion(&report, "hostile-signature"), CheckConclusion::NotApplicable);
}

#[test]
fn answers_of_any_kind_lead_to_a_report() {
    let mut random = pseudo_random_bytes(7);
    for status in [200, 201, 202, 204, 303, 400, 404, 429, 500] {
        for _ in 0..50 {
            let body: Vec<u8> = (0..200).map(|_| random()).collect();
            let headers =
                [("location", "https://ts.example/entries/1"), ("content-type", "application/cose")];
            let report = report_on(&response(status, &headers, &body));
            assert!(!report.conforms, "{report:#?}");
        }
    }
}

/// A small generator of pseudo-random bytes (xorshift), the same in every run.
fn pseudo_random_bytes(mut state: u64) -> impl FnMut() -> u8 {
    move || {
        state ^= state << 13;
        state ^= state >> 7;
        state ^= state << 17;
        state as u8
    }
}

#[test]
fn text_of_the_service_is_escaped_in_the_page_and_shortened() {
    let hostile = "https://ts.example/<script>alert(1)</script>";
    let long: &'static str = Box::leak(format!("text/<b>{}", "x".repeat(5_000)).into_boxed_str());
    let mut observations = Observations::new(samples().statement().clone(), NOW);
    observations.record(Probe::Keys, response(200, &[("content-type", long)], b""));
    let report = ConformanceReport::of(&all(), &observations, hostile, "now");
    let page = report.to_html();
    assert!(!page.contains("<script") && !page.contains("<b>") && page.contains("&lt;b&gt;"), "{page}");
    assert!(report.checks.iter().all(|check| check.finding.len() < 500));
    let json = serde_json::to_value(&report).unwrap();
    assert_eq!(json["checks"][1]["conclusion"], "failed");
    assert_eq!(json["checks"][1]["level"], "MUST");
}
