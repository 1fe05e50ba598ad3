//! Files of search proofs and accusations, in deterministic CBOR (RFC 8949, 4.2.1).
//!
//! ```text
//! search-proof = [head, [* term], [start, end], [* [level, number, run-proof]]]
//! file         = ["index-accusation", policy, accusation]
//! accusation   = ["index-omits" / "index-adds", head, leaf, statement, payload / null, [* hash], term, run-proof]
//!              / ["index-form", "runs", head]
//!              / ["index-form", "horizon", head, head]
//!              / ["index-form", "log-root", head, hash, [* hash]]
//!              / ["index-form", "two-heads", head, head]
//! head, policy = [statement, receipt]
//! term         = [kind, value]
//! ```
//!
//! Statements, receipts, payloads, values, hashes and run proofs are byte strings; the other members are numbers.

use std::collections::BTreeMap;

use lookup_tree::{LeafRange, RunId};
use merkle::{Hash, LeafIndex, RootHash};
use scitt::cbor::{self, Item, Value};

use super::accusation::{
    IndexAccusation, IndexAccusationFile, IndexFormFault, IndexPolicyEvidence, PostingEvidence,
};
use super::head::IndexHeadEvidence;
use super::search::{SearchProof, SearchTerm};

/// Maximum length in bytes of a file.
const MAX_FILE_BYTES: usize = 64 << 20;
/// Maximum nesting of a file.
const MAX_DEPTH: usize = 4;
/// The first member of a file with an accusation.
const ACCUSATION_FILE: &str = "index-accusation";
/// The first bytes of every file with an accusation: an array of three, and its first member.
const ACCUSATION_START: &[u8] = b"\x83\x70index-accusation";
/// Maximum number of CBOR items in a file.
const MAX_ITEMS: usize = 1 << 14;

/// Error: bytes that are not such a file.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum IndexFileError {
    /// The file is too long.
    #[error("{0} bytes: at most {MAX_FILE_BYTES} are read")]
    TooLong(usize),
    /// Not one CBOR item.
    #[error("not CBOR: {0}")]
    Cbor(#[from] cbor::Error),
    /// CBOR of another form.
    #[error("not {0}")]
    Form(&'static str),
    /// Not the deterministic encoding.
    #[error("not the deterministic encoding")]
    NotDeterministic,
}

impl SearchProof {
    /// Returns the deterministic encoding.
    pub fn encode(&self) -> Vec<u8> {
        let run = |(run, proof): (&RunId, &Vec<u8>)| {
            Value::array([Value::from(u64::from(run.level)), run.number.into(), proof.clone().into()])
        };
        let leaves = [self.leaves.start, self.leaves.end].map(|leaf| leaf.get().into());
        let terms = Value::array(self.terms.iter().map(SearchTerm::to_cbor));
        let proofs = Value::array(self.proofs.iter().map(run));
        Value::array([write_head(&self.head), terms, Value::array(leaves), proofs]).encode()
    }

    /// Reads the output of [`encode`](Self::encode), and nothing else.
    pub fn decode(bytes: &[u8]) -> Result<Self, IndexFileError> {
        let search = read_file(bytes, "a search proof", read_search)?;
        match search.encode() == bytes {
            true => Ok(search),
            false => Err(IndexFileError::NotDeterministic),
        }
    }
}

impl IndexAccusation {
    /// Returns the deterministic encoding.
    pub fn encode(&self) -> Vec<u8> {
        write_accusation(self).encode()
    }

    /// Reads the output of [`encode`](Self::encode), and nothing else.
    pub fn decode(bytes: &[u8]) -> Result<Self, IndexFileError> {
        let accusation = read_file(bytes, "an accusation against an index", read_accusation)?;
        match accusation.encode() == bytes {
            true => Ok(accusation),
            false => Err(IndexFileError::NotDeterministic),
        }
    }
}

impl IndexAccusationFile {
    /// Returns `true` if the bytes begin like a file with an accusation, so that damage to them is damage to evidence.
    pub fn is_start_of(bytes: &[u8]) -> bool {
        bytes.starts_with(ACCUSATION_START)
    }

    /// Returns the deterministic encoding.
    pub fn encode(&self) -> Vec<u8> {
        let policy = write_registered(&self.policy.statement, &self.policy.receipt);
        Value::array([ACCUSATION_FILE.into(), policy, write_accusation(&self.accusation)]).encode()
    }

    /// Reads the output of [`encode`](Self::encode), and nothing else.
    pub fn decode(bytes: &[u8]) -> Result<Self, IndexFileError> {
        let file = read_file(bytes, "a file with an accusation against an index", read_accusation_file)?;
        match file.encode() == bytes {
            true => Ok(file),
            false => Err(IndexFileError::NotDeterministic),
        }
    }
}

fn read_file<T>(
    bytes: &[u8],
    name: &'static str,
    read: impl FnOnce(&[Item<'_>]) -> Option<T>,
) -> Result<T, IndexFileError> {
    if bytes.len() > MAX_FILE_BYTES {
        return Err(IndexFileError::TooLong(bytes.len()));
    }
    let item = cbor::parse(bytes, cbor::Limits { depth: MAX_DEPTH, items: MAX_ITEMS })?;
    item.value.as_array().and_then(read).ok_or(IndexFileError::Form(name))
}

fn read_search(members: &[Item<'_>]) -> Option<SearchProof> {
    let [head, terms, leaves, proofs] = members else { return None };
    let [start, end] = leaves.value.as_array()? else { return None };
    let run = |run: &Item<'_>| {
        let [level, number, proof] = run.value.as_array()? else { return None };
        let id = RunId { level: u8::try_from(level.value.as_u64()?).ok()?, number: number.value.as_u64()? };
        Some((id, read_bytes(proof)?))
    };
    Some(SearchProof {
        head: read_head(head)?,
        terms: terms.value.as_array()?.iter().map(SearchTerm::from_cbor).collect::<Option<_>>()?,
        leaves: LeafRange::new(start.value.as_u64()?, end.value.as_u64()?),
        proofs: proofs.value.as_array()?.iter().map(run).collect::<Option<BTreeMap<_, _>>>()?,
    })
}

fn read_accusation_file(members: &[Item<'_>]) -> Option<IndexAccusationFile> {
    let [name, policy, accusation] = members else { return None };
    let (statement, receipt) = read_registered(policy)?;
    let accusation = accusation.value.as_array().and_then(read_accusation)?;
    let policy = IndexPolicyEvidence { statement, receipt };
    (name.value.as_text()? == ACCUSATION_FILE).then_some(IndexAccusationFile { policy, accusation })
}

fn write_accusation(accusation: &IndexAccusation) -> Value<'static> {
    let members = match accusation {
        IndexAccusation::Omits(evidence) | IndexAccusation::Adds(evidence) => write_evidence(evidence),
        IndexAccusation::Form(fault) => write_fault(fault),
    };
    Value::array([Value::from(accusation.kind())].into_iter().chain(members))
}

fn read_accusation(members: &[Item<'_>]) -> Option<IndexAccusation> {
    let (kind, members) = members.split_first()?;
    match kind.value.as_text()? {
        "index-omits" => read_evidence(members).map(IndexAccusation::Omits),
        "index-adds" => read_evidence(members).map(IndexAccusation::Adds),
        "index-form" => read_fault(members).map(IndexAccusation::Form),
        _ => None,
    }
}

fn write_evidence(evidence: &PostingEvidence) -> Vec<Value<'static>> {
    vec![
        write_head(&evidence.head),
        evidence.leaf.get().into(),
        evidence.statement.clone().into(),
        evidence.payload.clone().map_or(Value::Null, Value::from),
        write_path(&evidence.path),
        evidence.term.to_cbor(),
        evidence.proof.clone().into(),
    ]
}

fn read_evidence(members: &[Item<'_>]) -> Option<PostingEvidence> {
    let [head, leaf, statement, payload, path, term, proof] = members else { return None };
    Some(PostingEvidence {
        head: read_head(head)?,
        leaf: LeafIndex::new(leaf.value.as_u64()?),
        statement: read_bytes(statement)?,
        payload: match payload.value {
            Value::Null => None,
            _ => Some(read_bytes(payload)?),
        },
        path: read_path(path)?,
        term: SearchTerm::from_cbor(term)?,
        proof: read_bytes(proof)?,
    })
}

fn write_fault(fault: &IndexFormFault) -> Vec<Value<'static>> {
    match fault {
        IndexFormFault::WrongRuns(head) => vec!["runs".into(), write_head(head)],
        IndexFormFault::HorizonBack { earlier, later } => {
            vec!["horizon".into(), write_head(earlier), write_head(later)]
        }
        IndexFormFault::OtherLogRoot { head, root, path } => {
            vec!["log-root".into(), write_head(head), root.as_bytes().to_vec().into(), write_path(path)]
        }
        IndexFormFault::TwoHeads(one, other) => vec!["two-heads".into(), write_head(one), write_head(other)],
    }
}

fn read_fault(members: &[Item<'_>]) -> Option<IndexFormFault> {
    let (rule, members) = members.split_first()?;
    match (rule.value.as_text()?, members) {
        ("runs", [head]) => Some(IndexFormFault::WrongRuns(read_head(head)?)),
        ("horizon", [earlier, later]) => {
            Some(IndexFormFault::HorizonBack { earlier: read_head(earlier)?, later: read_head(later)? })
        }
        ("log-root", [head, root, path]) => Some(IndexFormFault::OtherLogRoot {
            head: read_head(head)?,
            root: RootHash::from_bytes(read_hash(root)?),
            path: read_path(path)?,
        }),
        ("two-heads", [one, other]) => Some(IndexFormFault::TwoHeads(read_head(one)?, read_head(other)?)),
        _ => None,
    }
}

fn write_head(head: &IndexHeadEvidence) -> Value<'static> {
    write_registered(&head.statement, &head.receipt)
}

fn read_head(head: &Item<'_>) -> Option<IndexHeadEvidence> {
    let (statement, receipt) = read_registered(head)?;
    Some(IndexHeadEvidence { statement, receipt })
}

fn write_registered(statement: &[u8], receipt: &[u8]) -> Value<'static> {
    Value::array([statement.to_vec().into(), receipt.to_vec().into()])
}

fn read_registered(registered: &Item<'_>) -> Option<(Vec<u8>, Vec<u8>)> {
    let [statement, receipt] = registered.value.as_array()? else { return None };
    Some((read_bytes(statement)?, read_bytes(receipt)?))
}

impl SearchTerm {
    /// Returns the term as a member of a file.
    pub fn to_cbor(&self) -> Value<'static> {
        Value::array([u64::from(self.kind).into(), self.value.clone().into()])
    }

    /// Reads the output of [`to_cbor`](Self::to_cbor); `None` for another item.
    pub fn from_cbor(term: &Item<'_>) -> Option<Self> {
        let [kind, value] = term.value.as_array()? else { return None };
        Some(Self { kind: u8::try_from(kind.value.as_u64()?).ok()?, value: read_bytes(value)? })
    }
}

fn write_path(path: &[Hash]) -> Value<'static> {
    Value::array(path.iter().map(|hash| hash.as_bytes().to_vec().into()))
}

fn read_path(path: &Item<'_>) -> Option<Vec<Hash>> {
    path.value.as_array()?.iter().map(|hash| read_hash(hash).map(Hash::from_bytes)).collect()
}

fn read_hash(hash: &Item<'_>) -> Option<[u8; 32]> {
    hash.value.as_bytes()?.try_into().ok()
}

fn read_bytes(bytes: &Item<'_>) -> Option<Vec<u8>> {
    bytes.value.as_bytes().map(<[u8]>::to_vec)
}
