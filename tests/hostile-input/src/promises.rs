//! What each parser promises about any bytes at all.
//!
//! A refusal points into its input. What was accepted and is written out again is accepted again, and is
//! the same thing. Whatever the answer, there is one.

use std::slice;
use std::sync::LazyLock;

use bytes::Bytes;
use expression::{EvalError, Expression};
use jose::{jcs, json};
use merkle::LeafHash;
use registration::{Record, SearchValues};
use scitt::{
    Algorithm, Header, Malformed, Problem, PublicKey, Receipt, ReceiptError, SignedStatement, SigningKey,
    StatementBuilder, problem, transparent,
};
use search_terms::limits::{MAX_LOOKUP_VALUE, MAX_LOOKUPS};
use tlog::checkpoint::Checkpoint;
use tlog::note::Note;
use tlog::policy::WitnessPolicy;
use tlog::proof::TlogProof;
use tlog::witness::AddCheckpoint;

/// What the parser said.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Verdict {
    /// It is what it should be.
    Accepted,
    /// It is not.
    Refused,
}

use Verdict::{Accepted, Refused};

/// A statement is its signed bytes S: they parse to themselves, under the same entry ID, however the
/// statement was wrapped and whatever is attached to it.
pub fn statement(input: &[u8]) -> Verdict {
    match SignedStatement::parse(input.to_vec()) {
        Err(malformed) => points_into(input, &malformed),
        Ok(statement) => {
            s_is_a_fixed_point(&statement);
            receipts_come_and_go(input, &statement);
            every_question_has_an_answer(&statement);
            Accepted
        }
    }
}

fn s_is_a_fixed_point(statement: &SignedStatement) {
    let again = SignedStatement::parse(statement.bytes().clone()).expect("S is a statement");
    assert_eq!(again.bytes(), statement.bytes(), "S of S is S");
    assert_eq!(again.digest(), statement.digest());
    assert_eq!(again.twin(), statement.twin());
    assert_eq!(again.header(), statement.header());
    assert_eq!(again.payload(), statement.payload());
    assert_eq!(again.signature(), statement.signature());
    assert!(
        again.receipts().is_empty() && again.unprotected_x5chain().is_none(),
        "S has nothing unprotected"
    );
}

fn receipts_come_and_go(input: &[u8], statement: &SignedStatement) {
    let (bare, receipts) = transparent::strip(input).expect("what parses can be stripped");
    assert_eq!(receipts, statement.receipts());
    let stripped = SignedStatement::parse(bare.clone()).expect("a stripped statement is a statement");
    assert_eq!(stripped.bytes(), statement.bytes(), "stripping changes no signed byte");
    assert!(stripped.receipts().is_empty());
    let new = Bytes::from_static(b"\xd2\x84\x40\xa0\xf6\x40");
    match transparent::attach(&bare, slice::from_ref(&new)) {
        Ok(attached) => {
            assert_eq!(transparent::strip(&attached), Ok((bare, vec![new])), "strip undoes attach")
        }
        Err(_) => assert!(statement.header().contains(&RECEIPTS.into()), "there is room for one receipt"),
    }
}

fn every_question_has_an_answer(statement: &SignedStatement) {
    let detached = statement.is_detached().then_some(b"payload".as_slice());
    assert!(statement.sig_structure(detached).is_ok());
    let key = PublicKey::from_did_key(KEY).expect("the key is one");
    assert!(statement.verify_with(&key, detached).is_err(), "nobody has signed with this key");
    let _ = (statement.header().require_scitt(), statement.check_detached(b"payload"));
    statement
        .header()
        .labels()
        .for_each(|label| assert!(statement.header().get(label).is_some(), "{label:?}"));
    statement.receipts().iter().for_each(|bytes| {
        receipt(bytes);
    });
}

/// A receipt is its bytes, its proofs are within their trees, and it proves nothing that was not signed.
pub fn receipt(input: &[u8]) -> Verdict {
    match Receipt::parse(input.to_vec()) {
        Err(ReceiptError::Malformed(malformed)) => points_into(input, &malformed),
        Err(ReceiptError::UnsupportedStructure(_)) => Refused,
        Ok(receipt) => {
            assert_eq!(receipt.bytes(), input, "a receipt is kept as it came");
            proves_only_what_is_signed(&receipt);
            Accepted
        }
    }
}

fn proves_only_what_is_signed(receipt: &Receipt) {
    let key = PublicKey::from_did_key(KEY).expect("the key is one");
    let leaf = LeafHash::from_bytes([7; 32]);
    for proof in receipt.inclusion_proofs() {
        assert!(proof.tree_size.holds(proof.leaf_index));
        assert!(receipt.signed_tree_size().is_none_or(|signed| signed == proof.tree_size));
    }
    for proof in receipt.consistency_proofs() {
        assert!(proof.older < proof.newer);
        let root = merkle::RootHash::from_bytes([7; 32]);
        assert!(receipt.verify_consistency(proof.older, &root, &key).is_err());
    }
    for proof in receipt.ledger_proofs() {
        assert!(!proof.path.is_empty());
        assert!(receipt.verify_root(&proof.root(), &key).is_err());
    }
    assert!(receipt.verify_inclusion(&leaf, &key).is_err(), "nobody has signed with this key");
}

/// Problem details from anybody can be passed on: what we write, we read, and write the same way.
pub fn problem(input: &[u8]) -> Verdict {
    let problem = match Problem::parse(input) {
        Err(problem::NotAProblem::Cbor(error)) => return points(input, error.offset),
        Err(_) => return Refused,
        Ok(problem) => problem,
    };
    let written = problem.encode();
    let again = Problem::parse(&written).expect("what we write, we read");
    assert_eq!(again.encode(), written, "writing is stable");
    let _ = (problem.to_string(), problem.get_code(), problem.get_offset(), problem.get_rule());
    Accepted
}

/// An item fills its input, and its deterministic encoding means the same.
pub fn cbor(input: &[u8]) -> Verdict {
    let item = match scitt::cbor::parse(input, CBOR_LIMITS) {
        Err(error) => return points(input, error.offset),
        Ok(item) => item,
    };
    assert_eq!(item.span(), 0..input.len());
    let written = item.value.encode();
    let again = scitt::cbor::parse(&written, CBOR_LIMITS).expect("what we write, we read");
    assert_eq!(again.value.encode(), written, "writing is stable");
    Accepted
}

/// Strict JSON is JSON: others read the same value in it, and its canonical form is canonical.
pub fn json(input: &[u8]) -> Verdict {
    let _ = jose::jwk::PublicJwk::parse(input);
    let value = match json::parse_strict(input, json::Limits::default()) {
        Err(error) => return points(input, error.offset),
        Ok(value) => value,
    };
    assert_eq!(serde_json::from_slice(input).ok().as_ref(), Some(&value), "others read another value");
    let canonical = jcs::canonical(&value);
    assert!(jcs::is_canonical(&canonical), "{}", String::from_utf8_lossy(&canonical));
    Accepted
}

/// A note is its bytes, and so are the checkpoint in it, a proof or a request to a witness around it; a policy says the same
/// when it is written out.
pub fn note(input: &[u8]) -> Verdict {
    if let Ok(request) = AddCheckpoint::parse(input) {
        assert_eq!(request.to_string().as_bytes(), input, "a request is written as it was read");
        return Accepted;
    }
    let text = std::str::from_utf8(input).unwrap_or_default();
    checkpoint(text);
    if let Ok(proof) = text.parse::<TlogProof>() {
        assert_eq!(proof.to_string().as_bytes(), input, "a proof is written as it was read");
        return Accepted;
    }
    if let Ok(policy) = text.parse::<WitnessPolicy>() {
        assert_eq!(policy.to_string().parse(), Ok(policy), "a policy is the same when it is written");
        return Accepted;
    }
    let Ok(note) = Note::parse(input) else { return Refused };
    assert_eq!(note.to_string().as_bytes(), input, "a note is written as it was read");
    checkpoint(note.text());
    Accepted
}

fn checkpoint(text: &str) {
    if let Ok(checkpoint) = Checkpoint::parse_text(text) {
        assert_eq!(checkpoint.text(), text, "a checkpoint is written as it was read");
    }
}

/// A statement of a content type that is understood says the same each time it is read, and is found under a bounded
/// number of values; a refusal names its rule.
pub fn record(input: &[u8]) -> Verdict {
    let statement = match SignedStatement::parse(input.to_vec()) {
        Err(malformed) => return points_into(input, &malformed),
        Ok(statement) => statement,
    };
    read_as(statement.header(), statement.payload().unwrap_or_default())
}

/// The same for a payload alone, as whatever it may claim to be.
pub fn payload(input: &[u8]) -> Verdict {
    let verdicts: Vec<Verdict> = HEADERS.iter().map(|claimed| read_as(claimed.header(), input)).collect();
    if verdicts.contains(&Accepted) { Accepted } else { Refused }
}

fn read_as(header: &Header, payload: &[u8]) -> Verdict {
    let found = SearchValues::read(header, Some(payload));
    assert!(found.lookups.len() <= MAX_LOOKUPS);
    assert!(found.lookups.iter().all(|lookup| lookup.value.len() <= MAX_LOOKUP_VALUE));
    match Record::of(header, payload) {
        Err(violation) => {
            assert!(!violation.rule.as_str().is_empty() && violation.to_string().chars().count() < MOST_TOLD);
            Refused
        }
        Ok(record) => {
            assert_eq!(SearchValues::of_record(header, &record, Some(payload)), found);
            let again = Record::of(header, payload).expect("what was read once can be read again");
            assert_eq!(again.document(), record.document());
            Accepted
        }
    }
}

/// A statement of each content type whose payload may be JSON: only its header counts.
static HEADERS: LazyLock<Vec<SignedStatement>> = LazyLock::new(|| {
    let key = SigningKey::generate(Algorithm::EdDsa).expect("a key");
    let types = [
        "application/vrf+json",
        "application/aer+json",
        "application/agentroa-chain+json",
        "application/agent-conversation",
        "application/vap-verdict+json",
        "application/vap-audit+json",
        "application/jwk-set+json",
        "application/vnd.tabellion.policy+json",
        "application/vnd.tabellion.erasure+json",
    ];
    let claimed = |name: &&str| {
        let builder =
            StatementBuilder::new("{}").content_type(*name).kid("k").iss("https://issuer.example").sub("s");
        builder.sign(&key).expect("a statement")
    };
    types.iter().map(claimed).collect()
});

/// Characters that a refusal may take: its rule, its place and what was found are each cut at a bound.
const MOST_TOLD: usize = 1536;
/// Where receipts are attached; who signs this label has none attached.
const RECEIPTS: i64 = 394;
/// An Ed25519 key that nobody signs hostile input with.
const KEY: &str = "did:key:z6MktwupdmLXVVqTzCw4i46r4uGyosGXRnR3XjN4Zq7oMMsw";
const CBOR_LIMITS: scitt::cbor::Limits = scitt::cbor::Limits { depth: 16, items: 4096 };

fn points_into(input: &[u8], malformed: &Malformed) -> Verdict {
    let _ = malformed.to_string();
    points(input, malformed.offset)
}

fn points(input: &[u8], offset: usize) -> Verdict {
    assert!(offset <= input.len(), "offset {offset} in {} bytes", input.len());
    Refused
}

/// A condition says where it is wrong, and answers the same twice, unless time runs out.
pub fn condition(input: &[u8]) -> Verdict {
    let Ok(text) = std::str::from_utf8(input) else { return Refused };
    match Expression::compile(text) {
        Err(mistake) => {
            let lines = text.split('\n').count();
            assert!((1..=lines).contains(&mistake.line) && mistake.column > 0 && !mistake.why.is_empty());
            Refused
        }
        Ok(condition) => {
            let document = serde_json::json!({"size": 3, "record": {"runs": [1, 2, 3], "verdict": "fail"}});
            let answers = [condition.evaluate(&document), condition.evaluate(&document)];
            assert!(answers[0] == answers[1] || answers.contains(&Err(EvalError::TimedOut)), "{answers:?}");
            Accepted
        }
    }
}
