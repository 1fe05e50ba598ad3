//! [`WriterContext`]: keys, clock, names, settings and caches that all decisions share.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use outbox::LogConnection;
use scitt::Signer;
use vap::message::UNBOUND;

use super::clock::Clock;
use super::committed_stream::CommittedStream;
use super::recent_reads::RecentReads;
use super::record_signer::{RecordSigner, WriterKeys};
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
    /// Name of the first stream of this instance for records that belong to no session. The names of the later ones and of
    /// the client streams begin with it.
    pub first_own_stream: String,
    /// How many such streams other instances have closed, which took this one for dead.
    pub closed_own_streams: AtomicU64,
    /// The operator's settings.
    pub settings: WriterSettings,
    /// Streams and claims that were read lately.
    pub recent: RecentReads,
}

impl WriterContext {
    /// The context of an instance whose statements go to `log`.
    pub fn new(
        keys: &WriterKeys,
        log: &LogConnection,
        clock: Clock,
        settings: WriterSettings,
        instance: &str,
    ) -> Self {
        Self {
            record_signer: RecordSigner::new(keys.evidence.clone(), &settings.issuer, &log.url),
            verdict: keys.verdict.clone(),
            clock,
            instance: instance.to_owned(),
            first_own_stream: format!("{UNBOUND}{instance}"),
            closed_own_streams: AtomicU64::new(0),
            settings,
            recent: RecentReads::default(),
        }
    }

    /// Returns the stream of records that belong to no session.
    pub fn own_stream(&self) -> String {
        match self.closed_own_streams.load(Ordering::Relaxed) {
            0 => self.first_own_stream.clone(),
            closed => format!("{}.{closed}", self.first_own_stream),
        }
    }

    /// Begins another stream of records that belong to no session, since no record follows a closing record.
    pub fn begin_own_stream(&self) {
        self.closed_own_streams.fetch_add(1, Ordering::Relaxed);
        let stream = self.own_stream();
        tracing::warn!(
            stream,
            "this instance's stream was closed by another instance, or because this one stops: a new stream begins"
        );
    }

    /// Returns when other instances may end the stream of this one, in Unix seconds, unless `KeepAliveWork` postpones
    /// it. Without a shared database it is never due: the next start ends the stream.
    pub fn own_stream_due(&self, now: u64) -> u64 {
        if self.settings.shared { now + UNBOUND_DUE.as_secs() } else { FOR_EVER }
    }

    /// Caches a stream as the database has it, for [`cached`](Self::cached) or, if others change it, among the recent reads.
    pub fn add_to_cache(
        &self,
        cache: &mut SessionCache<CommittedStream>,
        name: String,
        committed: CommittedStream,
    ) {
        let is_absent = committed.version.is_none();
        if is_changed_by_others(&name) || (is_absent && is_account_stream(&name)) {
            self.recent.insert(&name, &committed);
        } else if !is_absent || name == self.own_stream() {
            // A name without a stream is not cached: callers can make up names, and would evict the cache. The gateway's
            // own stream may be missing for long, and every batch opens it.
            cache.insert(name, committed);
        }
    }

    /// Returns a stream from the writer's `cache`, or an account that did not exist lately: a caller without sessions has
    /// none, however often it calls.
    pub fn cached(&self, cache: &mut SessionCache<CommittedStream>, name: &str) -> Option<CommittedStream> {
        let absent = || self.recent.stream(name).filter(|_| is_account_stream(name));
        cache.get(name).cloned().or_else(absent)
    }

    /// Returns whether a commit of decisions that only read this version of a stream is refused if the stream has another
    /// one by then. Gateways that share a database change accounts, too.
    pub fn must_be_unchanged(&self, name: &str, version: Option<u64>) -> bool {
        let may_change = self.settings.shared || version.is_none();
        is_changed_by_others(name) || (may_change && is_account_stream(name))
    }
}
