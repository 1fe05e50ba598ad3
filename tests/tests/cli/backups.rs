//! Copies of a log, and logs that move: the end of a log, its file, and its beginning elsewhere (R42 to R45, R51).

use std::fs;
use std::path::Path;
use std::process::Stdio;
use std::thread::sleep;
use std::time::Duration;

use black_box::{
    Cell, Database, Holds, Load, Log, OPERATOR_TOKEN, Ran, Recorder, Service, on_both_databases, until,
};
use merkle::TreeSize;
use scitt::{Receipt, SignedStatement};
use serde_json::Value;

/// How long something that happens by itself may take.
const SOON: Duration = Duration::from_secs(20);

/// The line of `backup verify` about keys of which it is not known whether they are the log's.
const NOT_CHECKED: &str =
    "signer not checked: neither --key nor the trust file has the keys of this log that signed it";

/// Where the entry of a receipt stands.
fn leaf(receipt: &Receipt) -> u64 {
    receipt.inclusion_proofs()[0].leaf_index.get()
}

/// Registers so many statements.
fn filled(log: &Log, service: &Service, count: usize) -> Vec<(SignedStatement, Receipt)> {
    let mut connection = service.connection();
    let mut register = || {
        let statement = log.statement();
        let receipt = connection.register(&statement);
        (statement, receipt)
    };
    (0..count).map(|_| register()).collect()
}

fn checkpoint(service: &Service) -> String {
    String::from_utf8(service.connection().get("/checkpoint").body).unwrap()
}

fn freeze(log: &Log, service: &Service) -> Value {
    let frozen = log.on_admin(service, &["log", "freeze", "--to-move"]).must_succeed().json();
    assert_eq!((&frozen["signed"], &frozen["waiting"]), (&frozen["size"], &0.into()), "{frozen}");
    frozen
}

/// Uses another database and another pin from now on.
fn turn_to(log: &Log, database: &Database, state: &str) {
    log.configure(&format!("db = \"{}\"\nstate_dir = \"{state}\"", database.url()));
}

fn file_in(log: &Log, name: &str) -> Database {
    let folder = log.path(name);
    fs::create_dir_all(&folder).unwrap();
    Database::Sqlite(folder.join("log.db"))
}

/// The other kind of database than a log is in, empty.
fn other_kind(log: &Log, name: &str) -> Database {
    match log.database() {
        Database::Sqlite(_) => Database::postgres(),
        Database::Postgres(_) => file_in(log, name),
    }
}

#[track_caller]
fn must_end(ran: &Ran, code: i32, word: &str) {
    assert_eq!(ran.code, Some(code), "{ran}");
    assert!(ran.stderr.contains(word), "{ran}");
    assert_eq!(ran.stdout, "", "{ran}");
}

#[track_caller]
fn must_be_frozen(service: &Service, statement: &SignedStatement) {
    let answer = service.connection().post(statement.bytes());
    assert_eq!(answer.refusal(), (403, "Log Frozen".to_owned()), "{answer:?}");
    assert_eq!(answer.problem().get_code(), Some("log-frozen"), "{answer:?}");
}

on_both_databases! {
    fn r51_a_log_moves_to_the_other_database_and_is_the_same_log(log: Log) {
        let service = log.serve();
        let mut entries = filled(&log, &service, 6);
        let (erased, _) = entries.remove(2);
        let (held, _) = entries[0].clone();
        let id = erased.digest().to_string();
        let flags = ["--reason", "asked to", "--key", "keys/operator.pem", "--url", service.url(), "--json"];
        log.tabellion(&[&["entry", "erase", &id], &flags[..]].concat()).must_succeed();
        log.on_admin(&service, &["entry", "hold", &held.digest().to_string(), "--case", "7", "--key", "keys/operator.pem"]).must_succeed();
        let keys = service.connection().get("/.well-known/scitt-keys").body;
        let frozen = freeze(&log, &service);
        let last = checkpoint(&service);
        must_be_frozen(&service, &log.statement());
        assert_eq!(service.admin().get("/readyz").status, 200, "reading is what is left to be ready for");
        service.stop();

        log.tabellion(&["log", "export", "log.export", "--json"]).must_succeed();
        must_end(&log.tabellion(&["log", "export", "log.export"]), 10, "[exists]");
        let to = other_kind(&log, "new");
        let moved = log.tabellion(&["log", "import", "log.export", "--db", &to.url(), "--json"]);
        let moved = moved.must_succeed().json();
        for name in ["origin", "size", "root", "epoch"] {
            assert_eq!(moved[name], frozen[name], "{name}: {moved}");
        }
        assert_eq!((&moved["pinned"], &moved["erased"], &moved["holds"]), (&true.into(), &1.into(), &1.into()));

        turn_to(&log, &to, "state");
        let service = log.serve();
        let mut connection = service.connection();
        assert_eq!(checkpoint(&service), last, "the same signature over the same tree");
        assert_eq!(connection.get("/.well-known/scitt-keys").body, keys);
        for (statement, receipt) in &entries {
            let again = connection.register(statement);
            assert_eq!(leaf(&again), leaf(receipt), "the same entry");
            receipt.implied_root(&statement.digest().leaf_hash()).unwrap();
        }
        assert_eq!(connection.get(&format!("/v1/entries/{id}/statement")).status, 410);
        let holds = log.on_admin(&service, &["entry", "holds"]).must_succeed().json();
        assert_eq!((&holds[0]["entry_id"], &holds[0]["case"]), (&held.digest().to_string().into(), &"7".into()));
        let new = log.statement();
        let receipt = connection.register(&new);
        assert_eq!(Value::from(leaf(&receipt)), frozen["size"], "and it goes on");
        service.stop();
        log.must_be_sound();

        // The old side stays what it was: frozen, and behind what was signed since.
        turn_to(&log, log.database(), "state");
        let service = log.serve();
        let refused = service.connection().post(log.statement().bytes()).refusal();
        assert_eq!(refused.0, 503, "{refused:?}");
        assert_eq!(service.connection().get(&format!("/entries/{}", new.digest())).status, 404);
        assert_eq!(service.connection().get(&format!("/entries/{}", held.digest())).status, 200);
    }

    fn a_frozen_log_is_frozen_for_every_process_and_after_every_restart(log: Log) {
        let service = log.serve();
        let entries = filled(&log, &service, 2);
        must_end(&log.tabellion(&["log", "freeze"]), 2, "--to-move");
        must_end(&log.tabellion(&["log", "export", "too-early"]), 1, "[not-frozen]");
        assert!(!log.path("too-early").exists() && !log.path("too-early.partial").exists());
        let frozen = freeze(&log, &service);
        let refused = log.statement();
        must_end_frozen(&service, &refused);
        assert_eq!(freeze(&log, &service), frozen, "frozen again it is as it was");
        service.kill();
        let service = log.serve();
        must_be_frozen(&service, &refused);
        let mut connection = service.connection();
        for (statement, receipt) in &entries {
            assert_eq!(connection.post(statement.bytes()).status, 201, "what is registered has its receipt");
            let fresh = connection.get(&format!("/entries/{}", statement.digest()));
            assert_eq!(leaf(&Receipt::parse(fresh.body).unwrap()), leaf(receipt));
        }
        assert_eq!(connection.get(&format!("/entries/{}", refused.digest())).status, 404);
        service.stop();
        let again = log.tabellion(&["log", "freeze", "--to-move", "--json"]).must_succeed().json();
        assert_eq!(again, frozen, "nothing moved, not even the epoch");
        log.must_be_sound();
    }

    fn a_frozen_log_is_checked_for_damage_and_says_that_it_is_frozen_without_calling_it_an_error(log: Log) {
        log.configure("fsck_rate = 100000\nfsck_every_seconds = 1");
        let service = log.serve();
        filled(&log, &service, 2);
        assert_eq!(service.metric("tabellion_log_frozen"), 0.0);
        freeze(&log, &service);
        service.stop();
        let service = log.serve();
        service.must_become_ready();
        let entry = Cell {
            table: "entry",
            column: "statement",
            sqlite: "idx = 1",
            postgres: None,
            holds: Holds::Bytes,
        };
        log.database().flip(&entry, 300);
        service.must_find("entry 1: the statement does not hash to its digest");
        log.database().mend("entry");
        service.must_become_ready();
        assert_eq!(service.metric("tabellion_log_frozen"), 1.0);
        assert_eq!(service.metric("tabellion_checkpoint_served_size_leaves"), 3.0, "nobody has to cosign");
        assert!(!service.said().contains("registers nothing now"), "{}", service.said());
    }

    fn a_head_that_was_committed_and_not_signed_is_signed_when_the_log_is_frozen_already(log: Log) {
        log.serve().stop();
        let mut service = log.serve_until("before-sign", 1).unwrap_or_else(|ran| panic!("{ran}"));
        let statement = log.statement();
        let _ = service.connection().try_send("POST", "/entries", &[("Content-Type", "application/cose")], statement.bytes());
        service.wait(); // It may have said 202 before it came to that point.
        drop(service);
        let frozen = log.tabellion(&["log", "freeze", "--to-move", "--json"]).must_succeed().json();
        assert_eq!((&frozen["size"], &frozen["signed"]), (&2.into(), &1.into()), "{frozen}");
        must_end(&log.tabellion(&["log", "export", "log.export"]), 7, "[not-signed]");
        let service = log.serve();
        must_be_frozen(&service, &log.statement());
        let receipt = service.connection().get(&format!("/entries/{}", statement.digest()));
        assert_eq!(receipt.status, 200, "{receipt:?}");
        service.stop();
        log.tabellion(&["log", "export", "log.export"]).must_succeed();
    }

    fn r44_a_backup_made_under_load_is_a_copy_that_reads_and_cannot_sign(log: Log) {
        let recorder = Recorder::new();
        let service = log.serve();
        let load = Load { log: &log, recorder: &recorder, writers: 4 };
        let mut made = None;
        load.on(&service, || {
            while recorder.registered() < 40 {
                sleep(Duration::from_millis(20));
            }
            made = Some(log.tabellion(&["backup", "create", "log.backup", "--json"]));
            let before = recorder.registered();
            while recorder.registered() < before + 10 {
                sleep(Duration::from_millis(20));
            }
        });
        let made = made.unwrap().must_succeed().json();
        let size = made["size"].as_u64().unwrap();
        assert!(size > 40 && size < recorder.registered() as u64, "a prefix: {made}");
        recorder.verdict(&log, service);

        let copy = file_in(&log, "copy");
        let restored = log.tabellion(&[
            "backup", "restore", "log.backup", "--db", &copy.url(), "--state-dir", "elsewhere", "--json",
        ]);
        let restored = restored.must_succeed().json();
        assert_eq!((&restored["size"], &restored["root"], &restored["pinned"]), (&made["size"], &made["root"], &false.into()));

        turn_to(&log, &copy, "elsewhere");
        let service = log.serve();
        let mut connection = service.connection();
        let answer = connection.post(log.statement().bytes());
        assert_eq!(answer.refusal().0, 503, "{answer:?}");
        assert!(service.said().contains("there is no pin"), "{}", service.said());
        assert_eq!(service.admin().get("/readyz").status, 503);
        let root = made["root"].as_str().unwrap();
        let mut after = String::new();
        let mut seen = 0;
        loop {
            let page = connection.get(&format!("/v1/entries?limit=200{after}")).json();
            let entries = page["entries"].as_array().unwrap().clone();
            let Some(last) = entries.last() else { break };
            after = format!("&after={}", last["index"]);
            for entry in &entries {
                let id = entry["entry_id"].as_str().unwrap();
                let receipt = Receipt::parse(connection.get(&format!("/entries/{id}")).body).unwrap();
                assert_eq!(receipt.signed_tree_size(), Some(TreeSize::new(size)));
                let leaf = id.parse::<merkle::EntryDigest>().unwrap().leaf_hash();
                assert_eq!(receipt.implied_root(&leaf).unwrap().to_string(), root);
                seen += 1;
            }
        }
        assert_eq!(seen, size, "every entry has its proof");
        service.stop();
        let checked = log.tabellion(&["log", "fsck", "--deep", "--json"]);
        assert_eq!(checked.code, Some(0), "{checked}");

        // It goes on once somebody vouches for its head, and not before.
        log.tabellion(&["log", "adopt", "--size", &size.to_string(), "--root", root]).must_succeed();
        let service = log.serve();
        assert_eq!(leaf(&service.connection().register(&log.statement())), size);
    }

    fn r42_a_backup_that_is_behind_what_was_signed_is_not_restored(log: Log) {
        let service = log.serve();
        filled(&log, &service, 2);
        log.tabellion(&["backup", "create", "old.backup"]).must_succeed();
        filled(&log, &service, 2);
        service.stop();
        let to = other_kind(&log, "new");
        let restore = |file: &str| log.tabellion(&["backup", "restore", file, "--db", &to.url()]);
        let ran = restore("old.backup");
        must_end(&ran, 8, "the backup is at 3, this log has signed 5");
        assert!(ran.stderr.contains("[backup-behind]"), "{ran}");
        log.tabellion(&["backup", "create", "new.backup"]).must_succeed();
        let ran = restore("new.backup");
        assert!(ran.must_succeed().stdout.contains("the pin allows the log to continue"), "{ran}");
        must_end(&restore("new.backup"), 1, "not empty");
        turn_to(&log, &to, "state");
        let service = log.serve();
        filled(&log, &service, 1);
        service.stop();
        log.must_be_sound();
    }

    fn a_database_that_is_in_use_is_not_restored_into(log: Log) {
        let service = log.serve();
        filled(&log, &service, 1);
        log.tabellion(&["backup", "create", "log.backup"]).must_succeed();
        let ran = log.tabellion(&["backup", "restore", "log.backup"]);
        must_end(&ran, 1, "[database-in-use]");
        filled(&log, &service, 1);
        service.stop();
        log.must_be_sound();
    }

    fn an_import_that_was_killed_goes_on_and_is_nothing_before_it_is_whole(log: Log) {
        let service = log.serve();
        let entries = filled(&log, &service, 150);
        freeze(&log, &service);
        service.stop();
        log.tabellion(&["log", "export", "log.export"]).must_succeed();
        let to = other_kind(&log, "new");
        let url = to.url();
        let mut import = log.command();
        import.args(["log", "import", "log.export", "--db", &url]).env("TABELLION_CRASH_AT", "before-end-of-filling");
        let crashed = import.stdout(Stdio::null()).stderr(Stdio::null()).status().unwrap();
        assert_eq!(crashed.code(), None, "the import was to crash before its end: {crashed}");
        let looked = log.tabellion(&["backup", "create", "never", "--db", &url]);
        assert!(looked.stderr.contains("not complete"), "{looked}");
        turn_to(&log, &to, "state");
        let ran = log.serve_in_vain();
        assert!(ran.stderr.contains("run the command that writes it again"), "{ran}");

        turn_to(&log, log.database(), "state");
        log.tabellion(&["log", "import", "log.export", "--db", &url]).must_succeed();
        turn_to(&log, &to, "state");
        let service = log.serve();
        for (statement, receipt) in &entries {
            assert_eq!(leaf(&service.connection().register(statement)), leaf(receipt));
        }
        filled(&log, &service, 1);
        service.stop();
        log.must_be_sound();
    }
}

/// The service at the usual admin URL is not always the one that the configuration is about.
#[test]
fn a_service_freezes_its_own_log_only_and_nothing_for_a_web_page() {
    let log = Log::sqlite();
    let service = log.serve();
    log.configure("origin = \"elsewhere.example/log\"");
    must_end(&log.on_admin(&service, &["log", "freeze", "--to-move"]), 6, "another-log");
    log.configure(&format!("origin = \"{}\"", testkit::ORIGIN));

    let json = ("Content-Type", "application/json");
    let token = format!("Bearer {OPERATOR_TOKEN}");
    let operator = ("Authorization", &*token);
    let ours = format!("{{\"origin\":\"{}\"}}", testkit::ORIGIN);
    let other = "{\"origin\":\"elsewhere.example/log\"}";
    let page = ("Origin", "https://page.example");
    for (headers, body, status) in [
        (&[operator, json][..], other, 409),
        (&[operator, json], "{}", 422),
        (&[operator, json], "", 400),
        (&[operator, ("Content-Type", "text/plain")], &*ours, 415),
        (&[operator], &ours, 415),
        (&[json], &ours, 401),
        (&[operator, json, page], &ours, 403),
    ] {
        let answer = service.admin().send("POST", "/freeze", headers, body.as_bytes());
        assert_eq!(answer.status, status, "{headers:?} {body}: {answer:?}");
    }
    for (method, path) in [("POST", "/reindex"), ("POST", "/holds"), ("DELETE", "/holds")] {
        let answer = service.admin().send(method, path, &[json, page], b"{}");
        assert_eq!(answer.status, 403, "{method} {path}: {answer:?}");
        assert!(String::from_utf8_lossy(&answer.body).contains("from-a-web-page"), "{answer:?}");
    }
    assert_eq!(service.admin().send("GET", "/readyz", &[page], b"").status, 200, "to read harms nobody");
    filled(&log, &service, 1);
    freeze(&log, &service);
}

#[test]
fn a_log_that_is_not_there_is_not_found_and_none_is_made() {
    let log = Log::sqlite();
    let root = "ab".repeat(32);
    for command in [
        &["log", "freeze", "--to-move"][..],
        &["log", "fsck"],
        &["log", "export", "log.export"],
        &["log", "adopt", "--size", "1", "--root", &root],
        &["backup", "create", "log.backup"],
        &["key", "list"],
    ] {
        let ran = log.tabellion(&[command, &["--db", "sqlite:misspelt.db"]].concat());
        must_end(&ran, 5, "[no-log]");
        assert!(!log.path("misspelt.db").exists(), "{ran}");
    }
    let empty = Database::postgres();
    let ran = log.tabellion(&["log", "freeze", "--to-move", "--db", &empty.url()]);
    must_end(&ran, 5, "[no-log]");
}

/// What is wrong with a file is found before there is so much as a database.
#[test]
fn r45_a_backup_that_is_damaged_or_not_ours_is_refused_before_anything_is_touched() {
    let log = Log::sqlite();
    let service = log.serve();
    filled(&log, &service, 3);
    log.tabellion(&["backup", "create", "log.backup"]).must_succeed();
    service.stop();
    let whole = fs::read(log.path("log.backup")).unwrap();
    let stranger = Log::sqlite();
    let service = stranger.serve();
    filled(&stranger, &service, 1);
    service.stop();
    stranger.tabellion(&["backup", "create", "log.backup"]).must_succeed();
    let foreign = fs::read(stranger.path("log.backup")).unwrap();

    let flipped = |at: usize| {
        let mut bytes = whole.clone();
        bytes[at] ^= 0x20;
        bytes
    };
    let middle = whole.len() / 2;
    for (what, bytes, exit, code) in [
        ("empty", Vec::new(), 4, "not-an-archive"),
        ("text", b"{\"a\": 1}\n".to_vec(), 4, "not-an-archive"),
        ("cut", whole[..middle].to_vec(), 3, "archive-damaged"),
        ("short of a byte", whole[..whole.len() - 1].to_vec(), 3, "archive-damaged"),
        ("with more behind it", [whole.clone(), vec![b'\n']].concat(), 3, "archive-damaged"),
        ("changed in the middle", flipped(middle), 3, "archive-"),
        ("changed near the end", flipped(whole.len() - 40), 3, "archive-damaged"),
        ("of another log", foreign, 3, "archive-of-another-key"),
    ] {
        fs::write(log.path("bad.backup"), &bytes).unwrap();
        let to = file_in(&log, "untouched");
        let ran = log.tabellion(&[
            "backup",
            "restore",
            "bad.backup",
            "--db",
            &to.url(),
            "--state-dir",
            "untouched/state",
        ]);
        must_end(&ran, exit, code);
        assert_eq!(fs::read_dir(log.path("untouched")).unwrap().count(), 0, "{what}: {ran}");
    }
    let ran = log.tabellion(&["backup", "restore", "nowhere.backup"]);
    must_end(&ran, 5, "[file-not-found]");
    let ran = log.tabellion(&["log", "import", "log.backup"]);
    must_end(&ran, 1, "[archive-of-another-kind]");
}

/// The file says that it is whole; whose it is, only who trusts somebody can say.
#[test]
fn a_backup_is_verified_with_no_database_by_those_who_know_the_key() {
    let log = Log::sqlite();
    let service = log.serve();
    filled(&log, &service, 2);
    let key = service.connection().get("/.well-known/scitt-keys").body;
    service.stop();
    log.tabellion(&["backup", "create", "log.backup"]).must_succeed();
    let elsewhere = Log::sqlite();
    fs::copy(log.path("log.backup"), elsewhere.path("log.backup")).unwrap();
    let verify = |arguments: &[&str]| {
        elsewhere.tabellion(&[&["backup", "verify", "log.backup", "--json"], arguments].concat())
    };
    let unknown = verify(&[]);
    assert_eq!((unknown.code, &unknown.json()["signer"]), (Some(4), &"unknown".into()), "{unknown}");
    let set = scitt::KeySet::parse(&key).unwrap();
    let ours = data_encoding::HEXLOWER.encode(&set.keys()[0].encode());
    fs::write(elsewhere.path("ours.key"), ours).unwrap();
    let known = verify(&["--key", "ours.key"]);
    assert_eq!(known.must_succeed().json()["signer"], "trusted");
    let service = elsewhere.serve();
    let key = service.connection().get("/.well-known/scitt-keys").body;
    let other = data_encoding::HEXLOWER.encode(&scitt::KeySet::parse(&key).unwrap().keys()[0].encode());
    fs::write(elsewhere.path("other.key"), other).unwrap();
    let another = verify(&["--key", "other.key"]);
    assert_eq!((another.code, &another.json()["signer"]), (Some(4), &"unknown".into()), "{another}");
    for arguments in [&[] as &[&str], &["--key", "other.key"]] {
        let ran = elsewhere.tabellion(&[&["backup", "verify", "log.backup"], arguments].concat());
        assert!(ran.stdout.lines().any(|line| line == NOT_CHECKED), "{ran}");
    }
    assert!(!Path::new(&elsewhere.path("log.backup.partial")).exists());
}

/// As for a receipt: a log whose keys are others than the trusted ones may have replaced them since.
#[test]
fn a_backup_by_a_key_that_the_trust_file_does_not_have_for_this_log_was_not_checked() {
    let (log, elsewhere) = (Log::sqlite(), Log::sqlite());
    let service = log.serve();
    filled(&log, &service, 2);
    service.stop();
    log.tabellion(&["backup", "create", "log.backup"]).must_succeed();
    let receipt_key = |log: &Log| {
        log.tabellion(&["key", "show", "--json"]).must_succeed().json()["receipt"]["did_key"].clone()
    };
    let (ours, others) = (receipt_key(&log), receipt_key(&elsewhere));
    let verify = |key: &Value, checkpoint: &str| {
        let log_of = format!("[[log]]\niss = \"{}\"\norigin = \"{}\"", testkit::LOG_ISS, testkit::ORIGIN);
        let keys = format!("keys = [{{ key = {key} }}]\ncheckpoint_keys = [\"{checkpoint}\"]");
        fs::write(log.path("trust.toml"), format!("{log_of}\n{keys}\n")).unwrap();
        let verify = ["backup", "verify", "log.backup", "--trust", "trust.toml"];
        let ran = log.tabellion(&[&verify[..], &["--json"]].concat());
        let says_not_checked = log.tabellion(&verify).stdout.lines().any(|line| line == NOT_CHECKED);
        assert_eq!(says_not_checked, ran.json()["signer"] == "unknown", "{ran}");
        (ran.code, ran.json()["signer"].clone())
    };
    assert_eq!(verify(&ours, &log.vkey()), (Some(0), "trusted".into()));
    assert_eq!(verify(&others, &log.vkey()), (Some(4), "unknown".into()));
    assert_eq!(verify(&ours, &elsewhere.vkey()), (Some(4), "unknown".into()));
}

#[test]
fn a_backup_whose_newest_head_is_by_a_key_past_its_end_is_not_verified() {
    let log = Log::sqlite();
    let service = log.serve();
    filled(&log, &service, 2);
    service.stop();
    log.tabellion(&["backup", "create", "log.backup"]).must_succeed();
    let key = log.tabellion(&["key", "show", "--json"]).must_succeed().json()["receipt"]["did_key"].clone();
    let (vkey, size) = (log.vkey(), 3);
    let verify = |end: Option<u64>, checkpoint: &str| {
        let end = end.map_or_else(String::new, |end| format!(", compromised_size = {end}"));
        let keys = format!("keys = [{{ key = {key}{end} }}]");
        let log_of = format!("[[log]]\niss = \"{}\"\norigin = \"{}\"", testkit::LOG_ISS, testkit::ORIGIN);
        fs::write(log.path("trust.toml"), format!("{log_of}\n{keys}\n{checkpoint}\n")).unwrap();
        log.tabellion(&["backup", "verify", "log.backup", "--trust", "trust.toml", "--json"])
    };
    let retired =
        |end: u64| format!("retired_checkpoint_keys = [{{ key = \"{vkey}\", retired_size = {end} }}]");
    for (end, checkpoint, code, signer) in [
        (None, String::new(), 0, "trusted"),
        (Some(1), String::new(), 3, "ended"),
        (Some(size), String::new(), 3, "ended"),
        (Some(size + 1), String::new(), 0, "trusted"),
        (None, retired(1), 3, "ended"),
        (None, retired(size + 1), 0, "trusted"),
    ] {
        let ran = verify(end, &checkpoint);
        assert_eq!(
            (ran.code, &ran.json()["signer"]),
            (Some(code), &signer.into()),
            "{end:?} {checkpoint}: {ran}"
        );
    }
}

/// A 202 is a promise, and it moves with the log.
#[test]
fn what_was_accepted_and_not_placed_when_the_log_was_frozen_gets_its_place_where_it_goes_on() {
    let log = Log::postgres();
    log.configure("answer_within_ms = 1000");
    let leader = log.serve();
    filled(&log, &leader, 1);
    let follower = log.serve();
    // Alive, and not answering: nobody else may lead yet.
    leader.signal(rustix::process::Signal::STOP);
    let accepted = log.statement();
    let answer = follower.connection().post(accepted.bytes());
    assert_eq!(answer.status, 202, "{answer:?}");
    let frozen = log.tabellion(&["log", "freeze", "--to-move", "--json"]);
    leader.kill();
    let frozen = frozen.must_succeed().json();
    assert_eq!((&frozen["size"], &frozen["waiting"]), (&2.into(), &1.into()), "{frozen}");
    let status = follower.connection().get(&format!("/entries/{}", accepted.digest())).status;
    assert!(matches!(status, 202 | 204), "it waits: {status}");
    must_end_frozen(&follower, &log.statement());
    follower.stop();

    log.tabellion(&["log", "export", "log.export"]).must_succeed();
    let to = file_in(&log, "new");
    log.tabellion(&["log", "import", "log.export", "--db", &to.url()]).must_succeed();
    turn_to(&log, &to, "state");
    let service = log.serve();
    until(
        SOON,
        || service.said(),
        || service.connection().get(&format!("/entries/{}", accepted.digest())).status == 200,
    );
    service.stop();
    log.must_be_sound();
}

/// Once the process has heard of it: one that follows does when it asks for the lease.
#[track_caller]
fn must_end_frozen(service: &Service, statement: &SignedStatement) {
    until(SOON, || service.said(), || service.connection().post(statement.bytes()).status == 403);
    must_be_frozen(service, statement);
}
