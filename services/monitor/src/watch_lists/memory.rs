//! The saved memory of the watch lists, within bounds.

use std::collections::BTreeMap;

use data_encoding::HEXLOWER;
use serde::{Deserialize, Serialize};
use sha2::{Digest, Sha256};

use super::facts::{EntryPosition, WatchedFacts};
use super::streams::OpenStreams;
use crate::alarm::Alarm;
use crate::evidence::Evidence;
use crate::limits::MAX_REMEMBERED;

/// Version of the file format. A memory of another version is discarded, and all entries are processed again.
const VERSION: u32 = 1;

/// The saved memory.
#[derive(Debug, Default, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct WatchMemory {
    form: u32,
    /// The next leaf to observe.
    pub next: u64,
    /// Number of the last report of a refused statement that was processed.
    pub report: Option<u64>,
    /// Start of watching, in Unix seconds.
    began: u64,
    /// The first leaf watched by each list.
    since: BTreeMap<String, u64>,
    /// `true` if something was dropped for lack of room.
    full: bool,
    /// Newest commit time of an entry for each list.
    newest: BTreeMap<String, u64>,
    /// First entry at each position of a chain, by the hash of the position's name.
    claims: BTreeMap<String, EntryPosition>,
    /// Last verdict on each object, with its entry.
    verdicts: BTreeMap<String, (EntryPosition, String)>,
    /// Sequences by list and name.
    sequences: BTreeMap<String, BTreeMap<String, Sequence>>,
    /// Streams of audit records by list.
    streams: BTreeMap<String, OpenStreams>,
    /// Number of observed entries without a statement.
    pub erased: u64,
    /// Total of missing numbers in all sequences.
    missing: usize,
    /// Alarms that the sink has not saved yet.
    #[serde(rename = "untold")]
    pub unreported: Vec<Alarm>,
}

/// A sequence of numbers from 0 on.
#[derive(Debug, Default, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
struct Sequence {
    /// The largest number seen, plus one.
    next: u64,
    /// Missing numbers below `next`, with the time of discovery.
    missing: BTreeMap<u64, u64>,
}

/// A number that is missing in a sequence.
pub struct MissingNumber<'a> {
    /// Name of the sequence: a chain or a stream.
    pub sequence: &'a str,
    /// The missing number.
    pub number: u64,
    /// Time of discovery, in Unix seconds.
    pub since: u64,
}

/// An entry with another verdict on the same object.
pub struct OtherVerdict {
    /// The entry.
    pub entry: EntryPosition,
    /// Its verdict.
    pub verdict: String,
}

/// Identifies a state of the memory, for change detection.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ChangeMark {
    next: u64,
    report: Option<u64>,
    unreported: usize,
}

impl WatchMemory {
    /// The mark of the current state: the memory is a function of these positions.
    pub fn mark(&self) -> ChangeMark {
        ChangeMark { next: self.next, report: self.report, unreported: self.unreported.len() }
    }

    /// An empty memory.
    pub fn new(now: u64) -> Self {
        Self { form: VERSION, began: now, ..Self::default() }
    }

    /// Returns `true` if the memory has the current format version.
    pub fn has_current_version(&self) -> bool {
        self.form == VERSION
    }

    /// Starts a list at the next leaf, unless it is watched already.
    pub fn watch_from_here(&mut self, list: &str, now: u64) {
        if !self.since.contains_key(list) {
            self.since.insert(list.to_owned(), self.next);
            if self.next > 0 {
                self.newest.insert(list.to_owned(), now);
            }
        }
    }

    /// Serializes the memory to at most `most` bytes, so that it can be read again. To fit, it first drops statements
    /// (their hashes stay), then everything that was kept for comparison, and sets [`is_full`](Self::is_full).
    pub fn encode(&mut self, most: usize) -> Vec<u8> {
        loop {
            let json = serde_json::to_vec(&self).unwrap_or_default();
            if json.len() <= most || !self.drop_data() {
                return json;
            }
            self.full = true;
        }
    }

    /// Drops data to save room; returns `false` if there was none.
    fn drop_data(&mut self) -> bool {
        let evidence = self.unreported.iter_mut().filter_map(|alarm| alarm.evidence.as_mut());
        let entries = evidence.filter_map(|evidence| match evidence {
            Evidence::Entries { entries, .. } => Some(entries),
            _ => None,
        });
        let statements = entries.flatten().filter_map(|entry| entry.statement.take()).count();
        if statements > 0 {
            return true;
        }
        let maps = [self.claims.len(), self.verdicts.len(), self.sequences.len(), self.streams.len()];
        self.claims.clear();
        self.verdicts.clear();
        self.sequences.clear();
        self.streams.clear();
        self.missing = 0;
        maps.iter().any(|len| *len > 0)
    }

    /// Returns `true` if something was dropped for lack of room.
    pub fn is_full(&self) -> bool {
        self.full
    }

    /// Records the commit time of an entry of a list.
    pub fn record_time(&mut self, list: &str, at: u64) {
        let last = self.newest.entry(list.to_owned()).or_insert(at);
        *last = at.max(*last);
    }

    /// Newest commit time of a list's entries; the start of watching if there are none.
    pub fn last_entry_time(&self, list: &str) -> u64 {
        self.newest.get(list).copied().unwrap_or(self.began)
    }

    /// Records the entry's predecessor and position in its chain. Returns another entry that has one of them already.
    pub fn claim_chain_position(&mut self, facts: &WatchedFacts) -> Option<EntryPosition> {
        let chain = format!("{}\n{}", facts.iss, facts.sub);
        let follows = facts.previous.as_ref().map(|previous| format!("{chain}\nafter {previous}"));
        let stands = facts.position.map(|position| format!("{chain}\nat {position}"));
        let mut other = None;
        for place in follows.into_iter().chain(stands).map(|name| hashed(&name)) {
            if let Some(first) = self.claims.get(&place) {
                other = Some(first.clone()).filter(|first| first.entry != facts.entry).or(other);
            } else if self.claims.len() < MAX_REMEMBERED {
                self.claims.insert(place, facts.entry_position());
            } else {
                self.full = true;
            }
        }
        other
    }

    /// Records the entry's verdict. Returns the entry with a different previous verdict on the same object.
    pub fn record_verdict(&mut self, facts: &WatchedFacts) -> Option<OtherVerdict> {
        let (verdict, judged) = (facts.verdict.as_ref()?, facts.judged.as_ref()?);
        let object = hashed(&format!("{}\n{judged}", facts.sub));
        if !self.verdicts.contains_key(&object) && self.verdicts.len() >= MAX_REMEMBERED {
            self.full = true;
            return None;
        }
        let (entry, before) = self.verdicts.insert(object, (facts.entry_position(), verdict.clone()))?;
        let differs = before != *verdict && entry.entry != facts.entry;
        differs.then_some(OtherVerdict { entry, verdict: before })
    }

    /// The streams of a list; `None` if there are none.
    pub fn streams(&self, list: &str) -> Option<&OpenStreams> {
        self.streams.get(list)
    }

    /// Records the entry's position in its chain.
    pub fn follow_chain(&mut self, list: &str, facts: &WatchedFacts, now: u64) {
        if let Some((name, position)) = chain_position(facts) {
            self.record_number(list, name, position, now);
        }
    }

    /// Records an audit record in its stream.
    pub fn follow_stream(&mut self, list: &str, facts: &WatchedFacts, now: u64) {
        let (Some((name, number)), Some(record)) = (stream_number(facts), &facts.record) else { return };
        let at = facts.at.unwrap_or(now).min(now);
        let streams = self.streams.entry(list.to_owned()).or_default();
        self.full |= !streams.record(&name, facts, record, at);
        self.record_number(list, name, number, now);
    }

    fn record_number(&mut self, list: &str, name: String, number: u64, now: u64) {
        // Not missing: numbers before a later-added list's start, and numbers seen before data was dropped.
        let from_the_first = !self.full && self.since.get(list).is_none_or(|since| *since == 0);
        let first = if from_the_first { 0 } else { number };
        let sequences = self.sequences.entry(list.to_owned()).or_default();
        let sequence = sequences.entry(name).or_insert(Sequence { next: first, missing: BTreeMap::new() });
        let before = sequence.missing.len();
        let room = MAX_REMEMBERED.saturating_sub(self.missing) as u64;
        self.full |= sequence.record(number, now, room);
        self.missing = (self.missing + sequence.missing.len()).saturating_sub(before);
    }

    /// Marks the numbers of an entry as present although its other facts are not used: they are not missing, regardless
    /// of the signer.
    pub fn mark_present(&mut self, list: &str, facts: &WatchedFacts) {
        for (name, number) in chain_position(facts).into_iter().chain(stream_number(facts)) {
            let Some(sequence) = self.sequences.get_mut(list).and_then(|all| all.get_mut(&name)) else {
                continue;
            };
            let before = sequence.missing.len();
            if number <= sequence.next {
                sequence.record(number, 0, 0);
            }
            self.missing = (self.missing + sequence.missing.len()).saturating_sub(before);
        }
    }

    /// The missing numbers of a list.
    pub fn missing(&self, list: &str) -> impl Iterator<Item = MissingNumber<'_>> {
        let sequences = self.sequences.get(list).into_iter().flatten();
        sequences.flat_map(|(name, sequence)| {
            let missing = sequence.missing.iter();
            missing.map(|(number, since)| MissingNumber { sequence: name, number: *number, since: *since })
        })
    }
}

/// The entry's chain and its position there.
fn chain_position(facts: &WatchedFacts) -> Option<(String, u64)> {
    Some((format!("chain of {} about {}", facts.iss, facts.sub), facts.position?))
}

/// The entry's stream and its number there.
fn stream_number(facts: &WatchedFacts) -> Option<(String, u64)> {
    Some((format!("stream of {} about {}", facts.iss, facts.sub), facts.number?))
}

/// Hash of a name, to bound its length.
fn hashed(name: &str) -> String {
    HEXLOWER.encode(&Sha256::digest(name))
}

impl Sequence {
    /// Records a number; returns `true` if more numbers are missing than fit into `room`.
    fn record(&mut self, number: u64, now: u64, room: u64) -> bool {
        if number < self.next {
            self.missing.remove(&number);
            return false;
        }
        let skipped = number - self.next;
        self.missing.extend((self.next..number).take(room as usize).map(|missing| (missing, now)));
        self.next = number.saturating_add(1);
        skipped > room
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn missing(numbers: &[u64], from: u64, room: u64) -> (Vec<u64>, bool) {
        let mut sequence = Sequence { next: from, missing: BTreeMap::new() };
        let full = numbers.iter().fold(false, |full, number| sequence.record(*number, 7, room) | full);
        (sequence.missing.keys().copied().collect(), full)
    }

    #[test]
    fn a_number_that_was_skipped_is_missing_until_it_comes() {
        assert_eq!(missing(&[0, 1, 2], 0, 100), (vec![], false));
        assert_eq!(missing(&[0, 1, 5], 0, 100), (vec![2, 3, 4], false));
        assert_eq!(missing(&[0, 1, 5, 3], 0, 100), (vec![2, 4], false));
        assert_eq!(missing(&[9, 10], 9, 100), (vec![], false), "a stream begins where it is seen first");
    }

    #[test]
    fn a_number_far_away_does_not_fill_the_memory() {
        assert_eq!(missing(&[0, u64::MAX], 0, 3), (vec![1, 2, 3], true));
        assert_eq!(missing(&[u64::MAX, u64::MAX], u64::MAX, 3), (vec![], false));
    }
}
