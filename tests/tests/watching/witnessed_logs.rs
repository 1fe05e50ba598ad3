//! A log and its witnesses as processes: partitions, a lost pin, an old backup.

use std::fs;
use std::time::Duration;

use black_box::{Log, Outcome, Recorder, Service, WitnessHome, WitnessProcess, on_both_databases, sql};
use merkle::TreeSize;
use rustix::process::Signal;
use scitt::SignedStatement;
use serde_json::{Value, json};
use tlog::note::Note;
use tlog::policy::WitnessPolicy;

/// What waits for a witness that hangs: the log gives it ten seconds.
const PATIENCE: Duration = Duration::from_secs(90);

on_both_databases! {
    fn r34_cut_off_from_its_witnesses_a_log_goes_on_and_each_of_them_catches_up(log: Log) {
        let (policy, _homes, witnesses) = witnessed(&log, 2);
        let recorder = Recorder::new();
        let service = log.serve();
        let first = register(&recorder, &service, &log);
        until_served(&service, &policy, first, 3);

        // From one of three.
        witnesses[2].signal(Signal::STOP);
        let second = register(&recorder, &service, &log);
        until_served(&service, &policy, second, 2);

        // From all of them.
        witnesses.iter().for_each(|witness| witness.signal(Signal::STOP));
        for _ in 0..40 {
            register(&recorder, &service, &log);
        }
        let last = register(&recorder, &service, &log);
        until("it is said that the quorum is not met", || {
            let ran = status(&log, &service);
            ran.code == Some(9) && ran.json()["witnesses"][0]["trouble"]["code"] == json!("unreachable")
        });
        assert_eq!(size_of(&served(&service).unwrap()), second, "what met the quorum last is still served");
        assert_eq!(service.admin().get("/readyz").status, 200, "nobody waits for witnesses");
        assert!(metric(&service, "tabellion_witness_errors_total{code=\"unreachable\",witness=\"w1\"}") > 0.0);

        witnesses.iter().for_each(|witness| witness.signal(Signal::CONT));
        until_served(&service, &policy, last, 3);
        until("it is said that the quorum is met", || status(&log, &service).code == Some(0));
        for name in ["w1", "w2", "w3"] {
            let line = format!("tabellion_witness_cosigned_size_leaves{{witness=\"{name}\"}}");
            until("the metric follows", || metric(&service, &line) == last as f64);
        }
        service.stop();
    }

    fn r43_an_old_backup_without_its_pin_is_refused_by_what_a_witness_has_seen(log: Log) {
        let (policy, _homes, mut witnesses) = witnessed(&log, 2);
        let recorder = Recorder::new();
        let service = log.serve();
        let known = log.statement();
        assert_eq!(recorder.register(&mut service.connection(), &known), Outcome::Registered);
        until_served(&service, &policy, 2, 3);
        service.stop();
        let backup = log.database().back_up();
        let service = log.serve();
        let size = (0..20).map(|_| register(&recorder, &service, &log)).last().unwrap();
        until_served(&service, &policy, size, 3);
        service.stop();

        log.database().restore(&backup);
        fs::remove_dir_all(log.path("state")).unwrap();
        // One witness that answers is enough to refuse.
        witnesses.drain(..2).for_each(WitnessProcess::stop);
        let service = log.serve();
        let said = format!("the database is at 2, this log has signed {size}: the witness w3 has seen it");
        refuses(&service, &log, &known, &said);
        service.stop();

        // With nobody to ask, a person has to say up to where the log was signed.
        witnesses.drain(..).for_each(WitnessProcess::stop);
        let service = log.serve();
        refuses(&service, &log, &known, "there is no pin");
        service.stop();
        assert!(log.pins().is_empty(), "nothing was adopted by itself");
    }

    fn without_its_pin_a_log_starts_on_the_word_of_its_witnesses(log: Log) {
        let (policy, _homes, _witnesses) = witnessed(&log, 2);
        let recorder = Recorder::new();
        let service = log.serve();
        let size = register(&recorder, &service, &log);
        until_served(&service, &policy, size, 3);
        service.stop();
        fs::remove_dir_all(log.path("state")).unwrap();
        let service = log.serve();
        assert!(service.said().contains("starting without a usable pin: enough witnesses confirmed the newest head"), "{}", service.said());
        let size = register(&recorder, &service, &log);
        until_served(&service, &policy, size, 3);
        service.stop();
        log.must_be_sound();
    }
}

#[test]
fn r31_a_paused_leader_that_wakes_is_not_frightened_by_what_its_successor_showed() {
    let log = Log::postgres();
    let (policy, _homes, _witnesses) = witnessed(&log, 2);
    let recorder = Recorder::new();
    let first = log.serve();
    let size = register(&recorder, &first, &log);
    until_served(&first, &policy, size, 3);
    let second = log.serve();
    until_served(&second, &policy, size, 3);
    first.signal(Signal::STOP);
    // The paused process keeps its connections: only the server can end its lease.
    let end = "SELECT pg_terminate_backend(pid) FROM pg_stat_activity \
               WHERE datname = current_database() AND pid <> pg_backend_pid()";
    sql(&log.database().url(), end);
    until("the other leads", || metric(&second, "tabellion_storage_fence_epoch ") > 0.0);
    let size = (0..5).map(|_| register(&recorder, &second, &log)).last().unwrap();
    until_served(&second, &policy, size, 3);
    first.signal(Signal::CONT);
    let size = register(&recorder, &second, &log);
    until_served(&second, &policy, size, 3);
    until_served(&first, &policy, size, 3);
    for service in [&first, &second] {
        let ready = service.admin().get("/readyz");
        assert_eq!(ready.status, 200, "{}", String::from_utf8_lossy(&ready.body));
    }
    first.stop();
    second.stop();
}

#[test]
fn witnesses_are_written_down_one_by_one_and_listed() {
    let log = Log::sqlite();
    let none = log.tabellion(&["witness", "list"]);
    assert!(none.code == Some(2) && none.stderr.contains("no-witness-policy"), "{none}");
    let homes: Vec<_> = (0..2).map(|_| WitnessHome::of(&[&log.vkey()])).collect();
    let keys: Vec<_> = homes.iter().map(|home| home.serve().vkey().to_owned()).collect();
    let add = |name: &str, key: &str, more: &[&str]| {
        let fixed = ["witness", "add", name, key, "http://127.0.0.1:1", "--policy", "witnesses.txt"];
        log.tabellion(&[&fixed[..], more].concat())
    };
    add("w1", &keys[0], &[]).must_succeed();
    let text = fs::read_to_string(log.path("witnesses.txt")).unwrap();
    fs::write(log.path("witnesses.txt"), format!("# ours\n{text}")).unwrap();
    log.configure("witness_policy = \"witnesses.txt\"");
    assert_eq!(log.tabellion(&["witness", "list", "--json"]).json()["quorum"], Value::Null);
    for (name, key) in [("w1", keys[1].as_str()), ("w2", &keys[0]), ("a b", &keys[1]), ("w2", "x")] {
        let refused = add(name, key, &[]);
        assert!(refused.code == Some(2) && refused.stderr.contains("witness-not-added"), "{refused}");
    }
    assert_eq!(add("w2", &keys[1], &["--quorum", "3"]).code, Some(2), "two witnesses are not three");
    let listed = add("w2", &keys[1], &["--quorum", "2", "--json"]);
    assert_eq!(listed.must_succeed().json()["rule"], json!(["group witnesses 2 w1 w2", "quorum witnesses"]));
    let text = fs::read_to_string(log.path("witnesses.txt")).unwrap();
    assert!(text.starts_with("# ours\nwitness w1 "), "{text}");
    let shown = log.tabellion(&["witness", "list"]);
    assert!(
        shown.stdout.contains("w2  http://127.0.0.1:1") && shown.stdout.contains("quorum   witnesses"),
        "{shown}"
    );
    log.tabellion(&["config", "check"]).must_succeed();
    fs::write(log.path("witnesses.txt"), "quorum\n").unwrap();
    let refused = log.tabellion(&["config", "check"]);
    assert!(refused.code == Some(2) && refused.stderr.contains("witness_policy"), "{refused}");
}

/// Three witnesses that know the log, of which so many must cosign.
pub fn witnessed(log: &Log, k: usize) -> (WitnessPolicy, Vec<WitnessHome>, Vec<WitnessProcess>) {
    let homes: Vec<_> = (0..3).map(|_| WitnessHome::of(&[&log.vkey()])).collect();
    let witnesses: Vec<_> = homes.iter().map(WitnessHome::serve).collect();
    for (n, witness) in (1..).zip(&witnesses) {
        let (name, k) = (format!("w{n}"), k.min(n).to_string());
        let url = witness.url();
        let to = ["--policy", "witnesses.txt", "--quorum", &k];
        let add = [&["witness", "add", &name, witness.vkey(), &url], &to[..]].concat();
        log.tabellion(&add).must_succeed();
    }
    // Whatever else this machine does, a registration is waited for.
    let settings =
        "witness_policy = \"witnesses.txt\"\nwitness_interval_seconds = 2\nanswer_within_ms = 25000";
    log.configure(settings);
    let text = fs::read_to_string(log.path("witnesses.txt")).unwrap();
    (text.parse().unwrap(), homes, witnesses)
}

/// Registers one more statement; gives the size of the tree that its receipt is of.
#[track_caller]
fn register(recorder: &Recorder, service: &Service, log: &Log) -> u64 {
    let statement = log.statement();
    let mut connection = service.connection();
    assert_eq!(recorder.register(&mut connection, &statement), Outcome::Registered);
    let receipt = connection.get(&format!("/entries/{}", statement.digest())).body;
    scitt::Receipt::parse(receipt).unwrap().signed_tree_size().map(TreeSize::get).unwrap()
}

fn served(service: &Service) -> Option<Note> {
    let answer = service.connection().get("/checkpoint");
    (answer.status == 200).then(|| Note::parse(&answer.body).unwrap())
}

fn size_of(note: &Note) -> u64 {
    note.text().lines().nth(1).unwrap().parse().unwrap()
}

/// Until the checkpoint of this size, cosigned by so many, is the one that is served.
#[track_caller]
pub fn until_served(service: &Service, policy: &WitnessPolicy, size: u64, by: usize) {
    until("the checkpoint is served", || {
        served(service).is_some_and(|note| size_of(&note) == size && policy.judge(&note).cosigned.len() == by)
    });
}

#[track_caller]
fn refuses(service: &Service, log: &Log, known: &SignedStatement, said: &str) {
    let ready = service.admin().get("/readyz");
    let text = String::from_utf8_lossy(&ready.body);
    assert!(ready.status == 503 && text.contains(said), "{text}");
    assert_eq!(service.connection().post(log.statement().bytes()).status, 503);
    assert_eq!(service.connection().get(&format!("/entries/{}", known.digest())).status, 200, "reads go on");
}

fn status(log: &Log, service: &Service) -> black_box::Ran {
    log.tabellion(&["witness", "status", "--json", "--url", service.url()])
}

fn metric(service: &Service, name: &str) -> f64 {
    let text = String::from_utf8(service.admin().get("/metrics").body).unwrap();
    let value = text.lines().find_map(|line| line.strip_prefix(name)?.trim().parse().ok());
    value.unwrap_or(0.0)
}

#[track_caller]
fn until(what: &str, is_so: impl FnMut() -> bool) {
    black_box::until(PATIENCE, || format!("never: {what}"), is_so);
}
