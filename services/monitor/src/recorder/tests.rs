//! Alarms: raised and sent once, cleared where they pass, and otherwise reset by an operator only.

use std::sync::Mutex;

use super::*;
use crate::alarm::{AlarmKind, AlarmSubject, FoundBy};
use crate::alarm_list::{AlarmReset, AlarmState};
use crate::check_name::CheckName;
use crate::evidence::{Evidence, Sighting};
use crate::limits::{MAX_ALARMS_BYTES, MAX_ALARMS_OF_KIND, MAX_ALARMS_OF_LOG, MAX_ALARMS_OVER};
use crate::round::{Check, Cost, Outcome};
use crate::verdict::{Verdict, judge};
use crate::webhook::{WebhookKey, WebhookReceiver};

const NOW: u64 = 1_790_000_000;

struct House {
    state: tempfile::TempDir,
    events: Arc<Mutex<Vec<MonitorEvent>>>,
    metrics: Arc<Metrics>,
    webhooks: Arc<Webhooks>,
    recorder: RoundRecorder,
}

impl House {
    fn new() -> Self {
        Self::restarted(tempfile::tempdir().unwrap())
    }

    fn restarted(state: tempfile::TempDir) -> Self {
        let target =
            WebhookReceiver { url: "http://127.0.0.1:1/hook".into(), allow_private: true, secret: None };
        Self::telling(state, vec![target])
    }

    fn telling(state: tempfile::TempDir, targets: Vec<WebhookReceiver>) -> Self {
        let key = WebhookKey::generate().unwrap();
        let webhooks = Arc::new(Webhooks::new(state.path(), key, targets).unwrap());
        let metrics = Arc::new(Metrics::new(["ours", "theirs"]).unwrap());
        let events: Arc<Mutex<Vec<MonitorEvent>>> = Arc::default();
        let listener = events.clone();
        let listener: EventListener = Box::new(move |event| listener.lock().unwrap().push(event.clone()));
        let recorder = RoundRecorder::new(state.path(), webhooks.clone(), metrics.clone(), listener);
        Self { state, events, metrics, webhooks, recorder }
    }

    async fn sees(&self, at: u64, alarms: Vec<Alarm>) {
        self.recorder.round(&round("ours", at, alarms)).await;
        assert!(!self.recorder.has_failed());
    }

    fn alarms(&self) -> AlarmList {
        AlarmList::read(self.state.path()).unwrap()
    }

    fn events(&self) -> Vec<&'static str> {
        let name = |event: &MonitorEvent| match event {
            MonitorEvent::Round { .. } => "round",
            MonitorEvent::Raised { .. } => "raised",
            MonitorEvent::Cleared { .. } => "cleared",
        };
        self.events.lock().unwrap().iter().map(name).collect()
    }
}

fn round(log: &str, at: u64, alarms: Vec<Alarm>) -> Round {
    let check = Check { name: CheckName::Consistency, outcome: Outcome::Ok, words: "1 to 2".into() };
    Round {
        log: log.into(),
        origin: "log.example".into(),
        at,
        shown: None,
        verified: Some(2),
        checks: vec![check],
        index: None,
        made: Vec::new(),
        alarms,
        cost: Cost::default(),
    }
}

fn fork() -> Alarm {
    let seen = |note: &str| Sighting { note: note.into(), from: "here".into(), at: NOW };
    let evidence = Evidence::Contradiction {
        vkey: "log.example+00000000+AA==".into(),
        origin: None,
        older: seen("log.example\n4\nAAAA\n"),
        newer: seen("x"),
        path: None,
    };
    Alarm::new(AlarmKind::Fork, "ours", AlarmSubject::Log, "two trees", NOW).shown_by(evidence)
}

fn stale() -> Alarm {
    Alarm::new(AlarmKind::Stale, "ours", AlarmSubject::Log, "an hour old", NOW)
}

#[tokio::test]
async fn an_alarm_is_raised_once_and_repeated_afterwards() {
    let house = House::new();
    house.sees(NOW, vec![fork()]).await;
    house.sees(NOW + 60, vec![fork()]).await;
    assert_eq!(house.events(), ["raised", "round", "round"]);
    let alarms = house.alarms();
    let [standing] = alarms.standing() else { panic!("{alarms:?}") };
    assert_eq!((standing.times, standing.alarm.first_seen, standing.alarm.last_seen), (2, NOW, NOW + 60));
    assert_eq!(house.webhooks.waiting(), 1, "it is told once");
}

#[tokio::test]
async fn evidence_lies_in_a_file_that_reads_as_the_alarm() {
    let house = House::new();
    house.sees(NOW, vec![fork()]).await;
    let name = house.alarms().standing()[0].evidence_file.clone().unwrap();
    assert!(name.starts_with("evidence/fork-") && name.ends_with(".json"), "{name}");
    let file = EvidenceFile::parse(&std::fs::read(house.state.path().join(&name)).unwrap()).unwrap();
    assert_eq!(file.alarm.evidence, fork().evidence);
    assert_eq!(
        judge(&file.alarm, &[], None).verdict,
        Verdict::Wrong,
        "notes that nobody signed accuse nobody"
    );
    assert!(matches!(EvidenceFile::parse(b"{}"), Err(NotEvidence::Form(_))));
}

#[tokio::test]
async fn what_passes_is_cleared_when_it_is_seen_no_more_and_a_fork_never_is() {
    let house = House::new();
    house.sees(NOW, vec![fork(), stale()]).await;
    house.sees(NOW + 60, vec![]).await;
    assert_eq!(house.events(), ["raised", "raised", "round", "cleared", "round"]);
    let alarms = house.alarms();
    let kinds: Vec<_> = alarms.standing().iter().map(|standing| standing.alarm.kind).collect();
    assert_eq!(kinds, [AlarmKind::Fork]);
    assert_eq!(alarms.over()[0].state, AlarmState::Cleared);
    assert_eq!(house.webhooks.waiting(), 3, "the end is told too");
    house.sees(NOW + 120, vec![stale()]).await;
    assert_ne!(house.alarms().standing()[1].id, alarms.over()[0].id, "it is another alarm now");
}

#[tokio::test]
async fn what_passes_stands_until_its_check_was_made_again() {
    let house = House::telling(tempfile::tempdir().unwrap(), vec![]);
    let elsewhere = FoundBy::at(CheckName::Vantage, "theirs");
    let about = AlarmSubject::Vantage("theirs".into());
    let old_here =
        Alarm::new(AlarmKind::Stale, "ours", about, "a larger tree", NOW).found_by(elsewhere.clone());
    house.sees(NOW, vec![stale().found_by(CheckName::Freshness), old_here]).await;
    let after = async |at: u64, checks: &[(CheckName, Outcome)], parts: &[FoundBy]| {
        let made = |(name, outcome): &(CheckName, Outcome)| Check {
            name: *name,
            outcome: *outcome,
            words: "".into(),
        };
        let checks = checks.iter().map(made).collect();
        let round = Round { checks, made: parts.to_vec(), ..round("ours", NOW + at, vec![]) };
        house.recorder.round(&round).await;
        house.alarms().standing().len()
    };
    let (freshness, vantage) = (CheckName::Freshness, CheckName::Vantage);
    assert_eq!(after(1, &[], &[]).await, 2);
    assert_eq!(after(2, &[(freshness, Outcome::NotChecked), (vantage, Outcome::Ok)], &[]).await, 2);
    assert_eq!(after(3, &[(freshness, Outcome::Ok), (freshness, Outcome::Unanswered)], &[]).await, 2);
    assert_eq!(
        after(4, &[(freshness, Outcome::Ok)], &[FoundBy::at(CheckName::Reachable, "theirs")]).await,
        1
    );
    assert_eq!(after(5, &[], &[elsewhere]).await, 0);

    let reports = FoundBy::at(CheckName::WatchLists, "reports");
    let silent = stale().found_by(CheckName::WatchLists);
    house.sees(NOW + 6, vec![silent, stale().which("reports").found_by(reports.clone())]).await;
    let unread = [(CheckName::WatchLists, Outcome::Unanswered)];
    assert_eq!(after(7, &unread, &[]).await, 2);
    assert_eq!(after(8, &unread, &[FoundBy::from(CheckName::WatchLists)]).await, 1, "all entries were read");
    assert_eq!(after(9, &[(CheckName::WatchLists, Outcome::Ok)], &[]).await, 1, "the reports were not read");
    assert_eq!(after(10, &[], &[reports]).await, 0);
}

#[tokio::test]
async fn a_log_that_comes_and_goes_does_not_fill_the_disk() {
    let house = House::telling(tempfile::tempdir().unwrap(), vec![]);
    let evidence = fork().evidence.unwrap();
    let flapping = |n: u64| stale().shown_by(evidence.clone()).which(n.to_string());
    let many = MAX_ALARMS_OVER as u64 + 5;
    house.sees(NOW, (0..many).map(flapping).collect()).await;
    house.sees(NOW + 60, vec![]).await;
    assert_eq!(house.alarms().over().len(), MAX_ALARMS_OVER);
    let files = std::fs::read_dir(house.state.path().join("evidence")).unwrap().count();
    assert_eq!(files, MAX_ALARMS_OVER);
}

#[tokio::test]
async fn the_round_of_one_log_clears_nothing_of_another() {
    let house = House::new();
    house.sees(NOW, vec![stale()]).await;
    house.recorder.round(&round("theirs", NOW + 1, vec![])).await;
    assert_eq!(house.alarms().standing().len(), 1);
}

#[tokio::test]
async fn somebody_who_looked_takes_an_alarm_back_and_its_evidence_stays() {
    let house = House::new();
    house.sees(NOW, vec![fork()]).await;
    let standing = house.alarms().standing()[0].clone();
    let reset = |ids: &[&str], log: Option<&str>| {
        let ids = ids.iter().map(|id| (*id).to_owned()).collect();
        let because = "the operator restored a copy".into();
        let reset = AlarmReset { ids, log: log.map(str::to_owned), because, at: NOW + 5 };
        AlarmList::reset(house.state.path(), &reset).unwrap()
    };
    assert!(reset(&["nothing"], None).is_empty());
    assert!(reset(&[], Some("theirs")).is_empty());
    assert_eq!(reset(&[&standing.id], None)[0].state, AlarmState::Reset);
    assert!(house.alarms().standing().is_empty());
    assert_eq!(house.alarms().over()[0].because.as_deref(), Some("the operator restored a copy"));
    assert!(house.state.path().join(standing.evidence_file.unwrap()).exists());
    house.sees(NOW + 60, vec![fork()]).await;
    assert_eq!(house.alarms().standing().len(), 1, "what is still so is raised again");
}

#[tokio::test]
async fn a_finding_of_the_audit_that_was_reset_is_not_raised_again_by_later_rounds() {
    let house = House::new();
    let finding = |words: &str| {
        Alarm::new(AlarmKind::Decision, "ours", AlarmSubject::Log, words, NOW).which("audit-leaf at leaf 4")
    };
    house.sees(NOW, vec![finding("leaf 4")]).await;
    let reset = AlarmReset { ids: vec![], log: None, because: "a proxy".into(), at: NOW + 5 };
    assert_eq!(AlarmList::reset(house.state.path(), &reset).unwrap().len(), 1);
    house.sees(NOW + 60, vec![finding("leaf 4")]).await;
    assert!(house.alarms().standing().is_empty());
    assert_eq!(house.events(), ["raised", "round", "round"]);
    house.sees(NOW + 120, vec![finding("leaf 4, in other words")]).await;
    assert_eq!(house.alarms().standing().len(), 1, "this is another finding");
}

#[tokio::test]
async fn an_inconsistency_is_counted_and_outlives_a_restart() {
    let House { state, recorder, metrics, .. } = {
        let house = House::new();
        house.sees(NOW, vec![fork(), stale()]).await;
        house
    };
    let text = metrics.text().unwrap();
    assert!(text.contains("tabellion_monitor_inconsistency_total{log=\"ours\"} 1"), "{text}");
    assert!(text.contains("tabellion_monitor_inconsistency_total{log=\"theirs\"} 0"), "{text}");
    assert!(text.contains("tabellion_monitor_alarms{kind=\"stale\",log=\"ours\"} 1"), "{text}");
    assert!(text.contains("tabellion_monitor_verified_size_leaves{log=\"ours\"} 2"), "{text}");
    let last = format!("tabellion_monitor_last_check_timestamp_seconds{{log=\"ours\"}} {NOW}");
    assert!(text.contains(&last), "{text}");
    drop(recorder);
    let again = House::restarted(state);
    let text = again.metrics.text().unwrap();
    assert!(text.contains("tabellion_monitor_inconsistency_total{log=\"ours\"} 1"), "{text}");
    again.sees(NOW + 60, vec![fork()]).await;
    let text = again.metrics.text().unwrap();
    assert!(text.contains("tabellion_monitor_alarms{kind=\"stale\",log=\"ours\"} 0"), "{text}");
    assert_eq!(again.events(), ["cleared", "round"], "what stood before the restart is not raised again");
}

#[tokio::test]
async fn a_list_that_cannot_be_read_keeps_no_alarm_from_being_raised() {
    let house = House::new();
    std::fs::write(house.state.path().join("alarms.json"), "half a li").unwrap();
    house.recorder.round(&round("ours", NOW, vec![fork()])).await;
    assert!(house.recorder.has_failed(), "somebody must look");
    assert!(house.metrics.text().unwrap().contains("tabellion_monitor_not_kept_total 1"));
    assert_eq!(house.events(), ["raised", "round"]);
    let damaged = house.state.path().join(format!("alarms.damaged-{NOW}.json"));
    assert_eq!(std::fs::read(damaged).unwrap(), b"half a li");
    assert_eq!(house.alarms().standing().len(), 1);
}

#[tokio::test]
async fn what_cannot_be_kept_is_said_and_counted() {
    let house = House::new();
    std::fs::write(house.state.path().join("evidence"), "a file where a folder should be").unwrap();
    assert!(!house.recorder.keep(&round("ours", NOW, vec![fork()])).await);
    assert!(house.recorder.has_failed());
    assert!(house.metrics.text().unwrap().contains("tabellion_monitor_not_kept_total 1"));
    assert_eq!(house.events(), ["round"], "the round itself is told all the same");
    assert_eq!(house.webhooks.waiting(), 0, "no accusation leaves without its evidence");
}

#[tokio::test]
async fn a_list_that_is_longer_than_is_read_is_put_aside_too() {
    let house = House::new();
    let list = std::fs::File::create(house.state.path().join("alarms.json")).unwrap();
    list.set_len(MAX_ALARMS_BYTES + 1).unwrap();
    house.recorder.round(&round("ours", NOW, vec![fork()])).await;
    assert_eq!(house.events(), ["raised", "round"]);
    assert_eq!(house.alarms().standing().len(), 1);
    assert!(house.state.path().join(format!("alarms.damaged-{NOW}.json")).exists());
}

#[tokio::test]
async fn a_list_is_never_written_longer_than_it_is_read() {
    let house = House::telling(tempfile::tempdir().unwrap(), vec![]);
    house.sees(NOW, vec![fork()]).await;
    let endless = Alarm { words: "x".repeat(MAX_ALARMS_BYTES as usize), ..stale() };
    assert!(!house.recorder.keep(&round("ours", NOW + 60, vec![endless])).await);
    assert_eq!(house.alarms().standing().len(), 1, "what stood stands");
}

#[tokio::test]
async fn many_alarms_of_one_kind_crowd_out_neither_another_kind_nor_another_log_nor_the_logs_own_misbehaviour()
 {
    let house = House::telling(tempfile::tempdir().unwrap(), vec![]);
    let many = MAX_ALARMS_OF_KIND + 5;
    let of = |kind, about: &str| Alarm::new(kind, "ours", AlarmSubject::Issuer(about.into()), "words", NOW);
    let kinds = [AlarmKind::Gap, AlarmKind::BadSignature];
    let flood = |kind| (0..many).map(move |n| of(kind, &n.to_string()));
    house.sees(NOW, kinds.into_iter().flat_map(flood).collect()).await;
    assert_eq!(house.alarms().standing().len(), 2 * MAX_ALARMS_OF_KIND);
    let signature = Alarm { evidence: None, kind: AlarmKind::BadSignature, ..fork() };
    let elsewhere = Alarm { log: "theirs".into(), ..of(AlarmKind::Gap, "one") };
    house.sees(NOW + 60, vec![signature, of(AlarmKind::VerdictFlip, "one"), elsewhere]).await;
    assert_eq!(house.alarms().standing().len(), 2 * MAX_ALARMS_OF_KIND + 3);
}

#[tokio::test]
async fn a_log_that_forks_again_and_again_fills_neither_the_list_nor_the_disk() {
    let house = House::telling(tempfile::tempdir().unwrap(), vec![]);
    let forks = |from: u64| (from..from + 500).map(|size| fork().which(format!("their log, size {size}")));
    house.sees(NOW, forks(0).collect()).await;
    house.sees(NOW + 60, forks(500).collect()).await;
    house.recorder.round(&round("theirs", NOW + 61, vec![Alarm { log: "theirs".into(), ..fork() }])).await;
    let alarms = house.alarms();
    let [first, .., last, theirs] = alarms.standing() else { panic!("{alarms:?}") };
    assert_eq!(alarms.standing().len(), MAX_ALARMS_OF_LOG + 1);
    assert_eq!(first.alarm.which, "their log, size 0", "the first proofs stay");
    assert_eq!((last.unlisted, theirs.unlisted), (1000 - MAX_ALARMS_OF_LOG as u64, 0));
    assert_eq!(theirs.alarm.log, "theirs");
    let files = std::fs::read_dir(house.state.path().join("evidence")).unwrap().count();
    assert_eq!(files, MAX_ALARMS_OF_LOG + 1);
}

#[tokio::test]
async fn proof_takes_the_place_of_evidence_that_rests_on_a_word() {
    let house = House::new();
    let Some(Evidence::Contradiction { vkey, origin, older: seen, .. }) = fork().evidence else {
        unreachable!()
    };
    let word = Alarm { evidence: Some(Evidence::Checkpoint { vkey, origin, seen }), ..fork() };
    let file = || house.alarms().standing()[0].evidence_file.clone().unwrap();
    house.sees(NOW, vec![word.clone()]).await;
    let weaker = file();
    house.sees(NOW + 60, vec![fork()]).await;
    let proof = file();
    assert_ne!(weaker, proof);
    house.sees(NOW + 120, vec![word]).await;
    house.sees(NOW + 180, vec![fork()]).await;
    assert_eq!((file(), house.events().iter().filter(|event| **event == "raised").count()), (proof, 2));
}
