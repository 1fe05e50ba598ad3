//! Strict reading of a bundle: one version, one encoding, no unknown or duplicate members, nothing beyond the limits.

use jose::jcs;
use jose::json::{self, JsonError, Limits};
use thiserror::Error;

use crate::limits::{DEPTH, MAX_BUNDLE_BYTES, MAX_ENTRIES, MAX_PATH, MAX_POLICIES, MAX_SELECTIONS};
use crate::model::{BundleEntry, EvidenceBundle, VERSION};

/// The first bytes of every bundle: `bundle` sorts before all other members.
const START: &[u8] = b"{\"bundle\":";

/// Error of [`EvidenceBundle::parse`].
#[derive(Debug, Clone, PartialEq, Eq, Error)]
#[non_exhaustive]
pub enum MalformedBundle {
    /// The text is not strict JSON, or a member is missing, unknown or of another type.
    #[error("{0}")]
    Json(#[from] JsonError),
    /// The version is unknown to this program.
    #[error("version {0}, and this program reads version {VERSION}")]
    Version(u64),
    /// The JSON is not in its canonical form.
    #[error("the JSON is not in its canonical form (RFC 8785)")]
    NotCanonical,
    /// A list is longer than its limit.
    #[error("{list} has {found} items, at most {most} are read")]
    TooMany {
        /// JSON pointer of the list.
        list: String,
        /// Number of items.
        found: usize,
        /// Maximum number of items.
        most: usize,
    },
    /// Leaf indices do not ascend: entries are unordered, or one occurs twice.
    #[error("{list}/{item} has leaf index {index}, which is not above the one before it")]
    Order {
        /// JSON pointer of the list.
        list: &'static str,
        /// Number of the item, from 0.
        item: usize,
        /// Leaf index of the item.
        index: u64,
    },
}

/// Returns `true` if the bytes begin like a bundle, so that damage to them is damage to evidence.
pub fn starts_like_a_bundle(bytes: &[u8]) -> bool {
    bytes.starts_with(START)
}

impl EvidenceBundle {
    /// Parses a bundle. Nothing in it is verified.
    ///
    /// # Errors
    /// Returns a [`MalformedBundle`] for a file that this version's writer would not write.
    pub fn parse(bytes: &[u8]) -> Result<Self, MalformedBundle> {
        let checked = json::check(bytes, Limits { bytes: MAX_BUNDLE_BYTES, depth: DEPTH })?;
        let value = checked.unambiguous()?;
        if let Some(version) =
            value.get("bundle").and_then(|version| version.as_u64()).filter(|v| *v != VERSION)
        {
            return Err(MalformedBundle::Version(version));
        }
        let bundle: Self = checked.read()?;
        if jcs::canonical(&value) != bytes {
            return Err(MalformedBundle::NotCanonical);
        }
        bundle.check_limits()?;
        check_order("/entries", &bundle.entries)?;
        check_order("/policies", &bundle.policies)?;
        Ok(bundle)
    }

    fn check_limits(&self) -> Result<(), MalformedBundle> {
        at_most("/entries", self.entries.len(), MAX_ENTRIES)?;
        at_most("/policies", self.policies.len(), MAX_POLICIES)?;
        at_most("/selections", self.selections.len(), MAX_SELECTIONS)?;
        for (list, entries) in [("/entries", &self.entries), ("/policies", &self.policies)] {
            for (item, entry) in entries.iter().enumerate() {
                at_most(&format!("{list}/{item}/proof/path"), entry.proof.path.len(), MAX_PATH)?;
            }
        }
        for (item, selection) in self.selections.iter().enumerate() {
            at_most(&format!("/selections/{item}/entries"), selection.entries.len(), MAX_ENTRIES)?;
        }
        Ok(())
    }
}

fn at_most(list: &str, found: usize, most: usize) -> Result<(), MalformedBundle> {
    match found <= most {
        true => Ok(()),
        false => Err(MalformedBundle::TooMany { list: list.to_owned(), found, most }),
    }
}

fn check_order(list: &'static str, entries: &[BundleEntry]) -> Result<(), MalformedBundle> {
    for (item, pair) in (1..).zip(entries.windows(2)) {
        let index = pair[1].proof.index;
        if index <= pair[0].proof.index {
            return Err(MalformedBundle::Order { list, item, index });
        }
    }
    Ok(())
}
