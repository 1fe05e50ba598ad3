//! Receipts: one signature per root, strict reading, and every way in which one must not verify.

use coset::TaggedCborSerializable;
use merkle::{Hash, LeafIndex, ProofError, TreeSize};
use scitt::cbor::Value;
use scitt::{
    Algorithm, Label, MalformedKind, Receipt, ReceiptError, ReceiptHeader, ReceiptRefused, SignError,
    SignatureError, SignedRoot, Signer,
};

use crate::log::{Log, path};
use crate::support::{frame, hex, key, replaced, to_hex};

fn parse(bytes: &[u8]) -> Receipt {
    Receipt::parse(bytes.to_vec()).unwrap()
}

fn refused(bytes: &[u8]) -> MalformedKind {
    match Receipt::parse(bytes.to_vec()) {
        Err(ReceiptError::Malformed(malformed)) => malformed.kind,
        other => panic!("expected a malformed receipt, got {other:?}"),
    }
}

/// A receipt out of raw parts, signed over `root`.
fn handmade(log: &Log, protected: &[u8], unprotected: &Value<'_>, payload: Option<&[u8]>) -> Vec<u8> {
    let root = log.root();
    let mut signed = scitt::cbor::ItemWriter::new();
    signed.array(4).text("Signature1").bytes(protected).bytes(&[]).bytes(root.as_bytes());
    let signature = log.key.sign(&signed.into_bytes()).unwrap();
    frame(protected, &unprotected.encode(), payload, &signature)
}

fn proofs(kind: i64, proofs: impl IntoIterator<Item = Vec<u8>>) -> Value<'static> {
    let list = Value::array(proofs.into_iter().map(Value::from));
    Value::map([(396_i64.into(), Value::map([(kind.into(), list)]))])
}

fn proof(size: u64, index: u64, path: &[Hash]) -> Vec<u8> {
    let path = Value::array(path.iter().map(|hash| hash.as_bytes().to_vec().into()));
    Value::array([size.into(), index.into(), path]).encode()
}

// --- issuing --------------------------------------------------------------------

#[test]
fn every_leaf_of_every_small_tree_has_a_receipt_that_verifies() {
    for size in 1..=33 {
        let log = Log::of(size);
        for index in 0..size {
            let receipt = parse(&log.receipt(index));
            assert_eq!(receipt.verify_inclusion(&log.leaves[index], log.public()), Ok(log.root()));
            assert_eq!(receipt.signed_tree_size(), Some(TreeSize::new(size as u64)));
        }
    }
}

#[test]
fn every_small_tree_has_consistency_receipts_from_every_older_one() {
    for newer in 2..=33 {
        let log = Log::of(newer);
        for older in 1..newer {
            let receipt = parse(&log.consistency(older));
            let (size, root) = (TreeSize::new(older as u64), Log::of(older).root());
            assert_eq!(
                receipt.verify_consistency(size, &root, log.public()),
                Ok(log.root()),
                "{older} {newer}"
            );
        }
    }
}

#[test]
fn the_protected_header_is_deterministic_and_in_the_documented_order() {
    let header = ReceiptHeader {
        alg: Algorithm::Es256,
        kid: vec![0xaa, 0xbb],
        iss: "i".into(),
        sub: "s".into(),
        iat: 1_700_000_000,
        tree_size: TreeSize::new(300),
    };
    let expected =
        "a5 01 26 04 42aabb 0f a3 01 6169 02 6173 06 1a6553f100 19018b 01 69747265652d73697a65 19012c";
    assert_eq!(to_hex(&header.encode()), to_hex(&hex(expected)));
    let parsed = scitt::cbor::parse(&header.encode(), scitt::cbor::Limits { depth: 4, items: 32 })
        .unwrap()
        .value
        .encode();
    assert_eq!(parsed, header.encode());
}

#[test]
fn a_receipt_has_the_documented_shape() {
    let log = Log::of(1);
    let receipt = log.receipt(0);
    let protected = log.header().encode();
    let rest = &receipt[2 + 2 + protected.len()..];
    assert_eq!(
        to_hex(&rest[..12]),
        to_hex(&hex("a1 19018c a1 20 81 44 83 01 00 80")),
        "the empty path is 80"
    );
    assert_eq!(rest[12], 0xf6, "the payload is detached");
}

#[test]
fn all_receipts_under_one_root_share_one_signature() {
    let log = Log::signing_with(5, key(Algorithm::Es256));
    let signed = log.signed();
    let stored = SignedRoot::parse(signed.to_bytes()).unwrap();
    assert_eq!(stored, signed);
    assert_eq!(stored.tree_size(), TreeSize::new(5));
    assert_eq!(stored.committed_at(), Some(log.header().iat));
    stored.verify(&log.root(), log.public()).unwrap();
    assert_eq!(stored.verify(&Log::of(4).root(), log.public()), Err(SignatureError::Invalid));
    for index in 0..5 {
        let receipt = stored.inclusion_receipt(LeafIndex::new(index as u64), &path(&log.leaves, index));
        assert_eq!(parse(&receipt).verify_inclusion(&log.leaves[index], log.public()), Ok(log.root()));
    }
}

#[test]
fn a_root_is_not_signed_under_an_algorithm_that_the_header_does_not_name() {
    let log = Log::of(1);
    let header = ReceiptHeader { alg: Algorithm::Es256, ..log.header() };
    let mismatch = SignError::AlgorithmMismatch { header: Algorithm::Es256, signer: Algorithm::EdDsa };
    assert_eq!(header.sign_root(&log.key, &log.root()), Err(mismatch));
}

#[test]
fn a_signed_root_without_a_tree_size_is_not_ours() {
    let bytes = frame(&hex("a2 0127 19018b 01"), &[0xa0], None, &[0; 64]);
    let Err(ReceiptError::Malformed(malformed)) = SignedRoot::parse(bytes) else { panic!("accepted") };
    assert_eq!(malformed.kind, MalformedKind::Missing("tree-size".into()));
}

#[test]
fn coset_and_ciborium_read_what_we_issue() {
    let log = Log::of(3);
    let theirs = coset::CoseSign1::from_tagged_slice(&log.receipt(2)).unwrap();
    assert_eq!(theirs.payload, None);
    assert_eq!(theirs.protected.header.key_id, [0x6b; 32]);
    let signed = theirs.tbs_detached_data(log.root().as_bytes(), &[]);
    log.public().verify(Algorithm::EdDsa, &signed, &theirs.signature).unwrap();
    let (label, proofs) = &theirs.unprotected.rest[0];
    assert_eq!(*label, coset::Label::Int(396));
    let list = proofs.as_map().unwrap()[0].1.as_array().unwrap();
    let proof: ciborium::Value = ciborium::from_reader(list[0].as_bytes().unwrap().as_slice()).unwrap();
    assert_eq!(proof.as_array().unwrap()[2].as_array().unwrap().len(), 1);
}

// --- what does not verify ---------------------------------------------------------

#[test]
fn a_receipt_for_another_statement_is_refused() {
    let log = Log::of(8);
    let receipt = parse(&log.receipt(2));
    for (index, leaf) in log.leaves.iter().enumerate().filter(|(index, _)| *index != 2) {
        let invalid = Err(ReceiptRefused::Signature(SignatureError::Invalid));
        assert_eq!(receipt.verify_inclusion(leaf, log.public()), invalid, "{index}");
    }
}

#[test]
fn a_receipt_under_another_key_or_curve_is_refused() {
    let log = Log::of(2);
    let receipt = parse(&log.receipt(0));
    let other = key(Algorithm::EdDsa);
    let invalid = Err(ReceiptRefused::Signature(SignatureError::Invalid));
    assert_eq!(receipt.verify_inclusion(&log.leaves[0], other.public_key()), invalid);
    assert!(receipt.verify_inclusion(&log.leaves[0], key(Algorithm::Es256).public_key()).is_err());
}

#[test]
fn no_changed_bit_of_a_receipt_verifies() {
    let log = Log::of(3);
    let receipt = log.receipt(1);
    for at in 0..receipt.len() {
        for bit in 0..8 {
            let mut changed = receipt.clone();
            changed[at] ^= 1 << bit;
            let verified = Receipt::parse(changed).map(|receipt| {
                receipt.verify_inclusion(&log.leaves[1], log.public()).is_ok()
                    && receipt.signed_tree_size() == Some(TreeSize::new(3))
            });
            assert!(!matches!(verified, Ok(true)), "bit {bit} of byte {at}");
        }
    }
}

#[test]
fn the_signed_tree_size_stops_the_proof_from_lying_about_it() {
    // For the same path and root, leaf 1 of 2 also verifies as leaf 2 of 3 (RFC 9942 signs neither).
    let log = Log::of(2);
    let honest = log.receipt(1);
    let lying = replaced(&honest, &hex("830201 81"), &hex("830302 81"));
    assert_eq!(refused(&lying), MalformedKind::TreeSize { signed: 2, proof: 3 });

    let unsigned_size = hex("a2 0127 19018b 01");
    let proof = proof(3, 2, &path(&log.leaves, 1));
    let accepted = parse(&handmade(&log, &unsigned_size, &proofs(-1, [proof]), None));
    assert_eq!(
        accepted.verify_inclusion(&log.leaves[1], log.public()),
        Ok(log.root()),
        "why we sign the size"
    );
}

#[test]
fn a_path_of_the_wrong_length_is_refused_before_the_signature() {
    let log = Log::of(4);
    for path in [&path(&log.leaves, 0)[..1], &[&path(&log.leaves, 0)[..], &[log.root().into()]].concat()] {
        let receipt = log.signed().inclusion_receipt(LeafIndex::new(0), path);
        let refused = parse(&receipt).verify_inclusion(&log.leaves[0], log.public());
        assert!(matches!(refused, Err(ReceiptRefused::Proof(ProofError::Length { needed: 2, .. }))));
    }
}

#[test]
fn a_consistency_receipt_proves_nothing_from_a_root_nobody_verified() {
    let log = Log::of(7);
    let receipt = parse(&log.consistency(3));
    let four = Log::of(4).root();
    assert_eq!(
        receipt.verify_consistency(TreeSize::new(3), &four, log.public()),
        Err(ReceiptRefused::Proof(ProofError::OlderRoot))
    );
    assert_eq!(
        receipt.verify_consistency(TreeSize::new(4), &four, log.public()),
        Err(ReceiptRefused::OlderSize { expected: TreeSize::new(4), found: TreeSize::new(3) })
    );
    let inclusion = receipt.verify_inclusion(&log.leaves[0], log.public());
    assert_eq!(inclusion, Err(ReceiptRefused::NoInclusionProof));
    let consistency = parse(&log.receipt(0)).verify_consistency(TreeSize::new(3), &four, log.public());
    assert_eq!(consistency, Err(ReceiptRefused::NoConsistencyProof));
}

// --- strict reading -----------------------------------------------------------------

#[test]
fn vds_counts_only_as_an_integer_in_the_protected_header() {
    let log = Log::of(1);
    let good = proofs(-1, [proof(1, 0, &[])]);
    let missing = MalformedKind::Missing(Label::Int(395));
    assert_eq!(refused(&handmade(&log, &hex("a1 0127"), &good, None)), missing);
    assert_eq!(refused(&handmade(&log, &[], &good, None)), missing);
    let mut unprotected = good.clone();
    let Value::Map(entries) = &mut unprotected else { panic!() };
    entries.push((Value::from(395_i64).into(), Value::from(1_i64).into()));
    assert_eq!(refused(&handmade(&log, &hex("a1 0127"), &unprotected, None)), missing);
    for wrong in ["f5", "6131", "f93c00", "4101", "f6", "8101", "c101"] {
        let protected = hex(&format!("a2 0127 19018b {wrong}"));
        let kind = MalformedKind::Type { what: "vds (395)", expected: "an integer" };
        assert_eq!(refused(&handmade(&log, &protected, &good, None)), kind, "{wrong}");
    }
}

#[test]
fn another_data_structure_is_not_malformed_but_unsupported() {
    let log = Log::of(1);
    for (vds, number) in [("03", 3), ("00", 0), ("386e", -111)] {
        let bytes =
            handmade(&log, &hex(&format!("a2 0127 19018b {vds}")), &proofs(-1, [proof(1, 0, &[])]), None);
        assert_eq!(Receipt::parse(bytes), Err(ReceiptError::UnsupportedStructure(number)));
    }
}

#[test]
fn alg_counts_only_in_the_protected_header() {
    let log = Log::of(1);
    let mut unprotected = proofs(-1, [proof(1, 0, &[])]);
    let Value::Map(entries) = &mut unprotected else { panic!() };
    entries.push((Value::from(1_i64).into(), Value::from(-8_i64).into()));
    let bytes = handmade(&log, &hex("a1 19018b 01"), &unprotected, None);
    assert_eq!(refused(&bytes), MalformedKind::Missing(Label::Int(1)));
}

#[test]
fn only_registered_and_non_empty_proofs_are_read() {
    let log = Log::of(1);
    let protected = hex("a2 0127 19018b 01");
    let with = |unprotected: &Value<'_>| refused(&handmade(&log, &protected, unprotected, None));
    assert_eq!(with(&Value::map([])), MalformedKind::NoProof);
    assert_eq!(with(&Value::map([(396_i64.into(), Value::map([]))])), MalformedKind::NoProof);
    assert_eq!(with(&proofs(-3, [proof(1, 0, &[])])), MalformedKind::UnknownProof);
    assert_eq!(with(&proofs(0, [proof(1, 0, &[])])), MalformedKind::UnknownProof);
    assert!(matches!(with(&proofs(-1, [])), MalformedKind::Count { .. }));
    assert!(matches!(with(&proofs(-1, vec![proof(1, 0, &[]); 17])), MalformedKind::Count { .. }));
    for list in [Value::Null, Value::from(proof(1, 0, &[])), Value::array([Value::array([])])] {
        let unprotected = Value::map([(396_i64.into(), Value::map([((-1_i64).into(), list)]))]);
        assert!(matches!(with(&unprotected), MalformedKind::Type { .. }));
    }
    let crit = Value::map([(2_i64.into(), Value::array([395_i64.into()]))]);
    assert_eq!(with(&crit), MalformedKind::MustBeProtected(Label::Int(2)));
}

#[test]
fn a_proof_is_three_things_of_the_right_types_within_bounds() {
    let log = Log::of(1);
    let protected = hex("a2 0127 19018b 01");
    for (why, text) in [
        ("two parts", "82 01 00"),
        ("four parts", "84 01 00 80 00"),
        ("a map", "a0"),
        ("negative size", "83 20 00 80"),
        ("float size", "83 f93c00 00 80"),
        ("text index", "83 01 6130 80"),
        ("path is not an array", "83 01 00 40"),
        ("hash is text", "83 02 00 81 6161"),
        ("trailing", "83 01 00 80 00"),
        ("nested path", "83 02 00 81 81 40"),
        ("index is the size", "83 01 01 80"),
        ("index beyond", "83 05 1bffffffffffffffff 80"),
        ("size 0", "83 00 00 80"),
    ] {
        let bytes = handmade(&log, &protected, &proofs(-1, [hex(text)]), None);
        assert!(Receipt::parse(bytes).is_err(), "{why}");
    }
    for length in [31, 33, 0] {
        let proof =
            Value::array([2_i64.into(), 0_i64.into(), Value::array([vec![0; length].into()])]).encode();
        let kind = refused(&handmade(&log, &protected, &proofs(-1, [proof]), None));
        assert_eq!(kind, MalformedKind::Type { what: "a hash in a path", expected: "32 bytes" });
    }
    let long = proof(u64::MAX, 0, &vec![log.root().into(); 65]);
    assert!(Receipt::parse(handmade(&log, &protected, &proofs(-1, [long]), None)).is_err());
    let longest = proof(u64::MAX, 0, &vec![log.root().into(); 64]);
    let receipt = parse(&handmade(&log, &protected, &proofs(-1, [longest]), None));
    assert!(receipt.verify_inclusion(&log.leaves[0], log.public()).is_err());
}

#[test]
fn no_consistency_proof_starts_at_zero_or_at_the_newer_size_or_is_empty() {
    let log = Log::of(2);
    let protected = hex("a2 0127 19018b 01");
    let hash: Hash = log.root().into();
    for (older, newer) in [(0, 2), (2, 2), (3, 2)] {
        let kind = refused(&handmade(&log, &protected, &proofs(-2, [proof(older, newer, &[hash])]), None));
        assert_eq!(kind, MalformedKind::ConsistencySizes { older, newer });
    }
    let empty = refused(&handmade(&log, &protected, &proofs(-2, [proof(1, 2, &[])]), None));
    assert!(matches!(empty, MalformedKind::Count { what: "a path", .. }));
}

#[test]
fn an_attached_root_must_be_the_one_the_proof_leads_to() {
    let log = Log::of(2);
    let protected = log.header().encode();
    let unprotected = proofs(-1, [proof(2, 0, &path(&log.leaves, 0))]);
    let attached = parse(&handmade(&log, &protected, &unprotected, Some(log.root().as_bytes())));
    assert_eq!(attached.attached_root(), Some(&log.root()));
    assert_eq!(attached.verify_inclusion(&log.leaves[0], log.public()), Ok(log.root()));
    assert_eq!(
        attached.verify_inclusion(&log.leaves[1], log.public()),
        Err(ReceiptRefused::OtherPayload),
        "a good signature over the attached root does not make the proof good"
    );
    let short = refused(&handmade(&log, &protected, &unprotected, Some(&[0; 31])));
    assert!(matches!(short, MalformedKind::Type { what: "the payload", .. }));
}

#[test]
fn of_several_proofs_one_must_lead_to_the_signed_root() {
    let log = Log::of(2);
    let good = proof(2, 0, &path(&log.leaves, 0));
    let twice =
        parse(&handmade(&log, &log.header().encode(), &proofs(-1, [good.clone(), good.clone()]), None));
    assert_eq!(twice.verify_inclusion(&log.leaves[0], log.public()), Ok(log.root()));
    let stray = proof(2, 0, &[log.root().into()]);
    for mixed in [[good.clone(), stray.clone()], [stray.clone(), good.clone()]] {
        let receipt = parse(&handmade(&log, &log.header().encode(), &proofs(-1, mixed.clone()), None));
        assert_eq!(receipt.verify_inclusion(&log.leaves[0], log.public()), Ok(log.root()));
        assert_eq!(receipt.implied_root(&log.leaves[0]), Err(ReceiptRefused::SeveralRoots));
        let attached =
            handmade(&log, &log.header().encode(), &proofs(-1, mixed), Some(log.root().as_bytes()));
        assert_eq!(parse(&attached).verify_inclusion(&log.leaves[0], log.public()), Ok(log.root()));
    }
    let strays = parse(&handmade(&log, &log.header().encode(), &proofs(-1, [stray.clone(), stray]), None));
    let invalid = Err(ReceiptRefused::Signature(SignatureError::Invalid));
    assert_eq!(strays.verify_inclusion(&log.leaves[0], log.public()), invalid);
    let impossible = proof(2, 0, &[]);
    let mixed = parse(&handmade(&log, &log.header().encode(), &proofs(-1, [good, impossible]), None));
    let refused = mixed.verify_inclusion(&log.leaves[0], log.public());
    assert!(matches!(refused, Err(ReceiptRefused::Proof(_))), "{refused:?}");
}

/// One receipt for two leaves: each is proven by its own proof.
#[test]
fn a_receipt_for_several_leaves_proves_each_at_its_index() {
    let log = Log::of(5);
    let of = |index: usize| proof(5, index as u64, &path(&log.leaves, index));
    let receipt = parse(&handmade(&log, &log.header().encode(), &proofs(-1, [of(1), of(4)]), None));
    for index in [1, 4] {
        let (proof, root) = receipt.find_inclusion(&log.leaves[index], log.public()).unwrap();
        assert_eq!((proof.leaf_index.get(), root), (index as u64, log.root()));
    }
    assert!(receipt.verify_inclusion(&log.leaves[2], log.public()).is_err());
}

#[test]
fn a_foreign_receipt_with_odd_encodings_and_text_labels_is_read() {
    let log = Log::of(2);
    let protected = hex("bf 66 6363662e7631 a1 6474786964 64322e3139 19018b 1801 3901ff f5 01 3807 ff");
    let sibling = to_hex(path(&log.leaves, 0)[0].as_bytes());
    let unprotected = hex(&format!("bf 19018c bf 20 9f 5f 5826 83 02 00 81 5820 {sibling} ff ff ff ff"));
    let mut signed = scitt::cbor::ItemWriter::new();
    signed.array(4).text("Signature1").bytes(&protected).bytes(&[]).bytes(log.root().as_bytes());
    let signature = log.key.sign(&signed.into_bytes()).unwrap();
    let receipt = parse(&frame(&protected, &unprotected, None, &signature));
    assert_eq!(receipt.verify_inclusion(&log.leaves[0], log.public()), Ok(log.root()));
    assert_eq!(receipt.signed_tree_size(), None);
}

#[test]
fn the_offset_of_a_mistake_inside_a_proof_is_that_in_the_receipt() {
    let log = Log::of(2);
    let honest = log.receipt(1);
    let at = honest.windows(3).position(|window| window == [0x83, 0x02, 0x01]).unwrap();
    let changed = replaced(&honest, &[0x83, 0x02, 0x01], &[0x83, 0x02, 0x02]);
    let Err(ReceiptError::Malformed(malformed)) = Receipt::parse(changed) else { panic!("accepted") };
    assert_eq!(malformed.offset, at + 2);
}
