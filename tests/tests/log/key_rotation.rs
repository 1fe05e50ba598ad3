//! Keys that are replaced while the log is written to: every receipt verifies with a published key that was in force at its
//! size, whatever dies on the way.

use std::fs;
use std::thread::sleep;
use std::time::Duration;

use black_box::{Load, Log, Ran, Recorder, Service, on_both_databases, resolve_what_was_left_open};
use rustix::process::Signal;
use scitt::KeySet;
use serde_json::Value;

/// Times that a process dies at each point of a rotation.
const ROUNDS: u64 = 3;
/// How long a process may go on until it reaches its crash point, or takes a key up.
const LONG_ENOUGH: Duration = Duration::from_secs(30);

on_both_databases! {
    fn r52_keys_are_rotated_under_load_without_a_restart(log: Log) {
        let recorder = Recorder::new();
        let service = log.serve();
        let load = Load { log: &log, recorder: &recorder, writers: 4 };
        let rotated: Vec<Value> = load.on(&service, || {
            let kinds = ["receipt", "checkpoint", "receipt"];
            kinds.iter().map(|kind| rotate(&log, &service, kind).must_succeed().json()).collect()
        });
        load.on(&service, || sleep(Duration::from_millis(300)));
        let keys = list(&log, &service);
        for new in &rotated {
            let old = keys.iter().find(|key| key["kid"] == new["replaces"]).unwrap();
            assert_eq!(old["retired_size"], new["from_size"], "{keys:?}");
        }
        let ends = [rotated[0]["from_size"].as_u64(), rotated[2]["from_size"].as_u64(), None];
        until(|| published_ends(&service) == ends);
        recorder.verdict(&log, service);
        log.serve().stop();
    }

    fn r52_a_crash_before_the_key_table_changes_keeps_every_promise(log: Log) {
        dies_while_it_rotates("before-key-change", &log);
    }

    fn r52_a_crash_after_the_key_table_changed_keeps_every_promise(log: Log) {
        dies_while_it_rotates("after-key-change", &log);
    }

    fn r52_a_crash_before_the_first_head_of_a_new_key_is_signed_keeps_every_promise(log: Log) {
        let recorder = Recorder::new();
        let load = Load { log: &log, recorder: &recorder, writers: 4 };
        log.serve().stop();
        for round in 0..ROUNDS {
            rotate_stopped(&log, if round % 2 == 0 { "receipt" } else { "checkpoint" });
            // Where the newest head has no signature yet, it dies while it starts.
            if let Ok(service) = log.serve_until("before-sign", 1) {
                load.on(&service, || until(|| !service.runs()));
            }
            let service = log.serve();
            resolve_what_was_left_open(&recorder, &service);
            service.kill();
        }
        recorder.verdict(&log, log.serve());
    }

    fn a_process_with_the_old_key_file_does_not_start_after_a_rotation(log: Log) {
        log.serve().stop();
        let old = fs::read(log.path("keys/receipt.pem")).unwrap();
        let rotated = rotate_stopped(&log, "receipt");
        let kid = rotated["kid"].as_str().unwrap();
        let file = beside(&log, "receipt", kid);
        let new = fs::read(&file).unwrap();
        fs::remove_file(&file).unwrap();
        fs::write(log.path("keys/receipt.pem"), old).unwrap();
        let refused = log.serve_in_vain();
        assert!(refused.stderr.contains("key-not-in-force") && refused.stderr.contains(kid), "{refused}");
        assert!(refused.stderr.contains(file.file_name().unwrap().to_str().unwrap()), "{refused}");
        secret(&file, &new);
        log.serve().stop();
    }

    fn an_announced_key_waits_until_its_file_is_there(log: Log) {
        let recorder = Recorder::new();
        let service = log.serve();
        let announced = rotate_with(&log, &service, &["receipt", "--wait", "0"]);
        assert_eq!(announced.code, Some(7), "{announced}");
        assert!(announced.stderr.contains("key-not-taken-up"), "{announced}");
        let taken = rotate(&log, &service, "receipt").must_succeed().json();
        let keys = list(&log, &service);
        assert_eq!(keys.iter().filter(|key| key["signs"] == "receipts").count(), 2, "the announced key is used: {keys:?}");
        let used = rotate_with(&log, &service, &["receipt", "--new-key", "keys/receipt.pem"]);
        assert_ne!(used.code, Some(0), "{used}");
        let revoke = |kid: &Value| {
            log.on_admin(&service, &["key", "revoke", kid.as_str().unwrap(), "--compromised-since", "1"])
        };
        assert_eq!(revoke(&taken["kid"]).code, Some(6), "a key in force is replaced first");
        let revoked = revoke(&taken["replaces"]).must_succeed().json();
        assert_eq!(revoked["keys"][0]["compromised_size"], 1, "{revoked}");
        recorder.verdict(&log, service);
    }
}

#[test]
fn a_rotation_that_is_repeated_after_the_service_took_the_key_up_marks_the_key_that_was_stolen() {
    let log = Log::sqlite();
    let service = log.serve();
    let command = ["receipt", "--wait", "0", "--compromised-since", "1"];
    assert_eq!(rotate_with(&log, &service, &command).code, Some(7));
    let receipt_keys = || -> Vec<Value> {
        list(&log, &service).into_iter().filter(|key| key["signs"] == "receipts").collect()
    };
    until(|| receipt_keys().iter().all(|key| key["announced_at"].is_null()));
    let too_late = rotate_with(&log, &service, &["receipt", "--compromised-since", "1000"]);
    assert_eq!(too_late.code, Some(2), "the replaced key signs no such tree: {too_late}");

    let rotated = rotate_with(&log, &service, &command).must_succeed().json();
    let keys = receipt_keys();
    let [old, new] = &keys[..] else { panic!("two receipt keys: {keys:?}") };
    assert_eq!((&old["kid"], &old["compromised_size"]), (&rotated["replaces"], &1.into()), "{keys:?}");
    assert_eq!((&new["kid"], &new["compromised_size"]), (&rotated["kid"], &Value::Null), "{keys:?}");
    assert!(beside(&log, "receipt", old["kid"].as_str().unwrap()).exists());
    let shown = log.tabellion(&["key", "show", "--json"]).must_succeed().json();
    assert_eq!(shown["receipt"]["kid"], rotated["kid"], "the configured file has the new key");

    let too_early = rotate_with(&log, &service, &["receipt", "--compromised-since", "0"]);
    assert_eq!(too_early.code, Some(2), "the new key signs no such tree: {too_early}");
    assert_eq!(receipt_keys().len(), 2, "nothing was announced");
    service.stop();
}

/// Without the new key's file a repeated command would take the new key for the stolen one.
#[test]
fn a_rotation_that_is_repeated_without_the_file_of_the_new_key_begins_no_other_one() {
    let log = Log::sqlite();
    let service = log.serve();
    assert_eq!(rotate_with(&log, &service, &["receipt", "--wait", "0"]).code, Some(7));
    let receipt_keys = || -> Vec<Value> {
        list(&log, &service).into_iter().filter(|key| key["signs"] == "receipts").collect()
    };
    until(|| receipt_keys().iter().all(|key| key["announced_at"].is_null()));
    let new = receipt_keys().pop().unwrap();
    let file = beside(&log, "receipt", new["kid"].as_str().unwrap());
    let secret_key = fs::read(&file).unwrap();
    fs::remove_file(&file).unwrap();

    let since = new["from_size"].to_string();
    let command = ["receipt", "--compromised-since", since.as_str()];
    let repeated = rotate_with(&log, &service, &command);
    assert_eq!(repeated.code, Some(7), "{repeated}");
    assert!(repeated.stderr.contains("key-not-taken-up"), "{repeated}");
    assert!(repeated.stderr.contains(file.file_name().unwrap().to_str().unwrap()), "{repeated}");
    let keys = receipt_keys();
    assert_eq!(keys.len(), 2, "nothing was announced: {keys:?}");
    assert!(keys.iter().all(|key| key["compromised_size"].is_null()), "{keys:?}");

    secret(&file, &secret_key);
    let rotated = rotate(&log, &service, "receipt").must_succeed().json();
    assert_eq!((&rotated["kid"], receipt_keys().len()), (&new["kid"], 2));
    service.stop();
}

/// Two processes on one database take a key up together, and a take-over signs with the new key only.
#[test]
fn r52_leader_and_follower_take_a_new_key_up_and_a_take_over_signs_with_it() {
    let log = Log::postgres();
    let recorder = Recorder::new();
    let (leader, follower) = (log.serve(), log.serve());
    let load = Load { log: &log, recorder: &recorder, writers: 6 };
    let rotated = load.on_several(&[&leader, &follower], || {
        let rotated = rotate(&log, &leader, "receipt").must_succeed().json();
        rotate(&log, &leader, "checkpoint").must_succeed();
        until(|| published_ends(&follower).first().is_some_and(Option::is_some));
        leader.signal(Signal::KILL);
        until(|| leads(&follower));
        rotated
    });
    leader.kill();
    resolve_what_was_left_open(&recorder, &follower);
    let first = rotated["from_size"].as_u64();
    until(|| published_ends(&follower) == [first, None]);
    recorder.verdict(&log, follower);
}

/// A process that has not got the new key never leads again, and says what it lacks.
#[test]
fn r52_a_follower_without_the_new_key_file_does_not_take_over() {
    let log = Log::postgres();
    let recorder = Recorder::new();
    let leader = log.serve();
    let lacking = without_new_keys(&log);
    let follower = lacking.serve(&log);
    rotate(&log, &leader, "receipt").must_succeed();
    until(|| obstacles(&follower).contains("its file is not here"));
    leader.kill();
    let mut connection = follower.connection();
    let outcome = recorder.register(&mut connection, &log.statement());
    assert_eq!(outcome, black_box::Outcome::Accepted, "it follows");
    lacking.copy_keys(&log);
    until(|| !obstacles(&follower).contains("its file is not here"));
    resolve_what_was_left_open(&recorder, &follower);
    recorder.verdict(&log, follower);
}

/// The folder of a second host, which had the keys of before the rotation.
struct Host(tempfile::TempDir);

fn without_new_keys(log: &Log) -> Host {
    let folder = tempfile::tempdir().unwrap();
    let host = Host(folder);
    host.copy_keys(log);
    host
}

impl Host {
    fn copy_keys(&self, log: &Log) {
        for file in fs::read_dir(log.path("keys")).unwrap() {
            let file = file.unwrap();
            secret(&self.0.path().join(file.file_name()), &fs::read(file.path()).unwrap());
        }
    }

    fn serve(&self, log: &Log) -> Service {
        let key = |name: &str| self.0.path().join(name).display().to_string();
        let variables = [
            ("TABELLION_RECEIPT_KEY", key("receipt.pem")),
            ("TABELLION_CHECKPOINT_KEY", key("checkpoint.pem")),
        ];
        log.serve_with(&variables)
    }
}

fn dies_while_it_rotates(point: &str, log: &Log) {
    let recorder = Recorder::new();
    let load = Load { log, recorder: &recorder, writers: 4 };
    log.serve().stop();
    for round in 0..ROUNDS {
        let kind = if round % 2 == 0 { "receipt" } else { "checkpoint" };
        let service = log.serve_until(point, 1).unwrap();
        load.on(&service, || {
            rotate_with(log, &service, &[kind, "--wait", "0"]);
            until(|| !service.runs());
        });
        let service = log.serve();
        resolve_what_was_left_open(&recorder, &service);
        load.on(&service, || until(|| list(log, &service).iter().all(|key| key["announced_at"].is_null())));
        rotate(log, &service, kind).must_succeed();
        let keys = list(log, &service);
        assert_eq!(keys.len() as u64, 3 + round, "the repeated command has finished the rotation: {keys:?}");
        let in_force = keys.iter().filter(|key| key["retired_at"].is_null());
        assert_eq!(in_force.count(), 2, "{keys:?}");
        service.kill();
    }
    recorder.verdict(log, log.serve());
}

/// The fence epoch is a gauge that only a leader sets.
fn leads(service: &Service) -> bool {
    let metrics = String::from_utf8(service.admin().get("/metrics").body).unwrap();
    let epoch = metrics.lines().find_map(|line| line.strip_prefix("tabellion_storage_fence_epoch "));
    epoch.is_some_and(|epoch| epoch.trim() != "0")
}

fn rotate(log: &Log, service: &Service, kind: &str) -> Ran {
    rotate_with(log, service, &[kind])
}

fn rotate_with(log: &Log, service: &Service, arguments: &[&str]) -> Ran {
    log.on_admin(service, &[&["key", "rotate"], arguments].concat())
}

fn rotate_stopped(log: &Log, kind: &str) -> Value {
    log.tabellion(&["key", "rotate", kind, "--json"]).must_succeed().json()
}

fn list(log: &Log, service: &Service) -> Vec<Value> {
    let listed = log.on_admin(service, &["key", "list"]).must_succeed().json();
    listed["keys"].as_array().unwrap().clone()
}

/// For each published receipt key the first size that it does not sign.
fn published_ends(service: &Service) -> Vec<Option<u64>> {
    let set = KeySet::parse(&service.connection().get("/.well-known/scitt-keys").body).unwrap();
    set.keys().iter().map(|key| key.end.size()).collect()
}

fn obstacles(service: &Service) -> String {
    String::from_utf8(service.admin().get("/readyz").body).unwrap()
}

fn beside(log: &Log, name: &str, kid: &str) -> std::path::PathBuf {
    log.path(&format!("keys/{name}.{}.pem", &kid[..kid.len().min(8)]))
}

fn secret(path: &std::path::Path, bytes: &[u8]) {
    use std::os::unix::fs::PermissionsExt;
    fs::write(path, bytes).unwrap();
    fs::set_permissions(path, fs::Permissions::from_mode(0o600)).unwrap();
}

#[track_caller]
fn until(holds: impl FnMut() -> bool) {
    black_box::until(LONG_ENOUGH, || "it does not come to that", holds);
}
