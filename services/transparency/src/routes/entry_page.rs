//! A page of entries as JSON, with the proof that it is complete.

use lookup_tree::BlindCode;
use serde::Serialize;
use store::lookup::BlindLeaf;
use utoipa::ToSchema;

use crate::view::entry_view::EntryView;

/// A page of entries.
#[derive(Debug, Serialize, ToSchema)]
pub struct Entries {
    /// In the order of their leaves, or in the reverse one with `order=newest`.
    pub entries: Vec<EntryView>,
    /// Of a search: entries of this tree were searched. Later ones are found in a moment.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub indexed_to: Option<u64>,
    /// Of a search: entries in the leaves of the page that may match, since they were erased or cannot be read.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub blind: Vec<BlindEntry>,
    /// Whether there may be more of them. Never with a proof.
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    pub more_blind: bool,
    /// With `proof=1`: the proof that the page has all entries of its leaves that match.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub proof: Option<PageProof>,
}

/// An entry that may match any search.
#[derive(Debug, Serialize, ToSchema)]
pub struct BlindEntry {
    /// The leaf.
    pub leaf: u64,
    /// `erased`; `unreadable`: its form is broken, or the log does not serve its payload; or `too-many-terms`.
    pub why: &'static str,
}

/// The proof of a page, under a head of the search index.
#[derive(Debug, Serialize, ToSchema)]
pub struct PageProof {
    /// Number of leaves that the head commits to. Later entries are on no page with a proof.
    pub size: u64,
    /// The leaves of the page.
    pub leaves: PageLeaves,
    /// The entry ID of the head's statement.
    pub head_entry: String,
    /// Base64 of the file with the head's statement, its receipt and the proofs (docs/search-index.md).
    pub file: String,
}

/// A range of leaves.
#[derive(Debug, Serialize, ToSchema)]
pub struct PageLeaves {
    /// The first leaf.
    pub from: u64,
    /// The leaf after the last one.
    pub to: u64,
}

impl BlindEntry {
    /// Lists entries that may match.
    pub fn list(blind: &[BlindLeaf]) -> Vec<Self> {
        blind.iter().map(|(leaf, code)| Self { leaf: leaf.get(), why: why_blind(*code) }).collect()
    }
}

fn why_blind(code: BlindCode) -> &'static str {
    match code {
        BlindCode::Erased => "erased",
        BlindCode::Unreadable => "unreadable",
        BlindCode::TooManyTerms => "too-many-terms",
    }
}

impl Entries {
    /// A page of a list, or of a search of a tree of `indexed_to` entries.
    pub fn of(entries: Vec<EntryView>, indexed_to: Option<u64>) -> Self {
        Self { entries, indexed_to, blind: Vec::new(), more_blind: false, proof: None }
    }
}
