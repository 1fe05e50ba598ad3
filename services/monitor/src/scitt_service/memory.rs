//! The saved state of a SCITT service: the last receipt of each entry, and one receipt for each signed tree.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};
use verifier::TrustStore;

use super::{ReceiptPosition, verify};
use crate::evidence::ReceiptSeen;
use crate::limits::{MAX_PLACES, MAX_PLACES_BYTES};
use crate::state::{LogFolder, MonitorStateError};

/// File in the service's folder.
const FILE: &str = "receipts.json";
/// Version of the file format.
const VERSION: u32 = 1;

/// A verified receipt.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct SavedReceipt {
    /// The receipt as received.
    pub seen: ReceiptSeen,
    /// The signed position (see [`ReceiptPosition`]); `None` if the receipt signs none.
    pub place: Option<String>,
    /// The root hash, in hex.
    pub root: Option<String>,
}

impl SavedReceipt {
    /// Approximate size in the file, in bytes.
    fn bytes(&self) -> usize {
        let place = self.place.as_ref().map_or(0, String::len);
        self.seen.receipt.len() + self.seen.statement.as_ref().map_or(0, String::len) + place + 512
    }

    /// The signed tree size. The receipt is verified again, because the file is not trusted.
    pub fn signed_size(&self, trust: &TrustStore) -> Option<u64> {
        let (entry, statement, receipt) = self.seen.parts().ok()?;
        let verdict = verify(entry, statement.as_ref(), &receipt, trust, self.seen.at);
        match ReceiptPosition::of(verdict.receipts.first().filter(|facts| facts.verified)?)? {
            ReceiptPosition::Size { size, .. } => Some(size),
            ReceiptPosition::Transaction { .. } => None,
        }
    }
}

/// Observations that a replica which is behind explains, too.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum LagObservation {
    /// An entry that had a receipt is not served.
    Gone,
    /// A receipt is for a smaller tree than the last one.
    Older,
}

/// Time of the first sighting of a doubt (Unix seconds), and the number of sightings.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
struct Looked {
    since: u64,
    looks: u32,
}

/// The saved state.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct ServiceMemory {
    version: u32,
    /// Start of the service's silence, in Unix seconds; `None` if it answers.
    pub unreachable_since: Option<u64>,
    /// Current doubts, by kind and entry.
    #[serde(default)]
    doubts: BTreeMap<String, Looked>,
    /// Last receipt of each entry, by the service's ID.
    last: BTreeMap<String, SavedReceipt>,
    /// First receipt of each signed position.
    places: BTreeMap<String, SavedReceipt>,
}

impl ServiceMemory {
    /// Loads the state; empty if the file does not exist.
    pub fn load(folder: &LogFolder) -> Result<Self, MonitorStateError> {
        let Some(bytes) = folder.read(FILE)? else { return Ok(Self::new()) };
        let unreadable = |why: String| MonitorStateError::Unreadable { path: folder.file(FILE), why };
        let memory: Self = serde_json::from_slice(&bytes).map_err(|why| unreadable(why.to_string()))?;
        match memory.version {
            VERSION => Ok(memory),
            other => Err(unreadable(format!("version {other}"))),
        }
    }

    fn new() -> Self {
        Self {
            version: VERSION,
            unreachable_since: None,
            doubts: BTreeMap::new(),
            last: BTreeMap::new(),
            places: BTreeMap::new(),
        }
    }

    /// Saves the state. Once `Ok`, it survives power loss.
    pub fn keep(&self, folder: &LogFolder) -> Result<(), MonitorStateError> {
        folder.write(FILE, &serde_json::to_vec_pretty(self).unwrap_or_default())
    }

    /// The last receipt of an entry.
    pub fn last(&self, id: &str) -> Option<&SavedReceipt> {
        self.last.get(id)
    }

    /// A receipt with another root for the same position.
    pub fn contradiction(&self, kept: &SavedReceipt) -> Option<&SavedReceipt> {
        let known = self.places.get(kept.place.as_ref()?)?;
        (known.root != kept.root).then_some(known)
    }

    /// Records a sighting of a doubt; returns the number of sightings and the time of the first.
    pub fn doubted(&mut self, doubt: LagObservation, id: &str, now: u64) -> (u32, u64) {
        let looked = self.doubts.entry(doubt.of(id)).or_insert(Looked { since: now, looks: 0 });
        // After a correction of a clock that was ahead, a start in the future becomes the current time.
        looked.since = looked.since.min(now);
        looked.looks = looked.looks.saturating_add(1);
        (looked.looks, looked.since)
    }

    /// Removes a doubt.
    pub fn settled(&mut self, doubt: LagObservation, id: &str) {
        self.doubts.remove(&doubt.of(id));
    }

    /// Remembers a receipt. If there is no more room for positions, the oldest are dropped ([`MAX_PLACES`],
    /// [`MAX_PLACES_BYTES`]).
    pub fn remember(&mut self, id: &str, kept: SavedReceipt) {
        if let Some(place) = &kept.place {
            self.places.entry(place.clone()).or_insert_with(|| kept.clone());
        }
        let mut bytes: usize = self.places.values().map(SavedReceipt::bytes).sum();
        while self.places.len() > MAX_PLACES || bytes > MAX_PLACES_BYTES {
            let oldest = self.places.iter().min_by_key(|(_, kept)| kept.seen.at);
            let Some(oldest) = oldest.map(|(place, _)| place.clone()) else { break };
            bytes -= self.places.remove(&oldest).map_or(0, |kept| kept.bytes());
        }
        self.last.insert(id.to_owned(), kept);
    }
}

impl LagObservation {
    fn of(self, id: &str) -> String {
        match self {
            Self::Gone => format!("gone {id}"),
            Self::Older => format!("older {id}"),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::limits::MAX_RECEIPT_KEPT;

    #[test]
    fn large_receipts_of_ever_more_trees_do_not_outgrow_the_file_that_is_read_back() {
        let mut memory = ServiceMemory::new();
        let entry = merkle::EntryDigest::of(b"entry");
        let base = url::Url::parse("http://x.example/").unwrap();
        let receipt = vec![0; MAX_RECEIPT_KEPT];
        for size in 0..400u64 {
            let seen = ReceiptSeen::of(entry, None, &receipt, &base, size);
            memory.remember("one", SavedReceipt { seen, place: Some(size.to_string()), root: None });
        }
        let bytes = serde_json::to_vec_pretty(&memory).unwrap().len();
        assert!(bytes < 2 * MAX_PLACES_BYTES, "{bytes}");
        assert!(memory.places.contains_key("399") && !memory.places.contains_key("0"));
    }
}
