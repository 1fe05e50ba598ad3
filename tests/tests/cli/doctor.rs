//! `tabellion doctor`: what is in order, what is not, and which command helps.

use std::fs;
use std::net::TcpListener;
use std::thread::sleep;
use std::time::{Duration, Instant};

use black_box::cli::{Dev, Ended, Folder};
use black_box::{FaultyService, Log, Ran, WitnessHome};
use serde_json::{Value, json};

/// How long witnesses may take.
const SOON: Duration = Duration::from_secs(60);
/// The exit code for something that is too old.
const STALE: i32 = 9;

/// The states of all findings of a check.
fn states(ended: &Ended, check: &str) -> Vec<String> {
    let json = ended.json();
    let findings = json["findings"].as_array().unwrap().iter().filter(|finding| finding["check"] == check);
    findings.map(|finding| finding["state"].as_str().unwrap().to_owned()).collect()
}

#[test]
fn a_running_dev_log_is_healthy() {
    let dev = Dev::start();
    let ended = dev.folder.run(&["doctor", "--json"]);
    assert_eq!(ended.must_end_with(0).json()["healthy"], true, "{ended}");
    for check in ["settings", "database", "log", "clock"] {
        assert!(states(&ended, check).contains(&"ok".to_owned()), "{check}: {ended}");
    }
    assert!(states(&ended, "disk").iter().all(|state| state != "failed"), "{ended}");
    assert_eq!(states(&ended, "witnesses"), ["warning"], "{ended}");
    let text = dev.folder.run(&["doctor"]).must_end_with(0).text();
    assert!(text.lines().any(|line| line.starts_with("ok       database")), "{text}");
    assert!(text.contains("try: tabellion witness add --help"), "{text}");
}

#[test]
fn a_log_that_does_not_answer_ends_with_7_and_names_the_command_that_starts_it() {
    let folder = Folder::new();
    let ended = folder.run(&["doctor", "--json", "--url", "http://127.0.0.1:1", "--timeout", "1"]);
    ended.must_end_with(7);
    assert_eq!(states(&ended, "settings"), ["skipped"], "{ended}");
    assert_eq!(states(&ended, "log"), ["failed"], "{ended}");
    let json: Value = ended.json();
    let log = json["findings"].as_array().unwrap().iter().find(|finding| finding["check"] == "log").unwrap();
    assert_eq!(log["try"], "tabellion serve --dev");
}

#[test]
fn a_missing_key_and_a_database_that_was_set_back_are_found() {
    let dev = Dev::start();
    let old = tempfile::tempdir().unwrap();
    let folder = dev.stop();
    let database = |name: &str| name.starts_with("log.db");
    copy(&folder.path("tabellion-dev"), old.path(), database);
    let dev = Dev::start_in(folder);
    dev.folder.write("a.json", "{\"n\":1}");
    dev.folder.run(&["register", "--dev", "a.json"]).must_end_with(0);
    let folder = dev.stop();
    let key = folder.path("tabellion-dev/receipt.key");
    let elsewhere = folder.path("receipt.key");
    fs::rename(&key, &elsewhere).unwrap();
    let missing = folder.run(&["doctor", "--json", "--timeout", "1"]);
    missing.must_end_with(2);
    assert!(states(&missing, "settings").contains(&"failed".to_owned()), "{missing}");
    fs::rename(&elsewhere, &key).unwrap();

    for name in ["log.db-wal", "log.db-shm"] {
        let _ = fs::remove_file(folder.path("tabellion-dev").join(name));
    }
    copy(old.path(), &folder.path("tabellion-dev"), database);
    let set_back = folder.run(&["doctor", "--json", "--timeout", "1"]);
    set_back.must_end_with(8);
    assert_eq!(states(&set_back, "database"), ["failed"], "{set_back}");
}

#[test]
fn a_lost_pin_and_a_lost_database_are_found() {
    let dev = Dev::start();
    dev.folder.write("a.json", "{\"n\":1}");
    dev.folder.run(&["register", "--dev", "a.json"]).must_end_with(0);
    let folder = dev.stop();
    let pins = tempfile::tempdir().unwrap();
    let home = folder.path("tabellion-dev");
    copy(&home, pins.path(), is_pin);
    for entry in fs::read_dir(pins.path()).unwrap() {
        fs::remove_file(home.join(entry.unwrap().file_name())).unwrap();
    }
    let lost = folder.run(&["doctor", "--json", "--timeout", "1"]);
    assert_eq!(states(&lost, "database"), ["failed"], "{lost}");
    assert!(lost.text().contains("tabellion help no-pin"), "{lost}");

    copy(pins.path(), &home, is_pin);
    for name in ["log.db", "log.db-wal", "log.db-shm"] {
        let _ = fs::remove_file(home.join(name));
    }
    let lost = folder.run(&["doctor", "--json", "--timeout", "1"]);
    lost.must_end_with(8);
    assert_eq!(states(&lost, "database"), ["failed"], "{lost}");
}

fn is_pin(name: &str) -> bool {
    name.starts_with("pin.")
}

/// The findings of a check: their states, and what was found.
fn findings(ran: &Ran, check: &str) -> Vec<(String, String)> {
    let json = ran.json();
    let findings = json["findings"].as_array().unwrap().iter().filter(|finding| finding["check"] == check);
    let text = |finding: &Value, name: &str| finding[name].as_str().unwrap().to_owned();
    findings.map(|finding| (text(finding, "state"), text(finding, "detail"))).collect()
}

#[test]
fn a_port_that_another_program_has_taken_is_found() {
    let log = Log::sqlite();
    let other = TcpListener::bind("127.0.0.1:0").unwrap();
    let address = other.local_addr().unwrap();
    log.configure(&format!("listen = \"{address}\""));
    let nothing = ["doctor", "--json", "--url", "http://127.0.0.1:1", "--timeout", "1"];
    let taken = log.tabellion(&nothing);
    let [(state, detail), (admin, _)] = &findings(&taken, "ports")[..] else { panic!("{taken}") };
    assert_eq!(admin, "ok", "{taken}");
    assert_eq!(state, "failed", "{taken}");
    assert!(detail.starts_with(&format!("cannot listen on {address}: ")), "{detail}");
    assert_eq!(taken.code, Some(1), "the port comes before the log that does not answer: {taken}");
    drop(other);
    let free = log.tabellion(&nothing);
    assert_eq!(findings(&free, "ports")[0], ("ok".to_owned(), format!("{address} is free")), "{free}");
}

#[test]
fn a_disk_with_too_little_space_is_found_for_the_database_and_for_the_state() {
    let log = Log::sqlite();
    let service = log.serve();
    let doctor = ["doctor", "--json", "--url", service.url()];
    let enough = log.tabellion(&doctor);
    assert!(findings(&enough, "disk").iter().all(|(state, _)| state != "failed"), "{enough}");
    log.configure("min_free_bytes = 4000000000000000000");
    let full = log.tabellion(&doctor);
    assert_eq!(full.code, Some(1), "{full}");
    let disk = findings(&full, "disk");
    for ((state, detail), of) in disk.iter().zip(["the database", "state_dir"]) {
        assert_eq!(state, "failed", "{full}");
        let expected = format!("are free for {of}, below min_free_bytes: registration is refused");
        assert!(detail.ends_with(&expected), "{detail}");
    }
    assert_eq!(disk.len(), 2, "{full}");
    service.stop();
}

#[test]
fn a_log_that_answers_and_is_not_the_one_of_the_database_is_found() {
    let (log, same_name, other) = (Log::sqlite(), Log::sqlite(), Dev::start());
    let (service, elsewhere) = (log.serve(), same_name.serve());
    for _ in 0..2 {
        service.connection().register(&log.statement());
    }
    elsewhere.connection().register(&testkit::opaque("elsewhere", &json!({})));
    let check = |url: &str| log.tabellion(&["doctor", "--json", "--url", url]);
    let own = until_found(|| check(service.url()), "ok", "is that of the database here");
    assert_eq!(own.code, Some(0), "{own}");
    assert!(findings(&own, "log").iter().all(|(state, _)| state == "ok"), "{own}");

    let fails_with = |url: &str, what: &str| until_found(|| check(url), "failed", what).code;
    assert_eq!(fails_with(other.url(), "is configured here"), Some(1));
    let another = "has another tree of size 2 than the database here";
    assert_eq!(fails_with(elsewhere.url(), another), Some(1));
    for _ in 0..2 {
        elsewhere.connection().register(&same_name.statement());
    }
    let longer = "has signed size 4, and the database here has size 3";
    assert_eq!(fails_with(elsewhere.url(), longer), Some(1));
    service.stop();
    elsewhere.stop();
}

#[test]
fn a_database_of_postgresql_that_is_behind_and_not_of_the_log_that_answers_is_found() {
    let (log, same_name) = (Log::postgres(), Log::postgres());
    let (service, elsewhere) = (log.serve(), same_name.serve());
    service.connection().register(&log.statement());
    elsewhere.connection().register(&testkit::opaque("elsewhere", &json!({})));
    elsewhere.connection().register(&same_name.statement());
    let check = || log.tabellion(&["doctor", "--json", "--url", elsewhere.url()]);
    let what = "has signed size 3, and another tree of size 2 than the database here";
    assert_eq!(until_found(check, "failed", what).code, Some(1));
    service.stop();
    elsewhere.stop();
}

#[test]
fn a_database_of_postgresql_that_is_behind_the_log_that_answers_and_part_of_it_is_a_warning() {
    let log = Log::postgres();
    let service = log.serve();
    service.connection().register(&log.statement());
    let check = |url: &str| log.tabellion(&["doctor", "--json", "--url", url]);
    // From then on, the log lists the tree of the database, to be compared.
    until_found(|| check(service.url()), "ok", "its tree of size 2 is that of the database here");
    let ahead = FaultyService::of(service.connection().address(), |request, answer| {
        if request.path.starts_with("/v1/checkpoints?order=newest") {
            let mut page = answer.json();
            if let Some(newest) = page["checkpoints"].get_mut(0) {
                newest["size"] = json!(9);
            }
            answer.body = page.to_string().into_bytes();
        }
    });
    let what = "has signed size 9, and the database here has size 2";
    let behind = until_found(|| check(&ahead.url()), "warning", what);
    assert_eq!(behind.code, Some(0), "{behind}");
    service.stop();
}

#[test]
fn a_log_that_answers_and_does_not_list_its_signed_trees_still_answers() {
    let log = Log::sqlite();
    let service = log.serve();
    let proxy = FaultyService::of(service.connection().address(), |request, answer| {
        if request.path.starts_with("/v1/checkpoints") {
            answer.status = 403;
        }
    });
    let ran = log.tabellion(&["doctor", "--json", "--url", &proxy.url()]);
    let [(compared, _), (answers, _)] = &findings(&ran, "log")[..] else { panic!("{ran}") };
    assert_eq!([compared, answers], ["failed", "ok"], "{ran}");
    assert_eq!(findings(&ran, "clock")[0].0, "ok", "{ran}");
    service.stop();
}

/// Asks until there is such a finding about the log: a signature is listed a moment after its receipt.
#[track_caller]
fn until_found(check: impl Fn() -> Ran, state: &str, what: &str) -> Ran {
    let begun = Instant::now();
    loop {
        let ran = check();
        if findings(&ran, "log").iter().any(|(found, detail)| found == state && detail.contains(what)) {
            return ran;
        }
        assert!(begun.elapsed() < SOON, "no {what}: {ran}");
        sleep(Duration::from_millis(100));
    }
}

#[test]
fn witnesses_that_cosign_are_in_order_and_without_their_quorum_the_exit_code_says_so() {
    let log = Log::sqlite();
    let home = WitnessHome::of(&[&log.vkey()]);
    let witness = home.serve();
    let url = witness.url();
    let add = ["witness", "add", "w1", witness.vkey(), &url, "--policy", "witnesses.txt", "--quorum", "1"];
    log.tabellion(&add).must_succeed();
    log.configure("witness_policy = \"witnesses.txt\"\nwitness_interval_seconds = 1");
    let service = log.serve();
    let doctor = ["doctor", "--json", "--url", service.url()];
    let until = |expected: (&str, &str)| {
        let begun = Instant::now();
        loop {
            let ran = log.tabellion(&doctor);
            let found = findings(&ran, "witnesses");
            if found == [(expected.0.to_owned(), expected.1.to_owned())] {
                return ran;
            }
            assert!(begun.elapsed() < SOON, "{ran}");
            sleep(Duration::from_millis(100));
        }
    };
    let well = until(("ok", "1 cosigns"));
    assert_eq!(well.code, Some(0), "{well}");
    witness.stop();
    let late = until(("failed", "the quorum is not met; late: w1"));
    assert_eq!((late.code, &late.json()["healthy"]), (Some(STALE), &json!(false)), "{late}");
    service.stop();
}

fn copy(from: &std::path::Path, to: &std::path::Path, is_wanted: impl Fn(&str) -> bool) {
    for entry in fs::read_dir(from).unwrap().flatten() {
        if is_wanted(&entry.file_name().to_string_lossy()) {
            fs::copy(entry.path(), to.join(entry.file_name())).unwrap();
        }
    }
}
