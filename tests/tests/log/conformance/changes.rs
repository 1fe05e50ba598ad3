//! What a proxy changes in an answer of our service.

use black_box::Answer;
use scitt::cbor::{ItemWriter, Limits, Value, parse};
use scitt::limits::{HEADER_DEPTH, HEADER_ITEMS};
use scitt::{CoseKey, KeySet, Problem, Receipt, SignedStatement, Signer, media};

/// A change of an answer.
#[derive(Clone, Copy)]
pub enum Change {
    /// Another status.
    Status(u16),
    /// A header field, in place of the one that is there.
    Header(&'static str, &'static str),
    /// A header field that is left out.
    NoHeader(&'static str),
    /// Another body.
    Body(&'static [u8]),
    /// Problem details with this status and title, in place of the answer.
    Refusal(u16, &'static str),
    /// Anything else. The statement is the registered one.
    Edit(fn(&mut Answer, &SignedStatement)),
}

impl Change {
    /// Changes an answer.
    pub fn apply(self, answer: &mut Answer, statement: &SignedStatement) {
        match self {
            Self::Status(status) => answer.status = status,
            Self::Header(name, value) => answer.set_header(name, Some(value)),
            Self::NoHeader(name) => answer.set_header(name, None),
            Self::Body(body) => answer.body = body.to_vec(),
            Self::Refusal(status, title) => {
                answer.status = status;
                answer.set_header("content-type", Some(media::PROBLEM));
                answer.body = Problem::new(title, "Changed by a test").encode();
            }
            Self::Edit(edit) => edit(answer, statement),
        }
    }
}

/// A symmetric COSE_Key: `{1: 4, -1: h'00'}`.
const SYMMETRIC_KEY: &[u8] = &[0xa2, 0x01, 0x04, 0x20, 0x41, 0x00];
/// Head of an array of one.
const ARRAY_OF_1: u8 = 0x81;
/// Tag of a COSE_Sign1 and head of its array.
const SIGN1: &[u8] = &[0xd2, 0x84];
/// Head of a byte string with the length of a root.
const ROOT_HEAD: &[u8] = &[0x58, 0x20];
/// Length of an encoded ES256 signature, which ends a receipt.
const SIGNATURE: usize = 66;
/// The null before it, in place of the root.
const NULL: usize = SIGNATURE + 1;
/// Labels of the proofs of a receipt, and of a consistency proof among them.
const PROOFS: i64 = 396;
const CONSISTENCY: i64 = -2;

/// Adds a secret key to a key set.
pub fn list_secret_key(answer: &mut Answer) {
    answer.body[0] += 1;
    answer.body.extend(SYMMETRIC_KEY);
}

/// Lists the key of a key set twice.
pub fn list_twice(answer: &mut Answer) {
    let keys = keys(answer);
    answer.body = KeySet::new([keys.clone(), keys].concat()).encode();
}

/// Adds a public key to a key set.
pub fn list_key(answer: &mut Answer, kid: Option<&[u8]>) {
    answer.body = KeySet::new([keys(answer), vec![other_key(kid)]].concat()).encode();
}

/// Lists a public key in place of those of a key set.
pub fn list_other_key(answer: &mut Answer, kid: &[u8]) {
    answer.body = KeySet::new(vec![other_key(Some(kid))]).encode();
}

fn other_key(kid: Option<&[u8]>) -> CoseKey {
    let key = testkit::es384().public_key().clone();
    CoseKey { kid: kid.map(<[u8]>::to_vec), ..CoseKey::bare(key) }
}

fn keys(answer: &Answer) -> Vec<CoseKey> {
    KeySet::parse(&answer.body).unwrap().keys().to_vec()
}

/// Gives a single key another `kid`.
pub fn rename_key(answer: &mut Answer) {
    let key = CoseKey::parse(&answer.body).unwrap();
    answer.body = CoseKey { kid: Some(b"other".to_vec()), ..key }.encode();
}

/// Puts the body in an array.
pub fn put_in_array(answer: &mut Answer) {
    answer.body.insert(0, ARRAY_OF_1);
}

/// Leaves the origin of `Location` out.
pub fn make_location_relative(answer: &mut Answer) {
    let location = answer.must_have("location").to_owned();
    let path = location.find("/entries/").unwrap();
    answer.set_header("location", Some(&location[path..]));
}

/// Makes the signature at the end of a receipt a wrong one.
pub fn flip_last_bit(receipt: &mut Answer) {
    *receipt.body.last_mut().unwrap() ^= 1;
}

/// Makes the signature of a receipt an empty one.
pub fn drop_signature(receipt: &mut Answer) {
    let unsigned = receipt.body.len() - SIGNATURE;
    receipt.body.truncate(unsigned);
    receipt.body.push(0x40);
}

/// Attaches the root to a receipt, whose signature remains valid.
pub fn attach_root(receipt: &mut Answer, statement: &SignedStatement) {
    let leaf = statement.digest().leaf_hash();
    let root = Receipt::parse(receipt.body.clone()).unwrap().implied_root(&leaf).unwrap();
    let null = receipt.body.len() - NULL;
    receipt.body.splice(null..=null, [ROOT_HEAD, root.as_bytes()].concat());
}

/// Puts a consistency proof in place of the inclusion proof.
pub fn prove_consistency(receipt: &mut Answer) {
    let size = Receipt::parse(receipt.body.clone()).unwrap().signed_tree_size().unwrap().get();
    let mut proof = ItemWriter::new();
    proof.array(3).unsigned(1).unsigned(size).array(1).bytes(&[0; 32]);
    let (protected, rest) = split(&receipt.body);
    let mut changed = ItemWriter::new();
    changed.raw(SIGN1).bytes(&protected).map(1).int(PROOFS).map(1).int(CONSISTENCY).array(1);
    changed.bytes(&proof.into_bytes()).raw(&rest[rest.len() - NULL..]);
    receipt.body = changed.into_bytes();
}

/// Drops an entry of the protected header, after which no signature verifies.
pub fn drop_label(receipt: &mut Answer, label: i64) {
    let (protected, rest) = split(&receipt.body);
    let parsed = parse(&protected, Limits { depth: HEADER_DEPTH, items: HEADER_ITEMS }).unwrap();
    let kept = parsed.value.as_map().unwrap().iter().filter(|(key, _)| key.value.as_i64() != Some(label));
    let kept = Value::map(kept.map(|(key, value)| (key.value.clone(), value.value.clone()))).encode();
    let mut changed = ItemWriter::new();
    changed.raw(SIGN1).bytes(&kept).raw(rest);
    receipt.body = changed.into_bytes();
}

/// Returns the protected header of a receipt, and what comes after it.
fn split(receipt: &[u8]) -> (Vec<u8>, &[u8]) {
    let protected = Receipt::parse(receipt.to_vec()).unwrap().header().bytes().to_vec();
    let start = receipt.windows(protected.len()).position(|window| window == protected).unwrap();
    (protected.clone(), &receipt[start + protected.len()..])
}
