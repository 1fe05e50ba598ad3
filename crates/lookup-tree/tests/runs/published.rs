//! The values that the description of the format publishes.

use std::collections::BTreeSet;

use data_encoding::HEXLOWER;
use lookup_tree::{HeadRun, IndexHead, RunId, RunSummary, TermKey, erase};
use merkle::{Hash, LeafIndex, RootHash, TreeSize};

use crate::support::{agents_in_turn, root_by_definition};

#[test]
fn keys_are_the_beginning_of_a_hash() {
    assert_eq!(TermKey::of(5, b"https://issuer.example").to_string(), "d9fc8173873e932f0dbc0a7f72fffcf3");
    assert_eq!(TermKey::of(3, b"").to_string(), "ab85a55d32926d52305a93bfa64b882f");
}

#[test]
fn roots_are_those_of_the_description() {
    let erased = erase(&agents_in_turn(0, 40, 5), &BTreeSet::from([LeafIndex::new(7)]));
    for (postings, root) in [
        (vec![], "070b13c004e9475fa155cd84d90de9f87db1b7dea6707329638a6ce66043d246"),
        (agents_in_turn(0, 3, 3), "09cc537e1fca4ec045dd6e8f7676c90b8c55a23dda1fad8f018826257f3b8cd8"),
        (agents_in_turn(0, 40, 5), "710d80220154714d6e519edfad8e549290d82379acc9f7c8c7253dedb8d22593"),
        (erased, "aa268a431fcd11a3ec0d19af445fb0164d738fd4b6ad313b94c528e433d9ed3e"),
    ] {
        assert_eq!(RunSummary::of(&postings).unwrap().root.to_string(), root);
        assert_eq!(HEXLOWER.encode(&root_by_definition(&postings)), root);
    }
}

#[test]
fn a_head_has_the_bytes_of_the_description() {
    let summary = RunSummary::of(&agents_in_turn(0, 40, 5)).unwrap();
    let head = IndexHead {
        series: Hash::from_bytes([0; 32]),
        size: TreeSize::new(40),
        log_root: RootHash::from_bytes([0; 32]),
        horizon: LeafIndex::new(0),
        runs: vec![HeadRun { id: RunId::TAIL, summary }],
    };
    assert_eq!(head.encode().len(), 119);
    assert_eq!(head.digest().to_string(), "08b779d83a21165908027a4d5b8e3460472d8b419d797ad326c728d2cb8bb147");
    assert_eq!(IndexHead::decode(&head.encode()), Ok(head));
}
