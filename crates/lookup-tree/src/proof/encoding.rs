//! Encoding of run proofs: deterministic CBOR (RFC 8949, 4.2.1).
//!
//! ```text
//! part   = hidden / bucket / whole / inner
//! hidden = bytes .size 32                ; hash of the subtree
//! bucket = [0, bytes]                    ; postings of 24 bytes each
//! whole  = [1, bytes]                    ; groups: key, number of leaves, differences of leaves from leaf 0 on
//! inner  = [depth, prefix, left: part, right: part]
//! prefix = bytes                         ; as many as hold `depth` bits, with zero bits at the end
//! ```

use merkle::{Hash, LeafIndex};
use scitt::cbor::{self, Item, ItemWriter, Value};

use super::part::{ProofPart, RunProof};
use crate::group::{GroupEncoder, GroupError, GroupReader};
use crate::limits::{MAX_RUN_PROOF_BYTES, MAX_RUN_PROOF_DEPTH, MAX_RUN_PROOF_ITEMS};
use crate::posting::{POSTING_BYTES, Posting};
use crate::prefix::{POSTING_BITS, PostingPrefix};

const BUCKET: u64 = 0;
const WHOLE: u64 = 1;
/// The leaf from which the differences in a whole subtree are counted.
const BASE: LeafIndex = LeafIndex::new(0);

/// Error: bytes that are not a run proof.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum RunProofError {
    /// More than [`MAX_RUN_PROOF_BYTES`].
    #[error("a run proof of {0} bytes: at most {MAX_RUN_PROOF_BYTES} are read")]
    TooLong(usize),
    /// Not one CBOR item.
    #[error("not CBOR: {0}")]
    Cbor(#[from] cbor::Error),
    /// CBOR of another form.
    #[error("not a part of a run proof at byte {0}")]
    Form(usize),
    /// A whole subtree that cannot be read.
    #[error("the whole subtree at byte {at} cannot be read: {why}")]
    Whole {
        /// Offset of the subtree.
        at: usize,
        /// Why it cannot be read.
        why: GroupError,
    },
    /// Not the deterministic encoding.
    #[error("not the deterministic encoding of a run proof")]
    NotDeterministic,
}

impl RunProof {
    /// Returns the deterministic encoding. The postings of a whole subtree must be in order.
    pub fn encode(&self) -> Vec<u8> {
        let mut writer = ItemWriter::new();
        write(&self.tree, &mut writer);
        writer.into_bytes()
    }

    /// Reads the output of [`encode`](Self::encode), and nothing else.
    pub fn decode(bytes: &[u8]) -> Result<Self, RunProofError> {
        if bytes.len() > MAX_RUN_PROOF_BYTES {
            return Err(RunProofError::TooLong(bytes.len()));
        }
        let limits = cbor::Limits { depth: MAX_RUN_PROOF_DEPTH, items: MAX_RUN_PROOF_ITEMS };
        let proof = Self { tree: read(&cbor::parse(bytes, limits)?)? };
        match proof.encode() == bytes {
            true => Ok(proof),
            false => Err(RunProofError::NotDeterministic),
        }
    }
}

fn write(part: &ProofPart, writer: &mut ItemWriter) {
    match part {
        ProofPart::Hidden(hash) => {
            writer.bytes(hash.as_bytes());
        }
        ProofPart::Bucket(postings) => {
            let postings: Vec<u8> = postings.iter().flat_map(|posting| posting.to_bytes()).collect();
            writer.array(2).unsigned(BUCKET).bytes(&postings);
        }
        ProofPart::Whole(postings) => {
            let mut encoder = GroupEncoder::new(BASE);
            postings.iter().for_each(|posting| encoder.push(*posting));
            writer.array(2).unsigned(WHOLE).bytes(&encoder.finish());
        }
        ProofPart::Inner { prefix, left, right } => {
            let bytes = &prefix.first().to_bytes()[..prefix_length(prefix.depth())];
            writer.array(4).unsigned(prefix.depth().into()).bytes(bytes);
            write(left, writer);
            write(right, writer);
        }
    }
}

fn read(item: &Item<'_>) -> Result<ProofPart, RunProofError> {
    let form = RunProofError::Form(item.offset);
    match &item.value {
        Value::Bytes(hash) => read_hidden(hash).ok_or(form),
        Value::Array(elements) => match elements.as_slice() {
            [kind, bytes] => read_list(item.offset, kind, bytes),
            [depth, prefix, left, right] => Ok(ProofPart::Inner {
                prefix: read_prefix(depth, prefix).ok_or(form)?,
                left: Box::new(read(left)?),
                right: Box::new(read(right)?),
            }),
            _ => Err(form),
        },
        _ => Err(form),
    }
}

fn read_hidden(hash: &[u8]) -> Option<ProofPart> {
    hash.try_into().ok().map(|hash| ProofPart::Hidden(Hash::from_bytes(hash)))
}

fn read_list(at: usize, kind: &Item<'_>, bytes: &Item<'_>) -> Result<ProofPart, RunProofError> {
    let form = RunProofError::Form(at);
    match (kind.value.as_u64(), bytes.value.as_bytes()) {
        (Some(BUCKET), Some(bytes)) => {
            let (postings, rest) = bytes.as_chunks::<POSTING_BYTES>();
            let postings = postings.iter().map(Posting::from_bytes).collect();
            if rest.is_empty() { Ok(ProofPart::Bucket(postings)) } else { Err(form) }
        }
        (Some(WHOLE), Some(bytes)) => {
            let postings = GroupReader::new(bytes, BASE).collect::<Result<_, _>>();
            postings.map(ProofPart::Whole).map_err(|why| RunProofError::Whole { at, why })
        }
        _ => Err(form),
    }
}

/// Reads the prefix of an inner node; bits after its depth that are not zero are found by encoding it again.
fn read_prefix(depth: &Item<'_>, prefix: &Item<'_>) -> Option<PostingPrefix> {
    let depth = depth.value.as_u64().and_then(|depth| u8::try_from(depth).ok())?;
    let given = prefix.value.as_bytes()?;
    if depth > POSTING_BITS || given.len() != prefix_length(depth) {
        return None;
    }
    let mut first = [0; POSTING_BYTES];
    first[..given.len()].copy_from_slice(given);
    Some(PostingPrefix::of(Posting::from_bytes(&first), depth))
}

/// The number of bytes that hold this many bits.
fn prefix_length(depth: u8) -> usize {
    usize::from(depth.div_ceil(8))
}
