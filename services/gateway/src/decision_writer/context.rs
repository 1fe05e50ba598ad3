//! [`WriterContext`]: keys, clock, names, settings and caches that all decisions share.

use std::sync::Arc;

use scitt::Signer;

use super::clock::Clock;
use super::committed_stream::CommittedStream;
use super::recent_reads::RecentReads;
use super::record_signer::RecordSigner;
use super::session_cache::SessionCache;
use super::settings::WriterSettings;
use super::states::is_changed_by_others;
use crate::limits::{FOR_EVER, UNBOUND_DUE};

/// Keys, clock, names, settings and caches of one gateway instance.
pub struct WriterContext {
    /// Builds and signs statements.
    pub record_signer: RecordSigner,
    /// The signing key of Verdicts.
    pub verdict: Arc<dyn Signer>,
    /// The clock of decisions and records.
    pub clock: Clock,
    /// Name of this run of the gateway.
    pub instance: String,
    /// The stream of records that belong to no session.
    pub unbound: String,
    /// The operator's settings.
    pub settings: WriterSettings,
    /// What the database has said lately.
    pub recent: RecentReads,
}

impl WriterContext {
    /// Returns when other instances may end the stream of this one, in Unix seconds, unless `AliveWork` postpones it.
    /// Without a shared database it is never due: the next start ends the stream.
    pub fn unbound_due(&self, now: u64) -> u64 {
        if self.settings.shared { now + UNBOUND_DUE.as_secs() } else { FOR_EVER }
    }

    /// Keeps a stream as the database has it: among the recent reads if others change it, and otherwise in the writer's
    /// `cache`.
    pub fn remember(
        &self,
        cache: &mut SessionCache<CommittedStream>,
        name: String,
        committed: CommittedStream,
    ) {
        if is_changed_by_others(&name) {
            self.recent.put(&name, &committed);
        } else if committed.version.is_some() || name == self.unbound {
            // A name without a stream is not cached: callers can make up names, and would evict the cache. The gateway's
            // own stream may be missing for long, and every batch opens it.
            cache.put(name, committed);
        }
    }
}
