//! Databases that crash, forget, or go back in time.

use std::thread::sleep;
use std::time::Duration;

use black_box::{Cluster, Database, Load, Log, Outcome, Recorder, on_both_databases, sql, try_sql};

/// Times that the server is stopped without a checkpoint.
const CRASHES: u32 = 3;

#[test]
fn r17_a_postgresql_that_crashes_under_load_loses_nothing_and_the_service_recovers_by_itself() {
    let cluster = Cluster::start(&[]);
    let log = Log::on(Database::Postgres(cluster.url().to_owned()));
    let recorder = Recorder::new();
    let load = Load { log: &log, recorder: &recorder, writers: 6 };
    let service = log.serve();
    load.on(&service, || {
        for _ in 0..CRASHES {
            sleep(Duration::from_millis(700));
            cluster.crash();
            sleep(Duration::from_millis(500));
            cluster.recover();
        }
        expect_progress(&recorder);
    });
    assert!(service.runs(), "it went on by itself: {}", service.said());
    recorder.verdict(&log, service);
}

/// Waits until more is registered than before: at most 30 s (I14).
fn expect_progress(recorder: &Recorder) {
    let before = recorder.registered();
    for _ in 0..300 {
        if recorder.registered() > before + 5 {
            return;
        }
        sleep(Duration::from_millis(100));
    }
    panic!("nothing is registered after the fault: {:?}", recorder.answers());
}

#[test]
fn r24_a_postgresql_without_synchronous_commit_is_refused_at_start() {
    let log = Log::postgres();
    log.serve().stop();
    let url = log.database().url();
    let name = url.rsplit_once('/').unwrap().1.to_owned();
    sql(&url, &format!("ALTER DATABASE {name} SET synchronous_commit = off"));
    let ran = log.serve_in_vain();
    assert_eq!(ran.code, Some(1), "{ran}");
    assert!(ran.stderr.contains("synchronous_commit"), "{ran}");
    sql(&url, &format!("ALTER DATABASE {name} RESET synchronous_commit"));
    log.serve().stop();
}

#[test]
fn r24_a_postgresql_without_fsync_is_refused_at_start() {
    let cluster = Cluster::start(&["fsync=off"]);
    let log = Log::on(Database::Postgres(cluster.url().to_owned()));
    let ran = log.serve_in_vain();
    assert_eq!(ran.code, Some(1), "{ran}");
    assert!(ran.stderr.contains("fsync"), "{ran}");
}

on_both_databases! {
    fn r42_a_restored_old_backup_is_never_signed_and_can_still_be_read(log: Log) {
        let recorder = Recorder::new();
        let service = log.serve();
        let mut connection = service.connection();
        let old = log.statement();
        assert_eq!(recorder.register(&mut connection, &old), Outcome::Registered);
        service.stop();
        let backup = log.database().back_up();

        let service = log.serve();
        let mut connection = service.connection();
        let lost = log.statement();
        assert_eq!(recorder.register(&mut connection, &lost), Outcome::Registered);
        recorder.must_have_kept_its_word(&service);
        service.stop();
        log.database().restore(&backup);

        let checked = log.tabellion(&["log", "fsck"]);
        assert_eq!(checked.code, Some(8), "{checked}");
        assert!(checked.stdout.contains("the database is at 2, this log has signed 3"), "{checked}");
        let service = log.serve();
        assert!(
            service.said().contains("the database is at 2, this log has signed 3"),
            "{}",
            service.said()
        );
        let ready = service.admin().get("/readyz");
        assert_eq!(ready.status, 503, "{ready:?}");
        assert!(String::from_utf8_lossy(&ready.body).contains("the database is at 2"), "{ready:?}");
        let mut connection = service.connection();
        for statement in [&lost, &log.statement()] {
            let answer = connection.post(statement.bytes());
            assert_eq!(answer.refusal().0, 503, "nothing is signed");
            answer.must_say_when_to_come_back();
        }
        let read = connection.get(&format!("/entries/{}", old.digest()));
        assert_eq!(read.status, 200, "reads go on: {read:?}");
        assert_eq!(connection.get(&format!("/entries/{}", lost.digest())).status, 404);
        assert_eq!(connection.get("/v1/entries").json()["entries"].as_array().unwrap().len(), 2);
        service.stop();
    }

    fn r42_a_log_whose_pin_is_lost_signs_nothing_until_it_is_told_where_it_stood(log: Log) {
        let recorder = Recorder::new();
        let service = log.serve();
        assert_eq!(recorder.register(&mut service.connection(), &log.statement()), Outcome::Registered);
        service.stop();
        std::fs::remove_dir_all(log.path("state")).unwrap();
        let service = log.serve();
        assert_eq!(service.connection().post(log.statement().bytes()).refusal().0, 503);
        assert_eq!(service.admin().get("/readyz").status, 503);
        recorder.must_have_kept_its_word(&service);
        service.stop();
    }

    fn r53_another_receipt_key_is_refused_at_start(log: Log) {
        log.serve().stop();
        let key = log.path("keys/receipt.pem");
        std::fs::remove_file(&key).unwrap();
        log.tabellion(&["key", "new", "--output", "keys/receipt.pem"]).must_succeed();
        let ran = log.serve_in_vain();
        assert_eq!(ran.code, Some(1), "{ran}");
        assert!(ran.stderr.contains("another key"), "{ran}");
    }
}

/// The logins of the deployment's roles in the log's own database, and what connects as each.
fn with_roles(log: &Log) -> (String, String) {
    let url = log.database().url();
    let suffix = format!("{:08x}", fastrand::u32(..));
    let roles = include_str!("../../../deploy/postgres-roles.sql");
    let group = |name: &str| format!("{name}_{suffix}");
    let mut script = roles.to_owned();
    for name in ["tabellion_owner", "tabellion_service", "tabellion_reader"] {
        script = script.replace(name, &group(name));
    }
    sql(&url, &script);
    let login = |name: &str, of: &str| {
        let (name, of) = (group(name), group(of));
        sql(
            &url,
            &format!("CREATE ROLE {name} LOGIN PASSWORD 'x' IN ROLE {of}; ALTER ROLE {name} SET role = {of}"),
        );
        let mut own = url::Url::parse(&url).unwrap();
        own.set_username(&name).unwrap();
        own.set_password(Some("x")).unwrap();
        own.to_string()
    };
    (login("log_owner", "tabellion_owner"), login("log_service", "tabellion_service"))
}

#[test]
fn a_service_that_owns_no_table_serves_and_cannot_switch_off_what_guards_them() {
    let log = Log::postgres();
    let (owner, service_url) = with_roles(&log);
    log.configure(&format!("db = \"{service_url}\"\ndb_migrate = false"));
    let unmade = log.serve_in_vain();
    assert!(unmade.stderr.contains("migrate"), "{unmade}");
    log.tabellion(&["log", "migrate", "--db", &owner]).must_succeed();
    log.tabellion(&["log", "migrate", "--db", &owner]).must_succeed();
    let recorder = Recorder::new();
    let service = log.serve();
    for _ in 0..3 {
        let registered = recorder.register(&mut service.connection(), &log.statement());
        assert_eq!(registered, Outcome::Registered);
    }
    for forbidden in [
        "ALTER TABLE entry DISABLE TRIGGER ALL",
        "DROP TRIGGER seen_stays ON seen",
        "SET session_replication_role = replica",
        "TRUNCATE entry",
        "CREATE TABLE another (x int)",
        "DELETE FROM batch",
    ] {
        assert!(try_sql(&service_url, forbidden).is_err(), "{forbidden}");
    }
    // What a log of that size needs next, made with the owner's rights and no others.
    assert_eq!(try_sql(&service_url, "SELECT create_entry_partition(1)"), Ok(String::new()));
    recorder.verdict(&log, service);
}
