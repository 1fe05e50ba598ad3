//! What is remembered of a service: the last receipt of each entry, and one for each tree that was signed.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};
use verifier::TrustStore;

use super::{Place, verify};
use crate::evidence::ReceiptSeen;
use crate::limits::{MAX_PLACES, MAX_PLACES_BYTES};
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
    /// About how many bytes it takes in the file.
    fn bytes(&self) -> usize {
        let place = self.place.as_ref().map_or(0, String::len);
        self.seen.receipt.len() + self.seen.statement.as_ref().map_or(0, String::len) + place + 512
    }

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

/// What a replica that is behind shows, too.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Doubt {
    /// An entry that had a receipt is not there.
    Gone,
    /// A receipt is older than the last one.
    Older,
}

/// Since when something is doubtful, and how often it was looked at.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
struct Looked {
    since: u64,
    looks: u32,
}

/// All of it.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Memory {
    version: u32,
    /// Since when something did not answer.
    pub unreachable_since: Option<u64>,
    /// What may pass, by kind and entry.
    #[serde(default)]
    doubts: BTreeMap<String, Looked>,
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
        Self {
            version: VERSION,
            unreachable_since: None,
            doubts: BTreeMap::new(),
            last: BTreeMap::new(),
            places: BTreeMap::new(),
        }
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

    /// Notes one more look at something doubtful: how many there were, and since when.
    pub fn doubted(&mut self, doubt: Doubt, id: &str, now: u64) -> (u32, u64) {
        let looked = self.doubts.entry(doubt.of(id)).or_insert(Looked { since: now, looks: 0 });
        // A clock that was ahead and is right again: what began in the future began now.
        looked.since = looked.since.min(now);
        looked.looks = looked.looks.saturating_add(1);
        (looked.looks, looked.since)
    }

    /// It has passed.
    pub fn settled(&mut self, doubt: Doubt, id: &str) {
        self.doubts.remove(&doubt.of(id));
    }

    /// Remembers a receipt; of as many places as there is room for, those that were seen last.
    pub fn remember(&mut self, id: &str, kept: Kept) {
        if let Some(place) = &kept.place {
            self.places.entry(place.clone()).or_insert_with(|| kept.clone());
        }
        let mut bytes: usize = self.places.values().map(Kept::bytes).sum();
        while self.places.len() > MAX_PLACES || bytes > MAX_PLACES_BYTES {
            let oldest = self.places.iter().min_by_key(|(_, kept)| kept.seen.at);
            let Some(oldest) = oldest.map(|(place, _)| place.clone()) else { break };
            bytes -= self.places.remove(&oldest).map_or(0, |kept| kept.bytes());
        }
        self.last.insert(id.to_owned(), kept);
    }
}

impl Doubt {
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
        let mut memory = Memory::new();
        let entry = merkle::EntryDigest::of(b"entry");
        let base = url::Url::parse("http://x.example/").unwrap();
        let receipt = vec![0; MAX_RECEIPT_KEPT];
        for size in 0..400u64 {
            let seen = ReceiptSeen::of(entry, None, &receipt, &base, size);
            memory.remember("one", Kept { seen, place: Some(size.to_string()), root: None });
        }
        let bytes = serde_json::to_vec_pretty(&memory).unwrap().len();
        assert!(bytes < 2 * MAX_PLACES_BYTES, "{bytes}");
        assert!(memory.places.contains_key("399") && !memory.places.contains_key("0"));
    }
}
