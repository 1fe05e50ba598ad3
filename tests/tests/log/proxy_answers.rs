//! What a proxy answers in place of the log: a command says so, and does not take it for an answer of the log.
//!
//! Not here: answers that violate SCRAPI (`conformance`), and streams, which the client's own tests cut short.

use black_box::{Answer, FaultyService, Log, Service};

/// A log with one entry, and `trust.toml` that trusts it. Returns the entry's ID.
fn log_with_an_entry(log: &Log) -> (Service, String) {
    let service = log.serve();
    let statement = log.statement();
    assert_eq!(service.connection().post(statement.bytes()).status, 201);
    let kid = log.tabellion(&["key", "show", "--json"]).json()["receipt"]["kid"].as_str().unwrap().to_owned();
    let trust = ["trust", "add", "log", "--trust", "trust.toml", "--kid", &kid, "--url", service.url()];
    log.tabellion(&trust).must_succeed();
    (service, statement.digest().to_string())
}

/// Commands that read the entry from the log.
fn reading_commands(entry: &str) -> Vec<Vec<&str>> {
    vec![
        vec!["receipt", "get", entry, "--output", "fetched"],
        vec!["entry", "get", entry],
        vec!["entry", "list"],
        vec!["entry", "search", "--subject", "s"],
        vec!["session", "show", "s"],
        vec!["agent", "view", "did:example:a", "--trust", "trust.toml"],
        vec!["vrf", "fetch", "7d0fae86-3a5c-4b0e-9c55-0f6a1c1d2e3f", "--trust", "trust.toml"],
        vec!["audit", "--trust", "trust.toml"],
    ]
}

/// Starts a proxy that changes every answer.
fn proxy(service: &Service, mut fault: impl FnMut(&mut Answer) + Send + 'static) -> FaultyService {
    FaultyService::of(service.connection().address(), move |_, answer| fault(answer))
}

/// Runs each command through the proxy; each must end with this exit code and this code of the error.
#[track_caller]
fn each_must_fail(log: &Log, commands: &[Vec<&str>], proxy: &FaultyService, exit: i32, code: &str) {
    let (url, patience) = (proxy.url(), ["--timeout", "1", "--json"]);
    for command in commands {
        let ran = log.tabellion(&[&command[..], &["--url", &url], &patience].concat());
        ran.must_fail(exit, code);
        assert!(!log.path("fetched").exists(), "{command:?} has written what is no receipt");
    }
}

#[test]
fn a_page_with_status_200_is_no_answer_of_the_log() {
    let log = Log::sqlite();
    let (service, entry) = log_with_an_entry(&log);
    let commands = reading_commands(&entry);
    let login = proxy(&service, |answer| {
        answer.status = 200;
        answer.set_header("content-type", Some("text/html"));
        answer.body = b"<html><body>Please log in</body></html>".to_vec();
    });
    each_must_fail(&log, &commands, &login, 1, "nonsense");
    let null = proxy(&service, |answer| {
        answer.status = 200;
        answer.body = b"{\"title\":\"Not really\"}".to_vec();
    });
    each_must_fail(&log, &commands, &null, 1, "nonsense");
    service.stop();
}

#[test]
fn a_proxy_without_its_service_is_told_from_a_registration_in_progress() {
    let log = Log::sqlite();
    let (service, entry) = log_with_an_entry(&log);
    let commands = reading_commands(&entry);
    let gone = proxy(&service, |answer| {
        answer.status = 503;
        answer.set_header("content-type", Some("text/html"));
        answer.set_header("retry-after", Some("99999999"));
        answer.body = b"<html><body>No server is available</body></html>".to_vec();
    });
    let (audits, others): (Vec<_>, Vec<_>) = commands.into_iter().partition(|command| command[0] == "audit");
    each_must_fail(&log, &others, &gone, 7, "try-again");
    each_must_fail(&log, &audits, &gone, 7, "unreachable");
    service.stop();
}

#[test]
fn a_redirect_is_not_followed_and_the_error_says_where_the_service_is() {
    let log = Log::sqlite();
    let (service, _) = log_with_an_entry(&log);
    let moved = proxy(&service, |answer| {
        answer.status = 301;
        answer.set_header("content-type", Some("text/html"));
        answer.set_header("location", Some("https://log.example/v1/entries"));
        answer.body.clear();
    });
    let ran = log.tabellion(&["entry", "list", "--url", &moved.url(), "--json"]);
    ran.must_fail(6, "refused");
    assert!(ran.stderr.contains("https://log.example/v1/entries"), "{ran}");
    service.stop();
}

#[test]
fn an_entry_is_the_requested_one() {
    let log = Log::sqlite();
    let (service, entry) = log_with_an_entry(&log);
    let commands = reading_commands(&entry);
    let other = "0".repeat(64);
    let swapped = proxy(&service, move |answer| {
        answer.body = format!("{{\"entry_id\":\"{other}\",\"index\":0}}").into_bytes();
    });
    let get: Vec<_> = commands.into_iter().filter(|command| command[..2] == ["entry", "get"]).collect();
    assert_eq!(get.len(), 1);
    each_must_fail(&log, &get, &swapped, 1, "nonsense");
    service.stop();
}
