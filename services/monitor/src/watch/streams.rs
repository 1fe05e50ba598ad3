//! A gateway's audit streams, as far as a list must remember them: decisions without an outcome, and streams without an end.

use std::collections::{BTreeMap, BTreeSet};

use serde::{Deserialize, Serialize};

use super::facts::{Facts, Record};
use crate::limits::MAX_REMEMBERED;

/// The streams of one list, by name.
#[derive(Debug, Default, Serialize, Deserialize)]
#[serde(transparent)]
pub struct Streams(BTreeMap<String, Stream>);

/// A stream that has not ended, or has decisions without an outcome.
#[derive(Debug, Default, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
struct Stream {
    /// Decisions that let a call pass and have no outcome yet, by entry ID; since when.
    open: BTreeMap<String, u64>,
    /// Decisions whose outcome came before them.
    ended: BTreeSet<String>,
    /// When its newest record was committed.
    newest: u64,
    /// Whether it said that it has ended.
    closed: bool,
}

impl Streams {
    /// Takes a record of a stream; whether there was room for it.
    pub fn take(&mut self, name: &str, facts: &Facts, record: &Record, at: u64) -> bool {
        let known = self.0.values().map(Stream::weight).sum::<usize>();
        if known >= MAX_REMEMBERED {
            return false;
        }
        let stream = self.0.entry(name.to_owned()).or_default();
        stream.newest = stream.newest.max(at);
        match record {
            Record::Decision if !stream.ended.remove(&facts.entry) => {
                stream.open.insert(facts.entry.clone(), at);
            }
            Record::Outcome(decision) if stream.open.remove(decision).is_none() => {
                stream.ended.insert(decision.clone());
            }
            Record::Closed => stream.closed = true,
            _ => {}
        }
        if stream.closed && stream.open.is_empty() {
            self.0.remove(name);
        }
        true
    }

    /// Decisions that were committed so long ago and have no outcome: the stream, the decision, since when.
    pub fn open(&self, before: u64) -> impl Iterator<Item = (&str, &str, u64)> {
        self.0.iter().flat_map(move |(name, stream)| {
            let old = stream.open.iter().filter(move |(_, since)| **since <= before);
            old.map(move |(decision, since)| (name.as_str(), decision.as_str(), *since))
        })
    }

    /// Streams that have not ended, with nothing new since then: the stream, and when its newest record was committed.
    pub fn unclosed(&self, before: u64) -> impl Iterator<Item = (&str, u64)> {
        let quiet = self.0.iter().filter(move |(_, stream)| !stream.closed && stream.newest <= before);
        quiet.map(|(name, stream)| (name.as_str(), stream.newest))
    }
}

impl Stream {
    /// About how much of the memory it takes.
    fn weight(&self) -> usize {
        1 + self.open.len() + self.ended.len()
    }
}
