//! The heads seen so far, by series: what a later head must not contradict.

use std::collections::{BTreeMap, VecDeque};

use lookup_tree::IndexHead;
use merkle::{EntryDigest, LeafIndex};
use serde::{Deserialize, Serialize};

use crate::earlier_head::EarlierHead;
use crate::fault::FormFault;
use crate::limits::{MAX_HEADS, MAX_SERIES};

/// The heads seen so far. The series is the key, in hexadecimal.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(transparent)]
pub(crate) struct SeenHeads(BTreeMap<String, SeenSeries>);

#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
struct SeenSeries {
    /// The head with the greatest horizon.
    highest: Option<SeenHead>,
    /// The newest heads, at most [`MAX_HEADS`].
    newest: VecDeque<SeenHead>,
}

#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
struct SeenHead {
    leaf: u64,
    entry: String,
    size: u64,
    horizon: u64,
    /// SHA-256 of the payload, in hexadecimal.
    digest: String,
}

impl SeenHeads {
    /// Adds a head, and returns the rules about earlier heads that it breaks. A head that was added before breaks none.
    pub(crate) fn add(&mut self, head: &IndexHead, leaf: LeafIndex, entry: &EntryDigest) -> Vec<FormFault> {
        let name = head.series.to_string();
        if !self.0.contains_key(&name) && self.0.len() == MAX_SERIES {
            self.0.pop_first();
        }
        let (size, horizon) = (head.size.get(), head.horizon.get());
        let (entry, digest) = (entry.to_string(), head.digest().to_string());
        self.0.entry(name).or_default().add(SeenHead { leaf: leaf.get(), entry, size, horizon, digest })
    }
}

impl SeenSeries {
    fn add(&mut self, head: SeenHead) -> Vec<FormFault> {
        let higher =
            self.highest.as_ref().filter(|seen| seen.horizon > head.horizon && seen.leaf < head.leaf);
        let back = higher.map(|seen| FormFault::HorizonBack {
            horizon: LeafIndex::new(head.horizon),
            earlier: seen.registered(),
        });
        let twin = self.newest.iter().find(|seen| seen.is_twin_of(&head));
        let two = twin.map(|seen| FormFault::TwoHeads { earlier: seen.registered() });
        let faults = back.into_iter().chain(two).collect();
        self.remember(head);
        faults
    }

    fn remember(&mut self, head: SeenHead) {
        if self.highest.as_ref().is_none_or(|seen| seen.horizon < head.horizon) {
            self.highest = Some(head.clone());
        }
        if self.newest.iter().all(|seen| seen.leaf != head.leaf) {
            self.newest.push_back(head);
        }
        if self.newest.len() > MAX_HEADS {
            self.newest.pop_front();
        }
    }
}

impl SeenHead {
    fn is_twin_of(&self, other: &Self) -> bool {
        (self.size, self.horizon) == (other.size, other.horizon)
            && self.digest != other.digest
            && self.leaf < other.leaf
    }

    fn registered(&self) -> EarlierHead {
        let (leaf, horizon) = (LeafIndex::new(self.leaf), LeafIndex::new(self.horizon));
        EarlierHead { leaf, entry: self.entry.clone(), horizon }
    }
}
