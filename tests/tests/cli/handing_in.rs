//! Detached payloads and batches, by every client that there is: a socket, curl, Python, and our own program.

use std::fs;
use std::process::Command;
use std::thread::sleep;
use std::time::{Duration, Instant};

use black_box::cli::Dev;
use black_box::{Connection, Log, multipart, on_both_databases};
use scitt::{SignedStatement, StatementBuilder};
use serde_json::{Value, json};

/// Statements handed in before the process dies.
const PROMISES: usize = 40;
/// How long a promise may take to be kept.
const SOON: Duration = Duration::from_secs(30);

fn payload(n: usize) -> Vec<u8> {
    json!({ "n": n, "pad": "x".repeat(1000) }).to_string().into_bytes()
}

fn detached(n: usize) -> SignedStatement {
    StatementBuilder::new(payload(n))
        .content_type("application/json")
        .kid(testkit::KID.as_bytes())
        .iss(testkit::ISSUER)
        .sub(&format!("detached-{n}"))
        .detached()
        .sign(&testkit::es256())
        .unwrap()
}

/// Hands in detached statements until the service has promised some, and kills it.
fn promises(log: &Log) -> Vec<(usize, SignedStatement)> {
    let service = log.serve();
    let mut connection = service.connection();
    let form = multipart::content_type("form-data");
    let mut promised = Vec::new();
    for n in 0..PROMISES {
        let statement = detached(n);
        let body = multipart::form(statement.bytes(), &payload(n));
        let answer = connection.send("POST", "/entries", &[("Content-Type", &form)], &body);
        assert!(matches!(answer.status, 201 | 202), "{answer:?}");
        promised.push((answer.status, n, statement));
    }
    service.kill();
    assert!(promised.iter().any(|(status, ..)| *status == 202), "nothing was left for later");
    promised.into_iter().map(|(_, n, statement)| (n, statement)).collect()
}

fn must_be_registered(connection: &mut Connection, statement: &SignedStatement) {
    let begun = Instant::now();
    loop {
        let answer = connection.get(&format!("/entries/{}", statement.digest()));
        match answer.status {
            200 => return,
            204 => sleep(Duration::from_millis(50)),
            _ => panic!("{answer:?}"),
        }
        assert!(begun.elapsed() < SOON, "a promise is not kept");
    }
}

on_both_databases! {
    fn a_detached_statement_that_was_promised_survives_a_kill_with_its_payload(log: Log) {
        log.configure("answer_within_ms = 1");
        let promised = promises(&log);
        let service = log.serve();
        let mut connection = service.connection();
        for (n, statement) in &promised {
            must_be_registered(&mut connection, statement);
            let answer = connection.get(&format!("/v1/entries/{}/payload", statement.digest()));
            assert_eq!((answer.status, &answer.body), (200, &payload(*n)));
        }
        service.stop();
        log.must_be_sound();
    }

    fn a_payload_that_is_not_kept_still_waits_with_its_statement_for_a_policy_that_moved(log: Log) {
        let dropping = testkit::policy_toml().replace("detached = true", "detached = true\nkeep_payload = false");
        log.configure("answer_within_ms = 1");
        log.set_policy(&dropping);
        let promised = promises(&log);
        log.set_policy(&dropping.replace("revision = 0", "revision = 1"));
        let service = log.serve();
        let mut connection = service.connection();
        for (_, statement) in &promised {
            must_be_registered(&mut connection, statement);
            let answer = connection.get(&format!("/v1/entries/{}/payload", statement.digest()));
            assert_eq!(answer.refusal(), (404, "Not Found".to_owned()));
        }
        service.stop();
    }

    fn a_batch_is_registered_on_either_database(log: Log) {
        let service = log.serve();
        let statements: Vec<_> = (0..256).map(|_| log.statement()).collect();
        let body = multipart::batch(statements.iter().map(|statement| &statement.bytes()[..]));
        let mixed = multipart::content_type("mixed");
        let answer = service.connection().send("POST", "/v1/entries/batch", &[("Content-Type", &mixed)], &body);
        let results = answer.json()["results"].as_array().unwrap().clone();
        assert_eq!(results.len(), 256);
        assert!(results.iter().all(|result| matches!(result["status"].as_u64(), Some(201 | 202))), "{results:?}");
        let mut connection = service.connection();
        statements.iter().for_each(|statement| must_be_registered(&mut connection, statement));
        service.stop();
        log.must_be_sound();
    }
}

/// Files of a detached statement, its payload, and a statement that holds its own, in the log's folder.
fn files(log: &Log) -> (SignedStatement, [String; 3]) {
    let statement = detached(1);
    let path = |name: &str| log.path(name).to_str().unwrap().to_owned();
    let names = [path("statement.cose"), path("payload.json"), path("attached.cose")];
    fs::write(&names[0], statement.bytes()).unwrap();
    fs::write(&names[1], payload(1)).unwrap();
    fs::write(&names[2], log.statement().bytes()).unwrap();
    (statement, names)
}

fn python(arguments: &[&str]) -> Value {
    black_box::run_python("multipart.py", arguments)
}

#[test]
fn python_hands_in_forms_and_batches() {
    let log = Log::sqlite();
    let (statement, [detached, payload, attached]) = files(&log);
    let service = log.serve();
    assert_eq!(python(&["encoded", service.url(), &detached, &payload])["status"], 400, "nothing is decoded");
    let response = python(&["form", service.url(), &detached, &payload]);
    assert_eq!(response["status"], 201);
    assert!(response["location"].as_str().unwrap().ends_with(&statement.digest().to_string()), "{response}");
    let response = python(&["batch", service.url(), &attached, &detached, &attached]);
    let statuses: Vec<_> =
        response["results"].as_array().unwrap().iter().map(|result| &result["status"]).collect();
    assert_eq!(statuses, [201, 201, 201], "the detached one is known by now");
    service.stop();
}

#[test]
fn curl_hands_in_forms() {
    let log = Log::sqlite();
    let (statement, [detached, payload, _]) = files(&log);
    let service = log.serve();
    let url = format!("{}/entries", service.url());
    let fields = [format!("statement=@{detached};type=application/cose"), format!("payload=@{payload}")];
    for order in [[0, 1], [1, 0]] {
        let mut curl = Command::new("curl");
        curl.args(["-s", "-o", "/dev/null", "-w", "%{http_code}", &url]);
        curl.args(order.iter().flat_map(|field| ["-F", fields[*field].as_str()]));
        assert_eq!(curl.output().unwrap().stdout, b"201");
    }
    let answer = service.connection().get(&format!("/v1/entries/{}/payload", statement.digest()));
    assert_eq!(answer.body, fs::read(payload).unwrap());
    service.stop();
}

#[test]
fn our_own_program_signs_registers_and_verifies_a_detached_payload() {
    let dev = Dev::start();
    dev.folder.write("report.json", "{\"verdict\":\"allow\"}");
    let key = ["--key", "tabellion-dev/issuer.key", "--iss", "https://dev.issuer.example"];
    let sign = [&["statement", "sign", "--detached", "report.json"][..], &key].concat();
    dev.folder.run(&sign).must_end_with(0);
    let register = ["register", "--dev", "--json", "report.json.cose"];
    let ended = dev.folder.run(&register);
    ended.must_end_with(6);
    assert!(ended.stderr.contains("payload-missing"), "{ended}");
    let with = |payload: &'static str| [&register[..], &["--payload", payload]].concat();
    dev.folder.write("other.json", "{}");
    dev.folder.run(&with("other.json")).must_end_with(6);
    let done = dev.folder.run(&with("report.json")).must_end_with(0).json();
    assert_eq!(done["registered"][0]["fresh"], true, "{done}");
    let again = dev.folder.run(&with("report.json")).must_end_with(0).json();
    assert_eq!(again["registered"][0]["fresh"], false, "{again}");
    let other = dev.folder.run(&with("other.json"));
    other.must_end_with(10);
    assert_eq!(other.error(), "payload-changed", "{other}");
    let transparent = "report.json.cose.transparent.cose";
    dev.folder.run(&["verify", transparent, "--payload", "report.json"]).must_end_with(0);
    dev.folder.run(&["verify", transparent, "--payload", "other.json"]).must_end_with(3);
}

#[test]
fn a_payload_goes_with_one_detached_statement_only() {
    let dev = Dev::start();
    dev.folder.write("report.json", "{}");
    dev.folder.write("more.json", "{}");
    dev.folder.run(&["register", "--dev", "report.json"]).must_end_with(0);
    for (arguments, code) in [
        (&["register", "report.json", "more.json", "--payload", "more.json"][..], "usage"),
        (&["register", "--dev", "more.json", "--payload", "report.json"], "usage"),
        (&["register", "--dev", "report.json.cose", "--payload", "report.json"], "payload-twice"),
        (&["register", "--dev", "-", "--payload", "-", "-o", "x"], "stdin-twice"),
    ] {
        let ended = dev.folder.run(arguments);
        ended.must_end_with(2);
        assert!(ended.stderr.contains(code), "{arguments:?}: {ended}");
    }
}

#[test]
fn more_files_than_one_batch_holds_are_registered_in_their_order() {
    const FILES: usize = 300;
    let dev = Dev::start();
    let files: Vec<String> = (0..FILES).map(|n| format!("f{n:03}.json")).collect();
    for (n, file) in files.iter().enumerate() {
        dev.folder.write(file, format!("{{\"n\":{n}}}"));
    }
    dev.folder.write("f007.json.cose", [0xd2, 0x84, 0x40]);
    let arguments: Vec<&str> =
        ["register", "--dev", "--json"].into_iter().chain(files.iter().map(String::as_str)).collect();
    let ended = dev.folder.run(&arguments);
    ended.must_end_with(1);
    let summary = ended.json();
    assert_eq!(summary["failed"], 1, "{ended}");
    let registered = summary["registered"].as_array().unwrap();
    let names: Vec<_> = registered.iter().map(|done| done["file"].as_str().unwrap()).collect();
    let expected: Vec<_> = files.iter().map(String::as_str).filter(|file| *file != "f007.json").collect();
    assert_eq!(names, expected);
    let mut leaves: Vec<_> = registered.iter().map(|done| done["leaf_index"].as_u64().unwrap()).collect();
    leaves.sort_unstable();
    leaves.dedup();
    assert_eq!(leaves.len(), FILES - 1);
    dev.folder.run(&["verify", "f299.json.transparent.cose"]).must_end_with(0);
}
