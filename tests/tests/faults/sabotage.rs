//! Whoever checks must see what is wrong: the recorder and `log fsck` are shown logs that were tampered with.

use std::fs;
use std::panic::{AssertUnwindSafe, catch_unwind};

use black_box::{Log, Outcome, Recorder, Service, on_both_databases};
use scitt::{Receipt, SignedStatement};

/// What the recorder says of the service, which must be something.
fn accusation(recorder: &Recorder, service: &Service) -> String {
    let checked = catch_unwind(AssertUnwindSafe(|| recorder.must_have_kept_its_word(service)));
    *checked.expect_err("nothing was seen").downcast::<String>().unwrap()
}

fn registered(recorder: &Recorder, service: &Service, statement: &SignedStatement) -> Receipt {
    let mut connection = service.connection();
    assert_eq!(recorder.register(&mut connection, statement), Outcome::Registered);
    Receipt::parse(connection.get(&format!("/entries/{}", statement.digest())).body).unwrap()
}

on_both_databases! {
    fn a_fork_that_an_operator_forced_is_seen_by_the_recorder(log: Log) {
        let recorder = Recorder::new();
        let service = log.serve();
        let first = log.statement();
        let receipt = registered(&recorder, &service, &first);
        service.stop();
        let backup = log.database().back_up();
        let service = log.serve();
        let forgotten = log.statement();
        registered(&recorder, &service, &forgotten);
        service.stop();

        // An old backup, and a pin that was made to fit it.
        log.database().restore(&backup);
        fs::remove_dir_all(log.path("state")).unwrap();
        let root = receipt.implied_root(&first.digest().leaf_hash()).unwrap().to_string();
        log.tabellion(&["log", "adopt", "--size", "2", "--root", &root]).must_succeed();
        let service = log.serve();
        registered(&recorder, &service, &log.statement());
        let said = accusation(&recorder, &service);
        assert!(said.contains(&format!("no fresh receipt of {}", forgotten.digest())), "{said}");
        // Registered again, the forgotten statement has another leaf than its receipt says.
        registered(&recorder, &service, &forgotten);
        let said = accusation(&recorder, &service);
        assert!(said.contains("says leaf 2, the log has it at Some(3)"), "{said}");
        service.stop();
        log.must_be_sound(); // In itself it is: only a receipt tells.
    }

    fn r38_a_flipped_bit_is_never_served_and_fsck_names_it(log: Log) {
        let recorder = Recorder::new();
        let service = log.serve();
        let statement = log.statement();
        registered(&recorder, &service, &statement);
        registered(&recorder, &service, &log.statement());
        service.stop();
        log.must_be_sound();
        log.database().flip_a_bit_of(&statement);
        let ran = log.tabellion(&["log", "fsck", "--deep", "--json"]);
        assert_eq!(ran.code, Some(8), "{ran}");
        assert!(ran.stdout.contains('1'), "names the entry: {ran}");
        let service = log.serve();
        let mut connection = service.connection();
        let served = connection.get(&format!("/v1/entries/{}/statement", statement.digest()));
        assert_eq!(served.refusal().0, 500, "{served:?}");
        let receipt = connection.get(&format!("/entries/{}", statement.digest()));
        assert_eq!(receipt.status, 200, "its proof stands: {receipt:?}");
        service.stop();
    }
}

#[test]
fn a_receipt_of_another_log_is_seen_by_the_recorder() {
    let (ours, other) = (Log::sqlite(), Log::sqlite());
    let recorder = Recorder::new();
    let (service, stranger) = (ours.serve(), other.serve());
    let statement = ours.statement();
    registered(&recorder, &stranger, &statement);
    registered(&Recorder::new(), &service, &statement);
    let said = accusation(&recorder, &service);
    assert!(said.contains("its key is not published"), "{said}");
}

#[test]
fn an_entry_that_nobody_handed_in_is_seen_by_the_recorder() {
    let log = Log::sqlite();
    let service = log.serve();
    registered(&Recorder::new(), &service, &log.statement());
    let said = accusation(&Recorder::new(), &service);
    assert!(said.contains("nobody handed in"), "{said}");
}
