//! A proof file is checked with nothing but the leaf and the log's key.

use ed25519_dalek::SigningKey;
use merkle::{CompactRange, EntryDigest, LeafHash, LeafIndex};
use proptest::prelude::*;
use tlog::checkpoint::{Checkpoint, Origin};
use tlog::key::VerifierKey;
use tlog::note::{LocalKey, NoteSigner};
use tlog::proof::{NotAProof, NotProven, TlogProof};

fn log() -> (Origin, LocalKey) {
    let name = "log.example".parse().expect("a name");
    let key = LocalKey::new(name, SigningKey::from_bytes(&[1; 32])).expect("a key");
    ("log.example".parse().expect("an origin"), key)
}

fn leaf(n: u64) -> LeafHash {
    EntryDigest::of(&n.to_be_bytes()).leaf_hash()
}

/// The proof of a leaf in a tree of so many.
fn proof(index: u64, size: u64) -> TlogProof {
    let leaves: Vec<LeafHash> = (0..size).map(leaf).collect();
    let growth = CompactRange::empty().grow(&leaves);
    let (origin, key) = log();
    let range = growth.range();
    let checkpoint = Checkpoint::new(origin, range.size(), range.root()).expect("a checkpoint");
    let note = checkpoint.sign(&key).expect("signed").to_string();
    let index = LeafIndex::new(index);
    TlogProof::new(index, growth.path(index).expect("a leaf of the tree"), note.as_bytes()).expect("a proof")
}

fn keys() -> [VerifierKey; 1] {
    [log().1.key().clone()]
}

#[test]
fn every_leaf_of_every_small_tree_is_proven() {
    for size in 1..40 {
        for index in 0..size {
            let file: TlogProof = proof(index, size).to_string().parse().expect("it reads back");
            let checkpoint = file.verify(leaf(index), &log().0, &keys()).expect("it verifies");
            assert_eq!(checkpoint.size().get(), size);
        }
    }
}

#[test]
fn the_file_looks_as_the_specification_shows_it() {
    let text = proof(2, 3).to_string();
    let lines: Vec<&str> = text.lines().collect();
    assert_eq!(lines[..2], ["c2sp.org/tlog-proof@v1", "index 2"]);
    assert_eq!((lines[3], lines[4], lines[5]), ("", "log.example", "3"));
}

#[test]
fn another_leaf_another_index_and_another_log_are_not_proven() {
    let (origin, _) = log();
    let path = |verdict| matches!(verdict, Err(NotProven::Path(_)));
    assert!(path(proof(2, 5).verify(leaf(3), &origin, &keys())));
    let moved = proof(2, 5).to_string().replace("index 2", "index 3");
    assert!(path(moved.parse::<TlogProof>().expect("a proof").verify(leaf(2), &origin, &keys())));
    let elsewhere: Origin = "other.example".parse().expect("an origin");
    let verdict = proof(2, 5).verify(leaf(2), &elsewhere, &keys());
    assert!(matches!(verdict, Err(NotProven::Checkpoint(_))), "{verdict:?}");
}

#[test]
fn extra_data_is_carried_along_and_proves_nothing() {
    let text = proof(0, 2).to_string().replace("index 0", "extra aGVsbG8=\nindex 0");
    let proof: TlogProof = text.parse().expect("a proof");
    assert_eq!(proof.extra(), Some(&b"hello"[..]));
    assert_eq!(proof.to_string(), text);
    assert!(proof.verify(leaf(0), &log().0, &keys()).is_ok());
}

#[test]
fn what_is_no_proof_is_refused_with_its_line() {
    let sound = proof(2, 5).to_string();
    let refused = |from: &str, to: &str| sound.replacen(from, to, 1).parse::<TlogProof>().expect_err(to);
    assert_eq!(refused("@v1", "@v2"), NotAProof::Magic);
    assert_eq!(refused("@v1", "@v1\r"), NotAProof::Magic);
    for bad in ["index 02", "index +2", "index -2", "index", "index 18446744073709551616", "Index 2"] {
        assert!(matches!(refused("index 2", bad), NotAProof::Line { line: 2, .. }), "{bad}");
    }
    assert!(matches!(refused("index 2\n", "index 2\n!\n"), NotAProof::Line { line: 3, .. }));
    assert!(matches!(refused("index 2\n", "extra a\nindex 2\n"), NotAProof::Line { line: 2, .. }));
    assert!(matches!(refused("\n\nlog.example", "\nlog.example"), NotAProof::Line { .. }));
    let hash = sound.lines().nth(2).expect("a hash").to_owned() + "\n";
    assert_eq!(refused("index 2\n", &format!("index 2\n{}", hash.repeat(65))), NotAProof::TooLong);
}

proptest! {
    #[test]
    fn whatever_is_read_is_written_as_it_was(text in ".{0,200}", at in 0usize..200, with in ".{0,3}") {
        let _ = text.parse::<TlogProof>();
        let mut mutated = proof(3, 7).to_string();
        if mutated.is_char_boundary(at) {
            mutated.insert_str(at, &with);
        }
        if let Ok(proof) = mutated.parse::<TlogProof>() {
            prop_assert_eq!(proof.to_string(), mutated);
        }
    }
}
