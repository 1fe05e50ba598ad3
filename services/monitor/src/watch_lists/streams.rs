//! A gateway's audit streams: decisions without an outcome, and streams that are not closed.

use std::collections::{BTreeMap, BTreeSet};

use serde::{Deserialize, Serialize};

use super::facts::{StreamRecord, WatchedFacts};
use crate::limits::MAX_REMEMBERED;

/// The streams of one list, by name.
#[derive(Debug, Default, Serialize, Deserialize)]
#[serde(transparent)]
pub struct OpenStreams(BTreeMap<String, TrackedStream>);

/// A permitting decision without an outcome.
pub struct DecisionWithoutOutcome<'a> {
    /// Name of the stream.
    pub stream: &'a str,
    /// Entry ID of the decision.
    pub decision: &'a str,
    /// Commit time of the decision, in Unix seconds.
    pub since: u64,
}

/// A stream that is not closed.
pub struct UnclosedStream<'a> {
    /// Name of the stream.
    pub stream: &'a str,
    /// Commit time of its newest record, in Unix seconds.
    pub newest: u64,
}

/// A stream that is not closed, or has decisions without an outcome.
#[derive(Debug, Default, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
struct TrackedStream {
    /// Permitting decisions without an outcome, by entry ID, with their commit times.
    open: BTreeMap<String, u64>,
    /// Decisions whose outcome was observed before the decision.
    ended: BTreeSet<String>,
    /// Commit time of the newest record.
    newest: u64,
    /// `true` after the record that closes the stream.
    closed: bool,
}

impl OpenStreams {
    /// Records an audit record; returns `false` if there is no room ([`MAX_REMEMBERED`]).
    pub fn record(&mut self, name: &str, facts: &WatchedFacts, record: &StreamRecord, at: u64) -> bool {
        let known = self.0.values().map(TrackedStream::weight).sum::<usize>();
        if known >= MAX_REMEMBERED {
            return false;
        }
        let stream = self.0.entry(name.to_owned()).or_default();
        stream.newest = stream.newest.max(at);
        match record {
            StreamRecord::Decision if !stream.ended.remove(&facts.entry) => {
                stream.open.insert(facts.entry.clone(), at);
            }
            StreamRecord::Outcome(decision) if stream.open.remove(decision).is_none() => {
                stream.ended.insert(decision.clone());
            }
            StreamRecord::Closed => stream.closed = true,
            _ => {}
        }
        if stream.closed && stream.open.is_empty() {
            self.0.remove(name);
        }
        true
    }

    /// Decisions committed at or before `before` that have no outcome.
    pub fn open(&self, before: u64) -> impl Iterator<Item = DecisionWithoutOutcome<'_>> {
        self.0.iter().flat_map(move |(name, stream)| {
            let old = stream.open.iter().filter(move |(_, since)| **since <= before);
            old.map(move |(decision, since)| DecisionWithoutOutcome { stream: name, decision, since: *since })
        })
    }

    /// Open streams without a record after `before`.
    pub fn unclosed(&self, before: u64) -> impl Iterator<Item = UnclosedStream<'_>> {
        let quiet = self.0.iter().filter(move |(_, stream)| !stream.closed && stream.newest <= before);
        quiet.map(|(name, stream)| UnclosedStream { stream: name, newest: stream.newest })
    }
}

impl TrackedStream {
    /// Approximate share of the memory's capacity.
    fn weight(&self) -> usize {
        1 + self.open.len() + self.ended.len()
    }
}
