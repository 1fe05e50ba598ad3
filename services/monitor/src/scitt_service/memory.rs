//! What is remembered of a service: the last receipt of each entry, and one for each tree that was signed.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};
use verifier::TrustStore;

use super::{Place, verify};
use crate::evidence::ReceiptSeen;
use crate::limits::MAX_PLACES;
use crate::state::{LogFolder, StateError};

/// The file in the service's folder.
const FILE: &str = "receipts.json";
/// The form that this release writes and reads.
const VERSION: u32 = 1;

/// A receipt that was verified.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Kept {
    /// The receipt, as it came.
    pub seen: ReceiptSeen,
    /// What it is signed for, if that has a name.
    pub place: Option<String>,
    /// The root, hex.
    pub root: Option<String>,
}

impl Kept {
    /// The tree size that the log signed. Verified again: a file is no witness.
    pub fn signed_size(&self, trust: &TrustStore) -> Option<u64> {
        let (entry, statement, receipt) = self.seen.parts().ok()?;
        let verdict = verify(entry, statement.as_ref(), &receipt, trust, self.seen.at);
        match Place::of(verdict.receipts.first().filter(|facts| facts.verified)?)? {
            Place::Size { size, .. } => Some(size),
            Place::Transaction { .. } => None,
        }
    }
}

/// All of it.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Memory {
    version: u32,
    /// Since when something did not answer.
    pub unreachable_since: Option<u64>,
    /// By the service's name for the entry.
    last: BTreeMap<String, Kept>,
    /// By what is signed.
    places: BTreeMap<String, Kept>,
}

impl Memory {
    /// What was kept; nothing at the first time.
    pub fn load(folder: &LogFolder) -> Result<Self, StateError> {
        let Some(bytes) = folder.read(FILE)? else { return Ok(Self::new()) };
        let unreadable = |why: String| StateError::Unreadable { path: folder.file(FILE), why };
        let memory: Self = serde_json::from_slice(&bytes).map_err(|why| unreadable(why.to_string()))?;
        match memory.version {
            VERSION => Ok(memory),
            other => Err(unreadable(format!("version {other}"))),
        }
    }

    fn new() -> Self {
        Self { version: VERSION, unreachable_since: None, last: BTreeMap::new(), places: BTreeMap::new() }
    }

    /// Keeps it. Once `Ok`, it survives power loss.
    pub fn keep(&self, folder: &LogFolder) -> Result<(), StateError> {
        folder.write(FILE, &serde_json::to_vec_pretty(self).unwrap_or_default())
    }

    /// The last receipt of an entry.
    pub fn last(&self, id: &str) -> Option<&Kept> {
        self.last.get(id)
    }

    /// A receipt of another root that was signed for the same.
    pub fn contradiction(&self, kept: &Kept) -> Option<&Kept> {
        let known = self.places.get(kept.place.as_ref()?)?;
        (known.root != kept.root).then_some(known)
    }

    /// Remembers a receipt; of as many places as there is room for, those that were seen last.
    pub fn remember(&mut self, id: &str, kept: Kept) {
        if let Some(place) = &kept.place {
            self.places.entry(place.clone()).or_insert_with(|| kept.clone());
        }
        while self.places.len() > MAX_PLACES {
            let oldest = self.places.iter().min_by_key(|(_, kept)| kept.seen.at);
            let Some(oldest) = oldest.map(|(place, _)| place.clone()) else { break };
            self.places.remove(&oldest);
        }
        self.last.insert(id.to_owned(), kept);
    }
}
