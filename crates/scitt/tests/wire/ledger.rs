//! Receipts of CCF ledgers (vds 2): the golden vectors, which a Python of its own wrote (tests/python/ccf_ledger.py).

use merkle::{EntryDigest, LeafHash};
use scitt::{Receipt, ReceiptError, ReceiptRefused, SignedRoot, Structure};
use serde::Deserialize;

use crate::support::hex;
use crate::vectors::{each, public_key};

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Accepted {
    why: String,
    input: String,
    key: String,
    entry: String,
    root: String,
}

#[test]
fn accepted_receipts_of_ledgers_prove_this_root() {
    each("ledger-receipt/accepted", |name, case: Accepted| {
        let why = format!("{name}: {}", case.why);
        let receipt = Receipt::parse(hex(&case.input)).expect(&why);
        let entry: EntryDigest = case.entry.parse().expect(&why);
        assert_eq!(receipt.structure(), Structure::CcfLedger, "{why}");
        let root = receipt.implied_ledger_root(&entry).expect(&why);
        assert_eq!(root.to_string(), case.root, "{why}");
        assert_eq!(receipt.verify_root(&root, &public_key(&case.key)), Ok(()), "{why}");
        let txid = receipt.header().kid().map(|_| "2.19".to_owned());
        assert_eq!(receipt.ledger_transaction(), txid, "{why}");
    });
}

#[test]
fn a_ledger_s_receipt_proves_nothing_about_another_statement_or_as_one_of_ours() {
    each("ledger-receipt/accepted", |name, case: Accepted| {
        let receipt = Receipt::parse(hex(&case.input)).expect(name);
        let other = receipt.implied_ledger_root(&EntryDigest::of(b"another statement"));
        let entry: EntryDigest = case.entry.parse().expect(name);
        assert_eq!(other, Err(ReceiptRefused::OtherStatement(entry)), "{name}");
        let leaf = LeafHash::from_bytes(*entry.as_bytes());
        let ours = receipt.verify_inclusion(&leaf, &public_key(&case.key));
        assert_eq!(ours, Err(ReceiptRefused::NoInclusionProof), "{name}");
        assert!(receipt.inclusion_proofs().is_empty() && receipt.signed_tree_size().is_none(), "{name}");
        let signed = SignedRoot::parse(hex(&case.input));
        assert_eq!(signed, Err(ReceiptError::UnsupportedStructure(2)), "{name}: nor do we sign such roots");
    });
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Unproven {
    why: String,
    input: String,
    key: String,
    entry: String,
    error: String,
}

#[test]
fn unproven_receipts_of_ledgers_are_well_formed_and_prove_nothing() {
    each("ledger-receipt/unproven", |name, case: Unproven| {
        let receipt = Receipt::parse(hex(&case.input)).expect(name);
        let refused = receipt.implied_ledger_root(&case.entry.parse().expect(name)).and_then(|root| {
            receipt.verify_root(&root, &public_key(&case.key)).map_err(ReceiptRefused::from)
        });
        let class = match refused {
            Err(ReceiptRefused::Signature(_)) => "signature",
            Err(ReceiptRefused::OtherStatement(_)) => "statement",
            Err(ReceiptRefused::SeveralRoots) => "roots",
            other => panic!("{name}: {}: {other:?}", case.why),
        };
        assert_eq!(class, case.error, "{name}: {}", case.why);
    });
}

#[test]
fn one_changed_bit_of_a_ledger_s_proof_never_verifies() {
    each("ledger-receipt/accepted", |name, case: Accepted| {
        let input = hex(&case.input);
        if input.len() > 700 {
            return; // one of each length is enough
        }
        let entry: EntryDigest = case.entry.parse().expect(name);
        let key = public_key(&case.key);
        for place in 0..input.len() {
            for bit in [0, 5] {
                let mut changed = input.clone();
                changed[place] ^= 1 << bit;
                let Ok(receipt) = Receipt::parse(changed) else { continue };
                let root = receipt.implied_ledger_root(&entry);
                let verified = root.is_ok_and(|root| receipt.verify_root(&root, &key).is_ok());
                assert!(!verified, "{name}: bit {bit} of byte {place}");
            }
        }
    });
}
