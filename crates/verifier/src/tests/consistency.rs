//! From a tree that is known to a newer one.

use merkle::proof;
use scitt::Receipt;

use super::*;

fn leaves(count: u64) -> Vec<LeafHash> {
    (0..count).map(|n| EntryDigest::of(&n.to_be_bytes()).leaf_hash()).collect()
}

fn root(count: u64) -> RootHash {
    CompactRange::empty().grow(&leaves(count)).root()
}

fn known(size: u64) -> KnownTree {
    KnownTree { size: TreeSize::new(size), root: root(size) }
}

/// The root of any part of the tree that a plan may ask for.
fn path(older: u64, newer: u64) -> Vec<Hash> {
    let plan = proof::consistency(TreeSize::new(older), TreeSize::new(newer)).unwrap();
    let of = |node: merkle::NodeId| {
        let span = 1 << node.level;
        let from = node.index * span;
        let part = &leaves(newer)[from as usize..(from + span) as usize];
        Ok::<_, ()>(Hash::from_bytes(*CompactRange::empty().grow(part).root().as_bytes()))
    };
    plan.fold(of).unwrap()
}

fn receipt(log: &Log, older: u64, newer: u64) -> Vec<u8> {
    let signed = log.header(TreeSize::new(newer)).sign_root(&log.key, &root(newer)).unwrap();
    signed.consistency_receipt(TreeSize::new(older), &path(older, newer))
}

fn believing(log: &Log) -> TrustStore {
    TrustStore { logs: vec![log.trusted()], ..TrustStore::default() }
}

fn ask(receipt: &[u8], known: &KnownTree, trust: &TrustStore) -> (VerificationOutcome, Option<Code>) {
    let verdict = verify_consistency(receipt, known, trust, NOW);
    assert_eq!(verdict.root.is_some(), verdict.is_verified(), "{verdict:#?}");
    (verdict.outcome, verdict.reason)
}

#[test]
fn every_tree_leads_on_to_every_larger_one() {
    let log = Log::new();
    for newer in 2..=17 {
        for older in 1..newer {
            let verdict =
                verify_consistency(&receipt(&log, older, newer), &known(older), &believing(&log), NOW);
            assert!(verdict.is_verified(), "{older} {newer}: {verdict:#?}");
            assert_eq!(verdict.root, Some(root(newer).to_string()));
            assert_eq!((verdict.older, verdict.newer), (older, Some(newer)));
        }
    }
}

#[test]
fn a_tree_that_was_rewritten_is_not_the_beginning_of_what_is_signed() {
    let log = Log::new();
    let other = KnownTree { root: root(6), ..known(5) };
    let receipt = receipt(&log, 5, 9);
    assert_eq!(
        ask(&receipt, &other, &believing(&log)),
        (VerificationOutcome::Failed, Some(Code::ConsistencyMismatch))
    );
}

#[test]
fn a_proof_from_another_size_says_nothing_about_the_tree_that_is_known() {
    let log = Log::new();
    let result = ask(&receipt(&log, 5, 9), &known(6), &believing(&log));
    assert_eq!(result, (VerificationOutcome::NotVerified, Some(Code::ConsistencyOtherSize)));
}

#[test]
fn a_receipt_of_inclusion_is_none_of_consistency() {
    let world = World::new();
    let result = ask(&world.receipt, &known(5), &world.trust);
    assert_eq!(result, (VerificationOutcome::NotVerified, Some(Code::NoConsistencyProof)));
}

#[test]
fn the_log_must_be_one_that_is_trusted_and_its_key_the_one_that_signed() {
    let (log, stranger) = (Log::new(), Log::new());
    let bytes = receipt(&log, 5, 9);
    let result = ask(&bytes, &known(5), &believing(&stranger));
    assert_eq!(result, (VerificationOutcome::NotVerified, Some(Code::UnknownLogKey)));
    let result = ask(&bytes, &known(5), &TrustStore::default());
    assert_eq!(result, (VerificationOutcome::NotVerified, Some(Code::UnknownLog)));
    assert_eq!(ask(b"nonsense", &known(5), &believing(&log)).1, Some(Code::MalformedReceipt));
}

#[test]
fn a_retired_key_shows_no_growth_to_the_size_of_its_successor() {
    let log = Log::new();
    let mut trust = believing(&log);
    trust.logs[0].keys[0].end.retired_size = Some(10);
    assert_eq!(ask(&receipt(&log, 5, 9), &known(5), &trust), (VerificationOutcome::Verified, None));
    trust.logs[0].keys[0].end.retired_size = Some(9);
    let result = ask(&receipt(&log, 5, 9), &known(5), &trust);
    assert_eq!(result, (VerificationOutcome::Failed, Some(Code::LogKeyRetired)));
}

#[test]
fn the_dates_of_the_receipt_count() {
    let log = Log::new();
    let verdict = verify_consistency(&receipt(&log, 5, 9), &known(5), &believing(&log), NOW - 10_000);
    assert_eq!(
        (verdict.outcome, verdict.reason),
        (VerificationOutcome::Failed, Some(Code::ReceiptNotYetValid))
    );
    assert_eq!(verdict.root, None);
}

#[test]
fn no_changed_byte_of_a_consistency_receipt_leads_to_another_root() {
    let log = Log::new();
    let (bytes, trust) = (receipt(&log, 5, 9), believing(&log));
    for place in 0..bytes.len() {
        for bit in 0..8 {
            let mut changed = bytes.clone();
            changed[place] ^= 1 << bit;
            let verdict = verify_consistency(&changed, &known(5), &trust, NOW);
            if verdict.is_verified() {
                // What is not signed may be written differently, as long as it says the same.
                assert_eq!(verdict.root, Some(root(9).to_string()), "byte {place}");
                assert!(Receipt::parse(changed).is_ok());
            }
        }
    }
}

/// One receipt, one tree that is known, one answer. Bytes are in hexadecimal.
#[derive(serde::Deserialize)]
#[serde(deny_unknown_fields)]
struct Case {
    why: String,
    trust: String,
    now: u64,
    receipt: String,
    known_size: u64,
    known_root: String,
    outcome: String,
    reason: Option<String>,
    newer_root: Option<String>,
}

#[test]
fn every_golden_case_gets_its_answer() {
    let folder = std::path::Path::new(env!("CARGO_MANIFEST_DIR")).join("../../vectors/consistency");
    let mut cases = 0;
    for file in std::fs::read_dir(folder).unwrap() {
        let file = file.unwrap().path();
        let case: Case = serde_json::from_slice(&std::fs::read(&file).unwrap()).unwrap();
        let bytes = |hex: &str| data_encoding::HEXLOWER.decode(hex.as_bytes()).unwrap();
        let root = RootHash::from_bytes(bytes(&case.known_root).try_into().unwrap());
        let known = KnownTree { size: TreeSize::new(case.known_size), root };
        let trust = TrustStore::from_toml(&case.trust).unwrap();
        let verdict = verify_consistency(&bytes(&case.receipt), &known, &trust, case.now);
        let answer = serde_json::to_value(&verdict).unwrap();
        let name = file.display();
        assert_eq!(answer["outcome"], case.outcome, "{name}: {}\n{verdict:#?}", case.why);
        assert_eq!(answer["reason"].as_str(), case.reason.as_deref(), "{name}: {}", case.why);
        assert_eq!(verdict.root, case.newer_root, "{name}: {}", case.why);
        cases += 1;
    }
    assert!(cases >= 10, "only {cases} cases found");
}

#[test]
fn a_newer_size_that_is_not_signed_is_said_to_be_none_and_no_tree_to_know() {
    let log = Log::new();
    let bytes = unsigned_size(&log, 5, 9);
    let verdict = verify_consistency(&bytes, &known(5), &believing(&log), NOW);
    assert!(verdict.is_verified(), "{verdict:#?}");
    assert_eq!((verdict.newer, verdict.root), (None, None));
    let check = verdict.checks.iter().find(|check| check.name == CheckName::Consistency).unwrap();
    assert!(check.detail.contains("not signed"), "{check:?}");
}

/// A receipt whose protected header has no "tree-size": the last of its five members, taken out before it is signed.
fn unsigned_size(log: &Log, older: u64, newer: u64) -> Vec<u8> {
    let whole = log.header(TreeSize::new(newer)).encode();
    let member = [&[0x69][..], b"tree-size", &[newer as u8]].concat();
    assert!(whole.ends_with(&member) && whole[0] == 0xa5 && newer < 24);
    let protected = [&[0xa4][..], &whole[1..whole.len() - member.len()]].concat();
    let bytes = receipt(log, older, newer);
    let to_sign = [
        &[0x84, 0x6a][..],
        b"Signature1",
        &[0x58, protected.len() as u8],
        &protected,
        &[0x40, 0x58, 0x20],
        root(newer).as_bytes(),
    ]
    .concat();
    let signature = log.key.sign(&to_sign).unwrap();
    let whole = [&[0x58, whole.len() as u8][..], &whole].concat();
    let at = bytes.windows(whole.len()).position(|part| part == whole).unwrap();
    let rest = &bytes[at + whole.len()..bytes.len() - signature.len()];
    [&bytes[..at], &[0x58, protected.len() as u8], &protected, rest, &signature[..]].concat()
}
