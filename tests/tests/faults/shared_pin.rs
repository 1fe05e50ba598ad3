//! A pin in a database of its own: two hosts lead the same log in turn, and neither forks it (R21, R23).

use black_box::{Database, Log};
use scitt::{Receipt, SignedStatement};

fn registered(log: &Log, service: &black_box::Service) -> (SignedStatement, Receipt) {
    let statement = log.statement();
    let answer = service.connection().post(statement.bytes());
    assert_eq!(answer.status, 201, "{answer:?}");
    (statement, Receipt::parse(answer.body).unwrap())
}

#[test]
fn r22_a_second_host_leads_with_the_pin_that_both_share() {
    let (log, pins) = (Log::postgres(), Database::postgres());
    log.configure(&format!("pin = \"{}\"\nstate_dir = \"state\"", pins.url()));
    let service = log.serve();
    let (first, _) = registered(&log, &service);
    service.kill();
    log.configure("state_dir = \"another-host\"");
    let service = log.serve();
    let (_, receipt) = registered(&log, &service);
    assert_eq!(receipt.inclusion_proofs()[0].leaf_index.get(), 2);
    let again = service.connection().get(&format!("/entries/{}", first.digest()));
    assert_eq!(again.status, 200, "{again:?}");
    service.stop();
    log.must_be_sound();
}

#[test]
fn r21_a_database_copy_behind_the_shared_pin_is_not_continued() {
    let (log, pins) = (Log::postgres(), Database::postgres());
    log.configure(&format!("pin = \"{}\"", pins.url()));
    let service = log.serve();
    registered(&log, &service);
    service.stop();
    let copy = log.database().back_up();
    let service = log.serve();
    registered(&log, &service);
    service.stop();
    log.database().restore(&copy);
    let service = log.serve();
    let refused = service.connection().post(log.statement().bytes()).refusal();
    assert_eq!(refused.0, 503, "{refused:?}");
    let why = String::from_utf8(service.admin().get("/readyz").body).unwrap();
    assert!(why.contains("this log has signed"), "{why}");
}

#[test]
fn the_pin_is_not_kept_in_the_database_of_the_log() {
    let log = Log::postgres();
    log.configure(&format!("pin = \"{}\"", log.database().url()));
    let ran = log.serve_in_vain();
    assert!(ran.stderr.contains("must not be the log's database"), "{ran}");
}
