//! What every decision needs, whatever it is about.

use std::sync::Arc;

use scitt::Signer;

use super::clock::Clock;
use super::notary::Notary;
use super::settings::Settings;
use crate::limits::{FOR_EVER, UNBOUND_DUE};

/// Keys, clock and names.
pub struct House {
    /// Makes statements.
    pub notary: Notary,
    /// Signs Verdicts.
    pub verdict: Arc<dyn Signer>,
    /// What time it is.
    pub clock: Clock,
    /// This run of this gateway.
    pub instance: String,
    /// The stream of what belongs to no session.
    pub unbound: String,
    /// How it behaves.
    pub settings: Settings,
}

impl House {
    /// When the stream of what belongs to no session is ended by others, unless this instance says that it lives: where
    /// nobody else has the database, the next start does it.
    pub fn unbound_due(&self, now: u64) -> u64 {
        if self.settings.shared { now + UNBOUND_DUE.as_secs() } else { FOR_EVER }
    }
}
