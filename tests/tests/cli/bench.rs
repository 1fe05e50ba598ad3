//! `tabellion bench`: a short measurement of both databases, its files, comparisons, and a grown log.

use black_box::cli::{Ended, Folder};
use black_box::{fresh_database, shared_server};
use serde_json::Value;

/// Entries of the grown logs: more than one batch of 4096.
const ENTRIES: u64 = 5_000;

/// Options of a measurement that takes seconds.
const SHORT: [&str; 8] = ["--rounds", "1", "--seconds", "1", "--clients", "1,4", "--bytes", "512"];

/// Runs a command that may take longer than others.
fn run(folder: &Folder, arguments: &[&str]) -> Ended {
    folder.command(arguments).output().unwrap().into()
}

fn measure(folder: &Folder, more: &[&str]) -> Value {
    run(folder, &[&["bench", "run", "--json"], &SHORT[..], more].concat()).must_end_with(0).json()
}

fn is_positive(value: &Value) -> bool {
    value.as_f64().is_some_and(|number| number > 0.0)
}

#[test]
fn a_short_measurement_has_figures_of_both_databases_and_all_yardsticks() {
    let folder = Folder::new();
    let databases = format!("sqlite,{}", shared_server());
    let types = "application/octet-stream,application/vrf+json";
    let files = ["--output", "a.json", "--html", "a.html"];
    let options = ["--db", &databases, "--types", types, "--offered", "2x"];
    let result = measure(&folder, &[&options[..], &files].concat());
    for (database, name) in result["databases"].as_array().unwrap().iter().zip(["sqlite", "postgres"]) {
        assert_eq!(database["database"], name);
        let round = &database["rounds"][0];
        let (log, yardsticks) = (&round["log"], &round["yardsticks"]);
        assert!(is_positive(&yardsticks["raw"]["rows_per_second"]), "{round}");
        assert!(is_positive(&yardsticks["echo"][1]["per_second"]), "{round}");
        for load in
            [&log["closed"][0], &log["closed"][1], &log["open"][0], &log["types"][0]["load"], &log["proofs"]]
        {
            assert!(is_positive(&load["per_second"]) && is_positive(&load["p99_ms"]), "{load}");
            assert_eq!(load["others"], serde_json::json!({}), "{load}");
        }
        assert!(is_positive(&log["closed"][1]["cpu"]["service_us"]), "{round}");
        assert_eq!(log["counts"]["signatures_per_batch"], 2.0, "{round}");
        assert_eq!(is_positive(&log["counts"]["wal_bytes"]), name == "postgres", "{round}");
        assert_eq!(log["stages"].as_array().unwrap().len(), 6, "{round}");
        assert!(is_positive(&log["memory_bytes"]) && is_positive(&log["restart_ms"]), "{round}");
    }
    let page = String::from_utf8(folder.read("a.html")).unwrap();
    assert!(page.contains("<svg") && page.contains("postgres, medians of 1 rounds"), "{page}");
    a_result_does_not_differ_from_itself(&folder);
}

fn a_result_does_not_differ_from_itself(folder: &Folder) {
    let comparison = folder.run(&["bench", "compare", "a.json", "a.json", "--json"]).must_end_with(0).json();
    let figures = comparison["databases"][1]["figures"].as_array().unwrap();
    assert!(figures.len() > 30, "{comparison}");
    assert!(figures.iter().all(|figure| figure["change"] == "unchanged"), "{comparison}");
    let text = folder.run(&["bench", "compare", "a.json", "a.json"]).must_end_with(0).text();
    assert!(text.contains("registrations, 4 clients") && text.contains("1.000"), "{text}");
}

#[test]
fn several_processes_and_a_peer_are_measured_on_postgresql() {
    let folder = Folder::new();
    let program = black_box::program().display().to_string();
    let port = black_box::free_address().port();
    let peer = format!("127.0.0.1:{port}/entries {program} bench echo {port}");
    let options = ["--db", &shared_server(), "--processes", "2", "--peer", &peer];
    let result = measure(&folder, &options);
    let round = &result["databases"][0]["rounds"][0];
    assert!(is_positive(&round["yardsticks"]["peer"][1]["cpu"]["service_us"]), "{round}");
    assert!(is_positive(&round["log"]["closed"][1]["per_second"]), "{round}");
    assert_eq!(result["settings"]["processes"], 2);
}

#[test]
fn a_grown_log_is_sound_and_can_be_measured_on_sqlite() {
    let folder = Folder::new();
    a_grown_log_is_sound_and_can_be_measured(&folder, &[]);
}

#[test]
fn a_grown_log_is_sound_and_can_be_measured_on_postgresql() {
    let folder = Folder::new();
    let database = fresh_database(&shared_server());
    a_grown_log_is_sound_and_can_be_measured(&folder, &["--db", &database]);
}

fn a_grown_log_is_sound_and_can_be_measured(folder: &Folder, database: &[&str]) {
    let size = ENTRIES.to_string();
    let grow = [&["bench", "grow", &size, "--folder", "large", "--json"], database].concat();
    let grown = run(folder, &grow).must_end_with(0).json();
    assert_eq!(grown["size"], ENTRIES + 1, "the entries and the first policy: {grown}");
    let fsck = ["log", "fsck", "--deep", "--config", "large/tabellion.toml", "--json"];
    let report = run(folder, &fsck).must_end_with(0).json();
    assert_eq!((&report["clean"], &report["size"]), (&true.into(), &grown["size"]), "{report}");
    let result = measure(folder, &["--existing", "large"]);
    let log = &result["databases"][0]["rounds"][0]["log"];
    assert!(log["leaves"].as_u64().unwrap() > ENTRIES, "{log}");
    assert_eq!(log["proofs"]["others"], serde_json::json!({}), "every grown entry has a receipt: {log}");
    assert_eq!(run(folder, &grow).must_end_with(10).error(), "log-exists");
    run(folder, &fsck).must_end_with(0);
}

#[test]
fn every_kind_of_page_is_measured_on_sqlite() {
    let folder = Folder::new();
    every_kind_of_page_is_measured(&folder, "sqlite", &[]);
}

#[test]
fn every_kind_of_page_is_measured_on_postgresql() {
    let folder = Folder::new();
    let database = fresh_database(&shared_server());
    every_kind_of_page_is_measured(&folder, "postgres", &["--db", &database]);
}

fn every_kind_of_page_is_measured(folder: &Folder, name: &str, database: &[&str]) {
    let size = ENTRIES.to_string();
    let options = ["--folder", "large", "--rounds", "2", "--json"];
    let make = [&["bench", "pages", "--entries", &size], &options[..], database].concat();
    let result = run(folder, &make).must_end_with(0).json();
    assert_eq!((&result["database"], &result["rounds"]), (&name.into(), &2.into()), "{result}");
    assert!(result["leaves"].as_u64().unwrap() > ENTRIES + 300, "a session and a chain were added: {result}");
    let pages = result["pages"].as_array().unwrap();
    for page in pages {
        let times = ["first_ms", "p50_ms", "p99_ms", "worst_ms"].map(|time| &page[time]);
        assert!(times.iter().all(|time| is_positive(time)) && is_positive(&page["bytes"]), "{page}");
        let [_, p50, p99, worst] = times.map(|time| time.as_f64().unwrap());
        assert!(p50 <= p99 && p99 <= worst, "{page}");
    }
    for (page, rows) in PAGE_ROWS {
        let found = pages.iter().find(|found| found["page"] == *page);
        let found = found.unwrap_or_else(|| panic!("{page} is not measured: {result}"));
        assert_eq!(found["rows"], *rows, "{found}");
    }
    let again = [&["bench", "pages"], &options[..4]].concat();
    let text = run(folder, &again).must_end_with(0).text();
    assert!(text.contains(" 2 rounds") && text.contains("search, issuer, middle"), "{text}");
    assert!(text.contains("median of each page at most 50 ms"), "{text}");
    let rows = text.lines().filter(|line| line.starts_with("session, ")).count();
    assert_eq!(rows, 3, "{text}");
}

/// Pages of lists, with the rows that each of them shows.
const PAGE_ROWS: &[(&str, u64)] = &[
    ("start", 10),
    ("search, newest", 50),
    ("search, middle", 50),
    ("search, oldest", 50),
    ("search, issuer, newest", 50),
    ("search, issuer, middle", 50),
    ("search, issuer, oldest", 50),
    ("search, content type, middle", 50),
    ("search, agent, newest", 50),
    ("search, agent, middle", 50),
    ("search, agent, oldest", 50),
    ("search, beginning of a subject", 10),
    ("session, first", 50),
    ("session, middle", 50),
    ("session, last", 50),
    ("chain of receipts", 150),
    ("checkpoints, newest", 25),
    ("checkpoints, middle", 25),
];

#[test]
fn what_cannot_be_measured_or_compared_is_refused_with_the_reason() {
    let folder = Folder::new();
    folder.write("b.json", "{}");
    let refused = |arguments: &[&str]| {
        let ended = run(&folder, &[arguments, &["--json"]].concat());
        ended.must_end_with(1);
        (ended.error(), ended.stderr.clone())
    };
    let (code, text) = refused(&["bench", "compare", "b.json", "b.json"]);
    assert_eq!(code, "no-bench-result");
    assert!(text.contains("b.json"), "{text}");
    for (options, part) in [
        (["--types", "image/png"], "image/png"),
        (["--processes", "2"], "PostgreSQL"),
        (["--clients", "64,1"], "ascending"),
        (["--existing", "nowhere"], "nowhere"),
    ] {
        let (code, text) = refused(&[&["bench", "run"], &options[..]].concat());
        assert_eq!(code, "bench-failed");
        assert!(text.contains(part), "{text}");
    }
    run(&folder, &["bench", "run", "--offered", "-1"]).must_end_with(2);
    run(&folder, &["bench", "pages", "--db", "postgres://me@127.0.0.1/log"]).must_end_with(2);
    assert!(refused(&["bench", "pages", "--folder", "nowhere"]).1.contains("nowhere"));
    for [entries, rounds] in [["0", "1"], ["9", "0"]] {
        let made = ["bench", "pages", "--folder", "new", "--entries", entries, "--rounds", rounds];
        run(&folder, &made).must_end_with(2);
        assert!(!folder.has("new"), "{entries} entries, {rounds} rounds");
    }
}
