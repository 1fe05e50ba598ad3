//! A log whose search index is computed again from outside: it is honest, or lies in one of the ways that a head can.
#![allow(clippy::unwrap_used)]

#[path = "common/indexed.rs"]
mod indexed;
#[path = "common/site.rs"]
mod site;

use indexed::IndexedSite;
use lookup_tree::{BlindCode, IndexHead, Posting, TermKey};
use merkle::{Hash, LeafIndex, RootHash};
use monitor::clock::now;
use monitor::config::{AttestationKey, IndexWatch};
use monitor::verdict::{Verdict, judge};
use monitor::{
    Alarm, AlarmKind, CheckName, Config, Depth, Evidence, EvidenceFile, Monitor, Outcome, Round,
    RoundRecorder, Sink, WatchedLog,
};
use registration::LookupKind;
use registration::erasure::{NewErasure, sign};
use registration::policy::BoundKey;
use scitt::{Algorithm, Signer, SigningKey};
use serde_json::json;
use std::collections::BTreeSet;
use tlog::key::VerifierKey;
use tlog::note::{LocalKey, NoteSigner};
use verifier::index::{IndexAccusation, IndexAccusationFile, IndexAttestation};

struct Nowhere;

#[async_trait::async_trait]
impl Sink for Nowhere {
    async fn round(&self, _: &Round) {}
}

/// Watches the log through the proxy, with an attestation key.
fn target(log: &IndexedSite, url: &str) -> WatchedLog {
    let file = log.place.path("attestation.pem");
    if !file.exists() {
        std::fs::write(&file, SigningKey::generate(Algorithm::EdDsa).unwrap().to_pkcs8_pem().unwrap())
            .unwrap();
    }
    let attestation = AttestationKey { name: "monitor.example".parse().unwrap(), file };
    WatchedLog {
        depth: Depth::Decisions,
        trust: Some(log.place.path("trust.toml")),
        index: Some(IndexWatch { attestation: Some(attestation) }),
        ..WatchedLog::new("ours", url.parse().unwrap(), log.place.checkpoint_key())
    }
}

/// One round of a new process, which saves what it finds.
async fn once(log: &IndexedSite, url: &str) -> Round {
    let config = Config::new(log.place.path("monitor"), vec![target(log, url)]);
    let recorder = RoundRecorder::open(&config, Box::new(|_| ())).unwrap();
    Monitor::begin(&config).unwrap().once(&recorder).await.pop().unwrap()
}

/// The saved files with an accusation alone.
fn saved_accusations(log: &IndexedSite) -> Vec<Vec<u8>> {
    let files =
        std::fs::read_dir(log.place.path("monitor/evidence")).unwrap().map(|file| file.unwrap().path());
    let files = files.filter(|file| file.extension().is_some_and(|extension| extension == "cbor"));
    files.map(|file| std::fs::read(file).unwrap()).collect()
}

fn attestor(log: &IndexedSite) -> VerifierKey {
    let pem = std::fs::read_to_string(log.place.path("attestation.pem")).unwrap();
    LocalKey::from_pkcs8_pem("monitor.example".parse().unwrap(), &pem).unwrap().key().clone()
}

/// The newest attestation, if its signature verifies.
fn attested(log: &IndexedSite) -> Option<IndexAttestation> {
    let note = std::fs::read(log.place.path("monitor/ours/attestation")).ok()?;
    let (attestation, note) = IndexAttestation::read(&note).unwrap();
    note.verify(&[attestor(log)]).unwrap();
    Some(attestation)
}

/// Registers statements of one issuer about different subjects.
async fn register(log: &IndexedSite, from: u64, to: u64) {
    for n in from..to {
        let statement = testkit::opaque(&format!("subject-{n}"), &json!({ "n": n }));
        log.site.register(&statement).await;
    }
}

fn key(kind: LookupKind, value: &str) -> TermKey {
    TermKey::of(kind.number(), value.as_bytes())
}

/// The only alarm of a round, which is about the index.
fn only_alarm(round: &Round) -> &Alarm {
    let [alarm] = &round.alarms[..] else { panic!("{:#?} {:#?}", round.checks, round.alarms) };
    assert_eq!(round.outcome(CheckName::Index), Some(Outcome::Failed));
    assert_eq!(round.exit().code(), 8);
    alarm
}

/// Checks that the evidence file of an alarm convinces a stranger who has the log's receipt key, and nobody without it.
fn convinces(log: &IndexedSite, alarm: &Alarm) -> IndexAccusation {
    let file = serde_json::to_vec(&EvidenceFile::of(alarm).unwrap()).unwrap();
    let alarm = EvidenceFile::parse(&file).unwrap().alarm;
    assert_eq!(judge(&alarm, &[], None).verdict, Verdict::Unknown);
    let judged = judge(&alarm, &[], Some(&log.place.trust()));
    assert_eq!(judged.verdict, Verdict::Contradiction, "{judged:#?}");
    let Some(Evidence::Index { file }) = &alarm.evidence else { panic!("{alarm:#?}") };
    let bytes = data_encoding::BASE64.decode(file.as_bytes()).unwrap();
    assert!(saved_accusations(log).contains(&bytes));
    let file = IndexAccusationFile::decode(&bytes).unwrap();
    assert_eq!(search_evidence::check_accusation(&file, &log.place.trust(), now()), Ok(()));
    let accusation = file.accusation;
    assert_eq!(accusation.kind(), alarm.kind.name());
    accusation
}

#[tokio::test]
async fn an_honest_log_is_never_accused_and_each_head_is_attested() {
    let log = IndexedSite::start().await;
    let url = log.serve().await;
    register(&log, 0, 30).await;
    assert_eq!(once(&log, &url).await.outcome(CheckName::Index), Some(Outcome::NotChecked), "no head yet");
    for n in 1..4 {
        let head = log.commit(log.postings().await).await;
        let round = once(&log, &url).await;
        assert_eq!(round.alarms, [], "{:#?}", round.checks);
        assert_eq!(round.outcome(CheckName::Index), Some(Outcome::Ok));
        let heads = round.index.unwrap();
        assert_eq!((heads.right, heads.wrong, heads.uncompared, heads.newest), (n, 0, 0, head.size.get()));
        let attested = attested(&log).unwrap();
        assert_eq!((attested.size, attested.head), (head.size, head.digest()));
        register(&log, n * 100, n * 100 + 20).await;
    }
}

#[tokio::test]
async fn an_honest_log_with_several_runs_and_entries_that_cannot_be_read_is_not_accused() {
    let log = IndexedSite::start().await;
    let url = log.serve().await;
    log.register_unreadable().await;
    let statement = |n: u64| testkit::opaque(&format!("subject-{n}"), &json!({ "n": n }));
    log.register_many(&(0..4_150).map(statement).collect::<Vec<_>>()).await;
    let head = log.commit(log.postings().await).await;
    assert_eq!((head.runs.len(), head.runs[0].summary.blind), (2, 1));
    let round = once(&log, &url).await;
    assert_eq!(round.alarms, [], "{:#?}", round.checks);
    assert_eq!(attested(&log).unwrap().head, head.digest());
    let mut lie = log.head(&log.postings().await).await;
    lie.runs[0].summary.root = Hash::from_bytes([1; 32]);
    *log.proven.lock().unwrap() = None;
    log.register(&lie).await;
    let round = once(&log, &url).await;
    assert_eq!(only_alarm(&round).which, "run (0, 0)");
}

/// Erases entries, and waits until the log does not serve them.
async fn erase(log: &IndexedSite, sequence: u64, leaves: &[usize]) {
    let entries = log.entries().await;
    let erasure = NewErasure {
        sequence,
        entries: leaves.iter().map(|leaf| entries[*leaf].digest).collect(),
        reason: "asked for".into(),
        rule: "request".into(),
        at: None,
        authorized_by: None,
    };
    let operator = testkit::operator();
    let bound =
        BoundKey { kid: operator.public_key().thumbprint().to_vec(), key: operator.public_key().clone() };
    let statement = sign(&erasure, (testkit::LOG_ISS, testkit::ORIGIN), &[bound], &operator).unwrap();
    log.site.register(&statement).await;
    while log
        .entries()
        .await
        .iter()
        .enumerate()
        .any(|(leaf, entry)| leaves.contains(&leaf) && entry.statement.is_some())
    {
        tokio::time::sleep(std::time::Duration::from_millis(20)).await;
    }
}

#[tokio::test]
async fn an_honest_log_that_erases_entries_is_not_accused_by_those_who_saw_them_nor_by_those_who_come_later()
{
    let log = IndexedSite::start().await;
    let url = log.serve().await;
    register(&log, 0, 20).await;
    log.commit(log.postings().await).await;
    assert_eq!(once(&log, &url).await.alarms, []);
    erase(&log, 0, &[3, 7]).await;
    let head = log.commit(log.postings().await).await;
    for state in ["monitor", "newcomer"] {
        let mut config = Config::new(log.place.path(state), vec![target(&log, &url)]);
        config.logs[0].lag = std::time::Duration::from_secs(60);
        let round = Monitor::begin(&config).unwrap().once(&Nowhere).await.pop().unwrap();
        assert_eq!(round.alarms, [], "{state}: {:#?}", round.checks);
        let heads = round.index.unwrap();
        assert_eq!((heads.wrong, heads.newest), (0, head.size.get()), "{state}");
        assert_eq!(heads.uncompared, u64::from(state == "newcomer"), "the first head had the erased entries");
    }
    let postings = std::fs::read(log.place.path("monitor/ours/index/0000000000000000.postings")).unwrap();
    let forgotten = key(LookupKind::Subject, "subject-2");
    assert!(postings.windows(16).all(|bytes| bytes != forgotten.as_bytes()), "leaf 3 is erased");
}

#[tokio::test]
async fn a_posting_that_the_index_omits_is_shown_by_the_statement_and_the_log_s_own_proof() {
    let log = IndexedSite::start().await;
    let url = log.serve().await;
    register(&log, 0, 40).await;
    let (subject, leaf) = (key(LookupKind::Subject, "subject-16"), LeafIndex::new(17));
    let postings: Vec<Posting> = log.postings().await;
    let without = postings.iter().copied().filter(|posting| (posting.key, posting.leaf) != (subject, leaf));
    log.commit(without.collect()).await;
    let round = once(&log, &url).await;
    let alarm = only_alarm(&round);
    assert_eq!((alarm.kind, alarm.which.as_str()), (AlarmKind::IndexOmits, "run tail"), "{}", alarm.words);
    let IndexAccusation::Omits(evidence) = convinces(&log, alarm) else { panic!("{alarm:?}") };
    assert_eq!((evidence.leaf, evidence.term.value), (leaf, b"subject-16".to_vec()));
    assert_eq!(attested(&log), None);
}

#[tokio::test]
async fn a_posting_that_the_index_adds_is_shown_by_the_statement_and_the_log_s_own_proof() {
    let log = IndexedSite::start().await;
    let url = log.serve().await;
    register(&log, 0, 40).await;
    let added = Posting { key: key(LookupKind::Subject, "subject-16"), leaf: LeafIndex::new(5) };
    let mut postings: BTreeSet<Posting> = log.postings().await.into_iter().collect();
    assert!(postings.insert(added));
    log.commit(postings.into_iter().collect()).await;
    let round = once(&log, &url).await;
    let alarm = only_alarm(&round);
    assert_eq!(alarm.kind, AlarmKind::IndexAdds, "{}", alarm.words);
    let IndexAccusation::Adds(evidence) = convinces(&log, alarm) else { panic!("{alarm:?}") };
    assert_eq!((evidence.leaf, evidence.term.value), (added.leaf, b"subject-16".to_vec()));
}

#[tokio::test]
async fn a_head_that_breaks_a_rule_of_its_form_is_shown_by_the_heads() {
    let log = IndexedSite::start().await;
    let url = log.serve().await;
    register(&log, 0, 20).await;
    let sound = log.head(&log.postings().await).await;
    log.register(&sound).await;
    let later = log.head(&log.postings().await).await;
    let lies: [(&str, IndexHead); 3] = [
        ("log-root", IndexHead { log_root: RootHash::from_bytes([1; 32]), ..later.clone() }),
        ("horizon", IndexHead { horizon: LeafIndex::new(2), ..later }),
        ("two-heads", IndexHead { log_root: RootHash::from_bytes([2; 32]), ..sound }),
    ];
    for (rule, lie) in lies {
        log.register(&lie).await;
        let round = once(&log, &url).await;
        let alarm = round.alarms.iter().find(|alarm| alarm.which == rule).unwrap_or_else(|| {
            panic!("{rule}: {:#?} {:#?}", round.checks, round.alarms);
        });
        assert_eq!(alarm.kind, AlarmKind::IndexForm, "{}", alarm.words);
        convinces(&log, alarm);
    }
}

#[tokio::test]
async fn without_a_proof_of_the_log_the_accusation_says_what_to_compute_again() {
    let log = IndexedSite::start().await;
    let url = log.serve().await;
    register(&log, 0, 20).await;
    let mut head = log.head(&log.postings().await).await;
    let right = head.runs[0].summary;
    head.runs[0].summary.root = Hash::from_bytes([1; 32]);
    log.register(&head).await;
    let round = once(&log, &url).await;
    let alarm = only_alarm(&round);
    assert_eq!((alarm.kind, alarm.which.as_str()), (AlarmKind::IndexDiffers, "run tail"), "{}", alarm.words);
    let Some(Evidence::IndexHead { runs, .. }) = &alarm.evidence else { panic!("{alarm:?}") };
    assert_eq!((runs[0].from, runs[0].to, &runs[0].root), (0, head.size.get(), &right.root.to_string()));
    let judged = judge(alarm, &[], Some(&log.place.trust()));
    assert_eq!(judged.verdict, Verdict::OnWord, "{judged:#?}");
}

#[tokio::test]
async fn an_entry_that_the_index_falsely_lists_as_erased_is_found() {
    let log = IndexedSite::start().await;
    let url = log.serve().await;
    register(&log, 0, 20).await;
    let hidden = LeafIndex::new(9);
    let mut postings = log.postings().await;
    postings.retain(|posting| posting.leaf != hidden);
    postings.push(Posting::blind(BlindCode::Erased, hidden));
    postings.sort();
    log.commit(postings).await;
    let round = once(&log, &url).await;
    let alarm = only_alarm(&round);
    assert_eq!(alarm.kind, AlarmKind::IndexDiffers, "no form of accusation shows this alone");
    assert!(alarm.words.ends_with("the index lists leaf 9 as blind"), "{}", alarm.words);
}

#[tokio::test]
async fn an_index_from_entries_that_are_not_those_of_the_signed_tree_is_not_kept_and_accuses_nobody() {
    let wrong_hash = |mut tile: Vec<u8>| {
        tile[0] ^= 1;
        tile
    };
    let log = IndexedSite::start().await;
    let url = log.serve().await;
    register(&log, 0, 20).await;
    let head = log.commit(log.postings().await).await;
    let damage: indexed::Damage = ("/tile/0/000", wrong_hash);
    *log.damage.lock().unwrap() = Some(damage);
    let round = once(&log, &url).await;
    assert_eq!(round.exit().code(), 8, "{:#?}", round.checks);
    let kinds: Vec<_> = round.alarms.iter().map(|alarm| alarm.kind).collect();
    let expected = [AlarmKind::Decision, AlarmKind::Inconsistent];
    assert!(kinds.iter().all(|kind| expected.contains(kind)), "{kinds:?}");
    assert_eq!(attested(&log), None);
    *log.damage.lock().unwrap() = None;
    let round = once(&log, &url).await;
    assert_eq!(round.alarms, [], "{:#?}", round.checks);
    assert_eq!(attested(&log).unwrap().head, head.digest());
}
