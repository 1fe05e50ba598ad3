//! What an operator and an issuer go through with the program alone.

use std::fs;
use std::process::Command;
use std::time::Duration;

use black_box::cli::{Dev, repository};
use black_box::{Database, Log, Ran, Service, on_both_databases};
use serde_json::Value;

/// The issuer of these journeys.
const CI: &str = "https://ci.example";

/// Lets the log admit JSON from one issuer, whose key is made beside it.
fn admit_ci(log: &Log, revision: u64) {
    let issuer = match log.path("ci.pem").exists() {
        true => log.tabellion(&["issuer", "show", "ci.pem", "--json"]),
        false => log.tabellion(&["issuer", "new", "-o", "ci.pem", "--json"]),
    };
    let did = |ran: &Ran| ran.must_succeed().json()["did_key"].as_str().expect("a DID").to_owned();
    let operator = log.tabellion(&["issuer", "show", "keys/operator.pem", "--json"]);
    log.set_policy(&format!(
        "iss = \"{}\"\norigin = \"{}\"\nrevision = {revision}\nleaf = \"sha256-of-statement\"\n\
         [[operator]]\nkey = \"{}\"\n[[issuer]]\niss = \"{CI}\"\nkeys = [\"{}\"]\n[did]\nkey = []\njwk = []\n\
         [[type]]\ncontent_type = \"application/json\"\nissuers = [\"{CI}\"]\nmax_size = {}\n",
        testkit::LOG_ISS,
        testkit::ORIGIN,
        did(&operator),
        did(&issuer),
        1000 + revision,
    ));
}

fn register(log: &Log, service: &Service, file: &str) -> Ran {
    let url = service.connection_url();
    log.tabellion(&["register", "--key", "ci.pem", "--iss", CI, "--url", &url, "--trust", "trust.toml", file])
}

/// Where a service listens.
trait Reached {
    fn connection_url(&self) -> String;
}

impl Reached for Service {
    fn connection_url(&self) -> String {
        self.url().to_owned()
    }
}

fn write(log: &Log, file: &str, text: &str) {
    fs::write(log.path(file), text).expect("our own folder");
}

fn trust_ci(log: &Log) {
    let add = ["trust", "add", "issuer", "--iss", CI, "--key", "ci.pem", "--trust", "trust.toml"];
    log.tabellion(&add).must_succeed();
}

on_both_databases! {
    /// From `init` to a verified receipt, then a new receipt key: what the old one signed stands.
    fn receipts_outlive_the_key_that_signed_them(log: Log) {
        admit_ci(&log, 0);
        log.tabellion(&["config", "check"]).must_succeed();
        let service = log.serve();
        write(&log, "one.json", "{\"n\":1}");
        let registered = register(&log, &service, "one.json");
        assert!(registered.must_succeed().stderr.contains("pinned"), "{registered}");
        assert_eq!(log.tabellion(&["verify", "one.json.transparent.cose", "--trust", "trust.toml"]).code, Some(4));
        trust_ci(&log);
        log.tabellion(&["verify", "one.json.transparent.cose", "--trust", "trust.toml"]).must_succeed();
        service.stop();

        let old = log.tabellion(&["key", "show", "--json"]).json()["receipt"]["kid"].clone();
        log.tabellion(&["key", "rotate"]).must_succeed();
        let new = log.tabellion(&["key", "show", "--json"]).json()["receipt"]["kid"].clone();
        assert_ne!(old, new);
        let in_use = log.tabellion(&["key", "revoke", new.as_str().expect("a kid"), "--compromised-since", "1"]);
        assert_eq!(in_use.code, Some(6), "{in_use}");
        let keys = log.tabellion(&["key", "list", "--json"]).json();
        let retired = |kid: &Value| keys["keys"].as_array().expect("keys").iter().find(|key| key["kid"] == *kid).map(|key| !key["retired_at"].is_null());
        assert_eq!((retired(&old), retired(&new)), (Some(true), Some(false)), "{keys}");

        let service = log.serve();
        write(&log, "two.json", "{\"n\":2}");
        let unknown_key = register(&log, &service, "two.json");
        assert_eq!(unknown_key.code, Some(4), "a key nobody vouched for: {unknown_key}");
        let kid = new.as_str().expect("a kid");
        let url = service.connection_url();
        log.tabellion(&["trust", "add", "log", "--kid", kid, "--url", &url, "--trust", "trust.toml"]).must_succeed();
        register(&log, &service, "two.json").must_succeed();
        for file in ["one.json.transparent.cose", "two.json.transparent.cose"] {
            log.tabellion(&["verify", file, "--trust", "trust.toml"]).must_succeed();
        }
        let fresh = log.tabellion(&["receipt", "get", "one.json.cose", "--url", &url, "-o", "one.fresh"]);
        fresh.must_succeed();
        log.tabellion(&["receipt", "verify", "one.fresh", "--statement", "one.json.cose", "--trust", "trust.toml"]).must_succeed();
        service.stop();
        log.must_be_sound();
    }

    /// The next policy by `policy publish`, and by a restart with the changed file.
    fn a_policy_is_published_from_the_command_line(log: Log) {
        admit_ci(&log, 0);
        let service = log.serve();
        let url = service.connection_url();
        admit_ci(&log, 1);
        let publish = ["policy", "publish", "policy.toml", "--key", "keys/operator.pem", "--url", &url, "--json"];
        assert_eq!(log.tabellion(&publish).must_succeed().json()["revision"], 1);
        let shown = log.tabellion(&["policy", "show", "--url", &url, "--json"]).json();
        assert_eq!((&shown["revision"], &shown["index"]), (&Value::from(1), &Value::from(1)), "{shown}");
        assert_eq!(log.tabellion(&publish).must_succeed().json()["revision"], 1, "publishing again changes nothing");
        let history = log.tabellion(&["policy", "show", "--history", "--url", &url, "--json"]).must_succeed().json();
        let revisions: Vec<_> = history["history"].as_array().expect("a list").iter().map(|past| &past["revision"]).collect();
        assert_eq!(revisions, [1, 0], "{history}");
        a_policy_is_tried_before_it_is_published(&log);
        admit_ci(&log, 5);
        assert_eq!(log.tabellion(&publish).code, Some(6), "a revision was left out");
        service.stop();
    }
}

/// A statement under the policy in hand, and under the same with a condition that refuses it.
fn a_policy_is_tried_before_it_is_published(log: &Log) {
    write(log, "tried.json", "{\"n\":1}");
    let sign = ["statement", "sign", "--key", "ci.pem", "--iss", CI, "tried.json", "-o", "tried.cose"];
    log.tabellion(&sign).must_succeed();
    let tried =
        log.tabellion(&["policy", "test", "policy.toml", "tried.cose", "--json"]).must_succeed().json();
    assert_eq!(
        (&tried["results"][0]["outcome"], &tried["admitted"]),
        (&Value::from("admitted"), &Value::from(1))
    );
    let policy = fs::read_to_string(log.path("policy.toml")).expect("our own file");
    let rule =
        "[[type.rule]]\nname = \"not-ours\"\nwhen = 'input.sub == \"tried.json\"'\nthen = \"refuse\"\n";
    write(log, "stricter.toml", &format!("{policy}{rule}"));
    let ran = log.tabellion(&["policy", "test", "stricter.toml", "tried.cose"]);
    assert!(ran.code == Some(6) && ran.stdout.contains("not-ours"), "{ran}");
    write(log, "wrong.toml", &format!("{policy}{}", rule.replace("input.sub", "inptu.sub")));
    let ran = log.tabellion(&["policy", "validate", "wrong.toml"]);
    assert!(ran.code == Some(1) && ran.stderr.contains("line 1, column 1"), "{ran}");
}

#[test]
fn a_log_without_its_pin_registers_nothing_until_a_head_is_adopted() {
    let log = Log::sqlite();
    admit_ci(&log, 0);
    let service = log.serve();
    write(&log, "one.json", "{\"n\":1}");
    register(&log, &service, "one.json").must_succeed();
    let root =
        log.tabellion(&["verify", "one.json.transparent.cose", "--trust", "trust.toml", "--json"]).json();
    let root = root["receipts"][0]["root"].as_str().expect("a root").to_owned();
    service.stop();
    log.pins().iter().for_each(|pin| fs::remove_file(pin).expect("the pin"));

    let service = log.serve();
    assert!(service.said().contains("\"code\":\"no-pin\""), "{}", service.said());
    let url = service.connection_url();
    log.tabellion(&["receipt", "get", "one.json.cose", "--url", &url, "-o", "still.receipt"]).must_succeed();
    write(&log, "two.json", "{\"n\":2}");
    let refused = log.tabellion(&[
        "register",
        "--key",
        "ci.pem",
        "--iss",
        CI,
        "--url",
        &url,
        "--timeout",
        "1",
        "two.json",
    ]);
    assert_eq!(refused.code, Some(7), "{refused}");
    service.kill();

    let adopt = |size: &str, root: &str| log.tabellion(&["log", "adopt", "--size", size, "--root", root]);
    assert_eq!(adopt("2", &"00".repeat(32)).code, Some(8));
    adopt("2", &root).must_succeed();
    let service = log.serve();
    register(&log, &service, "two.json").must_succeed();
    service.stop();
    log.must_be_sound();
}

#[test]
fn a_batch_that_was_killed_goes_on_where_it_was() {
    const FILES: usize = 60;
    let dev = Dev::start();
    let entries = || {
        let listed = dev.folder.run(&["entry", "list", "--limit", "1000", "--json"]).json();
        listed["entries"].as_array().map_or(0, Vec::len)
    };
    let before = entries();
    let files: Vec<String> = (0..FILES).map(|n| format!("b{n}.json")).collect();
    for (n, file) in files.iter().enumerate() {
        dev.folder.write(file, format!("{{\"n\":{n}}}"));
    }
    let arguments: Vec<&str> =
        ["register", "--dev", "--json"].into_iter().chain(files.iter().map(String::as_str)).collect();
    for wait in [150, 300] {
        let mut child =
            dev.folder.command(&arguments).stdout(std::process::Stdio::null()).spawn().expect("it starts");
        std::thread::sleep(Duration::from_millis(wait));
        let _ = child.kill();
        let _ = child.wait();
    }
    let kept = files.iter().filter(|file| dev.folder.has(&format!("{file}.receipt"))).count();
    let summary = dev.folder.run(&arguments).must_end_with(0).json();
    let registered = summary["registered"].as_array().expect("a list");
    let fresh = registered.iter().filter(|done| done["fresh"] == true).count();
    assert_eq!((registered.len(), fresh), (FILES, FILES - kept), "{kept} were done before");
    assert_eq!(entries(), before + FILES, "no file is in the log twice");
}

#[test]
fn of_many_files_the_good_ones_are_registered_and_the_others_told() {
    let dev = Dev::start();
    dev.folder.write("good.json", "{}");
    dev.folder.write("bad.cose", [0xd2, 0x84, 0x40]);
    let ended = dev.folder.run(&["register", "--dev", "good.json", "bad.cose", "absent.json"]);
    assert!(
        ended.must_end_with(1).text().ends_with("1 registered, 0 by an earlier run, 2 failed\n"),
        "{ended}"
    );
    assert!(ended.stderr.contains("bad.cose") && ended.stderr.contains("absent.json"), "{ended}");
    assert!(dev.folder.has("good.json.transparent.cose"));
}

#[test]
fn a_dev_log_that_demands_tokens_registers_its_samples_with_one_of_them() {
    let folder = black_box::cli::Folder::new();
    folder.write("tokens", "first 0123456789abcdef\nci fedcba9876543210\n");
    let dev = Dev::start_with(folder, &["--token-required", "--tokens-file", "tokens"]);
    assert_eq!(dev.serving["samples"].as_array().map(Vec::len), Some(5), "{}", dev.serving);
    dev.folder.write("a.json", "{\"n\":1}");
    dev.folder.write("token", "fedcba9876543210\n");
    dev.folder.run(&["register", "--dev", "a.json"]).must_end_with(6);
    dev.folder.run(&["register", "--dev", "a.json", "--token-file", "token"]).must_end_with(0);
}

#[test]
fn commands_on_the_keys_and_the_database_find_the_dev_log_of_the_folder() {
    let Dev { folder, .. } = &Dev::start();
    let shown = folder.run(&["key", "show", "--json"]).must_end_with(0).json();
    assert!(shown["receipt"]["file"].as_str().is_some_and(|file| file.contains("tabellion-dev")), "{shown}");
    let stopped = Dev::start().stop();
    for command in [&["log", "fsck"][..], &["key", "list"], &["backup", "create", "log.backup"]] {
        stopped.run(command).must_end_with(0);
    }
    assert!(stopped.has("log.backup"));
}

#[test]
fn a_dev_log_says_where_it_is_kept() {
    let usual = Dev::start();
    assert_eq!(usual.serving["storage"], "SQLite, ./tabellion-dev (delete the folder to start over)");
    let database = Database::postgres();
    let url = database.url();
    let elsewhere = Dev::start_with(black_box::cli::Folder::new(), &["--db", &url]);
    let storage = elsewhere.serving["storage"].as_str().expect("text");
    assert!(
        storage.starts_with("PostgreSQL, postgres") && storage.contains("drop the database"),
        "{storage}"
    );
    let folder = black_box::cli::Folder::new();
    fs::create_dir(folder.path("data")).expect("our own folder");
    let moved = Dev::start_with(folder, &["--db", "sqlite:data/log.db"]);
    let storage = moved.serving["storage"].as_str().expect("text");
    assert!(storage.starts_with("SQLite, data/log.db"), "{storage}");
}

#[test]
fn the_trust_file_of_a_dev_log_verifies_what_the_log_itself_signed() {
    let dev = Dev::start();
    let policy = dev.folder.run(&["entry", "list", "--limit", "1", "--json"]).must_end_with(0).json();
    let policy = policy["entries"][0]["entry_id"].as_str().expect("the first entry");
    dev.folder.run(&["bundle", policy, "-o", "policy.bundle"]).must_end_with(0);
    let told = dev.folder.run(&["verify", "policy.bundle"]).must_end_with(0).text();
    assert!(told.contains("ok    issuer signature      https://dev.tabellion.example"), "{told}");
}

#[test]
fn a_suggested_command_names_a_file_as_a_shell_reads_it() {
    let dev = Dev::start();
    let folder = &dev.folder;
    let register = ["register", "--dev", "it's mine.json"];
    folder.write("it's mine.json", "{}");
    folder.run(&register).must_end_with(0);
    folder.write("it's mine.json", "{\"n\":1}");
    let refused = folder.run(&register);
    let (_, command) =
        refused.must_end_with(10).stderr.split_once("  try: ").expect("a command is suggested");
    let moved = Command::new("sh").args(["-c", command]).current_dir(folder.path("")).status();
    assert!(moved.expect("sh runs").success(), "{command}");
    assert!(folder.has("it's mine.json.cose.old"), "{command}");
}

#[test]
fn a_statement_that_was_signed_before_is_registered_under_the_terms_given_or_not_at_all() {
    const TERMS: [&str; 6] =
        ["--sub", "deployment", "--iss", "https://dev.issuer.example", "--content-type", "text/plain"];
    const KEY: &str = "tabellion-dev/issuer.key";
    let dev = Dev::start();
    let folder = &dev.folder;
    folder.write("a.json", "{\"n\":1}");
    folder.run(&["issuer", "new", "-o", "other.pem"]).must_end_with(0);
    let sign = [&["statement", "sign", "--key", KEY, "a.json"][..], &TERMS].concat();
    folder.run(&sign).must_end_with(0);
    let differences = |file: &str| {
        for (flag, value) in [
            ("--sub", "another"),
            ("--iss", "https://other.example"),
            ("--content-type", "application/json"),
            ("--key", "other.pem"),
        ] {
            let refused = folder.run(&["register", "--json", file, flag, value]);
            assert_eq!(refused.must_end_with(10).error(), "signed-otherwise", "{flag}: {refused}");
            assert!(refused.stderr.contains(flag), "{refused}");
        }
    };
    differences("a.json");
    assert!(!folder.has("a.json.receipt"), "nothing was sent");
    let as_signed = [&["register", "--key", KEY, "a.json"][..], &TERMS].concat();
    folder.run(&as_signed).must_end_with(0);
    differences("a.json");
    differences("a.json.cose");
    for again in [&["register", "a.json"][..], &["register", "--dev", "a.json"], &as_signed] {
        folder.run(again).must_end_with(0);
    }
}

#[test]
fn a_receipt_of_another_log_is_none_of_this_one() {
    let dev = Dev::start();
    dev.folder.write("a.json", "{\"n\":1}");
    let log = Log::sqlite();
    let service = log.serve();
    let key = ["--key", "tabellion-dev/issuer.key", "--iss", "https://dev.issuer.example"];
    dev.folder.run(&[&["register", "a.json"][..], &key].concat()).must_end_with(0);
    let elsewhere = [&["register", "--json", "a.json", "--url", service.url()][..], &key].concat();
    let asked = dev.folder.run(&elsewhere);
    assert_eq!(
        asked.must_end_with(6).error(),
        "not-authenticated",
        "the other log was asked, and refused: {asked}"
    );
}

#[test]
fn a_start_that_fails_says_what_to_do() {
    let dev = Dev::start();
    let listen = dev.serving["listen"].as_str().expect("an address").to_owned();
    let log = Log::sqlite();
    admit_ci(&log, 0);
    log.configure(&format!("listen = \"{listen}\""));
    let taken = log.serve_in_vain();
    assert!(taken.stderr.contains("address-in-use"), "{taken}");
    log.configure("listen = \"127.0.0.1:0\"");
    let service = log.serve();
    let second = log.serve_in_vain();
    assert!(second.stderr.contains("database-in-use"), "{second}");
    service.stop();
    log.tabellion(&["key", "new", "-o", "other.pem"]).must_succeed();
    log.configure("receipt_key = \"other.pem\"");
    let other = log.serve_in_vain();
    assert!(other.stderr.contains("key-of-another-log"), "{other}");
    log.configure("receipt_key = \"keys/receipt.pem\"\ntls_cert = \"absent.pem\"\ntls_key = \"absent.pem\"\nstate_dir = \"data\"");
    let check = log.tabellion(&["config", "check"]);
    assert!(check.code == Some(2) && check.stderr.contains("state_dir"), "{check}");
    log.configure("state_dir = \"state\"");
    let check = log.tabellion(&["config", "check"]);
    assert!(check.code == Some(2) && check.stderr.contains("tls_cert"), "{check}");
}

#[test]
fn what_deploy_holds_can_be_used() {
    let folder = black_box::cli::Folder::new();
    let config = repository("deploy/tabellion.toml");
    let shown = folder
        .run(&["config", "show", "--json", "--config", &config.display().to_string()])
        .must_end_with(0)
        .json();
    assert!(shown["settings"].as_array().is_some_and(|settings| settings.len() > 20));
    let checked = folder.run(&["config", "check", "--config", &config.display().to_string()]);
    let missing = ["receipt_key", "checkpoint_key", "tls_cert", "policy"];
    assert!(missing.iter().all(|key| checked.stderr.contains(key)), "only files are missing: {checked}");
    assert!(!checked.stderr.contains("has no default"), "{checked}");
    folder
        .run(&["policy", "validate", &repository("deploy/policy.toml").display().to_string()])
        .must_end_with(0);

    let unit = fs::read_to_string(repository("deploy/tabellion.service")).expect("the unit");
    let settings = folder.run(&["config", "env"]).text();
    let lines = || unit.lines().map(|line| line.trim_start_matches("# "));
    let demanded = unit.lines().any(|line| line.starts_with("LoadCredential="));
    assert!(!demanded, "the example keeps the database's URL in its file");
    assert!(lines().any(|line| line.starts_with("Environment=")), "{unit}");
    for variable in lines().filter_map(|line| line.strip_prefix("Environment=")) {
        let name = variable.split('=').next().expect("a name").trim_end_matches("_FILE");
        assert!(settings.lines().any(|line| line.split(' ').next() == Some(name)), "{name} is not a setting");
    }
}

#[test]
fn everything_in_deploy_can_run_on_one_machine() {
    let mut ports = Vec::new();
    let paths =
        fs::read_dir(repository("deploy")).expect("the folder").map(|file| file.expect("a file").path());
    for file in paths.filter(|path| path.is_file()) {
        let text = fs::read_to_string(file).expect("text");
        for line in text.lines().filter(|line| line.contains("listen")) {
            let port = line.split_once("127.0.0.1:").map(|(_, rest)| rest);
            ports.extend(port.map(|rest| rest.chars().take_while(char::is_ascii_digit).collect::<String>()));
        }
    }
    ports.sort();
    let all = ports.len();
    ports.dedup();
    assert!(all >= 4 && ports.len() == all, "{ports:?}");
}

#[test]
fn r36_every_systemd_unit_starts_after_the_clock_is_set() {
    let mut units = 0;
    for file in fs::read_dir(repository("deploy")).expect("the folder") {
        let path = file.expect("a file").path();
        if path.extension().is_none_or(|ending| ending != "service") {
            continue;
        }
        units += 1;
        let unit = fs::read_to_string(&path).expect("the unit");
        for order in ["After=", "Wants="] {
            let targets = unit.lines().filter_map(|line| line.strip_prefix(order));
            let waits = targets.flat_map(|line| line.split(' ')).any(|target| target == "time-sync.target");
            assert!(waits, "{} has no {order}time-sync.target", path.display());
        }
    }
    assert_eq!(units, 5);
}
