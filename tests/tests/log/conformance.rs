//! `tabellion conformance` against our service, against services with one fault each, against hostile servers, and
//! against another implementation from a package registry.

mod changes;
mod violations;

use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::io::{Read, Write};
use std::net::TcpListener;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};

use ::conformance::{
    Observations, PROBES, Probe, ProbeOutcome, ProbeRequest, ProbeResponse, Samples, checks, next_request,
};
use black_box::{Answer, FaultyService, ForwardedRequest, Log, Other, Ran, Service, free_address};
use http::StatusCode;
use http::header::LOCATION;
use serde_json::Value;
use violations::{INVIOLABLE, VIOLATIONS, Violation};

/// Checks that no request of a short run against one process can reach: a rate limit, registration in the background,
/// and response codes, which our service does not write.
const NOT_REACHED: &[&str] = &[
    "key-raw-kid",
    "register-retry-after",
    "rate-limit-retry-after",
    "running-status",
    "running-retry-after",
    "running-no-store",
    "problem-response-code",
];
/// Conclusions of a check that found something wrong.
const COMPLAINTS: &[&str] = &["failed", "warning"];
/// Number of runs at a time: each spends most of its time waiting.
const RUNS_AT_A_TIME: usize = 8;
/// The file of the statement that the tests of violations register.
const STATEMENT: &str = "one.cose";

/// Runs the suite with a new key, whose did:key the policy of the tests admits.
fn run(log: &Log, url: &str, more: &[&str]) -> Ran {
    if !log.path("issuer.pem").exists() {
        log.tabellion(&["issuer", "new", "--output", "issuer.pem", "--alg", "EdDSA", "--json"])
            .must_succeed();
    }
    log.tabellion(&[&["conformance", url, "--key", "issuer.pem", "--json"], more].concat())
}

fn named(report: &Value, conclusions: &[&str]) -> BTreeSet<String> {
    findings(report, conclusions).into_keys().collect()
}

/// The findings of the checks with these conclusions, by name of the check.
fn findings(report: &Value, conclusions: &[&str]) -> BTreeMap<String, String> {
    let text = |check: &Value, member: &str| check[member].as_str().unwrap().to_owned();
    let all = report["checks"].as_array().unwrap().iter();
    let chosen = all.filter(|check| conclusions.contains(&check["conclusion"].as_str().unwrap()));
    chosen.map(|check| (text(check, "name"), text(check, "finding"))).collect()
}

fn names(of: &[&str]) -> BTreeSet<String> {
    of.iter().map(|name| (*name).to_owned()).collect()
}

#[test]
fn our_service_meets_every_must_and_every_should() {
    let log = Log::sqlite();
    let service = log.serve();
    let ran = run(&log, service.url(), &["--output", "report.json", "--html", "report.html"]);
    let report = ran.json();
    assert_eq!(findings(&report, COMPLAINTS), BTreeMap::new(), "{ran}");
    assert_eq!(ran.code, Some(0), "{ran}");
    assert_eq!(report["conforms"], true);
    assert_eq!(named(&report, &["not-applicable"]), names(NOT_REACHED), "{ran}");
    assert_eq!(named(&report, &["unsupported"]), BTreeSet::new());
    assert_eq!(report["summary"]["not-selected"], 0);
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
fn every_check_has_a_violation_or_a_reason_why_it_has_none() {
    let suite: BTreeSet<_> = checks().map(|check| check.name).collect();
    let violated: BTreeSet<_> = VIOLATIONS.iter().map(|violation| violation.check).collect();
    let inviolable: BTreeSet<_> = INVIOLABLE.iter().map(|(check, _)| *check).collect();
    assert_eq!(violated.union(&inviolable).copied().collect::<BTreeSet<_>>(), suite);
    assert!(violated.is_disjoint(&inviolable), "{inviolable:?}");
}

#[test]
fn each_violation_is_found_by_its_check_and_by_no_other() {
    let log = Log::sqlite();
    let service = log.serve();
    let proxied = Proxied::new(&log, &service);
    let honest = proxied.run(&FaultyService::of(&proxied.address, |_, _| {}));
    assert_eq!(findings(&honest.json(), COMPLAINTS), BTreeMap::new(), "the proxy alone violates nothing");
    let (wrong, next) = (Mutex::new(Vec::new()), AtomicUsize::new(0));
    std::thread::scope(|scope| {
        for _ in 0..RUNS_AT_A_TIME {
            scope.spawn(|| {
                while let Some(violation) = VIOLATIONS.get(next.fetch_add(1, Ordering::Relaxed)) {
                    wrong.lock().unwrap().extend(proxied.complaint(violation));
                }
            });
        }
    });
    assert_eq!(wrong.into_inner().unwrap(), Vec::<String>::new());
    service.stop();
}

/// A service behind a proxy, and the requests that the suite sends to it with one statement.
struct Proxied<'l> {
    log: &'l Log,
    address: String,
    samples: Samples,
    requests: Vec<(Probe, ProbeRequest)>,
}

impl<'l> Proxied<'l> {
    fn new(log: &'l Log, service: &Service) -> Self {
        let samples = Samples::of(log.statement().bytes().clone()).unwrap();
        fs::write(log.path(STATEMENT), samples.message()).unwrap();
        let address = service.connection().address().to_owned();
        Self { log, address, requests: requests(service, &samples), samples }
    }

    fn run(&self, proxy: &FaultyService) -> Ran {
        self.log.tabellion(&["conformance", &proxy.url(), "--statement", STATEMENT, "--json"])
    }

    /// Returns what the suite should have said about this violation, and did not.
    fn complaint(&self, violation: &'static Violation) -> Option<String> {
        let ran = self.run(&self.violating(violation));
        let found = findings(&ran.json(), COMPLAINTS);
        let expected = names(&[&[violation.check][..], violation.also].concat());
        let finding = found.get(violation.check).cloned().unwrap_or_default();
        let code = if named(&ran.json(), &["failed"]).is_empty() { 0 } else { 3 };
        let is_found = found.keys().eq(&expected) && finding.contains(violation.finding);
        let is_right = is_found && ran.code == Some(code);
        (!is_right)
            .then(|| format!("{} ({}): {found:?}, exit {:?}", violation.check, violation.finding, ran.code))
    }

    /// Starts a proxy that changes the answer to one request.
    fn violating(&self, violation: &'static Violation) -> FaultyService {
        let mut unseen = self.requests.clone();
        let statement = self.samples.statement().clone();
        FaultyService::of(&self.address, move |request, answer| {
            let Some(place) = unseen.iter().position(|(_, expected)| is_same(expected, request)) else {
                return;
            };
            let (probe, _) = unseen.remove(place);
            if probe == violation.at {
                violation.changes.iter().for_each(|change| change.apply(answer, &statement));
            }
        })
    }
}

/// The requests of the suite in their order. Some are equal: their place among each other tells which is which.
fn requests(service: &Service, samples: &Samples) -> Vec<(Probe, ProbeRequest)> {
    let mut connection = service.connection();
    let base = format!("{}/", service.url()).parse().unwrap();
    let mut observations = Observations::new(samples.statement().clone(), 0);
    observations.record(Probe::Keys, answered(connection.get("/.well-known/scitt-keys")));
    observations.record(Probe::Registration, answered(connection.post(samples.message())));
    let request = |probe: &Probe| Some((*probe, next_request(*probe, &base, samples, &observations)?));
    PROBES.iter().filter_map(request).collect()
}

fn answered(answer: Answer) -> ProbeOutcome {
    let location = answer.header("location").map(|location| (LOCATION, location.parse().unwrap()));
    ProbeOutcome::Answered(ProbeResponse {
        status: StatusCode::from_u16(answer.status).unwrap(),
        headers: location.into_iter().collect(),
        body: answer.body.into(),
    })
}

fn is_same(expected: &ProbeRequest, request: &ForwardedRequest) -> bool {
    request.method == expected.method.as_str()
        && request.path == expected.url.path()
        && request.accept.as_deref() == Some(expected.accept)
        && request.content_type.as_deref() == expected.content_type
        && request.body == expected.body
}

#[test]
fn a_run_of_some_checks_sends_only_what_they_need_and_reports_only_them() {
    let log = Log::sqlite();
    let service = log.serve();
    let paths = Arc::new(Mutex::new(Vec::new()));
    let seen = paths.clone();
    let proxy = FaultyService::of(service.connection().address(), move |request, _| {
        seen.lock().unwrap().push(request.path.clone());
    });
    let ran = run(&log, &proxy.url(), &["--only", "path-unknown", "--only", "keys-status"]);
    assert_eq!(ran.code, Some(0), "{ran}");
    assert_eq!(named(&ran.json(), &["passed"]), names(&["keys-status", "path-unknown"]), "{ran}");
    assert_eq!(ran.json()["summary"]["not-selected"], checks().count() - 2);
    assert_eq!(*paths.lock().unwrap(), ["/.well-known/scitt-keys", "/no-such-entries"]);
    service.stop();
}

#[test]
fn a_run_of_some_checks_does_not_say_that_the_service_conforms() {
    let log = Log::sqlite();
    let service = log.serve();
    run(&log, service.url(), &["--only", "path-unknown", "--html", "report.html"]).must_succeed();
    let ran = log.tabellion(&["conformance", service.url(), "--key", "issuer.pem", "--only", "path-unknown"]);
    assert_eq!(ran.code, Some(0), "{ran}");
    let html = fs::read_to_string(log.path("report.html")).unwrap();
    for text in [&ran.stdout, &html] {
        assert!(text.contains("o MUST of the selected checks is violated"), "{text}");
        assert!(!text.contains("conforms: "), "{text}");
    }
    service.stop();
}

#[test]
fn a_check_that_the_suite_does_not_have_cannot_be_selected() {
    let log = Log::sqlite();
    let ran = run(&log, &format!("http://{}", free_address()), &["--only", "keys-stauts"]);
    assert_eq!(ran.code, Some(2), "{ran}");
    assert!(ran.stderr.contains("keys-stauts"), "{ran}");
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
    let failed = named(&ran.json(), &["failed"]);
    let expected = names(&["keys-status", "register-status", "problem-content-type", "problem-body"]);
    assert!(expected.is_subset(&failed), "{failed:?}");
}
