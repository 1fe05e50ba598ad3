//! No input makes a parser panic, and what a parser lets through stays what it was.

use std::sync::LazyLock;

use merkle::{EntryDigest, LeafIndex, RootHash, TreeSize};
use proptest::prelude::*;
use proptest::sample::Index;
use scitt::header::labels;
use scitt::transparent::{attach, strip};
use scitt::{
    HashEnvelope, Label, MalformedKind, Problem, Receipt, ReceiptHeader, SignedRoot, SignedStatement, Signer,
    X5Chain,
};

use crate::support::{builder, ed25519, hex};

/// Valid input of every kind, to be damaged.
static SEEDS: LazyLock<Vec<Vec<u8>>> = LazyLock::new(|| {
    let chain = X5Chain::new(vec![vec![0x30, 1].into(), vec![0x30, 2].into()]).unwrap();
    let envelope = HashEnvelope {
        algorithm: -16,
        preimage_content_type: Some("text/plain".into()),
        location: Some("https://example.com".into()),
    };
    let receipt = signed_root().inclusion_receipt(LeafIndex::new(3), &[merkle::Hash::from_bytes([4; 32]); 3]);
    let digest = scitt::StatementBuilder::new([1; 32]).kid(b"k".as_slice()).iss("i").sub("s");
    let odd =
        hex("d284 5819 bf 04 5f41614162ff 1801 3807 6178 9ff4ff 0f a2 02 6173 1801 6169 ff bf1863f4ff f6 40");
    vec![
        builder().encode(&ed25519()).unwrap(),
        builder().detached().unprotected_x5chain(&chain).encode(&ed25519()).unwrap(),
        builder().label(labels::RECEIPTS, b"signed".as_slice().into()).encode(&ed25519()).unwrap(),
        digest.hash_envelope(&envelope).encode(&ed25519()).unwrap(),
        attach(&builder().encode(&ed25519()).unwrap(), &[&receipt, &b"other".to_vec()]).unwrap(),
        receipt,
        signed_root().consistency_receipt(TreeSize::new(3), &[merkle::Hash::from_bytes([4; 32]); 3]),
        signed_root().to_bytes(),
        odd,
        Problem::new("title", "detail").instance("urn:x").code("code").offset(9).encode(),
    ]
});

fn signed_root() -> SignedRoot {
    let key = ed25519();
    let header = ReceiptHeader {
        alg: key.algorithm(),
        kid: b"kid".to_vec(),
        iss: "https://log.example".into(),
        sub: "log.example".into(),
        iat: 1_700_000_000,
        tree_size: TreeSize::new(7),
    };
    header.sign_root(&key, &RootHash::from_bytes([9; 32])).unwrap()
}

#[derive(Clone, Debug)]
enum Damage {
    Set(Index, u8),
    Insert(Index, Vec<u8>),
    Remove(Index, usize),
    Repeat(Index, usize),
    Splice(Index, Index, usize),
}

fn damage() -> impl Strategy<Value = Damage> {
    let head = prop::sample::select(vec![
        0x00, 0x1b, 0x40, 0x5b, 0x5f, 0x7f, 0x80, 0x9b, 0x9f, 0xa0, 0xbb, 0xbf, 0xd2, 0xf6, 0xf8, 0xff,
    ]);
    let byte = prop_oneof![any::<u8>(), head];
    prop_oneof![
        (any::<Index>(), byte.clone()).prop_map(|(at, byte)| Damage::Set(at, byte)),
        (any::<Index>(), prop::collection::vec(byte, 1..10))
            .prop_map(|(at, bytes)| Damage::Insert(at, bytes)),
        (any::<Index>(), 1..20_usize).prop_map(|(at, count)| Damage::Remove(at, count)),
        (any::<Index>(), 1..40_usize).prop_map(|(at, count)| Damage::Repeat(at, count)),
        (any::<Index>(), any::<Index>(), 1..40_usize)
            .prop_map(|(at, from, count)| Damage::Splice(at, from, count)),
    ]
}

fn apply(bytes: &mut Vec<u8>, damage: &Damage) {
    if bytes.is_empty() {
        return;
    }
    let range = |at: &Index, count: usize| {
        let start = at.index(bytes.len());
        start..(start + count).min(bytes.len())
    };
    match damage {
        Damage::Set(at, byte) => {
            let at = at.index(bytes.len());
            bytes[at] = *byte;
        }
        Damage::Insert(at, new) => {
            let at = at.index(bytes.len());
            bytes.splice(at..at, new.iter().copied());
        }
        Damage::Remove(at, count) => {
            let range = range(at, *count);
            bytes.drain(range);
        }
        Damage::Repeat(at, count) => {
            let range = range(at, *count);
            let copy = bytes[range.clone()].to_vec();
            bytes.splice(range.end..range.end, copy);
        }
        Damage::Splice(at, from, count) => {
            let copy = bytes[range(from, *count)].to_vec();
            let at = at.index(bytes.len());
            bytes.splice(at..at, copy);
        }
    }
}

fn damaged() -> impl Strategy<Value = Vec<u8>> {
    (any::<Index>(), prop::collection::vec(damage(), 0..5)).prop_map(|(seed, damages)| {
        let mut bytes = seed.get(&SEEDS).clone();
        damages.iter().for_each(|damage| apply(&mut bytes, damage));
        bytes
    })
}

/// What must hold of any bytes at all.
fn check(input: &[u8]) {
    if let Ok(statement) = SignedStatement::parse(input.to_vec()) {
        check_statement(&statement, input);
    }
    if let Ok(receipt) = Receipt::parse(input.to_vec()) {
        let leaf = EntryDigest::of(b"leaf").leaf_hash();
        assert!(receipt.verify_inclusion(&leaf, ed25519().public_key()).is_err());
        assert_eq!(receipt.bytes().as_ref(), input);
    }
    if let Ok(signed) = SignedRoot::parse(input.to_vec()) {
        assert_eq!(SignedRoot::parse(signed.to_bytes()).unwrap(), signed);
    }
    if let Ok(problem) = Problem::parse(input) {
        let again = Problem::parse(&problem.encode()).unwrap();
        assert_eq!(again.encode(), problem.encode());
    }
}

fn check_statement(statement: &SignedStatement, input: &[u8]) {
    let s = SignedStatement::parse(statement.bytes().clone()).expect("S is a statement");
    assert_eq!(s.bytes(), statement.bytes(), "S of S is S");
    assert_eq!(
        (s.header(), s.payload(), s.signature()),
        (statement.header(), statement.payload(), statement.signature())
    );
    assert!(s.receipts().is_empty() && s.unprotected_x5chain().is_none());
    let (plain, receipts) = strip(input).unwrap();
    assert_eq!(receipts, statement.receipts());
    assert_eq!(SignedStatement::parse(plain).unwrap().bytes(), statement.bytes());
    check_attached(statement, input);
    for label in statement.header().labels() {
        assert!(statement.header().get(label).is_some());
    }
    let _ = (statement.twin(), statement.header().require_scitt(), statement.sig_structure(None));
    let _ = statement.verify_with(ed25519().public_key(), None);
}

/// A receipt can be attached to every statement whose issuer did not sign the receipts label.
fn check_attached(statement: &SignedStatement, input: &[u8]) {
    let signed_label = Label::from(labels::RECEIPTS);
    match attach(input, &[b"receipt"]) {
        Ok(bytes) => assert_eq!(SignedStatement::parse(bytes).unwrap().bytes(), statement.bytes()),
        Err(error) => assert_eq!(error.kind, MalformedKind::LabelInBothHeaders(signed_label.clone())),
    }
    assert_eq!(attach(input, &[b"receipt"]).is_err(), statement.header().contains(&signed_label));
}

#[test]
fn every_seed_is_read_by_the_parser_it_is_for() {
    let statements = SEEDS.iter().filter(|seed| SignedStatement::parse((*seed).clone()).is_ok()).count();
    let receipts = SEEDS.iter().filter(|seed| Receipt::parse((*seed).clone()).is_ok()).count();
    let roots = SEEDS.iter().filter(|seed| SignedRoot::parse((*seed).clone()).is_ok()).count();
    let problems = SEEDS.iter().filter(|seed| Problem::parse(seed).is_ok()).count();
    assert!(statements >= 5 && receipts == 2 && roots >= 1 && problems == 1);
    SEEDS.iter().for_each(|seed| check(seed));
}

#[test]
fn every_prefix_of_valid_input_is_refused() {
    for seed in SEEDS.iter() {
        for end in 0..seed.len() {
            let prefix = &seed[..end];
            assert!(SignedStatement::parse(prefix.to_vec()).is_err());
            assert!(Receipt::parse(prefix.to_vec()).is_err() && Problem::parse(prefix).is_err());
        }
    }
}

/// A few thousand cases in an ordinary run; `PROPTEST_CASES` asks for as many as there is time for.
fn config() -> ProptestConfig {
    match std::env::var_os("PROPTEST_CASES") {
        Some(_) => ProptestConfig::default(),
        None => ProptestConfig::with_cases(3000),
    }
}

proptest! {
    #![proptest_config(config())]

    #[test]
    fn damaged_input_is_refused_or_still_means_one_thing(input in damaged()) {
        check(&input);
    }
}
