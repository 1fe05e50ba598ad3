//! What a witness keeps, and when it would rather not start.
#![allow(clippy::unwrap_used)]

mod common;

use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::time::{SystemTime, UNIX_EPOCH};

use common::{Home, Log, NAME, Running, get, replace};
use tlog::cosignature;
use tlog::note::LocalKey;
use witness::{ListError, StartError, StateError, WitnessKeyError};

const LOG: &str = "log.example";

#[tokio::test]
async fn what_was_seen_is_known_after_a_restart() {
    let log = Log::new(LOG);
    let home = Home::of(&[&log]);
    let witness = home.start().await;
    let key = witness.key.clone();
    witness.add(&log.request(0, 8)).await.must_be(200);
    let shown = witness.latest(&log).await.body;
    witness.stop().await;

    let witness = home.start().await;
    assert_eq!(witness.key, key);
    assert_eq!(witness.latest(&log).await.body, shown);
    assert_eq!(witness.add(&log.request(0, 4)).await.must_be(409).body, "8\n");
    witness.add(&Log::forked(LOG, 5).request(8, 20)).await.must_be(422);
    witness.add(&log.request(8, 20)).await.must_be(200);
}

#[tokio::test]
async fn a_log_that_leaves_the_list_and_comes_back_is_where_it_was() {
    let (log, other) = (Log::new(LOG), Log::new("other.example"));
    let home = Home::of(&[&log]);
    let witness = home.start().await;
    witness.add(&log.request(0, 8)).await.must_be(200);
    home.list(&other.listed());
    witness.read_list_again();
    while witness.add(&other.request(0, 1)).await.status == 404 {}
    witness.add(&log.request(8, 9)).await.must_be(404);
    // Monitors may still ask.
    assert_eq!(witness.seen(&log).await, 8);
    witness.stop().await;

    home.list(&log.listed());
    let witness = home.start().await;
    assert_eq!(witness.add(&log.request(0, 9)).await.must_be(409).body, "8\n");
}

#[tokio::test]
async fn a_list_that_cannot_be_read_again_leaves_the_old_one_in_force() {
    let log = Log::new(LOG);
    let home = Home::of(&[&log]);
    let witness = home.start().await;
    home.list("nonsense\n");
    witness.read_list_again();
    tokio::time::sleep(std::time::Duration::from_millis(200)).await;
    witness.add(&log.request(0, 1)).await.must_be(200);
    witness.stop().await;
    assert!(matches!(home.refused().await, StartError::List(ListError::Form { .. })));
}

#[tokio::test]
async fn two_witnesses_do_not_work_on_one_folder() {
    let home = Home::of(&[&Log::new(LOG)]);
    let witness = home.start().await;
    assert!(matches!(home.refused().await, StartError::State(StateError::Locked(_))));
    witness.stop().await;
    home.start().await.stop().await;
}

#[tokio::test]
async fn a_state_that_is_not_as_it_was_written_ends_the_start() {
    let log = Log::new(LOG);
    let home = Home::of(&[&log]);
    let witness = home.start().await;
    witness.add(&log.request(0, 8)).await.must_be(200);
    witness.stop().await;
    let good = fs::read(home.log(&log)).unwrap();

    let refused = async |what: &str| {
        let error = home.refused().await;
        assert!(
            matches!(error, StartError::State(StateError::Damaged { .. } | StateError::Gone(_))),
            "{what}: {error}"
        );
        assert!(error.to_string().contains(&log.origin.digest()), "{what}: {error}");
        fs::write(home.log(&log), &good).unwrap();
    };
    replace(&home.log(&log), "\n8\n", "\n7\n");
    refused("a smaller size").await;
    for at in (0..good.len()).step_by(7) {
        let mut bad = good.clone();
        bad[at] ^= 1;
        fs::write(home.log(&log), bad).unwrap();
        // A byte of the log's own signature is not ours to check; every other is.
        if let Ok(witness) = Running::start(home.config()).await {
            assert_eq!(witness.add(&log.request(0, 4)).await.must_be(409).body, "8\n", "byte {at}");
            witness.stop().await;
        }
        fs::write(home.log(&log), &good).unwrap();
    }
    fs::write(home.log(&log), &good[..good.len() / 2]).unwrap();
    refused("half of it").await;
    fs::write(home.log(&log), "").unwrap();
    refused("nothing").await;
    fs::remove_file(home.log(&log)).unwrap();
    refused("gone").await;
    // Another log's file under this one's name, and one of another witness.
    let other = Log::new("other.example");
    let elsewhere = Home::of(&[&log, &other]);
    let witness = elsewhere.start().await;
    for log in [&log, &other] {
        witness.add(&log.request(0, 8)).await.must_be(200);
    }
    witness.stop().await;
    fs::copy(elsewhere.log(&log), home.log(&log)).unwrap();
    refused("another witness's").await;
    fs::copy(elsewhere.log(&other), elsewhere.log(&log)).unwrap();
    assert!(matches!(elsewhere.refused().await, StartError::State(StateError::Damaged { .. })));
    // And all is well with the file as it was.
    home.start().await.stop().await;
}

#[tokio::test]
async fn a_write_that_was_cut_short_is_as_if_it_had_not_begun() {
    let log = Log::new(LOG);
    let home = Home::of(&[&log]);
    let witness = home.start().await;
    witness.add(&log.request(0, 8)).await.must_be(200);
    witness.stop().await;
    // Killed before the rename; and after a first rename, before the log was entered in `known`.
    let aside = home.log(&log).with_extension("new");
    fs::write(&aside, "half a check").unwrap();
    let mark = home.file("known").join(log.origin.digest());
    fs::remove_file(&mark).unwrap();
    let witness = home.start().await;
    assert_eq!(witness.seen(&log).await, 8);
    witness.stop().await;
    assert!(!aside.exists());
    assert!(mark.exists());
}

#[tokio::test]
async fn what_cannot_be_kept_is_not_cosigned_and_not_known() {
    let log = Log::new(LOG);
    let home = Home::of(&[&log]);
    let witness = home.start().await;
    witness.add(&log.request(0, 8)).await.must_be(200);
    let shown = witness.latest(&log).await.body;
    // No file can take the place of a folder.
    fs::remove_file(home.log(&log)).unwrap();
    fs::create_dir(home.log(&log)).unwrap();
    let answer = witness.add(&log.request(8, 20)).await;
    assert!(answer.must_be(503).header("retry-after").is_some());
    assert!(!answer.body.contains('\u{2014}'));
    assert_eq!(witness.latest(&log).await.body, shown);
    fs::remove_dir(home.log(&log)).unwrap();
    assert_eq!(witness.add(&log.request(0, 20)).await.must_be(409).body, "8\n");
    witness.add(&log.request(8, 20)).await.must_be(200);
}

#[tokio::test]
async fn the_key_is_made_once_and_is_its_owners_alone() {
    let home = Home::of(&[]);
    let witness = home.start().await;
    let key = witness.key.clone();
    assert_eq!(key.name().as_str(), NAME);
    witness.stop().await;
    let file = home.file("key.pem");
    assert_eq!(fs::metadata(&file).unwrap().permissions().mode() & 0o777, 0o600);
    assert_eq!(fs::read_to_string(home.file("vkey")).unwrap(), format!("{key}\n"));
    let pem = fs::read_to_string(&file).unwrap();
    assert!(
        pem.starts_with("-----BEGIN PRIVATE KEY-----\nMC4CAQAw"),
        "version 1, which OpenSSL reads (RFC 8410)"
    );

    let mut nameless = home.config();
    nameless.name = None;
    let witness = Running::start(nameless.clone()).await.unwrap();
    assert_eq!(witness.key, key);
    witness.stop().await;
    let mut other = home.config();
    other.name = Some("witness.example/w2".parse().unwrap());
    let error = Running::start(other).await.err().unwrap();
    assert!(matches!(error, StartError::Key(WitnessKeyError::OtherName { .. })), "{error}");

    fs::set_permissions(&file, fs::Permissions::from_mode(0o640)).unwrap();
    assert!(matches!(home.refused().await, StartError::Key(WitnessKeyError::Open(_))));
    fs::set_permissions(&file, fs::Permissions::from_mode(0o600)).unwrap();

    // No key, another key, no key file at all.
    let elsewhere = Home::of(&[]);
    elsewhere.start().await.stop().await;
    let good = fs::read(&file).unwrap();
    fs::copy(elsewhere.file("key.pem"), &file).unwrap();
    assert!(matches!(home.refused().await, StartError::Key(WitnessKeyError::Other { .. })));
    fs::write(&file, "nonsense").unwrap();
    assert!(matches!(home.refused().await, StartError::Key(WitnessKeyError::Unusable { .. })));
    fs::remove_file(&file).unwrap();
    assert!(matches!(home.refused().await, StartError::Key(WitnessKeyError::Missing { .. })));
    fs::write(&file, good).unwrap();
    fs::set_permissions(&file, fs::Permissions::from_mode(0o600)).unwrap();
    home.start().await.stop().await;

    let fresh = Home::of(&[]);
    nameless.state = fresh.state();
    let error = Running::start(nameless).await.err().unwrap();
    assert!(matches!(error, StartError::Key(WitnessKeyError::NoName)), "{error}");
}

#[tokio::test]
async fn a_key_whose_state_is_lost_does_not_cosign() {
    let log = Log::new(LOG);
    let home = Home::of(&[&log]);
    let mut config = home.config();
    config.key = Some(home.state().with_file_name("elsewhere.pem"));
    let witness = Running::start(config.clone()).await.unwrap();
    witness.add(&log.request(0, 8)).await.must_be(200);
    witness.stop().await;
    fs::remove_dir_all(home.state()).unwrap();
    let error = Running::start(config.clone()).await.err().unwrap();
    assert!(matches!(error, StartError::Key(WitnessKeyError::WithoutState(_))), "{error}");
    // The operator's own word is needed.
    config.unused_key = true;
    Running::start(config).await.unwrap().stop().await;
    // The name of the key gone, and the rest there.
    let home = Home::of(&[&log]);
    let witness = home.start().await;
    witness.add(&log.request(0, 8)).await.must_be(200);
    witness.stop().await;
    fs::remove_file(home.file("vkey")).unwrap();
    assert!(matches!(home.refused().await, StartError::Key(WitnessKeyError::StateWithoutName(_))));
}

#[tokio::test]
async fn a_first_start_that_was_cut_short_is_finished_by_the_next() {
    let home = Home::of(&[]);
    home.start().await.stop().await;
    // Cut before the key took its place.
    fs::rename(home.file("key.pem"), home.file("key.pem.new")).unwrap();
    let named = fs::read_to_string(home.file("vkey")).unwrap();
    let witness = home.start().await;
    assert_eq!(format!("{}\n", witness.key), named);
    witness.stop().await;
    // Cut before it was named: nobody has heard of that key.
    fs::rename(home.file("key.pem"), home.file("key.pem.new")).unwrap();
    fs::remove_file(home.file("vkey")).unwrap();
    let witness = home.start().await;
    assert_ne!(format!("{}\n", witness.key), named);
    witness.stop().await;
    home.start().await.stop().await;
}

#[tokio::test]
async fn a_log_may_grow_as_often_a_day_as_its_list_says() {
    let log = Log::new(LOG);
    let home = Home::of(&[&log]);
    home.list(&format!("{}qpd 2\n", log.listed()));
    let witness = home.start().await;
    witness.add(&log.request(0, 1)).await.must_be(200);
    witness.add(&log.request(1, 2)).await.must_be(200);
    let answer = witness.add(&log.request(2, 3)).await;
    let wait: u64 = answer.must_be(429).header("retry-after").unwrap().parse().unwrap();
    assert!((43_000..=43_200).contains(&wait), "{wait}: half a day, whatever the hour is");
    assert_eq!(witness.seen(&log).await, 2);
    // What has not grown may always be cosigned again: its freshness is the point.
    witness.add(&log.request(2, 2)).await.must_be(200);
}

#[tokio::test]
async fn a_witness_whose_clock_was_ahead_is_not_ready_while_it_cosigns_for_no_log() {
    let (log, other) = (Log::new(LOG), Log::new("other.example"));
    let home = Home::of(&[&log, &other]);
    let witness = home.start().await;
    witness.add(&log.request(0, 8)).await.must_be(200);
    witness.stop().await;
    let tomorrow = SystemTime::now().duration_since(UNIX_EPOCH).unwrap().as_secs() + 86_400;
    store_cosigned(&home, &log, 8, tomorrow);

    let witness = home.start().await;
    witness.add(&log.request(8, 20)).await.must_be(503);
    let unready = get(witness.admin, "/readyz").await;
    assert!(unready.must_be(503).body.contains("--clock-was-ahead"), "{unready:?}");
    witness.add(&other.request(0, 1)).await.must_be(200);
    get(witness.admin, "/readyz").await.must_be(200);
    witness.stop().await;

    let mut config = home.config();
    config.clock_was_ahead = true;
    let witness = Running::start(config).await.unwrap();
    get(witness.admin, "/readyz").await.must_be(200);
    witness.add(&log.request(8, 20)).await.must_be(200);
    get(witness.admin, "/readyz").await.must_be(200);
}

/// Stores a checkpoint as the witness would have, had its clock shown this time.
fn store_cosigned(home: &Home, log: &Log, size: u64, time: u64) {
    let pem = fs::read_to_string(home.file("key.pem")).unwrap();
    let key = LocalKey::cosigner_from_pkcs8_pem(NAME.parse().unwrap(), &pem).unwrap();
    let mut note = log.checkpoint(size);
    let line = cosignature::cosign(&key, note.text(), time).unwrap();
    note.add(line).unwrap();
    fs::write(home.log(log), note.to_string()).unwrap();
}

#[tokio::test]
async fn a_state_that_went_back_is_found_out_by_what_it_has_cosigned() {
    let log = Log::new(LOG);
    let home = Home::of(&[&log]);
    let witness = home.start().await;
    witness.add(&log.request(0, 8)).await.must_be(200);
    let old = fs::read(home.log(&log)).unwrap();
    let mut grown = log.request(8, 20);
    let line = witness.add(&grown).await.must_be(200).body.parse().unwrap();
    // Logs hand in checkpoints with the cosignatures they have; of what is known, that is nothing new.
    grown.checkpoint.add(line).unwrap();
    witness.add(&grown).await.must_be(409);
    witness.stop().await;

    fs::write(home.log(&log), old).unwrap();
    let witness = home.start().await;
    witness.add(&grown).await.must_be(500);
    // From here on nothing is cosigned, and the process ends.
    assert!(witness.ended().await.is_err());
    assert!(matches!(home.refused().await, StartError::State(StateError::Forgotten(_))));
}
