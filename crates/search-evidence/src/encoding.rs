//! The encoding of a file with an answer, in deterministic CBOR (RFC 8949, 4.2.1).
//!
//! ```text
//! answer   = ["search-answer", question, [* search-proof], [* erased], bundle, [* attestation]]
//! question = [[+ term], from, to / null]
//! term     = [kind, value]
//! erased   = [leaf, entry, [* hash]]
//! ```
//!
//! A `search-proof` is a byte string with the encoding of [`SearchProof`], `bundle` one with an evidence bundle. Values,
//! entries and hashes are byte strings, attestations are texts, and the other members are numbers.

use bundle::{EvidenceBundle, MalformedBundle};
use merkle::{EntryDigest, Hash, LeafIndex};
use scitt::cbor::{self, Item, Value};
use verifier::index::{IndexFileError, SearchProof, SearchTerm};

use crate::answer::{ErasedEntry, SearchAnswer, SearchQuestion};
use crate::limits::{MAX_ANSWER_BYTES, MAX_DEPTH, MAX_ITEMS};

/// The first member of the file.
const NAME: &str = "search-answer";
/// The first bytes of every file: an array of six, and its first member.
const START: &[u8] = b"\x86\x6dsearch-answer";

/// Error of [`SearchAnswer::decode`].
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum MalformedAnswer {
    /// The file is too long.
    #[error("{0} bytes: at most {MAX_ANSWER_BYTES} are read")]
    TooLong(usize),
    /// Not one CBOR item.
    #[error("not CBOR: {0}")]
    Cbor(#[from] cbor::Error),
    /// CBOR of another form.
    #[error("the {0} is missing or of another form")]
    Form(&'static str),
    /// A search proof cannot be read.
    #[error("search proof {number}: {why}")]
    Page {
        /// Number of the proof, from 0.
        number: usize,
        /// Why it cannot be read.
        why: IndexFileError,
    },
    /// The evidence bundle cannot be read.
    #[error("the bundle: {0}")]
    Bundle(#[from] MalformedBundle),
    /// Not the deterministic encoding.
    #[error("not the deterministic encoding")]
    NotDeterministic,
}

/// Returns `true` if the bytes begin like a file with an answer, so that damage to them is damage to evidence.
pub fn starts_like_an_answer(bytes: &[u8]) -> bool {
    bytes.starts_with(START)
}

impl SearchAnswer {
    /// Returns the deterministic encoding.
    pub fn encode(&self) -> Vec<u8> {
        let attestations = self.attestations.iter().map(|note| Value::from(note.clone()));
        Value::array([
            NAME.into(),
            write_question(&self.question),
            Value::array(self.pages.iter().map(|page| page.encode().into())),
            Value::array(self.erased.iter().map(write_erased)),
            self.evidence.to_bytes().into(),
            Value::array(attestations),
        ])
        .encode()
    }

    /// Reads the output of [`encode`](Self::encode), and nothing else. Nothing is verified.
    pub fn decode(bytes: &[u8]) -> Result<Self, MalformedAnswer> {
        if bytes.len() > MAX_ANSWER_BYTES {
            return Err(MalformedAnswer::TooLong(bytes.len()));
        }
        let item = cbor::parse(bytes, cbor::Limits { depth: MAX_DEPTH, items: MAX_ITEMS })?;
        let answer = read_answer(&item)?;
        match answer.encode() == bytes {
            true => Ok(answer),
            false => Err(MalformedAnswer::NotDeterministic),
        }
    }
}

fn read_answer(file: &Item<'_>) -> Result<SearchAnswer, MalformedAnswer> {
    let form = MalformedAnswer::Form;
    let Some([name, question, pages, erased, bundle, attestations]) = file.value.as_array() else {
        return Err(form("list of six members"));
    };
    if name.value.as_text() != Some(NAME) {
        return Err(form("name of the format"));
    }
    Ok(SearchAnswer {
        question: read_question(question).ok_or(form("question"))?,
        pages: read_pages(pages)?,
        erased: read_list(erased, read_erased).ok_or(form("list of erased entries"))?,
        evidence: EvidenceBundle::parse(bundle.value.as_bytes().ok_or(form("bundle"))?)?,
        attestations: read_list(attestations, read_text).ok_or(form("list of attestations"))?,
    })
}

fn write_question(question: &SearchQuestion) -> Value<'static> {
    let terms = Value::array(question.terms.iter().map(SearchTerm::to_cbor));
    let to = question.to.map_or(Value::Null, |to| to.get().into());
    Value::array([terms, question.from.get().into(), to])
}

fn read_question(question: &Item<'_>) -> Option<SearchQuestion> {
    let [terms, from, to] = question.value.as_array()? else { return None };
    let terms = read_list(terms, SearchTerm::from_cbor).filter(|terms| !terms.is_empty())?;
    let to = match to.value {
        Value::Null => None,
        _ => Some(LeafIndex::new(to.value.as_u64()?)),
    };
    Some(SearchQuestion { terms, from: LeafIndex::new(from.value.as_u64()?), to })
}

fn read_pages(pages: &Item<'_>) -> Result<Vec<SearchProof>, MalformedAnswer> {
    let form = MalformedAnswer::Form("list of search proofs");
    let read = |(number, page): (usize, &Item<'_>)| {
        let bytes = page.value.as_bytes().ok_or(form.clone())?;
        SearchProof::decode(bytes).map_err(|why| MalformedAnswer::Page { number, why })
    };
    pages.value.as_array().ok_or(form.clone())?.iter().enumerate().map(read).collect()
}

fn write_erased(erased: &ErasedEntry) -> Value<'static> {
    let path = erased.path.iter().map(|hash| hash.as_bytes().to_vec().into());
    Value::array([erased.leaf.get().into(), erased.entry.as_bytes().to_vec().into(), Value::array(path)])
}

fn read_erased(erased: &Item<'_>) -> Option<ErasedEntry> {
    let [leaf, entry, path] = erased.value.as_array()? else { return None };
    Some(ErasedEntry {
        leaf: LeafIndex::new(leaf.value.as_u64()?),
        entry: EntryDigest::from_bytes(read_hash(entry)?),
        path: read_list(path, |hash| read_hash(hash).map(Hash::from_bytes))?,
    })
}

fn read_list<T>(list: &Item<'_>, read: impl Fn(&Item<'_>) -> Option<T>) -> Option<Vec<T>> {
    list.value.as_array()?.iter().map(read).collect()
}

fn read_text(text: &Item<'_>) -> Option<String> {
    text.value.as_text().map(str::to_owned)
}

fn read_hash(hash: &Item<'_>) -> Option<[u8; 32]> {
    hash.value.as_bytes()?.try_into().ok()
}
