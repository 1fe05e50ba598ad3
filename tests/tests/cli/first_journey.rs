//! The command line against a running service, as a person or a script uses it: results, exit codes, reruns.

use std::fs;
use std::process::{Command, Stdio};
use std::thread::sleep;
use std::time::{Duration, Instant};

use black_box::{Log, OwnedChild, Ran, Recorder, Service, on_both_databases};
use serde_json::Value;

/// Files of a batch.
const FILES: usize = 150;
/// How many must have a receipt before the batch is killed.
const SOME: usize = 20;

/// A client's folder is the log's own; its trust is in `trust.toml`.
fn register(log: &Log, service: &Service, files: &[&str]) -> Ran {
    let flags =
        ["register", "--json", "--key", "issuer.pem", "--trust", "trust.toml", "--url", service.url()];
    log.tabellion(&[&flags[..], files].concat())
}

fn verify(log: &Log, arguments: &[&str]) -> Ran {
    log.tabellion(&[&["verify", "--json", "--trust", "trust.toml"], arguments].concat())
}

/// An issuer whose name is its key, and whom the verifier believes.
fn with_issuer(log: &Log) {
    let made = log.tabellion(&["issuer", "new", "--output", "issuer.pem", "--alg", "EdDSA", "--json"]).json();
    let did = made["did_key"].as_str().unwrap();
    let anchor = ["trust", "add", "issuer", "--iss", did, "--key", "issuer.pem", "--trust", "trust.toml"];
    log.tabellion(&anchor).must_succeed();
    fs::write(log.path("hello.json"), r#"{"action":"deploy","verdict":"allow"}"#).unwrap();
}

#[track_caller]
fn expect(ran: &Ran, code: i32, reason: &str) {
    assert_eq!(ran.code, Some(code), "{ran}");
    assert_eq!(ran.json()["reason"], reason, "{ran}");
}

on_both_databases! {
    fn what_is_registered_verifies_with_the_service_gone_and_every_change_is_seen(log: Log) {
        with_issuer(&log);
        let service = log.serve();
        register(&log, &service, &["hello.json"]).must_succeed();
        service.stop();
        verify(&log, &["hello.json.transparent.cose"]).must_succeed();
        verify(&log, &["hello.json.transparent.cose", "--payload", "hello.json"]).must_succeed();
        verify(&log, &["hello.json.cose", "--receipt", "hello.json.receipt"]).must_succeed();

        fs::write(log.path("denied.json"), r#"{"action":"deploy","verdict":"deny"}"#).unwrap();
        let changed = verify(&log, &["hello.json.transparent.cose", "--payload", "denied.json"]);
        expect(&changed, 3, "payload-digest-mismatch");
        let whole = fs::read(log.path("hello.json.transparent.cose")).unwrap();
        let at = whole.windows(5).position(|five| five == b"allow").unwrap();
        let mut tampered = whole.clone();
        tampered[at..at + 5].copy_from_slice(b"allou");
        fs::write(log.path("tampered.cose"), tampered).unwrap();
        let tampered = verify(&log, &["tampered.cose"]);
        assert_eq!(tampered.code, Some(3), "{tampered}");
        let failed = checks(&tampered, "failed");
        assert!(failed.iter().any(|name| name.contains("issuer")), "says which check failed: {tampered}");

        verify(&log, &["hello.json"]).must_succeed();
        fs::copy(log.path("hello.json.cose"), log.path("alone.cose")).unwrap();
        assert_eq!(verify(&log, &["alone.cose"]).code, Some(4), "no receipt");
        fs::write(log.path("empty.toml"), "").unwrap();
        let nobody = log.tabellion(&["verify", "hello.json.transparent.cose", "--trust", "empty.toml"]);
        assert_eq!(nobody.code, Some(4), "{nobody}");
    }

    fn a_batch_that_is_killed_half_way_is_finished_by_running_it_again(log: Log) {
        with_issuer(&log);
        let files: Vec<String> = (0..FILES).map(|n| format!("file-{n}.json")).collect();
        for (n, file) in files.iter().enumerate() {
            fs::write(log.path(file), format!("{{\"n\":{n}}}")).unwrap();
        }
        let files: Vec<&str> = files.iter().map(String::as_str).collect();
        let service = log.serve();
        let done = register_and_kill(&log, &service, &files);
        assert!(done < FILES, "it was killed too late");
        let again = register(&log, &service, &files);
        let registered = again.must_succeed().json()["registered"].as_array().unwrap().clone();
        assert_eq!(registered.len(), FILES);
        let fresh = registered.iter().filter(|done| done["fresh"] == true).count();
        assert!(fresh <= FILES - SOME, "only what was missing: {fresh}");
        let once_more = register(&log, &service, &files).must_succeed().json();
        assert!(once_more["registered"].as_array().unwrap().iter().all(|done| done["fresh"] == false));
        let listed = service.connection().get("/v1/entries?limit=1000").json();
        assert_eq!(listed["entries"].as_array().unwrap().len(), 1 + FILES, "each file is one leaf");
        service.stop();
        log.must_be_sound();
        for file in files {
            verify(&log, &[&format!("{file}.transparent.cose"), "--payload", file]).must_succeed();
        }
    }
}

fn checks(ran: &Ran, state: &str) -> Vec<String> {
    let checks = ran.json()["checks"].as_array().unwrap().clone();
    let found = checks.iter().filter(|check| check["state"] == state);
    found.map(|check| check["name"].as_str().unwrap().to_owned()).collect()
}

/// Kills the client once some files are done; gives how many then were.
fn register_and_kill(log: &Log, service: &Service, files: &[&str]) -> usize {
    let mut command: Command = log.command();
    command
        .args(["register", "--key", "issuer.pem", "--trust", "trust.toml", "--url", service.url()])
        .args(files);
    let mut child = command.stdout(Stdio::null()).stderr(Stdio::null()).spawn().unwrap();
    let done = || files.iter().filter(|file| log.path(&format!("{file}.receipt")).exists()).count();
    let begun = Instant::now();
    while done() < SOME {
        assert!(begun.elapsed() < Duration::from_secs(20), "nothing happens");
        sleep(Duration::from_millis(1));
    }
    child.kill().unwrap();
    child.wait().unwrap();
    done()
}

#[test]
fn every_refusal_has_its_exit_code() {
    let log = Log::sqlite();
    with_issuer(&log);
    let service = log.serve();
    fs::write(log.path("image.png"), "png").unwrap();
    let refused = register(&log, &service, &["image.png"]);
    assert_eq!(refused.code, Some(6), "{refused}");
    assert!(refused.stderr.contains("content-type-not-admitted"), "names the rule: {refused}");
    let unknown = log.tabellion(&["entry", "get", &"0".repeat(64), "--url", service.url()]);
    assert_eq!(unknown.code, Some(5), "{unknown}");
    let usage = log.tabellion(&["registr"]);
    assert_eq!(usage.code, Some(2), "{usage}");
    assert!(usage.stderr.contains("register"), "suggests: {usage}");
    let url = service.url().to_owned();
    service.stop();
    let flags = ["register", "hello.json", "--key", "issuer.pem", "--trust", "trust.toml", "--timeout", "1"];
    let alone = log.tabellion(&[&flags[..], &["--url", &url]].concat());
    assert_eq!(alone.code, Some(7), "{alone}");
}

#[test]
fn a_log_that_lost_its_pin_goes_on_once_it_was_told_the_head_that_it_signed_last() {
    let log = Log::sqlite();
    let recorder = Recorder::new();
    let service = log.serve();
    let statement = log.statement();
    recorder.register(&mut service.connection(), &statement);
    let receipt = service.connection().get(&format!("/entries/{}", statement.digest())).body;
    let receipt = scitt::Receipt::parse(receipt).unwrap();
    let root = receipt.implied_root(&statement.digest().leaf_hash()).unwrap().to_string();
    service.stop();
    fs::remove_dir_all(log.path("state")).unwrap();
    let wrong = log.tabellion(&["log", "adopt", "--size", "2", "--root", &"0".repeat(64)]);
    assert_ne!(wrong.code, Some(0), "{wrong}");
    log.tabellion(&["log", "adopt", "--size", "2", "--root", &root]).must_succeed();
    let service = log.serve();
    recorder.register(&mut service.connection(), &log.statement());
    assert_eq!(recorder.registered(), 2, "{:?}", recorder.answers());
    recorder.verdict(&log, service);
}

#[test]
fn dev_mode_needs_nothing_and_leads_to_a_verified_receipt() {
    let log = Log::sqlite(); // For its folder only.
    let folder = log.path("first-steps");
    fs::create_dir(&folder).unwrap();
    let mut command = log.command();
    command.args(["serve", "--dev", "--json", "--listen", "127.0.0.1:0", "--admin-listen", "127.0.0.1:0"]);
    command.current_dir(&folder).stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::null());
    let service = OwnedChild(command.spawn().unwrap());
    let url = first_line(&service)["url"].as_str().unwrap().to_owned();
    fs::write(folder.join("hello.json"), r#"{"verdict":"allow"}"#).unwrap();
    let run = |arguments: &[&str]| -> Ran {
        log.command().current_dir(&folder).args(arguments).output().unwrap().into()
    };
    run(&["register", "--dev", "hello.json", "--url", &url]).must_succeed();
    run(&["verify", "hello.json.transparent.cose"]).must_succeed();
    fs::write(folder.join("hello.json"), r#"{"verdict":"deny"}"#).unwrap();
    assert_eq!(run(&["verify", "hello.json.transparent.cose", "--payload", "hello.json"]).code, Some(3));
}

fn first_line(child: &OwnedChild) -> Value {
    use std::io::{BufRead, BufReader};
    use std::os::fd::AsFd;
    let out = child.stdout.as_ref().unwrap().as_fd().try_clone_to_owned().unwrap();
    let line = BufReader::new(fs::File::from(out)).lines().next().unwrap().unwrap();
    serde_json::from_str(&line).unwrap_or_else(|why| panic!("{why}: {line}"))
}
