//! `tabellion doctor`: what is in order, what is not, and which command helps.

use std::fs;

use black_box::cli::{Dev, Ended, Folder};
use serde_json::Value;

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

fn copy(from: &std::path::Path, to: &std::path::Path, is_wanted: impl Fn(&str) -> bool) {
    for entry in fs::read_dir(from).unwrap().flatten() {
        if is_wanted(&entry.file_name().to_string_lossy()) {
            fs::copy(entry.path(), to.join(entry.file_name())).unwrap();
        }
    }
}
