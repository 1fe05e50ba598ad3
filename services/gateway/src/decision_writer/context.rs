//! [`WriterContext`]: keys, clock, names, settings and caches that all decisions share.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use scitt::Signer;

use super::clock::Clock;
use super::committed_stream::CommittedStream;
use super::recent_reads::RecentReads;
use super::record_signer::RecordSigner;
use super::session_cache::SessionCache;
use super::settings::WriterSettings;
use super::states::{is_account_stream, is_changed_by_others};
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
    /// Name of the first stream of records that belong to no session, with which the names of all such streams of this
    /// gateway begin.
    pub unbound: String,
    /// How many such streams other instances have ended, which took this one for dead.
    pub ended: AtomicU64,
    /// The operator's settings.
    pub settings: WriterSettings,
    /// What the database has said lately.
    pub recent: RecentReads,
}

impl WriterContext {
    /// Returns the stream of records that belong to no session.
    pub fn own_stream(&self) -> String {
        match self.ended.load(Ordering::Relaxed) {
            0 => self.unbound.clone(),
            ended => format!("{}.{ended}", self.unbound),
        }
    }

    /// Begins another stream of records that belong to no session, since no record follows a closing record.
    pub fn begin_own_stream(&self) {
        self.ended.fetch_add(1, Ordering::Relaxed);
        let stream = self.own_stream();
        tracing::warn!(
            stream,
            "this instance's stream was closed by another instance, or because this one stops: a new stream begins"
        );
    }

    /// Returns when other instances may end the stream of this one, in Unix seconds, unless `AliveWork` postpones it.
    /// Without a shared database it is never due: the next start ends the stream.
    pub fn unbound_due(&self, now: u64) -> u64 {
        if self.settings.shared { now + UNBOUND_DUE.as_secs() } else { FOR_EVER }
    }

    /// Keeps a stream as the database has it, for [`known`](Self::known) or, if others change it, among the recent reads.
    pub fn remember(
        &self,
        cache: &mut SessionCache<CommittedStream>,
        name: String,
        committed: CommittedStream,
    ) {
        let is_absent = committed.version.is_none();
        if is_changed_by_others(&name) || (is_absent && is_account_stream(&name)) {
            self.recent.put(&name, &committed);
        } else if !is_absent || name == self.own_stream() {
            // A name without a stream is not cached: callers can make up names, and would evict the cache. The gateway's
            // own stream may be missing for long, and every batch opens it.
            cache.put(name, committed);
        }
    }

    /// Returns a stream as the writer knows it: from its `cache`, or an account that did not exist lately. A caller without
    /// sessions has none, however often it calls.
    pub fn known(&self, cache: &mut SessionCache<CommittedStream>, name: &str) -> Option<CommittedStream> {
        let absent = || self.recent.stream(name).filter(|_| is_account_stream(name));
        cache.get(name).cloned().or_else(absent)
    }

    /// Returns whether the commit of decisions that only read this version of a stream is refused if the stream has another
    /// one by then. Gateways that share a database change accounts, too.
    pub fn is_relied_on(&self, name: &str, version: Option<u64>) -> bool {
        let may_change = self.settings.shared || version.is_none();
        is_changed_by_others(name) || (may_change && is_account_stream(name))
    }
}
