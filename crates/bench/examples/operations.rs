//! Runs one operation of the pure crates a number of times, for `tools/instruction-counts`.
//!
//! ```text
//! cargo run --release -p bench --example operations                     the names of all operations
//! cargo run --release -p bench --example operations -- statement-read 100
//! ```
//! What is prepared for an operation does not depend on the number of times.
#![allow(clippy::unwrap_used)]

use std::hint::black_box;

use ed25519_dalek::SigningKey as NoteKey;
use jose::{jcs, json};
use lookup_tree::limits::LEVEL_0_LEAVES;
use lookup_tree::{IndexQuestion, LeafRange, Posting, RunProof, RunQuestion, RunSummary, TermKey, schedule};
use merkle::{CompactRange, EntryDigest, Hash, LeafHash, LeafIndex, RootHash, TreeSize, proof, verify};
use registration::{Answers, Record, SideData};
use roa::chain::Chain;
use roa::registry::{Registry, RegistryDocument};
use roa::signed::Signed;
use roa::text::UtcTime;
use roa::verify::{TimeBounds, verify_chain};
use scitt::{
    Algorithm, Receipt, ReceiptHeader, SignedRoot, SignedStatement, Signer, SigningKey, StatementBuilder,
};
use serde_json::json;
use testkit::agentroa::{delegated, key_of, registry, root};
use tlog::checkpoint::{Checkpoint, Origin};
use tlog::note::{LocalKey, NoteSigner};

/// The tree of the proofs has twenty levels.
const TREE: TreeSize = TreeSize::new(1 << 20);
/// The leaf of the proofs.
const LEAF: LeafIndex = LeafIndex::new(700_000);

/// Work that is repeated.
type Operation = Box<dyn FnMut()>;

/// The name of an operation, and the function that prepares it.
type Named = (&'static str, fn() -> Operation);

/// All operations, in the order of a registration and of what is asked afterwards.
const OPERATIONS: [Named; 19] = [
    ("json-read", json_read),
    ("json-canonical", json_canonical),
    ("statement-read", statement_read),
    ("statement-verify-eddsa", || statement_verify(testkit::verifier())),
    ("statement-verify-es256", || statement_verify(testkit::es256())),
    ("registration-decide-opaque", || registration_decide(opaque())),
    ("registration-decide-vrf", || registration_decide(testkit::vrf(1))),
    ("tree-append", tree_append),
    ("root-sign", root_sign),
    ("inclusion-plan", inclusion_plan),
    ("inclusion-verify", inclusion_verify),
    ("receipt-write", receipt_write),
    ("receipt-verify", receipt_verify),
    ("checkpoint-open", checkpoint_open),
    ("index-summary", index_summary),
    ("index-prove", index_prove),
    ("index-verify", index_verify),
    ("chain-read", chain_read),
    ("chain-verify", chain_verify),
];

fn main() {
    let mut arguments = std::env::args().skip(1);
    let Some(name) = arguments.next() else {
        OPERATIONS.iter().for_each(|(name, _)| println!("{name}"));
        return;
    };
    let times: u32 = arguments.next().and_then(|times| times.parse().ok()).expect("how many times");
    let (_, prepare) = OPERATIONS.iter().find(|operation| operation.0 == name).expect("an operation's name");
    let mut operation = prepare();
    (0..times).for_each(|_| operation());
}

/// The payload of a statement: some 1,000 bytes.
fn payload() -> serde_json::Value {
    json!({ "action": "deploy", "verdict": "allow", "note": "n".repeat(900), "cost": 17, "tags": ["a", "b"] })
}

fn opaque() -> SignedStatement {
    testkit::opaque("a subject", &payload())
}

fn json_read() -> Operation {
    let text = payload().to_string().into_bytes();
    Box::new(move || drop(json::parse_strict(black_box(&text), json::Limits::default()).unwrap()))
}

fn json_canonical() -> Operation {
    let value = payload();
    Box::new(move || drop(black_box(jcs::canonical(black_box(&value)))))
}

fn statement_read() -> Operation {
    let bytes = opaque().bytes().clone();
    Box::new(move || drop(SignedStatement::parse(black_box(bytes.clone())).unwrap()))
}

fn statement_verify(key: SigningKey) -> Operation {
    let builder = StatementBuilder::new(payload().to_string().into_bytes()).content_type("application/json");
    let statement = builder.iss("https://issuer.example").sub("a subject").kid("a key").sign(&key).unwrap();
    Box::new(move || black_box(&statement).verify_with(key.public_key(), None).unwrap())
}

/// What a log decides of a statement before it looks anything up: signature, record, policy.
fn registration_decide(statement: SignedStatement) -> Operation {
    let in_force = testkit::policy_in_force();
    Box::new(move || {
        let authenticated = in_force.authenticate(black_box(&statement), SideData::default()).unwrap();
        let record = Record::read(&authenticated).unwrap();
        drop(black_box(in_force.decide(&authenticated, &record, &Answers::none()).into_permit()));
    })
}

fn leaf_hash() -> LeafHash {
    EntryDigest::of(b"an entry").leaf_hash()
}

fn tree_append() -> Operation {
    let (mut tree, leaf) = (CompactRange::empty(), leaf_hash());
    Box::new(move || tree.append(black_box(leaf)))
}

/// A path of [`LEAF`] in [`TREE`], with the root that it leads to.
fn path() -> (Vec<Hash>, RootHash) {
    let path: Vec<Hash> = (0..20).map(|level| Hash::from_bytes([level; 32])).collect();
    let root = verify::implied_root(leaf_hash(), LEAF, TREE, &path).unwrap();
    (path, root)
}

fn inclusion_plan() -> Operation {
    Box::new(|| drop(proof::inclusion(black_box(LEAF), TREE).unwrap()))
}

fn inclusion_verify() -> Operation {
    let (path, root) = path();
    Box::new(move || verify::inclusion(leaf_hash(), LEAF, TREE, black_box(&path), root).unwrap())
}

fn receipt_header() -> ReceiptHeader {
    ReceiptHeader {
        alg: Algorithm::EdDsa,
        kid: b"a key".to_vec(),
        iss: "https://log.example".to_owned(),
        sub: "log.example".to_owned(),
        iat: 1_790_000_000,
        tree_size: TREE,
    }
}

fn signed_root() -> SignedRoot {
    receipt_header().sign_root(&testkit::operator(), &path().1).unwrap()
}

fn root_sign() -> Operation {
    let (header, key, root) = (receipt_header(), testkit::operator(), path().1);
    Box::new(move || drop(header.sign_root(&key, black_box(&root)).unwrap()))
}

fn receipt_write() -> Operation {
    let (signed, (path, _)) = (signed_root(), path());
    Box::new(move || drop(black_box(signed.inclusion_receipt(LEAF, &path))))
}

fn receipt_verify() -> Operation {
    let (receipt, key) = (signed_root().inclusion_receipt(LEAF, &path().0), testkit::operator());
    Box::new(move || {
        let receipt = Receipt::parse(black_box(receipt.clone())).unwrap();
        receipt.verify_inclusion(&leaf_hash(), key.public_key()).unwrap();
    })
}

fn checkpoint_open() -> Operation {
    let origin: Origin = testkit::ORIGIN.parse().unwrap();
    let key = LocalKey::new(testkit::ORIGIN.parse().unwrap(), NoteKey::from_bytes(&[7; 32])).unwrap();
    let note = Checkpoint::new(origin.clone(), TREE, path().1).unwrap().sign(&key).unwrap().to_string();
    let keys = [key.key().clone()];
    Box::new(move || drop(Checkpoint::open(black_box(note.as_bytes()), &origin, &keys).unwrap()))
}

/// The postings of a full run, in which each leaf has one of seven search values.
fn postings() -> Vec<Posting> {
    let posting = |leaf| Posting { key: search_value(leaf % 7), leaf: LeafIndex::new(leaf) };
    let mut postings: Vec<Posting> = (0..LEVEL_0_LEAVES).map(posting).collect();
    postings.sort_unstable();
    postings
}

fn search_value(number: u64) -> TermKey {
    TermKey::of(4, format!("agent-{number}").as_bytes())
}

/// A question about 200 leaves of the run.
fn question(summary: &RunSummary) -> RunQuestion {
    let run = schedule(TreeSize::new(LEVEL_0_LEAVES))[0];
    let question = IndexQuestion::new([search_value(3)], LeafRange::new(2_000, 2_200)).unwrap();
    question.for_run(&run, summary).unwrap()
}

fn index_summary() -> Operation {
    let postings = postings();
    Box::new(move || {
        black_box(RunSummary::of(black_box(&postings)).unwrap());
    })
}

fn index_prove() -> Operation {
    let postings = postings();
    let question = question(&RunSummary::of(&postings).unwrap());
    Box::new(move || drop(RunProof::prove(black_box(&postings[..]), &question).unwrap()))
}

fn index_verify() -> Operation {
    let postings = postings();
    let summary = RunSummary::of(&postings).unwrap();
    let question = question(&summary);
    let proof = RunProof::prove(&postings[..], &question).unwrap().encode();
    Box::new(move || {
        let proof = RunProof::decode(black_box(&proof)).unwrap();
        drop(proof.verify(&question, summary.root).unwrap());
    })
}

/// A chain of three delegations, so with four signatures.
fn chain() -> Chain {
    (0..3).fold(root(|_| ()), |chain, _| delegated(&chain, |_| ()))
}

fn chain_read() -> Operation {
    let text = chain().canonical();
    Box::new(move || drop(Chain::parse(black_box(&text)).unwrap()))
}

fn chain_verify() -> Operation {
    let document = Signed::<RegistryDocument>::parse(&registry(1, |_| ())).unwrap();
    let registry = Registry::open(&document, &[key_of("operator").public_key().clone()]).unwrap();
    let (chain, now) = (chain(), UtcTime(jiff::Timestamp::now()));
    Box::new(move || drop(verify_chain(black_box(&chain), &registry, TimeBounds::default(), now).unwrap()))
}

#[cfg(test)]
mod tests {
    #[test]
    fn every_operation_can_be_repeated() {
        for (_, prepare) in super::OPERATIONS {
            let mut operation = prepare();
            (0..2).for_each(|_| operation());
        }
    }
}
