//! [`WriterContext`]: keys, clock, names, settings and caches that all decisions share.

use std::sync::Arc;

use scitt::Signer;

use super::clock::Clock;
use super::recent_reads::RecentReads;
use super::record_signer::RecordSigner;
use super::settings::WriterSettings;
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
}
