//! Postings for the tests, and a plain implementation of the tree to compare with.

use lookup_tree::{Posting, ProofPart, TermKey};
use merkle::{Hash, LeafIndex};
use sha2::{Digest, Sha256};

/// The kind of the terms in tests: an agent.
pub const AGENT: u8 = 4;

pub fn agent(number: u64) -> TermKey {
    TermKey::of(AGENT, format!("agent-{number}").as_bytes())
}

pub fn posting(key: TermKey, leaf: u64) -> Posting {
    Posting { key, leaf: LeafIndex::new(leaf) }
}

/// Leaves from `start` on with one agent each, in turn.
pub fn agents_in_turn(start: u64, leaves: u64, agents: u64) -> Vec<Posting> {
    let mut postings: Vec<_> =
        (start..start + leaves).map(|leaf| posting(agent(leaf % agents), leaf)).collect();
    postings.sort_unstable();
    postings
}

/// The root as the definition says it: postings as text of bits, without streams and stacks.
pub fn root_by_definition(postings: &[Posting]) -> [u8; 32] {
    if postings.len() <= 16 {
        return bucket_by_definition(postings);
    }
    let texts: Vec<String> = postings.iter().map(bits).collect();
    let differs = |at: &usize| texts.iter().any(|text| text[*at..=*at] != texts[0][*at..=*at]);
    let depth = (0..192).find(differs).unwrap();
    let side = |bit: &str| -> Vec<Posting> {
        postings.iter().filter(|posting| &bits(posting)[depth..=depth] == bit).copied().collect()
    };
    let prefix = format!("{}{}", &texts[0][..depth], "0".repeat(192 - depth));
    let byte = |at: usize| u8::from_str_radix(&prefix[8 * at..8 * at + 8], 2).unwrap();
    let prefix: Vec<u8> = (0..24).map(byte).collect();
    let (left, right) = (root_by_definition(&side("0")), root_by_definition(&side("1")));
    sha256(&[&[3, depth as u8], &prefix, &left, &right])
}

fn bucket_by_definition(postings: &[Posting]) -> [u8; 32] {
    let bytes: Vec<u8> = postings.iter().flat_map(|posting| posting.to_bytes()).collect();
    sha256(&[&[2], &(postings.len() as u16).to_be_bytes(), &bytes])
}

fn sha256(parts: &[&[u8]]) -> [u8; 32] {
    Sha256::digest(parts.concat()).into()
}

fn bits(posting: &Posting) -> String {
    posting.to_bytes().iter().map(|byte| format!("{byte:08b}")).collect()
}

/// The hash of a part of a proof, whether it is allowed or not.
pub fn hash_of_part(part: &ProofPart) -> Hash {
    match part {
        ProofPart::Hidden(hash) => *hash,
        ProofPart::Bucket(postings) => Hash::from_bytes(bucket_by_definition(postings)),
        ProofPart::Whole(postings) => Hash::from_bytes(root_by_definition(postings)),
        ProofPart::Inner { prefix, left, right } => {
            let (left, right) = (hash_of_part(left), hash_of_part(right));
            let prefix_bytes = prefix.first().to_bytes();
            let parts = [&[3, prefix.depth()][..], &prefix_bytes, left.as_bytes(), right.as_bytes()];
            Hash::from_bytes(sha256(&parts))
        }
    }
}
