//! [`RecentReads`]: streams of others as the database had them lately, and claims that were used lately.
//!
//! A call is decided on these without a query. Its commit is refused if such a stream has another version by then or if the
//! call's claim was used; the batch is then decided again on what the database has.

use evidence::Claim;
use moka::sync::Cache;

use super::committed_stream::CommittedStream;
use crate::decision_writer::states::is_changed_by_others;
use crate::limits::{RECENT_CLAIMS, RECENT_STREAM_TIME, RECENT_STREAMS};

/// Bounded caches that the writer and the arriving calls share.
pub struct RecentReads {
    streams: Cache<String, CommittedStream>,
    used: Cache<Claim, ()>,
}

impl Default for RecentReads {
    fn default() -> Self {
        let streams = Cache::builder().max_capacity(RECENT_STREAMS).time_to_live(RECENT_STREAM_TIME);
        Self { streams: streams.build(), used: Cache::new(RECENT_CLAIMS) }
    }
}

impl RecentReads {
    /// Returns a stream as it was read or committed lately.
    pub fn stream(&self, name: &str) -> Option<CommittedStream> {
        self.streams.get(name)
    }

    /// Keeps a stream as the database has it, if others change it. One that does not exist is not kept: callers can make up
    /// names.
    pub fn put(&self, name: &str, committed: &CommittedStream) {
        if is_changed_by_others(name) && committed.version.is_some() {
            self.streams.insert(name.to_owned(), committed.clone());
        }
    }

    /// Forgets a stream, which has another version by now.
    pub fn forget(&self, name: &str) {
        self.streams.invalidate(name);
    }

    /// Returns whether a claim is known to be used. Another one may be used as well.
    pub fn is_used(&self, claim: &Claim) -> bool {
        self.used.contains_key(claim)
    }

    /// Keeps a claim as used.
    pub fn used(&self, claim: &Claim) {
        self.used.insert(claim.clone(), ());
    }
}
