//! Our own service, watched from outside: entries, decisions, watch lists.
#![allow(clippy::unwrap_used)]

#[path = "common/site.rs"]
mod site;

use std::time::Duration;

use axum::http::{StatusCode, Uri};
use log_for_tests::LogFolder;
use monitor::clock::now;
use monitor::config::Who;
use monitor::evidence::Evidence;
use monitor::state::MonitorStateDir;
use monitor::{
    Alarm, AlarmKind, CheckName, Config, Depth, LogWatcher, Monitor, MonitorExit, Outcome, Round, Sink,
    Watch, WatchedLog,
};
use scitt::{SignedStatement, Signer};
use site::Site;
use testkit::{AGENT, receipt, receipt_json, verifier};

struct Nowhere;

#[async_trait::async_trait]
impl Sink for Nowhere {
    async fn round(&self, _: &Round) {}
}

fn target(place: &LogFolder, site: &Site) -> WatchedLog {
    let target = WatchedLog::new("ours", site.url.parse().unwrap(), place.checkpoint_key());
    WatchedLog { depth: Depth::Decisions, lag: Duration::ZERO, ..target }
}

async fn once(place: &LogFolder, target: &WatchedLog) -> Round {
    let config = Config::new(place.path("monitor"), vec![target.clone()]);
    Monitor::begin(&config).unwrap().once(&Nowhere).await.pop().unwrap()
}

#[tokio::test]
async fn verdicts_of_one_session_differ_and_only_two_on_one_record_are_a_flip() {
    let place = LogFolder::new(&testkit::policy_toml());
    let site = Site::start(&place).await;
    let mut target = target(&place, &site);
    target.watches = vec![watched(Who::Subject(testkit::SESSION.into()))];
    let verdict = |verdict: &str, audit_ref: &str| {
        let mut json = testkit::verdict_json();
        json["verdict"] = verdict.into();
        json["audit_ref"] = audit_ref.into();
        testkit::verdict(&json)
    };
    for statement in [verdict("served", "record-1"), verdict("denied", "record-2")] {
        site.register(&statement).await;
    }
    let round = once(&place, &target).await;
    assert_eq!(of_kind(&round, AlarmKind::VerdictFlip), Vec::<&Alarm>::new(), "{:?}", said(&round));
    let flip = verdict("denied", "record-1");
    site.register(&flip).await;
    let round = once(&place, &target).await;
    let flips = of_kind(&round, AlarmKind::VerdictFlip);
    assert_eq!(flips.len(), 1, "{:?}", said(&round));
    assert_eq!(flips[0].which, flip.digest().to_string());
}

/// One whose policy leaves chains alone: what the log does not refuse, the monitor sees.
fn place_without_chains() -> LogFolder {
    let issuers = "issuers = [\"did:key:*\"]";
    let chains_off = format!("{issuers}\n[type.vrf]\nchain = \"off\"\n");
    LogFolder::new(&testkit::policy_toml().replace(issuers, &chains_off))
}

fn after(n: u64, previous: &SignedStatement, position: u64) -> SignedStatement {
    receipt(n).after(previous.digest(), position).sign(&verifier()).unwrap()
}

fn watched(who: Who) -> Watch {
    Watch::of(who)
}

/// What to print when a round is not as it should be: without evidence, which is long.
fn said(round: &Round) -> Vec<String> {
    let checks =
        round.checks.iter().map(|check| format!("{} {:?} {}", check.name, check.outcome, check.words));
    checks
        .chain(round.alarms.iter().map(|alarm| format!("{} {} {}", alarm.kind, alarm.about, alarm.words)))
        .collect()
}

fn of_kind(round: &Round, kind: AlarmKind) -> Vec<&Alarm> {
    round.alarms.iter().filter(|alarm| alarm.kind == kind).collect()
}

#[tokio::test]
async fn every_entry_of_our_service_is_decided_again_as_it_grows() {
    let place = LogFolder::new(&testkit::policy_toml());
    let site = Site::start(&place).await;
    let target = target(&place, &site);
    for n in 1..=3 {
        site.register(&receipt(n).unchained().sign(&verifier()).unwrap()).await;
        let round = once(&place, &target).await;
        for check in [CheckName::Entries, CheckName::Decisions] {
            assert_eq!(round.outcome(check), Some(Outcome::Ok), "{:?}", said(&round));
        }
        assert_eq!((round.exit(), round.verified), (MonitorExit::Success, Some(n + 1)), "{:?}", said(&round));
        assert_eq!(round.outcome(CheckName::WatchLists), Some(Outcome::NotChecked), "nobody is on a list");
    }
}

#[tokio::test]
async fn a_state_of_the_audit_that_cannot_be_read_is_an_alarm() {
    let place = LogFolder::new(&testkit::policy_toml());
    let site = Site::start(&place).await;
    let target = target(&place, &site);
    once(&place, &target).await;
    let state = place.path("monitor/ours/audit.json");
    let longer_than_is_read = audit::limits::MAX_AUDIT_STATE_BYTES + 1;
    std::fs::File::options().write(true).open(&state).unwrap().set_len(longer_than_is_read).unwrap();
    for _ in 0..2 {
        let round = once(&place, &target).await;
        let kinds: Vec<_> = round.alarms.iter().map(|alarm| alarm.kind).collect();
        assert_eq!(
            (kinds, round.exit()),
            (vec![AlarmKind::OwnState], MonitorExit::Error),
            "{:?}",
            said(&round)
        );
        std::fs::write(&state, "half a sta").unwrap();
    }
    std::fs::remove_file(&state).unwrap();
    assert_eq!(once(&place, &target).await.exit(), MonitorExit::Success, "it is made again");
}

#[tokio::test]
async fn our_service_answers_a_lean_monitor_in_one_request() {
    let place = LogFolder::new(&testkit::policy_toml());
    let site = Site::start(&place).await;
    let target = WatchedLog { depth: Depth::Checkpoints, lean: true, ..target(&place, &site) };
    site.register(&testkit::vrf(1)).await;
    once(&place, &target).await;
    site.register(&testkit::vrf(2)).await;
    let round = once(&place, &target).await;
    assert_eq!(
        (round.exit(), round.verified, round.cost.requests),
        (MonitorExit::Success, Some(3), 1),
        "{:?}",
        said(&round)
    );
}

#[tokio::test]
async fn forks_gaps_flips_and_unknown_keys_of_those_on_the_lists_are_named() {
    let place = place_without_chains();
    let site = Site::start(&place).await;
    let issuer = verifier().public_key().did_key();
    let mut target = target(&place, &site);
    target.watches = vec![
        Watch { keys: vec!["00".into()], ..watched(Who::Issuer(issuer)) },
        watched(Who::Subject(AGENT.into())),
        watched(Who::Subject("somebody else".into())),
    ];
    let one = receipt(1).sign(&verifier()).unwrap();
    let two = after(2, &one, 1);
    for statement in [&one, &two] {
        site.register(statement).await;
    }
    let round = once(&place, &target).await;
    assert_eq!(of_kind(&round, AlarmKind::ChainFork), Vec::<&Alarm>::new());
    assert_eq!(of_kind(&round, AlarmKind::UnknownIssuerKey).len(), 2, "{:?}", said(&round));

    let fork = after(3, &one, 1);
    let gap = after(4, &two, 5);
    let mut failed = receipt_json(5);
    failed["verdict"] = "fail".into();
    failed["results"] = serde_json::json!({ "total": 1, "passed": 0, "failed": 1, "errors": 0 });
    let flip = registration::vrf::VrfStatement::new(failed, AGENT).unchained().sign(&verifier()).unwrap();
    for statement in [&fork, &gap, &flip] {
        site.register(statement).await;
    }
    let round = once(&place, &target).await;
    // Once for the issuer and once for the subject.
    let forks = of_kind(&round, AlarmKind::ChainFork);
    assert_eq!(forks.len(), 2, "{:?}", said(&round));
    assert!(forks.iter().all(|alarm| alarm.which == fork.digest().to_string() && alarm.evidence.is_some()));
    let gaps: Vec<_> = of_kind(&round, AlarmKind::Gap).iter().map(|alarm| alarm.which.clone()).collect();
    assert_eq!(gaps.len(), 6, "positions 2 to 4, for the issuer and for the subject: {gaps:?}");
    let flips = of_kind(&round, AlarmKind::VerdictFlip);
    assert_eq!(flips.len(), 2, "{:?}", said(&round));
    assert!(flips.iter().all(|alarm| alarm.which == flip.digest().to_string()));
    assert_eq!(round.exit(), MonitorExit::Failed);

    let again = once(&place, &target).await;
    assert_eq!(of_kind(&again, AlarmKind::ChainFork).len(), 0, "an entry is read once");
    assert_eq!(of_kind(&again, AlarmKind::Gap).len(), 6, "what is missing is still missing");
}

#[tokio::test]
async fn an_issuer_that_is_silent_for_too_long_is_named() {
    let place = LogFolder::new(&testkit::policy_toml());
    let site = Site::start(&place).await;
    let mut target = target(&place, &site);
    let issuer = verifier().public_key().did_key();
    let silence = |limit| Watch { silence: Some(limit), ..watched(Who::Issuer(issuer.clone())) };
    target.watches = vec![silence(Duration::from_secs(600))];
    site.register(&testkit::vrf(1)).await;
    assert_eq!(once(&place, &target).await.exit(), MonitorExit::Success);
    target.watches = vec![silence(Duration::ZERO)];
    tokio::time::sleep(Duration::from_millis(2100)).await;
    let round = once(&place, &target).await;
    assert_eq!(
        (of_kind(&round, AlarmKind::Silence).len(), round.exit().code()),
        (1, 9),
        "{:?}",
        said(&round)
    );
}

#[tokio::test]
async fn a_fork_that_the_log_refused_is_known_by_its_report_with_both_statements() {
    let place = LogFolder::new(&testkit::policy_toml());
    let site = Site::start(&place).await;
    let mut target = target(&place, &site);
    target.watches = vec![watched(Who::Subject(AGENT.into()))];
    let one = receipt(1).sign(&verifier()).unwrap();
    let (two, fork) = (after(2, &one, 1), after(3, &one, 1));
    site.register(&one).await;
    site.register(&two).await;
    site.refused(&fork).await;
    let mut found = Vec::new();
    for _ in 0..50 {
        let round = once(&place, &target).await;
        found.extend(of_kind(&round, AlarmKind::ChainFork).into_iter().cloned());
        if !found.is_empty() {
            break;
        }
        tokio::time::sleep(Duration::from_millis(100)).await;
    }
    let [alarm] = &found[..] else { panic!("{} alarms", found.len()) };
    let Some(Evidence::Entries { entries, .. }) = &alarm.evidence else { panic!("no evidence") };
    let ids: Vec<_> = entries.iter().map(|entry| (entry.index, entry.entry_id.clone())).collect();
    assert_eq!(ids, [(Some(2), two.digest().to_string()), (None, fork.digest().to_string())]);
    assert!(entries.iter().all(|entry| entry.statement.is_some()));
    assert!(of_kind(&once(&place, &target).await, AlarmKind::ChainFork).is_empty(), "it was told");
}

#[tokio::test]
async fn what_was_found_is_found_again_until_somebody_was_told() {
    let place = place_without_chains();
    let site = Site::start(&place).await;
    let mut target = target(&place, &site);
    target.watches = vec![watched(Who::Subject(AGENT.into()))];
    let one = receipt(1).sign(&verifier()).unwrap();
    for statement in [&one, &after(2, &one, 1), &after(3, &one, 1)] {
        site.register(statement).await;
    }
    let dir = MonitorStateDir::take(&place.path("monitor")).unwrap();
    let look = async || {
        let mut watcher = LogWatcher::new(target.clone(), dir.log("ours").unwrap(), now()).unwrap();
        let round = watcher.round(now()).await;
        (watcher, of_kind(&round, AlarmKind::ChainFork).len())
    };
    assert_eq!(look().await.1, 1);
    let (mut watcher, found) = look().await;
    assert_eq!(found, 1, "the process ended before anybody was told");
    watcher.mark_reported();
    assert_eq!(look().await.1, 0);
}

/// How a proxy changes what the service shows.
#[derive(Clone, Copy, Default)]
struct Lie {
    /// A text of the first page of evidence, and the one in its place.
    evidence: (&'static str, &'static str),
    /// Paths that begin so are answered with this status.
    refused: Option<(&'static str, StatusCode)>,
    /// Whether the first hash of the first tile has one wrong bit.
    wrong_hash: bool,
}

/// Hands on what the service shows, with this lie.
async fn liar(site: &Site, lie: Lie) -> String {
    let (service, http) = (site.url.clone(), reqwest::Client::new());
    let answer = move |uri: Uri| {
        let (url, http) = (format!("{service}{}", uri.to_string().trim_start_matches('/')), http.clone());
        async move {
            let path = uri.path_and_query().unwrap().as_str();
            if let Some((_, status)) = lie.refused.filter(|(refused, _)| path.starts_with(refused)) {
                return (status, Vec::new());
            }
            let answer = http.get(url).send().await.unwrap();
            let (status, body) = (answer.status(), answer.bytes().await.unwrap());
            if lie.wrong_hash && path.starts_with("/tile/0/000") {
                let mut body = body.to_vec();
                body[0] ^= 1;
                return (status, body);
            }
            match path.starts_with("/v1/evidence?from=0&") {
                true => {
                    let (from, to) = lie.evidence;
                    (status, String::from_utf8_lossy(&body).replacen(from, to, 1).into_bytes())
                }
                false => (status, body.to_vec()),
            }
        }
    };
    let listener = tokio::net::TcpListener::bind("127.0.0.1:0").await.unwrap();
    let url = format!("http://{}/", listener.local_addr().unwrap());
    let app = axum::Router::new().fallback(answer);
    tokio::spawn(async move { axum::serve(listener, app).await.unwrap() });
    url
}

/// Evidence of a VRF receipt, and one that the log's policy does not give.
const BAD_ADMISSION: (&str, &str) = (
    r#""rule":"application/vrf+cbor","facts":{}"#,
    r#""rule":"application/vrf+cbor","facts":{"verdict":"fail"}"#,
);

#[tokio::test]
async fn a_wrong_admission_is_an_alarm_though_the_log_refuses_what_comes_after_it() {
    let place = LogFolder::new(&testkit::policy_toml());
    let site = Site::start(&place).await;
    // More than a page of evidence.
    let statements = (1..=66).map(|n| receipt(n).unchained().sign(&verifier()).unwrap());
    let statements: Vec<SignedStatement> = statements.collect();
    futures::future::join_all(statements.iter().map(|statement| site.register(statement))).await;
    for (path, status, unanswered) in [
        ("/v1/equivocations", StatusCode::INTERNAL_SERVER_ERROR, CheckName::WatchLists),
        ("/v1/evidence?from=64", StatusCode::SERVICE_UNAVAILABLE, CheckName::Decisions),
    ] {
        let lie = Lie { evidence: BAD_ADMISSION, refused: Some((path, status)), ..Lie::default() };
        let url = liar(&site, lie).await;
        let mut target = WatchedLog { url: url.parse().unwrap(), ..target(&place, &site) };
        target.watches = vec![watched(Who::Subject("somebody else".into()))];
        let state = tempfile::tempdir().unwrap();
        let config = Config::new(state.path().to_owned(), vec![target]);
        let round = Monitor::begin(&config).unwrap().once(&Nowhere).await.pop().unwrap();
        let found: Vec<_> = round.alarms.iter().map(|alarm| (alarm.kind, alarm.which.as_str())).collect();
        let expected = (AlarmKind::Decision, "audit-facts-differ at leaf 1");
        assert_eq!((found, round.exit().code()), (vec![expected], 8), "{path}: {:?}", said(&round));
        let mut unread = round.checks.iter().filter(|check| check.outcome == Outcome::Unanswered);
        assert!(unread.all(|check| check.name == unanswered), "{path}: {:?}", said(&round));
        assert!(state.path().join("ours/audit.json").exists(), "{path}");
        assert!(round.was_made(&unanswered.into()), "{path}: entries were read");
    }
}

#[tokio::test]
async fn a_log_that_cannot_show_why_it_admitted_an_entry_is_accused_with_the_entry() {
    let place = LogFolder::new(&testkit::policy_toml());
    let site = Site::start(&place).await;
    let statement = testkit::vrf(1);
    site.register(&statement).await;
    let url = liar(&site, Lie { evidence: BAD_ADMISSION, ..Lie::default() }).await;
    let target = WatchedLog { url: url.parse().unwrap(), ..target(&place, &site) };
    let round = once(&place, &target).await;
    let [alarm] = &of_kind(&round, AlarmKind::Decision)[..] else { panic!("{:?}", said(&round)) };
    assert_eq!(round.exit().code(), 8);
    assert_eq!(alarm.which, "audit-facts-differ at leaf 1");
    let Some(Evidence::Entries { entries, checkpoint }) = &alarm.evidence else { panic!("no evidence") };
    assert_eq!(entries[0].entry_id, statement.digest().to_string());
    assert!(entries[0].statement.is_some() && checkpoint.is_some());
    assert_eq!(round.outcome(CheckName::Decisions), Some(Outcome::Failed));
}

#[tokio::test]
async fn what_was_decided_from_one_wrong_hash_is_reported_and_decided_again_in_the_next_round() {
    let place = place_without_chains();
    let site = Site::start(&place).await;
    let mut honest = target(&place, &site);
    honest.watches = vec![watched(Who::Subject(AGENT.into()))];
    let one = receipt(1).sign(&verifier()).unwrap();
    for statement in [&one, &after(2, &one, 1), &after(3, &one, 1)] {
        site.register(statement).await;
    }
    let url = liar(&site, Lie { wrong_hash: true, ..Lie::default() }).await;
    let round = once(&place, &WatchedLog { url: url.parse().unwrap(), ..honest.clone() }).await;
    let found: Vec<_> = round.alarms.iter().map(|alarm| (alarm.kind, alarm.which.as_str())).collect();
    let decision = |which| (AlarmKind::Decision, which);
    let expected = [decision("audit-leaf at leaf 0"), decision("audit-root"), (AlarmKind::Inconsistent, "")];
    assert_eq!((&found[..], round.exit().code()), (&expected[..], 8), "{:?}", said(&round));
    for file in ["audit.json", "watch.json"] {
        assert!(!place.path("monitor/ours").join(file).exists(), "{file}");
    }
    let round = once(&place, &honest).await;
    for (kind, count) in [(AlarmKind::Decision, 0), (AlarmKind::Inconsistent, 0), (AlarmKind::ChainFork, 1)] {
        assert_eq!(of_kind(&round, kind).len(), count, "{:?}", said(&round));
    }
    assert_eq!(round.outcome(CheckName::Decisions), Some(Outcome::Ok), "{:?}", said(&round));
}
