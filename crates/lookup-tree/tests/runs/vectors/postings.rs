//! Postings and runs in the sources.

use std::collections::BTreeSet;

use data_encoding::HEXLOWER;
use lookup_tree::{BlindCode, Posting, RunSummary, erase};
use merkle::LeafIndex;
use serde::{Deserialize, Serialize};

use super::unhex;
use crate::support::agents_in_turn;

/// The postings of a run, in any order.
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
pub struct RunSource {
    postings: Vec<PostingSource>,
    /// Leaves that are erased.
    #[serde(default)]
    erased: BTreeSet<u64>,
}

/// One posting, or one for each leaf of a range.
#[derive(Serialize, Deserialize)]
#[serde(untagged, deny_unknown_fields)]
pub enum PostingSource {
    /// The 24 bytes in hexadecimal.
    Bytes(String),
    /// So many agents in turn: leaf i has number i modulo `agents`.
    Agents { agents: u64, leaves: (u64, u64) },
    /// The number of a blind code.
    Blind { blind: u8, leaves: (u64, u64) },
}

impl RunSource {
    /// Returns the postings in order.
    pub fn postings(&self) -> Vec<Posting> {
        let postings: BTreeSet<Posting> = self.postings.iter().flat_map(PostingSource::postings).collect();
        let erased = self.erased.iter().map(|leaf| LeafIndex::new(*leaf)).collect();
        erase(&postings.into_iter().collect::<Vec<_>>(), &erased)
    }

    /// Returns size and root of the run.
    pub fn summary(&self) -> RunSummary {
        RunSummary::of(&self.postings()).unwrap()
    }
}

impl PostingSource {
    /// Creates the source of one posting.
    pub fn of(posting: &Posting) -> Self {
        Self::Bytes(hex(posting))
    }

    /// Returns the postings in order.
    pub fn postings(&self) -> Vec<Posting> {
        match *self {
            Self::Bytes(ref hex) => vec![posting(hex)],
            Self::Agents { agents, leaves: (start, end) } => agents_in_turn(start, end - start, agents),
            Self::Blind { blind, leaves: (start, end) } => {
                let code = BlindCode::ALL.into_iter().find(|code| *code as u8 == blind).unwrap();
                (start..end).map(|leaf| Posting::blind(code, LeafIndex::new(leaf))).collect()
            }
        }
    }
}

/// Returns the 24 bytes of a posting in hexadecimal.
pub fn hex(posting: &Posting) -> String {
    HEXLOWER.encode(&posting.to_bytes())
}

/// Reads the output of [`hex`].
pub fn posting(hex: &str) -> Posting {
    Posting::from_bytes(&unhex(hex).try_into().unwrap())
}
