//! `tabellion conformance` against our service, against services with one fault each, against hostile servers, and
//! against another implementation from a package registry.

use std::fs;
use std::io::{Read, Write};
use std::net::TcpListener;

use black_box::{Answer, AnswerFault, FaultyService, Log, Other, Ran, free_address};
use serde_json::Value;

/// Checks that no request of a short run against one process can reach: a rate limit, and registration in the background.
const NOT_REACHED: &[&str] = &[
    "key-raw-kid",
    "register-retry-after",
    "rate-limit-retry-after",
    "running-status",
    "running-retry-after",
    "running-no-store",
];

/// Faults of a service: a name, the check that finds it, and the fault.
const FAULTS: &[(&str, &str, AnswerFault)] = &[
    ("200 for a registration", "register-status", |method, path, answer| {
        if is_registration(method, path, answer) {
            answer.status = 200;
        }
    }),
    ("no Location", "register-location", |method, path, answer| {
        if is_registration(method, path, answer) {
            answer.set_header("location", None);
        }
    }),
    ("a receipt as text", "resolve-content-type", |_, path, answer| {
        if is_receipt(path, answer) {
            answer.set_header("content-type", Some("text/plain"));
        }
    }),
    ("a receipt that is no COSE", "receipt-structure", |_, path, answer| {
        if is_receipt(path, answer) {
            answer.body = b"registered".to_vec();
        }
    }),
    ("a receipt with a wrong signature", "receipt-verifies", |_, path, answer| {
        if is_receipt(path, answer) {
            *answer.body.last_mut().unwrap() ^= 1;
        }
    }),
    ("a receipt without a signature", "receipt-verifies", |_, path, answer| {
        if is_receipt(path, answer) {
            let unsigned = answer.body.len() - 66;
            answer.body.truncate(unsigned);
            answer.body.push(0x40);
        }
    }),
    (
        "a wrong receipt in the answer to the registration",
        "receipt-on-registration",
        |method, path, answer| {
            if is_registration(method, path, answer) {
                *answer.body.last_mut().unwrap() ^= 1;
            }
        },
    ),
    ("no keys", "keys-set", |_, path, answer| {
        if path.ends_with("/scitt-keys") {
            answer.body = vec![0x80];
        }
    }),
    ("a key in an array", "key-body", |_, path, answer| {
        if path.contains("/scitt-keys/") && answer.status == 200 {
            answer.body.insert(0, 0x81);
        }
    }),
    ("problems as JSON", "problem-content-type", |_, _, answer| {
        if answer.status >= 400 {
            answer.set_header("content-type", Some("application/problem+json"));
        }
    }),
    ("problems without a body", "problem-body", |_, _, answer| {
        if answer.status >= 400 {
            answer.body.clear();
        }
    }),
    ("problems without details", "problem-title-detail", |_, _, answer| {
        if answer.status >= 400 {
            answer.body = vec![0xa1, 0x20, 0x61, b'x'];
        }
    }),
    ("everything is registered", "hostile-signature", |method, path, answer| {
        if method == "POST" && path == "/entries" {
            answer.status = 201;
        }
    }),
    ("500 for an unknown entry", "entry-unknown", |_, path, answer| {
        if path.starts_with("/entries/") && answer.status == 404 {
            answer.status = 500;
        }
    }),
    ("405 without Allow", "method-allow", |_, _, answer| answer.set_header("allow", None)),
];

fn is_registration(method: &str, path: &str, answer: &Answer) -> bool {
    method == "POST" && path == "/entries" && answer.status == 201
}

fn is_receipt(path: &str, answer: &Answer) -> bool {
    path.starts_with("/entries/") && answer.status == 200
}

/// Runs the suite with a new key, whose did:key the policy of the tests admits.
fn run(log: &Log, url: &str, more: &[&str]) -> Ran {
    if !log.path("issuer.pem").exists() {
        log.tabellion(&["issuer", "new", "--output", "issuer.pem", "--alg", "EdDSA", "--json"])
            .must_succeed();
    }
    log.tabellion(&[&["conformance", url, "--key", "issuer.pem", "--json"], more].concat())
}

fn checks(report: &Value, conclusion: &str) -> Vec<String> {
    let all = report["checks"].as_array().unwrap().iter();
    let named = all.filter(|check| check["conclusion"] == conclusion);
    named.map(|check| check["name"].as_str().unwrap().to_owned()).collect()
}

#[test]
fn our_service_meets_every_must_and_every_should() {
    let log = Log::sqlite();
    let service = log.serve();
    let ran = run(&log, service.url(), &["--output", "report.json", "--html", "report.html"]);
    let report = ran.json();
    assert_eq!((checks(&report, "failed"), checks(&report, "warning")), (vec![], vec![]), "{ran}");
    assert_eq!(ran.code, Some(0), "{ran}");
    assert_eq!(report["conforms"], true);
    assert_eq!(checks(&report, "not-applicable"), NOT_REACHED, "{ran}");
    assert_eq!(checks(&report, "unsupported"), Vec::<String>::new());
    let file: Value = serde_json::from_slice(&fs::read(log.path("report.json")).unwrap()).unwrap();
    assert_eq!(file, report);
    let page = fs::read_to_string(log.path("report.html")).unwrap();
    assert!(page.contains("receipt-verifies") && !page.contains("<script"), "{page}");
    service.stop();
    log.must_be_sound();
}

#[test]
fn a_statement_in_a_file_is_registered_and_tested() {
    let log = Log::sqlite();
    let service = log.serve();
    fs::write(log.path("one.cose"), log.statement().bytes()).unwrap();
    let ran = log.tabellion(&["conformance", service.url(), "--statement", "one.cose"]);
    assert_eq!(ran.code, Some(0), "{ran}");
    service.stop();
}

#[test]
fn each_fault_of_a_service_is_found_by_its_check() {
    let log = Log::sqlite();
    let service = log.serve();
    let connection = service.connection();
    let honest = FaultyService::of(connection.address(), |_, _, _| {});
    assert_eq!(run(&log, &honest.url(), &[]).code, Some(0), "the proxy alone is no fault");
    let (log, address) = (&log, connection.address());
    std::thread::scope(|scope| {
        for (name, check, fault) in FAULTS {
            scope.spawn(move || {
                let faulty = FaultyService::of(address, *fault);
                let ran = run(log, &faulty.url(), &[]);
                assert_eq!(ran.code, Some(3), "{name}: {ran}");
                let failed = checks(&ran.json(), "failed");
                assert!(failed.iter().any(|failed| failed == check), "{name}: {failed:?}");
            });
        }
    });
    service.stop();
}

#[test]
fn a_server_that_does_not_speak_http_is_reported_and_harms_nothing() {
    let answers: [&[u8]; 4] = [
        b"",
        b"\x00\xff\xd2\x84 no HTTP at all\r\n\r\n",
        b"HTTP/1.1 200 OK\r\nContent-Type: application/cbor\r\nContent-Length: 9999999999999\r\n\r\n",
        b"HTTP/1.1 201 Created\r\nLocation: http://[::1]:1/entries/%00\r\nContent-Length: 3\r\n\r\n\x9f\x9f\x9f",
    ];
    let log = Log::sqlite();
    for answer in answers {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let url = format!("http://{}", listener.local_addr().unwrap());
        std::thread::spawn(move || {
            for mut stream in listener.incoming().flatten() {
                let _ = stream.read(&mut [0; 4096]);
                let _ = stream.write_all(answer);
            }
        });
        let ran = run(&log, &url, &[]);
        assert!(matches!(ran.code, Some(3 | 7)), "{ran}");
    }
}

#[test]
fn an_unreachable_service_is_no_failed_check() {
    let log = Log::sqlite();
    let ran = run(&log, &format!("http://{}", free_address()), &[]);
    assert_eq!(ran.code, Some(7), "{ran}");
    assert!(ran.to_string().contains("unreachable"), "{ran}");
}

/// The only other service that a package registry has. It implements none of the resources of SCRAPI -11.
#[test]
fn the_service_of_csoai_scitt_ts_does_not_speak_scrapi() {
    let log = Log::sqlite();
    let other = Other::csoai_service();
    let ran = run(&log, &other.url, &[]);
    assert_eq!(ran.code, Some(3), "{ran}");
    let failed = checks(&ran.json(), "failed");
    let expected = ["keys-status", "register-status", "problem-content-type", "problem-body"];
    assert!(expected.iter().all(|check| failed.iter().any(|failed| failed == check)), "{failed:?}");
}
