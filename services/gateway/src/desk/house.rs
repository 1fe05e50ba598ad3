//! What every decision needs, whatever it is about.

use std::sync::Arc;

use scitt::Signer;

use super::clock::Clock;
use super::notary::Notary;
use super::settings::Settings;

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
