//! [`RecentReads`]: a cache of streams that other processes change, of names that have no stream, and of used claims.
//!
//! A call is decided on these without a query. Its commit is refused if such a stream has another version by then, if one
//! that did not exist does, or if the call's claim was used; the batch is then decided again on what the database has.

use evidence::Claim;
use moka::ops::compute::Op;
use moka::policy::EvictionPolicy;
use moka::sync::Cache;

use super::committed_stream::CommittedStream;
use crate::limits::{RECENT_ABSENCES, RECENT_CLAIMS, RECENT_STREAM_TIME, RECENT_STREAMS};

/// Bounded caches that the writer and the arriving calls share.
pub struct RecentReads {
    streams: Cache<String, CommittedStream>,
    /// Names without a stream. A cache of its own: callers can make up names, and push out no stream with them.
    absent: Cache<String, ()>,
    used: Cache<Claim, ()>,
}

impl Default for RecentReads {
    fn default() -> Self {
        let streams = Cache::builder().max_capacity(RECENT_STREAMS).time_to_live(RECENT_STREAM_TIME);
        let absent = Cache::builder().max_capacity(RECENT_ABSENCES).time_to_live(RECENT_STREAM_TIME);
        // The default policy turns new claims away once the cache is full: no claim is read more often than another.
        let used = Cache::builder().max_capacity(RECENT_CLAIMS).eviction_policy(EvictionPolicy::lru());
        Self { streams: streams.build(), absent: absent.build(), used: used.build() }
    }
}

impl RecentReads {
    /// Returns a stream as it was read or committed lately, or [`CommittedStream::absent`] if there was none.
    pub fn stream(&self, name: &str) -> Option<CommittedStream> {
        let absent = || self.absent.get(name).map(|()| CommittedStream::absent());
        self.streams.get(name).or_else(absent)
    }

    /// Adds a stream as the database has it, or that it has none. A slow reader does not replace a version that was
    /// committed meanwhile.
    pub fn insert(&self, name: &str, committed: &CommittedStream) {
        match committed.version {
            Some(_) => self.insert_existing(name, committed),
            None if self.streams.contains_key(name) => {}
            None => self.absent.insert(name.to_owned(), ()),
        }
    }

    fn insert_existing(&self, name: &str, committed: &CommittedStream) {
        self.streams.entry_by_ref(name).and_compute_with(|known| match known {
            Some(known) if known.value().version > committed.version => Op::Nop,
            _ => Op::Put(committed.clone()),
        });
        self.absent.invalidate(name);
    }

    /// Removes a stream, which has another version by now.
    pub fn remove(&self, name: &str) {
        self.streams.invalidate(name);
        self.absent.invalidate(name);
    }

    /// Returns whether a claim is known to be used. Another one may be used as well.
    pub fn is_used(&self, claim: &Claim) -> bool {
        self.used.contains_key(claim)
    }

    /// Adds a used claim.
    pub fn insert_used(&self, claim: &Claim) {
        self.used.insert(claim.clone(), ());
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use bytes::Bytes;
    use evidence::ClaimKind;

    use super::*;
    use crate::decision_writer::states::tool_stream;

    fn at(version: u64) -> CommittedStream {
        CommittedStream { version: Some(version), ..CommittedStream::absent() }
    }

    fn claim(number: u64) -> Claim {
        let key = Bytes::copy_from_slice(&number.to_be_bytes());
        Claim { stream: "session".into(), kind: ClaimKind::MessageId, key }
    }

    #[test]
    fn a_slow_reader_does_not_bring_back_an_older_version() {
        let (recent, tool) = (RecentReads::default(), tool_stream("/mcp", "pay"));
        for (inserted, known) in [(1, 1), (3, 3), (2, 3), (4, 4)] {
            recent.insert(&tool, &at(inserted));
            assert_eq!(recent.stream(&tool).unwrap().version, Some(known));
        }
        recent.remove(&tool);
        assert!(recent.stream(&tool).is_none());
    }

    #[test]
    fn a_name_without_a_stream_is_known_until_it_has_one() {
        let (recent, tool) = (RecentReads::default(), tool_stream("/mcp", "pay"));
        assert!(recent.stream(&tool).is_none());
        recent.insert(&tool, &CommittedStream::absent());
        assert_eq!(recent.stream(&tool).unwrap().version, None);
        recent.insert(&tool, &at(1));
        recent.insert(&tool, &CommittedStream::absent());
        assert_eq!(recent.stream(&tool).unwrap().version, Some(1), "a slow reader does not take it away");
        recent.remove(&tool);
        assert!(recent.stream(&tool).is_none());
        recent.insert(&tool, &CommittedStream::absent());
        recent.remove(&tool);
        assert!(recent.stream(&tool).is_none());
    }

    #[test]
    fn names_that_callers_make_up_keep_no_stream_out() {
        let (recent, tool) = (RecentReads::default(), tool_stream("/mcp", "pay"));
        for number in 0..RECENT_ABSENCES * 2 {
            recent.insert(&format!("made up {number}"), &CommittedStream::absent());
        }
        recent.absent.run_pending_tasks();
        assert!(recent.absent.entry_count() <= RECENT_ABSENCES);
        recent.insert(&tool, &at(1));
        recent.streams.run_pending_tasks();
        assert_eq!(recent.stream(&tool).unwrap().version, Some(1));
    }

    #[test]
    fn the_claims_that_were_used_last_are_known_however_many_came_before() {
        let recent = RecentReads::default();
        (0..RECENT_CLAIMS * 2).for_each(|number| recent.insert_used(&claim(number)));
        recent.used.run_pending_tasks();
        assert!(recent.is_used(&claim(RECENT_CLAIMS * 2 - 1)));
        assert!(!recent.is_used(&claim(0)));
    }
}
