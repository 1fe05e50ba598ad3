//! The golden vectors: every file under `vectors/scitt` is read, and none may be skipped.

use std::fs;
use std::path::{Path, PathBuf};

use merkle::{EntryDigest, Hash, LeafHash, RootHash, TreeSize};
use scitt::{Problem, PublicKey, Receipt, ReceiptError, ReceiptRefused, SignedRoot, SignedStatement};
use serde::Deserialize;
use serde::de::DeserializeOwned;

use crate::support::{hex, to_hex};

/// Reads every case of a folder, so that a misspelled or empty one fails.
pub fn each<C: DeserializeOwned>(folder: &str, check: impl Fn(&str, C)) {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../vectors/scitt").join(folder);
    let mut files: Vec<PathBuf> = fs::read_dir(&folder)
        .unwrap()
        .map(|entry| entry.unwrap().path())
        .filter(|path| path.is_file())
        .collect();
    files.sort();
    assert!(!files.is_empty(), "no vectors in {}", folder.display());
    for file in files {
        let name = file.file_stem().unwrap().to_string_lossy().into_owned();
        let case = serde_json::from_slice(&fs::read(&file).unwrap());
        check(&name, case.unwrap_or_else(|error| panic!("{name}: {error}")));
    }
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct AcceptedStatement {
    why: String,
    input: String,
    s: String,
    entry: String,
    twin: Option<String>,
    sig_structure: String,
    detached: Option<String>,
    key: String,
    signature: String,
    alg: Option<i64>,
    iss: Option<String>,
    sub: Option<String>,
    kid: Option<String>,
    /// Path of the label that RFC 9943 wants and this statement lacks.
    missing: Option<String>,
    receipts: Vec<String>,
    unprotected_x5chain: Vec<String>,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Refused {
    why: String,
    input: String,
    /// The byte at fault, where the case fixes it.
    offset: Option<usize>,
    error: String,
}

#[test]
fn accepted_statements_have_this_s_this_entry_and_this_signature() {
    each("statement/accepted", |name, case: AcceptedStatement| {
        let why = format!("{name}: {}", case.why);
        let statement = SignedStatement::parse(hex(&case.input)).expect(&why);
        assert_eq!(to_hex(statement.bytes()), case.s, "{why}");
        assert_eq!(statement.digest().to_string(), case.entry, "{why}");
        assert_eq!(statement.twin().map(|twin| twin.to_string()), case.twin, "{why}");
        let detached = case.detached.as_deref().map(hex);
        let signed = statement.sig_structure(detached.as_deref()).expect(&why);
        assert_eq!(to_hex(&signed), case.sig_structure, "{why}");
        let verified = statement.verify_with(&public_key(&case.key), detached.as_deref());
        assert_eq!(verified.is_ok(), case.signature == "valid", "{why}");
        check_header(&statement, &case, &why);
        let hexes = |list: &[bytes::Bytes]| list.iter().map(|bytes| to_hex(bytes)).collect::<Vec<_>>();
        assert_eq!(hexes(statement.receipts()), case.receipts, "{why}");
        let chain = statement.unprotected_x5chain().map(|chain| hexes(chain.certificates()));
        assert_eq!(chain.unwrap_or_default(), case.unprotected_x5chain, "{why}");
    });
}

fn check_header(statement: &SignedStatement, case: &AcceptedStatement, why: &str) {
    let header = statement.header();
    assert_eq!(header.alg(), case.alg, "{why}");
    assert_eq!(header.iss(), case.iss.as_deref(), "{why}");
    assert_eq!(header.sub(), case.sub.as_deref(), "{why}");
    assert_eq!(header.kid().map(|kid| to_hex(kid)), case.kid, "{why}");
    let missing = header.require_scitt().err().map(|missing| missing.label_path());
    assert_eq!(missing, case.missing.as_deref(), "{why}");
}

#[test]
fn refused_statements_are_refused_at_this_byte_for_this_reason() {
    each("statement/refused", |name, case: Refused| {
        let malformed = SignedStatement::parse(hex(&case.input)).expect_err(name);
        assert_eq!(malformed.kind.to_string(), case.error, "{name}: {}", case.why);
        assert_eq!(Some(malformed.offset), case.offset, "{name}: {}", case.why);
    });
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct AcceptedReceipt {
    why: String,
    input: String,
    key: String,
    root: String,
    tree_size: u64,
    signed_tree_size: Option<u64>,
    leaf: Option<String>,
    leaf_index: Option<u64>,
    older_size: Option<u64>,
    older_root: Option<String>,
}

#[test]
fn accepted_receipts_prove_this_root() {
    each("receipt/accepted", |name, case: AcceptedReceipt| {
        let why = format!("{name}: {}", case.why);
        let receipt = Receipt::parse(hex(&case.input)).expect(&why);
        let key = public_key(&case.key);
        let root = match (&case.leaf, &case.older_root) {
            (Some(leaf), None) => {
                let (proof, root) = receipt.find_inclusion(&leaf_hash(leaf), &key).expect(&why);
                assert_eq!(Some(proof.leaf_index.get()), case.leaf_index, "{why}");
                assert_eq!(proof.tree_size.get(), case.tree_size, "{why}");
                Ok(root)
            }
            (None, Some(older)) => {
                assert_eq!(receipt.consistency_proofs()[0].newer.get(), case.tree_size, "{why}");
                let older_size = TreeSize::new(case.older_size.expect(&why));
                receipt.verify_consistency(older_size, &older.parse::<RootHash>().unwrap(), &key)
            }
            _ => panic!("{why}: either a leaf or an older root"),
        };
        assert_eq!(root.expect(&why).to_string(), case.root, "{why}");
        assert_eq!(receipt.signed_tree_size().map(TreeSize::get), case.signed_tree_size, "{why}");
    });
}

#[test]
fn receipts_in_our_form_are_assembled_again_byte_for_byte_from_their_signed_root() {
    each("receipt/accepted", |name, case: AcceptedReceipt| {
        let input = hex(&case.input);
        let receipt = Receipt::parse(input.clone()).expect(name);
        let ours = case.signed_tree_size.is_some() && receipt.attached_root().is_none();
        if !ours || receipt.inclusion_proofs().len() > 1 {
            return;
        }
        let emptied = SignedStatement::parse(input.clone()).expect(name);
        let signed = SignedRoot::parse(emptied.bytes().clone()).expect(name);
        let again = match (receipt.inclusion_proofs(), receipt.consistency_proofs()) {
            ([proof], []) => signed.inclusion_receipt(proof.leaf_index, &proof.path),
            ([], [proof]) => signed.consistency_receipt(proof.older, &proof.path),
            _ => panic!("{name}: one proof"),
        };
        assert_eq!(to_hex(&again), case.input, "{name}");
    });
}

#[test]
fn refused_receipts_are_refused_for_this_reason() {
    each("receipt/refused", |name, case: Refused| {
        let error = Receipt::parse(hex(&case.input)).expect_err(name);
        let (words, offset) = match &error {
            ReceiptError::Malformed(malformed) => (malformed.kind.to_string(), Some(malformed.offset)),
            ReceiptError::UnsupportedStructure(_) => (error.to_string(), None),
        };
        assert_eq!(words, case.error, "{name}: {}", case.why);
        assert!(case.offset.is_none() || case.offset == offset, "{name}: {offset:?}");
    });
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct UnprovenReceipt {
    why: String,
    input: String,
    key: String,
    leaf: String,
    error: String,
}

#[test]
fn unproven_receipts_are_well_formed_and_prove_nothing() {
    each("receipt/unproven", |name, case: UnprovenReceipt| {
        let receipt = Receipt::parse(hex(&case.input)).expect(name);
        let refused =
            receipt.verify_inclusion(&leaf_hash(&case.leaf), &public_key(&case.key)).expect_err(name);
        let class = match refused {
            ReceiptRefused::Signature(_) => "signature",
            ReceiptRefused::Proof(_) => "proof",
            ReceiptRefused::OtherPayload => "payload",
            ReceiptRefused::SeveralRoots => "roots",
            ReceiptRefused::NoInclusionProof => "no inclusion proof",
            ReceiptRefused::NoConsistencyProof | ReceiptRefused::OlderSize { .. } => "consistency",
            ReceiptRefused::OtherStatement(_) => "statement",
        };
        assert_eq!(class, case.error, "{name}: {}", case.why);
    });
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct ProblemCase {
    #[expect(dead_code, reason = "for people")]
    why: String,
    input: String,
    valid: bool,
    title: Option<String>,
    detail: Option<String>,
    instance: Option<String>,
    code: Option<String>,
    rule: Option<String>,
    offset: Option<u64>,
}

fn check_problem(name: &str, case: ProblemCase) {
    let problem = Problem::parse(&hex(&case.input));
    assert_eq!(problem.is_ok(), case.valid, "{name}");
    let Ok(problem) = problem else { return };
    assert_eq!(problem.title, case.title, "{name}");
    assert_eq!(problem.detail, case.detail, "{name}");
    assert_eq!(problem.instance, case.instance, "{name}");
    assert_eq!(problem.get_code(), case.code.as_deref(), "{name}");
    assert_eq!(problem.get_rule(), case.rule.as_deref(), "{name}");
    assert_eq!(problem.get_offset(), case.offset, "{name}");
}

#[test]
fn problem_details_say_this_or_are_none() {
    each("problem", check_problem);
    each("problem/refused", check_problem);
}

/// The published rule of the public vectors: the entry is a digest, the leaf hash that of 0x00 and the entry.
#[test]
fn the_leaf_of_an_entry_is_the_hash_of_zero_and_the_entry() {
    let entry = EntryDigest::of(b"statement 2");
    each("receipt/accepted", |name, case: AcceptedReceipt| {
        if case.leaf_index == Some(2) {
            assert_eq!(case.leaf, Some(entry.leaf_hash().to_string()), "{name}");
        }
    });
}

fn leaf_hash(text: &str) -> LeafHash {
    LeafHash::from_bytes(*text.parse::<Hash>().unwrap().as_bytes())
}

pub fn public_key(cose_key: &str) -> PublicKey {
    PublicKey::from_cose_key(&hex(cose_key)).unwrap()
}
