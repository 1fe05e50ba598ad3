//! A log whose newest head carries a time in the future continues after `tabellion log clock`, and only then.

use black_box::{Answer, Log, Ran, Service, WrongClock};
use data_encoding::BASE64URL_NOPAD;
use scitt::{KeySet, Receipt};

const YEAR: u64 = 365 * 86_400;
const OPERATOR: &str = "keys/operator.pem";

/// A log that was served for a moment with a clock a year ahead.
fn ahead() -> Log {
    let log = Log::sqlite();
    let service = log.serve();
    assert_eq!(register(&log, &service).status, 201);
    service.stop();
    let service = log.serve_with(&WrongClock::new().ahead(YEAR));
    assert_eq!(register(&log, &service).status, 201);
    service.stop();
    log
}

fn register(log: &Log, service: &Service) -> Answer {
    service.connection().post(log.statement().bytes())
}

fn correct(log: &Log, service: &Service, true_time: u64, key: &str) -> Ran {
    let time = jiff::Timestamp::from_second(i64::try_from(true_time).unwrap()).unwrap().to_string();
    let stated = ["--true-time", &time, "--reason", "the clock was a year ahead", "--key", key];
    log.on_admin(service, &[&["log", "clock"], &stated[..]].concat())
}

fn now() -> u64 {
    std::time::SystemTime::now().duration_since(std::time::UNIX_EPOCH).unwrap().as_secs()
}

#[test]
fn r36_after_a_clock_was_ahead_an_operators_statement_lets_the_log_continue() {
    let log = ahead();
    let service = log.serve();
    let refused = register(&log, &service);
    assert_eq!(refused.status, 503, "{refused:?}");
    let reasons = service.admin().get("/readyz");
    assert!(String::from_utf8_lossy(&reasons.body).contains("tabellion log clock"), "{reasons:?}");

    let corrected = correct(&log, &service, now(), OPERATOR);
    assert_eq!(corrected.code, Some(0), "{corrected}");
    assert_eq!(
        (&corrected.json()["size"], &corrected.json()["index"]),
        (&3.into(), &3.into()),
        "{corrected}"
    );
    let registered = register(&log, &service);
    assert_eq!(registered.status, 201, "{registered:?}");
    let signed = Receipt::parse(registered.body).unwrap();
    let at = signed.header().claims().unwrap().iat().unwrap();
    assert!(at.unsigned_abs().abs_diff(now()) < 60, "{at}");

    let again = correct(&log, &service, now(), OPERATOR);
    assert_eq!(again.code, Some(2), "{again}");
    must_be_clean_from_outside(&log, &service);
    service.stop();
    log.must_be_sound();
    let service = log.serve();
    assert_eq!(register(&log, &service).status, 201, "a restart changes nothing");
    let entry = corrected.json()["entry_id"].as_str().unwrap().to_owned();
    let erase = ["entry", "erase", &entry, "--reason", "no", "--key", OPERATOR, "--url", service.url()];
    let erased = log.tabellion(&erase);
    assert!(erased.stderr.contains("erasure-entry-permanent"), "{erased}");
    service.stop();
}

#[test]
fn r36_a_log_whose_time_is_ahead_stays_halted_without_a_correction_that_the_operator_signed() {
    let log = ahead();
    let service = log.serve();
    let year_off = correct(&log, &service, now() + YEAR, OPERATOR);
    assert!(year_off.code == Some(2) && year_off.stderr.contains("clock-differs"), "{year_off}");
    let another = correct(&log, &service, now(), "keys/receipt.pem");
    assert!(another.code == Some(2) && another.stderr.contains("not-an-operator"), "{another}");
    assert_eq!(register(&log, &service).status, 503);
    service.stop();
    let service = log.serve();
    assert_eq!(register(&log, &service).status, 503, "a restart does not help");
    service.stop();
    log.must_be_sound();
}

#[test]
fn a_log_whose_time_is_right_is_not_corrected() {
    let log = Log::sqlite();
    let service = log.serve();
    let refused = correct(&log, &service, now(), OPERATOR);
    assert!(refused.code == Some(2) && refused.stderr.contains("not-ahead"), "{refused}");
    assert_eq!(register(&log, &service).status, 201);
    service.stop();
}

#[track_caller]
fn must_be_clean_from_outside(log: &Log, service: &Service) {
    let keys = KeySet::parse(&service.connection().get("/.well-known/scitt-keys").body).unwrap();
    let kid = BASE64URL_NOPAD.encode(keys.keys()[0].kid.as_deref().unwrap());
    let add = ["trust", "add", "log", "--kid", &kid, "--url", service.url(), "--trust", "trust.toml"];
    log.tabellion(&add).must_succeed();
    let audit = log.tabellion(&["audit", "--json", "--url", service.url(), "--trust", "trust.toml"]);
    assert_eq!(audit.code, Some(0), "{audit}");
    let report = audit.json();
    assert_eq!((&report["decided"], &report["clean"]), (&report["entries"], &true.into()), "{report}");
}
