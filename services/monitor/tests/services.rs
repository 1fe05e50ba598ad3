//! SCITT services that are watched by their receipts, over real HTTP: honest ones, and ones that contradict themselves.
#![allow(clippy::unwrap_used)]

use std::collections::HashMap;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use async_trait::async_trait;
use axum::Router;
use axum::extract::{Path as Wanted, State};
use axum::http::StatusCode;
use axum::routing::get;
use merkle::{CompactRange, EntryDigest, LeafHash, LeafIndex, TreeSize};
use monitor::clock::now;
use monitor::verdict::{Verdict, VerificationResult, judge};
use monitor::{Alarm, AlarmKind, CheckName, Config, Evidence, Monitor, MonitorExit, Outcome, Round, Sink};
use scitt::{Algorithm, CoseKey, ReceiptHeader, Signer, SigningKey};
use tempfile::TempDir;
use verifier::{TrustStore, TrustedLog};

const ISS: &str = "https://their-log.example";

/// What the service answers for each entry.
type Answers = Arc<Mutex<HashMap<String, (StatusCode, Vec<u8>)>>>;

/// A service that says whatever it is told to, and somebody who watches it.
struct Service {
    key: SigningKey,
    answers: Answers,
    folder: TempDir,
    url: String,
}

impl Service {
    async fn start() -> Self {
        let answers = Answers::default();
        let app = Router::new().route("/entries/{id}", get(entry)).with_state(answers.clone());
        let listener = tokio::net::TcpListener::bind("127.0.0.1:0").await.unwrap();
        let url = format!("http://{}/", listener.local_addr().unwrap());
        tokio::spawn(async move { axum::serve(listener, app).await });
        let this = Self { key: key(), answers, folder: tempfile::tempdir().unwrap(), url };
        this.trust(&this.key);
        this
    }

    /// Writes the `trust.toml` of who watches.
    fn trust(&self, key: &SigningKey) {
        let key = CoseKey::bare(key.public_key().clone());
        let key = CoseKey { kid: Some(key.key.thumbprint().to_vec()), ..key };
        let trust =
            TrustStore { logs: vec![TrustedLog::new(ISS, "origin", vec![key])], ..TrustStore::default() };
        self.write("trust.toml", trust.to_toml());
    }

    fn write(&self, name: &str, text: impl AsRef<[u8]>) {
        std::fs::write(self.folder.path().join(name), text).unwrap();
    }

    /// Gives a receipt for each entry of this tree.
    fn shows(&self, tree: &[EntryDigest]) {
        for (place, entry) in tree.iter().enumerate() {
            self.answers(entry, StatusCode::OK, self.receipt(&self.key, tree, place));
        }
    }

    fn receipt(&self, key: &SigningKey, tree: &[EntryDigest], place: usize) -> Vec<u8> {
        let leaves: Vec<LeafHash> = tree.iter().map(EntryDigest::leaf_hash).collect();
        let growth = CompactRange::empty().grow(&leaves);
        let header = ReceiptHeader {
            alg: key.algorithm(),
            kid: key.public_key().thumbprint().to_vec(),
            iss: ISS.into(),
            sub: "origin".into(),
            iat: now(),
            tree_size: TreeSize::new(tree.len() as u64),
        };
        let index = LeafIndex::new(place as u64);
        header.sign_root(key, &growth.root()).unwrap().inclusion_receipt(index, &growth.path(index).unwrap())
    }

    fn answers(&self, entry: impl ToString, status: StatusCode, body: Vec<u8>) {
        self.answers.lock().unwrap().insert(entry.to_string(), (status, body));
    }

    fn answer_all(&self, status: StatusCode) {
        self.answers.lock().unwrap().values_mut().for_each(|answer| answer.0 = status);
    }

    fn watches(&self, entries: &[EntryDigest]) -> Config {
        let entries: Vec<String> = entries.iter().map(|entry| format!("\"{entry}\"")).collect();
        self.watches_as(&entries.join(", "))
    }

    fn watches_as(&self, entries: &str) -> Config {
        let text = format!(
            "state_dir = \"state\"\n[[service]]\nname = \"theirs\"\nurl = \"{}\"\ntrust = \"trust.toml\"\nentries = [{entries}]\n",
            self.url
        );
        let mut config = Config::from_toml(&text, self.folder.path()).unwrap();
        config.services[0].lag = Duration::ZERO;
        config
    }
}

async fn entry(State(answers): State<Answers>, Wanted(id): Wanted<String>) -> (StatusCode, Vec<u8>) {
    answers.lock().unwrap().get(&id).cloned().unwrap_or((StatusCode::NOT_FOUND, Vec::new()))
}

struct Nowhere;

#[async_trait]
impl Sink for Nowhere {
    async fn round(&self, _: &Round) {}
}

/// One round of a new process: what is remembered is in files.
async fn once(config: &Config) -> Round {
    Monitor::begin(config).unwrap().once(&Nowhere).await.pop().unwrap()
}

/// Two looks that leave something open and accuse nobody, then the third.
async fn after_two_looks(config: &Config, open: CheckName) -> Round {
    for _ in 0..2 {
        let round = once(config).await;
        assert_eq!((round.exit(), round.alarms.len()), (MonitorExit::Success, 0), "{round:#?}");
        assert_eq!(round.outcome(open), Some(Outcome::NotChecked), "{round:#?}");
    }
    once(config).await
}

/// What somebody makes of the evidence who has the service's keys. Without them it accuses nobody.
fn judged(alarm: &Alarm) -> VerificationResult {
    let Some(Evidence::Receipts { trust, .. }) = &alarm.evidence else { panic!("{alarm:?}") };
    let stranger = judge(alarm, &[], None);
    assert_ne!(stranger.verdict, Verdict::Contradiction, "{stranger:#?}");
    judge(alarm, &[], Some(&TrustStore::from_toml(trust).unwrap()))
}

/// The only alarm of a round, and what a third party makes of its evidence.
#[track_caller]
fn only_alarm(round: &Round) -> (AlarmKind, Verdict) {
    let [alarm] = &round.alarms[..] else { panic!("{:#?}", round.alarms) };
    let finding = judged(alarm);
    (alarm.kind, finding.verdict)
}

fn key() -> SigningKey {
    SigningKey::generate(Algorithm::Es256).unwrap()
}

/// Entries `0..size`, those from `fork` on of another history.
fn tree(size: usize, fork: usize) -> Vec<EntryDigest> {
    (0..size).map(|n| EntryDigest::of(format!("{n} {}", n >= fork).as_bytes())).collect()
}

const HONEST: usize = usize::MAX;

#[tokio::test]
async fn a_service_that_grows_is_no_alarm_across_restarts_of_its_monitor() {
    let service = Service::start().await;
    let watched = tree(3, HONEST);
    let config = service.watches(&watched);
    for size in [3, 3, 4, 9, 200, 200] {
        service.shows(&tree(size, HONEST));
        let round = once(&config).await;
        assert_eq!((round.exit(), round.verified), (MonitorExit::Success, Some(size as u64)), "{round:#?}");
        for name in [CheckName::Signature, CheckName::Growth, CheckName::Consistency, CheckName::Kept] {
            let check = round.checks.iter().find(|check| check.name == name).unwrap();
            assert_eq!(check.outcome, Outcome::Ok, "{size}: {check:?}");
        }
    }
}

#[tokio::test]
async fn a_receipt_that_is_never_renewed_is_no_alarm() {
    let service = Service::start().await;
    let watched = tree(3, HONEST);
    let config = service.watches(&watched);
    service.shows(&watched);
    once(&config).await;
    let larger = tree(8, HONEST);
    service.answers(watched[1], StatusCode::OK, service.receipt(&service.key, &larger, 1));
    let round = once(&config).await;
    assert_eq!(
        round.exit(),
        MonitorExit::Success,
        "one entry's receipt is newer than the others': {round:#?}"
    );
}

#[tokio::test]
async fn two_roots_of_one_size_are_a_fork_in_one_round_or_in_two_and_the_receipts_show_it_alone() {
    let service = Service::start().await;
    let (ours, other) = (tree(5, HONEST), tree(5, 3));
    let config = service.watches(&[ours[0], ours[1]]);
    service.shows(&ours);
    assert_eq!(once(&config).await.exit(), MonitorExit::Success);
    service.shows(&other);
    for _ in 0..2 {
        let round = once(&config).await;
        assert_eq!(round.exit(), MonitorExit::Misbehaviour);
        assert!(!round.alarms.is_empty());
        for alarm in &round.alarms {
            assert_eq!(alarm.kind, AlarmKind::Fork);
            let finding = judged(alarm);
            assert_eq!(finding.verdict, Verdict::Contradiction, "{finding:#?}");
        }
    }
    // Both views at once, to somebody who saw nothing before.
    let fresh = Service { folder: tempfile::tempdir().unwrap(), ..service };
    fresh.trust(&fresh.key);
    fresh.answers(ours[0], StatusCode::OK, fresh.receipt(&fresh.key, &ours, 0));
    fresh.answers(ours[1], StatusCode::OK, fresh.receipt(&fresh.key, &other, 1));
    let round = once(&fresh.watches(&[ours[0], ours[1]])).await;
    assert_eq!(only_alarm(&round), (AlarmKind::Fork, Verdict::Contradiction));
}

#[tokio::test]
async fn evidence_of_a_fork_that_was_changed_shows_nothing() {
    let service = Service::start().await;
    let (ours, other) = (tree(5, HONEST), tree(5, 3));
    service.answers(ours[0], StatusCode::OK, service.receipt(&service.key, &ours, 0));
    service.answers(ours[1], StatusCode::OK, service.receipt(&service.key, &other, 1));
    let round = once(&service.watches(&[ours[0], ours[1]])).await;
    let honest = serde_json::to_value(&round.alarms[0]).unwrap();
    let text = honest["evidence"]["receipts"][0]["entry_id"].as_str().unwrap();
    for (name, forged) in [("entry_id", ours[2].to_string()), ("receipt", text.to_owned())] {
        let mut changed = honest.clone();
        changed["evidence"]["receipts"][0][name] = forged.into();
        let finding = judged(&serde_json::from_value(changed).unwrap());
        assert_eq!(finding.verdict, Verdict::Wrong, "{name}: {finding:#?}");
    }
    let mut changed = honest.clone();
    changed["evidence"]["receipts"][1] = honest["evidence"]["receipts"][0].clone();
    let finding = judged(&serde_json::from_value(changed).unwrap());
    assert_eq!(finding.verdict, Verdict::Wrong, "one receipt twice contradicts nothing: {finding:#?}");
}

#[tokio::test]
async fn a_signed_size_that_goes_back_is_a_rollback_until_it_is_large_again() {
    let service = Service::start().await;
    let watched = tree(1, HONEST);
    let config = service.watches(&watched);
    service.shows(&tree(9, HONEST));
    once(&config).await;
    service.shows(&tree(4, HONEST));
    for round in [after_two_looks(&config, CheckName::Growth).await, once(&config).await] {
        assert_eq!(only_alarm(&round), (AlarmKind::Rollback, Verdict::OnWord));
        assert_eq!(round.exit(), MonitorExit::Misbehaviour);
    }
    service.shows(&tree(10, HONEST));
    assert_eq!(once(&config).await.exit(), MonitorExit::Success);
}

#[tokio::test]
async fn an_entry_that_is_gone_after_its_receipt_was_seen_has_vanished() {
    for status in [StatusCode::NOT_FOUND, StatusCode::GONE] {
        let service = Service::start().await;
        let watched = tree(2, HONEST);
        let config = service.watches(&watched);
        service.answers(watched[1], status, Vec::new());
        service.answers(watched[0], StatusCode::OK, service.receipt(&service.key, &watched, 0));
        let round = once(&config).await;
        assert_eq!(round.exit(), MonitorExit::Success, "what was never there has not vanished: {round:#?}");
        service.answers(watched[0], status, Vec::new());
        let round = after_two_looks(&config, CheckName::Entries).await;
        assert_eq!(only_alarm(&round), (AlarmKind::Vanished, Verdict::OnWord));
        assert_eq!(round.exit(), MonitorExit::Misbehaviour);
    }
}

#[tokio::test]
async fn a_key_that_nobody_pinned_is_an_alarm() {
    let service = Service::start().await;
    let watched = tree(2, HONEST);
    let config = service.watches(&watched[..1]);
    service.answers(watched[0], StatusCode::OK, service.receipt(&key(), &watched, 0));
    assert_eq!(only_alarm(&once(&config).await), (AlarmKind::UnknownKey, Verdict::OnWord));
}

#[tokio::test]
async fn a_receipt_of_another_entry_is_an_alarm() {
    let service = Service::start().await;
    let watched = tree(2, HONEST);
    let config = service.watches(&watched[..1]);
    service.answers(watched[0], StatusCode::OK, service.receipt(&service.key, &watched, 1));
    assert_eq!(only_alarm(&once(&config).await), (AlarmKind::Inconsistent, Verdict::OnWord));
}

#[tokio::test]
async fn a_page_in_the_place_of_a_receipt_is_no_answer_and_accuses_nobody() {
    let service = Service::start().await;
    let watched = tree(1, HONEST);
    let config = service.watches(&watched);
    for page in [&b"<html>back soon</html>"[..], b"", &vec![0; scitt::limits::RECEIPT_BYTES + 1]] {
        service.answers(watched[0], StatusCode::OK, page.to_vec());
        let round = once(&config).await;
        assert_eq!((round.exit(), round.alarms.len()), (MonitorExit::Unreachable, 0), "{round:#?}");
    }
}

#[tokio::test]
async fn replicas_that_are_behind_for_a_while_accuse_nobody() {
    let service = Service::start().await;
    let watched = tree(1, HONEST);
    let config = service.watches(&watched);
    let mut patient = service.watches(&watched);
    patient.services[0].lag = Duration::from_secs(3600);
    service.shows(&tree(9, HONEST));
    once(&config).await;
    for _ in 0..4 {
        // Every second answer is of a replica that is behind, or does not know the entry yet.
        for behind in [true, true, false] {
            match behind {
                true => service.shows(&tree(4, HONEST)),
                false => service.answer_all(StatusCode::NOT_FOUND),
            }
            assert_eq!(once(&config).await.exit(), MonitorExit::Success);
            service.shows(&tree(9, HONEST));
            assert_eq!(once(&config).await.exit(), MonitorExit::Success);
        }
    }
    service.shows(&tree(4, HONEST));
    for _ in 0..6 {
        assert_eq!(once(&patient).await.exit(), MonitorExit::Success, "however often it was looked at");
    }
}

#[tokio::test]
async fn a_service_that_does_not_answer_is_unreachable_and_forgets_nothing() {
    let service = Service::start().await;
    let watched = tree(1, HONEST);
    let config = service.watches(&watched);
    service.shows(&tree(3, HONEST));
    once(&config).await;
    service.answer_all(StatusCode::FORBIDDEN);
    let round = once(&config).await;
    assert_eq!((round.exit(), round.alarms.len()), (MonitorExit::Unreachable, 0), "{round:#?}");
    service.shows(&tree(3, 0)); // A door that was closed for a while does not make a fork good.
    service.answers(
        watched[0],
        StatusCode::OK,
        service.receipt(&service.key, &[watched[0], tree(1, 0)[0], tree(1, 0)[0]], 0),
    );
    assert_eq!(only_alarm(&once(&config).await), (AlarmKind::Fork, Verdict::Contradiction));
}

#[tokio::test]
async fn receipts_of_a_ccf_ledger_are_watched_under_the_ledger_s_own_names() {
    let case = vector("as-the-service-issues-it");
    let service = Service::start().await;
    service.write("trust.toml", case["trust"].as_str().unwrap());
    service.write("s.cose", hex(case["statement"].as_str().unwrap()));
    let config = service.watches_as("{ id = \"2.18\", statement = \"s.cose\" }");
    let receipt = hex(case["receipts"][0].as_str().unwrap());
    service.answers("2.18", StatusCode::OK, receipt.clone());
    for _ in 0..2 {
        assert_eq!(once(&config).await.exit(), MonitorExit::Success);
    }
    // Another tree of the same ledger, for the same statement, signed as of the same transaction.
    let other = hex(vector("last-leaf")["receipts"][0].as_str().unwrap());
    service.answers("2.18", StatusCode::OK, other);
    assert_eq!(only_alarm(&once(&config).await), (AlarmKind::Fork, Verdict::Contradiction));
    service.answers("2.18", StatusCode::NOT_FOUND, Vec::new());
    let gone = after_two_looks(&config, CheckName::Entries).await;
    assert_eq!(only_alarm(&gone), (AlarmKind::Vanished, Verdict::OnWord));
    for lie in ["left-flipped", "data-hash-of-another-statement", "two-roots"] {
        service.write("s.cose", hex(vector(lie)["statement"].as_str().unwrap()));
        service.write("trust.toml", vector(lie)["trust"].as_str().unwrap());
        service.answers("2.18", StatusCode::OK, hex(vector(lie)["receipts"][0].as_str().unwrap()));
        assert_eq!(only_alarm(&once(&config).await), (AlarmKind::Inconsistent, Verdict::OnWord), "{lie}");
    }
}

#[test]
fn what_cannot_be_watched_is_refused_in_the_configuration() {
    let read = |entries: &str| {
        let text = format!(
            "state_dir = \"s\"\n[[service]]\nname = \"x\"\nurl = \"http://x.example\"\ntrust = \"t\"\nentries = [{entries}]"
        );
        Config::from_toml(&text, Path::new("."))
    };
    let digest = EntryDigest::of(b"x");
    assert!(read(&format!("\"{digest}\"")).is_ok());
    for wrong in [
        "",
        "\"abc\"",
        "{ id = \"2.18\" }",
        "{ id = \"../x\", statement = \"s\" }",
        "{ id = \"..\", statement = \"s\" }",
        "{ statement = \"s\", digest = \"d\" }",
        "{ statement = \"s\", more = 1 }",
    ] {
        assert!(read(wrong).is_err(), "{wrong}");
    }
}

fn vector(name: &str) -> serde_json::Value {
    let folder = PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("../../vectors/verifier/ccf");
    serde_json::from_slice(&std::fs::read(folder.join(format!("{name}.json"))).unwrap()).unwrap()
}

fn hex(text: &str) -> Vec<u8> {
    data_encoding::HEXLOWER.decode(text.as_bytes()).unwrap()
}
