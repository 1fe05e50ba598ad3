//! What watch lists remember from entry to entry, within bounds.

use std::collections::BTreeMap;

use data_encoding::HEXLOWER;
use serde::{Deserialize, Serialize};
use sha2::{Digest, Sha256};

use super::facts::{Facts, Place};
use super::streams::Streams;
use crate::alarm::Alarm;
use crate::evidence::Evidence;
use crate::limits::MAX_REMEMBERED;

/// The form that this release writes. One of another form is as good as lost: everything is seen again.
const FORM: u32 = 3;

/// What is remembered.
#[derive(Debug, Default, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Memory {
    #[serde(default)]
    form: u32,
    /// The next leaf to see.
    pub next: u64,
    /// The last report of a refused statement that was read.
    #[serde(default)]
    pub report: Option<u64>,
    /// When watching began, in Unix seconds.
    began: u64,
    /// Lists that are watched, and since which leaf.
    #[serde(default)]
    since: BTreeMap<String, u64>,
    /// Whether something was left out.
    full: bool,
    /// When each list was heard of last.
    heard: BTreeMap<String, u64>,
    /// Places in chains, by the hash of their names, and which entry took them first.
    claims: BTreeMap<String, Place>,
    /// What was judged, by which entry, and how.
    verdicts: BTreeMap<String, (Place, String)>,
    /// Sequences by list and name.
    sequences: BTreeMap<String, BTreeMap<String, Sequence>>,
    /// Streams of audit records by list.
    #[serde(default)]
    streams: BTreeMap<String, Streams>,
    /// Entries without a statement that were seen.
    #[serde(default)]
    pub erased: u64,
    /// How many numbers are missing, of all sequences.
    missing: usize,
    /// What was found and nobody was told of.
    #[serde(default)]
    pub untold: Vec<Alarm>,
}

/// A row of numbers.
#[derive(Debug, Default, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
struct Sequence {
    /// One more than the largest.
    next: u64,
    /// Below it, and not seen; since when.
    missing: BTreeMap<u64, u64>,
}

/// Tells one state of the memory from another.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Mark {
    next: u64,
    report: Option<u64>,
    untold: usize,
}

impl Memory {
    /// All that it holds follows from what it has seen so far.
    pub fn mark(&self) -> Mark {
        Mark { next: self.next, report: self.report, untold: self.untold.len() }
    }

    /// Nothing was seen yet.
    pub fn begun(now: u64) -> Self {
        Self { form: FORM, began: now, ..Self::default() }
    }

    /// Whether this release can go on from it.
    pub fn is_of_this_form(&self) -> bool {
        self.form == FORM
    }

    /// A list that was not watched yet is from the next leaf on.
    pub fn watch_from_here(&mut self, list: &str, now: u64) {
        if !self.since.contains_key(list) {
            self.since.insert(list.to_owned(), self.next);
            if self.next > 0 {
                self.heard.insert(list.to_owned(), now);
            }
        }
    }

    /// What is written: no more than can be read again. What is too much is left out, first the statements, which their
    /// hashes stand for, then what was compared longest; and it is said that something was.
    pub fn encode(&mut self, most: usize) -> Vec<u8> {
        loop {
            let json = serde_json::to_vec(&self).unwrap_or_default();
            if json.len() <= most || !self.leave_out() {
                return json;
            }
            self.full = true;
        }
    }

    /// Whether there was anything to leave out.
    fn leave_out(&mut self) -> bool {
        let evidence = self.untold.iter_mut().filter_map(|alarm| alarm.evidence.as_mut());
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

    /// Whether something was left out.
    pub fn is_full(&self) -> bool {
        self.full
    }

    /// Something of a list was committed.
    pub fn heard(&mut self, list: &str, at: u64) {
        let last = self.heard.entry(list.to_owned()).or_insert(at);
        *last = at.max(*last);
    }

    /// When something of a list was committed last, or watching began.
    pub fn last_heard(&self, list: &str) -> u64 {
        self.heard.get(list).copied().unwrap_or(self.began)
    }

    /// Takes the entry's places in its chain; the entry that has one of them already.
    pub fn claims(&mut self, facts: &Facts) -> Option<Place> {
        let chain = format!("{}\n{}", facts.iss, facts.sub);
        let follows = facts.previous.as_ref().map(|previous| format!("{chain}\nafter {previous}"));
        let stands = facts.position.map(|position| format!("{chain}\nat {position}"));
        let mut other = None;
        for place in follows.into_iter().chain(stands).map(|name| hashed(&name)) {
            if let Some(first) = self.claims.get(&place) {
                other = Some(first.clone()).filter(|first| first.entry != facts.entry).or(other);
            } else if self.claims.len() < MAX_REMEMBERED {
                self.claims.insert(place, facts.place());
            } else {
                self.full = true;
            }
        }
        other
    }

    /// Keeps the entry's verdict; the entry that judged the same thing otherwise, and how.
    pub fn judged(&mut self, facts: &Facts) -> Option<(Place, String)> {
        let (verdict, judged) = (facts.verdict.as_ref()?, facts.judged.as_ref()?);
        let thing = hashed(&format!("{}\n{judged}", facts.sub));
        if !self.verdicts.contains_key(&thing) && self.verdicts.len() >= MAX_REMEMBERED {
            self.full = true;
            return None;
        }
        let before = self.verdicts.insert(thing, (facts.place(), verdict.clone()));
        before.filter(|(place, before)| before != verdict && place.entry != facts.entry)
    }

    /// The streams of a list.
    pub fn streams(&self, list: &str) -> Option<&Streams> {
        self.streams.get(list)
    }

    /// Enters the entry's position in the sequence of its chain.
    pub fn follow_chain(&mut self, list: &str, facts: &Facts, now: u64) {
        if let Some((name, position)) = chain_position(facts) {
            self.number(list, name, position, now);
        }
    }

    /// Enters an audit record in its stream.
    pub fn follow_stream(&mut self, list: &str, facts: &Facts, now: u64) {
        let (Some((name, number)), Some(record)) = (stream_number(facts), &facts.record) else { return };
        let at = facts.at.unwrap_or(now).min(now);
        let streams = self.streams.entry(list.to_owned()).or_default();
        self.full |= !streams.take(&name, facts, record, at);
        self.number(list, name, number, now);
    }

    fn number(&mut self, list: &str, name: String, number: u64, now: u64) {
        // What a list that was added later has not seen is not missing; nor what was seen before something was left out.
        let from_the_first = !self.full && self.since.get(list).is_none_or(|since| *since == 0);
        let first = if from_the_first { 0 } else { number };
        let sequences = self.sequences.entry(list.to_owned()).or_default();
        let sequence = sequences.entry(name).or_insert(Sequence { next: first, missing: BTreeMap::new() });
        let before = sequence.missing.len();
        let room = MAX_REMEMBERED.saturating_sub(self.missing) as u64;
        self.full |= sequence.take(number, now, room);
        self.missing = (self.missing + sequence.missing.len()).saturating_sub(before);
    }

    /// Takes the numbers of an entry that nothing else is believed of: they are there, whoever wrote them, and not missing.
    pub fn excuse(&mut self, list: &str, facts: &Facts) {
        for (name, number) in chain_position(facts).into_iter().chain(stream_number(facts)) {
            let Some(sequence) = self.sequences.get_mut(list).and_then(|all| all.get_mut(&name)) else {
                continue;
            };
            let before = sequence.missing.len();
            if number <= sequence.next {
                sequence.take(number, 0, 0);
            }
            self.missing = (self.missing + sequence.missing.len()).saturating_sub(before);
        }
    }

    /// What is missing in a list's sequences: the sequence, the number, and since when.
    pub fn missing(&self, list: &str) -> impl Iterator<Item = (&str, u64, u64)> {
        let sequences = self.sequences.get(list).into_iter().flatten();
        sequences.flat_map(|(name, sequence)| {
            sequence.missing.iter().map(|(number, since)| (name.as_str(), *number, *since))
        })
    }
}

/// The chain that an entry is in, and its position there.
fn chain_position(facts: &Facts) -> Option<(String, u64)> {
    Some((format!("chain of {} about {}", facts.iss, facts.sub), facts.position?))
}

/// The stream that an entry is in, and its number there.
fn stream_number(facts: &Facts) -> Option<(String, u64)> {
    Some((format!("stream of {} about {}", facts.iss, facts.sub), facts.number?))
}

/// A name of any length, as one of 64 characters.
fn hashed(name: &str) -> String {
    HEXLOWER.encode(&Sha256::digest(name))
}

impl Sequence {
    /// Takes a number; whether more are missing than there is room for.
    fn take(&mut self, number: u64, now: u64, room: u64) -> bool {
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
        let full = numbers.iter().fold(false, |full, number| sequence.take(*number, 7, room) | full);
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
