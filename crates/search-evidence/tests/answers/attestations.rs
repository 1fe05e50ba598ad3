//! Monitors that computed the index.

use search_evidence::{AnswerOutcome, AnswerReader, AnswerVerdict, SearchAnswer};
use testkit::{NOW, ORIGIN};
use tlog::note::{LocalKey, NoteSigner};
use verifier::index::IndexAttestation;
use verifier::{CheckName, Code, IndexMonitors, TrustStore};

use super::log::{ERASED, TestLog, question, trust, verify};

fn monitor(number: u8) -> LocalKey {
    let secret = ed25519_dalek::SigningKey::from_bytes(&[0x60 + number; 32]);
    LocalKey::new(format!("m{number}.example").parse().unwrap(), secret).unwrap()
}

fn attestation(log: &TestLog, origin: &str, monitor: &LocalKey) -> String {
    IndexAttestation::of(origin.parse().unwrap(), &log.head()).sign(monitor).unwrap().to_string()
}

/// A reader who requires two of three monitors.
fn two_of_three() -> TrustStore {
    let mut trust = trust();
    let keys = (1..=3).map(|number| monitor(number).key().to_string()).collect();
    trust.logs[0].index_monitors = IndexMonitors { keys, required: 2 };
    TrustStore::from_toml(&trust.to_toml()).unwrap()
}

fn answer(log: &TestLog, attestations: Vec<String>) -> SearchAnswer {
    SearchAnswer { attestations, ..log.answer(question("a", Some(ERASED)), &[1]) }
}

fn reason(verdict: &AnswerVerdict) -> (AnswerOutcome, Option<Code>) {
    (verdict.outcome, verdict.reason)
}

#[test]
fn without_monitors_the_index_is_the_claim_of_the_log() {
    let log = TestLog::honest();
    let verdict = verify(&answer(&log, vec![]), &trust());
    let check = verdict.checks.iter().find(|check| check.name == CheckName::Recomputation).unwrap();
    assert_eq!(check.code, Some(Code::NoMonitor));
    assert_eq!(check.detail, "the log's claim: no party that you trust has recomputed it");
    assert_eq!(reason(&verdict), (AnswerOutcome::Complete, None));
}

#[test]
fn as_many_monitors_as_required_must_attest_the_head() {
    let log = TestLog::honest();
    let other = TestLog::with_index(|postings| postings.truncate(3));
    let [one, two, stranger] = [monitor(1), monitor(2), monitor(9)];
    let of = |monitor: &LocalKey| attestation(&log, ORIGIN, monitor);
    let verdict = |notes: Vec<String>| reason(&verify(&answer(&log, notes), &two_of_three()));

    assert_eq!(verdict(vec![of(&one), of(&two)]), (AnswerOutcome::Complete, None));
    let too_few = (AnswerOutcome::NotProven, Some(Code::NotAttested));
    assert_eq!(verdict(vec![]), too_few);
    assert_eq!(verdict(vec![of(&one), of(&one)]), too_few);
    assert_eq!(verdict(vec![of(&one), of(&stranger)]), too_few);
    assert_eq!(verdict(vec![of(&one), attestation(&log, "other.example", &two)]), too_few);
    assert_eq!(verdict(vec![of(&one), attestation(&other, ORIGIN, &two)]), too_few);

    let forged = of(&one).replace("m1.example", "m2.example");
    let renamed = format!("{}{}", &of(&two)[..of(&two).rfind(' ').unwrap() + 1], last_word(&forged));
    assert_eq!(verdict(vec![of(&one), renamed]), too_few, "a key is its name and its id");
    let changed = of(&two).replace("\n7\n", "\n8\n");
    assert_eq!(verdict(vec![of(&one), changed]), (AnswerOutcome::Wrong, Some(Code::AttestationInvalid)));
    let no_note = "tabellion-index/v1\n".to_owned();
    assert_eq!(verdict(vec![no_note]), (AnswerOutcome::Wrong, Some(Code::MalformedAttestation)));
}

fn last_word(note: &str) -> &str {
    &note[note.rfind(' ').unwrap() + 1..]
}

#[test]
fn attestations_and_monitors_may_come_with_the_file() {
    let log = TestLog::honest();
    let (trust, one) = (trust(), monitor(1));
    let monitors = IndexMonitors { keys: vec![one.key().to_string()], required: 1 };
    let attestations = [attestation(&log, ORIGIN, &one)];
    let reader = AnswerReader {
        trust: &trust,
        witnesses: None,
        monitors: Some(&monitors),
        attestations: &attestations,
        now: NOW,
    };
    let answer = answer(&log, vec![]);
    assert_eq!(reason(&answer.verify(&reader)), (AnswerOutcome::Complete, None));
    let without = AnswerReader { attestations: &[], ..reader };
    assert_eq!(reason(&answer.verify(&without)), (AnswerOutcome::NotProven, Some(Code::NotAttested)));
}

#[test]
fn each_log_with_the_origin_that_requires_monitors_must_have_its_own() {
    let log = TestLog::honest();
    let mut trust = two_of_three();
    trust.logs.insert(0, trust_of_the_log());
    let too_few = (AnswerOutcome::NotProven, Some(Code::NotAttested));
    assert_eq!(reason(&verify(&answer(&log, vec![]), &trust)), too_few, "the first one requires none");
    trust.logs[0].index_monitors = IndexMonitors::all(&[monitor(1).key().clone()]);
    let notes = |numbers: &[u8]| numbers.iter().map(|n| attestation(&log, ORIGIN, &monitor(*n))).collect();
    assert_eq!(reason(&verify(&answer(&log, notes(&[1])), &trust)), too_few);
    assert_eq!(reason(&verify(&answer(&log, notes(&[2, 3])), &trust)), too_few);
    assert_eq!(reason(&verify(&answer(&log, notes(&[1, 2])), &trust)), (AnswerOutcome::Complete, None));
}

fn trust_of_the_log() -> verifier::TrustedLog {
    trust().logs.remove(0)
}

#[test]
fn one_key_under_two_names_is_one_monitor() {
    let log = TestLog::honest();
    let secret = ed25519_dalek::SigningKey::from_bytes(&[0x61; 32]);
    let (one, renamed) = (monitor(1), LocalKey::new("m9.example".parse().unwrap(), secret).unwrap());
    let keys = [one.key().clone(), renamed.key().clone()];
    let notes = vec![attestation(&log, ORIGIN, &one), attestation(&log, ORIGIN, &renamed)];
    let mut trust = trust();
    let texts = keys.iter().map(ToString::to_string).collect();
    trust.logs[0].index_monitors = IndexMonitors { keys: texts, required: 2 };
    let too_few = (AnswerOutcome::NotProven, Some(Code::NotAttested));
    assert_eq!(reason(&verify(&answer(&log, notes.clone()), &trust)), too_few);
    let refused = TrustStore::from_toml(&trust.to_toml()).unwrap_err().to_string();
    assert!(refused.contains("index_monitors.keys[1]: the public key is listed already"), "{refused}");
    // Required twice, it is required once.
    trust.logs[0].index_monitors = IndexMonitors::all(&[keys[0].clone(), keys[0].clone(), keys[1].clone()]);
    assert_eq!(reason(&verify(&answer(&log, notes), &trust)), (AnswerOutcome::Complete, None));
}
