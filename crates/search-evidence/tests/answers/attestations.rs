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
