//! Effects of clock changes on cosignatures.
#![allow(clippy::unwrap_used)]

use ed25519_dalek::SigningKey;
use merkle::{CompactRange, TreeSize, hash_leaf};
use tempfile::TempDir;
use tlog::checkpoint::Checkpoint;

use super::*;

/// The time of the tests, in Unix seconds.
const NOON: u64 = 1_800_000_000;

fn key() -> LocalKey {
    LocalKey::new("log.example".parse().unwrap(), SigningKey::from_bytes(&[1; 32])).unwrap()
}

fn open(folder: &TempDir) -> Ledger {
    open_at(folder, None)
}

fn open_at(folder: &TempDir, back_to: Option<u64>) -> Ledger {
    let signer = LocalKey::cosigner("w.example".parse().unwrap(), SigningKey::from_bytes(&[2; 32])).unwrap();
    let state = StateDir::open(&folder.path().join("state")).unwrap();
    let kept = state.load(signer.key()).unwrap();
    let logs = format!("logs/v0\nvkey {}\n", key().key()).parse().unwrap();
    Ledger::new(state, signer, kept, logs, back_to)
}

/// A request for the tree of one leaf, with the old size 0 or 1.
fn request(old: u64) -> AddCheckpoint {
    let mut range = CompactRange::default();
    range.append(hash_leaf(b""));
    let checkpoint = Checkpoint::new("log.example".parse().unwrap(), TreeSize::new(1), range.root()).unwrap();
    let checkpoint = checkpoint.sign(&key()).unwrap();
    AddCheckpoint { old: TreeSize::new(old), proof: Vec::new(), checkpoint }
}

#[test]
fn the_time_that_is_signed_never_goes_back() {
    let folder = tempfile::tempdir().unwrap();
    let ledger = open(&folder);
    let time = |line: SignatureLine| cosignature::time_of(&line).unwrap();
    assert_eq!(time(ledger.add(&request(0), NOON).unwrap()), NOON);
    assert_eq!(time(ledger.add(&request(1), NOON + 5).unwrap()), NOON + 5);
    // A clock slightly behind signs the last time again; one that is far behind is an error.
    assert_eq!(time(ledger.add(&request(1), NOON).unwrap()), NOON + 5);
    for behind in [NOON - 56, NOON - 86_400, 0] {
        assert!(matches!(ledger.add(&request(1), behind), Err(NotCosigned::ClockBehind)), "{behind}");
    }
    drop(ledger);
    // The time is saved with the checkpoint.
    let ledger = open(&folder);
    assert!(matches!(ledger.add(&request(1), NOON - 86_400), Err(NotCosigned::ClockBehind)));
    assert_eq!(time(ledger.add(&request(1), NOON + 6).unwrap()), NOON + 6);
}

#[test]
fn a_clock_that_was_ahead_is_put_right_by_the_operator_once_and_never_signs_another_tree() {
    let folder = tempfile::tempdir().unwrap();
    let year = 365 * 86_400;
    open(&folder).add(&request(0), NOON + year).unwrap();
    assert!(matches!(open(&folder).add(&request(1), NOON), Err(NotCosigned::ClockBehind)));

    let ledger = open_at(&folder, Some(NOON));
    let mut other = request(1);
    let fork =
        Checkpoint::new("log.example".parse().unwrap(), TreeSize::new(1), merkle::empty_root()).unwrap();
    other.checkpoint = fork.sign(&key()).unwrap();
    let fork = ledger.add(&other, NOON);
    assert!(matches!(fork, Err(NotCosigned::Refused(CosignRefusal::Fork { .. }))), "{fork:?}");
    assert!(matches!(ledger.add(&request(0), NOON), Err(NotCosigned::Refused(CosignRefusal::Seen(_)))));
    assert_eq!(cosignature::time_of(&ledger.add(&request(1), NOON).unwrap()), Some(NOON));
    // The exception applies once: afterwards time must advance again, even without the flag.
    assert!(matches!(ledger.add(&request(1), NOON - 86_400), Err(NotCosigned::ClockBehind)));
    drop(ledger);
    let ledger = open(&folder);
    assert_eq!(cosignature::time_of(&ledger.add(&request(1), NOON + 5).unwrap()), Some(NOON + 5));
    drop(ledger);
    // A log whose last cosignature is not in the future is not affected.
    let ledger = open_at(&folder, Some(NOON + 6));
    assert!(matches!(ledger.add(&request(1), NOON - 86_400), Err(NotCosigned::ClockBehind)));
}

#[test]
fn a_clock_behind_a_cosignature_is_an_obstacle_until_it_is_right_or_the_operator_says_that_it_was_ahead() {
    let folder = tempfile::tempdir().unwrap();
    let ledger = open(&folder);
    assert_eq!(ledger.clock_obstacle(0), None, "there is no cosignature yet");
    ledger.add(&request(0), NOON).unwrap();
    for right in [NOON + 1, NOON, NOON - CLOCK_SLACK] {
        assert_eq!(ledger.clock_obstacle(right), None, "{right}");
    }
    let obstacle = ledger.clock_obstacle(NOON - 86_400).unwrap();
    assert!(obstacle.contains("86400 s behind"), "{obstacle}");
    ledger.witness("logs/v0\n".parse().unwrap());
    assert_eq!(ledger.clock_obstacle(NOON - 86_400), None, "the log is not listed any more");
    drop(ledger);
    let ledger = open_at(&folder, Some(NOON - 86_400));
    assert_eq!(ledger.clock_obstacle(NOON - 86_400), None);
}

#[test]
fn within_one_second_the_same_is_answered_without_writing() {
    let folder = tempfile::tempdir().unwrap();
    let ledger = open(&folder);
    let first = ledger.add(&request(0), NOON).unwrap();
    let file = folder.path().join("state/logs").join(Origin::from(key().key().name().clone()).digest());
    std::fs::remove_file(&file).unwrap();
    assert_eq!(ledger.add(&request(1), NOON).unwrap(), first);
    assert!(!file.exists());
    assert_ne!(ledger.add(&request(1), NOON + 1).unwrap(), first);
    assert!(file.exists());
}
